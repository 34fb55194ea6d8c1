"""Editing: what happens, what is refused, and which lines are printed anew."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

import hlotext as hlo
from hlotext.edit import integrity, parameters
from hlotext.edit.calls import OWNERS
from hlotext.edit.cloning import clone_computation, clone_instruction
from hlotext.ir.nodes.naming import NameUniquer
from hlotext.ir.tables.opcode import Payload
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.enums import FusionKind
from hlotext.rewrite.kit.builder import Builder, shape_of
from hlotext.rewrite.kit.opcode_methods import METHODS
from hlotext.rewrite.outlining import inline, outline
from hlotext.rewrite.propagation import change_operands, change_shape
from tests import support

TEXT = """HloModule m, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}

%inner (p: f32[4], q: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %q = f32[4]{0} parameter(1)
  ROOT %z = f32[4]{0} add(%p, %q)   // a comment
}

ENTRY %main (x: f32[4], y: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %y = f32[4]{0} parameter(1)
  %a = f32[4]{0}   add(%x, %y), metadata={op_name="a"}
  %b = f32[4]{0} multiply(%a,%x)
  %c = f32[4]{0} call(%b, %y), to_apply=%inner
  ROOT %d = f32[4]{0} negate(%c)
}
"""


@pytest.fixture
def module() -> hlo.Module:
    return hlo.parse(TEXT)


def changed(module: hlo.Module) -> list[str]:
    """The lines that are not in the text as it was, without indentation."""
    old = set(TEXT.splitlines())
    return [line.strip() for line in str(module).splitlines() if line not in old]


REFUSED: dict[str, Callable[[hlo.Module], object]] = {
    "a cycle": lambda m: m.entry["a"].replace_operand(0, m.entry["c"]),
    "a cycle through replaced uses": lambda m: m.entry["x"].replace_all_uses_with(m.entry["b"]),
    "its own result": lambda m: m.entry["a"].replace_operand(0, m.entry["a"]),
    "a control cycle": lambda m: m.entry["a"].attributes.__setitem__("control-predecessors", (m.entry["d"],)),
    "an operand from elsewhere": lambda m: m.entry["a"].replace_operand(0, m.find("p")),  # type: ignore[arg-type]
    "a used instruction": lambda m: m.entry["a"].erase(),
    "the root": lambda m: m.entry["d"].erase(),
    "a parameter": lambda m: m.find("p").erase(),  # type: ignore[union-attr]
    "a called computation": lambda m: m.remove(m.computations[0]),
    "the entry": lambda m: m.remove(m.entry),
    "a taken name": lambda m: m.entry.rename(m.entry["a"], "b"),
    "a taken computation name": lambda m: m.rename(m.computations[0], "main"),
    "another type": lambda m: setattr(m.entry["a"], "shape", hlo.parse_shape("f32[5]")),
    "an opcode of another arity": lambda m: setattr(m.entry["a"], "opcode", "negate"),
    "an attribute of another opcode": lambda m: m.entry["a"].attributes.__setitem__("dimensions", (0,)),
    "a callee of another signature": lambda m: m.entry["c"].change(operands=[m.entry["b"]]),
    "a callee of another module": lambda m: m.entry["c"].attributes.__setitem__(
        "to_apply", m.clone().computations[0]
    ),
    "a move before an operand": lambda m: m.entry["b"].move_before(m.entry["a"]),
    "a move behind a user": lambda m: m.entry["a"].move_before(m.entry["d"]),
    "a used parameter": lambda m: parameters.remove_parameter(m.entry, 0),
    "a parameter without values": lambda m: parameters.add_parameter(m.computations[0], shape_of("f32")),
    "an outline around a value": lambda m: outline([m.entry["a"], m.entry["c"]], "f"),
    "a shape that does not fit": lambda m: change_shape(m.entry["x"], shape_of("s32", [4])),
    "a callee that leads back": lambda m: Builder.before(m.computations[0].root).call(
        *m.computations[0].parameters, to_apply=m.computations[0]
    ),
    "a call of the entry": lambda m: m.entry["c"].attributes.__setitem__("to_apply", m.entry),
    "a fusion of what is called": lambda m: Builder.before(m.entry.root).fusion(
        m.entry["b"], m.entry["y"], calls=m.computations[0], kind=FusionKind.LOOP
    ),
    "an attribute that there is not": lambda m: Builder.before(m.entry.root).op(
        "dot", (m.entry["a"], m.entry["b"]), bad=1
    ),
}


@pytest.mark.parametrize("edit", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_changes_nothing(module: hlo.Module, edit: Callable[[hlo.Module], object]) -> None:
    with pytest.raises(hlo.EditError):
        edit(module)
    assert str(module) == TEXT
    assert integrity.problems(module) == []


PAIRS = """HloModule pairs, is_scheduled=true, entry_computation_layout={(f32[4]{0})->(f32[4]{0}, f32[4]{0})}

