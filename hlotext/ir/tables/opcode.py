"""Rows of the opcode table: operands, attributes in print order, rules and traits."""

from __future__ import annotations

import enum
from typing import Literal, NamedTuple

import attrs

from hlotext.ir.values.types import TypeKind
from hlotext.ir.values.value import Value


class Family(enum.Enum):
    """Family of an opcode, by which shape rules and checks are organized."""

    ELEMENTWISE_UNARY = "elementwise, one operand"
    ELEMENTWISE_BINARY = "elementwise, two operands"
    ELEMENTWISE_TERNARY = "elementwise, three operands"
    DATA_MOVEMENT = "data movement"
    DYNAMIC_SIZE = "run-time sizes"
    INDEXING = "indexing"
    REDUCTION = "reductions and windows"
    SORTING = "sorting"
    CONTRACTION = "dot and convolution"
    LINEAR_ALGEBRA = "linear algebra and transforms"
    NORMALIZATION = "normalization"
    RANDOM = "random numbers"
    COLLECTIVE = "collectives"
    POINT_TO_POINT = "point to point and host transfer"
    ASYNC = "asynchronous wrappers"
    CONTROL_FLOW = "control flow"
    ORDERING = "ordering"
    TUPLE = "tuples"
    SOURCE = "values without operands"
    CUSTOM = "custom calls"


class Payload(enum.Enum):
    """Kind of contents of the parentheses after the opcode."""

    OPERANDS = "operands"
    PARAMETER_NUMBER = "parameter number"
    LITERAL = "literal"


class Count(enum.Enum):
    """Constraint of XLA's parser on the number of operands, besides the bounds."""

    ANY = "any number"
    EVEN = "an even number"
    ODD = "an odd number"
    BRANCHES = "one more than the number of branches"
    RESULT_DIMENSIONS = "one more than the rank of the result"
    INDICES = "one start index per dimension of operand 0, or one index vector"
    CALLED_PARAMETERS = "one per parameter of the called computation"
    TUPLE_ELEMENTS = "one per element of the result"
    FOUR_WITH_SLICES = "four when slice_sizes is given"


@attrs.frozen(repr=False)
class Arity(Value):
    """Number of operands that XLA's parser requires."""

    minimum: int = 0
    maximum: int | None = None
    """None: no bound."""
    count: Count = Count.ANY

    def accepts(self, operands: int) -> bool:
        """Returns True if a number of operands satisfies the bounds and parity."""
        if operands < self.minimum or (self.maximum is not None and operands > self.maximum):
            return False
        if self.count is Count.EVEN:
            return operands % 2 == 0
        return self.count is not Count.ODD or operands % 2 == 1

    def __str__(self) -> str:
        if self.maximum is None:
            bound = f"at least {self.minimum}" if self.minimum else "any number"
        elif self.minimum == self.maximum:
            bound = str(self.minimum)
        else:
            bound = f"{self.minimum} to {self.maximum}"
        return bound if self.count is Count.ANY else f"{bound}, {self.count.value}"


class Elements(enum.Enum):
    """Source of the elements of a result."""

    POINTWISE = "computed from the elements in the same place"
    CONVERT = "the elements in the same place, as another type"
    FORWARD = "those of operand 0, in its buffer"
    VIEW = "those of operand 0, its buffer seen as another shape"
    COPY = "those of operand 0, in another buffer"
    RESHAPE = "those of operand 0 in row-major order, as another shape"
    PERMUTE = "those of operand 0 with its dimensions reordered"
    REVERSE = "those of operand 0, moved within its dimensions"
    SLICE = "a block of operand 0"
    GATHER = "slices of operand 0 at the indices of another operand"
    REPEAT = "those of operand 0, repeated"
    ASSEMBLE = "those of the operands, side by side"
    UPDATE = "those of operand 0 except in some places"
    RESIZE = "those of operand 0 up to the sizes known at run time"
    PACK = "the operands as a tuple"
    UNPACK = "one element of a tuple"
    REDUCE = "several elements combined by a computation"
    CONTRACT = "sums of products"
    GIVEN = "known before the computation runs"
    GENERATED = "counted from zero"
    DEVICE_ID = "the number of the device"
    TOKEN = "none: a token"
    CALL = "the result of a computation that binds the operands to its parameters, or of several"
    SEND = "those of other devices, or of the host"
    OTHER = "another computation"


