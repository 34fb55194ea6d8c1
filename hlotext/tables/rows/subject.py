"""What tables are made of: one module, where it was read from, and what several tables need."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from itertools import chain
from typing import Any

import attrs
import numpy as np

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.memory import Assignment, MemoryModelError, assign
from hlotext.tables.columns import AnyColumn, Array, Numbers, Words, offsets_of
from hlotext.tables.schema import TABLES
from hlotext.tables.table import Table


@attrs.frozen(eq=False, slots=False)
class Subject:
    """One module that tables are made of."""

    module: Module
    key: str
    """What the column `module` holds."""
    path: str = ""
    """The file that it was read from; empty where there is none."""
    modified: float | None = None
    """When its file was last changed, in seconds since 1970."""
    build: str | None = None
    """The build that the dump is of."""
    version: str | None = None
    """What changes when the file does."""
    step: Mapping[str, Any] = attrs.field(factory=dict)
    """The columns of `modules` that the names in a dump folder tell: see `step_of`."""

    @functools.cached_property
    def instructions(self) -> list[Instruction]:
        """All instructions; the place of each is its id."""
        return list(self.module.instructions())

    @functools.cached_property
    def ids(self) -> Mapping[Instruction, int]:
        """The id of each."""
        return dict(zip(self.instructions, range(len(self.instructions)), strict=True))

    @functools.cached_property
    def assignment(self) -> Assignment | None:
        """The memory of the module, computed from its text; None where it cannot be told."""
        try:
            return assign(self.module)
        except MemoryModelError:
            return None

    @property
    def peak_bytes(self) -> int | None:
        """The peak of the main memory; None where it cannot be told, and where no table has asked for the memory."""
        assignment: Assignment | None = vars(self).get("assignment")
        return None if assignment is None else assignment.peak().bytes

    @functools.cached_property
    def sizes(self) -> Array:
        """How many instructions each computation has."""
        return np.array([len(computation) for computation in self.module.computations], np.int64)

    @functools.cached_property
    def operand_offsets(self) -> Array:
        """Where the operands of each instruction begin among all operands."""
        counts = (len(one.operands) for one in self.instructions)
        return offsets_of(np.fromiter(counts, np.int64, len(self.instructions)))

    @functools.cached_property
    def operand_ids(self) -> Numbers:
        """The ids of all operands, behind each other."""
        every = chain.from_iterable([one.operands for one in self.instructions])
        ids = self.ids
        found = np.fromiter((ids.get(one, -1) for one in every), np.int64, int(self.operand_offsets[-1]))
        missing = found < 0
        return Numbers(found, missing if missing.any() else None)

    def table(self, name: str, count: int, columns: Mapping[str, AnyColumn]) -> Table:
        """A table of so many rows of this module: these columns and `module`."""
        schema = TABLES[name]
        found: dict[str, AnyColumn] = {"module": Words.repeated(self.key, count), **columns}
        return Table(schema, {column: found[column] for column in schema.names})
