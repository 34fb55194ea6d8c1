"""Files of the program by names that are short and still tell them apart: the folder that all share is cut off."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

_PLACE = re.compile(r"(.*)(:[0-9]+(?: → [0-9]+| \(before\))?)", re.DOTALL)


def short_names(files: Iterable[str]) -> Mapping[str, str]:
    """Returns the shortest path suffix of each file that no other one has: `train.py`, or `model/layers.py` next to
    `data/layers.py`.
    """
    parts = {file: file.split("/") for file in files}
    found: dict[str, str] = {}
    size = 1
    while len(found) < len(parts):
        ends = {file: "/".join(names[-size:]) for file, names in parts.items()}
        count = Counter(ends.values())
        for file, end in ends.items():
            if file not in found and (count[end] == 1 or size >= len(parts[file])):
                found[file] = end
        size += 1
    return found


@attrs.frozen
class Places:
    """Short names of source locations on a page: `train.py:24`, in comparisons `train.py:24 → 26`."""

    files: Mapping[str, str]

    def short(self, place: str) -> str:
        """Returns a location with the short name of its file; unchanged if it has another form."""
        found = _PLACE.fullmatch(place)
        if found is None:
            return place
        return f"{self.files.get(found[1], found[1])}{found[2]}"
