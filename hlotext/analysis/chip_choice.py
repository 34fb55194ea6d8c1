"""The chip whose rules and rates apply to a module: given, else named by the dump, else derived from the text."""

from __future__ import annotations

import re
from typing import Literal

import attrs

from hlotext.analysis.backend import Backend, backend_of
from hlotext.analysis.census import distinct_shapes
from hlotext.analysis.chips import CHIPS, Chip
from hlotext.analysis.facts import fact
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape

ASSUMED_TPU = "v5e"
"""The chip that is assumed where it may be this one and nothing names another."""

DEFAULT_CHIPS = {Backend.GPU: "h100", Backend.TPU: ASSUMED_TPU, Backend.CPU: "cpu"}
"""The chip whose figures apply where nothing names one, by platform."""

ChipSource = Literal["given", "folder", "text", "assumed"]


@attrs.frozen
class ChipChoice:
    """A chip and the reason for choosing it, from `choose_chip`."""

    chip: Chip
    source: ChipSource
    candidates: tuple[str, ...]
    """Names of the chips that fit the module; a single name if the chip is known."""

    @property
    def is_known(self) -> bool:
        """False if the chip is only assumed."""
        return self.source != "assumed"

    @property
    def text(self) -> str:
        """The chip and the reason for choosing it, or all candidates if the chip is only assumed."""
        if self.source == "assumed":
            return f"one of {', '.join(self.candidates)}; assuming {self.chip.name}"
        return str(self)

    def __str__(self) -> str:
        if self.source == "assumed":
            return f"{self.text} (set --chip)"
        if self.source == "text":
            return f"{self.chip.name}, inferred from the text"
        return self.chip.name


def other_platform(module: Module, chip: Chip) -> str:
    """Returns a sentence about a module that was compiled for another platform than the chip's; empty if it was not."""
    own = backend_of(module)
    if own is None or own is chip.backend:
        return ""
    fitting = ", ".join(one.name for one in CHIPS.values() if one.backend is own)
    return (
        f"the module was compiled for {own.name}, but {chip.name} is a {chip.backend.name}, so this is only a rough "
        f"comparison; for {own.name}, set --chip ({fitting})"
    )


def choose_chip(
    module: Module, given: Chip | None = None, named: Chip | None = None, backend: Backend | None = None
) -> ChipChoice | None:
    """Chooses the chip of a module: `given`, or `named`, or for TPU modules a chip that fits the text.

    Args:
        module: The module.
        given: The chip set by the user.
        named: The chip named by the dump folder. Ignored if its platform is not the module's.
        backend: The platform, if it cannot be determined from the module text.

    Returns:
        The chip and the reason, or None if the chip is unknown and the platform is not TPU.
    """
    if given is not None:
        return ChipChoice(given, "given", (given.name,))
    platform = backend or backend_of(module)
    if named is not None and platform in (None, named.backend):
        return ChipChoice(named, "folder", (named.name,))
    if platform is not Backend.TPU:
        return None
    candidates = tpu_candidates(module)
    if len(candidates) == 1:
        return ChipChoice(CHIPS[candidates[0]], "text", candidates)
    return ChipChoice(
        CHIPS[ASSUMED_TPU if ASSUMED_TPU in candidates else candidates[0]], "assumed", candidates
    )


def chip_or_default(
    module: Module, given: Chip | None = None, named: Chip | None = None, backend: Backend | None = None
) -> ChipChoice:
    """Chooses a chip as `choose_chip` does, falling back to the platform's default chip.

    If the platform is unknown too, the default is TPU v5e. The arguments are those of `choose_chip`.
    """
    choice = choose_chip(module, given, named, backend)
    if choice is not None:
        return choice
    platform = backend or backend_of(module)
    candidates = tuple(name for name, row in CHIPS.items() if platform in (None, row.backend))
    return ChipChoice(CHIPS[DEFAULT_CHIPS[platform or Backend.TPU]], "assumed", candidates)


_RESERVED = re.compile(r'"scoped_memory_configs":\s*\[\s*\{')
_WIDE_TILE = (16, 128)


@fact
def tpu_candidates(module: Module) -> tuple[str, ...]:
    """Returns the names of the TPUs that a module may be compiled for, by memory spaces, tiles and reserved memory in
    its text.

    Inferred from the output of libtpu 0.0.42.1 and 0.0.52 for seven chips. Before optimization, all TPUs are
    candidates.
    """
    marks = _marks(module)
    if "v4" in marks:
        return ("v4",)
    if "tpu7x" in marks:
        return ("tpu7x",)
    found = [name for name, chip in CHIPS.items() if chip.backend is Backend.TPU]
    if module.is_scheduled:
        found.remove("tpu7x")
    if "split" in marks:
        return ("v5p",)
    if "fast" in marks:
        found = [name for name in found if CHIPS[name].fast_memory_space == 1]
    if "sparse" in marks:
        found = [name for name in found if name in _SPARSE_CORES]
    return tuple(found)


_SPARSE_CORES = ("v5p", "v6e", "tpu7x")


def _marks(module: Module) -> set[str]:
    found: set[str] = set()
    for shape in distinct_shapes(module):
        for leaf in (part for _, part in shape.leaves()) if shape.is_tuple else (shape,):
            _mark_shape(leaf, found)
    if any(one.execution_thread == "sparsecore" for one in module.computations):
        found.add("sparse")
    for parameter in module.entry.parameters if module.computations else ():
        config = parameter.backend_config
        if config is not None and _RESERVED.search(config.text):
            found.add("tpu7x")
    return found


def _mark_shape(shape: Shape, found: set[str]) -> None:
    layout = shape.layout if shape.is_array else None
    if layout is None:
        return
    if layout.memory_space == 3:
        found.add("v4")
    elif layout.memory_space == 1:
        found.add("fast")
    if layout.split_configs:
        found.add("split")
    if any(tuple(tile.dimensions) == _WIDE_TILE for tile in layout.tiles):
        found.add("tpu7x")
