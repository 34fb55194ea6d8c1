"""Samples mutants, maps them to tests, runs these: `python -m tests.mutants sample|map|run FOLDER`.

    python -m tests.mutants sample OUT --count 100 --seed 1 [--only lint/ --only edit/]
    python -m tests.mutants map OUT -n 2 -m "not slow"
    python -m tests.mutants run OUT

`sample` writes OUT/mutants.json, `map` runs all tests once (what follows OUT goes to pytest) and writes which of them run the
line of each mutant, `run` runs these tests on a copy of the tree with one mutant at a time, and if none fails the rest of
their files. OUT/results.*.tsv have a row for each mutant; they are continued if they are there.
tests/data/mutants.toml lists mutants that change nothing that anybody could notice.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests import support
from tests.mutants import plugin, sites

SECONDS = 60.0
"""Time of the tests of one stage, as the map measured it; the first one runs whatever it takes."""
FEW = 4
"""Number of files of the first stage: collecting the tests of a file takes longer than most tests."""
EQUIVALENT = support.DATA / "mutants.toml"


def record(out: Path, arguments: Sequence[str]) -> int:
    """Runs the tests with the plugin, which writes the map."""
    environment = os.environ | {plugin.WANTED: str(out / "mutants.json"), plugin.OUTPUT: str(out / "map")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.mutants.plugin",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    return subprocess.run(command, cwd=support.ROOT, env=environment, check=False).returncode


def read_map(out: Path) -> tuple[dict[str, set[str]], dict[str, float]]:
    """The tests that run each line, and the seconds of each test."""
    tests: dict[str, set[str]] = collections.defaultdict(set)
    seconds: dict[str, float] = {}
    for path in out.glob("map.*.json"):
        data = json.loads(path.read_text())
        seconds |= data["seconds"]
        for place, found in data["tests"].items():
            tests[place.removeprefix(f"{sites.PACKAGE}/")].update(found)
    return tests, seconds


def within(tests: Iterable[str], seconds: dict[str, float], budget: float) -> list[str]:
    """The shortest tests that fit the time together."""
    chosen: list[str] = []
    for test in sorted(tests, key=lambda test: seconds.get(test, 1)):
        budget -= seconds.get(test, 1)
        if budget < 0 and chosen:
            break
        chosen.append(test)
    return chosen


def stages(found: set[str], tests: Mapping[str, set[str]], seconds: dict[str, float]) -> Iterator[list[str]]:
    """The tests to run, those of a few files first: of the files that run the fewest other mutants."""
    spread = collections.Counter(
        file for line in tests.values() for file in {test.split("::")[0] for test in line}
    )
    files = sorted({test.split("::")[0] for test in found}, key=spread.__getitem__)
    few, others = set(files[:FEW]), set(files[FEW:])
    for some in (few, others):
        yield within((test for test in found if test.split("::")[0] in some), seconds, SECONDS)
    yield within(
        (test for test in seconds if test.split("::")[0] in few and test not in found), seconds, SECONDS
    )


def fails(tree: Path, tests: Sequence[str]) -> str:
    """The first of these tests that fails in the tree; an empty text if none does."""
    names = tree / "tests.args"
    names.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "", f"@{names}"]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # nothing but the mutated file is compiled again
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=4 * SECONDS
        )
    except subprocess.TimeoutExpired:
        return "endless"
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].split(" - ")[0] if lines else (done.stdout + done.stderr)[-200:].replace("\n", " ")


def copy_tree(tree: Path) -> None:
    """The tracked files as they are in the working tree."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=support.ROOT, capture_output=True, check=True
    ).stdout
    for name in filter(None, names.decode().split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(support.ROOT / name, tree / name)


def run(out: Path, part: int, parts: int) -> None:
    """Runs one part of the sample: several processes may share it."""
    mutants = sites.read(json.loads((out / "mutants.json").read_text()))
    tests, seconds = read_map(out)
    known = set(tomllib.loads(EQUIVALENT.read_text())) if EQUIVALENT.exists() else set()
    results = out / f"results.{part}.tsv"
    done = {line.split("\t")[1] for line in results.read_text().splitlines()} if results.exists() else set()
    tree = out / f"tree.{part}"
    copy_tree(tree)
    for mutant in mutants[part::parts]:
        if mutant.key in done:
            continue
        path = tree / "hlotext" / mutant.path
        compiled = Path(importlib.util.cache_from_source(str(path)))
        source = path.read_text()
        found = {test for line in mutant.lines for test in tests.get(f"{mutant.path}:{line}", ())}
        failed = ""
        path.write_text(mutant.apply(source))
        compiled.unlink(missing_ok=True)
        for chosen in stages(found, tests, seconds):
            if chosen and not failed:
                failed = fails(tree, chosen)
        path.write_text(source)
        compiled.unlink(missing_ok=True)
        state = (
            "killed" if failed else "equivalent" if mutant.key in known else "alive" if found else "not run"
        )
        place = f"{mutant.path}:{mutant.start[0]}"
        with results.open("a") as file:
            file.write("\t".join([state, mutant.key, place, mutant.kind, str(len(found)), failed]) + "\n")
        print(state, place, mutant.key, failed, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["sample", "map", "run"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    options, rest = parser.parse_known_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    match options.what:
        case "sample":
            mutants = sites.sample(options.count, options.seed, options.only or [""])
            (out / "mutants.json").write_text(json.dumps(sites.write(mutants), indent=0))
        case "map":
            return record(out, rest)
        case "run":
            run(out, options.part, options.parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
