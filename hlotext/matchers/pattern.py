"""One pattern: what an instruction must be."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

import attrs

from hlotext.ir import sending
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.ir.values.shape import Layout, Shape
from hlotext.ir.values.sharding import Sharding
from hlotext.ir.values.types import ElementType
from hlotext.matchers import facts
from hlotext.matchers.matching import (
    NOTHING_SKIPPED,
    Captures,
    Failure,
    Matching,
    MatchOptions,
    Place,
    looked_through,
    matches_directly,
)

Match: TypeAlias = Mapping[str, Any]


class PatternError(ValueError):
    """Error in a pattern; the message has the reason and, for a text, the position."""


MAX_ANY_ORDER = 6
"""Maximum number of operands in any order: six have 720 orders."""


@attrs.frozen
class Condition(sending.Uncopied):
    """Something that must hold of an instruction beyond opcode and operands."""

    text: str
    """The condition in words, for explanations: `it has one user`."""
    holds: Callable[[Instruction, Captures], bool] = attrs.field(repr=False)
    """May add captures; that is undone when it says no."""
    names: tuple[str, ...] = ()
    """The captures that it reads or adds."""
    origin: tuple[Callable[..., Pattern | Condition], tuple[Any, ...], dict[str, Any]] | None = attrs.field(
        default=None, repr=False
    )
    """A function and its arguments that recreate this condition, if need be as the last one of a pattern."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Condition) or (self.text, self.names) != (other.text, other.names):
            return False
        return self.holds is other.holds if self.origin is None else self.origin == other.origin

    def __hash__(self) -> int:
        return hash((self.text, self.names))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle. Raises TypeError where a function was given that another process cannot find."""
        what = f"the condition {self.text!r} of a pattern"
        if self.origin is None:
            sending.check(self.holds, what)
            return Condition, (self.text, self.holds, self.names)
        _, arguments, named = self.origin
        for argument in filter(callable, (*arguments, *named.values())):
            sending.check(argument, what)
        return _made_anew, self.origin


def _made_anew(
    make: Callable[..., Pattern | Condition], arguments: tuple[Any, ...], named: dict[str, Any]
) -> Condition:
    made = make(*arguments, **named)
    return made if isinstance(made, Condition) else made.conditions[-1]


Parameters = ParamSpec("Parameters")
Made = TypeVar("Made", bound="Pattern | Condition")


def remembered(make: Callable[Parameters, Made]) -> Callable[Parameters, Made]:
    """Lets the condition that a function makes, or adds to a pattern, know how: then it can go to another process."""

    @functools.wraps(make)
    def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Made:
        made: Any = make(*arguments, **named)
        # Other parts of the pattern do not matter to the condition.
        plain = tuple(Pattern(opcode=a.opcode) if isinstance(a, Pattern) else a for a in arguments)
        if isinstance(made, Condition):
            return cast("Made", attrs.evolve(made, origin=(call, plain, named)))
        if not made.conditions:
            return cast("Made", made)
        *before, last = made.conditions
        last = attrs.evolve(last, origin=(call, plain, named))
        return cast("Made", attrs.evolve(made, conditions=(*before, last)))

    return call


@attrs.frozen
class SingleOperand:
    """A pattern for one operand, whatever the others are."""

    number: int
    pattern: Pattern
    is_optional: bool = False
    """True if the operand may be missing."""


@attrs.frozen
class Pattern:
    """Pattern of an instruction. Built by the functions of `hlotext.matchers` and the `with_` methods here."""

    opcode: str | None = None
    """None: any."""
    operands: tuple[Pattern, ...] | None = None
    """A pattern for each operand; None: any operands."""
    capture: str | None = None
    """The name of the instruction in a match; a name used twice must match the same instruction."""
    any_order: bool = False
    """Match operands in any order. Raises ValueError for more than `MAX_ANY_ORDER` of them."""
    conditions: tuple[Condition, ...] = ()
    alternatives: tuple[Pattern, ...] = ()
    """If there are any, one of them must match; the other fields then come on top."""
    open_ended: bool = False
    """Allow more operands than patterns."""
    options: MatchOptions | None = None
    """Instructions to look through below this pattern; None: as the enclosing pattern."""
    single_operands: tuple[SingleOperand, ...] = ()
    forbidden: tuple[Pattern, ...] = ()
    """Patterns that must not match."""
    name_counts: Mapping[str, int] = attrs.field(init=False, eq=False, repr=False)
    """Number of occurrences of each name in this pattern; 2 if a condition or a forbidden pattern refers to it."""
    is_branching: bool = attrs.field(init=False, eq=False, repr=False)
    """True if there may be several ways to match."""
    is_direct: bool = attrs.field(init=False, eq=False, repr=False)
    """True if opcodes, operands, names and conditions are all there is to look at, from left to right."""

    def __attrs_post_init__(self) -> None:
        if self.any_order and self.operands is not None and len(self.operands) > MAX_ANY_ORDER:
            raise ValueError(
                f"{len(self.operands)} operands in any order exceed the limit of {MAX_ANY_ORDER}"
            )
        counts: Counter[str] = Counter([self.capture] if self.capture is not None else [])
        parts = (
            *(self.operands or ()),
            *self.alternatives,
            *(single.pattern for single in self.single_operands),
        )
        for part in parts:
            counts.update(part.name_counts)
        for asked in (*(c.names for c in self.conditions), *(p.name_counts for p in self.forbidden)):
            counts.update(dict.fromkeys(asked, 2))
        object.__setattr__(self, "name_counts", dict(counts))
        is_branching = self.any_order or bool(self.alternatives) or any(part.is_branching for part in parts)
        object.__setattr__(self, "is_branching", is_branching)
        is_direct = not (is_branching or self.forbidden or self.single_operands)
        object.__setattr__(self, "is_direct", is_direct and all(part.is_direct for part in parts))

    @property
    def shared_names(self) -> frozenset[str]:
        """The names used by more than one part."""
        return frozenset(name for name, count in self.name_counts.items() if count > 1)

    # ---- trying

    def match(self, instruction: Instruction, options: MatchOptions = NOTHING_SKIPPED) -> Match | None:
        """The captures of the first match, in order; None if there is none."""
        options = self.options or options
        if options.start:
            instruction = looked_through(instruction, options)
        if self.opcode is not None and instruction.opcode != self.opcode:
            return None
        if self.is_direct:
            captures: Captures = {}
            return captures if matches_directly(self, instruction, captures, options) else None
        ways = Matching(self).ways(self, Place(instruction), {}, options)
        return ways[0] if ways else None

    def matches(self, instruction: Instruction) -> bool:
        """True if the instruction matches."""
        return self.match(instruction) is not None

    def explain(self, instruction: Instruction, options: MatchOptions = NOTHING_SKIPPED) -> str | None:
        """Reason why this does not match, for the attempt that got furthest; None if it matches."""
        options = self.options or options
        if options.start:
            instruction = looked_through(instruction, options)
        failures: list[Failure] = []
        if Matching(self, failures).ways(self, Place(instruction), {}, options):
            return None
        return max(failures, key=lambda failure: failure.depth).text

    # ---- more conditions

    @remembered
    def with_predicate(
        self, holds: Callable[[Instruction], bool], text: str = "the predicate holds"
    ) -> Pattern:
        """This pattern, with a predicate that must hold."""
        return self._and(Condition(text, lambda instruction, _: holds(instruction)))

    def _and(self, condition: Condition) -> Pattern:
        return attrs.evolve(self, conditions=(*self.conditions, condition))

    def named(self, name: str) -> Pattern:
        """This pattern, captured under a name."""
        return attrs.evolve(self, capture=name)

    def but_not(self, *patterns: Pattern) -> Pattern:
        """This pattern, unless one of these matches."""
        return attrs.evolve(self, forbidden=(*self.forbidden, *patterns))

    def through(self, *opcodes: str, fusion: bool = False, start: bool = False) -> Pattern:
        """This pattern, looking through instructions of these opcodes, or into and out of fusions, at operands.

        With `start` the instruction itself, too: a pattern of what a fusion computes then matches the fusion.
        """
        return attrs.evolve(self, options=MatchOptions(frozenset(opcodes), fusion, start))

    # ---- operands and users

    def with_operand(self, number: int, pattern: Pattern) -> Pattern:
        """With an operand of that number that matches (`WithOperand`)."""
        return attrs.evolve(self, single_operands=(*self.single_operands, SingleOperand(number, pattern)))

    def with_operand_if_present(self, number: int, pattern: Pattern) -> Pattern:
        """Where there is an operand of that number, it matches (`WithOperandIfPresent`)."""
        return attrs.evolve(
            self, single_operands=(*self.single_operands, SingleOperand(number, pattern, is_optional=True))
        )

    @remembered
    def with_operand_count(self, count: int) -> Pattern:
        """With exactly `count` operands (`WithNumOperands`)."""
        return self.with_predicate(lambda i: len(i.operands) == count, f"it has {count} operands")

    @remembered
    def with_one_use(self) -> Pattern:
        """Used in exactly one operand place (`WithOneUse`)."""
        return self.with_predicate(
            lambda i: sum(user.operands.count(i) for user in i.users) == 1, "it is used in one place"
        )

    @remembered
    def with_one_user(self) -> Pattern:
        """Used by exactly one instruction (`WithOneUser`)."""
        return self.with_predicate(lambda i: len(i.user_view) == 1, "it has one user")

    # ---- shapes

    @remembered
    def with_shape(self, shape: Shape | str) -> Pattern:
        """With that shape, ignoring layouts (`WithShape`); given as a value or as text."""
        text = facts.shape_text(shape)
        return self.with_predicate(
            lambda i: i.shape is not None and i.shape.text_without_layout() == text, f"the shape is {text}"
        )

    @remembered
    def with_subshape(self, index: Sequence[int], shape: Shape | str) -> Pattern:
        """With a part of a tuple of that shape, layouts aside (`WithSubshape`): `(1,)` is the second element.

        >>> import hlotext as hlo
        >>> tuple_ = hlo.parse_instruction("t = (f32[], (s32[4]{0})) tuple(f32[] a, (s32[4]{0}) b)")
        >>> Pattern().with_subshape((1, 0), "s32[4]").matches(tuple_)
        True
        """
        place, text = tuple(index), facts.shape_text(shape)
        return self.with_predicate(
            lambda i: facts.subshape_text(i, place) == text,
            f"the shape at {{{','.join(map(str, place))}}} is {text}",
        )

    @remembered
    def with_shape_equal_to(self, name: str) -> Pattern:
        """With the shape, layouts aside, of what was captured before under a name (`WithShapeCompatibleTo`)."""

        def same(instruction: Instruction, captures: Captures) -> bool:
            other = captures[name].shape
            return (
                instruction.shape is not None
                and other is not None
                and instruction.shape.text_without_layout() == other.text_without_layout()
            )

        return self._and(Condition(f"the shape is that of {name}", same, (name,)))

    @remembered
    def with_element_type(self, *types: ElementType | str) -> Pattern:
        """With one of these element types (`WithElementType`)."""
        names = [str(type_) for type_ in types]
        return self.with_predicate(
            lambda i: i.shape is not None and str(i.shape.element_type) in names,
            f"the element type is {' or '.join(names)}",
        )

    @remembered
    def with_rank(self, rank: int) -> Pattern:
        """With an array of that rank (`WithRank`)."""
        return self.with_predicate(
            lambda i: i.shape is not None and i.shape.is_array and i.shape.rank == rank, f"the rank is {rank}"
        )

    @remembered
    def with_effective_scalar(self) -> Pattern:
        """With one element, in however many dimensions (`IsEffectiveScalar`)."""
        return self.with_predicate(facts.is_effective_scalar, "it is effectively a scalar")

    @remembered
    def with_layout(self, layout: Layout | str) -> Pattern:
        """With that layout (`WithLayout`), given as a value or as text: `{0,1}`."""
        return self.with_predicate(
            lambda i: i.shape is not None and str(i.shape.layout) == str(layout), f"the layout is {layout}"
        )

    # ---- attributes

    @remembered
    def with_attribute(self, name: str, value: object) -> Pattern:
        """With an attribute of that value, in any form that edits and builders accept: `(0,)`, `[0]` or `"{0}"` for
        dimensions.

        A computation may be given by name. An absent attribute has its default value. Raises PatternError for an attribute
        that the opcode does not
        have and for an invalid value; a value unknown to hlotext is given as a `RawValue`.
        """
        try:
            wanted = facts.attribute(self.opcode, name, value)
        except ValueError as error:
            raise PatternError(str(error)) from None
        return self.with_predicate(lambda i: facts.has_attribute(i, name, wanted, value), f"{name}={value}")

    @remembered
    def with_custom_call_target(self, *targets: str) -> Pattern:
        """A custom call of one of these targets (`WithCustomCallTarget`)."""
        return self.with_predicate(
            lambda i: i.attributes.get("custom_call_target") in targets, f"it calls {' or '.join(targets)}"
        )

    def with_contracting_dims(self, lhs: Sequence[int], rhs: Sequence[int]) -> Pattern:
        """A dot that sums over these dimensions of its operands (`WithContractingDims`)."""
        return self._with_dims("contracting", lhs, rhs)

    def with_batch_dims(self, lhs: Sequence[int], rhs: Sequence[int]) -> Pattern:
        """A dot with these batch dimensions; none where both are empty (`WithBatchDims`)."""
        return self._with_dims("batch", lhs, rhs)

    @remembered
    def _with_dims(self, kind: str, lhs: Sequence[int], rhs: Sequence[int]) -> Pattern:
        wanted = tuple(lhs), tuple(rhs)
        return self.with_predicate(
            lambda i: facts.dot_dims(i, kind) == wanted,
            f"the {kind} dimensions are {wanted[0]} and {wanted[1]}",
        )

    @remembered
    def with_replica_groups(self, groups: ReplicaGroups | Sequence[Sequence[int]] | str) -> Pattern:
        """A collective of these groups, however they are written (`WithReplicaGroups`): `{{0,1},{2,3}}` or `[2,2]<=[4]`."""
        wanted = facts.groups(groups)
        return self.with_predicate(lambda i: facts.groups_of(i) == wanted, f"the replica groups are {groups}")

    @remembered
    def with_sharding(self, sharding: Sharding | str) -> Pattern:
        """With that sharding, however it is written, metadata aside (`WithSharding`)."""
        wanted = facts.sharding(sharding)
        return self.with_predicate(lambda i: facts.has_sharding(i, wanted), f"the sharding is {sharding}")

    @remembered
    def with_comparison_direction(self, *directions: str) -> Pattern:
        """A comparison in one of these directions, `"LT"` for example (`WithComparisonDirection`)."""
        return self.with_predicate(
            lambda i: str(i.attributes.get("direction")) in directions,
            f"the direction is {' or '.join(directions)}",
        )

    @remembered
    def with_fusion_kind(self, *kinds: str) -> Pattern:
        """A fusion of one of these kinds, `"kLoop"` for example (`WithFusionKind`)."""
        return self.with_predicate(
            lambda i: i.opcode == "fusion" and str(i.attributes.get("kind")) in kinds,
            f"the kind is {' or '.join(kinds)}",
        )

    @remembered
    def with_reducer(self, opcode: str) -> Pattern:
        """With `to_apply` (or a scatter's or select-and-scatter's combiner) that is one operation on its two parameters.

        In either order where the operation is commutative (XLA's `MatchReductionComputation`).
        """
        return self.with_predicate(lambda i: facts.reducer(i) == opcode, f"it reduces by {opcode}")
