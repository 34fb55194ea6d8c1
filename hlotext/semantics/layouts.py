"""Layouts by themselves: permutations, tiles, bits of an element, remains of sparse arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hlotext.ir.caches import weighted_cache
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Layout, Shape, default_layout
from hlotext.ir.values.types import TypeKind
from hlotext.layout import LayoutError, layout_of
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.problems import Part, Problem

_CODES = {"minor_to_major": "V201", "physical shape": "V203", "element size": "V204"}
"""The code for each part of a layout that `layout_of` may find at fault; tiles, padding and splits are V202."""


def check_layout(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks every layout in the result's shape (`LayoutUtil::ValidateLayoutForShape`)."""
    if instruction.shape is not None:
        for code, message in layout_problems(instruction.shape):
            yield Problem(code, message, Part.SHAPE)


@weighted_cache(1 << 14)
def layout_problems(shape: Shape) -> tuple[tuple[str, str], ...]:
    """Code and message for what is wrong with the layouts in a shape, each kind once."""
    found: dict[str, str] = {}
    for _, leaf in shape.leaves():
        array = leaf.tuple_shapes[0] if leaf.is_buffer else leaf
        if array.layout is not None:
            for code, message in _problems(array, array.layout):
                found.setdefault(code, message)
    return tuple(found.items())


def _problems(shape: Shape, layout: Layout) -> Iterator[tuple[str, str]]:
    # Its parts are looked at one by one, so that each fault is found and not only the first.
    if not shape.is_array:
        yield "V201", f"{shape} has a layout, but no dimensions to order"
        return
    bounded = Shape(shape.element_type, tuple(max(size, 0) for size in shape.dimensions))
    ordered = Layout(layout.minor_to_major)
    whole_order = layout_error(bounded.with_layout(ordered))
    if whole_order is not None:
        yield "V201", f"{shape}: {whole_order.problem}"
        ordered = default_layout(shape.rank)
    sparse = {
        "an index type": layout.index_type,
        "a pointer type": layout.pointer_type,
        "a physical shape": layout.physical_shape,
    }
    if found := [name for name, part in sparse.items() if part is not None]:
        yield "V203", f"{shape} has {' and '.join(found)}, but XLA has no sparse arrays"
    dense = Layout(
        ordered.minor_to_major,
        layout.tiles,
        layout.tail_padding_alignment_in_elements,
        element_size_in_bits=layout.element_size_in_bits,
        split_configs=layout.split_configs,
    )
    error = layout_error(bounded.with_layout(dense))
    if error is not None:
        yield _CODES.get(error.part, "V202"), f"{error.part} of {shape}: {error.problem}"
    elif message := _split_twice(layout):
        yield "V202", f"{shape}: {message}"
    if 0 < layout.element_size_in_bits < shape.element_type.bits:
        yield (
            "V204",
            f"{shape} stores an element in {layout.element_size_in_bits} bits, but {shape.element_type} has "
            f"{shape.element_type.bits}",
        )


def layout_error(shape: Shape) -> LayoutError | None:
    """Returns the error that `hlotext.layout` finds in a shape, or None if it is valid."""
    try:
        layout_of(shape)
    except LayoutError as error:
        return error
    return None


def _split_twice(layout: Layout) -> str:
    """XLA's demands on splits beyond those that placing elements makes."""
    dimensions = [config.dimension for config in layout.split_configs]
    if len(set(dimensions)) != len(dimensions):
        return "two split configs split one dimension"
    for config in layout.split_configs:
        if any(first >= second for first, second in itertools.pairwise((0, *config.split_indices))):
            return f"the indices of split config {config} must ascend from above 0"
    return ""


def check_packing(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that types narrower than a byte, except `pred`, are packed once layouts are final
    (`SubByteNormalization`).
    """
    shape = instruction.shape
    if not facts.layout_sensitive or shape is None:
        return
    for _, leaf in shape.leaves():
        narrow = leaf.element_type.bits in (1, 2, 4) and leaf.element_type.kind is not TypeKind.PREDICATE
        if narrow and leaf.rank and leaf.layout is not None and not leaf.layout.element_size_in_bits:
            bits = leaf.element_type.bits
            yield Problem(
                "V211",
                f"{leaf} stores each element of {bits} bits in a byte",
                Part.SHAPE,
                f"E({bits}) packs them",
            )
            return
