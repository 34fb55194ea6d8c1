"""How the bodies of protos are read quickly: bodies that come again, orders that are right already, short messages."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext.ir.nodes.compare import difference

pytest.importorskip("google.protobuf")

from hlotext.ir.nodes.computation import instruction_post_order
from hlotext.proto import body_cache, print_order, wire
from hlotext.proto.fast_computations import Body
from hlotext.proto.literals import encoded

BODIES = 24


def module_of_clones() -> str:
    """A module in which many bodies differ in their names alone."""
    lines = ["HloModule m, entry_computation_layout={(f32[8]{0})->f32[8]{0}}", ""]
    for n in range(BODIES):
        lines += [
            f"%body.{n} (x.{n}: f32[8], y.{n}: f32[8]) -> f32[8] {{",
            f"  %x.{n} = f32[8]{{0}} parameter(0)",
            f"  %m.{n} = f32[8]{{0}} multiply(%x.{n}, %x.{n})",
            f"  %y.{n} = f32[8]{{0}} parameter(1)",
            f'  ROOT %a.{n} = f32[8]{{0}} add(%m.{n}, %y.{n}), metadata={{op_name="jit(f)/add"}}',
            "}",
            "",
        ]
    lines.append("ENTRY %main (p: f32[8]) -> f32[8] {")
    lines.append("  %p = f32[8]{0} parameter(0)")
    last = "p"
    for n in range(BODIES):
        root = "ROOT " if n == BODIES - 1 else ""
        lines.append(f"  {root}%f.{n} = f32[8]{{0}} fusion(%{last}, %p), kind=kLoop, calls=%body.{n}")
        last = f"f.{n}"
    return "\n".join([*lines, "}", ""])


def test_bodies_that_come_again_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but those whose ids have an upper half of one byte, and the first of the others; they are what the text says."""
    copies = []
    copy = body_cache.Repeated.copies

    def noted(
        self: body_cache.Repeated, names: list[str], computation: hlo.Computation
    ) -> list[hlo.Instruction]:
        copies.append(names)
        return copy(self, names, computation)

    monkeypatch.setattr(body_cache.Repeated, "copies", noted)
    module = hlo.parse(module_of_clones())
    proto = module.to_proto()
    found = hlo.proto.read_module(proto)
    assert 10 < len(copies) < BODIES
    assert difference(found, module) is None
    assert difference(found, hlo.proto.read_module(proto, careful=True)) is None
    for computation in found.computations:
        assert all(i.computation is computation for i in computation)
        assert all(o.computation is computation for i in computation for o in i.operands)
    assert found.to_proto() == proto


def test_one_byte_of_a_repeated_body() -> None:
    """Whatever byte of a body that comes again is another one: both ways of reading say the same of it."""
    proto = hlo.parse(module_of_clones()).to_proto()
    place = proto.index(b"body.20")
    generator = random.Random(3)
    for _ in range(150):
        damaged = bytearray(proto)
        damaged[place + generator.randrange(300)] = generator.choice((0, 1, 18, 127, 128, 152, 255))
        said = []
        for careful in (False, True):
            try:
                said.append(hlo.proto.read_module(bytes(damaged), careful=careful).to_text())
            except hlo.ProtoError as error:
                said.append(str(error))
        assert said[0] == said[1]


def test_one_that_calls_nothing_among_others() -> None:
    """A reduction without its computation, behind one that is the same but for that."""
    text = """HloModule m

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

ENTRY %main (p: f32[4]) -> (f32[], f32[]) {
  %p = f32[4]{0} parameter(0)
  %zero = f32[] constant(0)
  %r = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%add
  %s = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%add
  ROOT %t = (f32[], f32[]) tuple(%r, %s)
}
"""
    fields = json.loads(hlo.proto.to_json(hlo.parse(text).to_proto()))
    second = fields["computations"][1]["instructions"][3]
    assert second.pop(next(name for name in second if "called" in name))
    damaged = hlo.proto.from_json(json.dumps(fields))
    for careful in (False, True):
        with pytest.raises(hlo.ProtoError, match="to_apply"):
            hlo.proto.read_module(damaged, careful=careful)


