"""Layout assignment: constraints with priorities, spread from where they are demanded to their neighbours.

What is demanded (the program's arguments and results, what operations of a backend can work with) becomes constraints on
arrays and on operands. A worklist spreads them, depth first: an operand's layout to the array that it is, an array's to what
reads it and to what it is made of. What nothing reaches gets the default layout, and that is spread too. Two rounds: loops
and branches learn in the second what their callers found in the first (`LayoutAssignment`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from hlotext import layout as layouts
from hlotext.analysis import arrays_of
from hlotext.compiler.creation_order import CreationOrder, long_sizes
from hlotext.compiler.layout_values import (
    MOST_CHANGES,
    Buffer,
    BufferConstraint,
    Constraint,
    Index,
    Interface,
    OperandConstraint,
    Order,
    Orders,
    Sources,
    aliases_of,
    at_most_rank_1,
    default_orders,
    order_of,
    orders_of,
    without,
)
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import ComputationLayout, Layout, Shape
from hlotext.layout.permutations import descending, inverse
from hlotext.memory.value_sets import shape_of
from hlotext.semantics.message_text import index_text

DEFAULT, BEGINNING, GIVEN = -2, 0, 3
"""Priorities: of nothing, of the first round, of what the program's interface says (`LayoutConstraint`)."""
ROUNDS = 2
_WIDE = 16
"""Operands from which on it is remembered where each stands."""

KEEPS_LAYOUT = traits.KEEPS_LAYOUT
"""Opcodes that need operands of the result's rank to lie as the result does (`InstructionCanChangeLayout` is false)."""

CONSTRAINED_COLLECTIVES = "constrain_layout"


class Backend(Protocol):
    """Interface of backend-specific layout rules."""

    def constrain(self, engine: ConstraintSolver, interface: Interface) -> None:
        """Adds the layout constraints of the backend's operations (`AddBackendConstraints`)."""

    def reduces_rows(self, reduce: Instruction) -> bool:
        """Returns True if a reduction should reduce minor dimensions (`PropagateReductionLayoutToOperand`)."""


