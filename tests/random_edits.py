"""Random edits of a module, each of which either happens or is refused and changes nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs

import hlotext as hlo
from hlotext.edit import integrity, parameters
from hlotext.edit.cloning import clone_computation, clone_instruction
from hlotext.edit.values import shaped
from hlotext.ir.nodes import compare
from hlotext.ir.nodes.module import ENTRY_LAYOUT
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.attributes import HEADER_ATTRIBUTES
from hlotext.ir.tables.opcode import AttributeUse, Derived, Printing
from hlotext.ir.values.configs import BackendConfig, FrontendAttributes
from hlotext.ir.values.frames import FileLocation, FrameRow, StackFrameIndex
from hlotext.ir.values.raw_value import value_text
from hlotext.ir.values.shape import ComputationLayout, Shape
from hlotext.ir.values.sharding import Sharding
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.outlining import inline, outline
from hlotext.rewrite.passes import DeadCodeElimination
from hlotext.rewrite.passes.cleanup.dce import remove_unreached
from hlotext.rewrite.propagation import change_shape
from hlotext.semantics.facts import facts_of
from hlotext.syntax.printing.attributes import _derived
from hlotext.verify import verify
from hlotext.verify.survey import Survey

FRAMES = StackFrameIndex(("model.py",), ("main",), (FileLocation(1, 1, 2, 3, 4, 5),), (FrameRow(1, 0),))


class Editor:
    """Makes random edits of one module; all choices come from a seed."""

    def __init__(self, module: hlo.Module, seed: int) -> None:
        self.module = module
        self.random = random.Random(seed)
        self.happened: list[str] = []

    def any_instruction(self, opcode: str | None = None) -> hlo.Instruction:
        found = [i for i in self.module.instructions() if opcode in (None, i.opcode)]
        return self.random.choice(found or list(self.module.instructions()))

    def any_computation(self) -> hlo.Computation:
        return self.random.choice(self.module.computations)

    def any_caller(self) -> hlo.Instruction | None:
        callers = [
            i for i in self.module.instructions() if isinstance(i.attributes.get("to_apply"), hlo.Computation)
        ]
        return self.random.choice(callers) if callers else None

    def neighbours(self) -> tuple[hlo.Instruction, hlo.Instruction]:
        computation = self.any_computation()
        return self.random.choice(computation.instructions), self.random.choice(computation.instructions)

    # ---- the edits

    def rename(self) -> None:
        self.any_instruction().name = f"renamed.{self.random.randrange(40)}"

    def rename_computation(self) -> None:
        computation = self.any_computation()
        if not computation.is_inline and not computation.is_sugared:
            computation.name = f"computation.{self.random.randrange(20)}"

    def insert_copy(self) -> None:
        instruction = self.any_instruction()
        instruction.replace_all_uses_with(Builder.after(instruction).copy(instruction))

    def insert_negation(self) -> None:
        instruction = self.any_instruction()
        users = instruction.users
        negated = Builder.after(instruction).negate(instruction)
        for user in users:
            user.change(
                operands=[negated if operand is instruction else operand for operand in user.operands]
            )

    def replace_uses(self) -> None:
        old, new = self.neighbours()
        old.replace_all_uses_with(new)

    def replace_uses_by_like(self) -> None:
        """As `replace_uses`, with a far better chance to fit."""
        old = self.any_instruction()
        assert old.computation is not None
        shapes = [i for i in old.computation if str(i.shape) == str(old.shape)]
        old.replace_all_uses_with(self.random.choice(shapes))

    def replace_operand(self) -> None:
        user, new = self.neighbours()
        if user.operands:
            user.replace_operand(self.random.randrange(len(user.operands)), new)

    def replace_with(self) -> None:
        old, new = self.neighbours()
        old.replace_with(new)

    def erase(self) -> None:
        self.any_instruction().erase()

    def erase_dead(self) -> None:
        dead = [
            i for i in self.module.instructions()
            if not (i.users or i.is_root or i.control_successors or i.opcode == "parameter")
        ]  # fmt: skip
        for instruction in dead:
            instruction.erase()

    def move(self) -> None:
        one, other = self.neighbours()
        one.move_before(other)

    def clone(self) -> None:
        clone_instruction(self.any_instruction())

    def clone_callee(self) -> None:
        caller = self.any_caller()
        if caller is not None:
            caller.attributes["to_apply"] = clone_computation(caller.attributes["to_apply"])

    def call_another(self) -> None:
        caller = self.any_caller()
        if caller is not None:
            caller.attributes["to_apply"] = self.any_computation()

    def outline(self) -> None:
        computation = self.any_computation()
        count = self.random.randrange(1, 6)
        start = self.random.randrange(len(computation))
        outline(computation.instructions[start : start + count], "outlined")

    def inline(self) -> None:
        inline(self.any_instruction(self.random.choice(("call", "fusion"))))

    def drop_metadata(self) -> None:
        self.any_instruction().attributes.pop("metadata", None)

    def depend(self) -> None:
        one, other = self.neighbours()
        one.attributes["control-predecessors"] = (other,)

    def undepend(self) -> None:
        self.any_instruction().attributes.pop("control-predecessors", None)

    def new_root(self) -> None:
        computation = self.any_computation()
        computation.root = self.random.choice(computation.instructions)

    def change_attribute(self) -> None:
        instruction = self.any_instruction(
            self.random.choice(("broadcast", "reduce", "concatenate", "reverse"))
        )
        if "dimensions" in instruction.attributes:
            instruction.attributes["dimensions"] = (self.random.randrange(2),)

    def change_opcode(self) -> None:
        self.any_instruction().opcode = self.random.choice(("sine", "add", "negate", "tuple"))

    def change_shape(self) -> None:
        parameter = self.any_instruction("parameter")
        if parameter.shape is not None:
            longer = Shape(parameter.shape.element_type, (*parameter.shape.dimensions, 2))
            change_shape(parameter, longer)

    def retype(self) -> None:
        instruction = self.any_instruction()
        if instruction.shape is not None:
            instruction.shape = Shape(instruction.shape.element_type, (2, 3))

    def remove_parameter(self) -> None:
        computation = self.any_computation()
        if computation.parameters:
            parameters.remove_parameter(computation, self.random.randrange(len(computation.parameters)))

    def add_parameter(self) -> None:
        computation = self.any_computation()
        shape = self.any_instruction().shape
        if shape is not None:
            parameters.add_parameter(computation, shape, value=lambda caller: caller.operands[0])

    def use_root(self) -> None:
        """What stands behind the root, and is none."""
        root = self.any_computation().root
        Builder.after(root).copy(root)

    def add_computation(self) -> None:
        """At the end of the module, or before another computation."""
        before = self.random.choice((None, self.any_computation()))
        shape = self.any_instruction().shape
        if shape is not None and shape.is_array:
            builder = Builder.new(self.module, "added", [shape], before)
            builder.finish(builder.copy(builder.computation.parameters[0]))

    def remove_computation(self) -> None:
        unused = [c for c in self.module.computations if not (c.calls or c.is_entry)]
        self.module.remove(self.random.choice(unused) if unused else self.any_computation())

    def new_entry(self) -> None:
        self.module.set_entry(self.any_computation())

    def new_thread(self) -> None:
        self.any_computation().execution_thread = self.random.choice(("main", "other", "host"))

    def rename_module(self) -> None:
        self.module.name = f"module.{self.random.randrange(20)}"

    def change_header(self) -> None:
        name = self.random.choice(("num_partitions", "replica_count"))
        self.module.attributes[name] = self.random.randrange(1, 9)

    def shorten_header(self) -> None:
        if self.module.attributes:
            del self.module.attributes[self.random.choice(list(self.module.attributes))]

    def change_frames(self) -> None:
        self.module.stack_frames = self.random.choice((StackFrameIndex(), FRAMES))

    def transaction(self) -> None:
        with self.module.transaction():
            self.edit()
            self.edit()

    def undone_transaction(self) -> None:
        before = str(self.module)
        with self.module.transaction() as record:
            self.edit()
            self.edit()
        record.undo()
        assert str(self.module) == before

    def failing_transaction(self) -> None:
        before = str(self.module)
        try:
            with self.module.transaction():
                self.edit()
                self.edit()
                raise KeyError
        except KeyError:
            assert str(self.module) == before

    # ---- running them

    EDITS: tuple[Callable[[Editor], None], ...]

    def edit(self) -> None:
        """One random edit; one that is refused must leave the text as it was."""
        chosen = self.random.choice(self.EDITS)
        before = str(self.module)
        try:
            chosen(self)
        except (hlo.EditError, IndexError):
            if chosen not in COMPOSED:
                assert str(self.module) == before, f"{chosen.__name__} was refused and changed something"
        else:
            self.happened.append(chosen.__name__)


COMPOSED = (
    Editor.insert_copy, Editor.insert_negation, Editor.erase_dead, Editor.failing_transaction, Editor.transaction,
    Editor.undone_transaction, Editor.add_computation,
)  # fmt: skip
"""Edits of several steps, of which the first may happen and a later one be refused."""

Editor.EDITS = tuple(
    getattr(Editor, name)
    for name, value in vars(Editor).items()
    if callable(value)
    and not name.startswith("_")
    and name not in ("edit", "any_instruction", "any_computation", "any_caller", "neighbours")
)


DEAD_IN_A_FUSION = frozenset({"V307", "V308"})
"""What is wrong with code in a fusion that nothing uses."""


@attrs.frozen
class Before:
    """What `verify` says of a module before it is edited."""

    found: Counter[str]
    """How often it finds what, codes of errors alone."""
    mixed_precision: bool
    """Whether precisions may mix; not found out again, since an edit may take the last tiled layout away."""

    @classmethod
    def of(cls, module: hlo.Module) -> Before:
        mixed = facts_of(module, Survey.of(module).shapes, None, None).mixed_precision
        return cls(_codes(verify(module, mixed_precision=mixed)), mixed)

    def new(self, module: hlo.Module, allowed: frozenset[str] = frozenset()) -> list[str]:
        """What is wrong with the module and was not, but for some codes."""
        found = verify(module, mixed_precision=self.mixed_precision)
        new = {code for code in _codes(found) - self.found if code not in allowed}
        return [str(d) for d in found if d.code in new]


def _codes(found: list[hlo.Diagnostic]) -> Counter[str]:
    return Counter(d.code for d in found if d.severity is hlo.Severity.ERROR)


def check(module: hlo.Module, before: Before) -> None:
    """What must hold after every edit: a sound graph, nothing new for `verify`, a text that reads back equal.

    An edit may leave code that nothing uses, in a fusion or as a computation without callers; nothing is wrong with the
    module once that is taken out, and nothing else before.
    """
    assert not (wrong := integrity.problems(module)), wrong
    swept = module.clone()
    remove_unreached(swept)
    assert not (wrong := before.new(swept, DEAD_IN_A_FUSION)), wrong
    DeadCodeElimination().run(swept)
    assert not (wrong := integrity.problems(swept)), wrong
    assert not (wrong := before.new(swept)), wrong
    places = {computation: place for place, computation in enumerate(module.computations)}
    for caller in module.computations:  # XLA's reader knows a computation only from its definition on
        assert all(places[callee] < places[caller] for i in caller for callee in i.called_computations)
    text = str(module)
    again = hlo.parse(text)
    if ENTRY_LAYOUT not in module.attributes:  # a header that is printed anew shows the layout that follows
        again.attributes.pop(ENTRY_LAYOUT, None)
    difference = compare.difference(without_defaults(module), without_defaults(again))
    assert difference is None, difference


def _is_default(use: AttributeUse, value: Any, instruction: hlo.Instruction) -> bool:
    if isinstance(use.default, Derived) and use.printed is Printing.IF_NOT_DEFAULT:
        return bool(value == _derived(use, instruction))
    if use.printed is Printing.INPUT_ONLY or (value is not None and str(value) in ("", "{}", "()", '""')):
        return True
    if use.printed is Printing.IF_ANY_NOT_DEFAULT and isinstance(value, tuple):
        return all(entry == use.default for entry in value)
    return use.default is not None and use.default == value


def _sorted(notes: FrontendAttributes) -> FrontendAttributes:
    # A blank around braces is printed without the quotes that keep it.
    return FrontendAttributes({key: notes[key].strip() for key in sorted(notes)})


def without_defaults(module: hlo.Module) -> hlo.Module:
    """A copy without attributes that say what their absence says, and with the layout that an absent one stands for."""
    copy = module.clone()
    copy._attributes = {
        name: value
        for name, value in module.attributes.items()
        if not (name in HEADER_ATTRIBUTES and value == HEADER_ATTRIBUTES[name].default)
        and value_text(value).strip("{} \n")
    }
    layout = copy._attributes.get(ENTRY_LAYOUT)
    if isinstance(layout, ComputationLayout):
        parameters = tuple(shape.with_default_layout() for shape in layout.parameter_shapes)
        copy._attributes[ENTRY_LAYOUT] = ComputationLayout(
            parameters, layout.result_shape.with_default_layout()
        )
    if isinstance(notes := copy._attributes.get("frontend_attributes"), FrontendAttributes):
        copy._attributes["frontend_attributes"] = _sorted(notes)
    for computation in copy._computations:
        if computation.is_sugared:  # nobody has written its name
            computation._name = ""
    for instruction in copy.instructions():
        row = opcodes.opcode(instruction.opcode)
        instruction._attributes = dict(instruction._attributes)
        if row is not None:
            uses = opcodes.allowed_attributes(row)
            instruction._attributes = {
                name: value
                for name, value in instruction._attributes.items()
                if name not in uses or not _is_default(uses[name], value, instruction)
            }
        if instruction.opcode == "map":  # printed as its operands say, whatever it says itself
            instruction._attributes.pop("dimensions", None)
        notes = instruction._attributes.get("frontend_attributes")
        if isinstance(notes, FrontendAttributes):  # printed sorted
            instruction._attributes["frontend_attributes"] = _sorted(notes)
        config = instruction._attributes.get("backend_config")
        if isinstance(
            config, BackendConfig
        ):  # a blank behind its brace is printed without the quotes that keep it
            instruction._attributes["backend_config"] = BackendConfig(config.text.strip())
        if instruction.shape is not None and isinstance(instruction.sharding, Sharding):
            whole = instruction.sharding.for_shape(instruction.shape)
            instruction._attributes["sharding"] = whole.canonical() if hasattr(whole, "canonical") else whole
        for name, value in instruction._attributes.items():
            if isinstance(value, Shape):
                instruction._attributes[name] = value.with_default_layout()
        if instruction.shape is not None:
            instruction._shape = instruction.shape.with_default_layout()
            if instruction.literal is not None:
                instruction._argument = shaped(instruction.literal, instruction._shape)
    return copy
