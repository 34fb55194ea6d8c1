"""The answer to "why is this collective there?": one record for each collective, reason, place and suggestion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import attrs

import hlotext as hlo
from hlotext.analysis import Communication
from hlotext.ir.tables import traits

Confidence = Literal["high", "medium", "low"]
HIGH: Confidence = "high"
MEDIUM: Confidence = "medium"
LOW: Confidence = "low"

RESHARD, PARTIAL, HALO, PROGRAM, PASS, UNKNOWN = "reshard", "partial", "halo", "program", "pass", "unknown"
HOST = "host"
"""Of what goes between a device and its host: a callback's arguments and results, an infeed, an outfeed."""
OPERATION, CONSTRAINT, RESULT, LOOP = "operation", "constraint", "result", "loop"


@attrs.frozen
class Place:
    """An operation of the program that is involved in a collective."""

    op_name: str
    """The op_name; empty if absent."""
    line: int | None
    """Line of the innermost frame; None if absent, as for arguments."""
    file: str
    """File of that line; empty if absent."""
    opcode: str
    """Opcode; empty if the instruction is unknown."""
    instruction: hlo.Instruction | None
    """The instruction in the text before partitioning, or in `Compilation.before` if that was not dumped;

    None if ambiguous.
    """

    @property
    def label(self) -> str:
        """Name of the operation in sentences: the last component of its op_name, else its opcode.

        The opcode is also used if the op_name is that of a transpose or the like that was folded into the operation.
        """
        if self.opcode == "parameter" and self.op_name:
            return self.op_name
        called = self.op_name.rpartition("/")[2]
        while called.endswith(")") and called.count(")") > called.count(
            "("
        ):  # of `transpose(jvp(f/reduce_sum))`
            called = called[:-1]
        if called in traits.REARRANGES_ELEMENTS and self.opcode in (*traits.CONTRACTIONS, *traits.REDUCTIONS):
            return self.opcode
        if self.opcode == "parameter" and not self.op_name:
            return "an argument"
        return called or self.op_name or self.opcode

    def __str__(self) -> str:
        return f"{self.label} (line {self.line})" if self.line else self.label


@attrs.frozen
class Suggestion:
    """A change of one annotation that may avoid a collective."""

    kind: Literal["argument", "constraint", "result"]
    name: str
    """The annotated value: `params['w1']`, the op_name of the constrained operation, or `result[0]`."""
    line: int | None
    """Line of the constraint, existing or to be added; None for arguments and results."""
    spec: str
    """The suggested annotation, such as `P('dp', None)`."""
    now: str | None
    """The existing annotation; None for a new constraint, or if it is not expressible as a PartitionSpec."""
    confidence: Confidence
    because: str
    """The change and its cost, in one sentence."""
    rule: str
    """The rule that found it, one of `hlotext.dumps.collectives.advice_rules.RULES`."""
    measured: tuple[int, int]
    """Recompilations with changes by this rule on this platform: the number that sent less, and the total number.

    Includes changes that are not suggested because they would send more.
    """
    measured_on: str
    """Compilers used for these recompilations, such as `CPU with Shardy`."""
    bytes_spared: int | None
    """Bytes per run that each device no longer sends in this collective; 0 if only other collectives shrink;

    None if a size or trip count is unknown.
    """
    bytes_per_device: int | None
    """Increase of the annotated array in bytes per device, negative if it shrinks; None if unknown."""
    spec_axes: tuple[tuple[str, ...], ...] = ()
    """`spec` as the axes of each dimension."""
    bytes_total: int | None = None
    """Estimated change in bytes that each device sends per run over all collectives, negative for less;

    None if unknown.
    """
    work: float = 0.0
    """Estimated relative increase of matrix-product FLOPs per device (0.5 means 50 % more), where replicating along a
    batch axis duplicates work."""