%wrapped (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %s = f32[4]{0} sine(%p)
}

ENTRY %main (x: f32[4]) -> (f32[4], f32[4]) {
  %x = f32[4]{0} parameter(0)
  %start = (f32[4]{0}, f32[4]{0}, u32[]) copy-start(%x)
  %done = f32[4]{0} copy-done(%start)
  %begin = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(%done), calls=%wrapped
  %end = f32[4]{0} async-done(%begin)
  %more = (f32[4]{0}, f32[4]{0}, u32[]) copy-start(%x)
  %unused = f32[4]{0} copy-done(%more)
  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%done, %end)
}
"""

REFUSED_IN_PAIRS: dict[str, Callable[[hlo.Module], object]] = {
    "a start cloned": lambda m: clone_instruction(m.entry["start"]),
    "a start finished twice": lambda m: Builder.before(m.entry.root).copy_done(m.entry["start"]),
    "a start taken as data": lambda m: Builder.before(m.entry.root).copy(m.entry["start"]),
    "a done without its start": lambda m: m.entry["done"].replace_operand(0, m.entry["begin"]),
    "a done taken out alone": lambda m: m.entry["unused"].erase(),
    "half of a pair as something else": lambda m: m.entry["done"].change(opcode="copy"),
    "a second operation in an async body": lambda m: Builder.before(m.computations[0].root).negate(
        m.computations[0]["p"]
    ),
    "a callee on another thread": lambda m: m.entry["begin"].attributes.__setitem__(
        "async_execution_thread", "other"
    ),
    "another layout where layouts count": lambda m: setattr(
        m.entry["done"], "shape", hlo.parse_shape("f32[4]{0:S(5)}")
    ),
}  # fmt: skip


@pytest.mark.parametrize("edit", REFUSED_IN_PAIRS.values(), ids=REFUSED_IN_PAIRS)
def test_asynchronous_operations_stay_whole(edit: Callable[[hlo.Module], object]) -> None:
    module = hlo.parse(PAIRS)
    assert not hlo.verify(module)
    with pytest.raises(hlo.EditError):
        edit(module)
    assert not [d for d in hlo.verify(module) if d.severity is hlo.Severity.ERROR]
    assert integrity.problems(module) == []


def test_a_pair_is_taken_out_together() -> None:
    module = hlo.parse(PAIRS)
    module.entry["done"].replace_with(module.entry["x"])
    assert "done" in module.entry
    module.entry.remove_all([module.entry["start"], module.entry["done"]])
    assert not hlo.verify(hlo.parse(str(module)))


def test_what_is_called_later_in_the_text_moves_up() -> None:
    module = hlo.parse(TEXT)
    late = Builder.new(module, "late", [shape_of("f32", [4])] * 2)
    late.finish(late.multiply(*late.computation.parameters))
    assert module.computations[-1] is late.computation
    module.entry["c"].attributes["to_apply"] = late.computation
    assert [c.name for c in module.computations] == ["inner", "late", "main"]
    assert hlo.parse(str(module)).entry["c"].called_computations[0].name == "late"


# ---- lines


def test_only_touched_lines_are_printed_anew(module: hlo.Module) -> None:
    module.entry["a"].replace_operand(1, module.entry["x"])
    assert changed(module) == ['%a = f32[4]{0} add(%x, %x), metadata={op_name="a"}']


def test_replace_all_uses(module: hlo.Module) -> None:
    module.entry["a"].replace_all_uses_with(module.entry["y"])
    assert changed(module) == ["%b = f32[4]{0} multiply(%y, %x)"]
    module.entry["a"].erase()
    assert "%a" not in str(module)


def test_what_a_replacement_needs_moves_before_the_first_user(module: hlo.Module) -> None:
    late = Builder.before(module.entry.root, like=module.entry["x"]).sine(module.entry["x"])
    module.entry["a"].replace_all_uses_with(late)
    assert [i.name for i in module.entry] == ["x", "y", "a", "sine", "b", "c", "d"]
    assert integrity.problems(module) == []


def test_a_new_value_may_use_the_old_one(module: hlo.Module) -> None:
    a = module.entry["a"]
    wrapped = Builder.after(a).negate(a)
    a.replace_all_uses_with(wrapped)
    assert wrapped.operands == (a,)
    assert changed(module) == [
        '%negate = f32[4]{0} negate(%a), metadata={op_name="a"}',
        "%b = f32[4]{0} multiply(%negate, %x)",
    ]


def test_replacing_hands_on_the_root_and_control_dependencies(module: hlo.Module) -> None:
    entry = module.entry
    entry["c"].attributes["control-predecessors"] = (entry["a"],)
    entry["a"].replace_with(entry["y"])
    assert entry["c"].control_predecessors == (entry["y"],)
    entry["d"].replace_with(entry["c"])
    assert entry.root is entry["c"]
    assert "a" not in entry
    assert "d" not in entry


def test_nested_operands_get_lines_of_their_own() -> None:
    module = hlo.parse("ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(negate(x), x)\n}\n")
    module.entry.root.name = "sum"
    assert hlo.parse(str(module)).entry.root.name == "sum"
    assert len(hlo.parse(str(module)).entry) == 3


def test_inline_bodies_get_a_text_of_their_own() -> None:
    text = "{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
    module = hlo.parse(
        f"ENTRY e {{\n  x = f32[4] parameter(0)\n  i = f32[] constant(0)\n"
        f"  ROOT r = f32[] reduce(x, i), dimensions={{0}}, to_apply={text}\n}}\n"
    )
    module.entry.root.name = "sum"
    again = hlo.parse(str(module))
    assert again.entry.root.called_computations[0].root.opcode == "add"
    assert integrity.problems(module) == []


# ---- copies and transactions


def test_a_line_that_could_not_be_read_is_not_copied() -> None:
    """It would be another line than that which stands in the text."""
    text = "HloModule m\n\nENTRY e {\n  p = f32[2] parameter(0)\n  b = f32[2] sine(p, to=\n  ROOT c = f32[2] negate(b)\n}\n"
    module = hlo.parse_tolerant(text).module
    with pytest.raises(hlo.EditError, match="b could not be read"):
        clone_computation(module.entry)
    with pytest.raises(hlo.EditError, match="b could not be read"):
        clone_instruction(module.entry["b"])
    assert str(module) == text


def test_a_clone_prints_alike_and_shares_nothing(module: hlo.Module) -> None:
    module.entry["a"].name = "renamed"
    copy = module.clone()
    assert str(copy) == str(module)
    assert not set(copy.instructions()) & set(module.instructions())
    assert integrity.problems(copy) == []
    copy.entry["b"].name = "other"
    assert "other" not in str(module)


def test_clones_in_place(module: hlo.Module) -> None:
    copy = clone_instruction(module.entry["a"])
    assert str(copy) == '%a.clone = f32[4]{0} add(%x, %y), metadata={op_name="a"}'
    body = clone_computation(module.computations[0])
    module.entry["c"].attributes["to_apply"] = body
    assert body.callers == (module.entry["c"],)
    assert integrity.problems(module) == []


def test_a_transaction_undoes_everything(module: hlo.Module) -> None:
    def fail() -> None:
        with module.transaction():
            module.entry["a"].name = "other"
            outline([module.entry["b"]], "part")
            change_shape(module.entry["x"], shape_of("f32", [4]))
            module.attributes["replica_count"] = 2
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert str(module) == TEXT
    assert integrity.problems(module) == []


def test_a_transaction_keeps_what_succeeds(module: hlo.Module) -> None:
    with module.transaction():
        module.entry["a"].name = "other"
    assert "other" in module.entry


# ---- across computations


def test_inline_and_outline(module: hlo.Module) -> None:
    copies = inline(module.entry["c"])
    assert [i.name for i in copies.values()] == ["z.1"]
    call = outline([module.entry["a"], module.entry["b"]], "part", opcode="fusion")
    assert call.called_computations[0].root.opcode == "multiply"
    assert [i.name for i in module.entry] == ["x", "y", "fusion", "z.1", "d"]
    assert integrity.problems(module) == []
    assert hlo.parse(str(module)).computations[1].name == "part"


def test_outline_with_several_results(module: hlo.Module) -> None:
    call = outline([module.entry["a"], module.entry["y"].users[0], module.entry["b"]], "part")
    assert call.shape is not None
    module.entry.root.replace_operand(0, Builder.before(module.entry.root).add(call, module.entry["x"]))
    assert integrity.problems(module) == []


def test_parameters(module: hlo.Module) -> None:
    inner = module.computations[0]
    parameters.add_parameter(inner, shape_of("f32", [4]), "r", value=lambda caller: caller.operands[0])
    assert [operand.name for operand in module.entry["c"].operands] == ["b", "y", "b"]
    parameters.remove_parameter(inner, 2)
    assert len(module.entry["c"].operands) == 2
    parameters.add_parameter(module.entry, shape_of("f32", [7]))
    assert len(module.attributes["entry_computation_layout"].parameter_shapes) == 3
    parameters.remove_parameter(module.entry, 2)
    assert str(module.attributes["entry_computation_layout"]) == "{(f32[4]{0}, f32[4]{0})->f32[4]{0}}"


def test_a_shape_is_propagated(module: hlo.Module) -> None:
    with pytest.raises(hlo.EditError):
        change_shape(module.entry["x"], shape_of("f32", [8]))
    module.entry["a"].replace_operand(1, module.entry["x"])
    module.entry["c"].change(operands=[module.entry["b"], module.entry["b"]])
    found = change_shape(module.entry["x"], shape_of("f32", [8]))
    assert [i.name for i in found] == ["x", "a", "b", "p", "q", "z", "c", "d"]
    assert str(module.attributes["entry_computation_layout"]) == "{(f32[8]{0}, f32[4]{0})->f32[8]{0}}"
    assert integrity.problems(module) == []


def test_operands_of_another_shape(module: hlo.Module) -> None:
    wide = Builder.before(module.entry["c"]).concatenate(
        module.entry["a"], module.entry["x"], dimensions=(0,)
    )
    change_operands(module.entry["d"], [wide])
    assert str(module.entry.shape) == "f32[8]{0}"


def test_loops_keep_one_shape() -> None:
    module = hlo.parse(OPCODES["while"].example and _LOOP)
    change_shape(module.entry["x"], hlo.parse_shape("(s32[], f32[9])"))
    assert str(module.entry.root.shape) == "(s32[], f32[9])"
    assert integrity.problems(module) == []


_LOOP = """HloModule loop
body { t = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(t), index=0
  v = f32[4] get-tuple-element(t), index=1  w = f32[4] negate(v)  ROOT r = (s32[], f32[4]) tuple(i, w) }
