"""Input of table builders: one module, its source, and facts that several tables need."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import attrs
import numpy as np

from hlotext.analysis import Backend, ChipChoice, backend_of, chip_or_default
from hlotext.analysis.chips import CHIPS, Chip
from hlotext.cost import Estimate, TpuCost, analyze, estimate
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.memory import Assignment, MemoryModelError, assign
from hlotext.proto import TracedModule
from hlotext.tables.columns import AnyColumn, Array, Numbers, Words, offsets_of, places_in
from hlotext.tables.schema import TABLES
from hlotext.tables.table import Table

_TEXT = 1_000
"""Characters of an instruction that is long."""


@attrs.frozen(eq=False, slots=False)
class Subject:
    """A module for which tables are built."""

    module: Module
    key: str
    """Value of the column `module`."""
    path: str = ""
    """The file that it was read from; empty if there is none."""
    modified: float | None = None
    """When its file was last changed, in seconds since 1970."""
    build: str | None = None
    """The build that the dump is of."""
    version: str | None = None
    """Version of the file."""
    step: Mapping[str, Any] = attrs.field(factory=dict)
    """The columns of `modules` that the names in a dump folder tell: see `step_of`."""
    traced: TracedModule | None = None
    """The same module in the profiler's trace that it was read from."""
    is_ours: bool = False
    """True if the module was read for its tables only, so that it is freed once they are built."""

    @functools.cached_property
    def instructions(self) -> list[Instruction]:
        """All instructions; the id of each is its index."""
        return list(self.module.instructions())

    @property
    def weight(self) -> int:
        """Memory weight in instructions; text counts as the number of instructions with the same memory."""
        source = self.module.source
        return max(len(self.instructions), 0 if source is None else len(source.text) // _TEXT)

    @functools.cached_property
    def ids(self) -> Mapping[Instruction, int]:
        """Id of each instruction."""
        return dict(zip(self.instructions, range(len(self.instructions)), strict=True))

    @functools.cached_property
    def assignment(self) -> Assignment | None:
        """Buffer assignment computed from the text; None if it cannot be computed."""
        try:
            return assign(self.module, chip=self._known_chip)
        except MemoryModelError:
            return None

    @property
    def peak_bytes(self) -> int | None:
        """Peak bytes of main memory; None if unknown, or if no table needed the buffer assignment."""
        assignment: Assignment | None = vars(self).get("assignment")
        return None if assignment is None else assignment.peak().bytes

    @functools.cached_property
    def chip_choice(self) -> ChipChoice | None:
        """The chip named by the dump folder or the text, or else the platform's default one; None if the platform is
        unknown.
        """
        module, named = self.module, self._named_chip
        is_known = bool(module.computations) and (named is not None or backend_of(module) is not None)
        return chip_or_default(module, named=named) if is_known else None

    @property
    def _named_chip(self) -> Chip | None:
        name = self.step.get("chip")
        return CHIPS[name] if name is not None else None

    @property
    def _known_chip(self) -> Chip | None:
        choice = self.chip_choice
        return choice.chip if choice is not None and choice.source == "folder" else None

    @functools.cached_property
    def estimate(self) -> Estimate | None:
        """Lower bounds of time on the chip; None if the chip is unknown or the cost cannot be computed."""
        choice = self.chip_choice
        try:
            return estimate(self.module, choice.chip) if choice is not None else None
        except ValueError:
            return None

    @property
    def least_seconds(self) -> float | None:
        """Lower bound of the run time in seconds; None if unknown, or if no table needed the estimate."""
        found: Estimate | None = vars(self).get("estimate")
        return None if found is None else found.seconds

    @functools.cached_property
    def compiler_cost(self) -> TpuCost | None:
        """The TPU compiler's own cost analysis; None for other platforms."""
        choice = self.chip_choice
        if choice is None or choice.chip.backend is not Backend.TPU:
            return None
        return analyze(self.module).as_tpu(choice.chip)

    @property
    def chip_columns(self) -> dict[str, Any]:
        """Columns of `modules` about the chip, as far as other tables needed them."""
        found = vars(self)
        choice: ChipChoice | None = found.get("chip_choice")
        cost: TpuCost | None = found.get("compiler_cost")
        return {
            "chip": self.step.get("chip") if choice is None else choice.chip.name,
            "chip_candidates": None if choice is None else list(choice.candidates),
            "compiler_flops": None if cost is None else cost.flops,
            "compiler_bytes_accessed": None if cost is None else cost.bytes_accessed,
            "compiler_seconds": None if cost is None else cost.least_seconds,
            "compiler_unknown_calls": None if cost is None else cost.unknown_calls,
        }

    def table(self, name: str, count: int, columns: Mapping[str, AnyColumn]) -> Table:
        """Returns a table of `count` rows of this module, with these columns, `module` and `build`."""
        schema = TABLES[name]
        found: dict[str, AnyColumn] = {
            "module": Words.repeated(self.key, count),
            "build": Words.repeated(self.build, count),
            **columns,
        }
        return Table(schema, {column: found[column] for column in schema.names})


@attrs.frozen(eq=False, slots=False)
class Subjects:
    """Modules whose rows are built together, which saves the constant costs of each column."""

    each: Sequence[Subject]

    @functools.cached_property
    def instructions(self) -> list[Instruction]:
        """All instructions, module by module."""
        return list(chain.from_iterable([one.instructions for one in self.each]))

    @functools.cached_property
    def counts(self) -> Array:
        """Number of instructions of each module."""
        return np.array([len(one.instructions) for one in self.each], np.int64)

    @functools.cached_property
    def ids(self) -> Array:
        """Id of each instruction: its index in its module."""
        return places_in(self.counts)

    @functools.cached_property
    def computations(self) -> list[Computation]:
        """All computations, module by module."""
        return list(chain.from_iterable([one.module.computations for one in self.each]))

    @functools.cached_property
    def sizes(self) -> Array:
        """Number of instructions of each computation."""
        return np.array([len(computation) for computation in self.computations], np.int64)

    @functools.cached_property
    def operand_offsets(self) -> Array:
        """Offset of each instruction's operands among all operands."""
        counts = [len(one.operands) for one in self.instructions]
        return offsets_of(np.array(counts, np.int64))

    @functools.cached_property
    def operand_ids(self) -> Numbers:
        """Ids of all operands, concatenated."""
        found: list[int] = []
        for one in self.each:
            ids = one.ids
            every = chain.from_iterable([instruction.operands for instruction in one.instructions])
            found += [ids.get(operand, -1) for operand in every]
        operands = np.array(found, np.int64)
        missing = operands < 0
        return Numbers(operands, missing if missing.any() else None)

    def table(self, name: str, counts: Array, columns: Mapping[str, AnyColumn]) -> Table:
        """Returns a table with `counts` rows of each module, with these columns, `module` and `build`."""
        schema = TABLES[name]
        rows = np.repeat(np.arange(len(counts)), counts)
        found: dict[str, AnyColumn] = {
            "module": Words.of([one.key for one in self.each]).taken(rows),
            "build": Words.of([one.build for one in self.each]).taken(rows),
            **columns,
        }
        return Table(schema, {column: found[column] for column in schema.names})
