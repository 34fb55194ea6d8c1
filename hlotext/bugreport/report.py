"""A bug report: the module anonymised and reduced, what it was compiled with, and one script that shows the fault."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np

import hlotext as hlo
from hlotext.analysis import age_of, backend_of
from hlotext.analysis.formatting import pluralize
from hlotext.bugreport.private import Leak, leaks, machine_words, module_words, shown_settings, texts
from hlotext.dumps.compilation import Compilation
from hlotext.dumps.settings import chosen_settings
from hlotext.ir.files import write_text
from hlotext.ir.values.literal import Literal
from hlotext.messages import Message
from hlotext.rewrite.passes.cleanup.anonymize import Anonymize
from hlotext.rewrite.reduction import reduce

_MODULE = "module.txt"
_HOLE = "{}"


class BugReportError(ValueError):
    """Raised if a report cannot be made.

    This is so if the fault does not occur or disappears after anonymization, and if the report would contain private
    data.
    """

    def __init__(self, message: str, leaks: tuple[Leak, ...] = ()) -> None:
        super().__init__(message)
        self.leaks = leaks
        """Private words that the report would contain."""

    def __reduce__(self) -> tuple[type[BugReportError], tuple[str, tuple[Leak, ...]]]:
        return type(self), (str(self), self.leaks)


class CommandNotFoundError(BugReportError):
    """Raised if the command does not exist."""


@attrs.frozen
class BugReport:
    """A bug report, created by `make`: a script that reproduces a fault."""

    script: str
    """The report: a POSIX shell script that writes the module to a temporary folder and runs the command."""
    facts: tuple[tuple[str, str], ...]
    """Name and value of each fact listed at the top of the script."""
    module: hlo.Module
    before: int
    """Number of instructions in the original module."""
    withheld: tuple[str, ...]
    """Settings whose values are withheld because they may identify a person or machine."""
    is_checked: bool
    """True if the script was run and reproduced the fault."""


def make(
    source: Compilation | hlo.Module,
    command: Sequence[str] = (),
    *,
    include: Sequence[str | os.PathLike[str]] = (),
    message: Message | None = None,
    keep_constants: bool = False,
    with_flags: bool = True,
    timeout: float = 60.0,
    max_tests: int = 500,
) -> BugReport:
    """Makes a bug report from a compilation, using its module before optimization, or from a module.

    The module is anonymized (`Anonymize`) and its backend configs are removed. As long as the fault persists, constants
    become zeros and unknown custom-call targets are numbered; then the module is reduced. Finally the generated script
    is run. Without a command, nothing is reduced or checked.

    Args:
        source: The compilation or module.
        command: Command that reproduces the fault by a nonzero exit status, the same on every run. `{}` is replaced by
            the path of the module, which is appended by default.
        include: Files that the command needs and that may be published.
        message: The compiler's message to include.
        keep_constants: Keep the values of constants. By default, all become zero, or all but integer scalars if the
            fault requires them.
        with_flags: Set the dump's non-default debug options in XLA_FLAGS.
        timeout: Seconds for each run of the command.
        max_tests: Maximum number of runs of the command during reduction.

    Raises:
        BugReportError: No report can be made.
        InputError: The compilation has no module that can be read.
        HloSyntaxError: The text of the compilation's module is not valid HLO.
    """
    module = source if isinstance(source, hlo.Module) else source.before
    if module is None:
        raise BugReportError("the dump has no module from before optimization")
    before = sum(map(len, module.computations))
    filled = 0 if keep_constants else _fill(module := module.clone())
    words = {**machine_words(), **module_words(module)}
    found = chosen_settings(source) if isinstance(source, Compilation) else {}
    shown, withheld = shown_settings(found)
    flags = _flags(source, shown) if with_flags else {}
    files = {Path(one).name: _text(Path(one)) for one in include}
    line = _command_line(command, files)
    trial = _Trial(line, files, flags, timeout)
    public, given = _anonymised(module, trial if command else None, keep_constants)
    if command:
        try:
            public = reduce(public, trial, max_tests).module
        except ValueError:
            raise BugReportError(
                "the command does not fail reliably: it failed at first, but not later"
            ) from None
        Anonymize(constants=not keep_constants, targets=not given.targets).run(public)
    facts = [
        *_origin(source, module),
        *_message_facts(message),
        (
            "module",
            f"{sum(map(len, public.computations)):,} of {pluralize(before, 'instruction')}",
        ),
        ("taken out", given.words(keep_constants)),
        *([("zeros", f"{pluralize(filled, 'constant')} elided in the dump")] if filled else []),
        *_kept(public),
        *((f"setting {name}", value) for name, value in shown.items()),
        *((f"setting {name}", "(withheld)") for name in withheld),
        (
            "exit status",
            f"the command's: {trial.status} while the failure reproduces"
            if command
            else "that of hlotext run",
        ),
    ]
    script = _script(facts, str(public), files, flags, line)
    left = tuple(leaks(script, words))
    if left:
        first = left[0]
        raise BugReportError(
            f"the report would contain a {first.kind} on line {first.line}: {first.word}", left
        )
    if command and _status(script, timeout) != trial.status:
        raise BugReportError("the failure does not reproduce in the report; nothing written")
    return BugReport(script, tuple(facts), public, before, withheld, bool(command))


# ---- the module


@attrs.frozen
class _Given:
    """Parts of a module that are given back, because the fault needs them."""

    scalars: bool = False
    """Constants of one integer or truth value."""
    targets: bool = False
    """Targets of custom calls that are no compiler's."""

    def words(self, keep_constants: bool) -> str:
        parts = ["names", "metadata", "sources", "configurations"]
        if not keep_constants:
            parts.append("constants other than integer scalars" if self.scalars else "constants")
        return ", ".join(parts if self.targets else [*parts, "custom call targets"])


