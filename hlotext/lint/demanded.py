"""Elements that are used: a walk from the results backwards, through fusions, to what each operation need compute."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import attrs

from hlotext.analysis import fact
from hlotext.analysis.call_graph import call_graph
from hlotext.analysis.loops import operands_first
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.lint.alike_fusions import alike
from hlotext.lint.demand import Asked, Demand, fraction, joined
from hlotext.lint.operand_demands import operand_demands
from hlotext.lint.zeros import zeros


@fact
def demands(module: Module) -> Mapping[Instruction, Asked]:
    """Returns the demand for each result of which not all elements are needed, outside reducers and conditions."""
    walk = _Walk(module)
    for computation in call_graph(module).stepped:
        if not computation.is_fusion_body and len(computation):
            walk.enter(computation, None, ())
    return walk.found


def least_work(one: Instruction, asked: Mapping[Instruction, Asked]) -> tuple[Asked, float]:
    """Demand for a result, or for an operand of a product that is zero where a mask of positions says so; with the least
    part of the work that this takes in blocks."""
    own = asked.get(one)
    found = [(own, 1.0 if own is None else fraction(own, one.shape, by_blocks=True))]
    for operand in one.operands if one.opcode in traits.CONTRACTIONS else ():
        each = asked.get(operand)
        if not isinstance(each, Demand) or not each.masks or operand.shape is None:
            continue
        # A diagonal operand scales rows, which D107 says.
        if not any(
            mask.is_diagonal(operand.shape.dimensions) or not mask.is_counted for mask in each.masks.values()
        ):
            found.append((each, fraction(each, operand.shape, by_blocks=True)))
    return min(found, key=lambda each: each[1])


@attrs.frozen(eq=False)
class _Body:
    """Demand inside a fusion whose result is asked for in part, by places that equal bodies have alike."""

    asked: Asked
    given: dict[int, Asked]
    """Demand for the operands, by their numbers."""
    found: list[tuple[int, int, Asked]]
    """Demand for results inside, by the numbers of body and instruction."""


class _Walk:
    def __init__(self, module: Module) -> None:
        self.found: dict[Instruction, Asked] = {}
        self._zeros = zeros(module)
        self._alike = alike(module)
        self._shared = {
            callee
            for callee, edges in call_graph(module).callers.items()
            if any((edge.computation, edge.place) != (edges[0].computation, edges[0].place) for edge in edges)
        }
        """Computations that several instructions call."""
        self._places: dict[Computation, list[int]] = {}
        """Where fusions stand in bodies, of equal ones the first."""
        self._known: dict[Hashable, _Body] = {}
        self._joined: dict[tuple[int, int], tuple[Asked, Asked, Asked]] = {}

    def enter(self, body: Computation, asked: Asked, fusions: tuple[Instruction, ...]) -> dict[int, Asked]:
        """Walks through a computation of whose root this is asked; what it asks of its parameters, by their numbers."""
        pending: dict[Instruction, Asked] = {body.root: asked}
        apart: dict[Instruction, dict[int, Asked]] = {}
        given: dict[int, Asked] = {}
        for one in reversed(operands_first(body)):
            opcode, operands = one.opcode, one.operands
            wanted = apart[one] if one in apart else pending.get(one)
            if wanted is not None:
                self.found[one] = wanted
            if opcode == "get-tuple-element":
                made, index = operands[0], one.attributes.get("index", 0)
                parts = apart.get(made)
                if parts is None and made not in pending and _is_taken_apart(made):
                    parts = apart[made] = {}
                if parts is None:
                    pending[made] = None
                else:
                    parts[index] = self._both(parts[index], wanted) if index in parts else wanted
            elif opcode == "parameter":
                if one in pending or one in apart:
                    given[one.parameter_number or 0] = wanted
            elif wanted is None and opcode not in _NARROWING:
                for operand in operands:
                    pending[operand] = None
            else:
                for operand, more in self._operands(one, wanted, fusions):
                    pending[operand] = self._both(pending[operand], more) if operand in pending else more
        return given

    def _both(self, a: Asked, b: Asked) -> Asked:
        """The demand of two together, for the same two the same object."""
        if a is None or b is None:
            return None
        key = id(a), id(b)
        if key not in self._joined:
            self._joined[key] = a, b, joined(a, b)
        return self._joined[key][2]

    def _operands(
        self, one: Instruction, wanted: Asked, fusions: tuple[Instruction, ...]
    ) -> Iterable[tuple[Instruction, Asked]]:
        opcode, operands = one.opcode, one.operands
        if opcode == "tuple":
            return (
                (operand, wanted.get(number) if isinstance(wanted, dict) else None)
                for number, operand in enumerate(operands)
            )
        if opcode == "fusion" and (bodies := one.called_computations) and bodies[0] not in self._shared:
            given = self._inside(one, bodies[0], wanted, fusions)
            return [(operand, given[n]) for n, operand in enumerate(operands) if n in given]
        if isinstance(wanted, dict):  # a reduction or sort of several arrays reads them alike
            wanted = _alike(wanted, one)
        return zip(operands, operand_demands(one, wanted, fusions, self._zeros), strict=True)

    def _inside(
        self, fusion: Instruction, body: Computation, wanted: Asked, fusions: tuple[Instruction, ...]
    ) -> dict[int, Asked]:
        """Walks through a fusion: of those that are alike and whose operands have no zeros but under the same masks of
        positions, through the first.
        """
        if wanted is None and self._alike.opcodes(fusion).isdisjoint(_NARROWING):
            return dict.fromkeys(range(len(fusion.operands)))
        likeness = self._alike.of(fusion, body) if not fusions else None
        masks = self._zeros.masks_of(likeness.others) if likeness is not None else None
        if likeness is None or masks is None or not self._shared.isdisjoint(self._inner(body)):
            return self.enter(body, wanted, (*fusions, fusion))
        key = likeness.key, masks, _key(wanted)
        known = self._known.get(key)
        if known is not None:
            if known.found:
                inside = [each.instructions for each in (body, *self._inner(body))]
                self.found.update([(inside[n][place], asked) for n, place, asked in known.found])
            return known.given
        given = self.enter(body, wanted, (*fusions, fusion))
        found = [
            (n, place, self.found[one])
            for n, each in enumerate([body, *self._inner(body)])
            for place, one in enumerate(each)
            if one in self.found
        ]
        self._known[key] = _Body(wanted, given, found)
        return given

    def _inner(self, body: Computation) -> list[Computation]:
        """The bodies of the fusions in a fusion's body, in the order in which equal bodies have them."""
        first = self._alike.first(body)
        if first not in self._places:
            self._places[first] = [n for n, one in enumerate(first) if one.opcode == "fusion"]
        if not self._places[first]:
            return []
        inside = body.instructions
        found = [callee for n in self._places[first] for callee in inside[n].called_computations]
        for callee in tuple(found):
            found += self._inner(callee)
        return found


def _key(asked: Asked) -> Hashable:
    """Equal for the same demands."""
    if isinstance(asked, dict):
        return tuple(
            [(n, _key(part) if isinstance(part, dict) else id(part)) for n, part in sorted(asked.items())]
        )
    return id(asked)


_NARROWING = (
    traits.DOTS
    | {"convolution", "dynamic-slice", "fusion", "gather", "multiply", "pad"}
    | {"reduce", "reduce-window", "select", "slice"}
)
"""Opcodes that ask for a part of an operand, or call what may, even if all of their result is used."""


def _is_taken_apart(made: Instruction) -> bool:
    if made.is_root:
        return False
    for user in made.user_view:
        if user.opcode != "get-tuple-element" or not isinstance(user.attributes.get("index"), int):
            return False
    return True


def _alike(wanted: dict[int, Asked], one: Instruction) -> Demand | None:
    if one.opcode not in ("reduce", "sort"):
        return None
    found: Asked = next(iter(wanted.values()), None)
    for other in wanted.values():
        found = joined(found, other)
    return found if isinstance(found, Demand) else None
