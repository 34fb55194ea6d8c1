"""One table at a time, by name."""

from __future__ import annotations

from collections.abc import Iterable

import hlotext as hlo
from hlotext.tables.building import Place, table
from hlotext.tables.table import Table

Source = hlo.Module | Place | Iterable[hlo.Module | Place]


def modules(source: Source) -> Table:
    """Table of modules, with a row per text that was read. Takes what `tables_of` takes, and raises as it does."""
    return table("modules", source)


def instructions(source: Source) -> Table:
    """Table of instructions. Takes what `tables_of` takes, and raises as it does."""
    return table("instructions", source)


def operands(source: Source) -> Table:
    """Table of operands. Takes what `tables_of` takes, and raises as it does."""
    return table("operands", source)


def attributes(source: Source) -> Table:
    """Table of attributes in long form. Takes what `tables_of` takes, and raises as it does."""
    return table("attributes", source)


def collectives(source: Source) -> Table:
    """Table of collectives and transfers. Takes what `tables_of` takes, and raises as it does."""
    return table("collectives", source)


def buffers(source: Source) -> Table:
    """Table of buffers, with a row per value of each allocation. Takes what `tables_of` takes, and raises as it does."""
    return table("buffers", source)


def values(source: Source) -> Table:
    """Table of HLO values. Takes what `tables_of` takes, and raises as it does."""
    return table("values", source)


def passes(source: Source) -> Table:
    """Table of executed passes, for a dump folder. Takes what `tables_of` takes, and raises as it does."""
    return table("passes", source)


def thunks(source: Source) -> Table:
    """Table of thunks. Takes what `tables_of` takes, and raises as it does."""
    return table("thunks", source)


def costs(source: Source) -> Table:
    """Table of costs. Takes what `tables_of` takes, and raises as it does."""
    return table("costs", source)


def measured(source: Source) -> Table:
    """Table of times measured in a profiler's trace. Takes what `tables_of` takes, and raises as it does."""
    return table("measured", source)


def times(source: Source) -> Table:
    """Table of lower bounds on time. Takes what `tables_of` takes, and raises as it does."""
    return table("times", source)


def findings(source: Source) -> Table:
    """Table of lint findings. Takes what `tables_of` takes, and raises as it does."""
    return table("findings", source)
