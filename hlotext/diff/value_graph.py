"""A module as a graph of operations, seen through what only passes values on: fusions, calls, tuples, asynchronous pairs.

Passes move operations into fusions and out of calls all the time. What an operation reads and who reads it stays the same if
one looks through the borders, which is what makes two texts comparable.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection

import hlotext as hlo
from hlotext.dumps.identity import states
from hlotext.ir.caches import weighted_cache
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import CALLS_NOTHING

PASSING = traits.BINDS_OPERANDS
"""Opcodes whose result is that of a computation, run once."""
TAKING = frozenset({"get-tuple-element", "parameter"})
"""Opcodes whose result is part of another."""
_MOVEMENT = traits.REPEATS_ELEMENTS | traits.CONVERSIONS | {"copy-start"}
"""Opcodes that are written for each other, as layouts come to be."""
_VIEWS = traits.REARRANGES_ELEMENTS | traits.CONVERSIONS
"""Opcodes that show the same elements in another form."""
_PRODUCTS = (traits.CONTRACTIONS - {"ragged-dot"}) | {"custom-call"}
_HOPS = 10_000
"""Maximum length of a chain of values; a longer one is a cycle."""


def base_opcode(instruction: hlo.Instruction) -> str:
    """Returns the opcode without its asynchronous suffix."""
    return states.base_opcode(instruction.opcode)


def family(opcode: str) -> str:
    """Returns the family of an opcode, whose members may replace each other without a change of meaning."""
    return "movement" if opcode in _MOVEMENT else "product" if opcode in _PRODUCTS else opcode


def op_name(instruction: hlo.Instruction) -> str:
    """Returns the op_name of an instruction; empty if absent."""
    metadata = instruction.metadata
    return "" if metadata is None else metadata.op_name


class Graph:
    """Data flow graph of a module, in which forwarding operations stand for the value they forward. Computed on access,
    cached.
    """

    def __init__(self, module: hlo.Module, opaque: Collection[hlo.Computation] = ()) -> None:
        """Of a module, or of it without computations that nobody wants to look into."""
        self.module = module
        self._opaque = opaque
        self.nodes: list[hlo.Instruction] = [
            node
            for computation in module.computations
            if computation not in opaque
            for node in computation.instructions
        ]
        self.place = {node: place for place, node in enumerate(self.nodes)}
        self.callers: dict[hlo.Computation, list[hlo.Instruction]] = defaultdict(list)
        for node in self.nodes:
            if node.opcode not in CALLS_NOTHING:
                for callee in node.called_computations:
                    self.callers[callee].append(node)
        self._sources: dict[hlo.Instruction, hlo.Instruction] = {}
        self._inputs: dict[hlo.Instruction, tuple[hlo.Instruction, ...]] = {}
        self._cores: dict[hlo.Instruction, hlo.Instruction] = {}
        self._core_users: dict[hlo.Instruction, list[tuple[hlo.Instruction, int]]] = {}

    # ---- looking through

    def source(self, node: hlo.Instruction) -> hlo.Instruction:
        """Returns the operation that computes a node's value: itself, or what it forwards."""
        found = self._sources.get(node)
        if found is not None:
            return found
        if node.opcode not in PASSING and node.opcode not in TAKING:
            self._sources[node] = node
            return node
        way = []
        current: hlo.Instruction = node
        indices: list[int] = []
        for _ in range(_HOPS):
            known = None if indices else self._sources.get(current)
            if known is not None:  # so a way that many nodes share is gone once
                current = known
                break
            way.append((current, tuple(indices)))
            following = self._behind(current, indices)
            if following is None:
                break
            current = following
        else:
            current = node
        # Where an element of a tuple is left over, the one that takes it out is the operation.
        if indices:
            current = next((at for at, left in reversed(way) if not left), node)
        for at, left in way:
            if not left:
                self._sources[at] = current
            if at is current:
                break
        self._sources[node] = current
        return current

    def _behind(self, node: hlo.Instruction, indices: list[int]) -> hlo.Instruction | None:
        """Value that a node forwards, given the tuple elements wanted (innermost last)."""
        opcode = node.opcode
        if opcode == "get-tuple-element":
            index = node.attributes.get("index")
            if not isinstance(index, int) or not node.operands:
                return None
            indices.append(index)
            return node.operands[0]
        if opcode == "tuple":
            if indices and indices[-1] < len(node.operands):
                return node.operands[indices.pop()]
            return None
        if opcode == "parameter":
            return self._argument(node)
        if opcode in PASSING:
            callees = node.called_computations
            if not callees or not len(callees[0]) or callees[0] in self._opaque:
                return None
            return callees[0].root
        return None

    def _argument(self, node: hlo.Instruction) -> hlo.Instruction | None:
        """Argument of the one caller for a parameter of a computation that only groups operations."""
        computation, number = node.computation, node.parameter_number
        if computation is None or number is None:
            return None
        callers = self.callers.get(computation, ())
        if len(callers) != 1 or callers[0].opcode not in PASSING or number >= len(callers[0].operands):
            return None
        return callers[0].operands[number]

    def is_real(self, node: hlo.Instruction) -> bool:
        """Returns True if a node computes a value rather than forwarding one."""
        return self.source(node) is node

    @functools.cached_property
    def real(self) -> list[hlo.Instruction]:
        """The nodes that compute a value rather than forwarding one, in text order."""
        source = self.source
        return [node for node in self.nodes if source(node) is node]

    def inputs(self, node: hlo.Instruction) -> tuple[hlo.Instruction, ...]:
        """Returns the operations that a node reads."""
        found = self._inputs.get(node)
        if found is None:
            sources = self._sources
            found = self._inputs[node] = tuple(
                [sources.get(operand) or self.source(operand) for operand in node._operands]
            )
        return found

    @functools.cached_property
    def users(self) -> dict[hlo.Instruction, list[tuple[hlo.Instruction, int]]]:
        """Users of each operation, with operand numbers."""
        found: dict[hlo.Instruction, list[tuple[hlo.Instruction, int]]] = defaultdict(list)
        for node in self.real:
            for slot, operand in enumerate(self.inputs(node)):
                found[operand].append((node, slot))
        return found

    def core(self, node: hlo.Instruction) -> hlo.Instruction:
        """Returns the operation whose elements a node forwards, looking through bitcasts, transposes and conversions."""
        found = self._cores.get(node)
        if found is not None:
            return found
        way = [node]
        while base_opcode(way[-1]) in _VIEWS and len(way) < _HOPS:
            inputs = self.inputs(way[-1])
            if not inputs or inputs[0] in self._cores:
                break
            way.append(inputs[0])
        inputs = self.inputs(way[-1]) if base_opcode(way[-1]) in _VIEWS else ()
        end = self._cores.get(inputs[0], way[-1]) if inputs else way[-1]
        for node in way:
            self._cores[node] = end
        return end

    def core_users(self, core: hlo.Instruction) -> list[tuple[hlo.Instruction, int]]:
        """Returns the users of an operation's elements in any form, with operand numbers; `core` must be a result of
        `core`.
        """
        found = self._core_users.get(core)
        if found is None:
            found = []
            forms = [core]
            for form in forms:
                for user, slot in self.users.get(form, ()):
                    if base_opcode(user) not in _VIEWS:
                        found.append((user, slot))
                    elif not slot and user is not core and self.core(user) is core:
                        forms.append(user)
            if len(forms) > 1:
                found.sort(key=lambda use: (self.place[use[0]], use[1]))
            self._core_users[core] = found
        return found

    # ---- what a node is

    @functools.cached_property
    def names(self) -> dict[str, hlo.Instruction]:
        """Nodes by name; the first of several with the same name."""
        found: dict[str, hlo.Instruction] = {}
        for node in self.nodes:
            found.setdefault(node.name, node)
        return found


@weighted_cache(1 << 16)
def plain_shape(shape: hlo.Shape | None) -> str:
    """Element type and dimensions, without layouts."""
    if shape is None:
        return "?"
    return ",".join(f"{leaf.element_type}{list(leaf.dimensions)}" for _, leaf in shape.leaves())


@weighted_cache(1 << 16)
def element_count(shape: hlo.Shape | None) -> int:
    """Number of elements of an array, or of all arrays of a tuple; -1 if unknown."""
    if shape is None:
        return -1
    return sum(leaf.element_count for _, leaf in shape.leaves() if leaf.is_array)
