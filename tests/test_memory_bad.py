"""Memory of modules that are wrong, unusual or large: a diagnostic or an answer, never another exception."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hlotext as hlo
from hlotext import memory, thunks
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.verify.well_formed import needs_well_formed
from tests.support import DATA, read_text

HEAD = "HloModule m, is_scheduled=true\n\n"
DUMP = DATA / "memory" / "cpu.mlp_train.cpu_1"


def files() -> dict[str, Path]:
    return {path.name.removesuffix(".xz"): path for path in DUMP.iterdir()}


def test_a_module_without_schedule_says_so() -> None:
    """The order of the text stands in, marked."""
    text = "HloModule m\n\nENTRY e {\n  a = f32[8]{0} parameter(0)\n  ROOT b = f32[8]{0} negate(a)\n}\n"
    found = memory.assign(hlo.parse(text), platform="cpu")
    assert any("no schedule" in note for note in found.notes)
    assert [getattr(i, "name", i) for i in found.schedule] == ["a", "b"]


def test_a_platform_that_is_not_told_is_asked_for() -> None:
    text = "HloModule m\n\nENTRY e {\n  ROOT a = f32[8]{0} parameter(0)\n}\n"
    with pytest.raises(memory.MemoryModelError, match="set platform="):
        memory.assign(hlo.parse(text))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("  a = f32[?]{0} parameter(0)\n  ROOT b = f32[?]{0} negate(a)\n", "size"),
        (
            "  a = f32[9223372036854775807,9223372036854775807]{1,0} parameter(0)\n"
            "  ROOT b = f32[9223372036854775807,9223372036854775807]{1,0} negate(a)\n",
            "size",
        ),
    ],
)
def test_what_has_no_size(body: str, said: str) -> None:
    with pytest.raises(memory.MemoryModelError, match=said):
        memory.assign(hlo.parse(f"{HEAD}ENTRY e {{\n{body}}}\n"), platform="cpu")


def test_shapes_without_layout_have_sizes() -> None:
    """XLA means the default layout then."""
    found = memory.assign(
        hlo.parse(f"{HEAD}ENTRY e {{\n  a = f32[8] parameter(0)\n  ROOT b = f32[8] negate(a)\n}}\n"), "cpu"
    )
    assert [value.bytes for value in found.values] == [32, 32]


@pytest.mark.parametrize("shape", ["f32[8]", "(f32[8], f32[8], u32[])", "((f32[8], f32[8]), f32[8], u32[])"])
@pytest.mark.parametrize("operands", ["", "a", "a, a"])
def test_operations_without_their_operands(shape: str, operands: str) -> None:
    """Each opcode with none or few, by itself and begun asynchronously: an answer or a reason, of memory and of thunks."""
    for opcode in OPCODES:
        plain = f"  ROOT b = {shape} {opcode}({operands})\n}}\n"
        begun = f"  s = (({shape}), {shape}, u32[]) {opcode}-start({operands})\n  ROOT b = {shape} {opcode}-done(s)\n}}\n"
        for lines in (plain, begun):
            module = hlo.parse_tolerant(f"{HEAD}ENTRY e {{\n  a = f32[8] parameter(0)\n{lines}").module
            if module is None:
                continue
            for platform in ("cpu", "gpu", "tpu"):
                with contextlib.suppress(memory.MemoryModelError, thunks.ThunkError):
                    memory.assign(module, platform)
                with contextlib.suppress(thunks.ThunkError):
                    thunks.predict(module, platform=platform)


def test_recursion_is_an_error() -> None:
    """A computation that calls itself, however the text came to be."""
    module = hlo.parse(
        f"{HEAD}f {{\n  p = f32[] parameter(0)\n  ROOT c = f32[] negate(p)\n}}\n\n"
        "ENTRY e {\n  a = f32[] parameter(0)\n  ROOT c2 = f32[] call(a), to_apply=f\n}\n"
    )
    tolerant = hlo.parse_tolerant(
        f"{HEAD}ENTRY f {{\n  p = f32[] parameter(0)\n  ROOT c = f32[] call(p), to_apply=f\n}}\n"
    )
    memory.assign(module, "cpu")
    if tolerant.module is not None:
        with pytest.raises(memory.MemoryModelError):
            memory.assign(tolerant.module, "cpu")


def test_several_callers_of_one_computation() -> None:
    """XLA flattens the call graph before; a text may not have it so."""
    module = hlo.parse(
        f"{HEAD}f {{\n  p = f32[4]{{0}} parameter(0)\n  ROOT n = f32[4]{{0}} negate(p)\n}}\n\n"
        "ENTRY e {\n  a = f32[4]{0} parameter(0)\n  b = f32[4]{0} call(a), to_apply=f\n"
        "  ROOT c = f32[4]{0} call(b), to_apply=f\n}\n"
    )
    found = memory.assign(module, "cpu")
    assert {value.name for value in found.values if value.is_phi} == {"p"}


def loops(depth: int) -> str:
    """Loops in each other, each a million rounds."""
    parts = []
    inner = "  n = s32[] add(x, x)\n"
    for number in range(depth):
        parts.append(
            f"cond{number} {{\n  q = (s32[]) parameter(0)\n  y = s32[] get-tuple-element(q), index=0\n"
            f"  k = s32[] constant(1000000)\n  ROOT l = pred[] compare(y, k), direction=LT\n}}\n\n"
            f"body{number} {{\n  p = (s32[]) parameter(0)\n  x = s32[] get-tuple-element(p), index=0\n{inner}"
            "  ROOT t = (s32[]) tuple(n)\n}\n"
        )
        inner = (
            "  i = (s32[]) tuple(x)\n"
            f"  w = (s32[]) while(i), condition=cond{number}, body=body{number}\n  n = s32[] get-tuple-element(w), index=0\n"
        )
    entry = f"ENTRY e {{\n  x = s32[] parameter(0)\n{inner}  ROOT r = s32[] negate(n)\n}}\n"
    return HEAD + "\n".join(parts) + "\n" + entry


def test_loops_in_each_other_need_no_recursion() -> None:
    """Deeper than Python's stack."""
    found = memory.assign(hlo.parse(loops(1500)), "cpu")
    assert found.peak().bytes > 0
    assert len(memory.texts(memory.assign(hlo.parse(loops(3)), "cpu"))) == 4


