"""One table at a time, by name."""

from __future__ import annotations

from collections.abc import Iterable

import hlotext as hlo
from hlotext.tables.building import Place, table
from hlotext.tables.table import Table

Source = hlo.Module | Place | Iterable[hlo.Module | Place]


def modules(source: Source) -> Table:
    """Creates the table of modules, with a row per module.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("modules", source)


def instructions(source: Source) -> Table:
    """Creates the table of instructions. Accepts the same sources as `tables_of`, and raises the same errors."""
    return table("instructions", source)


def operands(source: Source) -> Table:
    """Creates the table of operands. Accepts the same sources as `tables_of`, and raises the same errors."""
    return table("operands", source)


def attributes(source: Source) -> Table:
    """Creates the table of attributes, with a row per attribute.

    Accepts the same sources as `tables_of`, and raises the same errors."""
    return table("attributes", source)


def collectives(source: Source) -> Table:
    """Creates the table of collectives and transfers.

    Accepts the same sources as `tables_of`, and raises the same errors."""
    return table("collectives", source)


def buffers(source: Source) -> Table:
    """Creates the table of buffers, with a row per value of each allocation.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("buffers", source)


def values(source: Source) -> Table:
    """Creates the table of HLO values. Accepts the same sources as `tables_of`, and raises the same errors."""
    return table("values", source)


def passes(source: Source) -> Table:
    """Creates the table of executed passes, for a dump folder.

    Accepts the same sources as `tables_of`, and raises the same errors."""
    return table("passes", source)


def thunks(source: Source) -> Table:
    """Creates the table of thunks. Accepts the same sources as `tables_of`, and raises the same errors."""
    return table("thunks", source)


def costs(source: Source) -> Table:
    """Creates the table of costs. Accepts the same sources as `tables_of`, and raises the same errors."""
    return table("costs", source)


def measured(source: Source) -> Table:
    """Creates the table of times measured in a profiler trace.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("measured", source)


def times(source: Source) -> Table:
    """Creates the table of lower bounds on time. Accepts the same sources as `tables_of`, and raises the same errors."""
    return table("times", source)


def findings(source: Source) -> Table:
    """Creates the table of lint findings. Accepts the same sources as `tables_of`, and raises the same errors."""
    return table("findings", source)
