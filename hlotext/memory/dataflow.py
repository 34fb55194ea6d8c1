"""Dataflow analysis: values, phis, positions and uses of a module (`HloDataflowAnalysis`, SSA form).

A bitcast defines no value. The schedule does not matter here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence

import attrs

from hlotext.ir.nodes.computation import Computation, instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.values.aliasing import InputOutputAliasConfig
from hlotext.ir.values.shape import Shape
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.late_bound import LateBound, is_bound_at_start
from hlotext.memory.phis import replaced
from hlotext.memory.schedule import ENTERED
from hlotext.memory.subshapes import ShapeIndex, SubshapeCache, Subshapes
from hlotext.memory.value_sets import Values, all_new, fitting, operand_values, plain, shape_of
from hlotext.memory.values import Value

_Walk = Generator[tuple[Computation, Sequence[Values]], Values, Values]
"""Asks for the result of computations that are entered with these operands, and ends with its own result."""


@attrs.define(eq=False)
class Dataflow:
    """The values of a module, and the positions of each."""

    module: Module
    parts: SubshapeCache
    aliases: Mapping[ShapeIndex, tuple[int, ShapeIndex]]
    """Parameter number and shape index of each output aliased to a parameter."""
    values: list[Value] = attrs.field(factory=list)
    """Values in order of their numbers: by computation, operands before users, then phis; empty without uses."""
    at: dict[Instruction, Values] = attrs.field(factory=dict)
    """Values at each instruction of the computations that have memory of their own."""
    callers: dict[Computation, list[Instruction]] = attrs.field(factory=dict)
    """Calls, conditionals, loops and asynchronous operations that call each computation."""
    late_bound: list[Instruction] = attrs.field(factory=list)
    """Starts of asynchronous operations that bind operands or the result late."""
    embedded: dict[Computation, None] = attrs.field(factory=dict)
    """Computations applied to elements (reducers, comparators), and what those call: their memory is thread-local."""

    def value_at(self, instruction: Instruction, index: ShapeIndex = ()) -> Value | None:
        """Returns the value at a position, or None if there is none. Raises KeyError for an instruction without memory."""
        if not index:
            return self.at[instruction][0]
        place = self.parts.of(shape_of(instruction)).place.get(index)
        return None if place is None else self.at[instruction][place]


def aliased_outputs(module: Module) -> dict[ShapeIndex, tuple[int, ShapeIndex]]:
    """Returns the outputs aliased to parameters by the header (`input_output_alias`)."""
    config = module.attributes.get("input_output_alias")
    if not isinstance(config, InputOutputAliasConfig):
        return {}
    return {
        entry.output_index: (entry.parameter_number, entry.parameter_index)
        for entry in config.canonical().entries
    }


def analyse(
    module: Module,
    aliases: Mapping[ShapeIndex, tuple[int, ShapeIndex]] | None = None,
    *,
    with_uses: bool = True,
) -> Dataflow:
    """Finds the values of the entry and of all computations that it calls.

    `aliases` replaces the header's output aliases. Without `with_uses`, only the values at each position are found,
    without numbers, positions and uses.

    Raises MemoryModelError for recursion, an instruction without a shape, and operands or called computations with
    mismatched shapes.
    """
    flow = Dataflow(module, SubshapeCache(), aliased_outputs(module) if aliases is None else aliases)
    builder = _Builder(flow)
    builder.run(module.entry)
    for computation in builder.applied():
        builder.run(computation)
    builder.settle()
    if with_uses:
        _number(flow, builder.results, builder.phis)
        _find_positions(flow, builder.results)
    return flow


class _Builder:
    """Walks the computations once each, what they enter before their own results."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self.results: dict[Computation, Values] = {}
        """Computations that were walked, and what stands at their roots."""
        self.phis: list[Value] = []
        self._inputs: dict[Value, list[Value]] = {}
        self._given: dict[Computation, list[Values]] = {}
        """Values of the parameters of computations with several callers."""
        self._open: set[Computation] = set()
        self._applied: dict[Computation, None] = {}
        self._entries: dict[Computation, int] = {}
        self._bound: dict[Instruction, LateBound] = {}
        """Starts and updates of operations that bind something late, and what is bound there."""
        for computation in flow.module.computations:
            for instruction in computation._instructions:
                if instruction._head.opcode in ENTERED:
                    for callee in instruction.called_computations:
                        self._entries[callee] = self._entries.get(callee, 0) + 1

    def run(self, computation: Computation) -> None:
        """Walks a computation whose parameters nobody passes, and all that it enters."""
        embedded = computation is not self.flow.module.entry
        if computation in self.results:
            return
        stack = [self._walk(computation, None)]
        self._open.add(computation)
        if embedded:
            self.flow.embedded[computation] = None
        answer: Values | None = None
        while stack:
            try:
                callee, given = stack[-1].send(answer)  # type: ignore[arg-type]
            except StopIteration as stop:
                stack.pop()
                answer = stop.value
                continue
            answer = None
            if callee in self.results:
                self._meet(callee, given)
                answer = self.results[callee]
            elif callee in self._open:
                raise MemoryModelError(f"computation {callee.name} calls itself")
            else:
                self._open.add(callee)
                if embedded:
                    self.flow.embedded[callee] = None
                stack.append(self._walk(callee, self._first_of_several(callee, given)))

    def applied(self) -> Iterator[Computation]:
        """The computations that are applied to elements, also by what fusions run; more are found meanwhile."""
        while self._applied:
            yield self._applied.popitem()[0]

    # ---- one computation

    def _walk(self, computation: Computation, given: Sequence[Values] | None) -> _Walk:
        """Finds the values of its instructions."""
        at, table, bound = self.flow.at, self.flow.parts, self._bound
        for instruction in computation._instructions:
            opcode = instruction._head.opcode
            parts = table.of(shape_of(instruction))
            if opcode == "parameter":
                number = instruction.parameter_number
                if given is None:
                    at[instruction] = all_new(instruction, parts)
                elif number is None or not 0 <= number < len(given):
                    raise MemoryModelError(f"no operand for {instruction.name} of {computation.name}")
                else:
                    at[instruction] = fitting(instruction, parts, given[number])
            elif bound and instruction._operands and instruction._operands[0] in bound:
                at[instruction] = yield from self._go_on(instruction, parts)
            elif opcode in CALLS_NOTHING:
                at[instruction] = plain(instruction, opcode, parts, at, table)
            elif opcode in ENTERED:
                at[instruction] = yield from self._enter(instruction, parts)
            else:
                for callee in instruction.called_computations:
                    self._apply(callee, opcode)
                at[instruction] = plain(instruction, opcode, parts, at, table)
        if computation.root not in at:
            raise MemoryModelError(f"computation {computation.name} has no root")
        self._open.discard(computation)
        result = self.results[computation] = at[computation.root]
        return result

    def _apply(self, callee: Computation, opcode: str) -> None:
        """Notes a computation that is applied to elements; of a fusion only those that it applies in turn."""
        if opcode.startswith("async-"):
            return
        if opcode != "fusion":
            self._applied[callee] = None
            return
        bodies, seen = [callee], {callee}
        while bodies:
            for instruction in bodies.pop()._instructions:
                inner_opcode = instruction._head.opcode
                if inner_opcode in CALLS_NOTHING:
                    continue
                for inner in instruction.called_computations:
                    if inner_opcode != "fusion":
                        self._applied[inner] = None
                    elif inner not in seen:
                        seen.add(inner)
                        bodies.append(inner)

    # ---- what enters other computations

    def _enter(self, instruction: Instruction, parts: Subshapes) -> _Walk:
        callees = instruction.called_computations
        if not callees:
            raise MemoryModelError(f"{instruction.name} calls no computation")
        for callee in callees:
            self.flow.callers.setdefault(callee, []).append(instruction)
        at = self.flow.at
        operands = [operand_values(at, instruction, number) for number in range(len(instruction.operands))]
        match instruction.opcode:
            case "call":
                return fitting(instruction, parts, (yield callees[0], operands))
            case "conditional":
                results = []
                for number, callee in enumerate(callees, 1):
                    result = yield callee, operands[number : number + 1]
                    results.append(fitting(instruction, parts, result))
                return self._branches(instruction, parts, results)
            case "while":
                return (yield from self._loop(instruction, operands))
            case _:
                if not is_bound_at_start(instruction):
                    self.flow.late_bound.append(instruction)
                    return (yield from self._bind(LateBound(instruction), instruction, parts, operands))
                return self._async(instruction, parts, operands, (yield callees[0], operands))

    def _loop(self, loop: Instruction, operands: Sequence[Values]) -> _Walk:
        """A while: a phi where the state's first value meets what a round leaves behind."""
        callees = loop.called_computations
        if len(callees) != 2 or len(operands) != 1:
            raise MemoryModelError(f"{loop.name} is not a loop with one body, one condition and one operand")
        body, condition = callees
        state = operands[0]
        kept = _kept(body, self.flow.parts) if self._entries.get(body) == 1 else frozenset()
        inner = self._meeting(_only_parameter(body), state, kept)
        root = fitting(loop, self.flow.parts.of(shape_of(loop)), (yield body, (inner,)))
        tests = self._meeting(_only_parameter(condition), state, kept)
        yield condition, (tests,)
        after = self._meeting(loop, state, kept)
        # In the order in which XLA makes them: the condition's, the body's, the loop's own.
        for phis in (tests, inner, after):
            for first, last, phi in zip(state, root, phis, strict=True):
                if phi is not None and phi is not first:
                    self._inputs[phi] = [value for value in (first, last) if value is not None]
                    self.phis.append(phi)
        return after

    def _meeting(self, instruction: Instruction, state: Values, kept: frozenset[int]) -> Values:
        """A phi for each part of a loop's state, but for those that no round changes."""
        parts = self.flow.parts.of(shape_of(instruction))
        fitting(instruction, parts, state)
        name = instruction.name
        return tuple(
            [
                value
                if value is None or number in kept
                else Value(instruction, name, index, shape, is_phi=True)
                for number, (index, shape, value) in enumerate(
                    zip(parts.indices, parts.shapes, state, strict=True)
                )
            ]
        )

    def _branches(self, instruction: Instruction, parts: Subshapes, results: Sequence[Values]) -> Values:
        """Values of a conditional: a phi wherever the branches differ."""
        found: list[Value | None] = []
        for number, (index, shape) in enumerate(zip(parts.indices, parts.shapes, strict=True)):
            inputs = [value for result in results if (value := result[number]) is not None]
            if len(set(inputs)) < 2:
                found.append(inputs[0] if inputs else None)
            else:
                found.append(self._phi(instruction, index, shape, inputs))
        return tuple(found)

    def _phi(self, instruction: Instruction, index: ShapeIndex, shape: Shape, inputs: list[Value]) -> Value:
        phi = Value(instruction, instruction.name, index, shape, is_phi=True)
        self._inputs[phi] = inputs
        self.phis.append(phi)
        return phi

    def _first_of_several(self, callee: Computation, given: Sequence[Values]) -> Sequence[Values]:
        """Values of a computation's parameters: phis if it has several callers.

        XLA has one caller for each computation when it assigns memory; other texts may differ.
        """
        if self._entries.get(callee, 0) < 2:
            return given
        met: list[Values] = []
        for parameter, values in zip(callee.parameters, given, strict=False):
            parts = self.flow.parts.of(shape_of(parameter))
            rows = zip(parts.indices, parts.shapes, fitting(parameter, parts, values), strict=True)
            met.append(
                tuple(
                    [v if v is None else self._phi(parameter, index, shape, [v]) for index, shape, v in rows]
                )
            )
        self._given[callee] = met
        return met

    def _meet(self, callee: Computation, given: Sequence[Values]) -> None:
        """One more caller of a computation that was walked before."""
        for parameter, old, new in zip(callee.parameters, self._given.get(callee, ()), given, strict=False):
            fitting(parameter, self.flow.parts.of(shape_of(parameter)), new)
            for phi, value in zip(old, new, strict=True):
                if phi is not None and value is not None:
                    self._inputs[phi].append(value)

    def _async(
        self, start: Instruction, parts: Subshapes, operands: Sequence[Values], result: Values
    ) -> Values:
        """Tables and contexts are new; `{0,k}` is operand k, and `{1}` what the body returns."""
        table = self.flow.parts
        inner = table.of(shape_of(start.called_computations[0].root)).place
        places = [table.of(shape_of(operand)).place for operand in start.operands]
        found: list[Value | None] = []
        for index, shape in zip(parts.indices, parts.shapes, strict=True):
            value: Value | None = None
            if shape.is_tuple or not index or index[0] > 1:
                value = Value(start, start.name, index, shape)
            elif index[0] == 1:
                place = inner.get(index[1:])
                value = result[place] if place is not None else None
            elif len(index) > 1 and index[1] < len(places):
                place = places[index[1]].get(index[2:])
                value = operands[index[1]][place] if place is not None else None
            found.append(value)
        return tuple(found)

    def _go_on(self, instruction: Instruction, parts: Subshapes) -> _Walk:
        """The values of the next of an operation that binds something late."""
        late = self._bound[instruction.operands[0]]
        if instruction.opcode not in ("async-update", "async-done"):
            message = (
                f"{late.start.name} binds operands late, and its state passes through {instruction.name}"
            )
            raise MemoryModelError(message)
        at = self.flow.at
        numbers = range(1, len(instruction.operands)) if instruction.opcode == "async-update" else ()
        operands = [operand_values(at, instruction, number) for number in numbers]
        return (yield from self._bind(late, instruction, parts, operands))

    def _bind(
        self, late: LateBound, instruction: Instruction, parts: Subshapes, operands: Sequence[Values]
    ) -> _Walk:
        """One more of an operation that binds something late: its body is walked as soon as all parameters are known."""
        late.take(instruction, operands)
        if late.result is None and len(late.operands) >= len(late.body.parameters):
            late.result = yield late.body, late.operands
            for earlier in late.members[:-1]:
                self.flow.at[earlier] = late.values(earlier, self.flow.parts, self.flow.at[earlier])
        if instruction.opcode == "async-done":
            if late.result is None:
                raise MemoryModelError(
                    f"{instruction.name} completes {late.start.name} before all operands are bound"
                )
        else:
            self._bound[instruction] = late
        return late.values(instruction, self.flow.parts, all_new(instruction, parts))

    # ---- the end

    def settle(self) -> None:
        """Takes out the phis that are none."""
        gone = replaced(self._inputs)
        if not gone:
            return
        self.phis = [phi for phi in self.phis if phi not in gone]
        at = self.flow.at
        # Instructions that pass a result on share one tuple: so do they afterwards. What is replaced is kept until
        # the end, so that no other tuple gets its id.
        changed: dict[int, tuple[Values, Values]] = {}
        for instruction, values in at.items():
            if any(value is not None and value.is_phi for value in values):
                known = changed.get(id(values))
                if known is None:
                    new = tuple([v if v is None else gone.get(v, v) for v in values])
                    known = changed[id(values)] = values, new
                at[instruction] = known[1]


