"""The layouts that were found, put into the module: shapes, copies where an operand lies otherwise, the result."""

from __future__ import annotations

from typing import Any

from hlotext.analysis import arrays_of
from hlotext.compiler.decision import Decision
from hlotext.compiler.layout_constraints import ConstraintSolver
from hlotext.compiler.layout_values import Index, Orders, order_of, with_layouts, with_orders
from hlotext.ir.caches import weighted_cache
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Layout, Shape
from hlotext.memory.value_sets import shape_of
from hlotext.rewrite.kit.edits import Editor
from hlotext.semantics.message_text import index_text


@weighted_cache(1 << 12)
def _one(shape: Shape) -> Shape:
    """A shape, the same object for all that are equal: those of wide tuples take long to compare part by part."""
    return shape


_SOURCE = "LayoutAssignment::AssignLayouts"
_COPY = "LayoutAssignment::CopyOperandIfLayoutsDiffer"


class LayoutApplier:
    """Applies assigned layouts to one module."""

    def __init__(self, engine: ConstraintSolver, editor: Editor) -> None:
        self._engine = engine
        self._editor = editor
        self.decisions: list[Decision] = []
        self._made: list[Instruction] = []

    @property
    def copies(self) -> int:
        """Number of copies created."""
        return len(self._made)

    def run(self) -> None:
        """Sets the layout of every array, callees first (`AssignLayouts`)."""
        for computation in self._engine.computations:
            for i in list(computation.instructions):
                self._lay_out(i)
                self._copy_operands(i)
            self._lay_out_result(computation)

    def _lay_out(self, i: Instruction) -> None:
        own = self._engine.sources.of(i)
        shape = shape_of(i)
        found: dict[Index, Layout | None] = {}
        for index, buffer in own.items():
            order = self._engine.order(i, index)
            known = shape_of(buffer.instruction).subshape(buffer.index).layout
            is_kept = buffer.instruction is not i or i.opcode == "parameter"
            found[index] = known if is_kept and known and known.minor_to_major == order else Layout(order)
        wanted = _one(with_layouts(shape, found))
        if wanted != shape:
            i.change(shape=wanted, typed=False)
        for index, buffer in own.items():
            if buffer.instruction is i and buffer.rank > 1 and buffer.constraint is not None:
                place = "".join(f"{{{n}}}" for n in index)
                because = f"{i.name}{place} has layout {index_text(buffer.constraint.order)}: {buffer.constraint.because}"
                self.decisions.append(
                    Decision(i.name, _rule(buffer.constraint.because), because, (), _SOURCE)
                )

    def _copy_operands(self, i: Instruction) -> None:
        assert i.computation is not None
        wishes = self._engine.interface(i.computation).operands
        given = list(i.operands)
        for number, operand in enumerate(i.operands):
            wish = wishes.get((i, number))
            if wish is None or _lies(operand, wish.orders):
                continue
            before = len(self._made)
            if self._copy_in_branch(i, number, wish.orders) is None:
                self._editor.place = i
                given[number] = self._copied(operand, wish.orders)
            self._explain(
                before, "copy", f"{i.name} needs this layout: {wish.because}", (operand.name, i.name)
            )
        if given != list(i.operands):
            i.change(operands=given, typed=False)

    def _explain(self, start: int, rule: str, why: str, others: tuple[str, ...]) -> None:
        """Says of the copies that were just made why they are there."""
        for copy in self._made[start:]:
            given = copy.operands[0]
            orders = f"{index_text(order_of(shape_of(given)))} to {index_text(order_of(shape_of(copy)))}"
            because = f"{copy.name} changes the layout of {given.name} from {orders}: {why}"
            self.decisions.append(Decision(copy.name, rule, because, others, _COPY))

    def _copy_in_branch(self, i: Instruction, number: int, orders: Orders) -> Instruction | None:
        """Copies a value that only one branch of a conditional uses inside that branch, so that others do not pay."""
        operand = i.operands[number]
        if i.opcode != "conditional" or not number or len(operand.users) != 1:
            return None
        branch = i.called_computations[number - 1]
        parameter = branch.parameters[0]
        users = list(parameter.users)
        was_root = parameter.is_root
        parameter.change(shape=shape_of(operand), typed=False)
        following = branch.instructions
        place = branch.order.index(parameter) + 1
        self._editor.place = following[place] if place < len(following) else None
        copy = self._copied(parameter, orders)
        for user in users:
            given = [copy if o is parameter else o for o in user.operands]
            user.change(operands=given, typed=False)
        if was_root:
            branch.root = copy
        return copy

    def _copied(self, i: Instruction, orders: Orders) -> Instruction:
        """A copy with other layouts; of a tuple one of each array that lies otherwise (`CreateCopyWithNewLayout`)."""
        shape = shape_of(i)
        if not shape.is_tuple:
            copy = self._editor.create("copy", with_orders(shape, orders), (i,), **_noted(i))
            self._made.append(copy)
            return copy
        parts = []
        for number, part in enumerate(shape.tuple_shapes):
            own = {index[1:]: order for index, order in orders.items() if index[0] == number}
            agrees = _agree(part, own)
            noted = {} if agrees else _noted(i, number)
            element = self._editor.create("get-tuple-element", part, (i,), index=number, **noted)
            parts.append(element if agrees else self._copied(element, own))
        made = Shape.tuple(tuple(shape_of(part) for part in parts))
        return self._editor.create("tuple", made, parts, **_noted(i))

    def _lay_out_result(self, computation: Computation) -> None:
        interface = self._engine.interface(computation)
        if not interface.has_result:
            return
        root = computation.root
        if not _lies(root, interface.result):
            self._editor.place = None
            before = len(self._made)
            computation.root = self._copied(root, interface.result)
            why = f"the result of {computation.name} must have this layout"
            self._explain(before, "copy of the result", why, (root.name,))
        if interface.result_shape is not None:
            root = computation.root
            given = {index: leaf.layout for index, leaf in arrays_of(interface.result_shape)}
            root.change(shape=with_layouts(shape_of(root), given), typed=False)


