"""L102: a large array whose minor dimension fills few lanes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend, array_bytes, byte_text, written_arrays
from hlotext.ir.values.shape import Shape
from hlotext.lint.rule import Context, Report, Rule


class NarrowMinorDimension(Rule):
    code = "L102"
    name = "narrow-minor-dimension"
    title = "a large array whose minor dimension fills few lanes"
    waste = "held"
    gives_form = True
    is_default = False
    backends = frozenset({Backend.TPU})

    max_size: ClassVar[int] = 16
    """Elements of the minor dimension up to which it is narrow."""
    min_bytes: ClassVar[int] = 1 << 20
    """Allocated bytes of the array from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        seen: set[Shape] = set()
        for instruction in context.graph.sequential_instructions():
            for _, array in written_arrays(instruction):
                if (
                    array in seen or array.layout is None or not array.layout.tiles or array.rank < 2
                ):  # it has no tiles, or fewer than two dimensions
                    continue
                seen.add(array)
                minor = array.dimensions[array.layout.minor_to_major[0]]
                size = array_bytes(array)
                if (
                    size is not None and minor <= self.max_size and size[0] >= self.min_bytes
                ):  # its minor dimension is wide enough, or it is small
                    yield Report(
                        instruction,
                        f"{array} ({byte_text(size[0])}) uses only {minor} of 128 lanes",
                        "make a larger dimension the minor one",
                        size[0] - size[1],
                        str(array),
                    )
