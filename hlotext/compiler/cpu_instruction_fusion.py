"""Instruction fusion as XLA's CPU compiler does it (`CpuInstructionFusion`), with the reason for every pair.

The pass is greedy and knows no costs. Consumers come last first; each takes in, one after the other, what of its operands the
rules below allow, latest first, and is looked at again after each.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis.age import age_for
from hlotext.compiler.decision import Decision, Outcome
from hlotext.compiler.fusion_graph import Body, Graph, Member, Node
from hlotext.compiler.fusion_node_indexing import MOST, Duplication
from hlotext.compiler.fusion_rules import (
    ENTERED,
    UNSUPPORTED_INSIDE,
    element_bytes,
    in_place_conflict,
    is_effective_scalar,
    is_expensive,
    is_loop_fusible,
    is_minor_concatenate,
    is_output_fusible,
    reused_operands,
)
from hlotext.compiler.globally_unfusible import GloballyUnfusible, Refusal, shifted_by_its_maximum
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits, xla_changes
from hlotext.ir.values.age import XlaAge
from hlotext.ir.values.enums import FusionKind
from hlotext.memory.elementwise import Elementwise
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.passes.base import Age, Pass, PassResult, is_age, nonfusion_computations

MOST_CONCATENATED = 8
MOST_REDUCTIONS = 5
SMALL_VECTOR_BYTES = 16 * 1024
"""Limits of `CpuInstructionFusion::ShouldFuse`."""

NOT_FUSIBLE = traits.CONTROL_FLOW | {"domain", "parameter"}
ALWAYS_FUSIBLE = traits.REDUCTIONS | {"fusion", "map"}
"""`HloInstruction::IsFusible`; of what is left, what has no side effect."""

_FINAL = frozenset(
    {
        "not fusible", "root", "constant is not a scalar", "producer is not loop-fusible", "concatenate",
        "producer is a fusion", "code duplication", "must not be duplicated",
    }
)  # fmt: skip
"""Rules that say the same of a pair however the fusion grows."""


@attrs.frozen
class FusionOutcome(Outcome):
    """Outcome of fusion: the fused module, with a decision for every pair that was considered."""

    before: Module | None = None

    def why_not(self, producer: str, consumer: str) -> tuple[Decision, ...]:
        """Returns the decisions for or against fusing `producer` into `consumer`, both given by name.

        A consumer may be in several fusions, with one decision for each. A pair that was not considered yields one
        decision that says why. Raises ValueError if a name is not in the module.
        """
        assert self.before is not None
        found = {i.name: i for i in self.before.instructions() if i.name in (producer, consumer)}
        for name in (producer, consumer):
            if name not in found:
                raise ValueError(f"no instruction {name}")
        homes = self._homes(consumer)
        kept = tuple(
            d for d in self.decisions if d.instruction in homes and d.others and d.others[0] == producer
        )
        return kept or (_not_asked(found[producer], found[consumer]),)

    def _homes(self, name: str) -> set[str]:
        """The instructions whose fusions hold an instruction, and itself."""
        return {name} | {d.instruction for d in self.decisions if not d.is_refusal and name in d.others[:1]}


def _not_asked(producer: Instruction, consumer: Instruction) -> Decision:
    def said(rule: str, because: str) -> Decision:
        source = "InstructionFusion::RunImpl"
        return Decision(consumer.name, rule, because, (producer.name,), source, is_refusal=True)

    home = consumer.computation
    if home is not producer.computation:
        return said(
            "another computation", f"{producer.name} and {consumer.name} are in different computations"
        )
    if home is not None and not _is_entered(home):
        return said("not entered", f"fusion skips {home.name}, which is applied elementwise")
    if producer not in consumer.operands:
        return said("not an operand", f"{producer.name} is not an operand of {consumer.name}")
    return said(
        "not entered", f"fusion was not tried in {home.name if home is not None else 'no computation'}"
    )


def cpu_fusion(module: Module, *, age: Age | None = None) -> FusionOutcome:
    """Models XLA's CPU fusion on a module with assigned layouts, with the reason for each pair left unfused.

    `age` is the XLA version to model. None (the default) detects it from the module text, or else assumes the newest.
    Raises ValueError if it is not an age of XLA.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[8]{0} parameter(0)  s = f32[8]{0} exponential(x)  n = f32[8]{0} negate(s)"
    ...     "  m = f32[8]{0} multiply(x, s)  ROOT a = (f32[8]{0}, f32[8]{0}) tuple(n, m) }")
    >>> print(cpu_fusion(m).why_not("s", "n")[0].because)
    s is expensive and would be computed a second time for its other user, m
    """
    expect_module(module)
    copy = module.clone()
    run = _Run(copy, age_for(module, age))
    run.module()
    return FusionOutcome(copy, tuple(run.decisions()), before=module)


@attrs.frozen
class CpuFusion(Pass):
    """Fuses as XLA's CPU compiler does (`CpuInstructionFusion`): producers into consumers, greedily, last consumers first.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[8]{0} parameter(0)  s = f32[8]{0} sine(x)  ROOT n = f32[8]{0} negate(s) }")
    >>> CpuFusion().run(m).statistics
    {'fusions': 1}
    >>> print(m.entry.root)
    ROOT sine_negate_fusion = f32[8]{0} fusion(x), kind=kLoop, calls=fused_computation
    """

    name: ClassVar[str] = "cpu-fusion"
    is_early: ClassVar[bool] = True
    summary: ClassVar[str] = "Fuses producers into consumers as XLA's CPU compiler does."
    is_one_round: ClassVar[bool] = True

    age: Age = attrs.field(default="", validator=is_age)
    """XLA age to follow; empty: from the text, else the newest."""

    def run(self, module: Module) -> PassResult:
        return PassResult.of({"fusions": _Run(module, age_for(module, self.age or None)).module()})


def _is_entered(computation: Computation) -> bool:
    """True if fusion looks into a computation (`IsEmbeddedComputation`: all callers are of one kind)."""
    return not computation.callers or computation.callers[0].opcode in ENTERED


class _Run:
    """One run over a module."""

    def __init__(self, module: Module, age: XlaAge) -> None:
        self._module = module
        self._age = age
        self._editor = Editor(module)
        self._elementwise = Elementwise()
        self._skipped = _skipped(module)
        self._found: dict[tuple[Node, Node], Refusal | None] = {}

    def module(self) -> int:
        """Fuses everywhere; how many fusions there are."""
        return sum(
            self._computation(computation)
            for computation in nonfusion_computations(self._module)
            if len(computation) and _is_entered(computation)
        )

    def decisions(self) -> Iterator[Decision]:
        """All that was decided, the last word on each pair."""
        for (consumer, producer), refusal in self._found.items():
            rule, because = refusal or (
                "fused",
                f"{producer.name} is computed inside {consumer.name}",
            )
            source = SOURCES.get(rule, "CpuInstructionFusion::ShouldFuse")
            yield Decision(
                consumer.name, rule, because, (producer.name,), source, is_refusal=refusal is not None
            )

    # ---- one computation

    def _computation(self, computation: Computation) -> int:
        self._graph = Graph(computation)
        self._reused: dict[Node, set[Node]] = {}
        self._duplications: dict[Node, Duplication] = {}
        self._kept = GloballyUnfusible(self._graph, self.should_fuse, self.is_fusible).nodes()
        if self._age.has(xla_changes.CPU_KEEPS_SOFTMAX_WHOLE):
            for node in self._graph.nodes.values():
                largest = shifted_by_its_maximum(node, self._elementwise)
                if largest is not None:
                    self._kept[node] = (
                        f"{node.name} and its maximum {largest.name} are combined in an exponential; if computed "
                        "twice, the values might differ"
                    )
        for node in reversed(self._graph.nodes.values()):
            if not node.is_gone and (self.is_fusible(node) or node.is_fusion):
                self._fill(node)
            elif not node.is_gone:
                for operand in node.operands:
                    self._found[node, operand] = "consumer not fusible", f"{node.name} cannot be fused"
        return self._graph.commit(self._editor)

    def _fill(self, consumer: Node) -> None:
        """Fuses into one consumer what may be (`InstructionFusion::RunImpl`, `ReversePostOrderFusionQueue`).

        Operands come latest first, so that few are taken in twice. What the rules refuse for good is not tried again.
        """
        nodes = {operand.place: operand for operand in consumer.operands}
        waiting = [-place for place in nodes]
        heapq.heapify(waiting)
        settled = set(nodes)
        """Places in the queue, or refused: now, or for good."""
        refused: list[int] = []
        while waiting:
            place = -heapq.heappop(waiting)
            producer = nodes[place]
            refusal = self._found[consumer, producer] = self._decide(producer, consumer)
            if refusal is not None:
                if refusal[0] not in _FINAL:
                    refused.append(place)
                continue
            settled.discard(place)
            self._fuse(producer, consumer)
            for operand in producer.own:
                nodes[operand.place] = operand
                if operand.place not in settled:
                    settled.add(operand.place)
                    refused.append(operand.place)
            for again in refused:
                heapq.heappush(waiting, -again)
            refused = []

    def _decide(self, producer: Node, consumer: Node) -> Refusal | None:
        if not self.is_fusible(producer):
            return "not fusible", f"{producer.name} has opcode {producer.opcode}, which is never fused"
        if producer in self._kept:
            return "must not be duplicated", self._kept[producer]
        return self.should_fuse(producer, consumer)

    def _fuse(self, producer: Node, consumer: Node) -> None:
        kind = FusionKind.OUTPUT if is_output_fusible(producer, consumer) else FusionKind.LOOP
        reused = self._reused_by(consumer)
        if producer in reused:
            reused.discard(producer)
            reused.update(producer.own)
        else:
            reused |= self._reused_by(producer)
        if not consumer.is_fusion:
            consumer.prefix = f"{producer.opcode}_{consumer.opcode}_fusion"
        self._graph.open(consumer, kind).kind = kind
        duplication = self._duplication(consumer)
        member = self._graph.fuse(producer, consumer)
        duplication.fused(producer, member)

    # ---- what may be fused

    def is_fusible(self, node: Node) -> bool:
        """True if an instruction may be in a fusion at all (`HloInstruction::IsFusible`)."""
        opcode = node.opcode
        if opcode in NOT_FUSIBLE:
            return False
        if opcode == "rng":
            return len(node.users) <= 1
        return opcode in ALWAYS_FUSIBLE or not self._editor.has_effect(node.origin)

    def should_fuse(self, producer: Node, consumer: Node) -> Refusal | None:
        """Why a producer is not fused into a consumer (`CpuInstructionFusion::ShouldFuse`); None if it is."""
        if consumer.origin in self._skipped:
            return (
                "left alone",
                f"{consumer.name} belongs to a custom fusion or to an elementwise computation",
            )
        origin, p, c = producer.origin, producer.name, consumer.name
        opcode = producer.opcode
        if opcode == "constant" and not is_effective_scalar(producer.shape):
            return (
                "constant is not a scalar",
                f"{p} is a constant of {producer.shape}; only scalars are fused",
            )
        if is_output_fusible(producer, consumer):
            return None
        if opcode == "add" and any(is_output_fusible(o, producer) for o in producer.own):
            return (
                "producer would be fused into a product",
                f"{p} will instead be fused into the product that it is added to",
            )
        if not is_loop_fusible(producer, self._elementwise):
            return "producer is not loop-fusible", f"{p} has opcode {opcode}, which loop fusions cannot emit"
        for node in (producer, consumer):
            if node.opcode == "concatenate":
                if len(node.own) > MOST_CONCATENATED:
                    why = f"{node.name} concatenates {len(node.own)} arrays, more than {MOST_CONCATENATED}"
                    return ("concatenate" if node is producer else "consumer is a concatenate"), why
                if is_minor_concatenate(node.origin):
                    why = f"{node.name} concatenates along its minor dimension, so fused code would branch in the inner loop"
                    return ("concatenate" if node is producer else "consumer is a concatenate"), why
        expensive = not producer.is_fusion and is_expensive(origin)
        if expensive and producer in self._reused_by(consumer):
            return (
                "elements would be recomputed",
                f"{p} is expensive and {c} reads its elements more than once",
            )
        if producer.is_root:
            return "root", f"{p} is the root of the computation, so it must stay"
        other = next((user for user in producer.users if user is not consumer), None)
        if expensive and other is not None and not _is_widening(producer):
            why = f"{p} is expensive and would be computed a second time for its other user, {other.name}"
            return "expensive producer would be duplicated", why
        conflict = in_place_conflict(producer, consumer, self._elementwise)
        if conflict is not None:
            return "in place", conflict
        return self._should_fuse_on_cpu(producer, consumer)

    def _should_fuse_on_cpu(self, producer: Node, consumer: Node) -> Refusal | None:
        p, c = producer.name, consumer.name
        if consumer.is_fusion and producer.opcode == "reduce":
            held = sum(member.opcode == "reduce" for member in self._graph.open(consumer).members)
            if held > MOST_REDUCTIONS:
                return "too many reductions", f"{c} already contains {held} reductions"
        if producer.opcode == "constant" and not consumer.is_fusion:
            return (
                "constant alone",
                f"{p} is a constant, which can join a fusion but does not turn {c} into one",
            )
        if producer.is_fusion:
            return "producer is a fusion", f"{p} is itself a fusion"
        if consumer.is_fusion and self._duplication(consumer).is_too_high(producer):
            count = self._duplication(consumer).of(producer)
            if count > MOST:
                why = f"the code of {p} would be emitted {count} times in {c}"
            else:
                why = f"{p} has opcode {producer.opcode}, and is read at more than one index by {c} or its other users"
            return "code duplication", why
        if consumer.opcode == "dot" and consumer.shape.rank <= 1 and _is_small_product(producer, consumer):
            return None
        if consumer.body is not None and consumer.body.kind is FusionKind.LOOP:
            return None
        if consumer.origin.opcode == "fusion" and consumer.origin.attributes.get("kind") is FusionKind.LOOP:
            return None
        if is_loop_fusible(consumer, self._elementwise):
            return None
        return (
            "consumer is not loop-fusible",
            f"{c} has opcode {consumer.opcode}, which loop fusions cannot emit",
        )

    def _reused_by(self, node: Node) -> set[Node]:
        if node not in self._reused:
            self._reused[node] = self._find_reused(node)
        return self._reused[node]

    def _find_reused(self, node: Node) -> set[Node]:
        if node.origin.opcode != "fusion":
            return {self._graph.of(o) for o in reused_operands(node.origin, self._elementwise)}
        return _reused_by_body(self._graph.open(node), self._elementwise)

    def _duplication(self, node: Node) -> Duplication:
        if node not in self._duplications:
            self._duplications[node] = Duplication(self._graph.open(node))
        return self._duplications[node]


def _reused_by_body(body: Body, elementwise: Elementwise) -> set[Node]:
    """The operands of which a fusion reads elements more than once on a way to its root (`FusionReusesParamElements`)."""
    reused_members: dict[Member, bool] = {body.root: False}
    found: set[Node] = set()
    for member in reversed(list(body.in_order())):
        if member not in reused_members:
            continue
        own = reused_operands(member.origin, elementwise)
        for given, operand in zip(member.origin.operands, member.operands, strict=True):
            again = reused_members[member] or given in own
            if isinstance(operand, Member):
                reused_members[operand] = reused_members.get(operand, False) or again
            elif again:
                found.add(operand)
    return found


def _is_widening(producer: Node) -> bool:
    """True if an instruction may be duplicated whatever it costs (`IsAlwaysDuplicable`)."""
    if producer.opcode == "broadcast":
        return True
    return producer.opcode == "convert" and element_bytes(producer.own[0].shape) < element_bytes(
        producer.shape
    )


def _is_small_product(producer: Node, consumer: Node) -> bool:
    """True if a product of a matrix and a small vector takes in the matrix."""
    for vector, matrix in ((0, 1), (1, 0)):
        small = consumer.own[vector].shape
        if consumer.own[matrix] is producer and small.rank == 1 and element_bytes(small) < SMALL_VECTOR_BYTES:
            return True
    return False


def _skipped(module: Module) -> set[Instruction]:
    """Consumers that take in nothing (`ComputeInstructionsToSkip`)."""
    found: set[Instruction] = set()
    for i in module.instructions():
        if i.opcode == "fusion" and i.attributes.get("kind") is FusionKind.CUSTOM:
            found.add(i)
        elif i.called_computations and (i.opcode == "custom-call" or i.opcode not in UNSUPPORTED_INSIDE):
            for callee in i.called_computations:
                found.update(callee)
    return found


SOURCES = {
    "not fusible": "HloInstruction::IsFusible",
    "consumer not fusible": "HloInstruction::IsFusible",
    "must not be duplicated": "InstructionFusion::ComputeGloballyUnfusible",
    "root": "InstructionFusion::ShouldFuse",
    "expensive producer would be duplicated": "InstructionFusion::ShouldFuse",
    "in place": "InstructionFusion::ShouldFuseInPlaceOp",
    "code duplication": "FusionNodeIndexingEvaluation::CodeDuplicationTooHigh",
    "left alone": "CpuInstructionFusion::ComputeInstructionsToSkip",
}
"""The function of XLA that has a rule; all others stand in `CpuInstructionFusion::ShouldFuse`."""
