"""Parses file names in a dump folder: module, number, kind, and for a step its pipeline and pass."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable

import attrs

from hlotext.dumps.kinds import BY_NAME, INPUTS, OTHER, SHARDY, FileKind, kind_of_suffix, split
from hlotext.dumps.storage import without_packing

_MODULE = re.compile(r"(?:(?P<time>\d{10,})\.)?module_(?P<number>\d{4,18})\.(?P<rest>.+)", re.DOTALL)
_FOLDER = re.compile(r"module_(?P<number>\d{4,18})\.(?P<module>.+?)(?P<cl>\.cl_\d+)?", re.DOTALL)
PROTO = "proto-hlo"
"""The kind of modules that were dumped as protos."""
_PROTO_END = ".hlo.pb"
_INPUTS_OF = re.compile(r"(?P<module>.+)_\d{10,}", re.DOTALL)
"""A folder of what libtpu was given, called by the module and the milliseconds of 1970 on (XLA of 2025-07 to 2026-03)."""
_FRONT = re.compile(r".+?\.module_(?P<number>\d{4,18})\.(?P<module>.+?)\.?_fusion\.(?:html|pyz)", re.DOTALL)
"""A picture of a computation's fusions: the computation stands in front."""
_KERNEL_LOG = re.compile(r"(?P<rest>.+)\.triton-passes\.log", re.DOTALL)
"""A log that Triton wrote of a kernel: the module's name without its number."""
_CL = re.compile(r"cl_\d+\.")
_STEP = re.compile(r"(?P<number>\d{4,})\.(?P<rest>.+?)\.(?:txt|hlo|hlo\.pb)", re.DOTALL)
_PASS = re.compile(r"(?P<pipeline>.+?)\.after_(?P<name>.+)\.before_(?P<next>.+)", re.DOTALL)
_INNER = re.compile(r"(?P<pipeline>.+?)\.(?P<name>.+)", re.DOTALL)


@attrs.frozen
class StepName:
    """Parsed name of a per-pass dump: `NNNN.PIPELINE.after_X.before_Y`, or `NNNN.PASS.STEP` from inside a pass."""

    number: int
    """Sequence number among the dumps of a module."""
    pipeline: str
    """The pipeline, or the pass that wrote the dump while it ran. Spaces are written `_`."""
    name: str
    """X, the pass that had just run, or STEP."""
    next: str | None
    """Y, the next pass of the list, run or not; None inside a pass."""


@attrs.frozen
class FileName:
    """Parsed path of a file."""

    path: str
    """Inside the folder, parts joined by `/`."""
    folder: str
    """The folder of its compilation: "" for the top."""
    number: int | None
    """The module's number in its process; None for what is not XLA's."""
    module: str | None
    """The module's name; None if the file's name leaves it out."""
    kind: FileKind
    timestamp: str | None = None
    """Microseconds, as `xla_dump_include_timestamp` puts them in front; None without."""
    has_cl: bool = False
    """True if the name has libtpu's `cl_` number."""
    suffix: str = ""
    """Part after the module's name, without the compression suffix."""

    @property
    def state(self) -> str:
        """Kind of the module's state in the file; for a proto, the kind of the text file with the same name."""
        if self.kind.name != PROTO:
            return self.kind.name
        kind = kind_of_suffix(f"{self.suffix.removesuffix(_PROTO_END)}.txt")
        return kind.name if kind is not None and kind.is_hlo else self.kind.name

    @property
    def stem(self) -> str:
        """File name without suffixes, shared by the text and the proto of a module."""
        return without_packing(self.path).removesuffix(_PROTO_END).removesuffix(".txt")

    @property
    def step(self) -> StepName | None:
        """Parsed name of a per-pass dump, or None for other files."""
        match = _STEP.fullmatch(self.suffix) if self.state == "hlo-pass" else None
        if match is None:
            return None
        number, rest = int(match["number"]), match["rest"]
        if (found := _PASS.fullmatch(rest)) is not None:
            return StepName(number, found["pipeline"], found["name"], found["next"])
        inner = _INNER.fullmatch(rest)
        return (
            StepName(number, inner["pipeline"], inner["name"], None)
            if inner
            else StepName(number, rest, rest, None)
        )


