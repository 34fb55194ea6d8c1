"""One compilation: a module's way through the compiler, as far as its files show it."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import hlotext as hlo
from hlotext import dumps
from hlotext.analysis.chips import Chip
from hlotext.analysis.chips import chip as chip_named
from hlotext.dumps import sidecar_files
from hlotext.dumps.files import DumpFile, module_name
from hlotext.dumps.kinds import BY_NAME
from hlotext.dumps.names import PROTO
from hlotext.dumps.notes import Note
from hlotext.dumps.sidecar_files import AutotuneResult, FusionStep, HostTransfer, Options, PassRun
from hlotext.dumps.step import Step
from hlotext.dumps.timeline import TimelineEntry, notes, timeline
from hlotext.findings.errors import HloSyntaxError
from hlotext.syntax.source.inputs import InputError
from hlotext.textproto import TextMessage

if TYPE_CHECKING:
    from hlotext.analysis import DeviceMesh, XlaAge
    from hlotext.dumps.causes import Cause
    from hlotext.dumps.collectives import CollectiveCause
    from hlotext.dumps.identity import Birth, Identity, Link
    from hlotext.memory import Assignment
    from hlotext.thunks import Thunks

T = TypeVar("T")
_TPU_KINDS = frozenset(name for name, kind in BY_NAME.items() if kind.platforms == ("tpu",))
_GPU_KINDS = frozenset(name for name, kind in BY_NAME.items() if kind.platforms == ("gpu",))
_PIPELINES = (
    (r"HLO_passes_(through|after)_.*|SubbytePacker_pipeline|dot-library-passes", "cpu"),
    (
        r"annotate-host-compute|nvptx_.*|AMDGPU_.*|latency-hiding-scheduler|async-wrapper|priority-fusion",
        "gpu",
    ),
    (
        r"JF_.*|X64_elimination|Before_X64_rewriter|Main_fusion|xla-partitioner.*|final_scheduler|Phase_[12]_.*",
        "tpu",
    ),
)
"""Pipelines that one compiler alone has."""
_ORDER = {"hlo-before": 0, "hlo-pass": 2, "hlo-buffers": 3, "hlo-final": 4, "hlo-codegen": 6}
_BETWEEN = {"hlo-spmd": 1, "hlo-config": 2}
"""States that per-pass dumps show better, and their place where there are none."""


class Compilation:
    """The compilation of one module. Files are read on access."""

    def __init__(self, number: int, folder: str, files: tuple[DumpFile, ...]) -> None:
        self.number = number
        """Number of the module in its process."""
        self.folder = folder
        """Subfolder that contains its files; empty for the folder itself."""
        self.files = files
        """Files of the compilation, sorted by path."""
        self.earlier: Compilation | None = None
        """The compilation that this one continues, if a pass created a new module with a number of its own; else None."""
        self._notes: list[Note] = []
        self._causes: dict[DeviceMesh | str | None, tuple[CollectiveCause, ...]] = {}

    @functools.cached_property
    def name(self) -> str:
        """Name of the module, from the file names, a module header, or `module_NNNN` if neither has it."""
        names = Counter(file.name.module for file in self.files if file.name.module is not None)
        if names:
            return max(names, key=lambda name: (names[name], name))
        for step in self.steps:
            try:
                found = module_name(step.file.text())
            except InputError:
                continue
            if found is not None:
                return found
        return f"module_{self.number:04d}"

    @functools.cached_property
    def platform(self) -> str | None:
        """`cpu`, `gpu` or `tpu`, from the names of files and pipelines, or None if unknown."""
        for file in self.files:
            suffix = file.name.suffix
            if file.name.state == "hlo-final" and not suffix.startswith("after_"):
                return "cpu" if suffix.startswith("cpu_") else "gpu"
        if any(file.name.has_cl or file.kind in _TPU_KINDS for file in self.files):
            return "tpu"
        if any(file.kind in _GPU_KINDS for file in self.files):
            return "gpu"
        for file in self.files:
            step = file.name.step
            for pipeline, platform in _PIPELINES if step is not None else ():
                if step is not None and re.fullmatch(pipeline, step.pipeline):
                    return platform
        return None

    @functools.cached_property
    def age(self) -> XlaAge:
        """Age of the XLA version, from all files of the compilation. See `age_of` for a single module."""
        return dumps.age.age_of_compilation(self)

    def files_of(self, *kinds: str) -> tuple[DumpFile, ...]:
        """Returns the files of the given kinds."""
        return tuple(file for file in self.files if file.kind in kinds)

    @functools.cached_property
    def protos(self) -> Mapping[str, DumpFile]:
        """Module protos, by the file-name stem that they share with the text files."""
        return {file.name.stem: file for file in self.files if file.kind == PROTO}

    # ---- states

    @functools.cached_property
    def steps(self) -> tuple[Step, ...]:
        """States of the module in order: before optimization, after each dumped pass, and at the end.

        Includes the steps of the compilation that this one continues (`earlier`). A proto is used where there is no
        text. On TPU, the HLO after code generation follows the final HLO. XLA writes some states twice under different
        names (after partitioning and around buffer assignment); the second file is skipped.
        """
        steps = self._own_files()
        if self.earlier is not None:
            steps = [*self.earlier._own_files(), *steps]
        return tuple(Step(self, file, index) for index, file in enumerate(steps))

    def _own_files(self) -> list[DumpFile]:
        """Its files that show a state, in order."""
        texts = {file.name.stem for file in self.files if file.is_hlo}
        states = [
            (file, file.name.state)
            for file in self.files
            if file.kind != PROTO or file.name.stem not in texts  # the same again
        ]
        seen = {state for _, state in states}
        order = _ORDER | ({} if "hlo-pass" in seen else _BETWEEN)
        found = []
        for file, state in states:
            if state not in order:
                continue
            step = file.name.step
            place = order[state]
            if state == "hlo-buffers" and not file.name.suffix.startswith("after_optimizations_before"):
                if "hlo-final" in seen:
                    continue
                place = 4
            found.append(((place, step.number if step is not None else 0, file.name.path), file))
        found.sort(key=lambda pair: pair[0])
        return [file for _, file in found]

    def _end(self, kind: str) -> Step | None:
        return next((step for step in self.steps if step.file.name.state == kind), None)

    @property
    def first(self) -> Step | None:
        """The step before optimization, or None if it was not dumped."""
        return self._end("hlo-before")

    @property
    def last(self) -> Step | None:
        """The step with the final HLO, or None if the compilation ended early."""
        return self._end("hlo-final")

    @property
    def before(self) -> hlo.Module | None:
        """The module before optimization, or None if it was not dumped.

        Raises InputError if the file cannot be read, and HloSyntaxError if it is not valid HLO.
        """
        return None if self.first is None else self.first.module

    @property
    def after(self) -> hlo.Module | None:
        """The module after optimization, or None if the compilation ended early.

        Raises InputError if the file cannot be read, and HloSyntaxError if it is not valid HLO.
        """
        return None if self.last is None else self.last.module

    def timeline(self, stage: str | None = None) -> Iterator[TimelineEntry]:
        """Yields the steps, optionally of one stage only, with their changes and pass times.

        Modules are not kept in memory.
        """
        return timeline(self, stage)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Irregularities found so far, such as a missing file, dumps of two processes, or a damaged file."""
        return (*notes(self), *self._notes)

    # ---- where operations come from

    @functools.cached_property
    def identity(self) -> Identity:
        """Identity of operations over all steps. Files are read once and not kept in memory.

        `births`, `why`, `trace`, `introduced` and `copies` are derived from it. Raises InputError if the dump cannot be
        read, and HloSyntaxError if it does not contain valid HLO.
        """
        return dumps.identity.Identity(self)

    def trace(self, name: str) -> tuple[Link, ...]:
        """Finds the operations before optimization that a final instruction originates from, most likely first.

        For a fusion, the sources of the body operation with the fusion's op_name come first, then those of its results,
        then those of the rest of its body. The confidence of a link is that of its weakest step; see `Link.rule`.

        Returns an empty tuple if unknown. Intermediate files that cannot be read are skipped. Raises LookupError if the
        name is not in the final HLO or if the first or the final HLO is missing, InputError if one of the two cannot be
        read, and HloSyntaxError if it is not valid HLO.
        """
        return self.identity.sources(name)

    def forward(self, name: str) -> tuple[Link, ...]:
        """Finds the final instructions that an instruction before optimization became, most likely first.

        The inverse of `trace`: the `.instruction` of each link is in the final HLO. Raises the same errors as `trace`.
        """
        return self.identity.results(name)

    def introduced(self, name: str) -> Step | None:
        """Returns the step in which an instruction of the final HLO first appears, following renames.

        Returns None if the final HLO has no instruction with this name. Raises InputError if the dump cannot be read,
        and HloSyntaxError if it does not contain valid HLO.
        """
        birth = self.births([name]).get(name.removeprefix("%"))
        return None if birth is None else birth.step

    def births(self, names: Iterable[str]) -> dict[str, Birth]:
        """Returns the step where each operation of the final HLO first appears, and its name there.

        Names that are not in the final HLO are omitted. Raises InputError if the dump cannot be read, and
        HloSyntaxError if it does not contain valid HLO.
        """
        return self.identity.births(names)

    def why(self, name: str) -> Cause:
        """Returns the pass that introduced an instruction of the final HLO, with the cause if the dumps show it.

        Raises LookupError if the name is not in the final HLO, InputError if a file cannot be read, and HloSyntaxError
        if it is not valid HLO.
        """
        return dumps.causes.causes(self, [name])[0]

    def copies(self) -> list[Cause]:
        """Returns the pass and cause of each copy and transpose that the final HLO executes.

        Raises the same errors as `why`.
        """
        return dumps.causes.copies(self)

    def collectives(self, mesh: DeviceMesh | str | None = None) -> tuple[CollectiveCause, ...]:
        """Explains the collectives of the final HLO, and suggests annotations that would avoid them.

        Results are in the order of `analysis.communications(self.after)`. Reads the HLO right before and after
        partitioning, or the first and final HLO if those were not dumped.

        Args:
            mesh: The mesh of the program: a `DeviceMesh`, or text such as `dp=2,tp=4` as for `parse_mesh`. None uses
                the mesh named in the dumps. Without a mesh, axes and PartitionSpecs are not reported.

        Raises:
            LookupError: The compilation has no final HLO.
            ValueError: The mesh is invalid, or does not have the module's number of devices.
            InputError: The final HLO cannot be read.
            HloSyntaxError: The final HLO cannot be parsed.
        """
        if mesh not in self._causes:
            self._causes[mesh] = dumps.collectives.collectives(self, mesh)
        return self._causes[mesh]

    # ---- what other files say

    @functools.cached_property
    def options(self) -> Options | None:
        """Compile options and target device, or None if not dumped."""
        target, config = self.proto("gpu-target-config"), self.proto("module-config")
        debug = self._read("debug-options", sidecar_files.read_options)
        if debug is None and config is not None:
            debug = _debug_options(config)
        if debug is None and target is None and config is None:
            return None
        return Options(debug or {}, target, config)

    @functools.cached_property
    def chip(self) -> Chip | None:
        """The chip that the module was compiled for, from files in the dump, or None if unknown.

        Read from `target_arguments.txt` on TPU, and on GPU from the target config of this compilation or of the one it
        continues. A chip unknown to this release is added to `notes`.
        """
        if self.earlier is not None and not self.files_of("target-arguments", "gpu-target-config"):
            return self.earlier.chip
        names: list[str] = []
        arguments = self.proto("target-arguments")
        if arguments is not None:
            topology = arguments.message("tpu_topology_args")
            names.append(f"{topology.text('version') or ''} {topology.text('variant') or ''}".strip())
        target = self.proto("gpu-target-config")
        if target is not None:
            names.append(target.message("gpu_device_info").text("name") or "")
            names.append(target.text("device_description_str") or "")
        for name in names:
            try:
                return chip_named(name)
            except ValueError:
                continue
        if any(names):
            self._notes.append(Note("unknown-chip", f"unknown chip {' or '.join(filter(None, names))}"))
        return None

    @functools.cached_property
    def passes(self) -> tuple[PassRun, ...]:
        """All executed passes with their times, whether dumped or not; empty without `metadata.textproto`."""
        metadata = self.proto("pass-metadata")
        return () if metadata is None else sidecar_files.pass_runs(metadata)

    @functools.cached_property
    def fusion_steps(self) -> tuple[FusionStep, ...]:
        """Decisions of GPU's priority fusion, in order; empty if not dumped."""
        dump = self.proto("priority-fusion")
        return () if dump is None else tuple(sidecar_files.fusion_steps(dump))

    def fusion_decisions(self, kind: str, name: str) -> Sequence[FusionStep]:
        """Returns the priority-fusion decisions of one kind about one instruction; empty if there are none.

        Args:
            kind: `fusion`, `update_priority` or `producer_ineligible`.
            name: Name of the producer, or for `fusion`, of the new fusion.
        """
        return self._decisions.get((kind, name), ())

    @functools.cached_property
    def _decisions(self) -> dict[tuple[str, str], list[FusionStep]]:
        found: dict[tuple[str, str], list[FusionStep]] = {}
        for step in self.fusion_steps:
            name = (step.fusion or "") if step.kind == "fusion" else step.producer
            found.setdefault((step.kind, name), []).append(step)
        return found

    @functools.cached_property
    def autotune_results(self) -> tuple[AutotuneResult, ...]:
        """Autotuning results; empty if there was no device, or if they were not dumped."""
        results = self.proto("autotune-results")
        return () if results is None else sidecar_files.autotune_results(results)

    @functools.cached_property
    def host_transfers(self) -> tuple[HostTransfer, ...]:
        """Transfers between a TPU and its host; empty if there are none, or if they were not dumped."""
        transfers = self.proto("host-transfers")
        return () if transfers is None else sidecar_files.host_transfers(transfers)

    @functools.cached_property
    def thunks(self) -> Thunks | None:
        """The dumped thunk sequence, after XLA's thunk passes if available, or None if none was dumped or can be read.

        Unreadable files are reported in `notes`.
        """
        for kind in ("thunk-sequence-after", "thunk-sequence"):
            for file in self.files_of(kind):
                try:
                    return hlo.thunks.parse(file.text(), file.path)
                except (InputError, hlo.thunks.ThunkError) as error:
                    self._notes.append(Note("unreadable", str(error), file.path))
        return None

    @functools.cached_property
    def memory(self) -> Assignment | None:
        """Buffer assignment of the final HLO as read from XLA's files, or None if there are none or they are unreadable.

        Unreadable files are reported in `notes`. Fields that the files lack (buffers, sizes of individual values) are None;
        `assign(compilation.after)` computes them.
        """
        texts = {}
        for kind, suffix in _MEMORY_FILES.items():
            text = self._read(kind, str)
            if text is not None:
                texts[suffix] = text
        if not texts:
            return None
        try:
            return hlo.memory.read(texts, self.after)
        except (HloSyntaxError, InputError, hlo.memory.MemoryModelError) as error:
            self._notes.append(
                Note("unreadable", f"memory files: {error}", self.last.path if self.last else "")
            )
            return None

    def pass_run(self, step: Step) -> PassRun | None:
        """Returns the pass execution that wrote a step's file, or None if it is not in the metadata."""
        return self._runs.get(step.file.name.path.rsplit("/", 1)[-1])

    @functools.cached_property
    def _runs(self) -> dict[str, PassRun]:
        return {name: run for run in self.passes for name in run.dumps}

    def _read(self, kind: str, read: Callable[[str], T]) -> T | None:
        """Result of a reader for the first file of a kind; None without one, or, with a note, if it cannot be read."""
        for file in self.files_of(kind):
            try:
                return read(file.text())
            except InputError as error:
                self._notes.append(Note("unreadable", str(error), file.path))
        return None

    def proto(self, kind: str) -> TextMessage | None:
        """Returns the first file of a kind, parsed as a text-format proto, or None if there is no such file.

        A truncated file is reported in `notes`.
        """

        def read(text: str) -> TextMessage:
            message, problem = sidecar_files.read_proto(text)
            if problem:
                self._notes.append(
                    Note(
                        "cut-off", f"the {kind} file ends or breaks at {problem}", self.files_of(kind)[0].path
                    )
                )
            return message

        return self._read(kind, read)

    def __repr__(self) -> str:
        return f"<Compilation {self.number} {self.name} with {len(self.files)} files>"


_MEMORY_FILES = {
    "buffer-assignment": "-buffer-assignment.txt",
    "buffer-values": "-buffer-assignment-values.txt",
    "live-range": "-live-range.txt",
    "memory-usage": "-memory-usage-report.txt",
}
"""The kinds of the files that tell of memory, and how their names end."""


def _debug_options(config: TextMessage) -> dict[str, tuple[str, ...]]:
    """The debug options of a module's configuration, which holds those with default values too."""
    options = config.message("debug_options")
    return {
        name: tuple(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
        for name, values in options.items()
        if not any(isinstance(value, TextMessage) for value in values)
    }
