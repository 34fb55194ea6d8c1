"""Work that grew with the square of a module: counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

import hlotext as hlo
from hlotext import compiler, diff, rewrite
from hlotext.ir.nodes.computation import Computation


def steps(work: Callable[[], object]) -> int:
    """How many functions of Python are called meanwhile."""
    count = 0

    def seen(*_: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def nested(depth: int) -> str:
    """Calls in calls."""
    bodies = "".join(
        f"fn{n} {{\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] {f'call(p), to_apply=fn{n - 1}' if n else 'negate(p)'}\n}}\n"
        for n in range(depth)
    )
    entry = f"  x = f32[4] parameter(0)\n  ROOT y = f32[4] call(x), to_apply=fn{depth - 1}\n"
    return f"HloModule m\n\n{bodies}ENTRY e {{\n{entry}}}\n"


def ordered(length: int) -> str:
    """A chain of control edges."""
    lines = "".join(
        f"  x{n} = f32[4] negate(x0), control-predecessors={{x{n - 1}}}\n" for n in range(1, length)
    )
    return f"HloModule m\n\nENTRY e {{\n  x0 = f32[4] parameter(0)\n{lines}  ROOT y = f32[4] negate(x{length - 1})\n}}\n"


def parameters(count: int) -> str:
    """Many parameters, of which one is needed."""
    lines = "".join(f"  x{n} = f32[4] parameter({n})\n" for n in range(count))
    every = ", ".join(f"x{n}" for n in range(count))
    return (
        f"HloModule m\n\nENTRY e {{\n{lines}  y = f32[4] negate(x0)\n"
        f'  ROOT z = f32[4] custom-call(y, {every}), custom_call_target="all"\n}}\n'
    )


@pytest.mark.parametrize("make", [nested, ordered])
def test_diff(make: Callable[[int], str]) -> None:
    """Of calls in calls and of control edges: twice as much work for twice as many."""

    def compared(size: int) -> int:
        text = make(size)
        before, after = hlo.parse(text), hlo.parse(text.replace("negate(", "sine(", 1))
        return steps(lambda: list(diff.compare(before, after).changes))

    compared(4)
    assert compared(240) <= 2.4 * compared(120)


def test_explain() -> None:
    """Names that stand in every computation are told apart by where they stand."""

    def explained(size: int) -> int:
        before = hlo.parse(nested(size))
        after = hlo.parse(nested(size).replace("negate(", "sine(", 1))
        return steps(lambda: compiler.explain(before, after, "algsimp"))

    explained(4)
    assert explained(240) <= 2.4 * explained(120)


def test_extract(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters that are not needed any more go all at once: nobody counts them again for each."""
    asked = 0
    listed: Callable[[Computation], tuple[hlo.Instruction, ...]] = vars(Computation)["parameters"].fget

    def counted(computation: Computation) -> tuple[hlo.Instruction, ...]:
        nonlocal asked
        asked += 1
        return listed(computation)

    monkeypatch.setattr(Computation, "parameters", property(counted))
    node = hlo.parse(parameters(200)).entry["y"]
    assert len(rewrite.extract(node).entry) == 2
    assert asked < 100
