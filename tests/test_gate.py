"""The gate: what was once accepted and then unreadable, lost or wrong is refused, converted or printed; records, undo."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import hlotext as hlo
from hlotext import rewrite
from hlotext.edit import integrity
from hlotext.ir.nodes.compare import difference
from hlotext.ir.values.configs import BackendConfig, FrontendAttributes
from hlotext.ir.values.enums import CustomCallSchedule
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.sharding import Sharding
from tests import support
from tests.fuzz import edits as fuzz

TEXT = """HloModule m, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}

%inner (p: f32[4], q: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %q = f32[4]{0} parameter(1)
  ROOT %z = f32[4]{0} add(%p, %q)
}

%fused (r: f32[4]) -> f32[4] {
  %r = f32[4]{0} parameter(0)
  %n = f32[4]{0} negate(%r)
  ROOT %s = f32[4]{0} sine(%n)
}

ENTRY %main (x: f32[4], y: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %y = f32[4]{0} parameter(1)
  %a = f32[4]{0} add(%x, %y), metadata={op_name="a"}
  %b = f32[4,2]{1,0} broadcast(%a), dimensions={0}
  %c = f32[4]{0} call(%a, %y), to_apply=%inner
  %k = f32[] constant(7)
  ROOT %f = f32[4]{0} fusion(%c), kind=kLoop, calls=%fused
}
"""


@pytest.fixture
def module() -> hlo.Module:
    return hlo.parse(TEXT)


def set_attribute(name: str, value: object, of: str = "a") -> Callable[[hlo.Module], None]:
    def edit(module: hlo.Module) -> None:
        node = module.find(of)
        assert isinstance(node, hlo.Instruction)
        node.attributes[name] = value

    return edit


def set_field(name: str, value: object, of: str = "a") -> Callable[[hlo.Module], None]:
    def edit(module: hlo.Module) -> None:
        node = module if of == "module" else module.find(of)
        setattr(node, name, module.find("n") if name == "root" else value)

    return edit


def unused(module: hlo.Module) -> None:
    """Builds something in a fusion, outside of a transaction."""
    rewrite.Builder.before(module.computations[1]["s"]).negate(module.computations[1]["n"])


REFUSED: dict[str, tuple[Callable[[hlo.Module], None], str]] = {
    "parameter number twice": (set_field("parameter_number", 1, "x"), "are numbered 1, 1, not 0 to 1"),
    "negative parameter number": (set_field("parameter_number", -1, "x"), "must be 0 or more, not -1"),
    "parameter number of an add": (set_field("parameter_number", 0), "only a parameter has a number"),
    "name with blanks": (set_field("name", "1 bad name"), "take '__bad_name'|cannot name an instruction"),
    "name with a brace": (set_field("name", "x{y", "inner"), "use 'x_y'"),
    "module name with a comma": (set_field("name", "a b,c", "module"), "use 'a_b_c'"),
    "name that is a type": (set_field("name", "f32"), "it is a keyword"),
    "number as a sharding": (set_attribute("sharding", 3.5), "expected a Sharding as sharding of a, not 3.5"),
    "text that is no sharding": (set_attribute("sharding", "{x"), "expected a Sharding as sharding of a"),
    "field that metadata lacks": (set_attribute("metadata", {"name": "x"}), "no field 'name'"),
    "text that is no metadata": (set_attribute("metadata", "x"), "expected a Metadata as metadata of a"),
    "number in frontend attributes": (
        set_attribute("frontend_attributes", {"a": 1}),
        "expected a FrontendAttributes",
    ),
    "text as dimensions": (set_attribute("dimensions", "0", "b"), "expected a list of integers"),
    "attribute of no opcode": (set_attribute("dimensoins", (0,), "b"), "did you mean `dimensions`"),
    "raw value of an unknown attribute": (set_attribute("x", RawValue("{")), "cannot be read back"),
    "None": (set_attribute("metadata", None), "delete the attribute"),
    "text that is no shape": (set_field("shape", "f32[2"), "shape of a cannot be read"),
    "another shape": (set_field("shape", "f32[2]"), "a: add produces"),
    "text as operands": (set_field("operands", "ab"), "list of instructions"),
    "value of an add": (set_field("literal", hlo.parse_literal("1", "f32[]")), "only a constant has a value"),
    "value of another shape": (set_field("literal", hlo.parse_literal("{1,2}", "f32[2]"), "k"), "not f32"),
    "thread with a quote": (set_field("execution_thread", 'a"b', "inner"), "thread of inner must consist of"),
    "opcode that is none": (set_field("opcode", "sinee"), "did you mean `sine`"),
    "text as a count": (lambda m: m.attributes.__setitem__("replica_count", "two"), "expected an integer"),
    "header attribute of no name": (lambda m: m.attributes.__setitem__("replicas", 2), "takes no attribute"),
    "unused in a fusion": (unused, "nothing in the fusion"),
    "another root of a fusion": (set_field("root", "n", "fused"), "nothing in the fusion"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(module: hlo.Module, case: str) -> None:
    """Nothing changes, and the message says what, where, and what to do instead."""
    edit, words = REFUSED[case]
    before = [(i, i._attributes, i._operands, i._shape) for i in module.instructions()]
    with pytest.raises(hlo.EditError, match=words):
        edit(module)
    assert str(module) == TEXT
    assert not module.is_modified
    assert before == [(i, i._attributes, i._operands, i._shape) for i in module.instructions()]
    assert integrity.problems(module) == []


CONVERTED: dict[str, tuple[str, str, Any, str]] = {
    "sharding text": ("a", "sharding", "{replicated}", "sharding={replicated}"),
    "metadata text": ("a", "metadata", '{op_name="q"}', 'metadata={op_name="q"}'),
    "dict as frontend attributes": ("a", "frontend_attributes", {"k": "v"}, 'frontend_attributes={k="v"}'),
    "dict as a config": ("a", "backend_config", {"a": True}, 'backend_config={"a":true}'),
    "list as dimensions": ("b", "dimensions", [0], "dimensions={0}"),
    "word of an enumeration": ("f", "kind", "kInput", "kind=kInput"),
}


@pytest.mark.parametrize("case", CONVERTED)
def test_converted(module: hlo.Module, case: str) -> None:
    """Plain Python values that mean one thing."""
    name, attribute, value, text = CONVERTED[case]
    node = module.find(name)
    assert isinstance(node, hlo.Instruction)
    node.attributes[attribute] = value
    assert text in str(node)
    again = hlo.parse(str(module)).find(name)
    assert isinstance(again, hlo.Instruction)
    assert again.attributes[attribute] == node.attributes[attribute]
    assert type(again.attributes[attribute]) is type(node.attributes[attribute])


def test_values_are_of_their_classes(module: hlo.Module) -> None:
    node = module.entry["a"]
    node.attributes["sharding"] = "{devices=[2]<=[2]}"
    node.attributes["frontend_attributes"] = {"k": "v"}
    node.attributes["backend_config"] = "plain"
    assert isinstance(node.sharding, Sharding)
    assert isinstance(node.frontend_attributes, FrontendAttributes)
    assert node.backend_config == BackendConfig("plain")
    node.shape = "f32[4]{0:T(8)}"
    assert isinstance(node.shape, hlo.Shape)
    module.entry["k"].literal = "8"  # type: ignore[assignment]
    assert module.entry["k"].literal == hlo.parse_literal("8", "f32[]")


def test_a_jax_sharding_is_converted(module: hlo.Module) -> None:
    """JAX's shardings say to XLA what they are; here one stands for them all."""

    class HloSharding:
        def __str__(self) -> str:
            return "{devices=[2]<=[2]}"

    class NamedSharding:
        def _to_xla_hlo_sharding(self, rank: int) -> HloSharding:
            assert rank == 1
            return HloSharding()

    module.entry["a"].attributes["sharding"] = NamedSharding()
    assert str(module.entry["a"].sharding) == "{devices=[2]<=[2]}"


