"""How often counted loops run: against simulation, and against what XLA wrote beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlotext as hlo
from hlotext.analysis.trip_count import counted_trips, trip_count
from tests import support

LOOP = """HloModule m

condition {{
  state = ({type}[], {type}[], f32[]) parameter(0)
  n = {type}[] get-tuple-element(state), index=0
  kept = {type}[] get-tuple-element(state), index=1
  bound = {type}[] constant({bound})
  ROOT goes_on = pred[] compare({operands}), direction={direction}
}}

body {{
  state = ({type}[], {type}[], f32[]) parameter(0)
  n = {type}[] get-tuple-element(state), index=0
  kept = {type}[] get-tuple-element(state), index=1
  x = f32[] get-tuple-element(state), index=2
  step = {type}[] constant({step})
  next = {type}[] {opcode}(n, step)
  y = f32[] negate(x)
  ROOT t = ({type}[], {type}[], f32[]) tuple(next, kept, y)
}}

ENTRY main {{
  x = f32[] parameter(0)
  first = {type}[] constant({first})
  bound = {type}[] constant({bound})
  start = ({type}[], {type}[], f32[]) tuple(first, bound, x)
  ROOT loop = ({type}[], {type}[], f32[]) while(start), condition=condition, body=body
}}
"""

COMPARED = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "NE": lambda a, b: a != b,
    "EQ": lambda a, b: a == b,
}
RANGES = {"s8": range(-128, 128), "u8": range(256), "s32": range(-(1 << 31), 1 << 31)}


def simulated(type: str, first: int, bound: int, step: int, direction: str, turned: bool) -> int | None:
    """What happens when it runs; None where it goes on for ever or the counter leaves its type."""
    value, rounds = first, 0
    while COMPARED[direction](*((bound, value) if turned else (value, bound))):
        value += step
        rounds += 1
        if value not in RANGES[type] or rounds > 600:
            return None
    return rounds


@given(
    st.sampled_from(["s8", "u8", "s32"]),
    st.integers(-40, 40),
    st.integers(-40, 40),
    st.integers(-9, 9),
    st.sampled_from(sorted(COMPARED)),
    st.sampled_from(["n, bound", "bound, n", "n, kept", "kept, n"]),
    st.booleans(),
)
@settings(max_examples=400, deadline=None)
def test_counted_loops(
    type: str, first: int, bound: int, step: int, direction: str, operands: str, subtracts: bool
) -> None:
    """Every direction, both orders of operands, steps up and down, a bound that the state carries."""
    if type == "u8":
        first, bound = abs(first), abs(bound)
    text = LOOP.format(
        type=type, first=first, bound=bound, operands=operands, direction=direction,
        step=abs(step) if type == "u8" else -step if subtracts else step,
        opcode="subtract" if subtracts else "add",
    )  # fmt: skip
    real_step = (-abs(step) if subtracts else abs(step)) if type == "u8" else step
    found = counted_trips(hlo.parse(text).entry.root)
    assert found == simulated(type, first, bound, real_step, direction, not operands.startswith("n"))


@pytest.mark.parametrize(
    ("type", "bound", "direction"), [("s8", 127, "LE"), ("u8", 255, "LE"), ("s8", -128, "GE")]
)
def test_a_counter_that_wraps_around_is_not_counted(type: str, bound: int, direction: str) -> None:
    """No value of the type ends such a loop."""
    step = -1 if direction == "GE" else 1
    text = LOOP.format(
        type=type, first=0, bound=bound, operands="n, bound", direction=direction, step=step, opcode="add"
    )
    assert counted_trips(hlo.parse(text).entry.root) is None


FUSED = """HloModule m

add_one {
  n = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT next = s32[] add(n, one)
}

less {
  n = s32[] parameter(0)
  bound = s32[] constant(12)
  ROOT goes_on = pred[] compare(n, bound), direction=LT
}

condition {
  state = (s32[], f32[]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  ROOT goes_on = pred[] fusion(n), kind=kLoop, calls=less
}

body {
  state = (s32[], f32[]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  x = f32[] get-tuple-element(state), index=1
  next = s32[] fusion(n), kind=kLoop, calls=add_one
  ROOT t = (s32[], f32[]) tuple(next, x)
}

ENTRY main {
  x = f32[] parameter(0)
  first = s32[] constant(2)
  kept = s32[] copy(first)
  start = (s32[], f32[]) tuple(kept, x)
  ROOT loop = (s32[], f32[]) while(start), condition=condition, body=body
}
"""


def test_what_is_fused_is_looked_into() -> None:
    """As the CPU and GPU compilers leave conditions and counters."""
    assert counted_trips(hlo.parse(FUSED).entry.root) == 10


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bound = s32[] constant(12)", "bound = s32[] negate(n)"),
        ("one = s32[] constant(1)", "one = s32[] negate(n)"),
        ("first = s32[] constant(2)", "first = s32[] convert(x)"),
    ],
)
def test_what_is_no_constant_gives_no_count(old: str, new: str) -> None:
    """None is invented where a number depends on values."""
    text = FUSED.replace(old, new)
    assert text != FUSED
    assert counted_trips(hlo.parse(text).entry.root) is None


@pytest.mark.parametrize(
    "path",
    [p for p in support.corpus_files() if b"known_trip_count" in support.read_text(p)],
    ids=support.corpus_id,
)
def test_what_is_counted_is_what_xla_knows(path: Path) -> None:
    """Wherever both tell."""
    for instruction in hlo.load(path).instructions():
        if instruction.opcode == "while" and (counted := counted_trips(instruction)) is not None:
            assert trip_count(instruction) == counted


def test_a_counter_of_no_number_is_not_counted() -> None:
    """The loop is given a token where its body counts: no such module is valid, and it was read."""
    text = LOOP.format(
        type="s32", operands="n, bound", direction="LT", step=1, opcode="add", first=0, bound=5
    ).replace("start = (s32[],", "start = (token[],")
    module = hlo.parse_tolerant(text).module
    assert module is not None
    assert counted_trips(module.entry.root) is None
