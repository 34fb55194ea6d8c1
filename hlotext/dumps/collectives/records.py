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
    """Empty if the text has none."""
    line: int | None
    """Line of its innermost frame; None if the text has none, as for arguments."""
    file: str
    """The file of that line; empty if the text has none."""
    opcode: str
    """Empty where the instruction is not known."""
    instruction: hlo.Instruction | None
    """Of the text before partitioning, or of `Compilation.before` where that was not dumped; None where several fit."""

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
    """`params['w1']`, the op_name of the constrained operation, or `result[0]`."""
    line: int | None
    """Of a constraint the line where it is, or is to be put; None for others."""
    spec: str
    """The annotation to write there: `P('dp', None)`."""
    now: str | None
    """The annotation that is there now; None for a constraint that would be new, and where no PartitionSpec says it."""
    confidence: Confidence
    because: str
    """The change and its price, in one sentence."""
    rule: str
    """The rule that found it, one of `hlotext.dumps.collectives.advice_rules.RULES`."""
    measured: tuple[int, int]
    """Recompilations with changes by this rule on this platform: the number that sent less, and of how many. All that the
    rule finds count, also those that are not suggested since they would send more."""
    measured_on: str
    """The compilers of these recompilations, such as `CPU with Shardy`."""
    bytes_spared: int | None
    """Bytes that each device sends less in this collective per run of the module, 0 where it stays and others send less; None
    where a size or a trip count is not known."""
    bytes_per_device: int | None
    """Increase of the annotated array in bytes per device, negative if it shrinks; None if unknown."""
    spec_axes: tuple[tuple[str, ...], ...] = ()
    """`spec` as the axes of each dimension."""
    bytes_total: int | None = None
    """Estimated change in bytes that each device sends per run by all collectives, negative if it sends less: others may
    vanish too, or grow with their shards. None where that is not known."""
    work: float = 0.0
    """Estimated share by which the products of each device grow (0.5: half as many operations more): where an axis of the
    batch is taken off, devices compute the same several times."""


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
    """A reason why the partitioner created a collective, or one of those combined into it; or a host transfer."""

    cause: str
    """`reshard`, `partial`, `halo`, `program`, `pass`, `host` or `unknown`."""
    wanted_by: str | None
    """Of a reshard what wants the other sharding: `operation`, `constraint`, `result` or `loop`; else None."""
    user: Place | None
    """The operation that needs it, one of several where a resharded tensor is shared; None for results of the program."""
    tensor: Place | None
    """The tensor that is moved. Of a partial sum and of a reshard of a result the operation itself; None where unknown."""
    axes: tuple[str, ...]
    """Names of the mesh axes that it goes along, the most major first; empty where they are not known."""
    have: str | None
    """The tensor's sharding, `P('dp', 'tp')`; None where it is not known or no PartitionSpec says it."""
    want: str | None
    """The sharding that the operation needs; None if it is unknown or not a PartitionSpec."""
    confidence: Confidence
    because: str
    """The reason in one sentence."""
    origin: str = ""
    """Origin of the sharding, in one sentence; empty if unknown."""
    scheme: str = ""
    """The partitioning scheme that it belongs to, in one sentence, if it is intended: a gather of an FSDP weight, a
    sum of gradients over the batch, both factors sharded along the contracted dimension."""
    instead: str = ""
    """Another way to write the program that would send less, where no annotation does; empty if none is known."""
    part: str = ""
    """The collective right after partitioning; empty if that text was not dumped or does not show it."""
    part_kind: str = ""
    """Kind of `part` where a later pass rewrote it into another; else empty."""
    readers: int = 1
    """Number of operations that read the tensor in the new sharding."""
    is_rematerialized: bool = False
    """True where the tensor is gathered and cut again along another dimension (XLA's "involuntary full
    rematerialization")."""
    have_sharding: str | None = None
    """The tensor's HLO sharding, also where no PartitionSpec says it."""
    want_sharding: str | None = None
    """The HLO sharding that is wanted, where the text before partitioning has it."""
    result: int | None = None
    """Of a reshard that a result of the program wants the number of the result."""
    doubts: tuple[str, ...] = ()
    """Why it is not sure, or unknown, in a few words each."""
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
    """One, or one for each collective that was combined into it."""
    notes: tuple[str, ...] = ()
    """Missing inputs that would tell more, and the flags to dump them."""

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
