"""Options of the checks, and facts of the module that checks of single instructions need."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hlotext.ir.nodes.module import Module
from hlotext.ir.values.frames import StackFrameIndex
from hlotext.ir.values.shape import Shape


@attrs.frozen
class VerifierOptions:
    """Verifier options and module-level facts that apply to all instructions of a module (`HloVerifierOpts`)."""

    layout_sensitive: bool
    """Layouts count: values are passed on without changing theirs (`HloVerifierOpts::layout_sensitive`)."""
    mixed_precision: bool
    """Real float types may differ where values are computed (`HloVerifierOpts::allow_mixed_precision`)."""
    replica_count: int = 1
    num_partitions: int = 1
    stack_frames: StackFrameIndex = attrs.field(factory=StackFrameIndex)
    in_fusion: bool = False
    """True for the instructions of a fusion's computation."""

    key: tuple[object, ...] = attrs.field(init=False, repr=False, eq=False)
    """Cache key of these facts, without the rows of tables."""

    @key.default
    def _key(self) -> tuple[object, ...]:
        return (
            self.layout_sensitive, self.mixed_precision, self.replica_count, self.num_partitions, self.in_fusion,
            len(self.stack_frames.stack_frames), self.stack_frames.is_empty,
        )  # fmt: skip


def facts_of(
    module: Module, shapes: Iterable[Shape], layout_sensitive: bool | None, mixed_precision: bool | None
) -> VerifierOptions:
    """Returns the options for a module whose instructions have these shapes; None chooses the default for the module.

    By default, checks are layout-sensitive for scheduled modules, whose layouts are final, unless the entry is a pasted
    op line. Precisions may mix if layouts are tiled, since only the TPU compiler mixes them, and only it tiles.
    """
    if layout_sensitive is None:
        layout_sensitive = module.is_scheduled and not (module._computations and module.entry.is_sugared)
    if mixed_precision is None:
        mixed_precision = any(
            leaf.layout is not None and leaf.layout.tiles for shape in shapes for _, leaf in shape.leaves()
        )
    return VerifierOptions(
        layout_sensitive,
        mixed_precision,
        _count(module, "replica_count"),
        _count(module, "num_partitions"),
        module.stack_frames,
    )


def _count(module: Module, name: str) -> int:
    """A number in the header; 1 where it is missing or none."""
    value = module._attributes.get(name)
    return value if isinstance(value, int) else 1
