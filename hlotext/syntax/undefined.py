"""Names that nothing defines: what may have been meant, and where something of that name stands."""

from __future__ import annotations

import re
from collections.abc import Collection

import attrs

from hlotext.syntax.reporter import Place, Reporter

_DEFINITION = re.compile(r"^[ \t]*+(?:ROOT[ \t]+)?(%?([A-Za-z_][\w.\-]*+))[ \t]*+=", re.MULTILINE | re.ASCII)


@attrs.define
class Undefined:
    """Says that a name is not defined. Looks through the text once, when the first such name is met."""

    reporter: Reporter
    _places: dict[str, list[int]] | None = None
    """Where the lines that define a name stand, by name."""

    def instruction(self, code: str, what: str, name: str, position: int, known: Collection[str]) -> None:
        """Reports an instruction that is named at an offset, but not defined before it."""
        text = self.reporter.source.text
        end = text.find("\n}", position)
        places = self._all_places().get(name, [])
        later = [place for place in places if position < place and (end < 0 or place < end)]
        related: list[Place] = []
        message = f"{what} {name} is not defined"
        if later:
            message = f"{what} {name} is not defined before this line"
            related = [("it is defined here", later[0], None)]
        elif places:
            related = [("an instruction of another computation has that name", places[0], None)]
        self.reporter.error(
            code, message, position, help=self.reporter.did_you_mean(name, known), related=related
        )

    def _all_places(self) -> dict[str, list[int]]:
        if self._places is None:
            self._places = {}
            for match in _DEFINITION.finditer(self.reporter.source.text):
                self._places.setdefault(match[2], []).append(match.start(1))
        return self._places
