"""Contents of an executable, from a dump folder: data, thunks, kernels, options, and missing parts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from hlotext import memory, thunks
from hlotext.dumps import Compilation, DumpFile
from hlotext.findings.errors import HloSyntaxError, brief
from hlotext.syntax.source.inputs import InputError

_ENTRY = re.compile(r"^\s*(?:\.visible\s+)?\.entry\s+([\w$.]+)\s*\(", re.MULTILINE)
"""The beginning of a kernel in PTX."""
_KINDS_OF_CODE = ("ptx", "object", "llvm-with-opt", "llvm-no-opt")


@attrs.frozen(kw_only=True)
class ExecutablePart:
    """A part of an executable, with its size, or the reason why it is missing."""

    name: str
    """Name of the part.

    `program`, `constants`, `arguments`, `outputs`, `temporaries`, `thunks`, `command buffers`, `kernels`, `options` or
    `device`.
    """
    count: int | None = None
    bytes: int | None = None
    """Device bytes for data, file bytes for code, or None if not applicable or unknown."""
    detail: str = ""
    source: str = ""
    """Name of the source file, or "computed"."""
    missing: str = ""
    """Reason why the part is missing, and the option or file that would provide it; empty if present."""


@attrs.frozen(kw_only=True)
class Kernel:
    """A compiled kernel, and the thunks that launch it."""

    name: str
    file: str
    """Path of the PTX file in the folder."""
    bytes: int
    """Size of the file."""
    launches: tuple[thunks.Thunk, ...]
    """The thunks that launch the kernel; empty if none do."""


@attrs.frozen(kw_only=True)
class Executable:
    """The parts of a compiled executable that a dump shows, created by `executable`."""

    name: str
    platform: str | None
    parts: tuple[ExecutablePart, ...]
    kernels: tuple[Kernel, ...] = ()
    """The kernels; GPU only, and empty if the dump has no PTX."""

    def part(self, name: str) -> ExecutablePart | None:
        """Returns the part with this name, or None if there is none."""
        return next((part for part in self.parts if part.name == name), None)


def executable(compilation: Compilation) -> Executable:
    """Collects the parts of a compilation's executable from a dump folder.

    Missing parts have `missing` set.
    """
    tree = _thunks(compilation)
    kernels = tuple(_kernels(compilation, tree))
    parts = [_program(compilation)]
    parts += _data(compilation)
    parts += _execution(compilation, tree)
    parts.append(_code(compilation, kernels))
    parts += _conditions(compilation)
    return Executable(
        name=compilation.name, platform=compilation.platform, parts=tuple(parts), kernels=kernels
    )


def _program(compilation: Compilation) -> ExecutablePart:
    try:
        module = compilation.after
    except (InputError, HloSyntaxError) as error:
        return ExecutablePart(name="program", missing=brief(error)[:200])
    if module is None:
        return ExecutablePart(
            name="program", missing="no final HLO: the compilation failed, or the dump is incomplete"
        )
    count = sum(1 for _ in module.instructions())
    detail = f"{len(module.computations):,} computations"
    last = compilation.last
    return ExecutablePart(
        name="program", count=count, detail=detail, source=last.file.path if last is not None else ""
    )


def _data(compilation: Compilation) -> Iterator[ExecutablePart]:
    """Constants, arguments, outputs and temporaries, as they follow from the text."""
    try:
        module = compilation.after
        found = memory.assign(module, platform=compilation.platform) if module is not None else None
    except (ValueError, InputError, HloSyntaxError) as error:
        yield ExecutablePart(name="buffers", missing=brief(error)[:200])
        return
    if found is None:
        yield ExecutablePart(name="buffers", missing="no scheduled text")
        return
    groups: dict[str, list[int]] = {"constants": [], "arguments": [], "outputs": [], "temporaries": []}
    for allocation in found.allocations:
        if allocation.is_constant:
            groups["constants"].append(allocation.bytes)
        elif allocation.is_parameter:
            groups["arguments"].append(allocation.bytes)
        elif allocation.maybe_live_out:
            groups["outputs"].append(allocation.bytes)
        elif not allocation.is_thread_local:
            groups["temporaries"].append(allocation.bytes)
    for name, sizes in groups.items():
        yield ExecutablePart(
            name=name, count=len(sizes), bytes=sum(sizes), detail="allocations", source="computed"
        )


def _thunks(compilation: Compilation) -> thunks.Thunks | None:
    """XLA's list after the passes, else before, else the prediction."""
    if compilation.thunks is not None:
        return compilation.thunks
    try:
        module = compilation.after
        if module is None or compilation.platform == "tpu":
            return None
        predicted = thunks.predict(module, compilation.options, platform=compilation.platform)
        return predicted.with_command_buffers()
    except (ValueError, InputError, HloSyntaxError):
        return None


