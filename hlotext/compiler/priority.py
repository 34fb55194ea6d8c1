"""Priority fusion on GPU: XLA's own log of the pass, replayed.

What the pass decides by is a cost model of more than ten thousand lines, which is not modelled here. But XLA writes down each
step, with the time that it estimated and, where it did not fuse, the reason (`priority_fusion_dump.txt`, a
`FusionProcessDumpProto`, beside the dumps of passes). So the fusions are those of the log, and so are all reasons.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext import textproto
from hlotext.compiler.decision import Decision, Outcome
from hlotext.compiler.fusion_graph import Graph, Node
from hlotext.edit.values import name_problem
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.enums import FusionKind
from hlotext.memory.elementwise import Elementwise
from hlotext.rewrite.kit.edits import Editor

_STEP = "PriorityFusion::Fuse"
_REASON = "PriorityFusionQueue::CalculateProducerPriority"
_TIME = "GpuPerformanceModel"
_CONSTANT = "PriorityFusion::CanFuseConstant"

_OTHER_FUSIBLE = frozenset(
    {
        "broadcast", "concatenate", "constant", "copy", "dynamic-slice", "dynamic-update-slice", "gather", "iota", "pad",
        "reduce", "reduce-window", "reshape", "reverse", "scatter", "slice", "transpose",
    }
)  # fmt: skip
"""Opcodes that may absorb a constant, besides elementwise operations and fusions (`IsFusible` of priority_fusion.cc)."""

_NOT_FUSED_IN = frozenset(OPCODES) - traits.CALLEE_ON_SAME_THREAD
"""Callers into whose computations the pass does not look (`GetFusibleComputations`)."""


@attrs.frozen(kw_only=True)
class LogEntry:
    """An entry of the log."""

    kind: str
    """"fusion", "update_priority" or "producer_ineligible"."""
    producer: str
    consumers: tuple[str, ...] = ()
    fusion: str = ""
    """The name of the fusion that a step makes or enlarges."""
    reason: str = ""
    us_fused: float | None = None
    us_unfused: float | None = None
    """Estimated microseconds of the producer with all its consumers, fused and as they are."""


def read_steps(log: str) -> tuple[LogEntry, ...]:
    """Parses a log, and returns its entries in order. Raises textproto.TextProtoError if it is invalid.

    >>> log = 'fusion_steps { producer_ineligible { producer_name: "dot.3" reason: "the producer is not fusible" } }'
    >>> read_steps(log)[0].reason
    'the producer is not fusible'
    """
    found = []
    for step in textproto.parse(log).messages("fusion_steps"):
        for kind in step:
            entry = step.message(kind)
            producer = entry.text("producer_name")
            if producer is not None:
                found.append(
                    LogEntry(
                        kind=kind,
                        producer=producer,
                        consumers=entry.texts("consumer_names") or entry.texts("consumer_name"),
                        fusion=entry.text("fusion_name") or "",
                        reason=entry.text("reason") or "",
                        us_fused=entry.number("us_fused"),
                        us_unfused=entry.number("us_unfused"),
                    )
                )
    return tuple(found)


def priority_fusion(module: Module, log: str) -> Outcome:
    """Replays the fusions recorded in a log of GPU's priority fusion.

    The decisions of the outcome have the reasons and times of the log. A step that does not fit the module (no such
    instruction, or the producer is not an operand of the consumer) is skipped, with a decision that says so; hence no
    step can create a cycle. As in XLA, scalar constants are fused afterwards, which the log does not record. The log has
    neither fusion kinds nor Triton tiles: new fusions are `kLoop`, existing ones keep their kind.

    Raises:
        textproto.TextProtoError: The log is invalid.
    """
    expect_module(module)
    steps = read_steps(log)
    copy = module.clone()
    with copy.transaction():
        replay = _Replay(copy, steps)
        replay.run()
    return Outcome(copy, tuple(replay.decisions), is_from_log=True)


class _Replay:
    """One replay: graphs of all computations, and who has which name now."""

    def __init__(self, module: Module, steps: tuple[LogEntry, ...]) -> None:
        self._module = module
        self._steps = steps
        self._elementwise = Elementwise()
        self._named: dict[str, tuple[Graph, Node]] = {}
        self._last: dict[str, LogEntry] = {}
        """The last that the log says of a producer before it is fused."""
        self.decisions: list[Decision] = []

    def run(self) -> None:
        graphs = [Graph(computation) for computation in _fused_in(self._module)]
        for graph in graphs:
            for node in graph.nodes.values():
                self._named[node.name] = graph, node
        for step in self._steps:
            if step.kind == "fusion":
                self._fuse(step)
            else:
                self._last[step.producer] = step
        for graph in graphs:
            self._fuse_constants(graph)
        self.decisions += self._left()
        editor = Editor(self._module)
        for graph in graphs:
            graph.commit(editor)

    def _fuse(self, step: LogEntry) -> None:
        for name in step.consumers:
            found, into = self._named.get(step.producer), self._named.get(name)
            if found is None or into is None or found[0] is not into[0]:
                self._misfit(step, name, "no such instruction")
                continue
            graph, producer = found
            consumer = into[1]
            if (
                producer not in consumer.operands
                or not _may_be_fused(producer)
                or not _may_be_fused(consumer)
            ):
                self._misfit(step, name, f"{step.producer} is not an operand that {name} can fuse")
                continue
            _join(graph, producer, consumer, name=step.fusion)
            self._named[step.fusion or name] = graph, consumer
            because = f"{step.producer} is fused into {name}, giving {step.fusion or name}"
            times = _times(self._last.get(step.producer))
            self.decisions.append(
                Decision(
                    consumer.name, "fused", because + (f": {times}" if times else ""), (producer.name,), _STEP
                )
            )

    def _misfit(self, step: LogEntry, consumer: str, why: str) -> None:
        because = f"the log fuses {step.producer} into {consumer}, but {why}"
        self.decisions.append(
            Decision(consumer, "log does not match", because, (step.producer,), _STEP, is_refusal=True)
        )

    def _fuse_constants(self, graph: Graph) -> None:
        """Scalars go into all that can be a fusion, at the end of the pass; those that nothing uses then stay."""
        for node in list(graph.nodes.values()):
            if node.opcode != "constant" or not node.shape.is_array or node.shape.element_count > 1:
                continue
            for user in list(node.users):
                if not user.is_gone and self._takes_constant(node, user):
                    _join(graph, node, user, keep=True)
                    because = f"{node.name} is a scalar and costs nothing inside {user.name}"
                    self.decisions.append(
                        Decision(user.name, "constant fused", because, (node.name,), _CONSTANT)
                    )

    def _takes_constant(self, constant: Node, user: Node) -> bool:
        root = user.body.root if user.body is not None else None
        opcode = root.opcode if root is not None else user.opcode
        if opcode == "scatter":
            target = root.operands[0] if root is not None else user.own[0]
            if target is constant:
                return False
        if user.is_fusion:
            return (user.body is not None and user.body.is_new) or user.origin.attributes.get(
                "kind"
            ) is not FusionKind.CUSTOM
        if user.opcode == "bitcast":
            given, made = constant.shape, user.shape
            return given.element_type.bits == made.element_type.bits
        return user.opcode in _OTHER_FUSIBLE or self._elementwise.everywhere(user.origin)

    def _left(self) -> Iterator[Decision]:
        """Why what is left is left: XLA's last word on each producer that stands by itself at the end."""
        for name, step in self._last.items():
            found = self._named.get(name)
            if found is None or found[1].is_gone:
                continue
            subject = found[1].name
            if step.kind == "producer_ineligible":
                yield Decision(subject, _short(step.reason), step.reason, (), _REASON, is_refusal=True)
            elif step.us_fused is not None and step.us_unfused is not None:
                slower = step.us_fused >= step.us_unfused
                rule = "slower when fused" if slower else "not reached"
                yield Decision(subject, rule, _times(step), step.consumers, _TIME, is_refusal=True)