# ---- files


def read_of(changes: dict[str, bytes], tmp_path: Path) -> memory.Assignment:
    """What is read of a dump of which some files are others."""
    for name, path in files().items():
        data = changes.get(next((s for s in changes if name.endswith(s)), ""), read_text(path))
        (tmp_path / name).write_bytes(data)
    return memory.load(tmp_path)


SUFFIXES = ("-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_cut_files_are_read_as_far_as_they_go(suffix: str, tmp_path: Path) -> None:
    whole = read_text(next(path for name, path in files().items() if name.endswith(suffix)))
    found = read_of({suffix: whole[: len(whole) // 4 - 5]}, tmp_path)
    assert found.allocations or found.schedule
    assert found.notes


def test_words_of_a_later_release_are_kept(tmp_path: Path) -> None:
    """An unknown flag is kept and written back; an unknown line is noted."""
    suffix = SUFFIXES[0]
    whole = read_text(next(path for name, path in files().items() if name.endswith(suffix))).decode()
    text = whole.replace(", constant:", ", constant, on-the-moon:", 1) + "allocation of another kind\n"
    found = read_of({suffix: text.encode()}, tmp_path)
    assert any(a.other_flags == ("on-the-moon",) for a in found.allocations) or ", constant:" not in whole
    assert any("an unrecognized line" in note for note in found.notes)


def test_files_of_another_module_are_refused(tmp_path: Path) -> None:
    other = next((DATA / "memory" / "gpu.mlp_train.h100_1x1x1").glob("*after_optimizations.txt.xz"))
    text = next(name for name in files() if name.endswith("optimizations.txt"))
    with pytest.raises(memory.MemoryModelError, match="a module other than"):
        read_of({text: read_text(other)}, tmp_path)


def test_a_folder_without_files(tmp_path: Path) -> None:
    with pytest.raises(memory.MemoryModelError, match="has no XLA memory files"):
        memory.load(tmp_path)
    with pytest.raises(hlo.InputError):
        memory.load(tmp_path / "nothing.txt")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_give_an_answer_or_a_library_error(data: st.DataObject) -> None:
    """Bytes changed, cut and repeated anywhere."""
    from hlotext.memory.files import companion_files, reading

    texts = {s: read_text(next(p for n, p in files().items() if n.endswith(s))).decode() for s in SUFFIXES}
    suffix = data.draw(st.sampled_from(SUFFIXES))
    text = texts[suffix]
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 40))
    new = data.draw(st.text(max_size=20))
    texts[suffix] = text[:place] + new + text[place + length :]
    module = hlo.load(next(DUMP.glob("*optimizations.txt.xz")))
    try:
        found = reading.read({companion_files.TEXT: "", **texts}, module)
    except memory.MemoryModelError:
        return
    found.peak()
    memory.texts(found)


# ---- properties


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Straight programs of arrays of a few sizes, scheduled in the order of the text."""
    lines = ["  v0 = f32[64]{0} parameter(0)\n"]
    sizes = {0: 64}
    for number in range(1, draw(st.integers(2, 25))):
        source = draw(st.integers(0, number - 1))
        kind = draw(st.sampled_from(["negate", "add", "slice", "pad", "copy"]))
        size = sizes[source]
        if kind == "slice" and size > 16:
            sizes[number] = size // 2
            body = f"f32[{size // 2}]{{0}} slice(v{source}), slice={{[0:{size // 2}]}}"
        elif kind == "add":
            sizes[number] = size
            body = f"f32[{size}]{{0}} add(v{source}, v{source})"
        else:
            sizes[number] = size
            body = f"f32[{size}]{{0}} {'copy' if kind == 'copy' else 'negate'}(v{source})"
        lines.append(f"  v{number} = {body}\n")
    lines[-1] = lines[-1].replace("  v", "  ROOT v", 1)
    return f"{HEAD}ENTRY e {{\n{''.join(lines)}}}\n"


@settings(max_examples=60, deadline=None)
@given(programs(), st.sampled_from(["cpu", "gpu"]))
def test_values_that_live_at_once_do_not_overlap(text: str, platform: str) -> None:
    """No two values in the same bytes at the same moment, unless one is written over the other at that moment."""
    found = memory.assign(hlo.parse(text), platform)
    for allocation in found.allocations:
        pieces = [p for p in allocation.slices if p.value.live_range is not None and p.bytes]
        for number, first in enumerate(pieces):
            for second in pieces[number + 1 :]:
                if first.offset < second.offset + second.bytes and second.offset < first.offset + first.bytes:
                    (a, b), (c, d) = first.value.live_range, second.value.live_range  # type: ignore[misc]
                    assert b <= c or d <= a
        assert all(p.offset + p.bytes <= allocation.bytes for p in allocation.slices)
    line = dict(found.timeline())
    assert found.peak().bytes == max(line.values()) == line[found.peak().time]


def test_what_breaks_a_model_is_the_modules_fault_only_where_the_verifier_says_so() -> None:
    """Of a sound module the exception goes on: it is the model's own fault."""
    ill = hlo.parse_tolerant(
        f"{HEAD}ENTRY e {{\n  a = f32[8] parameter(0)\n  ROOT b = f32[8] add(a)\n}}\n"
    ).module
    sound = hlo.parse(f"{HEAD}ENTRY e {{\n  a = f32[8] parameter(0)\n  ROOT b = f32[8] add(a, a)\n}}\n")
    assert ill is not None
    refusal = memory.MemoryModelError
    with (
        pytest.raises(refusal, match="ill-formed: b: add takes an operand 1"),
        needs_well_formed(ill, refusal),
    ):
        raise IndexError("of the model")
    with pytest.raises(IndexError), needs_well_formed(sound, refusal):
        raise IndexError("of the model")
    with pytest.raises(refusal, match="own reason"), needs_well_formed(ill, refusal):
        raise refusal("own reason")


def test_an_unknown_opcode_is_noted() -> None:
    """As `cost` notes it: the result is placed, but nobody knows what the operation does."""
    module = hlo.parse_tolerant("ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] dott(a)\n}\n").module
    assert "1 not fully modeled, such as b: opcode dott is unknown" in memory.assign(module, "cpu").notes
