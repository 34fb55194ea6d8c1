"""What a public rule costs: `python -m tests.bench.rules [--count N] [--turns N]`.

The same rewrite as the rules of `algsimp` do it (a function that looks at an instruction of an opcode, with XLA's edits
in post-order), by a rule of a pattern, and by a rule as op lines: CPU time of the least of several turns, taken in
turn, in microseconds for each rewrite, and as a multiple of the first. Each walks until nothing changes. Exit status: 1
where a rule of a pattern takes more than `GOAL` times as long.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable

import attrs

import hlotext as hlo
from hlotext import matchers as m
from hlotext import rewrite

GOAL = 1.1


@rewrite.pattern("negate")
def cancelled(r: rewrite.Rewrite) -> rewrite.Result:
    """`negate(negate(x)) => x`"""
    inner = r.instruction.operands[0]
    return inner.opcode == "negate" and inner.operands[0]


@rewrite.pattern(m.negate(m.negate(m.op("x"))))
def cancelled_by_rule(r: rewrite.Rewrite) -> hlo.Instruction:
    return r["x"]


@rewrite.pattern("add")
def doubled(r: rewrite.Rewrite) -> rewrite.Result:
    """`add(x, x) => multiply(x, x)`"""
    a, b = r.instruction.operands
    return a is b and r.replace_with_new(r.instruction, "multiply", (a, a))


@rewrite.pattern(m.add(m.op("x"), m.op("x")))
def doubled_by_rule(r: rewrite.Rewrite) -> hlo.Instruction:
    return r.b.multiply(r["x"], r["x"])


@rewrite.pattern("transpose")
def swapped(r: rewrite.Rewrite) -> rewrite.Result:
    """`transpose(sine(x)) => sine(transpose(x))`"""
    i = r.instruction
    inner = i.operands[0]
    if inner.opcode != "sine":
        return False
    assert i.shape is not None
    moved = r.create_like(i, "transpose", i.shape, inner.operands, dimensions=i.attributes["dimensions"])
    return r.replace_with_new(i, "sine", (moved,))


@rewrite.pattern(m.transpose(m.sine(m.op("x"))))
def swapped_by_rule(r: rewrite.Rewrite) -> hlo.Instruction:
    return r.b.sine(r.b.transpose(r["x"], dimensions=r.instruction.attributes["dimensions"]))


@attrs.frozen
class Case:
    """One rewrite, in three ways."""

    kit: rewrite.RewriteRule
    function: rewrite.RewriteRule
    text: rewrite.RewriteRule
    body: str
    """Two lines, with the number of each."""
    rewrites: int = 1
    """Of each pair of lines."""


CASES = (
    Case(
        cancelled,
        cancelled_by_rule,
        rewrite.rule("negate(negate($x)) => $x", "text"),
        "  a.{n} = f32[8,8] negate(y.{last})\n  b.{n} = f32[8,8] negate(a.{n})\n  y.{n} = f32[8,8] sine(b.{n})\n",
    ),
    Case(
        doubled,
        doubled_by_rule,
        rewrite.rule("add($x, $x) => multiply($x, $x)", "text"),
        "  a.{n} = f32[8,8] add(y.{last}, y.{last})\n  y.{n} = f32[8,8] sine(a.{n})\n",
    ),
    Case(
        swapped,
        swapped_by_rule,
        rewrite.rule("transpose(sine($x)), dimensions=$D => sine(transpose($x), dimensions=$D)", "text"),
        "  a.{n} = f32[8,8] sine(y.{last})\n  b.{n} = f32[8,8] transpose(a.{n}), dimensions={{1,0}}\n"
        "  y.{n} = f32[8,8] negate(b.{n})\n",
    ),
)


def program(case: Case, count: int) -> str:
    lines = "".join(case.body.format(n=n, last=n - 1) for n in range(1, count + 1))
    return f"HloModule m\n\nENTRY e {{\n  y.0 = f32[8,8] parameter(0)\n{lines}}}\n"


def by_kit(case: Case, module: hlo.Module) -> int:
    with module.transaction():  # as every pass runs
        return sum(rewrite.apply_rules(module, [case.kit], driver="post-order").values())


def by_rule(rule: rewrite.RewriteRule, module: hlo.Module) -> int:
    with module.transaction():
        return sum(rewrite.apply_rules(module, [rule]).values())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--turns", type=int, default=7)
    given = parser.parse_args()
    is_good = True
    for case in CASES:
        text = program(case, given.count)
        ways: dict[str, Callable[[hlo.Module], int]] = {
            "kit": lambda module, case=case: by_kit(case, module),  # type: ignore[misc]
            "function": lambda module, case=case: by_rule(case.function, module),  # type: ignore[misc]
            "op lines": lambda module, case=case: by_rule(case.text, module),  # type: ignore[misc]
        }
        least: dict[str, float] = {}
        for _ in range(given.turns):
            for name, way in ways.items():
                module = hlo.parse(text).materialize()
                gc.collect()
                started = time.process_time()
                rewrites = way(module)
                took = (time.process_time() - started) / given.count * 1e6
                if rewrites != given.count:
                    raise RuntimeError(f"{name} made {rewrites} rewrites of {given.count}")
                least[name] = min(took, least.get(name, took))
        cells = "".join(
            f"{name} {took:7.1f} us ({took / least['kit']:.2f})   " for name, took in least.items()
        )
        print(f"{case.kit.name:<10} {cells}", flush=True)
        is_good &= least["function"] <= GOAL * least["kit"]
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