class ConstraintSolver:
    """Solves the layout constraints of one module."""

    def __init__(self, module: Module, computations: list[Computation], backend: Backend) -> None:
        self._module = module
        self.computations = computations
        self._backend = backend
        self.sources = Sources(module, computations)
        self.interfaces: dict[Computation, Interface] = {}
        self.mismatched: dict[Computation, Interface] = {}
        """Branches whose results must be laid out anew to fit those of another branch."""
        self.priority = BEGINNING
        self._ages = CreationOrder(computations)
        self._added: list[Constraint] = []
        self._open: set[Buffer] = set()
        self._wide: dict[Instruction, tuple[tuple[Instruction, ...], dict[Instruction, list[int]]]] = {}
        """Operands of instructions with many of them, and where each stands."""
        self._flat: dict[Instruction, bool] = {}
        self._first: dict[Computation, Instruction] = {}
        self._buffers: dict[Computation, list[Buffer]] = {}
        for buffer in self.sources.buffers:
            assert buffer.instruction.computation is not None
            self._buffers.setdefault(buffer.instruction.computation, []).append(buffer)

    def run(self) -> None:
        """Determines the layout of every array."""
        entry = self._module.entry
        given = self._module.attributes.get("entry_computation_layout")
        self.interfaces[entry] = _entry_interface(entry, given)
        for _ in range(ROUNDS):
            self._forget()
            for computation in self.computations:
                self._computation(self.interface(computation))
            self.priority += 1

    def interface(self, computation: Computation) -> Interface:
        """Returns the known layouts of a computation's parameters and result."""
        if computation not in self.interfaces:
            parameters = [default_orders(shape_of(p)) for p in computation.parameters]
            result = default_orders(shape_of(computation.root))
            self.interfaces[computation] = Interface(computation, parameters, result, DEFAULT)
        return self.interfaces[computation]

    def vector(self, computation: Computation) -> list[Instruction]:
        """Returns the instructions in XLA's internal order, as far as the text shows it."""
        return self._ages.vector(computation)

    def order(self, i: Instruction, index: Index = ()) -> Order:
        """Returns the dimension order chosen for an array (`InferArrayLayout`)."""
        constraint = self.sources.of(i)[index].constraint
        assert constraint is not None
        return constraint.order

    def _forget(self) -> None:
        for interface in self.interfaces.values():
            interface.operands.clear()
        for buffer in self.sources.buffers:
            buffer.constraint = None

    def _computation(self, interface: Interface) -> None:
        """`RunOnComputation`."""
        own = self._buffers.get(interface.computation, [])
        self._open = set(own)
        self._demand(interface)
        self._backend.constrain(self, interface)
        for i in interface.computation.instructions:
            self._constrain_custom_call(i)
        self._spread(interface)
        for buffer in own:
            if buffer in self._open:
                i = buffer.instruction
                order = (
                    order_of(shape_of(i).subshape(buffer.index))
                    if i.opcode == "constant"
                    else descending(buffer.rank)
                )
                self.set_buffer(order, buffer, False, True, self.priority, "nothing requires another layout")
                self._spread(interface)
        self._summarize(interface)

    # ---- setting constraints

    def set_buffer(
        self, order: Order, buffer: Buffer, mandatory: bool, dfs: bool, priority: int, because: str
    ) -> None:
        """Adds a constraint on an array (`SetBufferLayout`)."""
        self._open.discard(buffer)
        known = buffer.constraint
        if known is None:
            known = buffer.constraint = BufferConstraint(buffer, order, mandatory, dfs, priority, because)
        elif not _update(known, order, mandatory, dfs, priority, because) or buffer.rank <= 1:
            return
        self._push(known)
        for alias in aliases_of(buffer.instruction):
            if alias.output_shape_index == buffer.index and not alias.operand_shape_index:
                self.set_operand(
                    {(): order}, buffer.instruction, alias.operand_index, because,
                    mandatory=mandatory, dfs=dfs, priority=priority,
                )  # fmt: skip

    def set_operand(
        self, orders: Orders, i: Instruction, number: int, because: str, *, mandatory: bool = True, dfs: bool = True,
        priority: int | None = None,
    ) -> None:  # fmt: skip
        """Adds a constraint on an operand (`SetOperandLayout`)."""
        shape = shape_of(i.operands[number])
        if shape.is_array and not shape.rank:
            return
        wanted = self.priority if priority is None else priority
        if (i.opcode == "dynamic-update-slice" and number > 0 and not mandatory and wanted > DEFAULT) or (
            i.opcode == "reshape" and not mandatory and i.operands[0].opcode == "dynamic-slice"
        ):
            dfs, wanted = False, wanted - 1
        assert i.computation is not None
        operands = self.interface(i.computation).operands
        known = operands.get((i, number))
        if known is None:
            known = operands[i, number] = OperandConstraint(
                i, number, orders, mandatory, dfs, wanted, because
            )
        else:
            if known.orders == orders or not mandatory or known.priority > wanted:
                return
            known.orders, known.is_mandatory, known.is_dfs = orders, mandatory, dfs
            known.priority, known.because = wanted, because
        self._push(known)

    def set_instruction(
        self, orders: Orders, i: Instruction, because: str, *, mandatory: bool = True, dfs: bool = True,
    ) -> None:  # fmt: skip
        """Adds a constraint on a result, and on operands if the opcode keeps layouts (`SetInstructionLayout`)."""
        for index, buffer in self.sources.of(i).items():
            if index in orders:
                self.set_buffer(orders[index], buffer, mandatory, dfs, self.priority, because)
        shape = shape_of(i)
        if shape.is_array and i.opcode not in ("while", "conditional") and i.opcode in KEEPS_LAYOUT:
            for number, operand in enumerate(i.operands):
                if _rank(operand) == shape.rank:
                    self.set_operand({(): orders[()]}, i, number, because, mandatory=mandatory, dfs=dfs)

    def _push(self, constraint: Constraint) -> None:
        """Depth first to the end, all others before what has a lower priority (`PushAddedConstraints`)."""
        if constraint.is_dfs:
            self._added.append(constraint)
            return
        place = len(self._added)
        while place and constraint.priority > self._added[place - 1].priority:
            place -= 1
        self._added.insert(place, constraint)

    # ---- what is demanded

    def _demand(self, interface: Interface) -> None:
        """`AddMandatoryConstraints`."""
        computation = interface.computation
        is_entry = computation is self._module.entry
        for i in computation.instructions:
            if i.opcode == "infeed":
                self.set_instruction(orders_of(shape_of(i)), i, "an infeed has the layout of its shape")
            elif i.opcode == "parameter":
                if is_entry or (computation not in self.mismatched and interface.has_parameters):
                    assert i.parameter_number is not None
                    why = (
                        "the entry computation layout fixes this parameter"
                        if is_entry
                        else f"callers of {computation.name} pass this layout"
                    )
                    self.set_instruction(interface.parameters[i.parameter_number], i, why)
            elif i.attributes.get(CONSTRAINED_COLLECTIVES) is True:
                self._keep_collective(i)
        for i in computation.instructions:
            self._demand_of_callee(i)
        if computation in self.mismatched:
            interface.result = dict(self.mismatched[computation].result)
            interface.has_result = True
            interface.priority = self.priority + ROUNDS
            self._push(interface)
        elif is_entry or (self.priority > BEGINNING and interface.has_result):
            self._push(interface)

    def _keep_collective(self, i: Instruction) -> None:
        orders = orders_of(shape_of(i))
        self.set_instruction(orders, i, "the collective has constrain_layout=true")
        for number in range(len(i.operands)):
            wanted = orders[()] if () in orders else orders.get((number,))
            if wanted is not None:
                self.set_operand({(): wanted}, i, number, "the collective has constrain_layout=true")

    def _demand_of_callee(self, i: Instruction) -> None:
        callees = i.called_computations
        if i.opcode not in traits.CONTROL_FLOW or callees[0] not in self.interfaces:
            return
        if i.opcode == "call":
            interface = self.interface(callees[0])
            why = f"{callees[0].name} uses this layout"
            self.set_instruction(interface.result, i, why)
            for number, orders in enumerate(interface.parameters):
                self.set_operand(orders, i, number, why)
        elif i.opcode == "while":
            self._demand_of_loop(i)
        else:
            self._demand_of_branches(i)

    def _demand_of_loop(self, loop: Instruction) -> None:
        """State, parameter and result of a body lie alike, by what the body gives."""
        body = self.interface(loop.attributes["body"])
        condition = self.interface(loop.attributes["condition"])
        if body.result != body.parameters[0]:
            body.parameters[0] = dict(body.result)
            self._fix(body)
        if condition.parameters[0] != body.parameters[0]:
            condition.parameters[0] = dict(body.parameters[0])
            self._fix(condition)
        why = f"body {body.computation.name} returns its state in this layout"
        self.set_operand(dict(body.result), loop, 0, why)
        self.set_instruction(dict(body.result), loop, why)

    def _fix(self, interface: Interface) -> None:
        interface.priority = self.priority + ROUNDS
        interface.has_parameters = interface.has_result = True

    def _demand_of_branches(self, conditional: Instruction) -> None:
        """All branches give what the one with most instructions gives."""
        branches = list(conditional.called_computations)
        sizes = [
            len(branch) if any(True for _ in shape_of(conditional.operands[n + 1]).leaves()) else 0
            for n, branch in enumerate(branches)
        ]
        largest = max(range(len(branches)), key=lambda n: (sizes[n], -n))
        best = self.interface(branches[largest])
        why = f"the largest branch, {best.computation.name}, uses this layout"
        for number, branch in enumerate(branches):
            interface = self.interface(branch)
            if interface.result != best.result:
                if branch not in self.mismatched:
                    other = Interface(branch, interface.parameters, dict(best.result), interface.priority)
                    self.mismatched[branch] = other
            else:
                self.set_operand(dict(interface.parameters[0]), conditional, number + 1, why)
        self.set_operand(dict(best.parameters[0]), conditional, largest + 1, why)
        self.set_instruction(dict(best.result), conditional, why)

    def _constrain_custom_call(self, i: Instruction) -> None:
        wanted = i.attributes.get("operand_layout_constraints")
        if i.opcode != "custom-call" or wanted is None:
            return
        why = "the custom call fixes its layouts"
        for index, buffer in self.sources.of(i).items():
            self.set_buffer(order_of(shape_of(i).subshape(index)), buffer, True, True, self.priority, why)
        for number, operand in enumerate(i.operands):
            if number < len(wanted) and not self.sources.is_handed_on(i, number):
                orders = orders_of(wanted[number])
                self.set_operand(orders, i, number, why)
                if operand.opcode == "copy":
                    self.set_operand(orders, operand, 0, why)

    # ---- spreading

    def _spread(self, interface: Interface) -> None:
        """`PropagateConstraints`."""
        worklist: deque[Constraint] = deque()
        self._take_added(worklist)
        while worklist:
            constraint = worklist.popleft()
            if isinstance(constraint, BufferConstraint):
                self._from_buffer(constraint)
            elif isinstance(constraint, OperandConstraint):
                self._from_operand(constraint)
            else:
                why = (
                    "the entry computation layout fixes this result"
                    if interface.computation is self._module.entry
                    else "callers expect this layout"
                )
                self._to_sources(constraint.result, interface.computation.root, self.priority, why)
            self._take_added(worklist)

    def _take_added(self, worklist: deque[Constraint]) -> None:
        for constraint in self._added:
            if constraint.is_dfs:
                worklist.appendleft(constraint)
            else:
                worklist.append(constraint)
        self._added = []

    def _to_sources(self, orders: Orders, i: Instruction, priority: int, because: str) -> None:
        """`PropagateUseConstraintToDefs`."""
        for index, buffer in self.sources.of(i).items():
            maker = buffer.instruction
            if index in orders and (maker.opcode != "reduce" or not shape_of(maker).is_tuple):
                self.set_buffer(orders[index], buffer, False, True, priority, because)

    def _from_operand(self, constraint: OperandConstraint) -> None:
        """`PropagateOperandConstraint`."""
        operand, user = constraint.operand, constraint.instruction
        shape = shape_of(operand)
        if self._is_flat(operand):
            return
        priority = constraint.priority
        self._to_sources(
            constraint.orders, operand, priority, _via(f"{user.name} needs this layout", constraint.because)
        )
        if user.opcode == "custom-call":
            self._to_aliased_result(constraint)
        if not shape.is_array or user.attributes.get(CONSTRAINED_COLLECTIVES) is True:
            return
        because = _via(f"same layout as its operand {operand.name}", constraint.because)
        if user.opcode == "all-reduce":
            part: Index = () if len(user.operands) == 1 else (constraint.number,)
            result = self.sources.of(user)[part]
            self.set_buffer(constraint.order, result, True, True, self.priority, because)
        keeps = user.opcode in KEEPS_LAYOUT
        if not keeps and not shape_of(user).is_array and user.opcode != "reduce":
            return
        if self.sources.is_handed_on(user, constraint.number):
            return
        if keeps or user.opcode == "reduce":
            self._to_siblings(constraint, because)
            return
        for index, leaf in arrays_of(shape_of(user)):
            if leaf.rank > 1 and self.sources.is_own(user, index):
                order = self.result_order(constraint.order, user, constraint.number)
                if order is not None:
                    given = f"{operand.name} with layout {index_text(constraint.order)}"
                    self.set_buffer(
                        order, self.sources.of(user)[index], user.opcode == "transpose", _is_deep(user), priority,
                        f"it makes the {user.opcode} a bitcast of its operand {given}",
                    )  # fmt: skip

    def _to_siblings(self, constraint: OperandConstraint, because: str) -> None:
        """Other operands and results of the same rank lie alike."""
        operand, user = constraint.operand, constraint.instruction
        rank = shape_of(operand).rank
        if user.opcode == "concatenate":
            along = user.attributes["dimensions"][0]
            own = shape_of(operand).dimensions[along]
            if any(shape_of(o).dimensions[along] > own for o in user.operands if o is not operand):
                return
        for number, sibling in enumerate(user.operands):
            if sibling is not operand and _rank(sibling) == rank:
                why = f"operands of {user.name} share one layout, and {operand.name} has {index_text(constraint.order)}"
                self.set_operand({(): constraint.order}, user, number, why, priority=constraint.priority)
        for index, leaf in arrays_of(shape_of(user)):
            if leaf.rank == rank and self.sources.is_own(user, index):
                buffer = self.sources.of(user)[index]
                self.set_buffer(constraint.order, buffer, True, True, constraint.priority, because)

    def _to_aliased_result(self, constraint: OperandConstraint) -> None:
        user = constraint.instruction
        for alias in aliases_of(user):
            index = alias.output_shape_index
            if alias.operand_index != constraint.number:
                continue
            if () in constraint.orders and self.sources.is_own(user, index):
                buffer = self.sources.of(user)[index]
                self.set_buffer(
                    constraint.order,
                    buffer,
                    False,
                    False,
                    constraint.priority,
                    "it shares its operand's buffer",
                )
            return

    def _from_buffer(self, constraint: BufferConstraint) -> None:
        """`PropagateBufferConstraint`."""
        self._to_operands(constraint)
        self._to_uses(constraint)

    def _to_operands(self, constraint: BufferConstraint) -> None:
        """`PropagateBufferConstraintToOperands`."""
        buffer, order = constraint.buffer, constraint.order
        i = buffer.instruction
        if self._is_flat(i):
            return
        why = _via(f"{i.name} has layout {index_text(order)}", constraint.because)
        if i.opcode == "all-reduce":
            number = 0 if len(i.operands) == 1 else buffer.index[0]
            self.set_operand({(): order}, i, number, why, priority=constraint.priority)
            return
        for number, operand in enumerate(i.operands):
            shape = shape_of(operand)
            if not shape.is_array or shape.rank <= 1:
                continue
            if i.opcode in KEEPS_LAYOUT:
                if shape.rank == len(order):
                    self.set_operand({(): order}, i, number, why)
                elif i.opcode == "bitcast-convert":
                    self.set_operand({(): _converted_order(i, shape)}, i, number, why)
            elif i.opcode == "broadcast":
                kept = i.attributes.get("dimensions", ())
                gone = tuple(d for d in range(shape_of(i).rank) if d not in kept)
                self.set_operand({(): without(order, gone)}, i, number, why, dfs=False)
            elif not buffer.index:
                wanted = self.operand_order(order, i, number)
                if wanted is not None:
                    self.set_operand({(): wanted}, i, number, why, mandatory=False, dfs=_is_deep(i))

    def _to_uses(self, constraint: BufferConstraint) -> None:
        """`PropagateBufferConstraintToUses`."""
        buffer = constraint.buffer
        for alias in buffer.aliases:
            for user in alias.users:
                for number in self._places(user, alias):
                    if not self.sources.is_handed_on(user, number):
                        self.set_operand(
                            {(): constraint.order}, user, number, _via(f"{alias.name} has this layout", constraint.because),
                            mandatory=False, priority=constraint.priority,
                        )  # fmt: skip
        home = buffer.instruction.computation
        callers = home.callers if home is not None else ()
        if home is None or len(callers) != 1 or callers[0].opcode != "while" or home.root.opcode != "tuple":
            return
        if home.root in buffer.instruction.user_view:
            number = self._places(home.root, buffer.instruction)[0]
            state = self.sources.of(self._parameter(home)).get((number, *buffer.index))
            if state is not None:
                why = f"the body returns it as {buffer.instruction.name}, which has this layout"
                self.set_buffer(constraint.order, state, False, True, self.priority, why)

    def _is_flat(self, i: Instruction) -> bool:
        """True if all arrays of an instruction have one dimension at most; asked for each element of a wide tuple in turn."""
        if i not in self._flat:
            self._flat[i] = at_most_rank_1(shape_of(i))
        return self._flat[i]

    def _parameter(self, body: Computation) -> Instruction:
        """The parameter of a loop's body; asked for each element of its state in turn."""
        if body not in self._first:
            self._first[body] = body.parameters[0]
        return self._first[body]

    def _places(self, user: Instruction, operand: Instruction) -> Sequence[int]:
        """Operand numbers at which a value is used; called for each of the thousands of operands of a wide tuple."""
        operands = user.operands
        known = self._wide.get(user)
        if known is None or known[0] is not operands:
            places: dict[Instruction, list[int]] = {}
            for number, other in enumerate(operands):
                places.setdefault(other, []).append(number)
            known = operands, places
            if len(operands) > _WIDE:
                self._wide[user] = known
        return known[1][operand]

    # ---- layouts that make operations cheap

    def operand_order(self, order: Order, i: Instruction, number: int) -> Order | None:
        """Returns the operand's best order for a result's (`ChooseOperandLayoutFromOutputLayout`); None if any will do."""
        operand, shape = shape_of(i.operands[number]), shape_of(i)
        if i.opcode == "reshape":
            return _aligned(shape, order, operand)
        if i.opcode == "transpose":
            dimensions = i.attributes["dimensions"]
            return tuple(dimensions[d] for d in order)
        if i.opcode == "reduce" and not shape.is_tuple and self._backend.reduces_rows(i):
            reduced = i.attributes.get("dimensions", ())
            kept = [d for d in range(operand.rank) if d not in reduced]
            return (*reversed(reduced), *(kept[d] for d in order))
        return None

    def result_order(self, order: Order, i: Instruction, number: int) -> Order | None:
        """Returns the result's best order for an operand's (`ChooseOutputLayoutFromOperandLayout`); None if any will
        do.
        """
        if i.opcode == "reshape":
            return _aligned(shape_of(i.operands[number]), order, shape_of(i))
        if i.opcode == "transpose":
            places = inverse(i.attributes["dimensions"])
            return tuple(places[d] for d in order)
        return None

    # ---- what callers see

    def _summarize(self, interface: Interface) -> None:
        """The interface as it came out of the first round (`CalculateComputationLayout`)."""
        computation = interface.computation
        if self.priority and computation not in self.mismatched:
            return
        wanted = self.priority + ROUNDS
        if interface.priority >= wanted and computation not in self.mismatched:
            return
        if computation not in self.mismatched:
            interface.result = self._found(computation.root)
        interface.parameters = [self._found(p) for p in computation.parameters]
        interface.priority = wanted
        interface.has_parameters = interface.has_result = True

    def _found(self, i: Instruction) -> Orders:
        return {index: self.order(i, index) for index in self.sources.of(i)}