def _noted(i: Instruction, number: int | None = None) -> dict[str, Any]:
    """Attributes that a copy of an instruction, or of an element of it, inherits (`SetupCopiedInstruction`)."""
    found: dict[str, Any] = {
        n: i.attributes[n] for n in ("metadata", "frontend_attributes") if n in i.attributes
    }
    sharding = i.sharding
    if sharding is not None and number is not None and sharding.is_tuple:
        elements = sharding.tuple_elements
        plain = all(not part.is_tuple for part in shape_of(i).tuple_shapes) and number < len(elements)
        sharding = elements[number] if plain else None
    if sharding is not None and not (sharding.is_maximal and not sharding.is_tuple):
        found["sharding"] = sharding
    return found


def _lies(i: Instruction, orders: Orders) -> bool:
    return _agree(shape_of(i), orders)


def _agree(shape: Shape, orders: Orders) -> bool:
    return all(orders.get(index, order_of(leaf)) == order_of(leaf) for index, leaf in arrays_of(shape))


def _rule(because: str) -> str:
    """The kind of a reason: what stands before names."""
    for words, rule in _RULES:
        if words in because.split(":")[0]:
            return rule
    return "spread"


_RULES = (
    ("nothing requires", "default"),
    ("fixes this parameter", "entry parameter"),
    ("fixes this result", "entry result"),
    ("bitcast", "bitcast"),
    ("needs this layout", "required by a user"),
    ("same layout as", "same as its operand"),
    ("needs", "required by the backend"),
    ("body", "loop state"),
    ("branch", "branches agree"),
    ("custom call", "custom call"),
)
"""Words of a reason, and the rule that it is counted under."""
