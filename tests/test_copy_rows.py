"""Rows of values that share memory are compared by their ends where paths tell the rest: the answer is that of all pairs."""

from __future__ import annotations

import random

import pytest

import hlotext as hlo
from hlotext import compiler
from hlotext.analysis import Backend
from hlotext.analysis.age import age_for
from hlotext.compiler import value_lists
from hlotext.compiler.live_range_regions import LiveRangeRegion, RegionComparison
from hlotext.compiler.ordering import Ordering
from hlotext.compiler.remove_unnecessary_copies import _Remover
from hlotext.compiler.resolve_interference import add_copies, in_place_pairs
from hlotext.compiler.value_lists import Rows
from tests import explain_pairs
from tests.bench.kinds import MODULES
from tests.test_linear import counted

PLATFORMS = ("cpu", "gpu", "tpu")


class _Program:
    """A random module of loops, branches, updates and copies, which take what was before in any order."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.done: list[str] = []
        self.count = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}.{self.count}"

    def text(self, depth: int = 2, most: int = 9) -> str:
        """`most` operations in the entry, and loops and branches so deep."""
        lines = ["  p.0 = f32[8] parameter(0)", "  p.1 = f32[8] parameter(1)"]
        values = self.lines(lines, ["p.0", "p.1"], self.rng.randrange(3, most), depth)
        given = [self.rng.choice(values) for _ in range(self.rng.randrange(1, 4))]
        lines.append(f"  ROOT r = ({', '.join(['f32[8]'] * len(given))}) tuple({', '.join(given)})")
        entry = "ENTRY e {\n" + "\n".join(lines) + "\n}\n"
        alias = ", input_output_alias={ {0}: (0, {}) }" if self.rng.random() < 0.3 else ""
        return f"HloModule m{alias}\n\n" + "\n".join([*self.done, entry])

    def lines(self, lines: list[str], values: list[str], count: int, depth: int) -> list[str]:
        """Adds so many operations; all values that there are then."""
        values = list(values)
        for _ in range(count):
            kind = self.rng.choice(("sine", "add", "copy", "update", "loop", "loop", "branches"))
            if kind in ("loop", "branches") and not depth:
                kind = "add"
            a, b, x = self.rng.choice(values[-4:]), self.rng.choice(values), self.name("x")
            if kind in ("sine", "copy"):
                lines.append(f"  {x} = f32[8] {kind}({a})")
            elif kind == "add":
                lines.append(f"  {x} = f32[8] add({a}, {b})")
            elif kind == "update":
                k, s = self.name("k"), self.name("s")
                lines.append(f"  {k} = s32[] constant(3)\n  {s} = f32[2] slice({b}), slice={{[0:2]}}")
                lines.append(f"  {x} = f32[8] dynamic-update-slice({a}, {s}, {k})")
            elif kind == "loop":
                values += self.loop(lines, values, depth)
                continue
            else:
                i = self.name("i")
                lines.append(f'  {i} = s32[] custom-call(), custom_call_target="t"')
                f, g = self.branch(depth), self.branch(depth)
                lines.append(f"  {x} = f32[8] conditional({i}, {a}, {b}), branch_computations={{{f}, {g}}}")
            values.append(x)
        return values

    def branch(self, depth: int) -> str:
        name, p = self.name("f"), self.name("p")
        lines = [f"  {p} = f32[8] parameter(0)"]
        values = self.lines(lines, [p], self.rng.randrange(3), depth - 1)
        lines.append(f"  ROOT {self.name('r')} = f32[8] negate({self.rng.choice(values)})")
        self.done.append(f"{name} {{\n" + "\n".join(lines) + "\n}\n")
        return name

    def loop(self, lines: list[str], values: list[str], depth: int) -> list[str]:
        width = self.rng.randrange(1, 4)
        state = f"(s32[]{', f32[8]' * width})"
        body, condition, s, t, w, z = map(self.name, ("body", "cond", "s", "t", "w", "z"))
        i, one, j = self.name("i"), self.name("one"), self.name("j")
        inner = [
            f"  {s} = {state} parameter(0)",
            f"  {i} = s32[] get-tuple-element({s}), index=0",
            f"  {one} = s32[] constant(1)\n  {j} = s32[] add({i}, {one})",
        ]
        own = [self.name("g") for _ in range(width)]
        inner += [f"  {g} = f32[8] get-tuple-element({s}), index={n + 1}" for n, g in enumerate(own)]
        known = self.lines(inner, own, self.rng.randrange(4), depth - 1)
        back = [self.rng.choice((*known[-width:], g)) for g in own]
        inner.append(f"  ROOT {self.name('r')} = {state} tuple({', '.join((j, *back))})")
        self.done.append(f"{body} {{\n" + "\n".join(inner) + "\n}\n")
        q, c, k, less = map(self.name, ("q", "c", "k", "l"))
        self.done.append(
            f"{condition} {{\n  {q} = {state} parameter(0)\n  {c} = s32[] get-tuple-element({q}), index=0\n"
            f"  {k} = s32[] constant(9)\n  ROOT {less} = pred[] compare({c}, {k}), direction=LT\n}}\n"
        )
        given = [self.rng.choice(values[-4:]) for _ in range(width)]
        lines.append(f"  {z} = s32[] constant(0)\n  {t} = {state} tuple({', '.join((z, *given))})")
        lines.append(f"  {w} = {state} while({t}), condition={condition}, body={body}")
        results = [self.name("y") for _ in range(width)]
        lines += [f"  {y} = f32[8] get-tuple-element({w}), index={n + 1}" for n, y in enumerate(results)]
        return results


def _scheduled(text: str) -> str:
    """A text whose lines are the schedule."""
    return text.replace("HloModule m", "HloModule m, is_scheduled=true", 1)


def _compare(monkeypatch: pytest.MonkeyPatch, module: hlo.Module, platform: str) -> None:
    """Compares the two ways."""
    monkeypatch.setattr(value_lists, "_MANY", 1)
    quick = compiler.copy_insertion(module, platform)
    with monkeypatch.context() as patch:
        patch.setattr(Rows, "level", lambda *_: None)
        patch.setattr(Rows, "uses_over", lambda *_: 0)
        patch.setattr(RegionComparison, "_schedule_of_both", lambda *_: None)
        thorough = compiler.copy_insertion(module, platform)
    assert quick.decisions == thorough.decisions
    assert str(quick.module) == str(thorough.module)


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 100), marks=[pytest.mark.slow, pytest.mark.nightly])]
)
def test_copies_stay_and_go_as_if_all_were_compared(monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    shorter = counted(monkeypatch, Rows, "is_over_for_all")
    for seed in seeds:
        text = _Program(seed).text()
        for module in (hlo.parse(text), hlo.parse(_scheduled(text))):
            for platform in PLATFORMS:
                _compare(monkeypatch, module, platform)
    assert shorter[0] > 3 * len(seeds)


def test_in_one_schedule_places_say_what_all_pairs_say() -> None:
    met = set()
    for seed in range(40):
        program = _Program(seed)
        module = hlo.parse(_scheduled(program.text(0, 30)))
        comparison = RegionComparison(Ordering(module), in_place_pairs(Backend.TPU))
        for _ in range(20):
            one, other = _region(module, program.rng), _region(module, program.rng)
            home = comparison._schedule_of_both(one, other)
            assert home is module.entry
            all_pairs, places = comparison._compare(one, other), comparison._compare_places(one, other, home)
            assert (places.overlaps, places.intercepts) == (all_pairs.overlaps, all_pairs.intercepts)
            met.add((places.overlaps, places.intercepts))
    assert met >= {(False, False), (True, False), (True, True)}


def _region(module: hlo.Module, rng: random.Random) -> LiveRangeRegion:
    """Some values of a schedule, each read by some of what comes behind."""
    region, places = LiveRangeRegion(), list(module.entry)
    begin = rng.randrange(len(places))
    for place in sorted(rng.sample(range(begin, len(places)), min(len(places) - begin, rng.randrange(1, 4)))):
        region.define(places[place])
        for _ in range(rng.randrange(3)):
            region.use(rng.choice(places[place:][:6] + places[-1:]), places[place])
    return region


@pytest.mark.parametrize("kind", ["loops", "nested loops", "a wide loop", "nested conditionals"])
def test_kinds_of_modules(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    for platform in PLATFORMS:
        _compare(monkeypatch, hlo.parse(MODULES[kind][1](7)), platform)


def test_recorded_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [s for s in explain_pairs.steps() if "cop" in s.name or s.name in ("fusion", "fusion-wrapper")]
    assert steps
    for step in steps:
        _compare(monkeypatch, hlo.parse(step.before), step.platform)


@pytest.mark.parametrize("is_scheduled", [False, True])
def test_comparisons_grow_with_the_copies(monkeypatch: pytest.MonkeyPatch, is_scheduled: bool) -> None:
    """Loops one after the other, whose states all end up in one piece of memory, and whose counters begin with one zero."""
    compared, looked = counted(monkeypatch, _Remover, "_overlap"), counted(monkeypatch, Ordering, "relation")
    text = MODULES["loops"][1](60)
    module = hlo.parse(_scheduled(text) if is_scheduled else text)
    decisions = compiler.copy_insertion(module, "cpu").decisions
    assert len(decisions) > 60
    assert compared[0] < 30 * 60
    assert looked[0] < 100 * 60


def test_an_operation_that_overwrites_several_operands_is_edited_once() -> None:
    """All copies of its operands are there first; rows are made of the values that copies take and give alone."""
    text = """HloModule m

f {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  n = f32[8] negate(p)
  m = f32[8] negate(q)
  ROOT t = (f32[8], f32[8]) tuple(n, m)
}

ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  x = f32[8] sine(a)
  y = f32[8] sine(b)
  unrelated = f32[8] cosine(b)
  both = (f32[8], f32[8]) fusion(x, y), kind=kLoop, calls=f, output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {})}
  ROOT r = ((f32[8], f32[8]), f32[8]) tuple(both, unrelated)
}
"""
    module = hlo.parse(text)
    edited: list[str] = []

    class _Listener:
        def inserted(self, node: object) -> None: ...
        def removed(self, node: object) -> None: ...
        def modified(self, node: object) -> None:
            edited.append(str(getattr(node, "name", "")))

    with module.listen(_Listener()):
        decisions = add_copies(module, Backend.CPU, age_for(module))
    assert [decision.rule for decision in decisions] == ["operand in place"] * 2
    assert edited.count("both") == 1
    remover = _Remover(module, Backend.CPU, age_for(module), in_place_pairs(Backend.CPU))
    taken = {value.name for value in remover.rows._nodes}
    assert {"x", "y", "both", *(decision.instruction for decision in decisions)} == taken
