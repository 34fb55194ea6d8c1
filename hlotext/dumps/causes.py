"""Why an operation is there: which pass brought it, and what for, as far as the texts show it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

import hlotext as hlo
from hlotext.analysis import memory_space
from hlotext.analysis.communication import KINDS
from hlotext.analysis.heroes import fused_moves
from hlotext.analysis.meant import meant_instruction, names_meant
from hlotext.analysis.updates import copies_for_old_values, copies_for_updates
from hlotext.analysis.views import array_of
from hlotext.dumps.changes import shape_bytes
from hlotext.dumps.collectives import wording
from hlotext.dumps.identity.answers import HIGH, LOW, MEDIUM, Birth, Event
from hlotext.dumps.identity.owners import Owner
from hlotext.dumps.settings import dump_flags
from hlotext.dumps.stages import stages
from hlotext.dumps.step import Step
from hlotext.ir.nodes.computation import Computation
from hlotext.layout import LayoutError, transpose_is_bitcast

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation

HOST = 5
"""The number of the host's memory space."""
COPIES = ("copy", "copy-start")
UNKNOWN, PROGRAM, PARTITIONING = "unknown", "program", "partitioning"
ASK_FOR_PASSES = dump_flags(".*")
"""Flags that make XLA dump the steps needed to attribute an operation to a pass."""


@attrs.frozen
class Cause:
    """The reason why an operation is in the final HLO."""

    instruction: hlo.Instruction
    step: Step | None
    """The step that shows it first; None if no step but the final HLO was dumped."""
    cause: str
    """In a word or two: `program`, `layout`, `interference`, `host transfer`, `memory space`, `rematerialization`,
    ...; `unknown`."""
    because: str
    """Evidence in the texts, in one sentence; "" for none."""
    evidence: tuple[str, ...] = ()
    """Further lines: shapes, decisions of priority fusion, ..."""
    change: str = ""
    """A change of the program that avoids it; "" where none is known."""
    confidence: str = HIGH
    """Confidence that this step introduced it: `high`, `medium` or `low`."""
    pass_name: str = ""
    """The pass that brought it: the one that was running when the step was written. `program` for what the program had."""
    candidates: tuple[str, ...] = ()
    """The operations of the step that it may have been: one where that is sure, several where they are interchangeable."""
    history: tuple[Event, ...] = ()
    """Later events, latest first."""
    owner: Owner | None = None
    """The pass with what is known of it: `is_bracket` where only the passes around are."""
    partitioned_as: str = ""
    """Of a collective that a pass made of one of another kind of the partitioner's, the kind of that; else empty."""

    @property
    def chain(self) -> str:
        """Origin of the operation and later changes by passes, on one line, without renames.

        For example `all-gather added by spmd-partitioning -> split by async-collective-creator`.
        """
        node = self.instruction.async_wrapped_instruction or self.instruction
        opcode = node.opcode.removesuffix("-start").removesuffix("-done")
        did = _DID | {"created": _DID["replaced"]} if self.partitioned_as else _DID
        told = [
            did[event.kind].format(event.owner or event.pass_name)
            for event in self.history
            if event.kind in did
        ]
        if self.partitioned_as:
            first = f"{self.partitioned_as} added by SPMD partitioning"
        elif self.cause == PROGRAM:
            line = _line(self.instruction)
            first = f"{opcode} of the program" + (f" ({line})" if line else "")
        elif self.cause == UNKNOWN and not self.history:
            first = opcode
        else:
            owner = self.history[-1].owner if self.history else self.owner
            is_merged = bool(self.history) and self.history[-1].kind == "merged"
            first = f"{opcode} {'merged' if is_merged else 'added'} by {owner or self.pass_name}"
            told = told[:-1] if self.history and self.history[-1].kind in _DID else told
        return " -> ".join((first, *dict.fromkeys(reversed(told))))

    @property
    def bytes(self) -> int | None:
        """Bytes of the result, or None if unknown; for the start of a copy those copied, and in a fusion at most those
        it writes.
        """
        shape = self.instruction.shape
        if (
            shape is not None
            and shape.is_tuple
            and shape.tuple_shapes
            and self.instruction.opcode == "copy-start"
        ):
            shape = shape.tuple_shapes[0]
        own = None if shape is None else shape_bytes(str(shape))
        home = self.instruction.computation
        if own is None or home is None or not home.is_fusion_body:
            return own
        written = shape_bytes(str(home.root.shape)) if home.root.shape is not None else None
        return own if written is None else min(own, written)


