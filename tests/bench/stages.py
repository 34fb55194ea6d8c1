"""How long what is computed of a module takes, in multiples of reading: `python -m tests.bench.stages FILE [STAGE ...]`.

Each stage gets a module of its own, read before the clock starts, as a process that does this alone has; processor time, with
a collection before each. What a stage imports is loaded by a small module before, as the reader is; `--first` counts it.
The aim stands beside each figure (26 MB of a TPU step: 72 layers of `lm_train`).
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import hlotext as hlo
from hlotext import compiler, cost, diff, lint, memory
from hlotext.view.graph import graph_page
from hlotext.view.report import report_input, report_page


def _diff(path: str, module: hlo.Module) -> object:
    other = hlo.parse(str(module).replace(" add(", " subtract(", 1))
    gc.collect()
    begin = time.process_time()
    found = diff.compare(module, other)
    assert len(found.changes) == 1
    assert found.totals["flops"].difference == found.totals["peak_memory"].difference == 0
    _diff.spent = time.process_time() - begin  # type: ignore[attr-defined]
    return found


def _within(path: str, module: hlo.Module) -> object:
    sizes = sorted(module.computations, key=len)
    hlo.verify(module, within=[sizes[-1]])
    one = sizes[len(sizes) // 2]
    one.instructions[0].name = "renamed_before_verifying"
    begin = time.process_time()
    found = hlo.verify(module, within=[one])
    _within.spent = time.process_time() - begin  # type: ignore[attr-defined]
    return found


def _linted(path: str, module: hlo.Module) -> object:
    """Lint's own work: what it shares with memory and cost is computed before."""
    memory.assign(module, places_fast_memory=False)
    cost.estimate(module)
    begin = time.process_time()
    found = lint.run(module)
    _linted.spent = time.process_time() - begin  # type: ignore[attr-defined]
    return found


STAGES: dict[str, tuple[float, Callable[[str, hlo.Module], object]]] = {
    "memory": (2.5, lambda path, module: memory.assign(module)),
    "cost": (1.5, lambda path, module: cost.analyze(module)),
    "estimate": (0, lambda path, module: cost.estimate(module, "v5e")),
    "lint": (2, _linted),
    "graph": (2, lambda path, module: graph_page(module)),
    "copies": (5, lambda path, module: compiler.copy_insertion(module)),
    "diff": (4, _diff),
    "within": (0.1, _within),
    "verify": (0, lambda path, module: hlo.verify(module)),
    "report": (15, lambda path, module: report_page(report_input(path))),
}


_SMALL = """HloModule small, is_scheduled=true

ENTRY e {
  a = f32[8,128]{1,0:T(8,128)} parameter(0)
  b = f32[8,128]{1,0:T(8,128)} add(a, a)
  ROOT c = f32[8,128]{1,0:T(8,128)} negate(b)
}
"""


def _load(stage: Callable[[str, hlo.Module], object]) -> None:
    """Runs a stage on a small module, so that its imports are not counted."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.txt")
        path.write_text(_SMALL, encoding="utf-8")
        stage(str(path), hlo.load(path))


def main(path: str, names: list[str]) -> None:
    counts_imports = "--first" in names
    names = [name for name in names if name != "--first"]
    text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    hlo.parse(_SMALL)

    def read() -> float:
        gc.collect()
        begin = time.process_time()
        hlo.parse(text)
        return time.process_time() - begin

    parse = min(read() for _ in range(3))
    print(f"parse {parse:.2f} s")
    for name in names or STAGES:
        aim, stage = STAGES[name]
        if not counts_imports:
            _load(stage)
        module = hlo.parse(text)
        gc.collect()
        begin = time.process_time()
        stage(path, module)
        spent = getattr(stage, "spent", None) or time.process_time() - begin
        parse = min(parse, read())
        print(f"{name:10} {spent:7.2f} s {spent / parse:7.2f} x, aim {aim}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
