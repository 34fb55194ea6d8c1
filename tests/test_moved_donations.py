"""Caches whose rows move into a result of their shape: donation saves their old values, where memory shows that."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint, memory
from hlotext.analysis import Backend
from hlotext.analysis.updates import updates

_CACHE = "f32[1024,8,1024]{2,1,0}"
_HEAD = f"""HloModule step, is_scheduled=true

shift {{
  cache = {_CACHE} parameter(0)
  new = f32[1024,1,1024]{{2,1,0}} parameter(1)
  kept = f32[1024,7,1024]{{2,1,0}} slice(cache), slice={{[0:1024], [1:8], [0:1024]}}
  ROOT next = {_CACHE} concatenate(kept, new), dimensions={{1}}
}}

ENTRY main {{
  cache = {_CACHE} parameter(0), metadata={{op_name="cache"}}
  new = f32[1024,1,1024]{{2,1,0}} parameter(1), metadata={{op_name="new"}}
  parents = s32[1024,1]{{1,0}} parameter(2), metadata={{op_name="parents"}}
  zero = s32[] constant(0)
"""
_KEPT = """  kept = f32[1024,7,1024]{2,1,0} slice(cache), slice={[0:1024], [1:8], [0:1024]}
"""
_SHIFT = f"  shifted = {_CACHE} fusion(cache, new), kind=kLoop, calls=shift\n"
_PAD = """  low = f32[] constant(-inf)
  before = f32[1024,8,1024]{2,1,0} pad(kept, low), padding=0_0x0_1x0_0
  behind = f32[1024,8,1024]{2,1,0} pad(new, low), padding=0_0x7_0x0_0
  shifted = f32[1024,8,1024]{2,1,0} maximum(before, behind)
"""
_WRITE = (
    f"  old = {_CACHE} copy(cache)\n  shifted = {_CACHE} dynamic-update-slice(old, new, zero, zero, zero)\n"
)


def _gather(of: str, result: str = "r") -> str:
    """Whole rows in the order of a search's beams."""
    return (
        f"  {result} = f32[1024,1,8,1024]{{3,2,1,0}} gather({of}, parents), offset_dims={{1,2,3}}, "
        "collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8,1024}\n"
        f"  {result}_flat = {_CACHE} bitcast({result})\n"
    )


_TWICE = f"  shifted = {_CACHE} add(cache, cache)\n"
_FEW = """  few = f32[1024,3,1024]{2,1,0} slice(cache), slice={[0:1024], [5:8], [0:1024]}
  rest = f32[1024,5,1024]{2,1,0} broadcast(zero_f), dimensions={}
  shifted = f32[1024,8,1024]{2,1,0} concatenate(few, rest), dimensions={1}
"""
_ROLL = """  kept = f32[1024,7,1024]{2,1,0} slice(cache), slice={[0:1024], [1:8], [0:1024]}
  first = f32[1024,1,1024]{2,1,0} slice(cache), slice={[0:1024], [0:1], [0:1024]}
  shifted = f32[1024,8,1024]{2,1,0} concatenate(kept, first), dimensions={1}
"""
_CARRIED = _HEAD.replace("  zero = s32[]", "  zero_f = f32[] constant(0)\n  zero = s32[]")


def _text(lines: str, result: str = "shifted") -> str:
    return f"{_CARRIED}{lines}  ROOT out = ({_CACHE}) tuple({result})\n}}\n"


STATE = {
    "shifted": _text(_SHIFT),
    "padded": _text(_KEPT + _PAD),
    "shifted and reordered": _text(_SHIFT + _gather("shifted"), "r_flat"),
    "written and reordered": _text(_WRITE + _gather("shifted"), "r_flat"),
}
NO_STATE = {
    "a batch": _text(_gather("cache"), "r_flat"),
    "computed": _text(_TWICE + _gather("shifted"), "r_flat"),
    "few rows": _text(_FEW),
    "rolled": _text(_ROLL),
}


@pytest.mark.parametrize("name", STATE)
def test_caches_whose_rows_move_are_state(name: str) -> None:
    (found,) = updates(hlo.parse(STATE[name]), with_moved=True)
    assert (found.parameter.name, found.is_moved) == ("cache", True)


@pytest.mark.parametrize("name", NO_STATE)
def test_what_may_be_a_batch_or_is_computed_is_none(name: str) -> None:
    """Rows in another order may be a batch of a data set: only a row that is new tells them apart."""
    assert not [one for one in updates(hlo.parse(NO_STATE[name]), with_moved=True) if one.is_moved]
    assert not _findings(NO_STATE[name])


@pytest.mark.parametrize("name", ["shifted and reordered", "written and reordered"])
def test_donating_them_is_advised(name: str) -> None:
    (found,) = _findings(STATE[name])
    assert "most elements moved" in found.message
    assert found.peak_bytes == 32 << 20


def test_what_moves_elements_cannot_write_over_what_it_reads() -> None:
    """Compiled for GPU with the donation, the argument is copied first: 32 MiB more temporary memory, as much as before."""
    assert not _findings(STATE["shifted"])


def test_a_bitcast_of_a_gathered_array_takes_the_memory_of_the_argument() -> None:
    """The result is written as an array of another shape that it is a bitcast of: its bytes are the same."""
    module = hlo.parse(STATE["shifted and reordered"])
    assert memory.what_if.donate(module, [0], "gpu").saved == 32 << 20


def _findings(text: str) -> list[lint.Finding]:
    return [one for one in lint.run(hlo.parse(text), lint.Config(profile=Backend.GPU)) if one.code == "M103"]