_DID = {
    "created": "added by {}",
    "replaced": "rewritten by {}",
    "place": "rewritten by {}",
    "cloned": "copied by {}",
    "partitioned": "partitioned by {}",
    "split": "split by {}",
    "merged": "merged by {}",
}
"""Wording of what passes did to an operation, by the kind of the event."""


def _line(instruction: hlo.Instruction) -> str:
    frames = instruction.frames
    return f"{frames[0].file.rpartition('/')[2]}:{frames[0].line}" if frames else ""


def causes(compilation: Compilation, names: Iterable[str]) -> list[Cause]:
    """Returns the cause of each of these operations of the final HLO, given by name.

    Raises LookupError for a name that the final HLO does not have, and for a compilation without final HLO.
    """
    after = compilation.after
    if after is None:
        raise LookupError(f"{compilation.name} has no final HLO")
    nodes = []
    for name in names:
        node = meant_instruction(after, name)
        if node is None:
            home = after.find(name)
            if isinstance(home, Computation):
                raise LookupError(
                    f"{home.name} is a computation; ask for an instruction, such as its root {home.root.name}"
                )
            raise LookupError(
                f"no instruction {name} in the final HLO of {compilation.name}{names_meant(after, name)}"
            )
        nodes.append(node)
    born = compilation.births(node.name for node in nodes)
    return [_of_collective(compilation, _cause(compilation, node, born.get(node.name))) for node in nodes]


def origins(compilation: Compilation, nodes: Iterable[hlo.Instruction]) -> list[Cause]:
    """Returns the pass that introduced each of these operations of the final HLO, with its chain, without explaining
    collectives.
    """
    nodes = list(nodes)
    born = compilation.births(node.name for node in nodes)
    return [_cause(compilation, node, born[node.name]) for node in nodes if node.name in born]


def _of_collective(compilation: Compilation, cause: Cause) -> Cause:
    """Cause of a collective, with the reason from `Compilation.collectives`."""
    node = cause.instruction
    if (node.async_wrapped_instruction or node).opcode not in KINDS:
        return cause
    for one in compilation.collectives():
        if node in (one.instruction, one.communication.start):
            known = [
                reason
                for reason in one.reasons
                if reason.cause not in (UNKNOWN, "pass") and reason.confidence != LOW
            ]
            if all(reason.cause == "pass" for reason in one.reasons) and cause.owner is not None:
                return attrs.evolve(cause, because=wording.by_a_pass(str(cause.owner)))
            if not known or (cause.cause == PROGRAM and any(r.cause != PROGRAM for r in known)):
                return cause
            told = (
                *(r.origin for r in known),
                *(r.scheme for r in known),
            )
            because = one.why.removeprefix("because ")
            was = next((r.part_kind for r in known), "")
            if was and cause.owner is not None:
                because = because.replace(wording.LATER_PASS, str(cause.owner))
            return attrs.evolve(
                cause,
                cause=PROGRAM if all(r.cause == PROGRAM for r in known) else PARTITIONING,
                partitioned_as=was,
                because=because,
                evidence=(*cause.evidence, *dict.fromkeys(filter(None, told))),
                change=cause.change or "; or ".join(dict.fromkeys(filter(None, one.changes))),
            )
    return cause


def copies(compilation: Compilation) -> list[Cause]:
    """Returns the cause of each copy and transpose that the final HLO executes, including those in fusions that only
    move data.

    Raises LookupError for a compilation without final HLO.
    """
    if compilation.after is None:
        raise LookupError(f"{compilation.name} has no final HLO")
    return causes(compilation, [node.name for node in executed_copies(compilation.after)])


def executed_copies(module: hlo.Module) -> list[hlo.Instruction]:
    """Returns the copies and transposes that the final HLO executes, including those in fusions that only move data."""
    nodes = list(module.instructions())
    moved = {id(i) for node in nodes if node.opcode == "fusion" for i in fused_moves(node, may_cut=True)}
    return [i for i in nodes if i.opcode in COPIES or _is_executed_transpose(i, moved)]


def _is_executed_transpose(node: hlo.Instruction, moved: set[int]) -> bool:
    """True for a transpose that costs a pass over memory: one in a fusion that computes is only another index.

    One that only names the dimensions of the same bytes in another order costs none.
    """
    home = node.computation
    is_alone = id(node) in moved or home is None or not home.is_fusion_body
    return node.opcode == "transpose" and is_alone and not _is_transposed_in_place(node)


def _is_transposed_in_place(node: hlo.Instruction) -> bool:
    source, target = node.operands[0].shape if node.operands else None, node.shape
    try:
        return (
            source is not None
            and target is not None
            and transpose_is_bitcast(source, target, node.attributes.get("dimensions", ()))
        )
    except LayoutError:
        return False


