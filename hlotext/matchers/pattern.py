"""One pattern: what an instruction must be, and how it is tried."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Layout, Shape
from hlotext.ir.values.types import ElementType

Captures: TypeAlias = dict[str, Any]
"""What names stand for: instructions; in text patterns also texts of shapes and attributes."""
Match: TypeAlias = Mapping[str, Any]


@attrs.frozen
class Condition:
    """Something that must hold of an instruction beyond opcode and operands."""

    text: str
    """What must hold, for explanations: `it has one user`."""
    holds: Callable[[Instruction, Captures], bool]
    """May add captures; that is undone when it says no."""


@attrs.frozen
class Options:
    """What a match looks through on the way from user to operand."""

    opcodes: frozenset[str] = frozenset()
    """Opcodes of one operand that are skipped: `frozenset({"bitcast", "copy"})`."""
    fusion: bool = False
    """Whether a fusion is taken for its root, and a fusion's parameter for what the fusion is given."""


NOTHING_SKIPPED = Options()


@attrs.frozen
class Failure:
    """Why one attempt failed, and how deep it came."""

    depth: int
    text: str


@attrs.frozen
class Pattern:
    """What an instruction must be. Built by the functions of `hlotext.matchers` and the `with_` methods here."""

    opcode: str | None = None
    """None: any."""
    operands: tuple[Pattern, ...] | None = None
    """A pattern for each operand; None: any operands."""
    capture: str | None = None
    """The name under which a match gives the instruction; a name used twice must be the same instruction."""
    any_order: bool = False
    """Whether the operands may stand in another order."""
    conditions: tuple[Condition, ...] = ()
    alternatives: tuple[Pattern, ...] = ()
    """If there are any, one of them must match; the other fields then come on top."""
    open_ended: bool = False
    """Whether there may be more operands than patterns."""
    options: Options | None = None
    """What to look through from here on; None: what the pattern around says."""

    # ---- trying

    def match(self, instruction: Instruction, options: Options = NOTHING_SKIPPED) -> Match | None:
        """The captures of the first way in which this matches, tried in order; None if there is none."""
        return next(_attempt(self, instruction, {}, options, [], 0, instruction.name), None)

    def matches(self, instruction: Instruction) -> bool:
        """Whether this matches."""
        return self.match(instruction) is not None

    def explain(self, instruction: Instruction, options: Options = NOTHING_SKIPPED) -> str | None:
        """Why this does not match, told for the attempt that came furthest; None if it does."""
        failures: list[Failure] = []
        for _ in _attempt(self, instruction, {}, options, failures, 0, instruction.name):
            return None
        return max(failures, key=lambda failure: failure.depth).text

    # ---- more conditions

    def with_predicate(
        self, holds: Callable[[Instruction], bool], text: str = "the predicate holds"
    ) -> Pattern:
        """The same, where also a function says yes."""
        return self._and(text, lambda instruction, _: holds(instruction))

    def _and(self, text: str, holds: Callable[[Instruction, Captures], bool]) -> Pattern:
        return attrs.evolve(self, conditions=(*self.conditions, Condition(text, holds)))

    def named(self, name: str) -> Pattern:
        """The same, captured under a name."""
        return attrs.evolve(self, capture=name)

    def with_shape(self, shape: Shape | str) -> Pattern:
        """With that shape, layouts aside (`WithShape`); given as a value or as text."""
        text = shape if isinstance(shape, str) else shape.text_without_layout()
        return self.with_predicate(
            lambda i: i.shape is not None and i.shape.text_without_layout() == text, f"the shape is {text}"
        )

    def with_shape_equal_to(self, name: str) -> Pattern:
        """With the shape, layouts aside, of what was captured before under a name (`WithShapeCompatibleTo`)."""

        def same(instruction: Instruction, captures: Captures) -> bool:
            other = captures[name].shape
            return (
                instruction.shape is not None
                and other is not None
                and instruction.shape.text_without_layout() == other.text_without_layout()
            )

        return self._and(f"the shape is that of {name}", same)

    def with_element_type(self, *types: ElementType | str) -> Pattern:
        """With one of these element types (`WithElementType`)."""
        names = [str(type_) for type_ in types]
        return self.with_predicate(
            lambda i: i.shape is not None and str(i.shape.element_type) in names,
            f"the element type is {' or '.join(names)}",
        )

    def with_rank(self, rank: int) -> Pattern:
        """With an array of so many dimensions (`WithRank`)."""
        return self.with_predicate(
            lambda i: i.shape is not None and i.shape.is_array and i.shape.rank == rank, f"the rank is {rank}"
        )

    def with_layout(self, layout: Layout | str) -> Pattern:
        """With that layout (`WithLayout`), given as a value or as text: `{0,1}`."""
        return self.with_predicate(
            lambda i: i.shape is not None and str(i.shape.layout) == str(layout), f"the layout is {layout}"
        )

    def with_one_use(self) -> Pattern:
        """Used in exactly one operand place (`WithOneUse`)."""
        return self.with_predicate(
            lambda i: sum(user.operands.count(i) for user in i.users) == 1, "it is used in one place"
        )

    def with_one_user(self) -> Pattern:
        """Used by exactly one instruction (`WithOneUser`)."""
        return self.with_predicate(lambda i: len(i.users) == 1, "it has one user")

    def with_attribute(self, name: str, value: object) -> Pattern:
        """With an attribute of that value, or of that text."""

        def holds(instruction: Instruction) -> bool:
            found = instruction.attributes.get(name)
            return found is not None and (found == value or (isinstance(value, str) and str(found) == value))

        return self.with_predicate(holds, f"{name}={value}")

    def with_operand_count(self, count: int) -> Pattern:
        """With so many operands (`WithNumOperands`)."""
        return self.with_predicate(lambda i: len(i.operands) == count, f"it has {count} operands")

    def with_custom_call_target(self, *targets: str) -> Pattern:
        """A custom call of one of these targets (`WithCustomCallTarget`)."""
        return self.with_predicate(
            lambda i: i.attributes.get("custom_call_target") in targets, f"it calls {' or '.join(targets)}"
        )

    def through(self, *opcodes: str, fusion: bool = False) -> Pattern:
        """The same, where operands may stand behind instructions of these opcodes, or across a fusion's border."""
        return attrs.evolve(self, options=Options(frozenset(opcodes), fusion))


