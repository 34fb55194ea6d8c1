"""Two modules side by side: what differs, and by how much."""

from __future__ import annotations

import functools
import os
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from typing import Any

import hlotext as hlo
from hlotext import analysis, dumps, proto, rewrite
from hlotext.analysis.backend import GPU_FINGERPRINT
from hlotext.analysis.entries import only_counts_differ
from hlotext.analysis.scopes import TOP
from hlotext.diff.changes import (
    ADDED,
    CHANGED,
    REMOVED,
    RENAMED,
    Change,
    Changes,
    Part,
    shape_parts,
    value_text,
)
from hlotext.diff.pairing import Pairing
from hlotext.diff.totals import Totals
from hlotext.diff.value_graph import Graph, base_opcode
from hlotext.diff.value_numbering import LEFT_OUT, names_nodes
from hlotext.diff.weights import Weights
from hlotext.ir import gc_control
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.spelling import text_or_path
from hlotext.ir.tables import traits
from hlotext.ir.values.configs import FrontendAttributes
from hlotext.ir.values.value import mimebundle

_PASSES = "strip-metadata,canonical-names"
"""Passes applied to a module before it becomes a golden file."""
_HEADER_LEFT_OUT = frozenset({"entry_computation_layout", "allow_spmd_sharding_propagation_to_output"})
"""Header attributes that repeat the entry's shapes."""
_WRAPPING = traits.BINDS_OPERANDS


class Diff:
    """Differences between two modules, created by `compare`. Computed on access."""

    def __init__(
        self, old: hlo.Module, new: hlo.Module, earlier_names: Mapping[str, str] | None = None
    ) -> None:
        self.old, self.new = old, new
        self._earlier_names = earlier_names

    @functools.cached_property
    def _pairing(self) -> Pairing:
        with gc_control.gc_paused(collect_first=False):
            return Pairing(self.old, self.new, self._earlier_names)

    @property
    def is_equal(self) -> bool:
        """True if the modules are equal, ignoring names, ids, metadata and the order of independent operations."""
        return not self.changes

    @functools.cached_property
    def changes(self) -> Changes:
        """Operations added, removed and changed. Operations that differ in name only are in `.renamed`."""
        pairing = self._pairing
        with gc_control.gc_paused(collect_first=False):
            return _Finder(pairing, self.not_in_proto).changes()

    @functools.cached_property
    def totals(self) -> Totals:
        """Metrics of both modules: operation counts, bytes, collectives, memory."""
        pairing: Pairing | None = self.__dict__.get("_pairing")
        # The pairing is not made for this: few pairs of modules have one form.
        return Totals(self.old, self.new, pairing.differing if pairing is not None else None)

    @functools.cached_property
    def weights(self) -> Weights:
        """Bytes and FLOPs of the operations of both modules over one run, for ranking changes."""
        return Weights(self.old, self.new)

    @property
    def platforms(self) -> tuple[str, str] | None:
        """The two platforms, such as `("GPU", "TPU")`, if both are known and differ; otherwise None."""
        found = [analysis.backend_of(module) for module in (self.old, self.new)]
        old, new = (one.value.upper() if one is not None else "" for one in found)
        return (old, new) if old and new and old != new else None

    @functools.cached_property
    def not_in_proto(self) -> tuple[str, ...]:
        """Header attributes of one module that the proto of the other cannot hold, so that they were not compared.

        XLA keeps them in the config, which an `HloModuleProto` lacks.
        """
        old, new = self.old, self.new
        found = [
            name
            for known, read in ((old, new), (new, old))
            if not read.has_config
            for name in proto.outside_of_proto(known)
            if name not in read.attributes
        ]
        return tuple(dict.fromkeys(found))

    def by_scope(self) -> dict[str, list[Change]]:
        """Groups changes by scope of the program, with repeated layers folded (`layer_*`)."""
        found: dict[str, list[Change]] = {}
        for change in self.changes:
            found.setdefault(self.scope(change), []).append(change)
        return found

    def scope(self, change: Change) -> str:
        """Returns the scope of a change; empty for the header, `(top level)` outside all scopes."""
        node = change.node
        if node is None or node.computation is None or node.computation.module is None:
            return ""
        scopes = analysis.scopes(node.computation.module)
        return "/".join(scopes.folded(scopes.of(node))) or TOP

    _repr_mimebundle_ = mimebundle

    def __repr__(self) -> str:
        counts = self.changes.counts()
        said = ", ".join(f"{counts[kind]} {kind}" for kind in (ADDED, REMOVED, CHANGED) if counts[kind])
        return f"<Diff: {said or 'equal'}>"