def _only_parameter(computation: Computation) -> Instruction:
    parameters = computation.parameters
    if len(parameters) != 1:
        raise MemoryModelError(f"loop computation {computation.name} has {len(parameters)} parameters, not 1")
    return parameters[0]


def _kept(body: Computation, table: SubshapeCache) -> frozenset[int]:
    """The parts of a loop's state that each round passes on as they are, as most weights are: no phi is needed there.

    Sparing them makes loops with large states several times as fast.
    """
    root, parameter = body.root, _only_parameter(body)
    if root.opcode != "tuple":
        return frozenset()
    found: list[int] = []
    for number, (operand, (start, end)) in enumerate(
        zip(root.operands, table.of(shape_of(root)).children, strict=False)
    ):
        if (
            operand.opcode == "get-tuple-element"
            and operand.operands == (parameter,)
            and operand.attributes.get("index") == number
        ):
            found += range(start, end)
    return frozenset(found)


def _number(flow: Dataflow, walked: dict[Computation, Values], phis: list[Value]) -> None:
    """Numbers the values: computations in the order of the text, operands before users, phis behind all others.

    XLA's own order hangs on the history of the module and is not in the text; it decides ties alone.
    """
    found: list[Value] = flow.values
    for computation in flow.module.computations:
        if computation not in walked:
            continue
        for instruction in instruction_post_order(computation):
            for value in flow.at[instruction]:
                if value is not None and value.instruction is instruction and not value.is_phi:
                    found.append(value)
    found += phis
    for number, value in enumerate(found):
        value.number = number