def _anonymised(module: hlo.Module, trial: _Trial | None, keep_constants: bool) -> tuple[hlo.Module, _Given]:
    """The module without names and data in which the fault remains, and what of it was given back: as little as may be."""
    if trial is None:
        given = _Given(scalars=True)  # what loops count to is needed to run at all
        return _public(module, given, keep_constants), given
    if not trial(module):
        raise BugReportError("the command does not fail for the dump's module")
    tried = set()
    for given in (_Given(), _Given(scalars=True), _Given(targets=True), _Given(scalars=True, targets=True)):
        public = _public(module, given, keep_constants)
        if str(public) in tried:
            continue
        tried.add(str(public))
        if trial(public):
            return public, given
    raise BugReportError(
        "the failure needs the module's constants; keep them with --keep-constants if they may be disclosed"
        if not keep_constants
        else "the failure does not reproduce without the module's names and metadata"
    )


def _public(module: hlo.Module, given: _Given, keep_constants: bool) -> hlo.Module:
    public = module.clone()
    for instruction in tuple(public.instructions()):
        if instruction.backend_config is not None:
            del instruction.attributes["backend_config"]
    Anonymize(constants=not keep_constants, targets=not given.targets).run(public)
    if not keep_constants:
        _zero(public, not given.scalars)
    return public


def _fill(module: hlo.Module) -> int:
    """Makes zeros of the constants whose elements the text leaves out; returns their number."""
    count = 0
    for one in tuple(module.instructions()):
        literal = one.literal if one.opcode == "constant" else None
        shape = one.shape
        if literal is None or not literal.is_elided or shape is None or not shape.is_array:
            continue
        if shape.element_type.dtype_name and math.prod(shape.dimensions) <= _MOST_FILLED:
            zeros = np.zeros(shape.dimensions, shape.element_type.dtype)
            one.literal = Literal.from_array(zeros, literal.shape)
            count += 1
    return count


_MOST_FILLED = 100_000
"""Elements of a constant up to which its zeros are written out."""


def _zero(module: hlo.Module, scalars: bool) -> None:
    """Makes constants zeros, those of one integer or truth value only where `scalars` says so."""
    for one in tuple(module.instructions()):
        literal = one.literal if one.opcode == "constant" else None
        array = literal.known_array if literal is not None else None
        if literal is None or array is None or not array.any():
            continue
        if array.size == 1 and array.dtype.kind in "iub" and not scalars:
            continue
        one.literal = Literal.from_array(np.zeros_like(array), literal.shape)


# ---- the command


@attrs.define
class _Trial:
    """Says of a module whether the command fails for it, and with the status of the first one: else it is another fault."""

    line: tuple[str, ...]
    files: Mapping[str, str]
    flags: Mapping[str, str]
    timeout: float
    status: int = 0

    def __call__(self, module: hlo.Module) -> bool:
        status = _status(_script((), str(module), self.files, self.flags, self.line), self.timeout)
        if not self.status:
            self.status = status
        return status != 0 and status == self.status


