"""Calls replaced by what they call."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from hlotext.edit import many
from hlotext.edit.cloning import own_attributes
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.configs import FrontendAttributes
from hlotext.ir.values.metadata import Metadata
from hlotext.rewrite.kit.annotations import NOT_COPIED, derived_attributes
from hlotext.rewrite.kit.control import CONTROL
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Pass, PassResult, is_platform
from hlotext.rewrite.passes.cleanup.dce import DeadCodeElimination
from hlotext.rewrite.passes.compilation_stage import is_for_tpu

LATE, EARLY = ("false", "xla_late"), ("true", "xla_early")
"""Values of the frontend attribute `inlineable` (`CallInliner::GetFrontendInlinePolicy`)."""
COMPOSITE = ("composite.name", "composite.attributes", "composite.version")
"""Frontend attributes of a composite call, which its instructions do not take over."""
KEPT_BODIES = ("shmap_body", "xla.sdy.manual_computation_body")
"""Parts of the names of computations that Shardy needs as they are."""
TPU_SMALL = 10
"""The TPU compiler leaves calls of a computation that is called more than once and has more instructions than this one, which
lies between 8, inlined, and 17, not inlined (inferred from its dumps)."""


@attrs.frozen
class CallInliner(Pass):
    """Inlines called computations at each `call` (XLA's `CallInliner`).

    Callees come first, so that one traversal suffices; then unused instructions and computations are removed (`HloDCE`). Not
    inlined are calls that have a backend config, run in an asynchronous operation, are marked by the frontend attribute
    `inlineable`, have a body that Shardy needs, or run on another execution thread; on TPU also repeated calls of large
    computations.

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { p = f32[] parameter(0)  ROOT n = f32[] sine(p) }  ENTRY e { x = f32[] parameter(0)"
    ...     "  ROOT c = f32[] call(x), to_apply=f }")
    >>> CallInliner().run(m).statistics
    {'calls': 1, 'computations': 1}
    >>> print(m.entry.root)
    ROOT n.1 = f32[] sine(x)
    """

    name: ClassVar[str] = "call-inliner"
    summary: ClassVar[str] = "Inlines called computations."

    single_call_site: bool = False
    """Only what is called in one place, or is marked to be inlined early."""
    platform: str = attrs.field(default="", validator=is_platform)
    """`cpu`, `gpu` or `tpu`, whose compilers differ; empty: TPU where the text shows it, else all others."""
    names_calls: bool = False
    """Names inlined instructions after their calls too, with the frames of these, as Shardy's inliner does."""

    def run(self, module: Module) -> PassResult:
        sites = {c: len(c.calls) for c in module.computations}
        on_tpu = is_for_tpu(module, self.platform)
        inliner = Inliner(module, InstructionBudget(self.name, module), self.names_calls)
        count = 0
        for computation in post_order(module.computations):
            if computation.is_sugared:
                continue
            calls = [i for i in computation.instructions if i.opcode == "call"]
            chosen = [call for call in calls if self._may_inline(call, computation, sites, on_tpu)]
            if chosen:
                inliner.inline(computation, chosen)
                count += len(chosen)
        if not count:
            return PassResult.of({})
        swept = DeadCodeElimination().run(module)
        return PassResult.of({"calls": count, **swept.statistics})

    def _may_inline(
        self, call: Instruction, computation: Computation, sites: dict[Computation, int], on_tpu: bool
    ) -> bool:
        """`CallInliner::ShouldInline`."""
        callees = call.called_computations
        if len(callees) != 1 or len(callees[0].parameters) != len(call.operands):
            return False
        callee = callees[0]
        if not len(callee) or callee.execution_thread != computation.execution_thread:
            return False
        if call.backend_config is not None or any(c.opcode == "async-start" for c in computation.calls):
            return False
        if any(part in callee.name for part in KEPT_BODIES):
            return False
        policy = call.frontend_attributes.get("inlineable")
        if policy in LATE:
            return False
        once = policy in EARLY or sites.get(callee) == 1
        if not once and (self.single_call_site or (on_tpu and len(callee) > TPU_SMALL)):
            return False
        # What nobody knows cannot be made anew.
        return all(i.shape is not None and i.opcode in OPCODES for i in callee)


class Inliner(Editor):
    """Editor that inlines calls."""

    def __init__(self, module: Module, growth: InstructionBudget, names_calls: bool = False) -> None:
        super().__init__(module)
        self.growth = growth
        self.names_calls = names_calls

    def inline(self, computation: Computation, calls: list[Instruction]) -> None:
        """Inlines calls of a computation (`CallInliner::Inline`)."""
        for call in calls:
            callee = call.called_computations[0]
            self.growth.add(len(callee))
            self.place = call
            self._inline(call, callee)

    def _inline(self, call: Instruction, callee: Computation) -> None:
        nodes = dict(zip(callee.parameters, call.operands, strict=True))
        outer = call.control_predecessors
        together: list[Instruction] = []  # what waits to be put before the call in one edit
        originals: dict[Instruction, Instruction] = {}
        for old in callee:
            if old in nodes:
                continue
            own = {k: v for k, v in own_attributes(old).items() if k not in NOT_COPIED}
            shape = old.shape
            assert shape is not None
            own = derived_attributes(old, old.opcode, shape, own)
            if self.names_calls and old.metadata is not None and call.metadata is not None:
                own["metadata"] = _named_after(old.metadata, call.metadata)
            waits = (*(nodes[p] for p in old.control_predecessors), *outer)
            if waits:
                own[CONTROL] = tuple(dict.fromkeys(waits))
            operands = tuple([nodes[o] for o in old.operands])
            if many.is_plain(self.module, old.opcode, shape, operands, own):
                name = self.module.instruction_names.unique(old.name)
                nodes[old] = Instruction(name, old.opcode, shape, operands, own, old.literal)
                together.append(nodes[old])
                originals[nodes[old]] = old
                continue
            many.put_before(call, together, originals)
            together = []
            nodes[old] = self.create(old.opcode, shape, operands, argument=old.literal, **own, name=old.name)
        many.put_before(call, together, originals)
        notes: Any = {k: v for k, v in call.frontend_attributes.items() if k not in COMPOSITE}
        if len(notes) != len(call.frontend_attributes):
            own = {
                k: v for k, v in call.attributes.items() if k not in ("frontend_attributes", "is_composite")
            }
            call.change(
                attributes={**own, "frontend_attributes": FrontendAttributes(notes)} if notes else own,
                typed=False,
            )
        self.replace(call, nodes[callee.root], remove_unused=False)


def _named_after(own: Metadata, call: Metadata) -> Metadata:
    """Metadata of what is inlined, with the scopes of its call and the frames that called it."""
    names = [name for name in (call.op_name, own.op_name) if name]
    return attrs.evolve(
        own, op_name="/".join(names), stack_frame_id=call.stack_frame_id or own.stack_frame_id
    )
