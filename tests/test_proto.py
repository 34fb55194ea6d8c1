"""Protos in and out without XLA: what is written reads back, and what is broken is said with its place."""

from __future__ import annotations

import pickle
import random
import tracemalloc
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import lint, memory
from hlotext.ir.nodes.compare import difference
from tests import support
from tests.cli_support import run

pytest.importorskip("google.protobuf")

SMALL = [path for path in support.corpus_files() if path.stat().st_size < 12_000]
EXAMPLE = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %zero = f32[] constant(-0)
  %r = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%add, metadata={op_name="jit(f)/sum"}
  ROOT %b = f32[4]{0} broadcast(%r), dimensions={}
}
"""


def round_trip(module: hlo.Module) -> hlo.Module:
    return hlo.proto.read_module(module.to_proto())


def without_elided(path: Path) -> hlo.Module:
    module = hlo.parse(support.read_text(path))
    return hlo.proto.read_module(module.to_proto(fill_elided=True))


@pytest.mark.parametrize("path", SMALL, ids=support.corpus_id)
def test_what_is_written_reads_back(path: Path) -> None:
    """Module to proto to module: every value is the same, whatever it was first read from."""
    try:
        module = without_elided(path)
    except hlo.ProtoError:
        if path.parent.name == "handmade":  # what XLA's schema of July 2026 has no field for
            return
        raise
    again = round_trip(module)
    assert difference(again, module) is None
    assert again.to_proto() == module.to_proto()


NAMED = {"new_opcodes": "is_stable of topk, which is read as what its absence says"}
"""Cases whose bytes change when they are written again, and which."""


@pytest.mark.parametrize("path", sorted((support.DATA / "ok").glob("*.hlo")), ids=lambda path: path.stem)
def test_what_is_read_and_written_again_has_the_same_bytes(path: Path) -> None:
    """Also of texts that are in another order than XLA's, say defaults, or leave names and headers out."""
    for module in hlo.parse_all(path.read_bytes()):
        try:
            proto = module.to_proto(fill_elided=True)
        except hlo.ProtoError:
            continue
        again = hlo.proto.read_module(proto).to_proto()
        assert again == proto or path.stem in NAMED
        assert hlo.proto.read_module(again).to_proto() == again


CONFIGURED = """HloModule m, replica_count=2, num_partitions=8, alias_passthrough_params=true, \
allow_spmd_sharding_propagation_to_output={true,false}

ENTRY e {
  ROOT a = f32[4] parameter(0)
}
"""


def test_what_only_the_config_holds() -> None:
    """Replicas and partitions are no fields of a module's proto."""
    module = hlo.parse(CONFIGURED.replace("\\\n", ""))
    proto = module.to_proto()
    names = (
        "replica_count",
        "num_partitions",
        "alias_passthrough_params",
        "allow_spmd_sharding_propagation_to_output",
    )
    assert sorted(hlo.proto.outside_of_proto(module)) == sorted(names)
    whole = hlo.proto.with_config(proto, module)
    assert hlo.proto.kind_of(whole) == "HloModuleProtoWithConfig"
    again = hlo.proto.read_modules(whole)[0]
    assert {name: again.attributes[name] for name in names} == {
        name: module.attributes[name] for name in names
    }
    assert hlo.proto.with_config(again.to_proto(), again) == whole