def test_the_upper_half_of_an_id_inside_of_a_value() -> None:
    """Bodies whose constants look like their ids differ although all that is left between such bytes is the same."""
    upper = (b"\xb0\x01", b"\xc0\x01")
    pieces = [b"\x98\x02\x80\x80\x80\x80" + one + b"ab" + other for one in upper for other in upper]
    found = body_cache.Repeats(1 << 20)
    body = Body(
        hlo.Computation("c"), "", [hlo.Instruction("n", "constant", None)], hlo.Instruction("n", "constant", None),
        [pieces[0][2:8].decode("latin-1")], upper[0].decode("latin-1"),
    )  # fmt: skip
    body.nodes[0] = body.root
    found.note([pieces[0].decode("latin-1")], body)
    assert body.like is None
    assert found.find([pieces[3].decode("latin-1")], pieces[3][2:8].decode("latin-1")) is None


@given(st.integers(0, 1 << 32), st.integers(1, 9), st.booleans())
def test_an_order_is_right_where_the_walks_give_it(seed: int, size: int, with_predecessors: bool) -> None:
    """Of any graph in any order, with ids in any order, against the walks themselves."""
    generator = random.Random(seed)
    computation = hlo.Computation("c")
    nodes: list[hlo.Instruction] = []
    for number in range(size):
        count = generator.randrange(4) if nodes else 0
        operands = tuple(generator.choices(nodes, k=count)) if count else ()
        made = hlo.Instruction(f"i{number}", "custom-call", None, operands)
        if with_predecessors and nodes and generator.random() < 0.5:
            before = tuple(dict.fromkeys(generator.choices(nodes, k=2)))
            made._attributes = {"control-predecessors": before}
        nodes.append(made)
    ids = list(range(size))
    if generator.random() < 0.5:
        generator.shuffle(ids)
    else:
        computation._instructions = nodes
        nodes = instruction_post_order(computation)
    by_id = [node for _, node in sorted(zip(ids, nodes, strict=True), key=lambda pair: pair[0])]
    computation._instructions = by_id
    expected = instruction_post_order(computation)
    keys = [encoded(number).decode("latin-1") for number in ids]
    body = Body(computation, "\0", nodes, nodes[-1], keys, has_predecessors=with_predecessors)
    found = print_order.instruction_order(body)
    assert found == expected
    assert (found is nodes) == (expected == nodes)


@given(
    st.binary(max_size=24)
    | st.lists(st.sampled_from((0, 8, 10, 18, 2, 128, 129, 1, 13, 37)), max_size=12).map(bytes)
)
def test_short_messages(data: bytes) -> None:
    """Read at once or field by field: the same fields, or the same error."""
    said: list[object] = []
    for read in (wire.fields, lambda raw: list(wire.scan(raw, 0, len(raw)))):
        try:
            said.append(read(data))
        except hlo.ProtoError as error:
            said.append(str(error))
    assert said[0] == said[1]


def test_a_list_of_operands_that_ends_within_a_number_is_refused() -> None:
    """It is not read as a shorter list: a custom call takes any number of operands."""
    text = """HloModule m

ENTRY e {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  ROOT t = f32[] custom-call(a, b, c), custom_call_target="x"
}
"""
    written = hlo.proto.to_json(hlo.parse(text).to_proto())
    for number in range(4):  # ids of one byte, as releases before 2025 wrote them
        written = written.replace(str((1 << 32) + number), str(10 + number))
    data = hlo.proto.from_json(written)
    assert [one.name for one in hlo.parse(data).entry.root.operands] == ["a", "b", "c"]
    last = data.index(b"\xa2\x02\x03\x0a\x0b\x0c") + 5
    with pytest.raises(hlo.ProtoError, match="a number does not end"):
        hlo.parse(data[:last] + bytes([data[last] | 0x80]) + data[last + 1 :])


def test_fields_of_domains_and_dynamic_literals_have_their_numbers_of_xla() -> None:
    """The text's `entry` is the users' side, the proto's the operand's; a literal with a dynamic dimension has its sizes."""
    text = """HloModule m

ENTRY e {
  x = f32[4]{0} parameter(0)
  d = f32[4]{0} domain(x), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}
  c = f32[<=4,2]{1,0} constant({ { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } })
  ROOT t = (f32[4]{0}, f32[<=4,2]{1,0}) tuple(d, c)
}
"""
    module = hlo.parse(text)
    data = module.to_proto()
    (computation,) = json.loads(hlo.proto.to_json(data))["computations"]
    fields = {one["name"]: one for one in computation["instructions"]}
    assert fields["d"]["domain_entry_sharding"]["tile_assignment_devices"] == ["1"]
    assert fields["d"]["domain_exit_sharding"]["tile_assignment_devices"] == ["0"]
    assert fields["c"]["literal"]["dynamic_sizes"] == [4, 2]
    read = hlo.parse(data)
    assert read.instruction("d").attributes["domain"] == module.instruction("d").attributes["domain"]
