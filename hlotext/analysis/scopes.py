"""The scope of every instruction: its path of names in the program.

`jit(step)/transpose(jvp(layer_0))/attention/dot_general` is `layer_0/attention` on the way back. JAX writes the path into
`op_name` (`jax.named_scope`, module names, nested functions), its last part being the operation.
"""

from __future__ import annotations

import enum
import itertools
import re
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs

from hlotext.analysis.call_graph import CALLED, call_graph, callers_first
from hlotext.analysis.census import Shared, census, numbered
from hlotext.analysis.communication import KINDS, largest_operand
from hlotext.analysis.facts import fact
from hlotext.analysis.metadata_propagation import MetadataSource, Propagated, spread
from hlotext.analysis.op_names import joined_names
from hlotext.analysis.origins import CalledLine, SourceLocation, SourceLocations, collective_cause
from hlotext.ir.caches import weighted_cache
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import OPCODES

T = TypeVar("T")


class Phase(enum.Enum):
    """Phase of a training step, derived from `op_name`."""

    FORWARD = "forward"
    BACKWARD = "backward"
    RECOMPUTED = "recomputed"
    """Recomputed for the backward pass (`jax.checkpoint`)."""


PARAMETERS, RESULTS, COPIES, NO_SCOPE = ("(parameters)",), ("(results)",), ("(copies)",), ("(no scope)",)
"""Paths of what belongs to no scope: arguments, the tuple of results, copies, and what the text says nothing of."""

TOP = "(top level)"
"""Text of the empty path."""


@attrs.frozen
class Scope:
    """The named scope of an instruction in the source program."""

    path: tuple[str, ...]
    """Names from outermost to innermost; empty without a scope. Parentheses mark paths that hlotext made up."""
    phase: Phase | None = None
    """Forward, backward or recomputed, or None if unknown or not differentiated, as for optimizer updates."""
    source: MetadataSource | None = MetadataSource.OWN
    """Source of the metadata, or None for paths in parentheses."""

    @property
    def is_inherited(self) -> bool:
        """True unless the scope is from the instruction's own metadata."""
        return self.source is not MetadataSource.OWN

    def __str__(self) -> str:
        return "/".join(self.path) or TOP


@attrs.frozen
class _Named:
    """Parsed op_name."""

    path: tuple[str, ...]
    phase: Phase | None


@attrs.frozen(eq=False)
class Scopes:
    """The scopes of a module's instructions, created by `scopes`."""

    shared: Shared[Scope]
    """Distinct scopes, and the scope of each instruction in text order. Some scopes may be unused."""
    _places: Mapping[Instruction, int]
    _repeated: frozenset[str]
    """Names with `*` in the place of a number that stand for more than one name in the module."""

    def of(self, instruction: Instruction) -> Scope:
        """Returns the scope of an instruction of the module, or one in parentheses for any other instruction."""
        place = self._places.get(instruction)
        if place is None:
            return _COPIED if instruction.opcode in _COPYING else _NOWHERE
        return self.shared.distinct[self.shared.numbers[place]]

    def folded(self, scope: Scope) -> tuple[str, ...]:
        """Returns the path with numbered names merged: `layer_0/mlp` and `layer_1/mlp` both become `layer_*/mlp`."""
        return tuple(
            starred if (starred := _starred(name)) in self._repeated else name for name in scope.path
        )


_NOWHERE = Scope(NO_SCOPE, source=None)
_COPIED = Scope(COPIES, source=None)
_COPYING = frozenset(name for name in OPCODES if name == "copy" or name.startswith("copy-"))


