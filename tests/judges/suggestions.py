"""Compiles what hlotext advises, one changed annotation at a time, and says how often less is sent.

    python -m tests.judges.suggestions FOLDER... [--list] [--first]

Each FOLDER is what `tests.judges.compiling` made of one program, or holds several; the JAX that runs this should be the one
that made it. An argument or a result gets the advised sharding, a constraint too, and one that is to be added is put behind
the operation of the line that is named. A suggestion is right if the program with it sends less in all; `--first` tries
only the first of each reason.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hlotext import dumps
from tests.judges.compiling import environment, made, programs


def distinct(folder: Path, mesh: str, *, first: bool) -> list[dumps.Suggestion]:
    """The suggestions for one program, each once."""
    compilation = next(one for one in dumps.open(folder / "plain").compilations if one.after is not None)
    reasons = [reason for cause in compilation.collectives(mesh) for reason in cause.reasons]
    found = [one for reason in reasons for one in reason.suggestions[: 1 if first else None]]
    return list({(one.kind, one.name, one.line, one.spec): one for one in found}.values())


@contextlib.contextmanager
def constrained(suggestion: dumps.Suggestion, mesh: Any) -> Iterator[list[int]]:
    """While a program is traced, its constraint at a line is another, or its operation there has one. Yields the hits."""
    import jax
    from jax.extend.core import Primitive

    spec = [None if not cut else cut[0] if len(cut) == 1 else cut for cut in suggestion.spec_axes]
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
    real, bind, hits = jax.lax.with_sharding_constraint, Primitive.bind, [0]
    kind = suggestion.name.rpartition("/")[2]

    def is_here() -> bool:
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_lineno == suggestion.line and "site-packages" not in frame.f_code.co_filename:
                return True
            frame = frame.f_back
        return False

    def other(value: Any, shardings: Any, **options: Any) -> Any:
        if is_here():
            hits[0] += 1
            shardings = sharding
        return real(value, shardings, **options)

    def bound(self: Any, *args: Any, **params: Any) -> Any:
        result = bind(self, *args, **params)
        if self.name == kind and getattr(result, "ndim", -1) == len(spec) and is_here():
            hits[0] += 1
            return real(result, sharding)
        return result

    patched: list[tuple[Any, str, Any]] = [(jax.lax, "with_sharding_constraint", other)]
    if suggestion.rule == "reader":
        patched = [(Primitive, "bind", bound)]
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in patched]
    try:
        for owner, name, value in patched:
            setattr(owner, name, value)
        yield hits
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


def sent(compiled: Any) -> int:
    """Bytes that each device sends per run; loops whose rounds are not known count once."""
    from hlotext.analysis import communications
    from hlotext.interop.jax.protos import module_of_proto

    (module,) = compiled.runtime_executable().hlo_modules()
    text = module_of_proto(module.as_serialized_hlo_module_proto())
    return sum((one.wire_bytes or 0) * (one.runs or 1) for one in communications(text))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judges.suggestions")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--first", action="store_true")
    asked = parser.parse_args(argv)
    environment(log=False)
    import jax

    from hlotext.interop.jax.explaining import Figures, _Trials

    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for folder in sorted(p.parent for one in asked.folders for p in one.rglob("about.json")):
        about = json.loads((folder / "about.json").read_text())
        target, _, partitioner = folder.name.split(".")
        jax.config.update("jax_use_shardy_partitioner", partitioner == "shardy")
        program = programs(Path(about["programs"]))[about["program"]]
        mesh = ",".join(f"{name}={size}" for name, size in about["mesh"].items())
        found = distinct(folder, mesh, first=asked.first)
        if not found:
            continue

        def compiled(
            program: Any = program, name: str = about["program"], target: str = target
        ) -> tuple[Any, ...]:
            jax.clear_caches()
            function, args, options = made(name, program, target)
            jitted = jax.jit(function, **options)
            return jitted, args, jitted.lower(*args).compile()

        jitted, args, as_it_is = compiled()
        before = sent(as_it_is)
        trials = _Trials(jitted, tuple(args), {}, as_it_is, Figures(before, 0, None, None), None)
        device_mesh = next(leaf.sharding.mesh for leaf in jax.tree.leaves(args))
        for one in found:
            try:
                if one.kind == "constraint":
                    with constrained(one, device_mesh) as hits:
                        after = sent(compiled()[2])
                    if not hits[0]:
                        raise LookupError("the line has no such operation")
                else:
                    after = sent(
                        trials._with_argument(one) if one.kind == "argument" else trials._with_result(one)
                    )
            except Exception as error:
                rows["not tried"][one.rule] += 1
                print(
                    f"not tried {folder.name}: {one.kind} {one.name} line {one.line} {one.spec}: {str(error)[:200]}"
                )
                continue
            for row in (
                rows[f"{target} {partitioner}"],
                rows[one.rule],
                rows[f"{one.confidence} confidence"],
                rows["~all"],
            ):
                row["tried"] += 1
                row["less"] += after < before
            if asked.list:
                word = "less" if after < before else "NOT LESS"
                change = f"{one.kind} {one.name} line {one.line} {one.spec}"
                print(f"{word} {folder.name}: {one.rule}: {change}: {before} -> {after}", flush=True)
    for name, row in sorted(rows.items()):
        if name != "not tried":
            print(f"{name.strip('~'):20} {row['less']:5} of {row['tried']:5}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
