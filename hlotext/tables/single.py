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
    """Creates the table of instructions, with a row per instruction.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("instructions", source)


def operands(source: Source) -> Table:
    """Creates the table of operands, with a row per operand of each instruction.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("operands", source)


def attributes(source: Source) -> Table:
    """Creates the table of attributes, with a row per attribute of each instruction.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("attributes", source)


def collectives(source: Source) -> Table:
    """Creates the table of collectives and transfers, with a row for each, as in `hlotext comm`.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("collectives", source)


def buffers(source: Source) -> Table:
    """Creates the table of buffers, with a row per value of each allocation; empty if memory cannot be assigned.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("buffers", source)


def values(source: Source) -> Table:
    """Creates the table of HLO values, with a row per value; empty if memory cannot be assigned.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("values", source)


def passes(source: Source) -> Table:
    """Creates the table of passes, with a row per step of each compilation in a dump folder.

    Accepts the same sources as `tables_of`, and raises the same errors. Empty for other sources.
    """
    return table("passes", source)


def thunks(source: Source) -> Table:
    """Creates the table of predicted thunks, with a row for each; empty unless for a scheduled GPU or CPU module.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("thunks", source)


def costs(source: Source) -> Table:
    """Creates the table of costs, with the FLOPs and bytes of each instruction over one run of its module.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("costs", source)


def measured(source: Source) -> Table:
    """Creates the table of times in a profiler trace, with a row per operation and device; empty for other sources.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("measured", source)


def times(source: Source) -> Table:
    """Creates the table of minimum times in seconds, with a row per instruction; empty if the chip is unknown.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("times", source)


def findings(source: Source) -> Table:
    """Creates the table of lint findings with the default settings, with a row per finding.

    Accepts the same sources as `tables_of`, and raises the same errors.
    """
    return table("findings", source)
