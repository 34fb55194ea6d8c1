"""One state of a module on its way through the compiler."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import hlotext as hlo
from hlotext import dumps
from hlotext.dumps import identity
from hlotext.dumps.files import DumpFile
from hlotext.dumps.stages import stages

if TYPE_CHECKING:
    from hlotext.dumps.changes import Changes
    from hlotext.dumps.compilation import Compilation

UNKNOWN = "unknown"
"""The stage of a pass that no row of the table knows."""


class Step:
    """The module as dumped before or after optimization, or after one pass. Read on access."""

    def __init__(self, compilation: Compilation, file: DumpFile, index: int) -> None:
        self.compilation = compilation
        self.file = file
        self.index = index
        """Index among the compilation's steps, from 0."""
        step = file.name.step
        self.number: int | None = None if step is None else step.number
        """Number in the file's name, which counts the dumps of a module; None for the first and final modules."""
        self.pipeline: str = "" if step is None else step.pipeline
        """Name of the pipeline, or of the enclosing pass; empty for the first and final modules."""
        self.name: str = (
            file.name.suffix.removesuffix(".txt").removesuffix(".hlo.pb") if step is None else step.name
        )
        """Name of the pass that had just run; for the first and final modules, that of the file:
        `before_optimizations`.
        """
        self.next_pass: str | None = None if step is None else step.next
        """Name of the next pass of the pipeline, whether or not it ran; None if the file name does not state it."""

    @property
    def path(self) -> str:
        """Path of the file; see `DumpFile.path`."""
        return self.file.path

    @property
    def is_pass(self) -> bool:
        """True for the dump of a pass or of a pipeline's start; False for the first and the final HLO."""
        return self.number is not None

    @property
    def stage(self) -> str:
        """Name of the compilation stage (`stages`); `unknown` for passes that are not in the table."""
        if self.number is None:
            if self.file.name.state == "hlo-final" and self.compilation.platform == "tpu":
                return "memory"  # what libtpu does behind its last pass is to place arrays
            found = stages.of_kind(self.file.name.state)
        else:
            found = stages.of(self.pipeline, self.name)
        return UNKNOWN if found is None else found.name

    @functools.cached_property
    def module(self) -> hlo.Module:
        """The module, read on first access.

        Raises InputError if the file cannot be read, and HloSyntaxError if it is not valid HLO.
        """
        return self.file.load()

    @functools.cached_property
    def changes(self) -> Changes:
        """Changes since the previous step; empty for the first step. Only computations whose text differs are compared.

        Raises InputError if a file cannot be read, and HloSyntaxError if it is not valid HLO.
        """
        if not self.index:
            return dumps.changes.Changes(is_same_text=True)
        step = self.compilation.steps[self.index - 1]
        old = identity.state_of(step, identity.usual_form(step.file.text()))
        new = identity.state_of(self, identity.usual_form(self.file.text()), old)
        return dumps.changes.changes(old, new, self.name)

    @functools.cached_property
    def gone(self) -> Mapping[tuple[str, object], Sequence[str]]:
        """Operations that disappear in this step, as `OPCODE NAME`, by op_name and stack frame id.

        Operations without metadata are omitted. Empty for the first step. Raises InputError if a file cannot be read,
        and HloSyntaxError if it is not valid HLO.
        """
        found: dict[tuple[str, object], list[str]] = {}
        if self.index:
            now = {one.name for one in self.module.instructions()}
            for one in self.compilation.steps[self.index - 1].module.instructions():
                if one.name not in now and (known := one.metadata) is not None:
                    place = known.op_name, known.stack_frame_id
                    found.setdefault(place, []).append(f"{one.opcode} {one.name}")
        return found

    def release(self) -> None:
        """Frees the module. It is read again on the next access."""
        self.__dict__.pop("module", None)

    def __repr__(self) -> str:
        return f"<Step {self.index} {self.pipeline}{'/' if self.pipeline else ''}{self.name}>"