def _find_positions(flow: Dataflow, walked: dict[Computation, Values]) -> None:
    """Notes for each value where it is found and what uses it (`HloValue::ComputeUses`)."""
    at, table = flow.at, flow.parts
    for computation in flow.module.computations:
        if computation not in walked:
            continue
        root = computation.root
        in_root = set(at[root])
        for instruction in computation._instructions:
            values = at[instruction]
            if len(values) == 1:
                (value,) = values
                if value is not None and value.instruction is not instruction:
                    value._positions += (instruction, ())
            else:
                indices = table.of(shape_of(instruction)).indices
                for index, value in zip(indices, values, strict=True):
                    if value is not None and value.instruction is not instruction:
                        value.add_position(instruction, index)
            opcode = instruction._head.opcode
            is_root = instruction is root
            for number, operand in enumerate(instruction._operands):
                given = at[operand]
                top = given[0]
                if opcode not in _PASSING:
                    if len(given) == 1:
                        if top is not None:
                            top._uses += (instruction, number, ())
                        continue
                    indices = table.of(shape_of(operand)).indices
                    for index, value in zip(indices, given, strict=True):
                        if value is not None:
                            value.add_use(instruction, number, index)
                    continue
                if opcode in _READING_THE_TOP and top is not None:
                    top._uses += (instruction, number, ())
                if is_root:
                    indices = table.of(shape_of(operand)).indices
                    begin = 1 if opcode in _READING_THE_TOP else 0
                    for place in range(begin, len(given)):
                        value = given[place]
                        if value is not None and value in in_root:
                            value.add_use(instruction, number, indices[place])


_READING_THE_TOP = frozenset({"copy", "get-tuple-element"})
"""Opcodes that read of their operand nothing but its top: what lies inside passes through."""

_PASSING = _READING_THE_TOP | {"domain", "tuple"}
"""Opcodes that pass values through without reading them, so that they use them as a root alone."""
