"""Subject of a report: one module, with its compilation if there is a dump folder. Facts are computed once."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping

import attrs

import hlotext as hlo
from hlotext import dumps, lint, memory
from hlotext.analysis import Backend, ChipChoice, DeviceMesh, FoundMesh, backend_of, choose_chip
from hlotext.analysis.chips import Chip
from hlotext.analysis.chips import chip as chip_named
from hlotext.cost import Analysis, Estimate, Traffic, analyze, estimate, traffic
from hlotext.dumps.storage import is_archive
from hlotext.dumps.texts import compilation_beside, compilation_of, no_module
from hlotext.lint.price import chip_row
from hlotext.proto.traces import TracedModule
from hlotext.semantics.assumed_entry import missing_entry
from hlotext.view.carried import Carried, carried
from hlotext.view.report.time_parts import TimeParts, time_parts


@attrs.define(eq=False, slots=False)
class ReportInput:
    """A module for a report, with everything that the report computes from it on access."""

    label: str
    """The file or folder as given."""
    module: hlo.Module
    compilation: dumps.Compilation | None = None
    """The compilation, or None if a file was given."""
    path: str | None = None
    """Path of the module's file, or None if there is none. XLA's memory files may be next to it."""
    given_chip: Chip | None = None
    given_platform: str | None = None
    mesh: DeviceMesh | None = None
    notes: tuple[str, ...] = ()
    source: str | None = None
    """Folder with the program's source files, or None if not given."""
    traced: TracedModule | None = None
    """The module in a profiler's trace, or None if there is none."""

    @functools.cached_property
    def platform(self) -> str | None:
        """`cpu`, `gpu` or `tpu`, or None if unknown."""
        found = backend_of(self.module)
        if self.given_platform is not None:
            return self.given_platform
        if found is not None:
            return found.value
        return self.compilation.platform if self.compilation is not None else None

    @functools.cached_property
    def chip_choice(self) -> ChipChoice | None:
        """The given chip, the chip named by the dump folder, or one that fits the module, or None if unknown."""
        own = self.compilation or (compilation_beside(self.path) if self.path is not None else None)
        backend = Backend(self.platform) if self.platform is not None else None
        return choose_chip(self.module, self.given_chip, own.chip if own is not None else None, backend)

    @property
    def chip(self) -> Chip | None:
        """The chip of `chip_choice`, or None if unknown."""
        return self.chip_choice.chip if self.chip_choice is not None else None

    @functools.cached_property
    def computed(self) -> memory.Assignment:
        """Computed buffer assignment. Raises MemoryModelError if it cannot be computed."""
        choice = self.chip_choice
        own = choice.chip if choice is not None and choice.source in ("given", "folder") else None
        # A chip of another platform says nothing of this module's memory.
        fits = own is not None and own.backend.value == self.platform
        return memory.assign(self.module, self.platform, own if fits else None)

    @functools.cached_property
    def memory(self) -> memory.Assignment:
        """Buffer assignment from XLA's files if usable, otherwise computed. Raises MemoryModelError if neither works."""
        found, _ = memory.load_beside(self.path)
        return memory.joined(found, self.computed) if found is not None else self.computed

    @functools.cached_property
    def cost(self) -> Analysis:
        """Cost analysis of the module."""
        return analyze(self.module)

    @functools.cached_property
    def estimate(self) -> Estimate | None:
        """Lower bound on the run time, or None if the chip is unknown."""
        if self.chip is None:
            return None
        mesh = self.named_mesh
        return estimate(self.module, self.chip, mesh.mesh if isinstance(mesh, FoundMesh) else mesh)

    @functools.cached_property
    def by_default(self) -> tuple[Estimate, str] | None:
        """The estimate for the platform's default chip, with the chip's name.

        None if the module's own chip is known, which `estimate` uses, and if the platform is unknown.
        """
        if self.chip is not None or self.platform is None:
            return None
        row, name = chip_row(self.module, Backend(self.platform))
        return estimate(self.module, row), name

    @functools.cached_property
    def traffic(self) -> Traffic:
        """Communication traffic of the module, by the axes of `named_mesh`."""
        return traffic(self.module, self.named_mesh)

    @functools.cached_property
    def time_parts(self) -> TimeParts:
        """Parts of the minimum time. Raises LookupError if the chip is unknown."""
        if self.estimate is None:
            raise LookupError("the module does not name its chip")
        return time_parts(self.estimate)

    @functools.cached_property
    def carried(self) -> Mapping[hlo.Instruction, Carried]:
        """Collectives by the operations that implement them."""
        return carried(self.module, self.traffic)

    @functools.cached_property
    def named_mesh(self) -> DeviceMesh | FoundMesh | None:
        """The given mesh, or the mesh named by the program before optimization, or None if there is neither."""
        own = self.own_compilation
        if self.mesh is None and own is not None:
            return dumps.collectives.named_mesh(own, self.module)
        return self.mesh

    @functools.cached_property
    def own_compilation(self) -> dumps.Compilation | None:
        """The compilation whose final HLO the module is, or None if there is none."""
        return self.compilation or (compilation_of(self.path) if self.path is not None else None)

    @functools.cached_property
    def findings(self) -> list[lint.Finding]:
        """Findings of the default rules, with times for the given chip."""
        given = self.given_chip
        own = given.name if given is not None and given.backend.value == self.platform else ""
        return lint.run(self.module, lint.Config(chip=own), compilation=self.own_compilation)

    @functools.cached_property
    def causes(self) -> tuple[dumps.CollectiveCause, ...]:
        """Causes of the collectives that can be determined from the dump folder."""
        return dumps.collectives.of_module(self.module, self.own_compilation, self.mesh)