class Effect(enum.Enum):
    """Condition under which an instruction has side effects (`HloInstruction::HasSideEffectNoRecurse`)."""

    NONE = "never"
    ALWAYS = "always"
    CHANNEL = "with a channel, unless one program runs on all partitions"
    CHANNEL_OR_LAYOUT = "with such a channel, or with `constrain_layout`"
    DECLARED = "if it says so (`custom_call_has_side_effect`)"


class CallContext(enum.Enum):
    """Way in which the computations that an opcode calls are used (`GetInstructionCallContext`)."""

    NONE = "calls none"
    CONTROL_FLOW = "runs them as a part of the schedule"
    EMBEDDED = "applies them to elements, or is compiled from them"


AsyncRole = Literal["start", "update", "done"]
"""Position of an opcode in an asynchronous operation."""


class WireRule(
    NamedTuple
):  # making a class with attrs takes a millisecond, and every start would wait for it
    """Formula for the bytes that a device sends, from D operand bytes and R result bytes in a group of n devices."""

    counts: Literal["operands", "results"] = "operands"
    """The bytes that are counted: D or R."""
    is_shared: bool = False
    """True if a device keeps its own part, so that (n - 1) / n of the bytes are sent."""
    rounds: int = 1
    """Number of times everything goes around: 2 where a reduction is followed by the distribution of its result."""
    is_at_most: bool = False
    """True if the figure is an upper bound: the real one is known only at run time."""
    steps: Literal["one", "chain", "exchange"] = "one"
    """Messages that follow each other in a round: one; a chain of n - 1 (a tree: log n); n / 2 exchanges."""


class CommunicationKind(NamedTuple):
    """A kind of communication, shared by its synchronous opcode and by its start and done."""

    kind: str
    """The synchronous opcode; of transfers the opcode that begins them."""
    wire: WireRule
    is_reduction: bool = False
    """Combines the elements of several devices with a computation."""
    has_uneven_groups: bool = False
    """Groups may differ in size."""
    has_partial_groups: bool = False
    """Some devices may be in no group; XLA does not check the groups."""
    counts_partitions: bool = False
    """With a channel the groups always count partitions: there is no `use_global_device_ids`."""


class Printing(enum.Enum):
    """Condition under which XLA prints an attribute."""

    IF_PRESENT = "if present, even if empty"
    ALWAYS = "always; `AttributeUse.default` if absent"
    DERIVED = "always, as derived from the shapes (see `AttributeUse.default`)"
    IF_TRUE = "only when true"
    IF_NOT_DEFAULT = "only when it differs from `AttributeUse.default`"
    IF_ANY_NOT_DEFAULT = "only when one of its entries differs from `AttributeUse.default`"
    IF_NOT_EMPTY = "only if not empty or `{}`"
    INPUT_ONLY = "never; accepted and ignored"


class Derived(enum.Enum):
    """Default of an attribute that depends on the shapes of the instruction and its first operand."""

    COMPARISON_ORDER = "the order of operand 0's element type"
    COMPARISON_TYPE = "the comparison type of operand 0's element type"
    OPERAND_SHAPE = "operand 0's shape"
    RESULT_DIMENSIONS = "every dimension number of the result, ascending"


class Calls(enum.Enum):
    """Number of computations that an attribute refers to."""

    NONE = "no computation"
    ONE = "one computation"
    LIST = "a list of computations in braces"


class Role(enum.Enum):
    """Role of an attribute in an instruction."""

    MEANING = "a part of the operation"
    IDENTIFIER = "a number that tells operations apart"
    PROVENANCE = "where the operation comes from, or what was measured of it"
    ANNOTATION = "a message to a compiler"
    REFERENCE = "computations"
    SHARDING = "how the result is distributed"
    CONTROL = "what runs before"


