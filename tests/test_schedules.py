"""Schedulers against XLA's own schedules, of programs compiled for CPU and GPU: the memory that the order takes."""

from __future__ import annotations

import functools
import json
import lzma
import random

import attrs
import pytest

import hlotext as hlo
from hlotext import compiler, memory
from hlotext.compiler.schedule_postprocessing import post_process
from hlotext.compiler.scheduling import SCHEDULERS, TRIED
from hlotext.rewrite import Pipeline, parse_passes
from tests.support import ROOT


@attrs.frozen
class Pair:
    """A module before scheduling, and the same in XLA's order."""

    platform: str
    program: str
    before: str
    after: str


@functools.cache
def pairs() -> list[Pair]:
    """The recorded schedules; `tests/data/schedules.json.xz` holds the shortest of each platform."""
    return [
        Pair(**row)
        for row in json.loads(lzma.decompress((ROOT / "tests/data/schedules.json.xz").read_bytes()))
    ]


def in_order(module: hlo.Module) -> bool:
    """Whether everything stands behind what it needs."""
    for computation in module.computations:
        seen: set[hlo.Instruction] = set()
        for i in computation:
            if not seen.issuperset((*i.operands, *i.control_predecessors)):
                return False
            seen.add(i)
    return True


def test_peaks() -> None:
    """The order that is chosen takes as much memory as XLA's, of most programs; of nearly all within a twentieth."""
    ratios = []
    for pair in pairs():
        found = compiler.schedule(hlo.parse(pair.before), pair.platform).module
        assert found.is_scheduled
        assert in_order(found)
        peaks = [
            memory.assign(module, pair.platform).peak().bytes for module in (found, hlo.parse(pair.after))
        ]
        ratios.append(peaks[0] / max(peaks[1], 1))
    assert sum(ratio == 1 for ratio in ratios) >= 0.85 * len(ratios)
    assert sum(0.95 <= ratio <= 1.05 for ratio in ratios) >= 0.95 * len(ratios)


def test_every_scheduler_gives_an_order() -> None:
    """Each instruction once, behind what it needs; the text's own order does not matter for what is chosen, but for ties."""
    for pair in pairs()[::7]:
        module = hlo.parse(pair.before)
        found = compiler.schedules(module, pair.platform)
        assert {c.name for c in found} == {*SCHEDULERS, "text"}
        for candidate in found:
            for computation, order in candidate.orders.items():
                assert set(order) == set(computation)
                place = {i: number for number, i in enumerate(order)}
                assert len(place) == len(order)
                assert all(place[o] < place[i] for i in order for o in (*i.operands, *i.control_predecessors))
        tried = [c for c in found if c.is_tried]
        assert {c.name for c in tried} == set(TRIED[hlo.analysis.Backend(pair.platform)])


def test_other_orders_cost_what_they_say() -> None:
    """The peak of a candidate is that of the module in its order, and no order of a chain costs less than the chain."""
    pair = max(pairs(), key=lambda p: len(p.before))
    module = hlo.parse(pair.before)
    for candidate in compiler.schedules(module, pair.platform):
        if candidate.name == "text":
            continue
        copy = hlo.parse(pair.before)
        passes = parse_passes(f"memory-scheduler{{platform={pair.platform},scheduler={candidate.name}}}")
        Pipeline(passes, verify=False).run(copy)
        again = {c.name: c.bytes for c in compiler.schedules(copy, pair.platform)}
        assert again["text"] == candidate.bytes


def test_decisions_name_the_orders() -> None:
    pair = next(p for p in pairs() if p.platform == "gpu")
    outcome = compiler.schedule(hlo.parse(pair.before), "gpu")
    assert [d.rule for d in outcome.decisions].count("chosen order") == 1
    assert len(outcome.decisions) == len(SCHEDULERS)


def test_starts_go_up_and_dones_down() -> None:
    """`PostProcessSchedule`."""
    module = hlo.parse(
        "HloModule m, is_scheduled=true\n\n"
        "add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }\n\n"
        "ENTRY e { p = f32[8] parameter(0)  a = f32[8] negate(p)  b = f32[8] sine(p)"
        "  s = f32[8] all-reduce-start(p), to_apply=add  d = f32[8] all-reduce-done(s)  c = f32[8] cosine(b)"
        "  ROOT t = (f32[8], f32[8], f32[8]) tuple(a, c, d) }"
    )
    assert [i.name for i in post_process(list(module.entry))] == ["p", "s", "a", "b", "c", "d", "t"]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="no scheduler"):
        parse_passes("memory-scheduler{scheduler=nosuch}")[0].run(hlo.parse(pairs()[0].before))
    with pytest.raises(ValueError, match="no platform"):
        compiler.schedule(hlo.parse(pairs()[0].before), "abacus")


def test_large_graphs_are_quick() -> None:
    """A random graph: each scheduler walks it once."""
    chance = random.Random(5)
    lines = ["p0 = f32[16] parameter(0)"]
    for number in range(1, 1000):
        a, b = chance.randrange(max(0, number - 50), number), chance.randrange(number)
        names = [f"p{n}" if n == 0 else f"v{n}" for n in (a, b)]
        lines.append(f"v{number} = f32[16] add({names[0]}, {names[1]})")
    text = "ENTRY e {\n  " + "\n  ".join(lines[:-1]) + "\n  ROOT " + lines[-1] + "\n}"
    module = hlo.parse(text)
    assert in_order(compiler.schedule(module, "gpu").module)
