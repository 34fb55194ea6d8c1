"""The command: see the package."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from corpus.generate import ENVIRONMENT, SECONDS_PER_JOB
from tests.support import ROOT
from tests.xla_release import records
from tests.xla_release.survey import News, Survey, by_kind, survey, total

PROGRAMS = (
    "callback_io|sorting|approx_top_k|conditionals|rng_algorithms|scatters|transformer_train_scan|transformer_decode"
    "|resnet_train|data_parallel|moe_4|pipeline_4|ring_attention|collective_groups"
)
"""Programs that between them take every part of a compiler: what is compiled unless others are asked for."""
EXTRA = {"cpu": "", "tpu": "tpu", "gpu": "cuda12"}
"""The extra of JAX that brings a platform's compiler; none of them needs a device to compile for it."""


def python_for(version: str) -> str:
    """An interpreter that a release of JAX can be installed for: from 0.11 on they want Python 3.12.

    Raises SystemExit where there is none.
    """
    least = (3, 12) if tuple(map(int, version.split(".")[:2])) >= (0, 11) else (3, 11)
    if sys.version_info[:2] >= least:
        return sys.executable
    for minor in range(least[1], 16):
        own = map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
        for python in (f"python3.{minor}", *own):
            try:
                subprocess.run([python, "-c", "import venv"], check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError):
                continue
            return python
    raise SystemExit(f"jaxlib {version} needs Python 3.{least[1]} or newer, and none is on PATH")


def installed(version: str, platform: str, folder: Path) -> str | None:
    """The interpreter of a venv with a release and the compiler of a platform; None where it cannot be installed."""
    python = folder / f"venv-{version}-{platform}" / "bin" / "python"
    if not python.exists():
        subprocess.run([python_for(version), "-m", "venv", str(python.parents[1])], check=True)
    extra = f"[{EXTRA[platform]}]" if EXTRA[platform] else ""
    wanted = [f"jax{extra}=={version}", f"jaxlib=={version}"]
    if platform == "gpu":  # the plugin compiles without CUDA's own libraries
        wanted = [
            f"jax=={version}",
            f"jaxlib=={version}",
            f"jax-cuda12-plugin=={version}",
            f"jax-cuda12-pjrt=={version}",
        ]
    run = subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted],
        capture_output=True,
        text=True,
    )
    if run.returncode:
        print(f"{platform}: not installed: {run.stderr.strip().splitlines()[-1]}")
        return None
    return str(python)


def jobs(python: str, platform: str, only: str) -> Iterator[tuple[str, str]]:
    """(program, topology), one topology each."""
    run = subprocess.run(
        [python, "-m", "corpus.generate", platform, "--list", "--only", f"^({only})$"],
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=True,
    )
    seen: set[str] = set()
    for line in run.stdout.splitlines():
        name, topology = line.split()
        if name not in seen:
            seen.add(name)
            yield name, topology


def compiled(python: str, platform: str, name: str, topology: str, folder: Path) -> bool:
    """Whether a program compiles; what XLA left is in the folder either way."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        run = subprocess.run(
            [python, "-m", "tests.xla_release.compiling", platform, name, topology, str(folder)],
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            timeout=SECONDS_PER_JOB,
        )
    except subprocess.TimeoutExpired:
        print(f"{platform} {name}: stopped after {SECONDS_PER_JOB} s")
        return False
    if run.returncode:
        last = run.stderr.decode(errors="replace").strip().splitlines()[-1:]
        print(f"{platform} {name}: exit status {run.returncode} {''.join(last)}")
    return run.returncode == 0


def report(version: str, platform: str, found: Survey) -> None:
    """Prints the figures of a platform, which answers are not XLA's, then what is new, grouped."""
    sums = total(found.scores, found.scores)
    figures = ", ".join(f"{answer} {right} of {of}" for answer, (right, of) in sums.items())
    print(f"{version} {platform}: {figures or 'nothing compiled'}")
    for answer, where in found.misses:
        print(f"  not XLA's {answer}: {where}")
    for kind, rows in by_kind(found):
        print(f"  new {kind}: {len(rows)}")
        for news in rows[:20]:
            print(f"    {news.name}  ({news.where})")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version", help="of jax and jaxlib, such as 0.12.0.1")
    parser.add_argument("--platform", default="cpu,tpu,gpu", help="default: %(default)s")
    parser.add_argument("--only", default=PROGRAMS, metavar="REGEX", help="programs of corpus/programs")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="where dumps and venvs stay, and are looked for"
    )
    parser.add_argument("--record", action="store_true", help=f"write the figures to {records.FILE.name}")
    arguments = parser.parse_args()
    version: str = arguments.version
    is_new = False
    with tempfile.TemporaryDirectory() as temporary:
        place = arguments.keep or Path(temporary)
        for platform in arguments.platform.split(","):
            python = installed(version, platform, place.resolve())
            if python is None:
                continue
            found = Survey()
            for name, topology in jobs(python, platform, arguments.only):
                folder = place / version / platform / name
                if (folder / "facts.json").exists() or compiled(python, platform, name, topology, folder):
                    survey(folder, found)
                    print(f"{platform} {name}: looked through", flush=True)
            for name, where in records.news(version, platform, found):
                found.news[(where, name)] = News(where, name, f"{version} {platform}")
            report(version, platform, found)
            is_new = is_new or bool(found.news)
            if arguments.record:
                records.write(version, platform, found)
    return int(is_new)


if __name__ == "__main__":
    sys.exit(main())