@attrs.frozen(repr=False)
class AttributeUse(Value):
    """An attribute as used by one opcode."""

    name: str
    """The name before `=`."""
    printed: Printing = Printing.IF_PRESENT
    required: bool = False
    """XLA's reader rejects the instruction without it."""
    default: object = None
    """Value of an absent attribute; None if there is none. A `Derived` depends on operand 0."""
    calls: Calls = Calls.NONE
    optional_for_scalar: bool = False
    """A required attribute that may be missing when operand 0 is a scalar."""
    new: bool = False
    """Unknown to the XLA release whose printing is imitated; accepted, and printed if given."""
    old: bool = False
    """Only in text of older releases; accepted, and printed where it was given."""
    role: Role = Role.MEANING
    """Not asked of attributes that name computations: these are `REFERENCE`."""
    spellings: tuple[str, ...] = ()
    """Its names in other releases: text is read under each of them, and printed under the one that its source uses."""


@attrs.frozen(
    eq=False, repr=False
)  # each row is the only one of its name, and the memories below ask for it often
class Opcode(Value):
    """A row of the opcode table."""

    name: str
    """The word in the text."""
    family: Family
    arity: Arity
    doc: str
    """Description of the operation, in a sentence or two."""
    example: str
    """A whole op line that uses it, readable on its own."""
    attributes: tuple[AttributeUse, ...] = ()
    """Its own attributes in print order, called computations included; then come the common attributes."""
    shape_rule: str | None = None
    """Name of the shape inference rule; None if operands and attributes say nothing of the result."""
    cost_rule: str | None = None
    """Name of the rule by which its operations and bytes are counted (`hlotext.cost`)."""
    shape_optional: bool = False
    """XLA's reader infers the result shape when it is left out."""
    result_accuracy: bool = False
    """Accepts the common attribute `result_accuracy`."""
    payload: Payload = Payload.OPERANDS
    stored_calls: tuple[str, ...] = ()
    """The attributes that name computations in XLA's stored order, where that is not the print order."""
    alternatives: tuple[tuple[str, ...], ...] = ()
    """Sets of attributes of which exactly one set is required (conditional: by operand 0's type)."""
    new: bool = False
    """Unknown to the XLA release whose printing is imitated."""
    elements: Elements = Elements.OTHER
    effect: Effect = Effect.NONE
    call_context: CallContext = CallContext.NONE
    binds_operands: bool = False
    """Operand n is parameter n of the computation that it calls."""
    async_role: AsyncRole | None = None
    """None: not a part of an asynchronous operation."""
    communication: CommunicationKind | None = None
    """None: elements stay on the device."""
    keeps_layout: bool = False
    """Arrays of one rank all have one layout (`LayoutAssignment::InstructionCanChangeLayout` is false)."""
    mixes_precision: bool = False
    """Operands may be floats of different precision in any case (`CheckMixedPrecisionOperands`)."""
    keeps_types: bool = False
    """Element types of the result are exactly the inferred ones, also where precisions mix (`ShapeVerifier`)."""
    operand_types: frozenset[TypeKind] | None = None
    """Kinds of element type that an elementwise opcode accepts; None if its rule says more than kinds."""
    commutes: bool = False
    """Two operands may be exchanged."""

    def __str__(self) -> str:
        return self.name

    @property
    def called_attributes(self) -> tuple[AttributeUse, ...]:
        """Attributes that refer to computations, in print order."""
        return tuple(use for use in self.attributes if use.calls is not Calls.NONE)

    @property
    def stored_called_names(self) -> tuple[str, ...]:
        """Names of the attributes that refer to computations, in XLA's storage order."""
        return self.stored_calls or tuple(use.name for use in self.called_attributes)

    def attribute(self, name: str) -> AttributeUse | None:
        """Returns the opcode-specific attribute with this name, or None if there is none."""
        for use in self.attributes:
            if use.name == name:
                return use
        return None
