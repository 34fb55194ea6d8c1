"""`Compilation.collectives`: why each collective of the final HLO is there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

import hlotext as hlo
from hlotext.analysis import Communication, DeviceMesh, Interconnect, axes_of, communications
from hlotext.analysis.entries import program_name
from hlotext.analysis.facts import fact
from hlotext.dumps.collectives import ends, wording
from hlotext.dumps.collectives.advice import Advice
from hlotext.dumps.collectives.advice_rules import Where
from hlotext.dumps.collectives.annotations import Annotations
from hlotext.dumps.collectives.fates import fates_of
from hlotext.dumps.collectives.finals import Match, item, kin_of, match
from hlotext.dumps.collectives.keys import Keys, Text
from hlotext.dumps.collectives.pairing import Sides
from hlotext.dumps.collectives.partitioner import Partitioner, Written
from hlotext.dumps.collectives.places import Places
from hlotext.dumps.collectives.records import (
    HALO,
    HIGH,
    HOST,
    LOW,
    MEDIUM,
    PARTIAL,
    PASS,
    RESHARD,
    UNKNOWN,
    CollectiveCause,
    Confidence,
    Deferred,
    Place,
    Reason,
)
from hlotext.dumps.collectives.schemes import Schemes
from hlotext.dumps.collectives.smaller_operand import instead_of
from hlotext.dumps.collectives.steps import DUMP_THE_REST, mesh_for, other_mesh, partitioning_of, read
from hlotext.dumps.collectives.whole_batch import whole_batches
from hlotext.ir import gc_control

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation
    from hlotext.dumps.step import Step

_MISSING = (
    "the HLO before and after SPMD partitioning was not dumped; for all causes and for suggestions, run "
    "print(hlotext.interop.jax.explain(f, *args)) in the program, or recompile with"
)


def collectives(
    compilation: Compilation, mesh: DeviceMesh | str | None = None
) -> tuple[CollectiveCause, ...]:
    """Explains the collectives of the final HLO. Arguments and errors are those of `Compilation.collectives`."""
    after = compilation.after
    if after is None:
        raise LookupError(f"{compilation.name} has no final HLO")
    begun = communications(after)
    return _answers(compilation, after, begun, mesh) if begun else ()


def _answers(
    compilation: Compilation,
    after: hlo.Module,
    begun: tuple[Communication, ...],
    mesh: DeviceMesh | str | None,
) -> tuple[CollectiveCause, ...]:
    with gc_control.gc_paused():
        return _with_hosts(
            after, begun, lambda some: _with_lookups(after, _answered(compilation, after, some, mesh))
        )


def _with_hosts(
    after: hlo.Module,
    begun: tuple[Communication, ...],
    answered: Callable[[tuple[Communication, ...]], tuple[CollectiveCause, ...]],
) -> tuple[CollectiveCause, ...]:
    """Answers for all communications: the partitioner is asked only about those between devices."""
    between = tuple(one for one in begun if not one.is_host_transfer)
    known = {one.communication: one for one in answered(between)} if between else {}
    if len(between) < len(begun):
        places = Places(Text(after, Keys()))
        known |= {one: _of_host(one, places) for one in begun if one.is_host_transfer}
    return tuple(known[one] for one in begun)


def _of_host(one: Communication, places: Places) -> CollectiveCause:
    place = places.of(one.start, is_exact=False)
    reason = Reason(HOST, None, place, None, (), None, None, HIGH, "")
    return CollectiveCause(one.instruction, one, (attrs.evolve(reason, because=wording.sentence(reason)),))


def _answered(
    compilation: Compilation,
    after: hlo.Module,
    begun: tuple[Communication, ...],
    mesh: DeviceMesh | str | None,
) -> tuple[CollectiveCause, ...]:
    around = partitioning_of(compilation)
    before = read(around.before) if around is not None else None
    parted = read(around.after) if around is not None else None
    if before is None or parted is None:
        program = read(compilation.first)
        known = mesh_for(mesh, after, (program, before))
        told = ends.collectives(after, program, begun, known, f"{_MISSING} {DUMP_THE_REST}")
        return _noted(told, other_mesh(mesh, (program, before, after)))

    def texts() -> Iterator[hlo.Module | None]:
        yield before
        yield read(compilation.first)

    known = mesh_for(mesh, after, texts())
    assert around is not None
    answers = _Answers(compilation, after, around.before, Sides(before, parted, Keys()), known, begun)
    return _noted(answers.all(), other_mesh(mesh, texts()))


def _noted(causes: tuple[CollectiveCause, ...], note: str) -> tuple[CollectiveCause, ...]:
    return tuple(attrs.evolve(one, notes=(*one.notes, note)) for one in causes) if note else causes


def of_module(
    module: hlo.Module, compilation: Compilation | None = None, mesh: DeviceMesh | None = None
) -> tuple[CollectiveCause, ...]:
    """Explains the collectives of a module, in the order of `analysis.communications`.

    Args:
        module: The module whose instructions the results refer to.
        compilation: The compilation whose final HLO the module is. None uses the module alone, which shows the
            operation that needs each collective, but rarely the tensor.
        mesh: See `Compilation.collectives`.

    Raises:
        ValueError: The mesh and the module have different numbers of devices.
        InputError: A file of the compilation cannot be read.
        HloSyntaxError: A file of the compilation is not valid HLO.
    """
    begun = communications(module)
    if not begun:
        return ()
    if compilation is not None and compilation.last is not None:
        if compilation.last.__dict__.get("module") is module:
            return compilation.collectives(mesh)
        return _answers(compilation, module, begun, mesh)
    return _of_text(module, mesh)


@fact
def _of_text(module: hlo.Module, mesh: DeviceMesh | None) -> tuple[CollectiveCause, ...]:
    known = mesh_for(mesh, module, ())

    def answered(begun: tuple[Communication, ...]) -> tuple[CollectiveCause, ...]:
        told = ends.collectives(module, None, begun, known, f"{_MISSING} {DUMP_THE_REST}")
        return _noted(_with_lookups(module, told), other_mesh(mesh, (module,)))

    return _with_hosts(module, communications(module), answered)


def _with_lookups(after: hlo.Module, causes: tuple[CollectiveCause, ...]) -> tuple[CollectiveCause, ...]:
    """Names the lookup that collectives come of which send values of a whole batch: they belong to no scheme."""
    of_lookups = {start: batch for batch in whole_batches(after) for start in batch.collectives}
    if not of_lookups:
        return causes
    places = Places(Text(after, Keys()))
    found = []
    for one in causes:
        batch = of_lookups.get(one.communication.start)
        if batch is not None:
            more = wording.of_lookup(places.of(batch.lookup), program_name(batch.argument))
            reasons = [
                attrs.evolve(each, because=f"{each.because}; {more}", scheme="") for each in one.reasons
            ]
            one = attrs.evolve(one, reasons=tuple(reasons))
        found.append(one)
    return tuple(found)


class _Answers:
    """The answers of a compilation whose partitioning was dumped."""

    def __init__(
        self,
        compilation: Compilation,
        after: hlo.Module,
        before_step: Step,
        sides: Sides,
        mesh: DeviceMesh | None,
        begun: tuple[Communication, ...],
    ) -> None:
        self.compilation = compilation
        self.sides = sides
        self.mesh = mesh
        self.final = Text(after, sides.before.keys)
        self.partitioner = Partitioner(sides, mesh)
        self.places = Places(sides.before)
        annotations = Annotations(self.partitioner, self.places)
        parts = [item(one.communication, self.sides.after) for one in self.partitioner.written]
        self._matches = match([item(one, self.final) for one in begun], parts)
        taken = {id(part) for one in self._matches for part in one.parts}
        self._left = {kin_of(part.kind) for part in parts if id(part) not in taken}
        where = _where(compilation, before_step)
        self.advice = Advice(self.partitioner, annotations, self.places, where, fates_of(self._matches))
        self.schemes = Schemes(self.partitioner, annotations)
        self._written = {one.part: one for one in self.partitioner.written}

    def all(self) -> tuple[CollectiveCause, ...]:
        """One answer for each communication, in order."""
        notes = () if self.mesh is not None else (wording.NO_MESH,)
        return tuple(
            CollectiveCause(one.item.node, one.item.communication, self._reasons(one), notes)
            for one in self._matches
        )

    def _reasons(self, found: Match) -> tuple[Reason, ...]:
        if not found.parts:
            return (self._unmatched(found),)
        parts = (self._reason(self._written[part.node], found) for part in found.parts)
        missing = len(found.item.names) - len(found.parts)
        return (*parts, *([self._unknown(found, wording.of_missing(missing))] if missing > 0 else []))

    def _unmatched(self, found: Match) -> Reason:
        """A collective that is none of the partitioner's, or may be made of some that no other collective is made of."""
        one = found.item.communication
        if one.link is not Interconnect.DEVICE:
            return self._unknown(found, "")
        if len(found.item.names) > 1 or kin_of(found.item.kind) in self._left:
            return self._unknown(found, wording.OF_OTHERS)
        axes = axes_of(self.final.module, one, self.mesh) or ()
        because, doubts = wording.by_a_pass(None), (wording.BY_EXCLUSION,)
        return Reason(PASS, None, None, None, axes, None, None, LOW, because, doubts=doubts)

    def _unknown(self, found: Match, doubt: str) -> Reason:
        axes = axes_of(self.final.module, found.item.communication, self.mesh) or ()
        doubts = (doubt,) if doubt else ()
        made = Reason(UNKNOWN, None, None, None, axes, None, None, LOW, "", doubts=doubts)
        return attrs.evolve(made, because=wording.sentence(made))

    def _place(self, node: hlo.Instruction | None, is_exact: bool = True) -> Place | None:
        return self.places.of(node, is_exact) if node is not None else None

    def _reason(self, part: Written, found: Match) -> Reason:
        user = self._place(part.users[0], part.user is not None) if part.users else None
        tensor = self._place(part.tensor)
        if tensor is None and part.cause == PARTIAL:
            tensor = user
        instead = instead_of(part, self.partitioner, self.places)
        doubts = _doubts(part, found, self.mesh is not None)
        made = Reason(
            cause=part.cause,
            wanted_by=part.wanted_by,
            user=user,
            tensor=tensor,
            axes=part.axes,
            have=str(part.have) if part.have is not None else None,
            want=str(part.want) if part.want is not None else None,
            confidence=_confidence(part, doubts),
            because="",
            part=part.part.name,
            readers=part.readers,
            is_rematerialized=part.is_rematerialized,
            have_sharding=str(part.have_sharding) if part.have_sharding is not None else None,
            want_sharding=str(part.want_sharding) if part.want_sharding is not None else None,
            result=part.result,
            origin=self.schemes.origin(part),
            scheme="" if instead else self.schemes.scheme(part),
            instead=instead,
            doubts=doubts,
            advice=Deferred(make=functools.partial(self.advice.suggestions, part)),
        )
        because = "; ".join(filter(None, (wording.sentence(made, part), self.schemes.constraint(part))))
        if part.communication.kind == "all-reduce" and found.item.kind == "reduce-scatter":
            because += f"; {wording.rewritten(part.communication.kind, found.item.kind)}"
            made = attrs.evolve(made, part_kind=part.communication.kind)
        return attrs.evolve(made, because=because)