def _cause(compilation: Compilation, node: hlo.Instruction, birth: Birth | None) -> Cause:
    if birth is None:
        return Cause(node, None, UNKNOWN, "the text gives it no unique name", confidence=LOW)
    found = _told(compilation, node, birth)
    refused = tuple(
        f"priority fusion did not fuse it: {decision.reason}"
        for decision in compilation.fusion_decisions("producer_ineligible", node.name)
        if decision.reason
    )
    return attrs.evolve(
        found,
        evidence=(*found.evidence, *dict.fromkeys(refused)),
        confidence=_confidence(found, birth),
        pass_name=birth.owner.name if birth.owner is not None else "",
        candidates=birth.candidates,
        history=birth.history,
        owner=birth.owner,
    )


def _confidence(found: Cause, birth: Birth) -> str:
    """The confidence that a step introduced it, which is not high where only the passes around are known."""
    if found.cause == UNKNOWN or birth.owner is None:
        return LOW
    is_between = birth.owner.is_bracket and birth.step.is_pass
    return MEDIUM if is_between and birth.confidence == HIGH else birth.confidence


def _told(compilation: Compilation, node: hlo.Instruction, birth: Birth) -> Cause:
    """The cause, without what the history tells."""
    step = birth.step
    if step is compilation.first:
        name = f", as {birth.name}" if birth.name != node.name else ""
        return Cause(node, step, PROGRAM, f"it is in the program before optimization{name}")
    if birth.rebuilt is not None:
        why = f"{birth.owner} rebuilt it with different loop state"
        if birth.rebuilt.step is compilation.first:
            return Cause(node, step, PROGRAM, f"the program has this loop, as {birth.rebuilt.name}; {why}")
        found = _told(compilation, node, birth.rebuilt)
        return attrs.evolve(found, step=step, because="; ".join(filter(None, (found.because, why))))
    if _is_marked(node):
        because = (
            "the shardings of its operands and users differ, which requires communication (the partitioner marked "
            "it as its own)"
        )
        return Cause(node, step, PARTITIONING, because, ('frontend_attributes={is_spmd_generated="true"}',))
    if not compilation.identity.shows_passes:
        told = _of_text(compilation, node, step)
        return told or Cause(node, step, UNKNOWN, f"no pass was dumped; compile with {ASK_FOR_PASSES}")
    return _fused(compilation, node, birth) or _first(compilation, node, birth)


def _is_marked(node: hlo.Instruction) -> bool:
    """True if the partitioner says that it made a collective, as it does since June 2026; without it nothing follows."""
    inner = node.async_wrapped_instruction
    return (inner or node).opcode in KINDS and node.frontend_attributes.get("is_spmd_generated") == "true"


def _first(compilation: Compilation, node: hlo.Instruction, birth: Birth) -> Cause:
    """The first rule that fits."""
    step = birth.step
    found = _of_text(compilation, node, step)
    for rule in (_interference, _partitioned):
        found = found or rule(compilation, node, step)
    if found is not None:
        return found
    if not step.is_pass:
        if step.stage == "memory":
            because = "it was added after the last dumped pass, during memory placement"
            return Cause(node, step, "memory", because)
        return Cause(node, step, UNKNOWN, "it was added after the last dumped pass")
    stage = step.stage
    return Cause(node, step, stage, _taken_over(compilation, birth) or _purpose(stage, birth.owner))


def _purpose(stage: str, owner: Owner | None) -> str:
    """The pass that added it, with the purpose of its stage: all that the texts tell."""
    what = next((row.what for row in stages if row.name == stage), "")
    purpose = f"; the stage {what[0].lower()}{what[1:].rstrip('.')}" if what else ""
    return f"{owner or 'a pass of this stage'} added it{purpose}"


def _taken_over(compilation: Compilation, birth: Birth) -> str:
    """Operations that a pass put an operation in the place of: gone with that step, from the same place of the program.

    None of a fusion, which holds what it is made of.
    """
    made = birth.step.module.find(birth.name)
    if not isinstance(made, hlo.Instruction) or made.opcode == "fusion":
        return ""
    metadata = made.metadata
    if metadata is None or not metadata.op_name:
        return ""
    gone = birth.step.gone.get((metadata.op_name, metadata.stack_frame_id), ())
    if not gone or len(gone) > _MOST_GONE:
        return ""
    names = ", ".join(gone)
    pass_name = birth.owner or birth.step.name
    return f"{pass_name} replaced {names} with it"


