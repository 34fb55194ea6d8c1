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