def compare(old: Any, new: Any) -> Diff:
    """Compares two modules, given as modules, paths, HLO text, or objects that JAX lowered or compiled.

    Operations are paired by the value they compute, not by name. For two steps of one compilation (`dumps.Step`), they
    are paired by identity (`Compilation.identity`). Bodies of fusions, calls and loops are compared too; an operation
    moved into or out of a fusion is reported as a change of the fusion only.

    Raises:
        HloSyntaxError: An input is not valid HLO.
        InputError: A file cannot be read.
        TypeError: An argument is none of these.
    """
    if isinstance(old, dumps.Step) and isinstance(new, dumps.Step):
        return Diff(old.module, new.module, _earlier_names(old, new))
    return Diff(module_of(old), module_of(new))


def _earlier_names(old: dumps.Step, new: dumps.Step) -> Mapping[str, str] | None:
    """The names that operations of a step had in another of the same compilation; None for steps of two."""
    if old.compilation is not new.compilation:
        return None
    first, last = sorted((old, new), key=lambda step: step.index)
    identity = first.compilation.identity
    found = identity.earlier_names((node.name for node in last.module.instructions()), last, first)
    return found if first is old else {name: other for other, name in found.items()}


def module_of(value: Any) -> hlo.Module:
    """Converts a JAX `Lowered` or `Compiled`, text, bytes, a path, or a step of a dump to a module. Modules are
    returned as is.

    Raises TypeError for anything else, HloSyntaxError for invalid HLO, and InputError if a file cannot be read.
    """
    if isinstance(value, hlo.Module):
        return value
    if isinstance(value, dumps.Step):
        return value.module
    if isinstance(value, os.PathLike) or (
        isinstance(value, str)
        and (text_or_path(value) == "path" or ("\n" not in value and os.path.isfile(value)))
    ):
        return hlo.load(value, only=True)
    if isinstance(value, str | bytes):
        return hlo.parse(value, only=True)
    as_text = getattr(value, "as_text", None)
    if as_text is None:
        raise TypeError(
            f"expected a module, a text, a path, or a JAX compiled object, not {type(value).__name__}"
        )
    return hlo.parse(as_text(dialect="hlo") if hasattr(value, "compile") else as_text())


def golden_text(module: hlo.Module) -> str:
    """Returns the text of a module with sequential names and no metadata: equal programs have nearly equal texts.

    The result is HLO; compare it with `compare` or `hlotext diff`, which ignore names and order.
    """
    expect_module(module)
    copy = module.clone()
    rewrite.Pipeline(rewrite.parse_passes(_PASSES), verify=False).run(copy)
    return copy.to_text()


