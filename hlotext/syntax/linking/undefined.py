"""Names that nothing defines, here or in XLA: what may have been meant, and where something of that name stands."""

from __future__ import annotations

import bisect
import re
from collections.abc import Collection

from hlotext.ir.caches import lazy_regex
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, TypeKind, named_elsewhere
from hlotext.syntax.language.patterns import IDENTIFIER
from hlotext.syntax.source.reporter import Place, Reporter

_DEFINITION = lazy_regex(rf"^[ \t]*+(?:ROOT[ \t]+)?(%?({IDENTIFIER}))[ \t]*+=", re.MULTILINE | re.ASCII)

_DEFINED = lazy_regex(rf"\n[ \t]*+(?:ROOT[ \t]++)?%?+({IDENTIFIER})[ \t]*+=.*+", re.ASCII)
"""The same with the rest of the line, but for the first line of a text: sooner found."""

_ELEMENT = lazy_regex(rf'^[^"\n]*[(, ]%?+{IDENTIFIER}#[0-9]', re.MULTILINE | re.ASCII)
"""An operand path (`%t#0`), which compact texts alone have; before the first string of its line."""

_SINGLE = 2
"""Names that are looked for by themselves before all definitions are noted."""

_NAME_CHARACTER = lazy_regex(r"[\w.\-%]")


class Undefined:
    """Reports undefined names. Searches the text once, for the first such name."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self._places: dict[str, list[int]] | None = None
        """Where the lines that define a name stand, by name."""
        self._names: set[str] | None = None
        """The names that are defined on some line, and perhaps some that are not: to note where takes five times as long."""
        self._looked = 0
        """Names that were looked for without those."""
        self._body = (0, 0)
        """A piece of the text, from somewhere to the end of a computation."""
        self._own: tuple[int, list[str]] = (-1, [])
        """End of a computation, and the names that its lines define."""
        self._compact: tuple[int, bool] | None = None
        """End of a computation, and whether it writes elements of tuples as operand paths."""

    def instruction(self, code: str, what: str, name: str, position: int, known: Collection[str]) -> None:
        """Reports an instruction that is used at an offset, but not defined before it."""
        self.reporter.end_trial()
        if self.reporter.is_full:
            self.reporter.leave_out()
            return
        places = self._places_of(name)
        following = bisect.bisect_right(places, position)
        related: list[Place] = []
        message = f"{what} {name} is not defined"
        if following < len(places) and places[following] < self._end_of_body(position):
            message = f"{what} {name} is not defined before this line"
            related = [("it is defined here", places[following], None)]
        elif following and places[following - 1] >= self._line(position):
            message = f"{what} {name} is this instruction itself"
        elif places:
            related = [("an instruction in another computation has this name", places[0], None)]
        meant = self.reporter.did_you_mean(name, known)
        if (
            not meant
            and not places
            and (meant := self.reporter.did_you_mean(name, self._names_of_body(position)))
        ):
            meant += " It is defined below, and must stand above its uses"
        self.reporter.error(code, message, position, help=meant, related=related)

    def _names_of_body(self, position: int) -> list[str]:
        """The names that the computation around an offset defines, above it or below."""
        end = self._end_of_body(position)
        if self._own[0] != end:
            text = self.reporter.source.text
            self._own = end, _DEFINED().findall(text, text.rfind("\n}", 0, position) + 1, end)
        return self._own[1]

    def is_left_out(self, name: str, position: int) -> bool:
        """True if no line defines a name and its computation is compact, in which elements that are control
        predecessors are omitted.
        """
        if self._places_of(name):
            return False
        end = self._end_of_body(position)
        if self._compact is None or self._compact[0] != end:
            text = self.reporter.source.text
            start = text.rfind("\n}", 0, position) + 1
            self._compact = end, _ELEMENT().search(text, start, end) is not None
        return self._compact[1]

    def _end_of_body(self, position: int) -> int:
        """Where the computation ends in which something stands, as XLA writes its closing brace."""
        first, end = self._body
        if not first <= position < end:
            end = self.reporter.source.text.find("\n}", position)
            end = len(self.reporter.source.text) if end < 0 else end
            self._body = position, end
        return end

    def _line(self, position: int) -> int:
        """Where the line begins on which something stands."""
        source = self.reporter.source
        return position - source.position(position)[1] + 1

    def _places_of(self, name: str) -> list[int]:
        """Where the lines begin that define a name. The first few names are looked for by themselves: that is sooner done."""
        text = self.reporter.source.text
        if self._places is not None:
            return self._places.get(name, [])
        if self._looked >= _SINGLE or "\r" in text:
            if self._names is None:
                first = _DEFINITION().match(text)
                self._names = set(_DEFINED().findall(text))
                self._names.update([first[2]] if first else ())
            return self._all_places().get(name, []) if name in self._names else []
        self._looked += 1
        found = []
        place = text.find(name)
        while place >= 0:
            match = _DEFINITION().match(text, text.rfind("\n", 0, place) + 1)
            if match is not None and match.start(2) == place and match[2] == name:
                found.append(match.start(1))
            place = text.find(name, place + len(name))
        return found

    def _all_places(self) -> dict[str, list[int]]:
        if self._places is None:
            self._places = {}
            for match in _DEFINITION().finditer(self.reporter.source.text):
                self._places.setdefault(match[2], []).append(match.start(1))
        return self._places


def note_unknown_types(reporter: Reporter, shape: Shape, start: int) -> None:
    """Adds a note for each unknown element type in a shape that is written after an offset."""
    if not shape.tuple_shapes and shape.element_type.kind is not TypeKind.UNKNOWN:
        return  # as nearly always
    for _, leaf in shape.leaves():
        if leaf.element_type.kind is TypeKind.UNKNOWN:
            name = leaf.element_type.name
            first = _place_of_type(reporter.source.text, name, start)
            help = named_elsewhere(name) or reporter.did_you_mean(name, ELEMENT_TYPES)
            reporter.note(
                "X202", f"element type {name} is unknown to this release", first, first + len(name), help
            )


def _place_of_type(text: str, name: str, start: int) -> int:
    """The offset of an element type in a shape that stands somewhere behind an offset."""
    while (place := text.find(name, start)) >= 0:
        end = place + len(name)
        if not (_NAME_CHARACTER().match(text, end) or (place and _NAME_CHARACTER().match(text, place - 1))):
            return place
        start = end
    return max(start, 0)
