"""Creation order of XLA's instructions, as far as the text shows it.

Layout assignment walks through the instructions in the order in which they were made, and where constraints of equal priority
meet the younger instruction wins. A text lists them in post-order and does not say when they were made. What it has are names
and what passes leave behind: XLA keeps the name of an instruction that is replaced by one of the same opcode, and numbers new
names upwards (`HloComputation::ReplaceInstruction`, `NameUniquer`). An operand is older than its users unless a pass made it
anew; only reshapes and conversions that passes made anew turn out to matter, and the functions here say which those are.
All of them are inferred from what the passes do, not read from the text; compared with the order in XLA's own protos.
"""

from __future__ import annotations

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape
from hlotext.memory.value_sets import shape_of

_RECREATED = ("wide.wide.", "wide.")
"""Bodies of loops that got more state twice, and at least once: all in them was made anew in post-order, the second time
after the simplifications (`WhileUtil::MakeInstructionsLiveIn`)."""

_MOVED_OUT_OF = frozenset({"gather", "scatter", "dot", "concatenate", "tuple"})
"""Users of reshapes that their own rewrites made: these say nothing of `ReshapeMover`."""
MOST_DIGITS = 18
MOST_BETWEEN = 3
"""Numbers from the reshape of a scatter's indices to that of its updates: both are made of two."""
_GATHERS = frozenset({"all-gather", "reduce-scatter"})


class CreationOrder:
    """The order in which XLA created the instructions of a module, as far as the text shows it."""

    def __init__(self, computations: list[Computation]) -> None:
        self._lows: dict[tuple[Computation, str], dict[Instruction, int]] = {}
        self._moved = self._first_moved(computations)

    def vector(self, computation: Computation) -> list[Instruction]:
        """Returns the instructions of a computation, oldest first; ties are in text order."""
        last = {i for i in computation.instructions if self._is_late(i)}
        return [
            *(i for i in computation.instructions if i not in last),
            *(i for i in computation.instructions if i in last),
        ]

    def _follow(self, computation: Computation, root: str) -> None:
        """The lowest number with a root of names among all that an instruction's result goes into."""
        lows = self._lows[computation, root] = {}
        for i in reversed(computation.instructions):
            found = [low for user in i.users if (low := lows.get(user)) is not None]
            found += [number for user in i.users if (number := _number(user, root)) is not None]
            if found:
                lows[i] = min(found)

    def _follows_itself(self, i: Instruction) -> bool:
        """True if a higher number than that of another that needs it says that it was made after the first form of that."""
        assert i.computation is not None
        root = i.name.partition(".")[0]
        number = _number(i, root)
        if number is None:
            return False
        if (i.computation, root) not in self._lows:
            self._follow(i.computation, root)
        low = self._lows[i.computation, root].get(i)
        return low is not None and low < number

    def _first_moved(self, computations: list[Computation]) -> int | None:
        """The lowest number of the reshapes that `ReshapeMover` surely made; what has a higher number was made later."""
        found = [
            number
            for computation in computations
            if not computation.name.startswith(_RECREATED[0])
            for i in computation.instructions
            if i.opcode == "reshape"
            and (number := _number(i)) is not None
            and i.operands[0].opcode in ELEMENTWISE
            and _MOVED_OUT_OF.isdisjoint(user.opcode for user in i.users)
            and long_sizes(shape_of(i)) == long_sizes(shape_of(i.operands[0]))
            and self._follows_itself(i)
        ]
        return min(found, default=None)

    def _is_late(self, i: Instruction) -> bool:
        if not i.users or i.computation is None:
            return False
        if i.opcode == "convert":
            return _is_normalized(i)
        return i.opcode == "reshape" and self._is_late_reshape(i)

    def _is_late_reshape(self, i: Instruction) -> bool:
        """True if a reshape is younger than its users."""
        assert i.computation is not None
        number, operand = _number(i), i.operands[0]
        source, target = shape_of(operand), shape_of(i)
        users = {user.opcode for user in i.users}
        is_index = target.element_type.is_integral
        if "dot" in users or ("concatenate" in users and len(users) > 1 and is_index):
            return False  # DotDecomposer and BatchedGatherScatterNormalizer make the reshape first
        if i.computation.name.startswith(_RECREATED[0]):
            return self._follows_itself(i)
        if number is None:
            return _is_merged_with_own(i)
        if operand.opcode == "slice":
            return True  # moved through the slice
        if is_index and users == {"concatenate"}:
            return (
                operand.opcode == "subtract"
            )  # shifted by the partitioner, behind which the reshape was moved
        if users == {"gather", "scatter"}:
            return _is_merged(source, target) and _is_numbered_with_updates(i, number)
        if users & {"gather", "scatter"}:
            return len(users) == 1 and _is_of_simplifier(i, i.users[0])
        if operand.opcode == "gather":
            return _is_two_steps(source, target)  # GatherSimplifier's, merged with one of the program's
        if operand.opcode in ELEMENTWISE:
            return self._is_late_behind_elementwise(i, number)
        if operand.opcode != "broadcast" and _is_two_steps(source, target) and self._follows_itself(i):
            return True
        return len(users) == 1 and operand.opcode != "broadcast" and _is_merged(source, target)

    def _is_late_behind_elementwise(self, i: Instruction, number: int) -> bool:
        """True if `ReshapeMover` or `AlgebraicSimplifier` made a reshape of an elementwise result."""
        operand = i.operands[0]
        source, target = shape_of(operand), shape_of(i)
        if self._follows_itself(i) or self._follows_itself(operand):
            return True
        if self._moved is not None and number >= self._moved:
            return True
        if is_with_ones(target.dimensions, source.dimensions):
            return True  # a reduction of dimensions of size 1 (HandleReduce)
        if _is_insertion_in_two(source, target) or _is_merged(source, target):
            return True
        return self._moved is None and long_sizes(source) == long_sizes(target)