class _Finder:
    """Finds what differs, given the pairs."""

    def __init__(self, pairing: Pairing, not_in_proto: Container[str]) -> None:
        self.pairing = pairing
        self.not_in_proto = not_in_proto
        self.old, self.new = pairing.old, pairing.new

    def changes(self) -> Changes:
        """Everything, in the order of the new text, then what is gone in the order of the old one."""
        header = list(self._header())
        if self.pairing.is_same:
            return Changes(header)
        found, renamed = [], []
        wrapped = dict(self._wrappings())
        mine, theirs = self._looked_at()
        for node in mine:
            if node in wrapped:
                found.append(wrapped[node])
            if not self.new.is_real(node):
                continue
            old = self.pairing.partner.get(node)
            if old is None:
                found.append(self._came(node))
                continue
            parts = tuple(self._runs(node, old, tuple(self._parts(node, old))))
            if parts:
                found.append(Change(CHANGED, _changed_what(node, old, parts), node, old, parts))
            elif node.name != old.name:
                renamed.append(Change(RENAMED, node.opcode, node, old))
        for node in theirs:
            if node in wrapped:
                found.append(wrapped[node])
            if node not in self.pairing.back and self.old.is_real(node):
                found.append(Change(REMOVED, _of(node, self.old.inputs(node)), None, node))
        return Changes([*header, *self._only_once(found)], renamed)

    def _looked_at(self) -> tuple[Iterable[hlo.Instruction], Iterable[hlo.Instruction]]:
        """Operations of the new and of the old module that may be changes, or have other names."""
        if self.pairing.differing is None:
            return self.new.nodes, self.old.nodes
        changed = {node for node, _ in self.pairing.differing}
        pairs = self.pairing.partner.items()
        return [node for node, old in pairs if node.name != old.name or node in changed], ()

    def _only_once(self, found: list[Change]) -> Iterator[Change]:
        """Leaves out what follows from other changes: types and shapes of what only takes a value apart or together."""
        touched = {c.node for c in found if c.kind != CHANGED or any(p.name in _SHAPES for p in c.parts)}
        for change in found:
            if change.kind == CHANGED and change.opcode in _FOLLOWING and change.new is not None:
                own = [part for part in change.parts if part.name not in _SHAPES]
                if not own and any(o in touched for o in self.new.inputs(change.new)):
                    continue
            yield change

    # ---- one operation

    def _came(self, node: hlo.Instruction) -> Change:
        return Change(ADDED, _of(node, self.new.inputs(node)), node)

    def _parts(self, new: hlo.Instruction, old: hlo.Instruction) -> Iterator[Part]:
        """Differences between two operations that are paired."""
        if self.pairing.structure.local(new) == self.pairing.structure.local(old):
            yield from self._operands(new, old)
            yield from self._controls(new, old)
            return
        if new.opcode != old.opcode:
            yield Part("opcode", old.opcode, new.opcode)
        yield from shape_parts(old.shape, new.shape)
        if new.parameter_number != old.parameter_number and new not in self.pairing.renumbered:
            yield Part("parameter number", str(old.parameter_number), str(new.parameter_number))
        value = self.pairing.structure.value
        if (new.literal is None) != (old.literal is None) or (
            new.literal is not None and value(new.literal) != value(old.literal)
        ):
            yield Part("literal", value_text(old.literal), value_text(new.literal))
        yield from self._operands(new, old)
        yield from _attribute_parts(value, new, old)
        yield from self._controls(new, old)

    def _runs(self, new: hlo.Instruction, old: hlo.Instruction, parts: tuple[Part, ...]) -> Iterator[Part]:
        """The differences of a pair, before them how often it runs where that is not the same.

        What stands in a loop with another trip count is no change by itself: the loop is.
        """
        after, before = self._count(self._graphs[1], new), self._count(self._graphs[0], old)
        has_moved = self._has_moved(new, old)
        if after != before and (parts or has_moved):
            yield Part("runs", _times(before), _times(after))
        if has_moved:
            yield Part(
                "loop",
                *(_loop_name(graph, node) for graph, node in zip(self._graphs, (old, new), strict=True)),
            )
        yield from parts

    @functools.cached_property
    def _graphs(self) -> tuple[analysis.CallGraph, analysis.CallGraph]:
        return analysis.call_graph(self.old.module), analysis.call_graph(self.new.module)

    @staticmethod
    def _count(graph: analysis.CallGraph, node: hlo.Instruction) -> int | None:
        return graph.runs.get(node.computation) if node.computation is not None else None

    def _has_moved(self, new: hlo.Instruction, old: hlo.Instruction) -> bool:
        """True if one of a pair stands in a loop and the other outside all loops, or in a loop that is another's partner."""
        if new.computation is None or old.computation is None or new.opcode in _FREE:
            return False
        loop, was = self._graphs[1].loop_around(new.computation), self._graphs[0].loop_around(old.computation)
        if loop is None or was is None:
            return loop is not was
        return self.pairing.partner.get(loop, was) is not was

    def _operands(self, new: hlo.Instruction, old: hlo.Instruction) -> Iterator[Part]:
        """Operands that are others. Where one is new or another gone, that alone is said."""
        mine, theirs = self.new.inputs(new), self.old.inputs(old)
        if len(mine) != len(theirs):
            known = {self.pairing.partner.get(a, a) for a in mine}
            if all(b in known for b in theirs if b in self.pairing.back) and all(
                a not in self.pairing.partner or self.pairing.partner[a] in theirs for a in mine
            ):
                return
            yield Part("operands", _names(theirs), _names(mine))
            return
        for slot, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            partner, back = self.pairing.partner.get(a), self.pairing.back.get(b)
            if (
                partner is b
                or (partner is None and a in self.new.place)
                or (back is None and b in self.old.place)
            ):
                continue
            yield Part(f"operand {slot}", b.name, a.name)

    def _controls(self, new: hlo.Instruction, old: hlo.Instruction) -> Iterator[Part]:
        if not new.control_predecessors and not old.control_predecessors:
            return
        mine = {self.pairing.partner.get(self.new.source(n)) for n in new.control_predecessors}
        theirs = {self.old.source(n) for n in old.control_predecessors}
        if mine != theirs and None not in mine and all(n in self.pairing.back for n in theirs):
            yield Part(
                "control-predecessors", _names(old.control_predecessors), _names(new.control_predecessors)
            )

    # ---- fusions and calls

    def _wrappings(self) -> Iterator[tuple[hlo.Instruction, Change]]:
        """Fusions and calls that are new or gone, or hold other operations than before."""
        inner = self.new.nodes, self.old.nodes
        if (differing := self.pairing.differing) is not None:
            inner = (
                list(_inside(self.new, [node for node, _ in differing])),
                list(_inside(self.old, [node for _, node in differing])),
            )
        mine, theirs = _wrapped(self.new, inner[0]), _wrapped(self.old, inner[1])
        everything = list(dict.fromkeys(theirs.values()))
        votes: dict[hlo.Instruction, Counter[hlo.Instruction]] = {}
        for node, wrapping in mine.items():
            old = self.pairing.partner.get(node)
            votes.setdefault(wrapping, Counter())
            if old is not None and old in theirs:
                votes[wrapping][theirs[old]] += 1
        taken: dict[hlo.Instruction, hlo.Instruction] = {}
        pairs: dict[hlo.Instruction, hlo.Instruction] = {}
        ballots = [
            (count, -self.new.place[w], w, old) for w, vote in votes.items() for old, count in vote.items()
        ]
        for _, _, wrapping, old in sorted(ballots, key=lambda ballot: ballot[:2], reverse=True):
            if wrapping not in pairs and old not in taken:
                pairs[wrapping] = old
                taken[old] = wrapping
        mine, theirs = _beyond(mine, self.new, pairs), _beyond(theirs, self.old, taken)
        inside, was = _turned(mine), _turned(theirs)
        for wrapping in votes:
            other = pairs.get(wrapping)
            if other is None:
                held = _members(self.new, wrapping)
                yield wrapping, Change(ADDED, f"{wrapping.opcode} of {_opcodes(held)}", wrapping)
                continue
            parts = list(_attribute_parts(self.pairing.structure.value, wrapping, other))
            came = [
                n
                for n in inside.get(wrapping, ())
                if (o := self.pairing.partner.get(n)) is not None and theirs.get(o) is not other
            ]
            went = [
                n
                for n in was.get(other, ())
                if (o := self.pairing.back.get(n)) is not None and mine.get(o) is not wrapping
            ]
            if came or went:
                parts.append(Part("members", _names(went), _names(came)))
            if wrapping.opcode != other.opcode:
                parts.append(Part("opcode", other.opcode, wrapping.opcode))
            if parts:
                # Its result follows from the members, but says most of what became of it.
                parts = [*shape_parts(other.shape, wrapping.shape), *parts]
                yield (
                    wrapping,
                    Change(CHANGED, _changed_what(wrapping, other, parts), wrapping, other, tuple(parts)),
                )
        for wrapping in everything:
            if wrapping not in taken:
                held = _members(self.old, wrapping)
                yield wrapping, Change(REMOVED, f"{wrapping.opcode} of {_opcodes(held)}", None, wrapping)

    # ---- the header

    def _header(self) -> Iterator[Change]:
        old, new = self.old.module.attributes, self.new.module.attributes
        for name in dict.fromkeys((*old, *new)):
            if name in _HEADER_LEFT_OUT or name in self.not_in_proto:
                continue
            a, b = (_without_own_hash(side.get(name)) for side in (old, new))
            if str(a) != str(b) and not only_counts_differ(a, b):
                yield Change(CHANGED, f"header: {name}", parts=(Part(name, value_text(a), value_text(b)),))