def test_what_is_set_is_printed_and_cloned(module: hlo.Module) -> None:
    """The header's attributes are a live view; the thread of a computation stands behind its brace."""
    module.attributes["frontend_attributes"] = {"k": "v"}
    assert 'frontend_attributes={k="v"}' in str(module).splitlines()[0]
    assert str(module.clone()) == str(module)
    del module.attributes["frontend_attributes"]
    assert str(module).splitlines() == TEXT.splitlines()
    other = hlo.parse(
        "HloModule n\n\nf {\n  ROOT c = f32[] constant(1)\n}\n\nENTRY e {\n  ROOT d = f32[] constant(2)\n}\n"
    )
    other.computations[0].execution_thread = "host"
    assert '}, execution_thread="host"' in str(other)
    assert hlo.parse(str(other)).computations[0].execution_thread == "host"
    assert str(other.clone()) == str(other)


@pytest.mark.parametrize("field", ["computation", "form", "is_modified"])
def test_what_cannot_be_set_is_read_only(module: hlo.Module, field: str) -> None:
    with pytest.raises(AttributeError):
        setattr(module.entry.root, field, None)
    for name in ("module", "is_inline", "is_sugared", "is_modified"):
        with pytest.raises(AttributeError):
            setattr(module.entry, name, None)
    for name in ("source", "attributes", "revision", "is_modified"):
        with pytest.raises(AttributeError):
            setattr(module, name, None)