def _fused_in(module: Module) -> Iterator[Computation]:
    """The computations in which the pass fuses, callees first."""
    for computation in post_order(module.computations):
        if computation.is_fusion_body or computation.is_sugared or not len(computation):
            continue
        if not any(caller.opcode in _NOT_FUSED_IN for caller in computation.callers):
            yield computation


_NOT_FUSED = traits.CONTROL_FLOW | {"parameter", "tuple"}


def _may_be_fused(node: Node) -> bool:
    return not node.is_gone and node.opcode not in _NOT_FUSED


def _join(graph: Graph, producer: Node, consumer: Node, *, name: str = "", keep: bool = False) -> None:
    if not consumer.is_fusion:
        consumer.prefix = name if name and not name_problem(name) else "fusion"
    if producer.is_fusion:
        graph.merge(producer, consumer)
    else:
        graph.fuse(producer, consumer, keep=keep)


def _times(step: LogEntry | None) -> str:
    if step is None or step.us_fused is None or step.us_unfused is None:
        return ""
    return f"{step.us_fused:.4g} us fused, {step.us_unfused:.4g} us apart, by XLA's estimate"


def _short(reason: str) -> str:
    """The rule of a reason: what stands before names and sizes, which differ from case to case."""
    return reason.split(": ")[0]