def _entry_interface(entry: Computation, given: ComputationLayout | None) -> Interface:
    if given is None or len(given.parameter_shapes) != len(entry.parameters):
        parameters = [orders_of(shape_of(p)) for p in entry.parameters]
        return Interface(entry, parameters, orders_of(shape_of(entry.root)), GIVEN, True, True)
    parameters = [orders_of(shape) for shape in given.parameter_shapes]
    result = given.result_shape
    return Interface(entry, parameters, orders_of(result), GIVEN, True, True, result_shape=result)


def _update(
    known: BufferConstraint, order: Order, mandatory: bool, dfs: bool, priority: int, because: str
) -> bool:
    """True if a wish changes what is known of an array (`BufferLayoutConstraint::UpdateLayout`)."""
    if known.order == order:
        changed = (
            (mandatory and not known.is_mandatory) or (dfs and not known.is_dfs) or known.priority < priority
        )
        known.is_mandatory |= mandatory
        known.is_dfs |= dfs
        known.priority = max(known.priority, priority)
        return changed
    if not mandatory:
        is_array = shape_of(known.buffer.instruction).is_array
        if known.changes > MOST_CHANGES or not is_array or priority <= known.priority:
            return False
    known.is_mandatory, known.is_dfs, known.priority = mandatory, dfs, priority
    known.order, known.because = order, because
    known.changes += 1
    return True


