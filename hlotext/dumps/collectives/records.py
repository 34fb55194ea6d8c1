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
    """Line of the innermost frame, or None if absent, as for arguments."""
    file: str
    """File of that line; empty if absent."""
    opcode: str
    """Opcode; empty if the instruction is unknown."""
    instruction: hlo.Instruction | None
    """The instruction in the module before partitioning, or None if ambiguous.

    If that module was not dumped, the instruction is in `Compilation.before`.
    """

    @property
    def label(self) -> str:
        """Short name of the operation: the last component of its op_name, or else its opcode.

        The opcode is also used if the op_name belongs to another operation that was folded in, such as a transpose. A
        parameter has its whole op_name, or else `an argument`.
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
    """Line of the constraint, existing or to be added, or None for arguments and results."""
    spec: str
    """The suggested annotation, such as `P('dp', None)`."""
    now: str | None
    """The existing annotation, or None for a new constraint, or if no PartitionSpec expresses it."""
    confidence: Confidence
    because: str
    """The change and its cost, in one sentence."""
    rule: str
    """The rule that found it, one of `hlotext.dumps.collectives.advice_rules.RULES`."""
    measured: tuple[int, int]
    """Number of trial compilations of this rule on this platform that sent less, and their total number.

    Trials include changes that would not be suggested because they send more.
    """
    measured_on: str
    """Compilers used for the trials in `measured`, such as `CPU with Shardy`."""
    bytes_spared: int | None
    """Bytes per run that each device no longer sends in this collective, or None if unknown.

    0 if only other collectives send less.
    """
    bytes_per_device: int | None
    """Increase of the annotated array in bytes per device, negative if it shrinks, or None if unknown."""
    spec_axes: tuple[tuple[str, ...], ...] = ()
    """`spec` as the axes of each dimension."""
    bytes_total: int | None = None
    """Estimated change in the bytes that each device sends per run in all collectives, or None if unknown.

    Negative if the device sends less.
    """
    work: float = 0.0
    """Estimated relative increase of matrix-product FLOPs per device due to replication (0.5 means 50% more)."""


class Deferred:
    """Suggestions that are computed on first access; the modules they are computed from are then released."""

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
    """A reason why the final HLO has a collective or host transfer."""

    cause: str
    """`reshard`, `partial`, `halo`, `program`, `pass`, `host` or `unknown`."""
    wanted_by: str | None
    """For a reshard, the kind of consumer: `operation`, `constraint`, `result` or `loop`; otherwise None."""
    user: Place | None
    """The operation that needs the collective, or None for results of the program.

    If several operations share a resharded tensor, this is one of them.
    """
    tensor: Place | None
    """The tensor that is moved, or None if unknown. For partial sums and reshards of a result, the operation itself."""
    axes: tuple[str, ...]
    """Names of the mesh axes involved, most major first; empty if unknown."""
    have: str | None
    """The tensor's sharding, such as `P('dp', 'tp')`, or None if unknown or not expressible as a PartitionSpec."""
    want: str | None
    """The sharding that the operation needs, or None if unknown or not expressible as a PartitionSpec."""
    confidence: Confidence
    because: str
    """The reason in one sentence."""
    origin: str = ""
    """Origin of the sharding, in one sentence; empty if unknown."""
    scheme: str = ""
    """The partitioning scheme that intends the collective, in one sentence; empty if none.

    Examples are the gather of an FSDP weight, a gradient reduction over the batch, and a matrix product sharded along
    the contracted dimension."""
    instead: str = ""
    """A change of the program that would send less, if no annotation does; empty if unknown."""
    part: str = ""
    """Name of the collective right after partitioning; empty if not dumped or not found."""
    part_kind: str = ""
    """Original kind of the collective, if a later pass changed it; otherwise empty."""
    readers: int = 1
    """Number of operations that read the tensor in the new sharding."""
    is_rematerialized: bool = False
    """True for XLA's "involuntary full rematerialization": the tensor is gathered, then sliced differently."""
    have_sharding: str | None = None
    """The tensor's HLO sharding, even if no PartitionSpec expresses it, or None if unknown."""
    want_sharding: str | None = None
    """The HLO sharding that is needed, if the module before partitioning has it; otherwise None."""
    result: int | None = None
    """For a reshard needed by a result of the program, the index of the result; otherwise None."""
    doubts: tuple[str, ...] = ()
    """Reasons for uncertainty, in a few words each."""
    _advice: Deferred = attrs.field(factory=Deferred, eq=False, repr=False)

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Up to four suggestions; empty without a mesh.

        Suggestions that duplicate no work come first. Within each group, constraints precede other changes, and more
        certain suggestions precede less certain ones. Computed on first access by propagating each change through the
        program.
        """
        return self._advice.value


@attrs.frozen
class CollectiveCause:
    """The cause of one collective or transfer in the final HLO."""

    instruction: hlo.Instruction
    communication: Communication
    reasons: tuple[Reason, ...]
    """The reasons: one, or one for each of the collectives that were combined."""
    notes: tuple[str, ...] = ()
    """Missing dump files that would give more information, with the flags that produce them."""

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
        """Suggested changes, as sentences: first changes of the program, then annotations."""
        instead = (reason.instead for reason in self.reasons if reason.instead)
        return tuple(dict.fromkeys((*instead, *(one.because for one in self.suggestions))))