@fact
def scopes(module: Module) -> Scopes:
    """Determines the scope of every instruction, propagated from callers, users or producers where it is missing."""
    places = numbered(module)
    found = spread(module, _OpNames(module).all())
    distinct = [Scope(named.path, named.phase, source) for named, source in found.pairs]
    every = {name for scope in distinct for name in scope.path}
    counts = Counter(starred for name in every if (starred := _starred(name)) is not None)
    numbers = array("i", found.numbers)
    argument, result, copied, nowhere = range(len(distinct), len(distinct) + 4)
    distinct += [Scope(PARAMETERS, source=None), Scope(RESULTS, source=None), _COPIED, _NOWHERE]
    entry = module.entry
    for parameter in entry.parameters:
        numbers[places[parameter]] = argument
    if len(entry):
        number = numbers[places[entry.root]]
        if number < 0 or (entry.root.opcode == "tuple" and distinct[number].is_inherited):
            numbers[places[entry.root]] = result
    if -1 in numbers:
        for place, one in enumerate(places):
            if numbers[place] < 0:
                numbers[place] = copied if one.opcode in _COPYING else nowhere
    repeated = frozenset(name for name, count in counts.items() if count > 1)
    return Scopes(Shared(distinct, numbers), places, repeated)


@fact
def source_locations(module: Module) -> Propagated[SourceLocation]:
    """Determines the source line of every instruction, propagated like scopes.

    Collectives whose metadata names another operation get the line of their cause; see `collective_cause`.
    """
    return _propagated_lines(module, SourceLocations().place)


@fact
def called_lines(module: Module) -> Propagated[CalledLine]:
    """Determines the source line of every instruction, and the line that called its function, propagated like scopes."""
    return _propagated_lines(module, SourceLocations().called)


def _propagated_lines(module: Module, own: Callable[[Instruction], T | None]) -> Propagated[T]:
    """`own` depends on the attributes of an instruction alone."""
    lines = spread(module, census(module).attributes.mapped(own))
    others: dict[Instruction, tuple[T, MetadataSource]] = {}
    of_kinds = (found for opcode, found in census(module).by_opcode.items() if opcode in KINDS)
    for instruction in itertools.chain.from_iterable(of_kinds):
        cause = collective_cause(instruction)
        value = own(cause) if cause is not None else None
        if value is not None:
            is_combined = largest_operand(instruction) is not None
            others[instruction] = value, MetadataSource.PRODUCER if is_combined else MetadataSource.USER
    return lines.replaced(others)


class _OpNames:
    """Reads op_names as paths from the module's root, though those in called computations begin at the call."""

    def __init__(self, module: Module) -> None:
        self._module, self._graph = module, call_graph(module)
        self._root = _root_name(module)
        self._bases: dict[Computation, str] = {}
        for computation in callers_first(module):
            self._bases[computation] = self._base(computation)

    def _base(self, computation: Computation) -> str:
        """Prefix of relative op_names in a computation, with a trailing slash."""
        call = self._graph.call(computation)
        if call is None or not self._root:
            return ""
        base = self._bases.get(call.computation, "")
        if call.use != CALLED:
            return base
        metadata = call.caller.metadata
        return f"{self._full(metadata.op_name, base)}/" if metadata is not None and metadata.op_name else base

    def _full(self, op_name: str, base: str) -> str:
        return op_name if not base or op_name.startswith(self._root) else base + op_name

    def all(self) -> Shared[_Named | None]:
        """Parsed op_names of all instructions, in the order of the text; None without one that has a scope.

        That of a parameter is the name of an argument.
        """
        found = census(self._module)
        values: dict[int, _Named | None] = {id(None): None}
        number = {id(None): 0}

        def numbered_by(named: _Named | None) -> int:
            values[id(named)] = named
            return number.setdefault(id(named), len(number))

        of_set = [numbered_by(self._named(one, "", False)) for one in found.attributes.distinct]
        is_parameter = [head.opcode == "parameter" for head in found.heads.distinct]
        numbers = array(
            "i",
            [
                0 if is_parameter[head] else of_set[own]
                for head, own in zip(found.heads.numbers, found.attributes.numbers, strict=True)
            ],
        )
        at = 0
        for computation in self._module.computations:
            base, is_called = self._context(computation)
            if base:
                for place, one in enumerate(computation, at):
                    if one._head.opcode != "parameter":
                        numbers[place] = numbered_by(self._named(one, base, is_called))
            at += len(computation)
        return Shared(list(values.values()), numbers)

    def _named(self, instruction: Instruction, base: str, is_called: bool) -> _Named | None:
        metadata = instruction._attributes.get("metadata")
        return self._read(metadata.op_name, base, is_called) if metadata is not None else None

    def _context(self, computation: Computation) -> tuple[str, bool]:
        """The prefix of relative names in a computation, and whether names without a scope continue that of a call."""
        base = self._bases.get(computation, "")
        call = self._graph.call(computation)
        return base, bool(base) and call is not None and call.use == CALLED

    def _read(self, op_name: str, base: str, is_called: bool) -> _Named | None:
        # A compiler's own name, or the operation alone, as in reducers; in a called computation it continues the call.
        if "/" not in op_name and (not is_called or op_name.startswith(self._root)):
            return None
        return read_op_name(self._full(op_name, base), self._root)