def _via(near: str, because: str) -> str:
    """A reason with the one that it comes from in the end; what lies between is left out."""
    return f"{near}: {because.rsplit(': ', 1)[-1]}"


def _rank(i: Instruction) -> int | None:
    """The rank of an array that has more than one dimension; None for all else."""
    shape = shape_of(i)
    return shape.rank if shape.is_array and shape.rank > 1 else None


def _is_deep(i: Instruction) -> bool:
    """True if layouts go through an instruction before all others (`InstructionShouldPropagateDepthFirst`)."""
    if i.opcode in ("gather", "scatter", "transpose"):
        return True
    if i.opcode != "reshape":
        return False
    source, target = shape_of(i.operands[0]), shape_of(i)
    return source.rank == 1 or long_sizes(source) == long_sizes(target)


def _aligned(source: Shape, order: Order, target: Shape) -> Order | None:
    """The order of the other side of a reshape that makes it a bitcast; None if there is none, or it does not matter."""
    if source.true_rank == 1 and target.true_rank == 1:
        return None
    found = layouts.align_layouts(source.with_layout(Layout(order)), target)
    return order_of(found) if found is not None else None


def _converted_order(convert: Instruction, operand: Shape) -> Order:
    """The operand's order where a bitcast-convert adds or removes the minor dimension."""
    shape = shape_of(convert)
    order = order_of(shape)
    if operand.rank < shape.rank:
        return without(order, (shape.rank - 1,))
    return (shape.rank, *order)
