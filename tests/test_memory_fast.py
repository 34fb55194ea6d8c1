"""The TPU's fast memory, of which the text says what lives when: what is joined and written over counts once."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import memory
from hlotext.analysis import written_bytes
from hlotext.memory import peaks
from hlotext.memory.allocations import Allocation, Slice
from hlotext.memory.values import Value
from hlotext.memory.what_if import donate

KIB = 1024
JOINED = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[1024,128]{1,0:T(8,128)} parameter(0)
  q = f32[512,128]{1,0:T(8,128)} parameter(1)
  sa = ((f32[1024,128]{1,0:T(8,128)}), f32[512,128]{1,0:T(8,128)S(1)}, s32[]) slice-start(p), slice={[0:512], [0:128]}
  f = f32[512,128]{1,0:T(8,128)S(1)} negate(q)
  sb = ((f32[1024,128]{1,0:T(8,128)}), f32[512,128]{1,0:T(8,128)S(1)}, s32[]) slice-start(p), slice={[512:1024],[0:128]}
  g = f32[512,128]{1,0:T(8,128)} negate(f)
  da = f32[512,128]{1,0:T(8,128)S(1)} slice-done(sa)
  db = f32[512,128]{1,0:T(8,128)S(1)} slice-done(sb)
  c = f32[1024,128]{1,0:T(8,128)S(1)} custom-call(da, db), custom_call_target="ConcatBitcast"
  n = f32[1024,128]{1,0:T(8,128)} negate(c)
  ROOT t = (f32[1024,128]{1,0:T(8,128)}, f32[512,128]{1,0:T(8,128)}) tuple(n, g)
}
"""
OVER = """HloModule m, is_scheduled=true

k {
  a = f32[1024,128]{1,0:T(8,128)S(1)} parameter(0)
  b = f32[1024,128]{1,0:T(8,128)} parameter(1)
  s = f32[1024,128]{1,0:T(8,128)S(1)} add(a, b)
  n = f32[1024,128]{1,0:T(8,128)} negate(a)
  ROOT t = (f32[1024,128]{1,0:T(8,128)S(1)}, f32[1024,128]{1,0:T(8,128)}) tuple(s, n)
}

ENTRY e {
  p = f32[1024,128]{1,0:T(8,128)} parameter(0)
  q = f32[1024,128]{1,0:T(8,128)} parameter(1)
  begin = (f32[1024,128]{1,0:T(8,128)S(1)}, f32[1024,128]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(p)
  d = f32[1024,128]{1,0:T(8,128)S(1)} copy-done(begin)
  f = (f32[1024,128]{1,0:T(8,128)S(1)}, f32[1024,128]{1,0:T(8,128)}) fusion(d,q), kind=kLoop, calls=k, backend_config={CONFIG}
  x = f32[1024,128]{1,0:T(8,128)S(1)} get-tuple-element(f), index=0
  y = f32[1024,128]{1,0:T(8,128)} get-tuple-element(f), index=1
  z = f32[1024,128]{1,0:T(8,128)} negate(x)
  ROOT t = (f32[1024,128]{1,0:T(8,128)}, f32[1024,128]{1,0:T(8,128)}) tuple(y, z)
}
"""


def fast(text: str) -> tuple[int, int, dict[str, tuple[int, int]]]:
    """Bytes of the heap of the fast memory, most that live in it, and what lies where."""
    found = memory.assign(hlo.parse(text))
    [heap] = [one for one in found.allocations if one.memory_space == 1]
    places = {
        f"{piece.value.instruction.name}{len(piece.value.index)}@{piece.value.live_range}": piece[1:]
        for piece in heap.slices
        if piece.value.instruction is not None
    }
    return heap.bytes, found.peak(1).bytes, places


def test_slices_that_are_joined_are_not_counted_beside_the_array() -> None:
    """Each slice lies from its own start where the array of them is afterwards; what needs the room until then has it."""
    heap, peak, places = fast(JOINED)
    assert (heap, peak) == (768 * KIB, 768 * KIB)
    assert sorted(places.values()) == [
        (0, 256 * KIB),
        (0, 512 * KIB),
        (256 * KIB, 256 * KIB),
        (512 * KIB, 256 * KIB),
    ]


def test_a_slice_that_comes_late_leaves_its_room_until_then() -> None:
    """What ends before the last slice begins may lie where that comes to lie."""
    lines = JOINED.splitlines(keepends=True)
    late = next(line for line in lines if line.startswith("  sb"))
    early = next(line for line in lines if line.startswith("  g"))
    text = JOINED.replace(late, "").replace(early, early + late)
    heap, peak, _ = fast(text)
    assert (heap, peak) == (512 * KIB, 512 * KIB)