def _without_own_hash(value: Any) -> Any:
    """A header's value without the hash of the module that XLA writes into it, which names go into."""
    if not isinstance(value, FrontendAttributes):
        return value
    left = {name: text for name, text in value.items() if name != GPU_FINGERPRINT}
    return FrontendAttributes(left) if left else None


_SHAPES = ("type", "dimensions", "layout", "shape", "dynamic dimensions")
_FOLLOWING = traits.TUPLES | traits.CONTROL_FLOW | {"opt-barrier"}
"""Opcodes whose shape follows from their operands'."""
_FREE = _FOLLOWING | {"constant"}
"""Opcodes that do nothing themselves, wherever they stand."""


def _inside(graph: Graph, nodes: Iterable[hlo.Instruction]) -> Iterator[hlo.Instruction]:
    """The operations in fusions and calls, of those that are looked into."""
    for node in nodes:
        if node.opcode in _WRAPPING:
            for callee in node.called_computations:
                yield from (inner for inner in callee.instructions if inner in graph.place)


def _wrapped(graph: Graph, nodes: Iterable[hlo.Instruction]) -> dict[hlo.Instruction, hlo.Instruction]:
    """The fusion or call that each of these operations stands in, of those that are looked into."""
    found = {}
    for node in nodes:
        wrapping = _wrapping(graph, node)
        if wrapping is not None and graph.is_real(node):
            found[node] = wrapping
    return found