def _status(script: str, timeout: float) -> int:
    """Exit status of a script that is run in an empty folder; 0 where it runs longer, which is no fault."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "report.sh"
        write_text(place, script)
        try:
            done = subprocess.run(
                ["sh", str(place)], cwd=folder, capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return 0
        if done.returncode == _NOT_FOUND:
            said = done.stderr.decode("utf-8", "replace").strip()[-200:]
            raise CommandNotFoundError(
                "the command cannot be run: " + re.sub(r"\A\S*: (?:line )?\d+: ", "", said)
            )
        return done.returncode


_NOT_FOUND = 127


def _command_line(command: Sequence[str], files: Mapping[str, str]) -> tuple[str, ...]:
    """The words of the command as the script has them, quoted. Raises BugReportError for a file that is not included."""
    if not command:
        return ("hlotext", "run", f'"$work/{_MODULE}"')
    words = []
    for number, word in enumerate(command):
        name = os.path.basename(word)
        if number == 0 and os.path.isabs(word) and shutil.which(name) is not None:
            words.append(shlex.quote(name))
        elif name in files:
            words.append(f'"$work"/{shlex.quote(name)}')
        elif os.path.isabs(word) or (os.sep in word and os.path.exists(word)) or os.path.isfile(word):
            raise BugReportError(
                f"the command uses a file that the report does not contain: add --include {name}, or drop it from the command"
            )
        else:
            words.append(
                f'"$work/{_MODULE}"'.join(shlex.quote(part) if part else "" for part in word.split(_HOLE))
            )
    if not any(_HOLE in word for word in command):
        words.append(f'"$work/{_MODULE}"')
    return tuple(words)


def _flags(source: Compilation | hlo.Module, shown: Mapping[str, str]) -> dict[str, str]:
    """Debug options that XLA_FLAGS can set."""
    options = source.options if isinstance(source, Compilation) else None
    known = options.debug if options is not None else {}
    return {name: shown[name] for name in known if name in shown and name.startswith("xla_")}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BugReportError(f"{path} cannot be included: {error}") from None


# ---- the script


def _script(
    facts: Sequence[tuple[str, str]],
    module: str,
    files: Mapping[str, str],
    flags: Mapping[str, str],
    line: Sequence[str],
) -> str:
    head = ["#!/bin/sh", "# Reproducer for an XLA compiler failure, written by hlotext."]
    longest = max((len(name) for name, _ in facts), default=0)
    head += (f"#   {name:{longest}}  {value}" for name, value in facts)
    given = " ".join(f"--{name}={value}" for name, value in flags.items())
    return "\n".join(
        [
            *head,
            "work=$(mktemp -d) || exit 2",
            "trap 'rm -rf \"$work\"' EXIT",
            *(part for name, text in {_MODULE: module, **files}.items() for part in _file(name, text)),
            *([f"XLA_FLAGS={shlex.quote(given)}", "export XLA_FLAGS"] if given else []),
            " ".join(line),
            "",
        ]
    )


def _file(name: str, text: str) -> Iterator[str]:
    """A file of the script, between marks that stand in none of its lines."""
    mark, lines = "END", text.splitlines()
    while mark in lines:
        mark += "_"
    yield f"cat > \"$work\"/{shlex.quote(name)} <<'{mark}'"
    yield from lines
    yield mark


def _origin(source: Compilation | hlo.Module, module: hlo.Module) -> Iterator[tuple[str, str]]:
    age = source.age if isinstance(source, Compilation) else age_of(module)
    yield "age", str(age) if age.is_known else "unknown"
    backend = backend_of(module)
    platform = source.platform if isinstance(source, Compilation) else None
    platform = platform or (backend.value if backend is not None else None)
    chip = source.chip if isinstance(source, Compilation) else None
    yield "platform", f"{platform or 'unknown'}{f', {chip.name}' if chip is not None else ''}"


def _kept(module: hlo.Module) -> Iterator[tuple[str, str]]:
    """The words of the program that the fault needs."""
    found = list(texts(module))
    if found:
        yield "kept", ", ".join(found)


def _message_facts(message: Message | None) -> Iterator[tuple[str, str]]:
    """The kind and the figures of a message; its words may name anything."""
    if message is None:
        return
    yield "message", message.kind + (f", {message.status}" if message.status else "")
    memory = message.memory
    if memory is not None and memory.used is not None:
        yield (
            "memory",
            f"{memory.used:.0f} bytes of {memory.capacity:.0f}"
            if memory.capacity
            else f"{memory.used:.0f} bytes",
        )
