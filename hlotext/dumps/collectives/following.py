"""Where a dimension of an array comes from: the dimension of the operand that its elements are taken along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import hlotext as hlo
from hlotext.dumps.collectives.places import is_annotation
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.tables import opcodes, traits
from hlotext.layout import LayoutError
from hlotext.layout.bitcast import BitcastTranspose, BitcastTransposeReshapeTranspose, decompose_bitcast

Step = tuple[hlo.Instruction, int]
"""An array and one of its dimensions."""

_SAME = frozenset(
    {
        "copy",
        "slice",
        "dynamic-slice",
        "reverse",
        "sort",
        "pad",
        "concatenate",
        "reduce-window",
        "bitcast-convert",
        "opt-barrier",
        "cholesky",
        "reduce-precision",
    }
)
"""Opcodes whose dimensions are those of their operands, besides elementwise ones."""
_INDICES = frozenset({"AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked"})
"""Custom calls of the TPU compiler that give indices on, with a promise or packed."""


def _numbers(node: hlo.Instruction, name: str) -> tuple[int, ...]:
    value = node.attributes.get(name)
    return tuple(value) if isinstance(value, tuple) else ()


def _rank(node: hlo.Instruction) -> int:
    return len(node.shape.dimensions) if node.shape is not None and node.shape.is_array else 0


def sources(node: hlo.Instruction, dimension: int) -> Iterator[Step]:
    """Yields the operand dimensions that a result dimension corresponds to; none for a new or reduced dimension."""
    opcode, operands = node.opcode, node.operands
    if opcode in opcodes.ELEMENTWISE or opcode in _SAME or gives_indices(node) or is_annotation(node):
        for operand in operands:
            if _rank(operand) == _rank(node):
                yield operand, dimension
    elif opcode == "dynamic-update-slice":
        yield from ((operand, dimension) for operand in operands[:2])
    elif opcode == "transpose":
        order = _numbers(node, "dimensions")
        if dimension < len(order):
            yield operands[0], order[dimension]
    elif opcode == "broadcast":
        order = _numbers(node, "dimensions")
        if dimension in order:
            yield operands[0], order.index(dimension)
    elif opcode == "bitcast" and _has_layouts(node):
        yield from _of_bitcast(node, dimension)
    elif opcode in ("reshape", "bitcast"):
        yield from _reshaped(node, dimension)
    elif opcode == "reduce":
        kept = [d for d in range(_rank(operands[0])) if d not in _numbers(node, "dimensions")]
        if dimension < len(kept):
            yield from ((operand, kept[dimension]) for operand in operands[: len(operands) // 2])
    elif opcode == "dot":
        yield from _of_dot(node, dimension)
    elif opcode == "convolution":
        yield from _of_convolution(node, dimension)
    elif opcode == "gather":
        yield from _of_gather(node, dimension)
    elif opcode == "scatter" and len(operands) == 3:
        yield operands[0], dimension
    elif opcode == "parameter":
        yield from ((value, dimension) for value in passed_to(node))
    elif opcode == "get-tuple-element":
        yield from ((value, dimension) for value in element_of(node))
    elif opcode in traits.CONTROL_FLOW:
        yield from ((root, dimension) for root in _roots(node))


def gives_indices(node: hlo.Instruction) -> bool:
    """Returns True for a custom call that forwards the indices of a gather."""
    return node.opcode == "custom-call" and node.attributes.get("custom_call_target") in _INDICES


def contracted(user: hlo.Instruction) -> list[Step]:
    """Returns the operands and dimensions over which an operation sums."""
    if user.opcode == "dot":
        return [
            (operand, dimension)
            for side, operand in zip(("lhs", "rhs"), user.operands, strict=False)
            for dimension in user.attributes.get(f"{side}_contracting_dims") or ()
        ]
    if user.opcode in ("reduce", "gather") and user.operands:
        name = "start_index_map" if user.opcode == "gather" else "dimensions"
        return [(user.operands[0], dimension) for dimension in user.attributes.get(name) or ()]
    return []


def _reshaped(node: hlo.Instruction, dimension: int) -> Iterator[Step]:
    operand = node.operands[0]
    if operand.shape is None or node.shape is None:
        return
    found = reshaped_dimension(tuple(node.shape.dimensions), tuple(operand.shape.dimensions), dimension)
    if found is not None:
        yield operand, found


def _has_layouts(node: hlo.Instruction) -> bool:
    shapes = node.shape, node.operands[0].shape if node.operands else None
    return all(one is not None and one.is_array and one.layout is not None for one in shapes)


def _of_bitcast(node: hlo.Instruction, dimension: int) -> Iterator[Step]:
    """Of the final HLO, whose bitcasts transpose too: the layouts tell."""
    operand = node.operands[0]
    assert operand.shape is not None
    assert node.shape is not None
    try:
        found = decompose_bitcast(operand.shape, node.shape)
    except LayoutError:
        return
    if isinstance(found, BitcastTranspose):
        yield operand, found.dimensions[dimension]
    elif isinstance(found, BitcastTransposeReshapeTranspose):
        old, new = found.transpose1_shape.dimensions, found.reshape_shape.dimensions
        place = reshaped_dimension(new, old, found.transpose2_dimensions[dimension])
        if place is not None:
            yield operand, found.transpose1_dimensions[place]
    elif found is not None:
        yield from _reshaped(node, dimension)


def reshaped_dimension(new: Sequence[int], old: Sequence[int], dimension: int) -> int | None:
    """Returns the dimension before a reshape of which `dimension` is all or the most major part; None for others."""
    if new[dimension] == 1:
        return None
    before = 1
    for size in new[:dimension]:
        before *= size
    seen = 1
    for number, size in enumerate(old):
        if size != 1 and seen == before:
            return number
        seen *= size
        if seen > before:
            return None
    return None


def _of_dot(node: hlo.Instruction, dimension: int) -> Iterator[Step]:
    lhs, rhs = node.operands[:2]
    batch = list(zip(_numbers(node, "lhs_batch_dims"), _numbers(node, "rhs_batch_dims"), strict=False))
    if dimension < len(batch):
        yield lhs, batch[dimension][0]
        yield rhs, batch[dimension][1]
        return
    place = dimension - len(batch)
    for side, operand in (("lhs", lhs), ("rhs", rhs)):
        bound = {*_numbers(node, f"{side}_batch_dims"), *_numbers(node, f"{side}_contracting_dims")}
        free = [d for d in range(_rank(operand)) if d not in bound]
        if place < len(free):
            yield operand, free[place]
            return
        place -= len(free)


def _of_convolution(node: hlo.Instruction, dimension: int) -> Iterator[Step]:
    labels = node.attributes.get("dim_labels")
    if labels is None:
        return
    if dimension == labels.output_batch_dimension:
        yield node.operands[0], labels.input_batch_dimension
    elif dimension == labels.output_feature_dimension:
        yield node.operands[1], labels.kernel_output_feature_dimension
    elif dimension in labels.output_spatial_dimensions:
        place = labels.output_spatial_dimensions.index(dimension)
        yield node.operands[0], labels.input_spatial_dimensions[place]


def _of_gather(node: hlo.Instruction, dimension: int) -> Iterator[Step]:
    offsets = _numbers(node, "offset_dims")
    table, indices = node.operands[:2]
    if dimension in offsets:
        gone = {*_numbers(node, "collapsed_slice_dims"), *_numbers(node, "operand_batching_dims")}
        kept = [d for d in range(_rank(table)) if d not in gone]
        place = offsets.index(dimension)
        if place < len(kept):
            yield table, kept[place]
        return
    vector = node.attributes.get("index_vector_dim")
    batch = [d for d in range(_rank(indices)) if d != vector]
    place = [d for d in range(_rank(node)) if d not in offsets].index(dimension)
    if place < len(batch):
        yield indices, batch[place]
        alike = dict(
            zip(
                _numbers(node, "start_indices_batching_dims"),
                _numbers(node, "operand_batching_dims"),
                strict=False,
            )
        )
        if batch[place] in alike:
            yield table, alike[batch[place]]


# ---- through tuples and computations


def element_of(node: hlo.Instruction) -> list[hlo.Instruction]:
    """Returns the values that a get-tuple-element may have."""
    index = node.attributes.get("index")
    return _elements(node.operands[0], index) if isinstance(index, int) and node.operands else []


def _elements(source: hlo.Instruction, index: int) -> list[hlo.Instruction]:
    if source.opcode == "tuple":
        return list(source.operands[index : index + 1])
    if source.opcode == "while":
        found = _elements(source.operands[0], index) if source.operands else []
        for body in source.called_computations[:1]:
            if len(body):
                found += _elements(body.root, index)
        return found
    if source.opcode in ("conditional", "call"):
        return [one for root in _roots(source) for one in _elements(root, index)]
    if source.opcode == "parameter":
        found = [one for value in passed_to(source) for one in _elements(value, index)]
        home = source.computation
        if home is not None and any(caller.opcode == "while" for caller in home.callers):
            bodies = [caller.called_computations[0] for caller in home.callers if caller.opcode == "while"]
            for root in [body.root for body in bodies if len(body)]:
                found += _elements(root, index) if root.opcode == "tuple" else []  # what the last run left
        return found
    if source.opcode in ("sort", "reduce", "opt-barrier"):
        count = len(source.operands) // (2 if source.opcode == "reduce" else 1)
        return [source.operands[index]] if index < count else []
    if source.opcode == "get-tuple-element":
        return [one for value in element_of(source) for one in _elements(value, index)]
    return []


def passed_to(parameter: hlo.Instruction) -> list[hlo.Instruction]:
    """Returns the values that callers pass to a parameter; for a loop body, the initial state."""
    home, number = parameter.computation, parameter.parameter_number
    if home is None or home.is_entry or number is None:
        return []
    return [value for caller in home.callers for value in _passed(caller, home, number)]


def _passed(caller: hlo.Instruction, home: Computation, number: int) -> list[hlo.Instruction]:
    if caller.opcode == "while":
        return list(caller.operands[:1])
    if caller.opcode == "conditional":
        places = [n for n, one in enumerate(caller.called_computations) if one is home]
        return [caller.operands[n + 1] for n in places if n + 1 < len(caller.operands)]
    if caller.opcode in ("call", "fusion"):
        return list(caller.operands[number : number + 1])
    return []


def _roots(node: hlo.Instruction) -> list[hlo.Instruction]:
    called = node.called_computations
    return [one.root for one in (called[:1] if node.opcode == "while" else called) if len(one)]
