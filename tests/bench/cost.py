"""How long costs take beside reading, and whether they grow with the module alone: `python -m tests.bench.cost [FILE]`."""

from __future__ import annotations

import sys
import time

import hlotext as hlo
from hlotext import cost


def nested(depth: int, kind: str) -> str:
    """Loops or calls in each other, so deep."""
    lines = ["HloModule m", "body0 {", "  p = f32[8] parameter(0)", "  ROOT n = f32[8] negate(p)", "}"]
    lines += ["test {", "  p = f32[8] parameter(0)", "  ROOT f = pred[] constant(false)", "}"]
    for number in range(1, depth):
        run = (
            f"while(p), condition=test{number}, body=body{number - 1}"
            if kind == "loops"
            else f"call(p), to_apply=body{number - 1}"
        )
        if kind == "loops":
            lines += [
                f"test{number} {{",
                "  p = f32[8] parameter(0)",
                "  ROOT f = pred[] constant(false)",
                "}",
            ]
        lines += [f"body{number} {{", "  p = f32[8] parameter(0)", f"  ROOT r = f32[8] {run}", "}"]
    last = f"  ROOT r = f32[8] call(p), to_apply=body{depth - 1}"
    return "\n".join([*lines, "ENTRY e {", "  p = f32[8] parameter(0)", last, "}"])


def seconds(text: str) -> tuple[float, float, int]:
    """Processor time of reading and of everything that costs a module, and its instructions."""
    begin = time.process_time()
    module = hlo.parse(text)
    read = time.process_time()
    cost.analyze(module).by("scope")
    cost.estimate(module, "v5e")
    count = sum(len(computation) for computation in module.computations)
    return read - begin, time.process_time() - read, count


def main() -> None:
    """Prints a line for each module."""
    if len(sys.argv) > 1:
        module = hlo.load(sys.argv[1])
        count = sum(len(computation) for computation in module.computations)
        begin = time.process_time()
        cost.analyze(module)
        analyzed = time.process_time() - begin
        print(f"analyze: {analyzed:.2f} s, {analyzed * 1e5 / count:.2f} s for 100,000 instructions")
    for kind in ("calls", "loops"):
        for depth in (1000, 10_000, 20_000):
            read, spent, count = seconds(nested(depth, kind))
            each = f"{spent * 1e6 / count:.1f} us an instruction, {spent / read:.1f} x reading"
            print(f"{kind} {depth:6} deep: {spent:.2f} s, {each}")


if __name__ == "__main__":
    main()