# ---- lazily read files


def test_nodes_kept_across_a_walk_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk lets go of what it has read; what is kept of it is not the module's any more, which is said."""
    from hlotext.syntax.lazy import lazy_module

    monkeypatch.setattr(lazy_module, "_HELD", 1)
    path = tmp_path / "m.txt"
    path.write_text(TEXT)
    module = hlo.load(path, lazy=True)
    kept = [computation.instructions[-1] for computation in module.walk()]
    for node in kept[:2]:
        with pytest.raises(hlo.EditError, match="was unloaded"):
            node.name = "other"
        with pytest.raises(hlo.EditError, match="was unloaded"):
            node.attributes["metadata"] = '{op_name="q"}'
        with pytest.raises(hlo.EditError, match="was unloaded"):
            node.shape = "f32[4]"
    assert str(module) == TEXT
    module.computations[0].root.name = "other"
    assert "%other = " in str(module)


# ---- what edited lines keep

REDUCERS = "".join(
    f"%r.{n} (a.{n}: f32[], b.{n}: f32[]) -> f32[] {{\n  %a.{n} = f32[] parameter(0)\n  %b.{n} = f32[] parameter(1)\n"
    f"  ROOT %s.{n} = f32[] add(%a.{n}, %b.{n})\n}}\n\n"
    for n in range(160)
)


@pytest.mark.parametrize("before", ["", REDUCERS])
@pytest.mark.parametrize("shape", ["f32[4,3]{0,1:T(8,128)}", "f32[<=4,3]{0,1:T(8,128)}"])
def test_edited_lines_keep_their_layout(before: str, shape: str) -> None:
    """However late the first layout comes, and where all arrays are dynamic."""
    lines = f"  %p = {shape} parameter(0)\n  ROOT %n = {shape} negate(%p)\n"
    module = hlo.parse(f"HloModule m\n\n{before}ENTRY %e {{\n{lines}}}\n")
    module.entry.root.name = "z"
    assert f"ROOT %z = {shape} negate(%p)" in str(module)


def test_statistics_of_a_short_spelling_stand_once() -> None:
    text = (
        "HloModule m\n\nENTRY %e (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n"
        "  %s = ((f32[4]{0}), f32[4]{0}) negate-start(%p), statistics={visualizing_index=1,a=1}\n"
        "  ROOT %d = f32[4]{0} negate-done(%s)\n}\n"
    )
    module = hlo.parse(text)
    module.entry["s"].name = "z"
    assert str(module) == text.replace("%s", "%z")


