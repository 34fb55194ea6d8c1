"""One pattern: what an instruction must be."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

import attrs

from hlotext import syntax
from hlotext.ir import sending
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.spelling import with_article
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Payload
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.ir.values.shape import Layout, Shape
from hlotext.ir.values.sharding import Sharding
from hlotext.ir.values.types import ElementType, type_meant
from hlotext.matchers import facts, words
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
from hlotext.semantics import conditions

Match: TypeAlias = Mapping[str, Any]


class PatternError(ValueError):
    """Raised for an invalid pattern. The message gives the reason and, for a pattern given as text, the position."""


def check_operands(opcode: str, operands: Sequence[Any]) -> None:
    """Raises PatternError unless all operands are patterns, and the opcode accepts that many."""
    for one in operands:
        if not isinstance(one, Pattern):
            is_number = isinstance(one, bool | int | float | complex)
            use = (
                f"constant({one!r})"
                if is_number
                else f"op({one!r})"
                if isinstance(one, str)
                else "op() for any"
            )
            raise PatternError(f"an operand of {opcode} is a pattern, not {type(one).__name__}; use {use}")
    row = opcodes.opcode(opcode)
    if operands and row is not None and row.payload is Payload.OPERANDS:
        _checked(conditions.wrong_count(row, len(operands)))


def _shape_text(given: Shape | str) -> str:
    """The text of a shape that is compared, without layouts. Raises PatternError."""
    shape: Shape = _read(syntax.read_terms.parse_shape, given, Shape)
    text = shape.text_without_layout()
    _checked(words.unknown_type(text))
    return text


def _checked(said: str | None) -> None:
    """Raises PatternError with a message, if there is one."""
    if said:
        raise PatternError(said)


def _read(read: Callable[[str], Any], given: str | Any, kind: type) -> Any:
    """A value that is given, or what its text reads as. Raises PatternError."""
    if isinstance(given, kind):
        return given
    if not isinstance(given, str):
        raise PatternError(f"expected {with_article(kind.__name__)} or its text, not {type(given).__name__}")
    try:
        return read(given)
    except ValueError as error:
        raise PatternError(f"{given!r} is not the text of {with_article(kind.__name__)}") from error


MAX_ANY_ORDER = 6
"""Maximum number of operands in any order: six have 720 orders."""


@attrs.frozen
class Condition(sending.Uncopied):
    """A condition on an instruction beyond its opcode and operands."""

    text: str
    """Description for explanations, such as `it has one user`."""
    holds: Callable[[Instruction, Captures], bool] = attrs.field(repr=False)
    """Function that evaluates the condition. It may add captures, which are undone if it returns False."""
    names: tuple[str, ...] = ()
    """Captures that the condition reads or adds."""
    origin: tuple[Callable[..., Pattern | Condition], tuple[Any, ...], dict[str, Any]] | None = attrs.field(
        default=None, repr=False
    )
    """Function and arguments that recreate this condition, or None if it cannot be recreated."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Condition) or (self.text, self.names) != (other.text, other.names):
            return False
        return self.holds is other.holds if self.origin is None else self.origin == other.origin

    def __hash__(self) -> int:
        return hash((self.text, self.names))

    def __reduce__(self) -> tuple[Any, ...]:
        """Supports pickling. Raises TypeError for a function that cannot be imported."""
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
    """Decorator for functions that create conditions: records the arguments, so that patterns can be pickled."""

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