cond { t = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(t), index=0
  l = s32[] constant(3)  ROOT c = pred[] compare(i, l), direction=LT }
ENTRY e { x = (s32[], f32[4]) parameter(0)  ROOT w = (s32[], f32[4]) while(x), condition=cond, body=body }
"""


def test_a_scheduled_module_keeps_a_valid_order() -> None:
    path = support.CORPUS / "cpu" / "mlp_forward.cpu_1.after_optimizations.txt"
    module = hlo.load(path)
    assert module.is_scheduled
    value = next(i for i in module.entry if i.opcode != "parameter")
    value.replace_all_uses_with(Builder.after(value).copy(value))
    assert integrity.problems(module) == []
    assert hlo.parse(str(module)).is_scheduled


# ---- the builder


@pytest.mark.parametrize("row", OPCODES.values(), ids=str)
def test_every_opcode_can_be_built(row: object) -> None:
    """Each example of the table, built again from its parts, is the example."""
    given = hlo.parse_instruction(row.example)  # type: ignore[attr-defined]
    assert given.computation is not None
    name = next(key for key, value in METHODS.items() if value is row)
    builder = Builder(given.computation)
    builder_op = builder.op
    attributes = {key.replace("-", "_"): value for key, value in given.attributes.items()}
    if given.opcode in OWNERS:
        attributes["calls"] = clone_computation(attributes["calls"])
    is_parameter = row.payload is Payload.PARAMETER_NUMBER  # type: ignore[attr-defined]
    argument = len(given.computation.parameters) if is_parameter else given.literal
    shape = given.shape if row.payload is not Payload.OPERANDS or _needs_shape(given) else None  # type: ignore[attr-defined]
    is_built = False
    assert given.computation.module is not None
    # A start by itself is refused at the end, since nothing finishes it.
    with contextlib.suppress(hlo.EditError), given.computation.module.transaction():
        new = builder_op(given.opcode, given.operands, shape=shape, argument=argument, **attributes)
        assert new.shape is not None
        assert given.shape is not None
        assert str(new.shape.without_layout()) == str(given.shape.without_layout())
        assert new.operands == given.operands
        assert {key.replace("-", "_"): value for key, value in new.attributes.items()} == attributes
        assert name.rstrip("_").replace("_", "-") == given.opcode
        is_built = True
    assert is_built


def _needs_shape(given: hlo.Instruction) -> bool:
    from hlotext.semantics import infer

    rule = infer.rule_of(given.opcode)
    return rule is None or rule.open is not infer.Open.NOTHING


def test_names_are_made_as_xla_makes_them() -> None:
    names = NameUniquer(["add", "add.3"])
    assert [names.unique("add") for _ in range(3)] == ["add.1", "add.2", "add.4"]
    assert names.unique("a b/c") == "a_b_c"
    assert names.unique("7x") == "_x"


def test_metadata_and_sharding_are_inherited() -> None:
    module = hlo.parse(
        "ENTRY e { x = f32[4] parameter(0)\n"
        'ROOT y = f32[4] negate(x), sharding={replicated}, metadata={op_name="n"} }'
    )
    builder = Builder.before(module.entry.root)
    assert str(builder.sine(module.entry["x"]).sharding) == "{replicated}"
    small = builder.slice(module.entry["x"], [0], [2])
    assert small.sharding is None
    assert small.metadata == module.entry.root.metadata


def test_a_module_from_nothing() -> None:
    module = hlo.Module("made")
    body = Builder.new(module, "sum", [shape_of("f32")] * 2)
    body.finish(body.add(*body.computation.parameters))
    b = Builder.new(module, "main", [shape_of("f32", [2, 3])])
    zero = b.constant(0, "f32")
    total = b.reduce(b.parameter_number(0), zero, dimensions=(1,), to_apply=body.computation)
    b.finish(b.compare(total, b.full_like(total, 1), "GT"))
    module.set_entry(b.computation)
    again = hlo.parse(str(module))
    assert [str(i.shape.without_layout()) for i in again.entry if i.shape] == [
        "f32[2,3]", "f32[]", "f32[2]", "f32[]", "f32[2]", "pred[2]",
    ]  # fmt: skip


def test_a_header_where_there_was_none() -> None:
    module = hlo.parse("ENTRY e {\n  ROOT x = f32[4] parameter(0)\n}\n")
    module.name = "named"
    text = str(module)
    assert text.startswith("HloModule named")
    assert text.endswith("\n\nENTRY e {\n  ROOT x = f32[4] parameter(0)\n}\n")
    assert hlo.parse(text).name == "named"


def test_the_builder_takes_what_means_a_value() -> None:
    """Lists, texts and mappings become the values of attributes; what means nothing is refused."""
    module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] sine(x) }")
    b = Builder.before(module.entry.root)
    x = module.entry["x"]
    made = b.reverse(
        x, dimensions=[0], sharding="{replicated}", frontend_attributes={"a": "b"}, shape="f32[4]"
    )
    assert (
        str(made)
        == 'reverse = f32[4] reverse(x), dimensions={0}, sharding={replicated}, frontend_attributes={a="b"}'
    )
    before = str(module)
    for attributes in ({"dimensions": "x"}, {"dimensions": [0], "sharding": 3}, {"dimensoins": [0]}):
        with pytest.raises(hlo.EditError):
            b.op("reverse", (x,), **attributes)
    assert str(module) == before


def test_what_takes_a_place_waits_as_the_old_one_did() -> None:
    """Control predecessors are handed on with the successors; what cannot wait for them is refused, a parameter need not."""
    text = """ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] tanh(x)
  a = f32[4] sine(y)
  b = f32[4] negate(y), control-predecessors={a}
  ROOT c = f32[4] add(a, b)
}
"""
    module = hlo.parse(text)
    b = module.entry["b"]
    b.replace_with(Builder.before(b).cosine(module.entry["y"]))
    assert "cosine(y), control-predecessors={a}" in str(module)
    module = hlo.parse(text)
    with pytest.raises(hlo.EditError, match="b runs after a, and y cannot: y would depend on its own result"):
        module.entry["b"].replace_with(module.entry["y"])
    assert str(module) == text
    module.entry["b"].replace_with(module.entry["x"])
    assert "control-predecessors" not in str(module)