def _where(compilation: Compilation, before: Step) -> Where:
    """Compiler of this compilation, among those for which suggestions were measured."""
    if "shardy" not in before.name and not compilation.files_of("shardy"):
        program = compilation.before
        if program is None or "xla.sdy.meshes" not in program.attributes.get("frontend_attributes", {}):
            return "gspmd"
    return {"tpu": "tpu", "gpu": "gpu"}.get(compilation.platform or "", "cpu")  # type: ignore[return-value]


def _doubts(part: Written, found: Match, has_mesh: bool) -> tuple[str, ...]:
    """Why an answer is not sure; nothing where every item of it was found and nothing else fits."""
    doubts = list(dict.fromkeys(part.doubts))
    if found.is_any:
        doubts.append("another of the partitioner's collectives matches as well")
    elif not found.is_sure:
        doubts.append("matched to the partitioner's collective only by size and groups")
    if part.cause == UNKNOWN:
        return tuple(doubts)
    is_moved = part.cause in (RESHARD, HALO)
    needs_have = part.cause in (HALO, PARTIAL) or (part.cause == RESHARD and part.side != "result")
    missing = (
        ("the tensor was not found", is_moved and part.tensor is None),
        ("the sharding of the tensor is not known", needs_have and part.have is None),
        (
            "the sharding that is needed is not known",
            part.cause == RESHARD and part.side != "result" and part.want is None,
        ),
        ("the operation was not found", not is_moved and not part.users),
        ("the mesh is not known", not has_mesh),
    )
    return (*doubts, *(doubt for doubt, is_missing in missing if is_missing))


def _confidence(part: Written, doubts: tuple[str, ...]) -> Confidence:
    if part.cause == UNKNOWN:
        return LOW
    if not doubts:
        return HIGH
    return MEDIUM if part.users or part.tensor is not None else LOW
