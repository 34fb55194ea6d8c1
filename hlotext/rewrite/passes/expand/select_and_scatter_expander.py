"""Selecting in windows and scattering as a reduction of windows and a scatter."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.enums import ComparisonDirection
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.builder import Builder, retyped
from hlotext.rewrite.kit.facts import shape_of, sizes, type_of
from hlotext.rewrite.kit.rules import Result, Rewrite, pattern
from hlotext.rewrite.outlining import inline
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.properties import is_tiled

S32, PRED = ELEMENT_TYPES["s32"], Shape(ELEMENT_TYPES["pred"])


@attrs.frozen
class SelectAndScatterExpander(Pass):
    """Expands select-and-scatter into a reduce-window that finds indices, and a scatter (XLA's `SelectAndScatterExpander`).

    >>> import hlotext as hlo
    >>> m = hlo.parse("g { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=GE }"
    ...     "  s { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
    ...     "  ENTRY e { x = f32[8] parameter(0)  y = f32[4] parameter(1)  z = f32[] constant(0)"
    ...     "  ROOT r = f32[8] select-and-scatter(x, y, z), window={size=2 stride=2}, select=g, scatter=s }")
    >>> SelectAndScatterExpander().run(m).statistics
    {'selections': 1}
    >>> [i.opcode for i in m.entry.root.operands]
    ['broadcast', 'concatenate', 'parameter']
    """

    name: ClassVar[str] = "select-and-scatter-expander"
    summary: ClassVar[str] = "Expands select-and-scatter into a reduce-window and a scatter."

    def run(self, module: Module) -> PassResult:
        return PassResult.of(apply_rules(module, [expand], driver="once"))


@pattern("select-and-scatter", name="selections")
def expand(r: Rewrite) -> Result:
    """`ExpandInstruction`"""
    i = r.instruction
    if not _matches(i):
        return None
    x, source, start = i.operands
    rank = len(sizes(x))
    counted, found = retyped(shape_of(x), S32), retyped(shape_of(source), S32)
    iotas = [r.create("iota", counted, iota_dimension=d) for d in range(rank)]
    nowhere = r.create("constant", Shape(S32), argument=_number(-1))
    reduced = r.create(
        "reduce-window",
        Shape.tuple((shape_of(source), *(found,) * rank)),
        (x, *iotas, start, *(nowhere,) * rank),
        window=i.attributes["window"],
        to_apply=_selection(r, i, rank),
    )
    column = r.shape(S32, (*sizes(source), 1))
    places = []
    for d in range(rank):
        place = r.create("get-tuple-element", found, (reduced,), index=d + 1)
        places.append(r.create("reshape", column, (place,)))
    target = r.create("broadcast", shape_of(i), (start,), dimensions=())
    whole = r.shape(S32, (*sizes(source), rank))
    indices = r.create("concatenate", whole, places, dimensions=(rank,))
    every = tuple(range(rank))
    return r.create(
        "scatter",
        shape_of(i),
        (target, indices, source),
        update_window_dims=(),
        inserted_window_dims=every,
        scatter_dims_to_operand_dims=every,
        index_vector_dim=rank,
        to_apply=i.attributes["scatter"],
    )


def _matches(i: Instruction) -> bool:
    callees = [i.attributes.get(name) for name in ("select", "scatter")]
    if len(i.operands) != 3 or "window" not in i.attributes:
        return False
    found = [c for c in callees if isinstance(c, Computation)]
    whole = len(found) == 2 and all(len(c.parameters) == 2 for c in found)
    if any(is_tiled(p.shape) for c in found for p in c.parameters):
        return False  # once layouts are assigned for TPU, which has its own way
    return whole and shape_of(i).is_array and bool(sizes(i.operands[0]))


def _number(value: int) -> Literal:
    return Literal.from_array(np.asarray(value, np.int32), Shape(S32))


def _selection(r: Rewrite, i: Instruction, rank: int) -> Computation:
    """Reducer of a window to the selected element and its index; index -1 is the initial value's."""
    select: Computation = i.attributes["select"]
    home = i.computation
    b = Builder.new(r.module, f"{select.name}.reduce_window", (), before=home)
    value, place = Shape(type_of(i.operands[0])), Shape(S32)
    lhs = b.parameter(value, "operand_lhs")
    lhs_places = [b.parameter(place, "iota_lhs") for _ in range(rank)]
    rhs = b.parameter(value, "operand_rhs")
    rhs_places = [b.parameter(place, "iota_rhs") for _ in range(rank)]
    nowhere = b.op("constant", shape=place, argument=_number(-1))
    has_lhs, has_rhs = (
        b.compare(side[0], nowhere, ComparisonDirection.NE, shape=PRED) for side in (lhs_places, rhs_places)
    )
    no_rhs = b.op("not", (has_rhs,), shape=PRED)
    call = b.op("call", (lhs, rhs), shape=PRED, to_apply=select)
    chosen = b.op("or", (b.op("and", (call, has_lhs), shape=PRED), no_rhs), shape=PRED)
    parts = [
        b.op("select", (chosen, one, other), shape=one.shape)
        for one, other in zip((lhs, *lhs_places), (rhs, *rhs_places), strict=True)
    ]
    found = b.finish(b.tuple(*parts))
    inline(call)
    return found