_MOST_GONE = 4
"""Operations in whose place one stands, above which it is not said."""


def _of_text(compilation: Compilation, node: hlo.Instruction, step: Step | None) -> Cause | None:
    """The first rule that fits of those that need no pass: the final HLO proves the cause."""
    for rule in (_rematerialized, _undonated, _still_read, _rotated, _moved, _layout):
        found = rule(compilation, node, step)
        if found is not None:
            return found
    return None


def _rematerialized(compilation: Compilation, node: hlo.Instruction, step: Step | None) -> Cause | None:
    if ".remat" not in node.name and not (step is not None and step.name.startswith("remat")):
        return None
    return Cause(
        node,
        step,
        "rematerialization",
        "it is recomputed so that its first result need not be kept in memory",
    )


def _undonated(compilation: Compilation, node: hlo.Instruction, step: Step | None) -> Cause | None:
    """Copies of an argument that is updated without being donated."""
    after = compilation.after
    if node.opcode not in COPIES or after is None or (step is not None and step.stage == "copies"):
        return None
    update = copies_for_updates(after).get(node)
    if update is None:
        return None
    parameter = update.parameter
    name = parameter.metadata.op_name if parameter.metadata is not None else ""
    because = (
        f"argument {name or parameter.name} is updated{' in part' if update.is_in_place else ''} but not donated, so its "
        "new value needs a separate buffer, which every call writes in full"
    )
    change = (
        f"donate {name or parameter.name} if the caller no longer needs it: jax.jit(..., donate_argnums=...)"
    )
    return Cause(node, step, "not donated", because, change=change)


def _still_read(compilation: Compilation, node: hlo.Instruction, step: Step | None) -> Cause | None:
    """Copies of an argument that is donated and updated, while something else reads its old value."""
    found = copies_for_old_values(compilation.after).get(node) if compilation.after is not None else None
    if found is None or not _is_plain(node):
        return None
    parameter = found[0].parameter
    name = (parameter.metadata.op_name if parameter.metadata is not None else "") or parameter.name
    readers = [reader.name for reader in found[1]]
    more = f" and {len(readers) - 2} more" if len(readers) > 2 else ""
    shown = f"{', '.join(readers[:2])}{more}"
    because = f"argument {name} is donated and updated, but its old value is also read by {shown}"
    change = f"let {shown} read the new value of {name}, or run in a call before the update"
    return Cause(node, step, "old value read", because, change=change)


def _rotated(compilation: Compilation, node: hlo.Instruction, step: Step | None) -> Cause | None:
    """Copies of loop state that is handed on as another element of the state."""
    body = node.computation
    loop = next((one for one in body.callers if one.opcode == "while"), None) if body is not None else None
    if body is None or loop is None or not _is_plain(node) or body.root.opcode != "tuple":
        return None
    source = node.operands[0]
    state = source.operands[0] if source.opcode == "get-tuple-element" else None
    number = source.attributes.get("index")
    if state is None or state.opcode != "parameter" or not isinstance(number, int):
        return None
    places = [place for place, operand in enumerate(body.root.operands) if operand is node]
    if not places or number in places:
        return None
    because = (
        f"element {number} of the state of loop {loop.name} becomes element {places[0]} in each iteration"
    )
    return Cause(node, step, "loop state", because, change=_UNROLL)


_UNROLL = (
    "unroll the loop, so that values are passed on without copies: jax.lax.scan or fori_loop with unroll=2, "
    "or more if more elements are passed on"
)


def _is_plain(node: hlo.Instruction) -> bool:
    """True for a copy that changes neither layout nor memory space."""
    if node.opcode != "copy":
        return False
    made, given = array_of(node.shape), array_of(node.operands[0].shape)
    return made is not None and given is not None and made.layout == given.layout


def _moved(compilation: Compilation, node: hlo.Instruction, step: Step | None) -> Cause | None:
    """Copies from one memory space to another."""
    if node.opcode not in COPIES or not node.operands:
        return None
    result, operand = array_of(node.shape), array_of(node.operands[0].shape)
    if result is None or operand is None:
        return None
    here, there = memory_space(result), memory_space(operand)
    if here == there:
        return None
    shown = f"from {_space(there)} to {_space(here)}"
    if HOST in (here, there):
        return Cause(
            node, step, "host transfer", f"it moves its operand {shown}", (f"{operand} -> {result}",)
        )
    if (other := _layout(compilation, node, step)) is not None:
        return attrs.evolve(other, because=f"{other.because}; it also moves {shown}")
    return Cause(
        node,
        step,
        "memory space",
        f"it moves its operand {shown}, where the value is read or stored",
        (f"{operand} -> {result}",),
    )


