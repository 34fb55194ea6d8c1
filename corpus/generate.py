#!/usr/bin/env python3
"""Makes modules for the corpus: compiles small JAX programs ahead of time and keeps what XLA dumps.

    python -m corpus.generate cpu --out DIR [--only REGEX]    jaxlib's own compiler
    python -m corpus.generate tpu --out DIR [--only REGEX]    needs the package libtpu, but no TPU
    python -m corpus.generate gpu --out DIR [--only REGEX]    needs the package jax-cuda12-plugin, but no GPU
    python -m corpus.generate cpu --list                      only says what would be compiled

Writes DIR/PLATFORM/PROGRAM.TOPOLOGY.STAGE.txt. The programs are in corpus/programs/. Each job (a program on a
topology) runs in a process of its own, so that a compiler that aborts costs one job; what it had written by
then is kept. Exit status 1 if a job failed.
"""

from __future__ import annotations

import argparse
import lzma
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SECONDS_PER_JOB: Final = 300
LARGE: Final = 400_000
"""Files above this many bytes are written as .xz."""

STAGES: Final = ("before_optimizations", "after_optimizations", "after_codegen")
"""The last is written for TPU only, and is what `compiled.as_text()` gives there."""

ENVIRONMENT: Final = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=256",
    # libtpu is asked to compile, not to look for a TPU.
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


def jobs(platform: str, only: str) -> Iterator[tuple[str, str]]:
    """(program, topology) for every program of a platform whose name matches."""
    from corpus.programs import REGISTRY

    for program in REGISTRY.values():
        if re.search(only, program.name):
            for topology in program.topologies_on(platform):
                yield program.name, topology


def compile_job(platform: str, name: str, topology: str, folder: Path) -> None:
    """Compiles one program for one topology; XLA dumps into `folder`."""
    import jax

    from corpus.programs import REGISTRY, Place

    program = REGISTRY[name]
    for setting, value in program.config.items():
        jax.config.update(setting, value)
    work = program.build(Place(platform, topology))
    options = {"xla_dump_to": str(folder), **program.flags}
    if platform == "gpu":
        options["xla_gpu_autotune_level"] = 0  # autotuning would want the device
    jax.jit(work.function, **work.options).lower(*work.arguments).compile(compiler_options=options)


def without_machine(text: str) -> str:
    """The text with source paths that do not depend on where this checkout and its packages lie."""
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        text = text.replace(f"{folder}/", "site-packages/")
    return text.replace(f"{ROOT}/", "")


def keep(folder: Path, target: Path, stem: str) -> list[Path]:
    """Copies the stages that XLA dumped for the program itself to `target`, and says where."""
    kept = []
    for stage in STAGES:
        found = [path for path in folder.glob("*.txt") if re.search(rf"[._]{stage}\.txt$", path.name)]
        if not found:
            continue
        # Small helper modules may lie beside the program's own.
        text = max(found, key=lambda path: path.stat().st_size).read_text(encoding="utf-8")
        data = without_machine(text).encode()
        path = target / f"{stem}.{stage}.txt"
        if len(data) > LARGE:
            path, data = path.with_name(f"{path.name}.xz"), lzma.compress(data, preset=9)
        path.write_bytes(data)
        kept.append(path)
    return kept


def run_job(platform: str, name: str, topology: str, out: Path) -> bool:
    """Runs one job in a process of its own, reports it on standard output, and says whether all went well."""
    target = out / platform
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "corpus.generate",
            platform,
            "--job",
            name,
            topology,
            "--out",
            folder,
        ]
        try:
            process = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **ENVIRONMENT},
                capture_output=True,
                timeout=SECONDS_PER_JOB,
            )
            ended = f"exit status {process.returncode}"
            complaint, good = process.stderr.decode(errors="replace"), process.returncode == 0
        except subprocess.TimeoutExpired:
            ended, complaint, good = f"stopped after {SECONDS_PER_JOB} s", "", False
        kept = keep(Path(folder), target, f"{name}.{topology.replace(':', '_')}")
    print(f"{name} {topology}: {'fine' if good else ended}, {len(kept)} files", flush=True)
    if not good:
        print("    " + "\n    ".join(complaint.strip().splitlines()[-3:]), flush=True)
    return good and bool(kept)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("platform", choices=("cpu", "tpu", "gpu"))
    parser.add_argument(
        "--out", type=Path, default=Path("generated"), help="where to write (default: %(default)s)"
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="programs whose name matches")
    parser.add_argument("--list", action="store_true", help="print the jobs, compile nothing")
    parser.add_argument("--job", nargs=2, metavar=("PROGRAM", "TOPOLOGY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        name, topology = arguments.job
        compile_job(arguments.platform, name, topology, arguments.out)
        return 0
    wanted = list(jobs(arguments.platform, arguments.only))
    if arguments.list:
        print("\n".join(f"{name} {topology}" for name, topology in wanted))
        return 0
    results = [run_job(arguments.platform, name, topology, arguments.out) for name, topology in wanted]
    print(f"{sum(results)} of {len(results)} jobs went well")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
