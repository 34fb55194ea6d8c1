"""Arguments that come back with their elements elsewhere: rolled caches, and lists that are stacked for a loop."""

from __future__ import annotations

import hlotext as hlo
from hlotext import memory
from hlotext.analysis.updates import updates
from hlotext.triage.contents import contents_of

ROLLED = """HloModule rolled, is_scheduled=true

ENTRY main {
  cache = f32[8,1024]{1,0} parameter(0), metadata={op_name="cache"}
  new = f32[8,1]{1,0} parameter(1), metadata={op_name="new"}
  kept = f32[8,1023]{1,0} slice(cache), slice={[0:8], [1:1024]}
  ROOT next = f32[8,1024]{1,0} concatenate(kept, new), dimensions={1}
}
"""
PADDED = ROLLED.replace(
    "  ROOT next = f32[8,1024]{1,0} concatenate(kept, new), dimensions={1}",
    """  low = f32[] constant(-inf)
  before = f32[8,1024]{1,0} pad(kept, low), padding=0_0x0_1
  behind = f32[8,1024]{1,0} pad(new, low), padding=0_0x1023_0
  ROOT next = f32[8,1024]{1,0} maximum(before, behind)""",
)
FETCHED = PADDED.replace(
    "  kept = f32[8,1023]{1,0} slice(cache), slice={[0:8], [1:1024]}",
    """  begun = ((f32[8,1024]{1,0}), f32[8,1023]{1,0:S(1)}, s32[]) slice-start(cache), slice={[0:8], [1:1024]}
  kept = f32[8,1023]{1,0:S(1)} slice-done(begun)""",
)
STACKED = """HloModule stacked, is_scheduled=true

ENTRY main {
  a = f32[8,1024]{1,0} parameter(0), metadata={op_name="caches[0]"}
  b = f32[8,1024]{1,0} parameter(1), metadata={op_name="caches[1]"}
  row = f32[2,1,1024]{2,1,0} parameter(2), metadata={op_name="row"}
  position = s32[] parameter(3), metadata={op_name="position"}
  zero = s32[] constant(0)
  first = f32[1,8,1024]{2,1,0} bitcast(a)
  second = f32[1,8,1024]{2,1,0} bitcast(b)
  both = f32[2,8,1024]{2,1,0} concatenate(first, second), dimensions={0}
  new = f32[2,8,1024]{2,1,0} dynamic-update-slice(both, row, zero, position, zero)
  left = f32[1,8,1024]{2,1,0} slice(new), slice={[0:1], [0:8], [0:1024]}
  right = f32[1,8,1024]{2,1,0} slice(new), slice={[1:2], [0:8], [0:1024]}
  x = f32[8,1024]{1,0} bitcast(left)
  y = f32[8,1024]{1,0} bitcast(right)
  ROOT result = (f32[8,1024]{1,0}, f32[8,1024]{1,0}) tuple(x, y)
}
"""
FILLED = STACKED.replace(
    "  both = f32[2,8,1024]{2,1,0} concatenate(first, second), dimensions={0}",
    """  one = s32[] constant(1)
  space = f32[2,8,1024]{2,1,0} custom-call(), custom_call_target="AllocateBuffer"
  half = f32[2,8,1024]{2,1,0} dynamic-update-slice(space, first, zero, zero, zero)
  both = f32[2,8,1024]{2,1,0} dynamic-update-slice(half, second, one, zero, zero)""",
)


def test_rolled_caches_are_no_arguments_that_are_only_read() -> None:
    for text in (ROLLED, PADDED, FETCHED):
        assert _roles(text)["caches"] == "cache"


def test_each_of_a_stacked_list_comes_back_from_its_place() -> None:
    for text in (STACKED, FILLED):
        found = list(updates(hlo.parse(text), with_moved=True))
        assert [(one.parameter.name, one.index) for one in found] == [("a", (0,)), ("b", (1,))]
        assert _roles(text)["caches"] == "caches[0]"


def test_donation_is_not_advised_for_them() -> None:
    """What moves cannot be written over what it is made from: XLA would copy all of it."""
    for text in (ROLLED, PADDED, STACKED):
        assert not [one for one in updates(hlo.parse(text)) if one.is_in_place]


def test_what_a_stack_only_passes_on_is_no_update() -> None:
    """What is taken from a stack as it was put there is given on, changed by nothing."""
    text = STACKED.replace("slice(new), slice={[0:1]", "slice(both), slice={[0:1]")
    assert [one.parameter.name for one in updates(hlo.parse(text), with_moved=True)] == ["b"]


def _roles(text: str) -> dict[str, str]:
    contents, _ = contents_of(memory.assign(hlo.parse(text)))
    return {one.role.value: one.largest for one in contents}
