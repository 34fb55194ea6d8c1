"""Instructions chosen by where they come from: a source line, a function, a scope."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

import attrs

from hlotext.analysis.metadata_propagation import MetadataSource
from hlotext.analysis.scopes import scopes, source_locations
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

_LINE = re.compile(r"(?P<file>.+?)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?")


_NO_NUMBER = re.compile(r"\.py:(?!\d+(?:-\d+)?$)")
"""A Python file with something behind its colon that is no line."""


@attrs.frozen
class Selection:
    """Selection of instructions by source line, function or scope.

    Instructions without their own line or scope use the propagated ones of `source_locations` and `scopes`.
    """

    line: str | None = None
    """`model.py`, `model.py:12` or `model.py:12-30`; a file is named by the end of its path, and may hold `*`."""
    function: str | None = None
    """The function's qualified name or its part after a dot, and may hold `*`."""
    scope: str | None = None
    """A scope, `layer_0/attention`, with everything below it, or the end of one; and may hold `*`."""

    def __attrs_post_init__(self) -> None:
        if self.line is not None and _bounds(self.line)[1] > _bounds(self.line)[2]:
            raise ValueError(f"{self.line} is not a line range such as model.py:12-30")
        if self.line is not None and (_NO_NUMBER.search(self.line) or self.line.isdecimal()):
            raise ValueError(f"{self.line} is not a source line such as model.py:12")

    @property
    def is_everything(self) -> bool:
        """True if no criterion is set, so that every instruction is selected."""
        return self.line is None and self.function is None and self.scope is None

    def predicate(self, module: Module) -> Callable[[Instruction], bool]:
        """Returns a predicate that is True for the selected instructions of a module."""
        said = self.sources(module)
        return lambda instruction: said(instruction) is not None

    def sources(self, module: Module) -> Callable[[Instruction], MetadataSource | None]:
        """Returns a function that maps an instruction to the source of the metadata by which it is selected.

        The function returns `MetadataSource.OWN` for the instruction's own metadata, another source if it was
        propagated, and None for instructions that are not selected.
        """
        lines = source_locations(module) if self.line is not None or self.function is not None else {}
        found = scopes(module) if self.scope is not None else None

        def said(instruction: Instruction) -> MetadataSource | None:
            source = MetadataSource.OWN
            if self.line is not None or self.function is not None:
                known = lines.get(instruction)
                if known is None:
                    return None
                place, source = known
                if self.line is not None and not _is_line(self.line, place.file, place.line):
                    return None
                if self.function is not None and not _is_end(self.function, place.function, "."):
                    return None
            if found is not None and self.scope is not None:
                scope = found.of(instruction)
                if not _is_scope(self.scope, str(scope)):
                    return None
                if source is MetadataSource.OWN and scope.source is not None:
                    source = scope.source
            return source

        return said


def _bounds(line: str) -> tuple[str, int, int]:
    """The file, and the first and last line that are meant."""
    match = _LINE.fullmatch(line)
    if match is None:
        return line, 0, 1 << 62
    if match["first"] is None:
        return match["file"], 0, 1 << 62
    return match["file"], int(match["first"]), int(match["last"] or match["first"])


def _is_line(wanted: str, file: str, line: int) -> bool:
    name, first, last = _bounds(wanted)
    return first <= line <= last and _is_end(name.replace("\\", "/"), file.replace("\\", "/"), "/")


def _is_end(wanted: str, text: str, separator: str) -> bool:
    """True if a name is the wanted one, or ends with it behind a separator."""
    return fnmatchcase(text, wanted) or fnmatchcase(text, f"*{separator}{wanted}")


def _is_scope(wanted: str, scope: str) -> bool:
    """True if the names of the wanted scope stand one behind the other in a scope."""
    wanted = wanted.strip("/")
    return any(fnmatchcase(scope, form) for form in (wanted, f"{wanted}/*", f"*/{wanted}", f"*/{wanted}/*"))