@with_foreign_names
@attrs.frozen
class Pattern:
    """A pattern that matches instructions, built by the functions of `hlotext.matchers`.

    Patterns are immutable: each `with_` method returns a copy with one more requirement.
    """

    opcode: str | None = None
    """The opcode, or None for any."""
    operands: tuple[Pattern, ...] | None = None
    """A pattern per operand, or None for any operands."""
    capture: str | None = None
    """Name of the instruction in the match. A name used twice must match the same instruction."""
    any_order: bool = False
    """Match operands in any order. Limited to `MAX_ANY_ORDER` operands (ValueError)."""
    conditions: tuple[Condition, ...] = ()
    alternatives: tuple[Pattern, ...] = ()
    """If not empty, one of these must match in addition to the other fields."""
    open_ended: bool = False
    """Allow more operands than patterns."""
    options: MatchOptions | None = None
    """Instructions to look through below this pattern; None inherits from the enclosing pattern."""
    single_operands: tuple[SingleOperand, ...] = ()
    forbidden: tuple[Pattern, ...] = ()
    """Patterns that must not match."""
    name_counts: Mapping[str, int] = attrs.field(init=False, eq=False, repr=False)
    """Number of occurrences of each name in this pattern; 2 if a condition or a forbidden pattern refers to it."""
    is_branching: bool = attrs.field(init=False, eq=False, repr=False)
    """True if the pattern can match in several ways."""
    is_direct: bool = attrs.field(init=False, eq=False, repr=False)
    """True if matching only needs to compare opcodes, operands, names and conditions from left to right."""

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
        """Capture names that are used more than once in the pattern."""
        return frozenset(name for name, count in self.name_counts.items() if count > 1)

    # ---- trying

    def match(self, instruction: Instruction, options: MatchOptions = NOTHING_SKIPPED) -> Match | None:
        """Returns the captures of the first match, by name, or None if the instruction does not match.

        `options` apply where the pattern does not set its own. Raises ValueError if more than `MAX_ANY_ORDER` operands
        are to be matched in any order.
        """
        options = self.options or options
        if options.start:
            instruction = looked_through(instruction, options)
        if self.opcode is not None and instruction._head.opcode != self.opcode:
            return None
        if self.is_direct:
            captures: Captures = {}
            return captures if matches_directly(self, instruction, captures, options) else None
        ways = Matching(self).ways(self, Place(instruction), {}, options)
        return ways[0] if ways else None

    def matches(self, instruction: Instruction) -> bool:
        """Returns True if the instruction matches the pattern."""
        return self.match(instruction) is not None

    def explain(self, instruction: Instruction, options: MatchOptions = NOTHING_SKIPPED) -> str | None:
        """Returns the reason why an instruction does not match, for the attempt that got furthest; None if it matches.

        `options` are as in `match`.
        """
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
        """Returns this pattern, requiring a predicate to hold; `text` describes it in explanations."""
        return self._and(Condition(text, lambda instruction, _: holds(instruction)))

    def _and(self, condition: Condition) -> Pattern:
        return attrs.evolve(self, conditions=(*self.conditions, condition))

    def named(self, name: str) -> Pattern:
        """Returns this pattern, capturing the instruction under a name."""
        return attrs.evolve(self, capture=name)

    def but_not(self, *patterns: Pattern) -> Pattern:
        """Returns this pattern, requiring that none of the given patterns match."""
        return attrs.evolve(self, forbidden=(*self.forbidden, *patterns))

    def through(self, *opcodes: str, fusion: bool = False, start: bool = False) -> Pattern:
        """Returns this pattern, looking through operands with these opcodes, or into and out of fusions.

        With `start`, also looks through the matched instruction itself, so that a pattern for the body of a fusion
        matches the fusion.
        """
        return attrs.evolve(self, options=MatchOptions(frozenset(opcodes), fusion, start))

    # ---- operands and users

    def with_operand(self, number: int, pattern: Pattern) -> Pattern:
        """Returns this pattern, requiring operand `number` to exist and to match a pattern (`WithOperand`)."""
        return attrs.evolve(self, single_operands=(*self.single_operands, SingleOperand(number, pattern)))

    def with_operand_if_present(self, number: int, pattern: Pattern) -> Pattern:
        """Returns this pattern, requiring operand `number` to match a pattern if it exists (`WithOperandIfPresent`)."""
        return attrs.evolve(
            self, single_operands=(*self.single_operands, SingleOperand(number, pattern, is_optional=True))
        )

    @remembered
    def with_operand_count(self, count: int) -> Pattern:
        """Returns this pattern, requiring exactly `count` operands (`WithNumOperands`)."""
        return self.with_predicate(lambda i: len(i.operands) == count, f"it has {count} operands")

    @remembered
    def with_one_use(self) -> Pattern:
        """Returns this pattern, requiring exactly one use: one operand of one user (`WithOneUse`)."""
        return self.with_predicate(
            lambda i: sum(user.operands.count(i) for user in i.users) == 1, "it is used in one place"
        )

    @remembered
    def with_one_user(self) -> Pattern:
        """Returns this pattern, requiring exactly one user, which may use it several times (`WithOneUser`)."""
        return self.with_predicate(lambda i: len(i.user_view) == 1, "it has one user")

    # ---- shapes

    @remembered
    def with_shape(self, shape: Shape | str) -> Pattern:
        """Returns this pattern, requiring a shape, as a value or as text, ignoring layouts (`WithShape`).

        Raises PatternError for invalid text.
        """
        text = _shape_text(shape)
        return self.with_predicate(
            lambda i: i.shape is not None and i.shape.text_without_layout() == text, f"the shape is {text}"
        )

    @remembered
    def with_subshape(self, index: Sequence[int], shape: Shape | str) -> Pattern:
        """Returns this pattern, requiring a tuple with a given subshape, ignoring layouts (`WithSubshape`).

        Index `(1,)` is the second element. Raises PatternError for an invalid shape.

        >>> import hlotext as hlo
        >>> tuple_ = hlo.parse_instruction("t = (f32[], (s32[4]{0})) tuple(f32[] a, (s32[4]{0}) b)")
        >>> Pattern().with_subshape((1, 0), "s32[4]").matches(tuple_)
        True
        """
        place, text = tuple(index), _shape_text(shape)
        return self.with_predicate(
            lambda i: facts.subshape_text(i, place) == text,
            f"the shape at {{{','.join(map(str, place))}}} is {text}",
        )

    @remembered
    def with_shape_equal_to(self, name: str) -> Pattern:
        """Returns this pattern, requiring the shape of the capture `name`, ignoring layouts (`WithShapeCompatibleTo`)."""

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
        """Returns this pattern, requiring one of these element types, as values or by name (`WithElementType`).

        Raises PatternError for an unknown type.
        """
        try:
            names = [type_meant(type_).name for type_ in types]
        except (KeyError, TypeError) as error:
            raise PatternError(str(error)) from None
        return self.with_predicate(
            lambda i: i.shape is not None and str(i.shape.element_type) in names,
            f"the element type is {' or '.join(names)}",
        )

    @remembered
    def with_rank(self, rank: int) -> Pattern:
        """Returns this pattern, requiring an array of this rank (`WithRank`).

        Raises PatternError if the rank is not an integer.
        """
        if not isinstance(rank, int):
            raise PatternError(f"a rank is an integer, not {type(rank).__name__}")
        return self.with_predicate(
            lambda i: i.shape is not None and i.shape.is_array and i.shape.rank == rank, f"the rank is {rank}"
        )

    @remembered
    def with_effective_scalar(self) -> Pattern:
        """Returns this pattern, requiring an array with a single element, of any rank (`IsEffectiveScalar`)."""
        return self.with_predicate(facts.is_effective_scalar, "it is effectively a scalar")

    @remembered
    def with_layout(self, layout: Layout | str) -> Pattern:
        """Returns this pattern, requiring a layout, as a value or as XLA prints it, such as `{0,1}` (`WithLayout`).

        Raises PatternError for invalid text.
        """
        text = str(_read(syntax.read_terms.parse_layout, layout, Layout))
        return self.with_predicate(
            lambda i: i.shape is not None and str(i.shape.layout) == text, f"the layout is {text}"
        )

    # ---- attributes

    @remembered
    def with_attribute(self, name: str, value: object) -> Pattern:
        """Returns this pattern, requiring an attribute to have a value. A missing attribute has its default value.

        Args:
            name: Name of the attribute in HLO text.
            value: The value, in any form that edits and builders accept, such as `(0,)`, `[0]` or `"{0}"`; a computation
                may be given by name, and a value unknown to hlotext as a `RawValue`.

        Raises:
            PatternError: The opcode does not have the attribute, or the value is invalid.
        """
        try:
            wanted = facts.attribute(self.opcode, name, value)
        except ValueError as error:
            raise PatternError(str(error)) from None
        return self.with_predicate(lambda i: facts.has_attribute(i, name, wanted, value), f"{name}={value}")

    @remembered
    def with_custom_call_target(self, *targets: str) -> Pattern:
        """Returns this pattern, requiring a custom call with one of these targets (`WithCustomCallTarget`)."""
        return self.with_predicate(
            lambda i: i.attributes.get("custom_call_target") in targets, f"it calls {' or '.join(targets)}"
        )

    def with_contracting_dims(self, lhs: Sequence[int], rhs: Sequence[int]) -> Pattern:
        """Returns this pattern, requiring a dot with exactly these contracting dimensions (`WithContractingDims`)."""
        return self._with_dims("contracting", lhs, rhs)

    def with_batch_dims(self, lhs: Sequence[int], rhs: Sequence[int]) -> Pattern:
        """Returns this pattern, requiring a dot with exactly these batch dimensions (`WithBatchDims`)."""
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
        """Returns this pattern, requiring replica groups equal to these, whatever their notation (`WithReplicaGroups`).

        Text such as `{{0,1},{2,3}}` or `[2,2]<=[4]` is parsed. Raises HloSyntaxError if it is invalid.
        """
        wanted = facts.groups(groups)
        return self.with_predicate(lambda i: facts.groups_of(i) == wanted, f"the replica groups are {groups}")

    @remembered
    def with_sharding(self, sharding: Sharding | str) -> Pattern:
        """Returns this pattern, requiring a sharding equal to this one, whatever its notation and metadata (`WithSharding`).

        Text such as `{devices=[2,1]<=[2]}` is parsed. Raises HloSyntaxError if it is invalid.
        """
        wanted = facts.sharding(sharding)
        return self.with_predicate(lambda i: facts.has_sharding(i, wanted), f"the sharding is {sharding}")

    @remembered
    def with_comparison_direction(self, *directions: str) -> Pattern:
        """Returns this pattern, requiring a comparison direction such as `"LT"` (`WithComparisonDirection`).

        With several directions, any of them matches.
        """
        return self.with_predicate(
            lambda i: str(i.attributes.get("direction")) in directions,
            f"the direction is {' or '.join(directions)}",
        )

    @remembered
    def with_fusion_kind(self, *kinds: str) -> Pattern:
        """Returns this pattern, requiring a fusion of one of these kinds, such as `"kLoop"` (`WithFusionKind`)."""
        return self.with_predicate(
            lambda i: i.opcode == "fusion" and str(i.attributes.get("kind")) in kinds,
            f"the kind is {' or '.join(kinds)}",
        )

    @remembered
    def with_reducer(self, opcode: str) -> Pattern:
        """Returns this pattern, requiring a reducer that applies one operation, such as `add`, to its two parameters.

        The reducer is the `to_apply` of the instruction, or the combiner of a scatter. For commutative operations the
        parameters may be in either order (XLA's `MatchReductionComputation`). Raises PatternError for an unknown opcode.
        """
        _checked(words.unknown_opcode(opcode))
        return self.with_predicate(lambda i: facts.reducer(i) == opcode, f"it reduces by {opcode}")
