"""Gathers of single elements on TPU: several at the same indices, and those of a binary search."""

from __future__ import annotations

import pytest

from hlotext import lint
from hlotext.ir.nodes.source import Source
from tests import support

GATHER = "offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1}}"
CHANNELS = """
HloModule m, is_scheduled=true

taken {{
  image = f32[224,224]{{1,0:T(8,128)}} parameter(0)
  places = s32[1048576,2]{{1,0:T(8,128)}} parameter(1)
  ROOT g = f32[1048576]{{0:T(1024)}} gather(image, places), {gather}
}}

ENTRY main {{
  red = f32[224,224]{{1,0:T(8,128)}} parameter(0)
  green = f32[224,224]{{1,0:T(8,128)S(1)}} parameter(1)
  places = s32[1048576,2]{{1,0:T(8,128)}} parameter(2)
  others = s32[1048576,2]{{1,0:T(8,128)}} parameter(3)
  a = f32[1048576]{{0:T(1024)}} fusion(red, places), kind=kCustom, calls=taken
  ROOT b = f32[1048576]{{0:T(1024)}} gather(green, {second}), {gather}
}}
"""
_STATE = "(s32[], f32[65536,1]{1,0:T(8,128)}, s32[65536,1]{1,0:T(8,128)}, f32[65536]{0:T(1024)})"
_ONE = (
    "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1}"
)
_SAID = 'metadata={op_name="jit(f)/jit(searchsorted)/while/body/gather"}'
SEARCH = f"""
HloModule m, is_scheduled=true

body {{
  state = {_STATE} parameter(0)
  i = s32[] get-tuple-element(state), index=0
  sorted = f32[65536,1]{{1,0:T(8,128)}} get-tuple-element(state), index=1
  middle = s32[65536,1]{{1,0:T(8,128)}} get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  found = f32[65536]{{0:T(1024)}} gather(sorted, middle), {_ONE}, {_SAID}
  ROOT t = {_STATE} tuple(next, sorted, middle, found)
}}

condition {{
  state = {_STATE} parameter(0)
  i = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(17)
  ROOT less = pred[] compare(i, limit), direction=LT
}}

ENTRY main {{
  zero = s32[] constant(0)
  sorted = f32[65536,1]{{1,0:T(8,128)}} parameter(0)
  middle = s32[65536,1]{{1,0:T(8,128)}} parameter(1)
  empty = f32[65536]{{0:T(1024)}} parameter(2)
  first = {_STATE} tuple(zero, sorted, middle, empty)
  ROOT loop = {_STATE} while(first), condition=condition, body=body
}}
"""


def said(text: str) -> list[str]:
    config = lint.Config(select=("G110",), **support.SAY_ALL)
    found = lint.lint_source(Source(text, "m.txt"), config).findings
    assert {one.severity.value for one in found} <= {"note"}
    return [one.message for one in found]


@pytest.mark.parametrize(("second", "count"), [("places", 1), ("others", 0)])
def test_arrays_gathered_at_the_same_indices_are_said_once(second: str, count: int) -> None:
    """In memory of whatever kind, fused or not."""
    gather = GATHER.format()
    found = said(CHANNELS.format(gather=gather, second=second))
    assert len(found) == count
    assert all("2 arrays are gathered at the same 1,048,576 indices" in one for one in found)


def test_rows_are_no_elements() -> None:
    text = CHANNELS.format(gather=GATHER.format(), second="places")
    rows = text.replace("slice_sizes={1,1}", "slice_sizes={1,224}").replace(
        "offset_dims={}", "offset_dims={1}"
    )
    rows = rows.replace("collapsed_slice_dims={0,1}", "collapsed_slice_dims={0}").replace(
        "f32[1048576]{0:T(1024)}", "f32[1048576,224]{1,0:T(8,128)}"
    )
    assert not said(rows)


def test_a_binary_search_is_said_with_its_rounds() -> None:
    (message,) = said(SEARCH)
    assert "17 iterations that each gather 65,536 single elements" in message
    assert not said(SEARCH.replace("jit(searchsorted)", "jit(look_up)"))