def test_results_that_the_compiler_writes_over_operands() -> None:
    """As `aliasing_operands` says it: operands first, then the leaves of the result."""
    said = '"aliasing_operands":{"lists":[{"indices":["1","3"]},{"indices":["0","2"]}]}'
    heap, peak, places = fast(OVER.replace("CONFIG", said))
    assert (heap, peak) == (512 * KIB, 512 * KIB)
    assert set(places.values()) == {(0, 512 * KIB)}
    heap, _, _ = fast(OVER.replace("CONFIG", '"aliasing_operands":{"lists":[]}'))
    assert heap == 1024 * KIB


@pytest.mark.parametrize("text", [JOINED, OVER])
def test_without_places_in_fast_memory_all_else_is_the_same(text: str) -> None:
    """All in HBM has the same place, and the fast memory has none; so it is after a repair."""
    module = hlo.parse(text)
    main, whole = memory.assign(module, places_fast_memory=False), memory.assign(module)
    assert (
        memory.assign(module, places_fast_memory=False) is whole
    )  # what is known already is not computed again
    places = [
        sorted(
            (one.memory_space, one.bytes, [(piece.value.name, *piece[1:]) for piece in one.slices])
            for one in found.allocations
            if one.memory_space == 0
        )
        for found in (whole, main)
    ]
    assert places[0] == places[1]
    assert whole.timeline(0) == main.timeline(0)
    assert 1 in whole.memory_spaces()
    assert 1 not in main.memory_spaces()
    assert whole.fast_memory is not None
    assert main.fast_memory is None
    assert not donate(module, [1], before=main).assignment.places_fast_memory


@pytest.mark.parametrize("is_estimated", [False, True])
def test_parts_that_become_one_value_in_their_place_count_once(is_estimated: bool) -> None:
    """As with a `ConcatBitcast` over its slices, read from XLA's files or computed."""
    values = [Value(None, name, (), None) for name in ("a", "b", "whole")]
    values[0].live_range, values[1].live_range, values[2].live_range = (0, 2), (1, 2), (2, 3)
    slices = (Slice(values[0], 0, 64), Slice(values[1], 64, 64), Slice(values[2], 0, 128))
    allocation = Allocation(0, 128, 1, is_estimated=is_estimated, slices=slices)
    assert peaks.live_in(allocation, 4) == [64, 128, 128, 128]


SYNC = """HloModule m, is_scheduled=true, entry_computation_layout={(s32[]{:T(128)})->s32[]{:T(128)}}

ENTRY e {
  a = s32[]{:T(128)} parameter(0)
  b = s32[]{:T(128)S(6)} copy(a)
  %sROOT r = s32[]{:T(128)} copy(%s)
}
"""


@pytest.mark.parametrize(
    ("line", "last", "is_estimated"), [("c = s32[]{:T(128)S(6)} negate(b)\n  ", "c", True), ("", "b", False)]
)
def test_sizes_of_spaces_in_which_memory_is_used_again(line: str, last: str, is_estimated: bool) -> None:
    """Simultaneously live values need their sum; of successive ones XLA may place one elsewhere."""
    found = memory.assign(hlo.parse(SYNC % (line, last)), platform="tpu", chip="v5e")
    (flags,) = [a for a in found.allocations if a.memory_space == 6]
    assert flags.is_size_estimated is is_estimated
    assert all(not a.is_size_estimated for a in found.allocations if a.memory_space == 0)


def test_joined_slices_are_written_once() -> None:
    """By the slices: joining them writes nothing, and the cost model knows it."""
    entry = hlo.parse(JOINED).entry
    (joined,) = (one for one in entry.instructions if one.opcode == "custom-call")
    assert written_bytes(joined) == 0
    (start, *_) = (one for one in entry.instructions if one.name == "sa")
    assert written_bytes(start) == 256 * KIB


def test_slices_live_as_long_as_the_whole() -> None:
    """JAX's peak counts the slices of a prefetch until the joined array is last used."""
    line = "  n = f32[1024,128]{1,0:T(8,128)} negate(c)\n"
    again = (
        "".join(
            f"{one}\n".replace("sa", "ta")
            .replace("sb", "tb")
            .replace("da", "ea")
            .replace("db", "eb")
            .replace("c = ", "d = ")
            for one in JOINED.splitlines()
            if one.strip().split(" ")[0] in ("sa", "sb", "da", "db", "c")
        )
        + "  m = f32[1024,128]{1,0:T(8,128)} negate(d)\n"
    )
    root = "  ROOT t = (f32[1024,128]{1,0:T(8,128)}, f32[1024,128]{1,0:T(8,128)}) tuple(n, m)\n}\n"
    before = (
        JOINED.partition(line)[0]
        .replace("  g = f32[512,128]{1,0:T(8,128)} negate(f)\n", "")
        .replace("  f = f32[512,128]{1,0:T(8,128)S(1)} negate(q)\n", "")
    )
    early, late = (
        memory.assign(hlo.parse(before + body + root), platform="tpu", chip="v5e")
        for body in (line + again, again + line)
    )
    assert early.xla_peak is not None
    assert late.xla_peak is not None
    assert late.xla_peak - early.xla_peak == 512 * KIB
