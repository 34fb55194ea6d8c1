"""What computing values again would save, against programs that were compiled both ways.

Each text is what jaxlib 0.10.2 makes for CPU of a program that keeps a value across its peak. `compiled.json` says which
instructions the other program computes a second time behind the peak (with `jax.checkpoint`, or by hand), and JAX's
`temp_size_in_bytes` of both. Of two more programs the estimate was off, since the compiler chose other fusions: a
checkpointed softmax (16.3 MB saved, 0.5 estimated) and one layer of four (4.2 MB more, 4.2 MB less estimated).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import memory
from hlotext.memory import what_if
from tests.cli_support import run, run_json

DATA = Path(__file__).parent / "data" / "memory_remat"
COMPILED: dict[str, dict[str, Any]] = json.loads((DATA / "compiled.json").read_text())


@pytest.mark.parametrize("program", COMPILED)
def test_computing_again_saves_what_the_compiler_saves(program: str) -> None:
    row = COMPILED[program]
    found = what_if.rematerialize(hlo.load(DATA / f"{program}.txt.xz"), row["again"])
    saved = row["temp_bytes_kept"] - row["temp_bytes_again"]
    assert found.needed_before - found.needed_after == pytest.approx(saved, abs=0.01 * row["temp_bytes_kept"])
    assert "estimate" in found.notes[-1]


def test_what_makes_the_operands_is_told() -> None:
    """A value whose operands would have to be kept instead is made from what lives across the peak anyway."""
    module = hlo.load(DATA / "dot_of_softmax.txt.xz")
    found = what_if.rematerialize(module, COMPILED["dot_of_softmax"]["again"])
    assert found.notes[0].startswith("the operands of ynn_fusion.2 are recomputed too: ynn_fusion.4,")
    assert module.find("ynn_fusion.2") is not None
    after = found.assignment.module
    assert after is not None
    assert len(after.entry) > len(module.entry)


def test_what_cannot_be_computed_again_is_said() -> None:
    module = hlo.load(DATA / "dot.txt.xz")
    before = memory.assign(module)
    for name, why in (
        ("v.1", "is a parameter"),
        ("nobody", "no instruction"),
        ("copy_bitcast_fusion", "has no use"),
    ):
        with pytest.raises(memory.MemoryModelError, match=why):
            what_if.rematerialize(module, name, before=before)


_FINISHED = """HloModule m, is_scheduled=true

last {
  x = f32[1048576]{0} parameter(0)
  ROOT y = f32[1048576]{0} ROOT_OP(x)ATTRIBUTES
}

