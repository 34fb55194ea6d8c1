"""Elements that are used: a walk from the results backwards, through fusions, to what each operation need compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hlotext.analysis import fact
from hlotext.analysis.call_graph import call_graph
from hlotext.analysis.loops import operands_first
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.lint.demand import Asked, Demand, joined
from hlotext.lint.operand_demands import operand_demands
from hlotext.lint.values import Value


@fact
def demands(module: Module) -> Mapping[Instruction, Asked]:
    """Demand for the result of each instruction outside reducers and conditions, where that is not all of it."""
    graph = call_graph(module)
    walk = _Walk()
    for computation in graph.stepped:
        if not computation.is_fusion_body and len(computation):
            walk.enter(computation, None, ())
    return walk.found


class _Walk:
    def __init__(self) -> None:
        self.found: dict[Instruction, Asked] = {}
        self._nonzero: dict[Value, float] = {}

    def enter(self, body: Computation, asked: Asked, fusions: tuple[Instruction, ...]) -> dict[int, Asked]:
        """Walks through a computation of whose root this is asked; what it asks of its parameters, by their numbers."""
        pending: dict[Instruction, Asked] = {body.root: asked}
        given: dict[int, Asked] = {}
        for one in reversed(operands_first(body)):
            wanted = pending.get(one)
            if wanted is not None:
                self.found[one] = wanted
            if one.opcode == "parameter":
                if one in pending:
                    given[one.parameter_number or 0] = wanted
                continue
            if wanted is None and one.opcode not in _NARROWING:
                pending.update(dict.fromkeys(one.operands))
                continue
            for operand, more in self._operands(one, wanted, fusions):
                pending[operand] = joined(pending[operand], more) if operand in pending else more
        return given

    def _operands(
        self, one: Instruction, wanted: Asked, fusions: tuple[Instruction, ...]
    ) -> Iterator[tuple[Instruction, Asked]]:
        opcode = one.opcode
        if opcode == "get-tuple-element":
            index = one.attributes.get("index")
            yield (
                one.operands[0],
                {index: wanted} if isinstance(index, int) and _is_taken_apart(one.operands[0]) else None,
            )
        elif opcode == "tuple":
            for number, operand in enumerate(one.operands):
                yield operand, wanted.get(number) if isinstance(wanted, dict) else None
        elif opcode == "fusion" and one.called_computations and len(one.called_computations[0].callers) == 1:
            if wanted is None and not any(inner.opcode in _NARROWING for inner in one.called_computations[0]):
                yield from ((operand, None) for operand in one.operands)
                return
            given = self.enter(one.called_computations[0], wanted, (*fusions, one))
            for number, operand in enumerate(one.operands):
                if number in given:
                    yield operand, given[number]
        else:
            if isinstance(wanted, dict):  # a reduction or sort of several arrays reads them alike
                wanted = _alike(wanted, one)
            yield from zip(one.operands, operand_demands(one, wanted, fusions, self._nonzero), strict=True)


_NARROWING = frozenset(
    {"dot", "dynamic-slice", "fusion", "gather", "get-tuple-element", "multiply", "pad", "select", "slice"}
)
"""Opcodes that ask for a part of an operand, or call what may, even if all of their result is used."""


def _is_taken_apart(made: Instruction) -> bool:
    return not made.is_root and all(user.opcode == "get-tuple-element" for user in made.users)


def _alike(wanted: dict[int, Asked], one: Instruction) -> Demand | None:
    if one.opcode not in ("reduce", "sort"):
        return None
    found: Asked = next(iter(wanted.values()), None)
    for other in wanted.values():
        found = joined(found, other)
    return found if isinstance(found, Demand) else None