def _root_name(module: Module) -> str:
    """Prefix of absolute op_names, `jit(step)/`; empty if there is none."""
    first = Counter(
        metadata.op_name.partition("/")[0]
        for instruction in module.entry
        if instruction.opcode != "parameter"
        and (metadata := instruction.metadata) is not None
        and "/" in metadata.op_name
    )
    for name, _ in first.most_common(1):
        if _ROOT.fullmatch(name):
            return f"{name}/"
    return ""


_ROOT = re.compile(r"(?:jit|pjit|pmap|xla_pmap)\(.*\)")
_WRAPPER = re.compile(r"([A-Za-z_0-9]+)\((.*)\)", re.DOTALL)
_STRUCTURE = frozenset(
    {
        "", "body", "body_pred", "checkpoint", "closed_call", "cond_pred", "core_call", "custom_jvp_call",
        "custom_vjp_call", "custom_vjp_call_jaxpr", "remat", "remat2", "rematted_computation",
    }
)  # fmt: skip
"""Parts that JAX's transformations and control flow add, which name nothing."""
_NUMBERED = re.compile(r"(.*[_.\-])?[0-9]+", re.DOTALL)
_MOST_WRAPPERS = 64


@weighted_cache(16384)
def read_op_name(op_name: str, root: str = "") -> _Named:
    """The scope and the phase in an op_name. `root` is the common prefix of a module's op_names."""
    if root:
        # Where XLA makes one operation of several it joins their names, with semicolons or as one; the first counts.
        op_name = op_name.partition(f";{root}")[0].removeprefix(root)
    op_name, *_ = joined_names(op_name) or (op_name,)
    parts = _parts(op_name)
    is_forward = is_backward = is_recomputed = False
    path: list[str] = []
    for number, part in enumerate(parts):
        is_recomputed |= part == "rematted_computation"
        name = part
        for _ in range(_MOST_WRAPPERS):
            wrapper = _WRAPPER.fullmatch(name)
            if wrapper is None:
                break
            is_forward |= wrapper[1] == "jvp"
            is_backward |= wrapper[1] == "transpose"
            name = wrapper[2]
        is_last = number == len(parts) - 1
        if is_last or name in _STRUCTURE or (name == "cond" and path[-1:] == ["while"]):
            continue
        path.append(name)
    phase = (
        Phase.RECOMPUTED
        if is_recomputed
        else Phase.BACKWARD
        if is_backward
        else Phase.FORWARD
        if is_forward
        else None
    )
    return _Named(tuple(path), phase)


def _parts(op_name: str) -> list[str]:
    """The parts between slashes; slashes inside brackets do not part."""
    if "(" not in op_name:
        return op_name.split("/")
    parts, depth, start = [], 0, 0
    for place, character in enumerate(op_name):
        if character == "(":
            depth += 1
        elif character == ")":
            depth = max(0, depth - 1)
        elif character == "/" and not depth:
            parts.append(op_name[start:place])
            start = place + 1
    parts.append(op_name[start:])
    return parts


def _starred(name: str) -> str | None:
    """A name with `*` for the number that stands alone in it or behind `_`, `.` or `-`; None if it has none."""
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return None
    return f"{match[1] or ''}*"
