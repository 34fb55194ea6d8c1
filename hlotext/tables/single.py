"""One table at a time, by name."""

from __future__ import annotations

from collections.abc import Iterable

import hlotext as hlo
from hlotext.tables.building import Place, table
from hlotext.tables.table import Table

Source = hlo.Module | Place | Iterable[hlo.Module | Place]


def modules(source: Source) -> Table:
    """The texts that were read of a module, a file or a folder. Raises as `tables_of` does."""
    return table("modules", source)


def instructions(source: Source) -> Table:
    """The instructions of a module, a file or a folder. Raises as `tables_of` does."""
    return table("instructions", source)


def operands(source: Source) -> Table:
    """The operands of a module, a file or a folder. Raises as `tables_of` does."""
    return table("operands", source)


def attributes(source: Source) -> Table:
    """The attributes, in long form of a module, a file or a folder. Raises as `tables_of` does."""
    return table("attributes", source)


def collectives(source: Source) -> Table:
    """The collectives and transfers of a module, a file or a folder. Raises as `tables_of` does."""
    return table("collectives", source)


def buffers(source: Source) -> Table:
    """The allocations, value by value, of a module, a file or a folder. Raises as `tables_of` does."""
    return table("buffers", source)


def values(source: Source) -> Table:
    """The values of a module, a file or a folder. Raises as `tables_of` does."""
    return table("values", source)


def passes(source: Source) -> Table:
    """The passes of a dump folder. Raises as `tables_of` does."""
    return table("passes", source)


def thunks(source: Source) -> Table:
    """The thunks of a module, a file or a folder. Raises as `tables_of` does."""
    return table("thunks", source)


def costs(source: Source) -> Table:
    """The costs of a module, a file or a folder. Raises as `tables_of` does."""
    return table("costs", source)


def measured(source: Source) -> Table:
    """The measured times of a profiler's trace. Raises as `tables_of` does."""
    return table("measured", source)


def times(source: Source) -> Table:
    """The least times of a module, a file or a folder. Raises as `tables_of` does."""
    return table("times", source)


def findings(source: Source) -> Table:
    """The findings of a module, a file or a folder. Raises as `tables_of` does."""
    return table("findings", source)