def read_names(paths: Iterable[str]) -> list[FileName]:
    """Parses paths, and returns the results in order.

    Module names may contain dots, so the end of one before a variable suffix is found by the module's other files.
    """
    paths = list(paths)
    known: dict[tuple[str, int], set[str]] = defaultdict(set)
    first: list[FileName | None] = []
    for path in paths:
        found = _read(path, known=None)
        if found is not None and found.module is not None and found.number is not None:
            known[found.folder, found.number].add(found.module)
        first.append(found)
    modules: dict[str, set[str]] = defaultdict(set)
    for (folder, _), names in known.items():
        modules[folder] |= names
    return [
        found
        or _read(path, known)
        or _without_number(path, modules)
        or FileName(path, posixpath.dirname(path), None, None, OTHER)
        for path, found in zip(paths, first, strict=True)
    ]


def _without_number(path: str, modules: dict[str, set[str]]) -> FileName | None:
    """Parses a path without a leading module number, by a known module name."""
    folder, name = posixpath.split(path)
    plain = without_packing(name)
    if (match := _FRONT.fullmatch(plain)) is not None:
        return FileName(path, folder, int(match["number"]), match["module"], BY_NAME["graph"], suffix=plain)
    above, last = posixpath.split(folder)
    kind = next((kind for kind in INPUTS if re.fullmatch(kind.suffix, plain)), None)
    if kind is not None and (match := _INPUTS_OF.fullmatch(last)) is not None:
        return FileName(path, above, None, match["module"], kind, suffix=plain)
    if (match := _KERNEL_LOG.fullmatch(plain)) is not None:
        rest = match["rest"]
        owner = max((m for m in modules.get(folder, ()) if rest.startswith(f"{m}.")), key=len, default=None)
        return FileName(path, folder, None, owner, BY_NAME["mlir-log"], suffix=plain)
    return None


def _read(path: str, known: dict[tuple[str, int], set[str]] | None) -> FileName | None:
    """Parses a path; without `known` only if unambiguous."""
    folder, name = posixpath.split(path)
    plain = without_packing(name)
    if known is None and (found := _in_module_folder(path, folder, plain)) is not None:
        return found
    match = _MODULE.fullmatch(plain)
    if match is None:
        return None
    number, rest = int(match["number"]), match["rest"]
    if known is None:
        parts = split(rest, variable=False)
    else:
        parts = _after_known(rest, known.get((folder, number), ())) or split(rest, variable=True)
    if parts is None:
        return None
    module, kind, has_cl = parts
    suffix = rest if module is None else rest[len(module) + 1 :]
    return FileName(path, folder, number, module, kind, match["time"], has_cl, _without_cl(suffix))


def _after_known(rest: str, modules: Iterable[str]) -> tuple[str | None, FileKind, bool] | None:
    """The parts of a name whose module is one of these, or left out."""
    for module in sorted(modules, key=len, reverse=True):
        if rest.startswith(f"{module}."):
            suffix = rest[len(module) + 1 :]
            kind = kind_of_suffix(_without_cl(suffix))
            if kind is not None:
                return module, kind, _CL.match(suffix) is not None
    return None


def _in_module_folder(path: str, folder: str, plain: str) -> FileName | None:
    """A file in a folder that is called like a module: Shardy's steps, and what libtpu was given."""
    above, last = posixpath.split(folder)
    match = _FOLDER.fullmatch(last)
    if match is None:
        return None
    kind = next((kind for kind in INPUTS if re.fullmatch(kind.suffix, plain)), None)
    if posixpath.basename(above) == "shardy" and re.fullmatch(SHARDY.suffix, plain):
        kind, above = SHARDY, posixpath.dirname(above)
    if kind is None:
        return None
    return FileName(
        path, above, int(match["number"]), match["module"], kind, None, match["cl"] is not None, plain
    )


def _without_cl(suffix: str) -> str:
    match = _CL.match(suffix)
    return suffix if match is None else suffix[match.end() :]