def _attempt(
    pattern: Pattern,
    instruction: Instruction,
    captures: Captures,
    options: Options,
    failures: list[Failure],
    depth: int,
    where: str,
) -> Iterator[Captures]:
    """Every way in which a pattern matches; failures are noted on the way."""
    options = pattern.options or options
    if pattern.alternatives:
        ways: Iterator[Captures] = (
            way
            for alternative in pattern.alternatives
            for way in _attempt(alternative, instruction, captures, options, failures, depth, where)
        )
    else:
        ways = _as_one(pattern, instruction, captures, options, failures, depth, where)
    for way in ways:
        found = _kept(pattern, instruction, way, failures, depth, where)
        if found is not None:
            yield found


def _kept(
    pattern: Pattern, instruction: Instruction, way: Captures, failures: list[Failure], depth: int, where: str
) -> Captures | None:
    """The captures with this instruction's, where the conditions hold."""
    found = dict(way)
    if pattern.capture is not None:
        if found.get(pattern.capture, instruction) is not instruction:
            failures.append(Failure(depth, f"{where}: {pattern.capture} is already another instruction"))
            return None
        found[pattern.capture] = instruction
    for condition in pattern.conditions:
        if not condition.holds(instruction, found):
            failures.append(Failure(depth, f"{where}: it must be that {condition.text}"))
            return None
    return found


def _as_one(
    pattern: Pattern,
    instruction: Instruction,
    captures: Captures,
    options: Options,
    failures: list[Failure],
    depth: int,
    where: str,
) -> Iterator[Captures]:
    """Opcode and operands of a pattern without alternatives."""
    if pattern.opcode is not None and instruction.opcode != pattern.opcode:
        failures.append(Failure(depth, f"{where}: the opcode is {instruction.opcode}, not {pattern.opcode}"))
        return
    wanted = pattern.operands
    if wanted is None:
        yield captures
        return
    given = instruction.operands
    if len(given) < len(wanted) or (len(given) > len(wanted) and not pattern.open_ended):
        failures.append(Failure(depth, f"{where}: it has {len(given)} operands, not {len(wanted)}"))
        return
    orders: Iterable[tuple[Pattern, ...]] = itertools.permutations(wanted) if pattern.any_order else [wanted]
    for order in orders:
        yield from _operands(order, instruction, captures, options, failures, depth)


def _operands(
    wanted: tuple[Pattern, ...],
    instruction: Instruction,
    captures: Captures,
    options: Options,
    failures: list[Failure],
    depth: int,
) -> Iterator[Captures]:
    """Every way in which the operands match these patterns, from left to right."""
    if not wanted:
        yield captures
        return
    last = len(wanted) - 1
    for way in _operands(wanted[:-1], instruction, captures, options, failures, depth):
        operand = _looked_through(instruction.operands[last], options)
        where = f"operand {last} of {instruction.name}, {operand.name}"
        yield from _attempt(wanted[last], operand, way, options, failures, depth + 1, where)


def _looked_through(instruction: Instruction, options: Options) -> Instruction:
    """What stands behind the instructions that are to be skipped."""
    while True:
        if instruction.opcode in options.opcodes and instruction.operands:
            instruction = instruction.operands[0]
        elif options.fusion and instruction.opcode == "fusion":
            instruction = instruction.called_computations[0].root
        elif options.fusion and (given := _given_to_fusion(instruction)) is not None:
            instruction = given
        else:
            return instruction


def _given_to_fusion(parameter: Instruction) -> Instruction | None:
    """What a fusion passes for a parameter of its body; None for everything else."""
    if parameter.opcode != "parameter" or parameter.computation is None:
        return None
    callers = parameter.computation.callers
    if len(callers) != 1 or callers[0].opcode != "fusion":
        return None
    return callers[0].operands[parameter.parameter_number or 0]