def _space(number: int) -> str:
    return {0: "the device's main memory", HOST: "the host's memory"}.get(number, f"memory space {number}")


def _layout(compilation: Compilation, node: hlo.Instruction, step: Step | None) -> Cause | None:
    """Copies between layouts, and what else layout assignment brings."""
    if node.opcode not in COPIES or not node.operands:
        return None
    result, operand = array_of(node.shape), array_of(node.operands[0].shape)
    if result is None or operand is None or result.layout is None or operand.layout is None:
        return None
    if step is not None and step.stage == "copies" and result.layout == operand.layout:
        return None
    if (
        result.layout.minor_to_major != operand.layout.minor_to_major
        or result.layout.tiles != operand.layout.tiles
    ):
        reader = next((user for user in node.users), None)
        wanted = f"{reader.opcode} {reader.name}" if reader is not None else "the result"
        because = f"{node.operands[0].opcode} {node.operands[0].name} has a different layout from what {wanted} needs"
        return Cause(
            node,
            step,
            "layout",
            because,
            (f"{operand} -> {result}",),
            change=_other_order(node, result),
        )
    return None


def _other_order(copy: hlo.Instruction, wanted: hlo.Shape) -> str:
    """Advice to hand an argument over in the layout that is wanted; "" for what is no argument of the program, and for one
    that is returned so: its result needs memory of its own, which a copy fills in any layout."""
    source, home = copy.operands[0], copy.computation
    if source.opcode != "parameter" or home is None or not home.is_entry or wanted.layout is None:
        return ""
    ways = [copy]
    for one in ways:
        if one.is_root or any(user.is_root and user.opcode == "tuple" for user in one.users):
            return ""
        ways += (user for user in one.users if user.opcode == "bitcast")
    name = (source.metadata.op_name if source.metadata is not None else "") or source.name
    order = ", ".join(map(str, reversed(wanted.layout.minor_to_major)))
    return (
        f"keep {name} in that layout between calls: in_shardings=jax.experimental.layout.Format(Layout(major_to_minor="
        f"({order})), sharding)"
    )


def _interference(compilation: Compilation, node: hlo.Instruction, step: Step | None) -> Cause | None:
    """Copies that copy insertion brings: two simultaneously live values would share a buffer."""
    if node.opcode not in COPIES or step is None or step.stage != "copies":
        return None
    reader = next((user for user in node.users), None)
    inside = node.computation
    where = ""
    if reader is not None and reader.opcode == "while":
        where = f"it is an input of loop {reader.name}, which updates its operand in place"
    elif reader is not None and reader.is_root and inside is not None and inside.is_entry:
        where = (
            "it is a result of the program, and its operand's buffer belongs to an argument or another result"
        )
    elif reader is not None and reader.is_root and inside is not None:
        caller = next(iter(inside.callers), None)
        where = f"it is a result of {inside.name}" + (
            f", the body of {caller.opcode} {caller.name}" if caller is not None else ""
        )
    elif inside is not None and not inside.is_entry:
        where = f"it is read in {inside.name} while its operand is written"
    special = "special-case" in step.name
    because = "two simultaneously live values would share a buffer" + (f": {where}" if where else "")
    return Cause(node, step, "aliasing" if special else "interference", because)


def _fused(compilation: Compilation, node: hlo.Instruction, birth: Birth) -> Cause | None:
    """Fusions that GPU's priority fusion decided on."""
    if node.opcode != "fusion" or birth.step.stage != "fusion":
        return None
    step = birth.step
    own = compilation.fusion_decisions("fusion", birth.name)
    if not own:
        return None
    lines = []
    for decision in own[-5:]:
        cost = next(iter(compilation.fusion_decisions("update_priority", decision.producer)), None)
        gain = (
            f" ({cost.microseconds_fused:g} us fused, {cost.microseconds_unfused:g} us apart)"
            if cost is not None
            and cost.microseconds_fused is not None
            and cost.microseconds_unfused is not None
            else ""
        )
        lines.append(f"{decision.producer} into {', '.join(decision.consumers)}{gain}")
    return Cause(
        node, step, "fusion", "the cost model estimates it to be cheaper than its parts", tuple(lines)
    )


def _partitioned(compilation: Compilation, node: hlo.Instruction, step: Step | None) -> Cause | None:
    """Communication that the partitioner put in."""
    if step is None or step.stage != "sharding":
        return None
    if node.opcode not in KINDS:
        return None
    return Cause(
        node,
        step,
        PARTITIONING,
        "the shardings of its operands and users differ, which requires communication",
    )
