"""Helpers of gather and scatter passes (XLA's `gather_scatter_utils` and `hlo_creation_utils`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.layout.permutations import compose
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.facts import shape_of, sizes, type_of, without_dimensions
from hlotext.rewrite.passes.simplify.dimensions import is_identity

SCATTER = ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
GATHER = ("offset_dims", "collapsed_slice_dims", "start_index_map")


def numbers(i: Instruction, name: str) -> tuple[int, ...]:
    """Returns an attribute that lists dimensions; empty if absent."""
    return tuple(i.attributes.get(name, ()))


def is_whole_gather(i: Instruction) -> bool:
    """Returns True for a gather with two operands and all required attributes."""
    fits = i.opcode == "gather" and len(i.operands) == 2 and all(name in i.attributes for name in GATHER)
    return fits and "index_vector_dim" in i.attributes and "slice_sizes" in i.attributes


def is_whole_scatter(i: Instruction) -> bool:
    """Returns True for a scatter with as many updates as operands, all required attributes and one computation."""
    fits = (
        i.opcode == "scatter" and len(i.operands) % 2 == 1 and all(name in i.attributes for name in SCATTER)
    )
    return fits and "index_vector_dim" in i.attributes and len(i.called_computations) == 1


def collapse_first(editor: Editor, x: Instruction, count: int) -> Instruction:
    """Reshapes a value so that its first `count` dimensions become one (`CollapseFirstNDims`)."""
    return editor.reshape(editor.shape(type_of(x), [math.prod(sizes(x)[:count]), *sizes(x)[count:]]), x)


def expand_first(editor: Editor, x: Instruction, parts: Sequence[int]) -> Instruction:
    """Reshapes a value so that its first dimension becomes several (`ExpandFirstDimIntoNDims`)."""
    return editor.reshape(editor.shape(type_of(x), [*parts, *sizes(x)[1:]]), x)


def insert_ones(editor: Editor, x: Instruction, places: Iterable[int]) -> Instruction:
    """Reshapes a value to insert dimensions of size 1 at these positions of the result (`InsertDegenerateDims`)."""
    wanted = set(places)
    given = iter(sizes(x))
    rank = len(sizes(x)) + len(wanted)
    return editor.reshape(
        editor.shape(type_of(x), [1 if d in wanted else next(given) for d in range(rank)]), x
    )


def elide_ones(editor: Editor, x: Instruction, places: Iterable[int]) -> Instruction:
    """Reshapes a value to remove these dimensions of size 1 (`ElideDegenerateDims`)."""
    return editor.reshape(without_dimensions(shape_of(x), places), x)


def transpose(editor: Editor, x: Instruction, order: Sequence[int]) -> Instruction:
    """Transposes a value, with the descending layout; returns it unchanged for the identity (`MaybeTranspose`)."""
    if is_identity(order):
        return x
    shape = editor.shape(type_of(x), compose(sizes(x), order))
    old = shape_of(x).layout
    if shape.layout is not None and old is not None and old.element_size_in_bits:
        shape = shape.with_layout(attrs.evolve(shape.layout, element_size_in_bits=old.element_size_in_bits))
    return editor.create_like(x, "transpose", shape, (x,), dimensions=tuple(order))


def index_rows(editor: Editor, indices: Instruction, vector_dim: int) -> Instruction:
    """Converts indices to a matrix with an index vector per row (`TransformStartIndices`)."""
    rank = len(sizes(indices))
    if vector_dim == rank:
        indices = insert_ones(editor, indices, [vector_dim])
        rank += 1
    elif vector_dim < rank - 1:
        indices = transpose(editor, indices, [*(d for d in range(rank) if d != vector_dim), vector_dim])
    if rank > 2:
        return collapse_first(editor, indices, rank - 1)
    return insert_ones(editor, indices, [0]) if rank == 1 else indices


def set_flags(i: Instruction, *names: str) -> dict[str, Any]:
    """Returns those of these attributes that are true for an instruction."""
    return {name: True for name in names if i.attributes.get(name)}