def long_sizes(shape: Shape) -> list[int]:
    """Returns the dimension sizes other than 1."""
    return [size for size in shape.dimensions if size != 1]


def is_with_ones(few: tuple[int, ...], many: tuple[int, ...]) -> bool:
    """Returns True if the sizes `many` are `few` with additional sizes of 1.

    >>> is_with_ones((2, 3), (2, 1, 3)), is_with_ones((2, 1), (1, 2))
    (True, False)
    """
    place = 0
    for size in many:
        if place < len(few) and few[place] == size:
            place += 1
        elif size != 1:
            return False
    return place == len(few)


def _number(i: Instruction, root: str = "reshape") -> int | None:
    """The number in a name with this root, 0 where there is none; None for other names."""
    own, _, number = i.name.partition(".")
    is_number = number.isdecimal() and len(number) <= MOST_DIGITS
    if own != root or (root == "reshape" and i.opcode != root) or not (is_number or own == i.name):
        return None
    return int(number or 0)


def _is_merged(source: Shape, target: Shape) -> bool:
    """True if a reshape both regroups sizes and adds some of 1, as `AlgebraicSimplifier` leaves where it merges two."""
    return long_sizes(source) != long_sizes(target) and target.dimensions.count(1) > source.dimensions.count(
        1
    )


def _is_two_steps(source: Shape, target: Shape) -> bool:
    """True if a reshape does more than add sizes of 1, or more than take some out."""
    return not is_with_ones(source.dimensions, target.dimensions) and not is_with_ones(
        target.dimensions, source.dimensions
    )


def _is_insertion_in_two(source: Shape, target: Shape) -> bool:
    """True if two sizes of 1 or more are added, and nothing else is done."""
    return (
        is_with_ones(source.dimensions, target.dimensions)
        and len(target.dimensions) - len(source.dimensions) > 1
    )


def _is_merged_with_own(i: Instruction) -> bool:
    """True if a reshape with the name of an operation of the program that only adds sizes of 1 does more than that.

    Then one of two that were merged came from its operand.
    """
    assert i.computation is not None
    operand, root = i.operands[0], i.name.split(".")[0]
    source, target = shape_of(operand), shape_of(i)
    if root == "stack":
        return _is_merged(source, target)
    if root != "broadcast_in_dim" or not is_with_ones(source.dimensions, target.dimensions):
        return False
    is_in_two = _is_insertion_in_two(source, target)
    if i.computation.name.startswith(_RECREATED):
        return is_in_two and operand.opcode in ELEMENTWISE and len(operand.users) == 1
    if all(user.opcode == "dynamic-update-slice" for user in i.users):
        return target.dimensions[1:] != source.dimensions  # results of iterations are put below each other
    return is_in_two and (operand.opcode in ELEMENTWISE or operand.opcode in ("reduce", "dot"))


def _is_of_simplifier(i: Instruction, user: Instruction) -> bool:
    """True if a reshape of indices or updates was merged after `GatherSimplifier` or `ScatterSimplifier` made its user.

    Updates get two reshapes, indices one, which joins one of the program's only where that added the dimension of the index.
    """
    source, target = shape_of(i.operands[0]), shape_of(i)
    if user.opcode == "scatter" and user.operands.index(i) > len(user.operands) // 2:
        return (
            _is_two_steps(source, target) or i.operands[0].name.partition(".")[0] == "dot"
        )  # of DotDecomposer
    return _is_merged(source, target)


def _is_numbered_with_updates(i: Instruction, number: int) -> bool:
    """True if `ScatterSimplifier` made the reshape of indices that a gather uses too: it goes on with the updates."""
    scatter = next(user for user in i.users if user.opcode == "scatter")
    updates = _number(scatter.operands[-1])
    return updates is not None and number < updates <= number + MOST_BETWEEN


def _is_normalized(i: Instruction) -> bool:
    """True if a conversion to a wider type was put before a collective that was there already (`FloatNormalization`)."""
    assert i.computation is not None
    given, made = shape_of(i.operands[0]).element_type, shape_of(i).element_type
    return (
        given.is_floating
        and made.is_floating
        and given.bits < made.bits
        and not i.computation.name.startswith(_RECREATED)
        and any(user.opcode in _GATHERS for user in i.users)
    )