def _wrapping(graph: Graph, node: hlo.Instruction) -> hlo.Instruction | None:
    """The innermost fusion or call around a node."""
    callers = graph.callers.get(node.computation, ()) if node.computation is not None else ()
    return callers[0] if len(callers) == 1 and callers[0].opcode in _WRAPPING else None


def _beyond(
    wrapped: dict[hlo.Instruction, hlo.Instruction], graph: Graph, known: Container[hlo.Instruction]
) -> dict[hlo.Instruction, hlo.Instruction]:
    """The innermost fusion or call around each operation that is there on both sides."""
    found = {}
    for node, wrapping in wrapped.items():
        outer: hlo.Instruction | None = wrapping
        while outer is not None and outer not in known:
            outer = _wrapping(graph, outer)
        if outer is not None:
            found[node] = outer
    return found


def _turned(wrapped: dict[hlo.Instruction, hlo.Instruction]) -> dict[hlo.Instruction, list[hlo.Instruction]]:
    found: dict[hlo.Instruction, list[hlo.Instruction]] = defaultdict(list)
    for node, wrapping in wrapped.items():
        found[wrapping].append(node)
    return found


def _members(graph: Graph, wrapping: hlo.Instruction) -> list[hlo.Instruction]:
    """The operations that a fusion or call holds."""
    return [
        node for callee in wrapping.called_computations for node in callee.instructions if graph.is_real(node)
    ]


def _moved(part: Part) -> str:
    if part.old and part.new:
        return f"moved from loop {part.old} to {part.new}"
    return f"moved out of loop {part.old}" if part.old else f"moved into loop {part.new}"


def _loop_name(graph: analysis.CallGraph, node: hlo.Instruction) -> str:
    loop = graph.loop_around(node.computation) if node.computation is not None else None
    return "" if loop is None else loop.name


def _times(runs: int | None) -> str:
    return "unknown" if runs is None else "once" if runs == 1 else f"{runs:,} times"


def _attribute_parts(value: Any, new: hlo.Instruction, old: hlo.Instruction) -> Iterator[Part]:
    """Attributes that differ, callees and control dependencies aside."""
    mine, theirs = new.attributes, old.attributes
    for name in dict.fromkeys((*theirs, *mine)):
        if name in LEFT_OUT or any(names_nodes(side.get(name)) for side in (mine, theirs)):
            if name == "channel_id" and (name in mine) != (name in theirs):
                yield Part(name, value_text(theirs.get(name)), value_text(mine.get(name)))
            continue
        a: Hashable = value(theirs[name]) if name in theirs else None
        b: Hashable = value(mine[name]) if name in mine else None
        if a != b:
            yield Part(name, value_text(theirs.get(name)), value_text(mine.get(name)))


def _of(node: hlo.Instruction, inputs: tuple[hlo.Instruction, ...]) -> str:
    """An operation in a few words: `copy of dot`."""
    known = dict.fromkeys(base_opcode(operand) for operand in inputs)
    shown = " and ".join(list(known)[:2]) + (", ..." if len(known) > 2 else "")
    return f"{node.opcode} of {shown}" if known else node.opcode


def _changed_what(new: hlo.Instruction, old: hlo.Instruction, parts: Any) -> str:
    """A change in a few words, equal for equal changes."""
    if new.opcode != old.opcode:
        return f"{old.opcode} -> {new.opcode}"
    names = [part.name.split(" ")[0] if part.name.startswith("operand") else part.name for part in parts]
    short = [
        _moved(part) if part.name == "loop" else f"{part.name} {part.old} -> {part.new}"
        for part in parts
        if part.name in ("runs", "loop", "type", "layout") and len(part.old) + len(part.new) < 60
    ]
    rest = [
        name
        for name in dict.fromkeys(names)
        if name != "loop" and not any(s.startswith(f"{name} ") for s in short)
    ]
    return f"{new.opcode}: {', '.join([*short, *rest])}"


def _opcodes(nodes: list[hlo.Instruction]) -> str:
    """The opcodes of what a fusion holds, the most frequent first."""
    counts = Counter(node.opcode for node in nodes if node.opcode not in ("parameter", "constant"))
    return (
        ", ".join(f"{opcode}" + (f" x{n}" if n > 1 else "") for opcode, n in counts.most_common(4))
        or "nothing"
    )


def _names(nodes: Any) -> str:
    names = [node.name for node in nodes]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