SHORT = """HloModule m

%work (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%p)
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %s = ((f32[4]{0}), f32[4]{0}, s32[]) call-start(%x), to_apply=%work
  %u = ((f32[4]{0}), f32[4]{0}, s32[]) call-update(%s)
  ROOT %d = f32[4]{0} call-done(%u)
}
"""
SHARED = {
    "metadata": ('{op_name="a"}', '{op_name="b"}'),
    "backend_config": ('{"a":1}', '{"b":1}'),
    "frontend_attributes": ('{a="1"}', '{b="1"}'),
    "statistics": ("{visualizing_index=0,count_nan=1}", "{visualizing_index=0,count_inf=1}"),
}
"""Attributes that the short spelling says once of an asynchronous start and of what it wraps, with two values each."""


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("given", ["", "s", "u", "su"])
@pytest.mark.parametrize("edited", ["s", "u", "d", "async_op"])
def test_attributes_around_a_short_spelling_are_edited_one_by_one(name: str, given: str, edited: str) -> None:
    """What start and wrapped operation no longer share is spelled in full."""
    old, new = SHARED[name]
    text = SHORT
    for line in SHORT.splitlines():
        if line[2:4] in {f"%{letter}" for letter in given}:
            text = text.replace(line, f"{line}, {name}={old}")
    for value in (None, RawValue(new)):
        module = hlo.parse(text)
        (node,) = (i for i in module.instructions() if i.name == edited)
        attributes = node.attributes
        if value is not None:
            attributes[name] = value
        elif name in attributes:
            del attributes[name]
        assert difference(hlo.parse(str(module)), module) is None


class Target(enum.StrEnum):
    MINE = "my_kernel"


def test_an_enumerator_that_is_a_text_is_that_text() -> None:
    """Whatever it prints as."""
    module = hlo.parse('f32[4] custom-call(f32[4] x), custom_call_target="theirs"')
    for target in (Target.MINE, CustomCallSchedule.LATEST):
        module.entry.root.attributes["custom_call_target"] = target
        assert type(module.entry.root.attributes["custom_call_target"]) is str
        assert f'custom_call_target="{target.value}"' in str(module)


def test_a_layout_swap_of_a_parameter_reaches_the_header() -> None:
    """Before optimisation too, where the header else may say another layout."""
    text = (
        "HloModule m, entry_computation_layout={(f32[4,3]{1,0})->f32[4,3]{1,0}}\n\nENTRY %e (p: f32[4,3]) -> f32[4,3] {\n"
        "  %p = f32[4,3]{1,0} parameter(0)\n  ROOT %n = f32[4,3]{1,0} negate(%p)\n}\n"
    )
    module = hlo.parse(text)
    rewrite.change_shape(module.entry.parameters[0], hlo.parse_shape("f32[4,3]{0,1}"))
    assert "{(f32[4,3]{0,1})->" in str(module).splitlines()[0]


def test_a_changed_sharding_takes_shardys_note_with_it() -> None:
    """Two notes of one thing: the attribute of Shardy would contradict the sharding."""
    text = (
        "HloModule m, num_partitions=2\n\nENTRY e {\n  p = f32[4] parameter(0), sharding={replicated}, "
        'frontend_attributes={a="b",xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{}]>]>"}\n'
        "  ROOT n = f32[4] negate(p)\n}\n"
    )
    module = hlo.parse(text)
    module.entry["p"].attributes["sharding"] = "{devices=[2]<=[2]}"
    assert dict(module.entry["p"].frontend_attributes) == {"a": "b"}
    module = hlo.parse(text)
    del module.entry["p"].attributes["sharding"]
    assert dict(module.entry["p"].frontend_attributes) == {"a": "b"}


# ---- records


def test_the_record_of_a_transaction(module: hlo.Module) -> None:
    entry = module.entry
    call = entry["c"]
    with module.transaction() as record:
        b = rewrite.Builder.before(call)
        new = b.add(entry["a"], entry["y"])
        gone = b.negate(new)
        gone.erase()
        call.replace_with(new)
        assert record.removed == (call,)
    assert record.inserted == (new,)
    assert entry["f"] in record.modified
    assert not record.changed_header
    record.undo()
    assert str(module) == TEXT
    assert integrity.problems(module) == []
    with pytest.raises(hlo.EditError, match="edited since"):
        record.undo()


