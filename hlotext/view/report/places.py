"""Files of the program by names that are short and still tell them apart: the folder that all share is cut off."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

_PLACE = re.compile(r"(.*)(:[0-9]+(?: → [0-9]+| \(before\))?)", re.DOTALL)


def short_names(files: Iterable[str]) -> Mapping[str, str]:
    """The shortest end of each path that no other file has: `train.py`, or `model/layers.py` beside `data/layers.py`."""
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
    """Short names of the places of a page: `train.py:24`, of a comparison `train.py:24 → 26`."""

    files: Mapping[str, str]

    def short(self, place: str) -> str:
        """The place with its file's short name; as it is if the file is none of the program's."""
        found = _PLACE.fullmatch(place)
        if found is None:
            return place
        return f"{self.files.get(found[1], found[1])}{found[2]}"