class Deferred:
    """Suggestions that are computed when asked for; what computes them holds the texts, and is let go then."""

    __slots__ = ("_make", "_value")

    def __init__(
        self,
        value: tuple[Suggestion, ...] = (),
        make: Callable[[], tuple[Suggestion, ...]] | None = None,
    ) -> None:
        self._value, self._make = value, make

    @property
    def value(self) -> tuple[Suggestion, ...]:
        if self._make is not None:
            self._value, self._make = self._make(), None
        return self._value

    def __reduce__(self) -> tuple[type[Deferred], tuple[object, ...]]:
        return Deferred, (self.value,)


@attrs.frozen
class Reason:
    """A reason why the partitioner created a collective, one of the collectives combined into it, or a host
    transfer."""

    cause: str
    """`reshard`, `partial`, `halo`, `program`, `pass`, `host` or `unknown`."""
    wanted_by: str | None
    """For a reshard, the consumer of the other sharding: `operation`, `constraint`, `result` or `loop`; else None."""
    user: Place | None
    """The operation that needs the collective, or one of several that share a resharded tensor;

    None for results of the program.
    """
    tensor: Place | None
    """The tensor that is moved; for partial sums and reshards of a result, the operation itself. None if unknown."""
    axes: tuple[str, ...]
    """Names of the mesh axes involved, most major first; empty if unknown."""
    have: str | None
    """The tensor's sharding, as `P('dp', 'tp')`; None if unknown or not expressible as a PartitionSpec."""
    want: str | None
    """The sharding that the operation needs; None if it is unknown or not a PartitionSpec."""
    confidence: Confidence
    because: str
    """The reason in one sentence."""
    origin: str = ""
    """Origin of the sharding, in one sentence; empty if unknown."""
    scheme: str = ""
    """The partitioning scheme that intends it, in one sentence: a gather of an FSDP weight, a gradient reduction over the
    batch, a matrix product sharded along the contracted dimension. Empty if none."""
    instead: str = ""
    """Another way to write the program that would send less, if no annotation does; empty if unknown."""
    part: str = ""
    """Name of the collective right after partitioning; empty if that text was not dumped or lacks it."""
    part_kind: str = ""
    """Kind of `part`, if a later pass changed it; else empty."""
    readers: int = 1
    """Number of operations that read the tensor in the new sharding."""
    is_rematerialized: bool = False
    """True if the tensor is gathered and then sliced along another dimension (XLA's "involuntary full
    rematerialization")."""
    have_sharding: str | None = None
    """The tensor's HLO sharding, even if no PartitionSpec expresses it; None if unknown."""
    want_sharding: str | None = None
    """The HLO sharding that is needed, if the text before partitioning has it; else None."""
    result: int | None = None
    """For a reshard needed by a result of the program, the index of the result; else None."""
    doubts: tuple[str, ...] = ()
    """Reasons for uncertainty, in a few words each."""
    _advice: Deferred = attrs.field(factory=Deferred, eq=False, repr=False)

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Up to four suggestions, most certain first.

        Computed on first use by following each change through the program.
        """
        return self._advice.value


@attrs.frozen
class CollectiveCause:
    """The cause of one collective or transfer of the final text."""

    instruction: hlo.Instruction
    communication: Communication
    reasons: tuple[Reason, ...]
    """One reason, or one per collective that was combined into it."""
    notes: tuple[str, ...] = ()
    """Missing inputs that would give more information, with the flags that dump them."""

    @property
    def why(self) -> str:
        """The reasons in sentences, without duplicates."""
        return "; ".join(dict.fromkeys(reason.because for reason in self.reasons))

    @property
    def confidence(self) -> Confidence:
        """Confidence of the least certain reason."""
        order: tuple[Confidence, ...] = (HIGH, MEDIUM, LOW)
        return max((reason.confidence for reason in self.reasons), key=order.index, default=LOW)

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Suggestions of all reasons, without duplicates."""
        return tuple(dict.fromkeys(one for reason in self.reasons for one in reason.suggestions))

    @property
    def changes(self) -> tuple[str, ...]:
        """Suggested changes, in sentences: other ways to write the program, then annotations."""
        instead = (reason.instead for reason in self.reasons if reason.instead)
        return tuple(dict.fromkeys((*instead, *(one.because for one in self.suggestions))))