def renamed(instruction: hlo.Instruction) -> None:
    instruction.name = "second"
    raise ZeroDivisionError


def test_transactions_nest_and_an_exception_takes_back_what_was_done_inside(module: hlo.Module) -> None:
    with module.transaction():
        module.entry["a"].name = "first"
        with pytest.raises(ZeroDivisionError), module.transaction():
            renamed(module.entry["first"])
        assert "first" in module.entry
        assert "second" not in module.entry
    assert str(module) == TEXT.replace("%a ", "%first ").replace("%a)", "%first)").replace("%a,", "%first,")


def test_types_need_to_fit_at_the_end_of_a_transaction(module: hlo.Module) -> None:
    a, b = module.entry["a"], module.entry["b"]
    with module.transaction():
        b.change(shape="f32[4,9]{1,0}", attributes={"dimensions": (1,)}, typed=False)
        b.change(attributes={"dimensions": (0,)}, typed=False)
    before = str(module)
    with pytest.raises(hlo.EditError, match="produces"), module.transaction():
        a.change(shape="f32[5]{0}", typed=False)
    assert str(module) == before
    with pytest.raises(hlo.EditError, match="add produces"):
        a.change(shape="f32[5]{0}", typed=False)
    x, y = module.entry.parameters
    with module.transaction():
        x.parameter_number, y.parameter_number = 1, 0
    assert module.entry.parameters == (y, x)


class Heard:
    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def inserted(self, node: Any) -> None:
        self.events.append(("inserted", node.name))

    def modified(self, node: Any) -> None:
        self.events.append(("modified", node.name))

    def removed(self, node: Any) -> None:
        self.events.append(("removed", node.name))


def test_listeners_hear_of_each_edit_and_of_its_contrary(module: hlo.Module) -> None:
    heard = Heard()
    with module.listen(heard):
        with pytest.raises(ZeroDivisionError), module.transaction():
            renamed(rewrite.Builder.before(module.entry["c"]).negate(module.entry["a"]))
        assert ("inserted", "negate") in heard.events
        assert heard.events[-1] == ("removed", "negate")
        with pytest.raises(hlo.EditError):
            module.entry["a"].shape = "s32[4]"
        count = len(heard.events)
        module.entry["a"].attributes["metadata"] = '{op_name="q"}'
        assert heard.events[count:] == [("modified", "a")]
    module.entry["b"].erase()
    assert len(heard.events) == count + 1


# ---- what an edit costs


def called(edit: Callable[[], None]) -> tuple[int, int]:
    """How many functions of hlotext, in how many files, an edit runs through."""
    seen: set[tuple[str, str, int]] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and "hlotext" in code.co_filename and "tests" not in code.co_filename:
            seen.add((code.co_filename, code.co_name, code.co_firstlineno))

    sys.setprofile(note)
    try:
        edit()
    finally:
        sys.setprofile(None)
    return len(seen), len({name for name, _, _ in seen})


VALUES: list[tuple[str, str, object, object]] = [
    ("b", "dimensions", (0,), [0]),
    ("a", "metadata", hlo.parse(TEXT).entry["a"].metadata, '{op_name="q"}'),
    ("a", "sharding", "{replicated}", "{devices=[2]<=[2]}"),
    ("a", "backend_config", "x", "y"),
    ("a", "frontend_attributes", FrontendAttributes({"a": "b"}), FrontendAttributes({"a": "c"})),
]


@pytest.mark.parametrize(("name", "attribute", "one", "other"), VALUES, ids=lambda value: str(value)[:20])
def test_an_attribute_edit_is_short(
    module: hlo.Module, name: str, attribute: str, one: object, other: object
) -> None:
    """At most 30 functions in 8 files, on a module that was edited before."""
    instruction = module.entry[name]
    for value in (one, other, one):
        instruction.attributes[attribute] = value
    functions, files = called(lambda: instruction.attributes.__setitem__(attribute, other))
    assert functions <= 30
    assert files <= 8


