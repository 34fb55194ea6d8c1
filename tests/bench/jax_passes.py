"""Registered passes tried on sixty programs: `python -m tests.bench.jax_passes [--passes NAME ...] [--stage STAGE ...]`.

Each pass, and each of three pipelines, goes through compilations of programs of `tests.jax_everyday` in a process of its own,
with `on_error="skip"`: on four threads with an empty compilation cache on disk, then from that cache. A program without
passes afterwards must find none of what they made in the cache. Only programs are compiled whose text at that stage the pass
changes, or fails on: what it leaves alone JAX compiles as it is. One row for each pass: how many of the programs it leaves
alone, and how many have the results that they have without it, were skipped with a warning, broke the compilation, or gave
other results. Exit status: 1 where one broke or differs, or where the cache gave what another pass made.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PIPELINES = (
    "algsimp,cse,dce",
    "call-inliner,tuple-simplifier,algsimp,constant-folding,dce",
    "simplify-while-loops,while-loop-invariant-code-motion,algsimp,cse,dce",
)
WAYS = ("fresh", "cached")
LIMIT = 900
"""Seconds for a process; one that takes longer counts as broken."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--passes", nargs="*", help="these passes or pipelines alone")
    parser.add_argument("--stage", nargs="*", default=["pre_scheduler"], help="pre_scheduler, post_scheduler")
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    parser.add_argument("--most", type=int, default=0, help="programs at most, spread over all; 0: all")
    parser.add_argument("--verbose", action="store_true", help="say why programs were skipped")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        _work(json.loads(arguments.worker))
        return 0
    names = arguments.passes or [*_every_pass(), *PIPELINES]
    is_good = True
    with tempfile.TemporaryDirectory(prefix="hlotext-") as folder:
        plain, texts = Path(folder, "plain.npz"), Path(folder, "texts.json")
        for stage in arguments.stage:
            _start({"passes": "", "stage": stage, "results": str(plain), "texts": str(texts), "cache": ""})
            seen = json.loads(texts.read_text())
            step = max(1, len(seen) // arguments.most) if arguments.most else 1
            seen = dict([*seen.items()][::step][: arguments.most or len(seen)])
            print(f"{stage}: {'pass':<70} {'':>8} alone equal skip broke differ", flush=True)
            for name in names:
                programs = [program for program in seen if _changes(name, seen[program])]
                job = {"passes": name, "stage": stage, "plain": str(plain), "programs": programs}
                is_good &= _rows(job, len(seen), arguments.ways, folder, arguments.verbose)
    return 0 if is_good else 1


def _every_pass() -> list[str]:
    from hlotext.rewrite.passes import all_passes

    return sorted(name for name, kind in all_passes().items() if kind.preserves_results and not kind.is_early)


def _changes(name: str, texts: list[str]) -> bool:
    """True if passes change one of these texts, or fail on it."""
    import hlotext as hlo
    from hlotext.rewrite import Pipeline, parse_passes

    for text in texts:
        module = hlo.parse(text)
        try:
            Pipeline(parse_passes(name)).following("").run(module)
        except Exception:  # whatever a pass raises, its compilation has to tell
            return True
        if str(module) != text:
            return True
    return False


def _rows(job: dict[str, Any], count: int, ways: list[str], folder: str, verbose: bool) -> bool:
    """Prints the rows of one pass; whether all is well."""
    is_good = True
    alone = count - len(job["programs"])
    if not job["programs"]:
        print(f"  {job['passes']:<80} {'':>8} {alone:>5}", flush=True)
        return True
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        for way in ways:
            started = time.perf_counter()
            found = _start({**job, "cache": cache, "threads": 4 if way == "fresh" else 1})
            counts = Counter(word for word, _ in found.values())
            row = " ".join(f"{counts[word]:>5}" for word in ("equal", "skipped", "broken", "differs"))
            print(
                f"  {job['passes']:<80} {way:>8} {alone:>5} {row}  {time.perf_counter() - started:.0f} s",
                flush=True,
            )
            for program, (word, reason) in found.items():
                if word in ("broken", "differs") or (word == "skipped" and verbose):
                    print(f"      {word} {program}: {reason}", flush=True)
            is_good &= not counts["broken"] and not counts["differs"]
        if "cached" in ways:
            found = _start({**job, "passes": "", "cache": cache})
            wrong = [program for program, (word, _) in found.items() if word != "equal"]
            hits = [program for program, (_, said) in found.items() if said == "hit"]
            if wrong or hits:
                print(f"      without passes the cache gives what they made: {wrong or hits}", flush=True)
                is_good = False
    return is_good


def _start(job: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The words of a worker; what a process that dies was at is broken, and another goes on behind it."""
    found: dict[str, tuple[str, str]] = {}
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    while True:
        command = [
            sys.executable,
            "-m",
            "tests.bench.jax_passes",
            "--worker",
            json.dumps({**job, "done": [*found]}),
        ]
        try:
            run = subprocess.run(
                command, capture_output=True, text=True, env=environment, timeout=LIMIT, check=False
            )
            text, status, said = run.stdout, run.returncode, run.stderr
        except subprocess.TimeoutExpired as error:
            text, status, said = (error.stdout or b"").decode(), -1, "it did not end"
        begun: dict[str, None] = {}
        for line in text.splitlines():
            if line.startswith("{"):
                event = json.loads(line)
                if "begins" in event:
                    begun[event["begins"]] = None
                else:
                    begun.pop(event["program"], None)
                    found[event["program"]] = (event["word"], event["reason"])
        if status == 0:
            return found
        if not begun:
            raise RuntimeError(said[-2000:])
        for program in begun:
            found[program] = ("broken", f"the process ended with {status}: {said.strip()[-300:]}")


# ---- a worker


def _work(job: dict[str, Any]) -> None:
    import jax
    import numpy as np

    from tests.jax_everyday import PROGRAMS

    if job["cache"]:
        jax.config.update("jax_compilation_cache_dir", job["cache"])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    events: list[str] = []
    jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
    said: dict[str, str] = {}

    def showwarning(message: Warning | str, *_: Any, **__: Any) -> None:
        text = str(message)
        for name in PROGRAMS:
            if f"jit_{name}:" in text or f"jit_{name} " in text:
                said[name] = text

    warnings.simplefilter("always")
    warnings.showwarning = showwarning
    from hlotext.interop.jax import register_pass
    from hlotext.rewrite import Pipeline, parse_passes

    seen: list[str] = []
    texts: dict[str, list[str]] = {}
    if job.get("texts"):
        register_pass(lambda module: seen.append(str(module)), stage=job["stage"], cache_key="1")
    elif job["passes"]:
        pipeline = Pipeline(parse_passes(job["passes"]))
        register_pass(pipeline, stage=job["stage"], on_error="skip", cache_key="1")
    plain = np.load(job["plain"]) if job.get("plain") else None
    kept: dict[str, Any] = {}

    def one(name: str) -> None:
        _say({"begins": name})
        before = len(events)
        try:
            function, arguments = PROGRAMS[name]()
            results = [np.asarray(leaf) for leaf in jax.tree.leaves(function(*arguments))]
            texts[name] = seen.copy()
            seen.clear()
        except Exception as error:
            word, reason = "broken", f"{type(error).__name__}: {error}"[:400]
        else:
            word, reason = "equal", ""
            if "/jax/compilation_cache/cache_hits" in events[before:]:
                reason = "hit"
            for number, array in enumerate(results):
                kept[f"{name} {number}"] = array
                if plain is not None and not _agree(array, plain[f"{name} {number}"]):
                    word, reason = "differs", f"result {number}"
            if name in said and word == "equal":
                word, reason = "skipped", said[name]
        _say({"program": name, "word": word, "reason": reason})

    names = [name for name in job.get("programs", PROGRAMS) if name not in job["done"]]
    if job.get("threads", 1) > 1:
        with ThreadPoolExecutor(job["threads"]) as pool:
            list(pool.map(one, names))
    else:
        for name in names:
            one(name)
    if job.get("results"):
        np.savez(job["results"], **kept)
        Path(job["texts"]).write_text(json.dumps(texts))


def _say(event: dict[str, str]) -> None:
    """A line at once, whatever other threads write."""
    os.write(1, json.dumps(event).encode() + b"\n")


def _agree(a: Any, b: Any) -> bool:
    import numpy as np

    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True))


if __name__ == "__main__":
    sys.exit(main())