condition {
  state = (s32[], f32[1048576]{0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(9)
  ROOT less = pred[] compare(n, bound), direction=LT
}

body {
  state = (s32[], f32[1048576]{0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  x = f32[1048576]{0} get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(n, one)
  y = f32[1048576]{0} negate(x)
  ROOT t = (s32[], f32[1048576]{0}) tuple(next, y)
}

ENTRY main {
  zero = s32[] constant(0)
  p = f32[1048576]{0} parameter(0)
  n = s32[] copy(zero)
  c = f32[1048576]{0} copy(p)
  start = (s32[], f32[1048576]{0}) tuple(n, c)
  loop = (s32[], f32[1048576]{0}) while(start), condition=condition, body=body
  x = f32[1048576]{0} get-tuple-element(loop), index=1
  ROOT result = f32[1048576]{0} fusion(x), kind=kLoop, calls=last
}
"""


@pytest.mark.parametrize(
    ("opcode", "attributes", "arrays"), [("abs", "", 1), ("reverse", ", dimensions={0}", 2)]
)
def test_a_result_may_be_written_over_the_loop_that_is_over(
    opcode: str, attributes: str, arrays: int
) -> None:
    """The loop then runs in the donated parameter; not where the elements are read in another order than written."""
    text = _FINISHED.replace("ROOT_OP", opcode).replace("ATTRIBUTES", attributes)
    module = hlo.parse(text)
    assert what_if.donate(module, [0], "gpu").peak_after >> 22 == arrays
    assert str(module) == str(hlo.parse(text))


_TWO_ARGUMENTS = """HloModule m, is_scheduled=true

ENTRY main {
  p = f32[1048576]{0} parameter(0)
  q = f32[1048576]{0} parameter(1)
  r = f32[1048576]{0} negate(q)
  m = f32[1048576]{0} sine(r)
  u = f32[1048576]{0} add(p, OTHER)
  s = f32[4]{0} slice(u), slice={[0:4]}
  ROOT t = (f32[1048576]{0}, f32[4]{0}) tuple(r, s)
}
"""


@pytest.mark.parametrize(("other", "saved"), [("q", 1 << 22), ("r", 0), ("m", 0)])
def test_a_result_that_a_reader_of_the_argument_needs_is_not_written_over_it(other: str, saved: int) -> None:
    """Also where the reader needs the result through another operation; else it is read before."""
    found = what_if.donate(hlo.parse(_TWO_ARGUMENTS.replace("OTHER", other)), [0], "gpu")
    assert found.peak_before - found.peak_after == pytest.approx(saved, abs=64)
    assert any(": still needed when the result" in note for note in found.notes) is not bool(saved)


def test_arguments_are_said_by_their_names_too() -> None:
    """A number is that of the entry's parameter, which need not be that of the function's argument."""
    text = _TWO_ARGUMENTS.replace("OTHER", "r")
    first = next(line for line in text.splitlines() if "parameter(0)" in line)
    named = text.replace(first, f"""{first}, metadata={{op_name="state['w']"}}""")
    assert what_if.donate(hlo.parse(named), [0], "gpu").what.startswith("donate 0 (state['w'])")


def test_an_argument_that_no_result_takes_is_not_said_to_be_donated() -> None:
    module = hlo.parse("""HloModule m, is_scheduled=true, entry_computation_layout={(f32[1024]{0}, f32[8]{0})->f32[1024]{0}}

ENTRY e {
  x = f32[1024]{0} parameter(0)
  y = f32[8]{0} parameter(1)
  z = f32[] constant(0)
  s = f32[8]{0} sine(y)
  p = f32[1024]{0} pad(s, z), padding=0_1016
  ROOT r = f32[1024]{0} add(x, p)
}""")
    found = what_if.donate(module, [0, 1], "cpu")
    assert found.what == "donate 0 (not 1: see the notes)"
    assert "parameter 1: no result has shape" in " ".join(found.notes)


def test_why_no_result_takes_an_argument_is_told_once_and_true() -> None:
    """Where results of its shape are taken, are bitcasts of others, or are the argument; numbers in a row are a range."""
    module = hlo.parse("""HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

ENTRY e {
  a = f32[8]{0} parameter(0)
  b = f32[8]{0} parameter(1)
  c = f32[4]{0} parameter(2)
  d = f32[4]{0} parameter(3)
  f = f32[4]{0} parameter(4)
  g = f32[2]{0} parameter(5)
  s = f32[8]{0} add(a, b)
  t = s32[4]{0} convert(c)
  u = f32[4]{0} bitcast(t)
  ROOT r = (f32[8]{0}, f32[4]{0}, f32[2]{0}) tuple(s, u, g)
}""")
    found = what_if.donate(module, [1, 2, 3, 4, 5], "gpu")
    assert found.what == "donate 2 (not 1, 3-5: see the notes)"
    assert found.notes[:3] == (
        "parameter 1: every result of shape f32[8]{0} already uses the buffer of another parameter",
        "parameters 3, 4: every result of shape f32[4]{0} already uses the buffer of another parameter",
        "parameter 5: returned unchanged",
    )


def test_a_result_whose_argument_is_copied_is_no_other_arguments() -> None:
    """JAX pairs arguments and results of one shape in order: CPUs copy `w`, which `late` reads, and `m` still has its own."""
    module = hlo.parse("""HloModule m, is_scheduled=true

ENTRY e {
  w = f32[1048576]{0} parameter(0)
  m = f32[1048576]{0} parameter(1)
  g = f32[1048576]{0} parameter(2)
  m1 = f32[1048576]{0} add(m, g)
  w1 = f32[1048576]{0} subtract(w, m1)
  late = f32[1048576]{0} multiply(w, g)
  ROOT r = (f32[1048576]{0}, f32[1048576]{0}, f32[1048576]{0}) tuple(w1, m1, late)
}""")
    found = what_if.donate(module, [0, 1], "cpu")
    assert found.what == "donate 1 (not 0: see the notes)"
    assert found.peak_before - found.peak_after == pytest.approx(1 << 22, abs=64)


def test_several_changes_are_estimated_alone_and_together(tmp_path: Path) -> None:
    """Both arguments have to make room before the peak falls by what both save."""
    text = tmp_path / "m.hlo"
    text.write_text("""HloModule m, is_scheduled=true

ENTRY e {
  p = f32[1024]{0} parameter(0)
  q = f32[1024]{0} parameter(1)
  n = f32[1024]{0} negate(p)
  m = f32[1024]{0} negate(q)
  ROOT t = (f32[1024]{0}, f32[1024]{0}) tuple(n, m)
}
""")
    changes = ("--what-if", "donate=0", "--what-if", "donate=1")
    found = run_json("memory", text, "--platform", "gpu", *changes)["modules"][0]["what_if"]
    assert [(one["what"], one["saved"]) for one in found] == [
        ("donate 0", 4096),
        ("donate 1", 4096),
        ("together: donate 0, 1", 8192),
    ]
    both = what_if.together(
        hlo.load(DATA / "dot.txt.xz"),
        [],
        [COMPILED["dot"]["again"][0], "nobody"],
        memory.assign(hlo.load(DATA / "dot.txt.xz")),
    )
    assert both.saved > 0
    assert any(note.startswith("without nobody: no instruction is named nobody") for note in both.notes)


def test_what_donated_results_are_copied_from_may_move_to_fast_memory() -> None:
    """A result has to be in main memory; the temporary that it becomes does not, if the fast memory has room."""
    text = """HloModule m, is_scheduled=true

ENTRY e {{
  p = f32[{0},1024]{{1,0:T(8,128)}} parameter(0)
  n = f32[{0},1024]{{1,0:T(8,128)}} sine(p)
  s = f32[{0},1024]{{1,0:T(8,128)}} reverse(n), dimensions={{0}}
  a = f32[{0},1024]{{1,0:T(8,128)}} add(p, s)
  c = bf16[{0},1024]{{1,0:T(8,128)(2,1)}} convert(a)
  ROOT t = (f32[{0},1024]{{1,0:T(8,128)}}, bf16[{0},1024]{{1,0:T(8,128)(2,1)}}) tuple(s, c)
}}
"""
    for rows, more in ((4096, 16 << 20), (65536, 0)):
        found = what_if.donate(hlo.parse(text.format(rows)), [0], "tpu", "v5e")
        assert (found.saved, found.more_at_most) == (0, more)
        assert any("16.0 MiB less if the compiler keeps" in note for note in found.notes) is bool(more)


def test_what_may_move_is_part_of_the_peak_after_several_donations_too(tmp_path: Path) -> None:
    """Together they have a range, in the first line and in the notes, and say once that it is an estimate.

    The second argument alone is paired with the first result, as JAX does, which takes its place.
    """
    big = "f32[4096,1024]{1,0:T(8,128)}"
    part = """  pN = BIG parameter(N)
  nN = BIG sine(pN)
  rN = BIG reverse(nN), dimensions={0}
  aN = BIG add(pN, rN)
  cN = bf16[4096,1024]{1,0:T(8,128)(2,1)} convert(aN)
"""
    parts = "".join(part.replace("BIG", big).replace("N", str(number)) for number in (0, 1))
    low = "bf16[4096,1024]{1,0:T(8,128)(2,1)}"
    root = f"  ROOT t = ({big}, {low}, {big}, {low}) tuple(r0, c0, r1, c1)\n"
    text = tmp_path / "m.hlo"
    text.write_text("HloModule m, is_scheduled=true\n\nENTRY e {\n" + parts + root + "}\n")
    changes = ("--what-if", "donate=0", "--what-if", "donate=1", "--chip", "v5e")
    found = run_json("memory", text, *changes)["modules"][0]["what_if"]
    assert [(one["saved"], one["more_at_most"] >> 20) for one in found] == [(0, 16), (16 << 20, 0), (0, 32)]
    shown = run("memory", text, *changes).stdout
    assert "peak     96.0 MiB -> 64.0 MiB to 96.0 MiB (0 B to 32.0 MiB less)" in shown
    assert shown.count("an estimate:") == 3
    assert "unchanged" not in shown.replace("assumed unchanged", "")


def test_no_more_moves_than_fast_memory_has_room_for() -> None:
    """Two arrays of 80 MiB: each alone fits into the 128 MiB of a v5e."""
    big = "f32[20480,1024]{1,0:T(8,128)}"
    low = "bf16[20480,1024]{1,0:T(8,128)(2,1)}"
    part = """  pN = BIG parameter(N)
  nN = BIG sine(pN)
  rN = BIG reverse(nN), dimensions={0}
  aN = BIG add(pN, rN)
  cN = LOW convert(aN)
"""
    parts = "".join(part.replace("BIG", big).replace("LOW", low).replace("N", str(n)) for n in (0, 1))
    root = f"  ROOT t = ({big}, {low}, {big}, {low}) tuple(r0, c0, r1, c1)\n"
    module = hlo.parse("HloModule m, is_scheduled=true\n\nENTRY e {\n" + parts + root + "}\n")
    found = [what_if.donate(module, numbers, "tpu", "v5e").more_at_most >> 20 for numbers in ([0], [0, 1])]
    assert found == [80, 128]


_EXCHANGED = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[1048576]{0} parameter(0)
  b = f32[1048576]{0} parameter(1)
  x = f32[1048576]{0} add(OF_X, OF_X)
  y = f32[1048576]{0} negate(OF_Y)
  ROOT r = (f32[1048576]{0}, f32[1048576]{0}) tuple(x, y)
}
"""


@pytest.mark.parametrize(("of_x", "of_y", "saved"), [("b", "a", 4), ("a", "b", 8)])
def test_two_arguments_that_are_exchanged_cannot_both_be_written_over(
    of_x: str, of_y: str, saved: int
) -> None:
    """Each could wait for the other's reader alone. A GPU program compiled with donation has one array more."""
    module = hlo.parse(_EXCHANGED.replace("OF_X", of_x).replace("OF_Y", of_y))
    assert what_if.donate(module, [0, 1], "gpu").saved >> 20 == saved


_SHIFTED = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[1048576]{0} parameter(0)
  b = f32[1048576]{0} parameter(1)
  x = f32[1048576]{0} reverse(a), dimensions={0}
  few = f32[4]{0} slice(x), slice={[0:4]}
  y = f32[1048576]{0} reverse(b), dimensions={0}
  ROOT r = (f32[1048576]{0}, f32[4]{0}, f32[1048576]{0}) tuple(x, few, y)
}
"""


@pytest.mark.parametrize(("platform", "saved", "more"), [("cpu", 4, 0), ("gpu", 0, 4)])
def test_what_cannot_be_written_over_its_argument_is_written_elsewhere_first(
    platform: str, saved: int, more: int
) -> None:
    """CPUs copy it once it was read; GPU schedules copy all at the end, unless they choose otherwise."""
    found = what_if.donate(hlo.parse(_SHIFTED), [0, 1], platform)
    assert (found.saved >> 20, found.more_at_most >> 20) == (saved, more)
    assert any("are written elsewhere first" in note for note in found.notes)


def test_an_argument_takes_a_result_of_as_many_elements(tmp_path: Path) -> None:
    """As JAX donates it and XLA pairs them, after all results of the very shape."""
    module = hlo.parse("""HloModule m, is_scheduled=true

ENTRY e {
  a = f32[1024,1024]{1,0} parameter(0)
  b = f32[1048576]{0} parameter(1)
  c = f32[1048576]{0} negate(b)
  s = f32[] constant(0)
  d = f32[1048576]{0} broadcast(s), dimensions={}
  ROOT r = (f32[1048576]{0}, f32[1048576]{0}) tuple(d, c)
}""")
    found = what_if.donate(module, [0, 1], "gpu")
    assert (found.what, found.saved >> 20) == ("donate 0, 1", 8)


def test_what_a_cpu_may_copy_is_a_range() -> None:
    module = hlo.parse("""HloModule m, is_scheduled=true

ENTRY e {
  w = f32[1048576]{0} parameter(0)
  g = f32[1048576]{0} parameter(1)
  few = f32[4]{0} slice(w), slice={[0:4]}
  w1 = f32[1048576]{0} subtract(w, g)
  ROOT r = (f32[1048576]{0}, f32[4]{0}) tuple(w1, few)
}""")
    found = what_if.donate(module, [0], "cpu")
    assert (found.saved >> 20, found.more_at_most >> 20) == (0, 4)
    assert [what_if.donate(module, [0], "cpu", is_hopeful=hope).saved >> 20 for hope in (False, True)] == [
        0,
        4,
    ]


def test_a_copy_before_a_loop_stays_where_its_state_is_read_after_the_result() -> None:
    """The loop cannot run in the donated parameter then: the result that takes that would be written over the state."""
    text = _FINISHED.replace("ROOT_OP", "abs").replace("ATTRIBUTES", "")
    read_later = text.replace(
        "  ROOT result = f32[1048576]{0} fusion(x), kind=kLoop, calls=last\n",
        """  result = f32[1048576]{0} fusion(x), kind=kLoop, calls=last
  late = f32[1048576]{0} sine(x)
  few = f32[4]{0} slice(late), slice={[0:4]}
  ROOT t = (f32[1048576]{0}, f32[4]{0}) tuple(result, few)
""",
    )
    for module, is_kept in ((text, False), (read_later, True)):
        after = what_if.donate(hlo.parse(module), [0], "gpu").assignment.module
        assert after is not None
        assert (after.find("c") is not None) is is_kept


_CHAIN = """HloModule m, is_scheduled=true, replica_count=2

sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}

ENTRY e {
  p = f32[1048576]{0} parameter(0)
  s = f32[] parameter(1)
  made.0 = f32[1048576]{0} FIRST
CHAIN
  kept = f32[1048576]{0} negate(p)
  target = f32[1048576]{0} add(LAST, kept)
  big = f32[8388608]{0} broadcast(s), dimensions={}
  few = f32[4]{0} slice(big), slice={[0:4]}
  u = f32[1048576]{0} multiply(target, kept)
  more = f32[4]{0} slice(u), slice={[0:4]}
  ROOT r = (f32[4]{0}, f32[4]{0}) tuple(few, more)
}
"""


@pytest.mark.parametrize(
    ("first", "links", "names"),
    [
        ("cosine(p)", 0, "made.0"),
        ("cosine(p)", 3, "made.0, made.1, made.2, made.3"),
        ("cosine(p)", 4, "made.1, made.2, made.3, made.4 and 1 more"),
        ("cosine(p)", 5, "made.2, made.3, made.4, made.5 and 2 more"),
        ("all-reduce(p), replica_groups={{0,1}}, to_apply=sum", 1, ""),
    ],
)
def test_the_operands_that_are_recomputed_are_those_that_would_else_be_kept(
    first: str, links: int, names: str
) -> None:
    """Not `kept`, which is live across the peak anyway; none where a collective's result is kept in their place."""
    chain = [f"  made.{n + 1} = f32[1048576]{{0}} sine(made.{n})" for n in range(links)]
    text = _CHAIN.replace("FIRST", first).replace("CHAIN", "\n".join(chain))
    found = what_if.rematerialize(hlo.parse(text.replace("LAST", f"made.{links}")), "target", "gpu")
    assert found.notes[:-1] == ((f"the operands of target are recomputed too: {names}",) if names else ())