def wide(count: int) -> hlo.Module:
    lines = [f"  c.{n} = f32[4] iota(), iota_dimension=0\n" for n in range(count)]
    shapes, names = ", ".join(["f32[4]"] * count), ", ".join(f"c.{n}" for n in range(count))
    return hlo.parse(f"HloModule w\n\nENTRY e {{\n{''.join(lines)}  ROOT t = ({shapes}) tuple({names})\n}}\n")


def steps(edit: Callable[[], None]) -> int:
    """Lines of Python that an edit runs through: unlike time, the same on every machine."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return note

    sys.settrace(note)
    try:
        edit()
    finally:
        sys.settrace(None)
    return count


def test_the_operands_of_a_wide_tuple_are_replaced_in_linear_time() -> None:
    """As told by the lines that run; what copies the operands themselves is one step of C."""

    def run(count: int) -> int:
        module = wide(count)
        root = module.entry.root
        operands = root.operands

        def replace() -> None:
            for number in range(count):
                root.replace_operand(number, operands[number - 1])

        return steps(replace)

    assert run(400) < 5 * run(100)


# ---- random edits


@pytest.mark.parametrize("is_lazy", [False, True])
def test_random_edits_with_right_and_wrong_values(is_lazy: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """The command, on the smaller modules of the corpus."""
    arguments = [str(support.CORPUS), "--count", "300", "--size", "5000", *["--lazy"][:is_lazy]]
    assert fuzz.main(arguments) == 0, capsys.readouterr().out


def test_a_single_op_line_beside_a_computation() -> None:
    """It stands in a computation of its own then, with what it takes as parameters, so that all can be read again."""
    module = hlo.parse("ROOT r = f32[4]{0} add(f32[4]{0} x, f32[4]{0} y)")
    made = hlo.Computation("made")
    made.add(hlo.Instruction("p", "parameter", module.entry.root.shape, (), {}, 0))
    module.add(made)
    again = hlo.parse(str(module))
    assert [i.opcode for i in again.entry] == ["parameter", "parameter", "add"]
    assert {c.name for c in again.computations} == {"made", again.entry.name}


LINES = (
    'ROOT r = f32[4] custom-call(f32[4] x), custom_call_target="a"',
    '  f32[4] custom-call(f32[4] %x), custom_call_target="a"  // why',
    'r = f32[4] custom-call(x), custom_call_target="a"',
    '%_ = f32[4]{0} custom-call(f32[4]{0} %x), custom_call_target="a"\n',
)


@pytest.mark.parametrize("line", LINES)
def test_an_edited_op_line_stays_one(line: str) -> None:
    """As long as it can say all."""
    module = hlo.parse(line)
    module.entry.root.attributes["custom_call_target"] = "b"
    wanted = (
        line.replace('"a"', '"b"') if line.startswith("%") else line.replace('"a"', '"b"').replace("%", "")
    )
    assert str(module) == wanted
    module.entry.parameters[0].name = "y"
    assert str(module) == wanted.replace("x)", "y)")


def test_an_op_line_that_takes_more_to_say_becomes_a_module() -> None:
    module = hlo.parse("r = f32[4] negate(f32[4] x)")
    module.name = "m"
    again = hlo.parse(str(module))
    assert again.name == "m"
    assert [i.opcode for i in again.entry] == ["parameter", "negate"]
    module = hlo.parse("r = f32[4] negate(x)")
    with pytest.raises(hlo.EditError, match="x has no type"):
        module.name = "m"
    assert str(module) == "r = f32[4] negate(x)"
    module.entry.parameters[0].shape = hlo.parse_shape("f32[4]")
    assert str(module) == "r = f32[4] negate(f32[4] x)"
    line = "r = f32[4] fusion(f32[4] x), kind=kLoop, calls=body"
    module = hlo.parse(line)
    with pytest.raises(hlo.EditError, match="r refers to body, which is missing"):
        module.name = "m"
    assert str(module) == line