def report_input(
    path: str | os.PathLike[str],
    *,
    module: str | None = None,
    chip: str | Chip | None = None,
    platform: str | None = None,
    mesh: DeviceMesh | None = None,
) -> ReportInput:
    """Loads the input of a report from a module's file, or from a dump folder or archive.

    Args:
        path: The file or folder.
        module: Name of the compilation in a folder. None uses the compilation with the largest final HLO, with a note
            in `notes` if there are several.
        chip: The chip. None (the default) detects it.
        platform: `cpu`, `gpu` or `tpu`. None (the default) detects it.
        mesh: The mesh; None uses the module's own.

    Raises:
        InputError: The path cannot be read.
        HloSyntaxError: The input is not valid HLO.
        LookupError: The folder has no such module, or no module at all, or `module` is given for a single file.
        ValueError: The chip is unknown.
    """
    place = os.fspath(path)
    known = chip_named(chip) if isinstance(chip, str) else chip
    if not (os.path.isdir(place) or (os.path.exists(place) and is_archive(place))):
        if module is not None:
            raise LookupError(f"{place} is one module: --module needs a folder")
        real = None if place == "-" else place
        whole = hlo.load(place, only=True)
        if missing := missing_entry(whole):
            raise hlo.InputError(f"{place}: {missing}")
        return ReportInput(place, whole, None, real, known, platform, mesh)
    folder = dumps.open(place)
    if module is not None:
        chosen = folder[int(module) if module.isdecimal() else module]
        notes: tuple[str, ...] = ()
    else:
        chosen, notes = _largest(place, folder)
    step = chosen.last or (chosen.steps[-1] if chosen.steps else None)
    if step is None:
        raise LookupError(f"{place} has no text of module {chosen.name}")
    real = step.path if step.file.archive is None else None
    return ReportInput(place, step.module, chosen, real, known, platform, mesh, notes)


def _largest(place: str, folder: dumps.DumpFolder) -> tuple[dumps.Compilation, tuple[str, ...]]:
    sized = list(_sized(folder))
    if not sized:
        raise no_module(place)
    chosen = max(sized, key=lambda row: row[0])[1]
    if len(sized) == 1:
        return chosen, ()
    return chosen, (f"the largest of {len(sized)} compilations in the folder; `--module` selects another.",)


def _sized(folder: dumps.DumpFolder) -> Iterator[tuple[int, dumps.Compilation]]:
    for one in folder.compilations:
        step = one.last or (one.steps[-1] if one.steps else None)
        if step is not None:
            yield step.file.size, one