@pytest.mark.parametrize(
    "line",
    [
        "f32[4,4] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[4,4] convolution(p, p), dim_labels=bf_io->bf",
        'f32[4,4] custom-call(p, p), custom_call_target="x"',
        'f32[4,4] custom-call(p, p, p), custom_call_target="x"',
        "f32[4,4] ragged-dot(p, p, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={0}",
        "f32[4,4] scaled-dot(p, p, p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ],
)
@pytest.mark.parametrize("words", ["highest,highest", "default,high"])
def test_precisions_survive(line: str, words: str) -> None:
    module = hlo.parse(
        "ENTRY e {\n  p = f32[4,4] parameter(0)\n  g = s32[1] parameter(1)\n"
        f"  ROOT r = {line}, operand_precision={{{words}}}\n}}\n"
    )
    assert ",".join(map(str, round_trip(module).entry.root.attributes["operand_precision"])) == words


@pytest.mark.parametrize("path", SMALL, ids=support.corpus_id)
def test_both_readers_give_the_same(path: Path) -> None:
    """Instructions cut by one expression each, and read field by field."""
    try:
        proto = hlo.parse(support.read_text(path)).to_proto(fill_elided=True)
    except hlo.ProtoError:
        return
    assert_same(proto)


def assert_same(proto: bytes) -> bool:
    """Whether a proto can be read; both readers give the same module, in the same order, or raise the same error."""
    found: list[hlo.Module | str] = []
    for careful in (False, True):
        try:
            found.append(hlo.proto.read_module(proto, careful=careful))
        except hlo.ProtoError as error:
            found.append(str(error))
    fast, slow = found
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
        return False
    assert difference(fast, slow) is None
    assert [i.name for i in fast.instructions()] == [i.name for i in slow.instructions()]
    return True


def test_an_id_that_only_looks_like_one() -> None:
    """The tag of the id inside of another field."""
    proto = hlo.parse(EXAMPLE.replace('sum"}', 'sum" stack_frame_id=280}')).to_proto()
    assert b"x\x98\x02" in proto
    assert assert_same(proto)
    reduction = hlo.proto.read_module(proto).entry["r"]
    assert reduction.metadata is not None
    assert reduction.metadata.stack_frame_id == 280


def test_constants_keep_their_bits() -> None:
    """Negative zero too, which XLA's reader of texts loses."""
    module = round_trip(hlo.parse(EXAMPLE))
    assert str(module.entry["zero"].literal) == "-0"
    assert module.is_scheduled
    assert [c.name for c in module.computations] == ["add", "main"]
    assert difference(module, hlo.parse(EXAMPLE)) is None


def test_elided_constants_are_refused_by_name_or_filled() -> None:
    text = "ENTRY %e () -> f32[20] {\n  ROOT %big = f32[20]{0} constant({...})\n}\n"
    with pytest.raises(hlo.HloSyntaxError, match=r"1 constants \(big\)"):
        hlo.parse(text).to_proto()
    filled = hlo.proto.read_module(hlo.parse(text).to_proto(fill_elided=True))
    assert filled.entry.root.literal is not None
    assert not filled.entry.root.literal.array.any()


def test_load_tells_by_content(tmp_path: Path) -> None:
    """A module's proto, and one inside of an `HloProto` or beside a config."""
    proto = hlo.parse(EXAMPLE).to_proto()
    config = (
        b"\x12\x06\x20\x02\x28\x04\xd8\x01"  # replica_count=2 num_partitions=4, and a flag that is cut below
    )
    for name, data in (
        ("module.pb", proto),
        ("hlo.pb", hlo.proto.wrapped(proto)),
        ("config.pb", hlo.proto.wrapped(proto) + config[:6].replace(b"\x06", b"\x04")),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        module = hlo.load(path)
        assert [i.name for i in module.entry] == ["p", "zero", "r", "b"], name
        assert len(hlo.load_all(path)) == 1
    assert module.attributes["replica_count"] == 2
    assert module.attributes["num_partitions"] == 4


def test_json_and_back() -> None:
    """Protobuf's own JSON holds everything."""
    proto = hlo.parse(EXAMPLE).to_proto()
    text = hlo.proto.to_json(proto)
    assert '"opcode": "reduce"' in text
    assert difference(hlo.proto.read_module(hlo.proto.from_json(text)), hlo.parse(EXAMPLE)) is None


def test_what_modules_have_no_place_for_goes_along() -> None:
    """Fields of the module that no text says, known or not."""
    beside = b"\x58\x01" + b"\xaa\x01\x03tpu" + b"\xca\x3e\x02\x08\x07"  # is_dynamic, device_type, field 1001
    module = hlo.proto.read_module(hlo.parse(EXAMPLE).to_proto() + beside)
    assert module.to_proto().endswith(beside)


def test_ids_of_what_calls_keep_their_order() -> None:
    """XLA numbers instructions before it schedules them, and orders computations by the numbers of what calls them."""
    body = "{ q = f32[] parameter(0) ROOT n = f32[] negate(q) }"
    module = hlo.parse(
        f"HloModule m, is_scheduled=true\nf {body}\ng {body}\nENTRY e {{ p = f32[] parameter(0) "
        "a = f32[] fusion(p), kind=kLoop, calls=f b = f32[] fusion(p), kind=kLoop, calls=g ROOT s = f32[] add(a, b) }"
    )
    module._stored_bodies = (("e", ("p", "b", "a", "s")),)
    data = module.to_proto()
    again = hlo.proto.read_module(data)
    assert [c.name for c in again.computations] == ["g", "f", "e"]
    assert [i.name for i in again.entry] == ["p", "a", "b", "s"]
    for copy in (again, again.clone(), pickle.loads(pickle.dumps(again))):
        assert hlo.proto.read_module(copy.to_proto()).to_text() == again.to_text()
    assert hlo.proto.read_module(again.to_proto()).to_proto() == again.to_proto()


def test_broken_protos_are_said_with_their_place() -> None:
    proto = hlo.parse(EXAMPLE).to_proto()
    with pytest.raises(hlo.HloSyntaxError, match=r"has \d[\d,]* bytes, but (?:its message ends|only)"):
        hlo.proto.read_module(proto[:200])
    with pytest.raises(hlo.ProtoError, match=r"no computation has the entry's id") as caught:
        hlo.proto.read_module(proto.replace(b"\x30\x02", b"\x30\x09"))
    assert caught.value.path == "entry_computation_id"
    with pytest.raises(
        hlo.ProtoError, match=r"opcode redure .* at computations\[1\]\.instructions\[2\]"
    ) as caught:
        hlo.proto.read_module(proto.replace(b"\x06reduce", b"\x06redure"))
    assert caught.value.offset


def test_a_convolution_has_no_such_dimension() -> None:
    """Its text would have a letter for each dimension up to that one."""
    proto = hlo.parse(
        "ENTRY e {\n  p = f32[4,4] parameter(0)\n  ROOT c = f32[4,4] convolution(p, p), dim_labels=bf_io->fb\n}\n"
    ).to_proto()
    labels, odd = b"\x82\x01\x06 \x01@\x01H\x01", b"\x82\x01\x06 \x01H\xff\xff\x03"
    assert labels in proto
    with pytest.raises(hlo.ProtoError, match="a convolution has no dimension 65535"):
        hlo.proto.read_module(proto.replace(labels, odd))


@pytest.mark.parametrize("piece", [b"\x1a\x00", b"\x1a\x02\x12\x00", b"\x1a\x0c" + b"\x12\x00" * 6])
def test_many_empty_messages_are_refused_at_once(piece: bytes) -> None:
    """A few bytes for each, so that objects for all of them would take far more memory than the file."""
    proto = b"\x0a\x01m\x30\x01" + piece * 200_000
    tracemalloc.start()
    with pytest.raises(hlo.ProtoError, match="has no"):
        hlo.proto.read_module(proto)
    assert tracemalloc.get_traced_memory()[1] < 4 * len(proto)
    tracemalloc.stop()


def test_mutants_are_errors_or_modules() -> None:
    """A few hundred damaged protos here; `tests/fuzz` tries as many as one likes."""
    seed = hlo.parse(EXAMPLE).to_proto()
    generator = random.Random(1)
    for _ in range(400):
        damaged = mutated(seed, generator)
        if assert_same(damaged):
            str(hlo.proto.read_module(damaged))


def mutated(data: bytes, generator: random.Random) -> bytes:
    """Some bytes changed, cut, doubled or moved."""
    out = bytearray(data)
    for _ in range(generator.randint(1, 4)):
        place = generator.randrange(len(out))
        what = generator.randrange(5)
        if what == 0:
            out[place] = generator.randrange(256)
        elif what == 1:
            out[place] ^= 1 << generator.randrange(8)
        elif what == 2:
            del out[place : place + generator.randint(1, 8)]
        elif what == 3:
            out[place:place] = out[place : place + generator.randint(1, 40)]
        else:
            out = out[: max(1, place)] if generator.random() < 0.1 else out
    return bytes(out)


def test_a_recorded_trace() -> None:
    """Two programs of JAX on a CPU, of which one ran three times; the trace is cut to what is about them."""
    path = support.DATA / "proto" / "two_programs.xplane.pb"
    trace = hlo.proto.read_trace(path.read_bytes(), str(path))
    assert [(module.name, module.program_id, module.runs) for module in trace.modules] == [
        ("jit_g", 2, 1),
        ("jit__lambda", 0, 3),
    ]
    loop, product = trace.modules
    assert product.module.name == "jit__lambda"
    sine = product.module.entry["wrapped_sine"]
    time = product.time_of(sine)
    assert time is not None
    assert (time.count, round(time.seconds * 1e9)) == (3, 73208)
    assert loop.times["ynn_fusion"].count == 5  # inside of the loop
    assert loop.seconds is not None
    assert loop.seconds > loop.times["while.6"].seconds
    modules = hlo.load_all(path)
    assert [module.name for module in modules] == ["jit_g", "jit__lambda"]
    with pytest.raises(hlo.ProtoError, match="this trace contains 2 modules"):
        hlo.load(path)


def test_lint_takes_protos(tmp_path: Path) -> None:
    """The findings of the text, at the op lines as they print; of a damaged proto the path and the byte of the damage."""
    path = support.ROOT / "corpus" / "cpu" / "callback_io.cpu_1.after_optimizations.txt"
    proto = tmp_path / "module.hlo.pb"
    proto.write_bytes(hlo.load(path).to_proto(fill_elided=True))
    of_text, of_proto = (lint.lint_file(lint.Config(), str(file)).linted for file in (path, proto))
    assert of_text is not None
    assert of_proto is not None
    assert of_proto.instructions == of_text.instructions
    assert len(of_proto.findings) == 2
    for mine, theirs in zip(of_proto.findings, of_text.findings, strict=True):
        assert (mine.code, mine.message, mine.name) == (theirs.code, theirs.message, theirs.name)
        assert mine.file == str(proto)
        assert mine.name in "".join(mine.facts.excerpt)
    whole = proto.read_bytes()
    proto.write_bytes(whole[: len(whole) // 2])
    cut = lint.lint_file(lint.Config(), str(proto)).linted
    assert cut is not None
    (finding,) = cut.findings
    assert finding.code == "X101"
    assert "byte" in finding.message
    assert finding.file == str(proto)


def named(value: memory.Value) -> list[tuple[str, tuple[int, ...]]]:
    """Where a value is seen."""
    return [(i if isinstance(i, str) else i.name, index) for i, index in value.positions]


def test_the_buffer_assignment_of_a_dump() -> None:
    """What `memory.load` makes of an `HloProto` is what it makes of XLA's text files of the same compilation."""
    folder = support.DATA / "proto" / "memory"
    name = "module_0000.jit_loss.cpu_after_optimizations"
    texts, proto = memory.load(folder / f"{name}.txt"), memory.load(folder / f"{name}.hlo.pb")
    assert len(proto.values) == len(texts.values) == 67
    for mine, theirs in zip(proto.values, texts.values, strict=True):
        assert (mine.number, mine.name, mine.index, mine.is_phi) == (
            theirs.number, theirs.name, theirs.index, theirs.is_phi
        )  # fmt: skip
        assert mine.live_range == theirs.live_range
        assert sorted(named(mine)) == sorted(named(theirs))
    for a, b in zip(proto.allocations, texts.allocations, strict=True):
        for field in (
            "number",
            "bytes",
            "is_parameter",
            "is_output",
            "is_constant",
            "is_temporary",
            "maybe_live_out",
        ):
            assert getattr(a, field) == getattr(b, field), (a.number, field)
        assert [(s.value.number, s.offset, s.bytes) for s in a.slices] == [
            (s.value.number, s.offset, s.bytes) for s in b.slices
        ]
    assert proto.peak().bytes == texts.peak().bytes
    assert proto.buffers is not None
    assert sorted(map(len, proto.buffers)) == sorted(
        map(len, memory.assign(hlo.load(folder / f"{name}.txt")).buffers or ())
    )
    module, dumped = hlo.load(folder / f"{name}.hlo.pb"), hlo.load(folder / f"{name}.txt")
    assert [i.name for i in module.instructions()] == [i.name for i in dumped.instructions()]


@pytest.mark.parametrize(
    "path", sorted((support.DATA / "reread" / "newest").glob("*.xla")), ids=lambda path: path.stem
)
def test_what_the_newest_release_prints_survives(path: Path) -> None:
    """Its words and defaults; but for the metadata that say that a sum is meant, which say so in each proto."""
    if path.stem == "unreduced_metadata":
        pytest.skip("its metadata hold what XLA adds, and takes out of a proto")
    module = hlo.parse(path.read_text(encoding="utf-8"))
    read = hlo.proto.read_module(hlo.proto.write_module(module))
    header = "entry_computation_layout"  # the number of partitions is no part of a module's proto
    texts = [
        hlo.reread(m, age="0.12").to_text().partition(header)[2].partition("\n")[2] for m in (module, read)
    ]
    assert texts[0] == texts[1]


def test_old_words_of_a_comparison_are_written_for_all() -> None:
    """The type for readers of old protos, the order for those of new ones; what is read back says it as before."""
    text = (
        "ENTRY e { x = f32[4] parameter(0)  ROOT c = pred[4] compare(x, x), direction=LT, type=TOTALORDER }"
    )
    data = hlo.proto.write_module(hlo.parse(text))
    assert b"\x0aTOTALORDER" in data
    assert b"\xb2\x06\x05TOTAL" in data
    assert hlo.proto.read_module(data).entry.root.attributes["type"] == "TOTALORDER"


def test_topk_is_stable_in_text_alone() -> None:
    """What is written from a text without the flag says that it is stable."""
    text = "ENTRY e { x = f32[4] parameter(0)  ROOT t = (f32[2], s32[2]) topk(x), k=2, largest=true }"
    data = hlo.proto.write_module(hlo.parse(text))
    assert b"\xe0\x03\x01" in data
    root = hlo.proto.read_module(data.replace(b"\xe0\x03\x01", b"\xe0\x03\x00")).entry.root
    assert root.attributes["is_stable"] is False


@pytest.mark.parametrize("kept", [40, 100])
def test_a_proto_that_ends_early_is_called_so(kept: int) -> None:
    """With as many bytes as it has, and as it must have; without its beginning nothing is known of it."""
    module = hlo.parse(EXAMPLE).to_proto()
    data = (
        b"\x0a" + bytes([len(module) & 127 | 128, len(module) >> 7]) + module
    )  # HloProto: the module is its first field
    with pytest.raises(hlo.ProtoError, match=rf"truncated HLO proto: {kept} of at least {len(data):,} bytes"):
        hlo.proto.read_modules(data[:kept])
    with pytest.raises(hlo.ProtoError, match="neither"):
        hlo.proto.read_modules(b"\xff" * kept)


def test_convert_says_which_message_it_wrote(tmp_path: Path) -> None:
    """Where it is another than JAX reads; else nothing."""
    text = "HloModule m, replica_count=2\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
    (tmp_path / "m.txt").write_text(text)
    written = run("convert", tmp_path / "m.txt", "-o", tmp_path / "m.hlo.pb")
    assert "written as HloModuleProtoWithConfig, which keeps" in written.stderr
    assert "--message HloModuleProto)" in written.stderr
    (tmp_path / "n.txt").write_text(text.replace(", replica_count=2", ""))
    assert run("convert", tmp_path / "n.txt", "-o", tmp_path / "n.hlo.pb").stderr == ""
