"""Matrix products seen through fusions and library calls: their sizes, what they multiply, what reads them."""

from __future__ import annotations

import attrs

from hlotext import cost
from hlotext.analysis import CallGraph, call_graph, census, fact
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.lint.helpers import is_product_call
from hlotext.lint.rule import Context
from hlotext.lint.values import Value, consumers, source

SAME = frozenset({"bitcast", "copy", "convert", "reshape", "transpose"})
"""Opcodes behind which a matrix is still that matrix, perhaps turned."""

_LEAST_PARTS, _MOST_PARTS = 2, 50
_MOST_STEPS = 300
"""Bound on the values that are looked at on the way from one to a product."""
_WITH_PRODUCTS = traits.CONTRACTIONS | traits.CONTROL_FLOW

COMBINES_PADS = frozenset({"add", "maximum"})
"""Opcodes by which the TPU compiler joins arrays that are padded to the size of their concatenation: with -inf, or zeros."""


@attrs.frozen(eq=False)
class Multiplication:
    """A matmul or convolution of two arrays, possibly a library call."""

    dot: Instruction
    whole: Instruction
    """The fusion that it stands in, or itself."""
    operands: tuple[Value, Value]

    @property
    def value(self) -> Value:
        return Value(self.dot, (self.whole,) if self.whole is not self.dot else ())


@attrs.frozen(eq=False)
class Product(Multiplication):
    """A matmul of two matrices, possibly batched."""

    origins: tuple[Value, Value]
    """The operands, seen through what leaves a matrix that matrix (`SAME`)."""
    batch: int
    """Elements of the dimensions that both operands have and that are not summed."""
    rows: int
    summed: int
    columns: int


def products(context: Context) -> tuple[Product, ...]:
    """Returns the matmuls, as `dot` or as convolution whose windows only select, in text order."""
    return _products(context.module)


@fact
def _products(module: Module) -> tuple[Product, ...]:
    by_opcode = census(module).by_opcode
    every = (dot for opcode in ("dot", "convolution") for dot in by_opcode.get(opcode, ()))
    return tuple(found for dot in every if (found := _product(dot, call_graph(module))) is not None)


def multiplications(context: Context) -> tuple[Multiplication, ...]:
    """Returns all matmuls and convolutions, including library calls, in text order."""
    graph, by_opcode = context.graph, context.census.by_opcode
    every = [dot for opcode in ("dot", "convolution") for dot in by_opcode.get(opcode, ())]
    every += [call for call in by_opcode.get("custom-call", ()) if is_product_call(call)]
    found = ((one, fusions_of(one, graph)) for one in every if len(one.operands) > 1)
    return tuple(_multiplication(one, fusions) for one, fusions in found if fusions is not None)


def _multiplication(dot: Instruction, fusions: tuple[Instruction, ...]) -> Multiplication:
    operands = Value(dot.operands[0], fusions), Value(dot.operands[1], fusions)
    return Multiplication(dot, fusions[0] if fusions else dot, operands)


def fusions_of(dot: Instruction, graph: CallGraph) -> tuple[Instruction, ...] | None:
    """Returns the fusions around an instruction, outermost first; None if it does not run on its own in one place."""
    fusions: list[Instruction] = []
    home = dot.computation
    while home is not None and home not in graph.stepped:
        caller = graph.caller(home)
        if caller is None or caller.opcode != "fusion" or caller in fusions:
            return None
        fusions.insert(0, caller)
        home = caller.computation
    return tuple(fusions)


def _product(dot: Instruction, graph: CallGraph) -> Product | None:
    fusions, sizes = fusions_of(dot, graph), cost.product_sizes(dot)
    if fusions is None or sizes is None:
        return None
    batch, rows, columns, summed = sizes
    one = _multiplication(dot, fusions)
    left, right = one.operands
    origins = source(left, SAME), source(right, SAME)
    return Product(one.dot, one.whole, one.operands, origins, batch, rows, summed, columns)


def product_behind(
    value: Value, found: dict[tuple[Instruction, tuple[Instruction, ...]], Product]
) -> Product | None:
    """Returns the matmul that computes a value, looking through moves and conversions; None for other values."""
    made = source(value, SAME)
    return found.get((made.instruction, made.fusions))


def concatenated(value: Value) -> tuple[list[Value], int] | None:
    """Returns the arrays of which a value is the concatenation, and the dimension; None for other values.

    Looks through moves and conversions. The TPU compiler expresses it as maximum of padded arrays, or as sum for
    integers.
    """
    made = source(value, SAME)
    one, shape = made.instruction, made.instruction.shape
    if one.opcode == "concatenate":
        return made.operands(), one.attributes.get("dimensions", (0,))[0]
    if one.opcode not in COMBINES_PADS or (one.opcode != "maximum" and not _joins_pads(made)):
        return None
    pending: list[Value] = [made]
    pads: list[Value] = []
    while pending:
        current = source(pending.pop(), SAME)
        if current.instruction.opcode == one.opcode and len(pending) + len(pads) < _MOST_PARTS:
            pending += reversed(current.operands())
        elif current.instruction.opcode == "pad":
            pads.append(current)
        else:
            return None
    if len(pads) < _LEAST_PARTS or shape is None:
        return None
    inner = [pad.instruction.operands[0].shape for pad in pads]
    sizes = [each.dimensions for each in inner if each is not None]
    along = {d for each in sizes for d, size in enumerate(each) if size != shape.dimensions[d]}
    if len(along) != 1 or sum(each[d] for each in sizes for d in along) != shape.dimensions[min(along)]:
        return None
    return [pad.operands()[0] for pad in pads], along.pop()


def _joins_pads(value: Value) -> bool:
    """True for a sum of arrays that the program concatenates."""
    metadata = value.instruction.metadata
    return metadata is not None and metadata.op_name.endswith("concatenate")


def feeds_product(value: Instruction) -> bool:
    """True if a matmul depends on a value; loops and calls are assumed to have one."""
    pending, seen = [Value(value)], {Value(value)}
    while pending and len(seen) < _MOST_STEPS:
        for user, _ in consumers(pending.pop()):
            one = user.instruction
            if one.opcode in _WITH_PRODUCTS or is_product_call(one):
                return True
            if one.opcode == "tuple" and any(other.opcode in traits.CONTROL_FLOW for other in one.users):
                return True  # what a loop takes stands in a tuple
            if user not in seen and one.opcode != "tuple":
                seen.add(user)
                pending.append(user)
    return len(seen) >= _MOST_STEPS