def _execution(compilation: Compilation, tree: thunks.Thunks | None) -> Iterator[ExecutablePart]:
    if tree is None:
        why = (
            "TPU programs have none"
            if compilation.platform == "tpu"
            else "neither an XLA thunk list nor the final HLO"
        )
        yield ExecutablePart(name="thunks", missing=why)
        return
    counts = tree.counts()
    detail = ", ".join(f"{count} {kind}" for kind, count in list(counts.items())[:3])
    source = "computed" if tree.is_predicted else "thunk_sequence"
    captured = counts.get("kCommandBuffer", 0)
    yield ExecutablePart(name="thunks", count=sum(counts.values()) - captured, detail=detail, source=source)
    if tree.platform == "gpu":
        yield ExecutablePart(name="command buffers", count=captured, source=source)


def _kernels(compilation: Compilation, tree: thunks.Thunks | None) -> Iterator[Kernel]:
    launches: dict[str, list[thunks.Thunk]] = {}
    for thunk in tree.walk() if tree is not None else ():
        launch = thunk.facts.get("launch")
        if isinstance(launch, thunks.Launch):
            launches.setdefault(launch.kernel, []).append(thunk)
    for file in compilation.files_of("ptx"):
        try:
            text = file.text()
        except InputError:
            continue
        for name in _ENTRY.findall(text):
            found = tuple(launches.get(name, ()))
            yield Kernel(name=name, file=file.path, bytes=_size(file), launches=found)


def _size(file: DumpFile) -> int:
    try:
        return file.size
    except (OSError, InputError):
        return 0


def _code(compilation: Compilation, kernels: tuple[Kernel, ...]) -> ExecutablePart:
    for kind in _KINDS_OF_CODE:
        files = compilation.files_of(kind)
        if files:
            detail = f"{kind} of {len({kernel.name for kernel in kernels}):,} kernels" if kernels else kind
            return ExecutablePart(
                name="kernels",
                count=len(kernels) or len(files),
                bytes=sum(map(_size, files)),
                detail=detail,
                source=files[0].path,
            )
    hint = {
        "gpu": "no PTX; it is written when kernels are compiled with xla_dump_to and xla_dump_hlo_as_text",
        "cpu": "no object files or LLVM IR in the folder",
        "tpu": "libtpu does not dump machine code; basic_compiler_metadata.txt has its size",
    }
    return ExecutablePart(
        name="kernels", missing=hint.get(compilation.platform or "", "no code in the folder")
    )


def _conditions(compilation: Compilation) -> Iterator[ExecutablePart]:
    options = compilation.options
    if options is None or not options.debug:
        yield ExecutablePart(
            name="options", missing="no debug_options or config file (XLA writes them since 2025)"
        )
    else:
        yield ExecutablePart(
            name="options",
            count=len(options.debug),
            detail="that differ from their defaults",
            source="debug_options",
        )
    device = (
        options.target.text("device_description_str")
        if options is not None and options.target is not None
        else None
    )
    if device is not None:
        yield ExecutablePart(name="device", detail=device, source="gpu_target_config")
    elif compilation.platform == "gpu":
        yield ExecutablePart(name="device", missing="no gpu_target_config.pbtxt")
