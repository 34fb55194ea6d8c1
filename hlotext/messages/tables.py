"""The table of allocations that TPU's compiler prints when main memory is not enough."""

from __future__ import annotations

import re

from hlotext.messages.message import ListedAllocation
from hlotext.messages.quoted import SIZE, metadata, size

_BEGIN = re.compile(rf"(?:^|\s)\d+\.\s+Size:\s+({SIZE})(?=\s|[A-Z])")
_FIELD = re.compile(
    r"(Operator|Shape|Unpadded\s+size|XLA\s+label|Allocation\s+type|Extra\s+memory\s+due\s+to\s+padding):\s*"
)
_END = re.compile(r"={5,}|\n\n")
_LABEL = re.compile(r"%?([\w.\-]+) = ")


def allocations(text: str) -> tuple[tuple[ListedAllocation, ...], bool]:
    """Returns the entries of a table of allocations, and True if the table is cut off inside an entry.

    The last field of an entry that is cut off is left out.
    """
    found: list[ListedAllocation] = []
    begins = list(_BEGIN.finditer(text))
    is_cut = False
    for number, begin in enumerate(begins):
        stop = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        end = _END.search(text, begin.end(), stop)
        fields = list(_FIELD.finditer(text, begin.end(), end.start() if end is not None else stop))
        entry = {"Size": begin[1]}
        for place, field in enumerate(fields):
            until = fields[place + 1].start() if place + 1 < len(fields) else end.start() if end else stop
            entry[" ".join(field[1].split())] = " ".join(text[field.end() : until].split())
        is_cut = "Allocation type" not in entry
        _keep(entry, found)
    return tuple(found), is_cut


def _keep(entry: dict[str, str], found: list[ListedAllocation]) -> None:
    if "Allocation type" not in entry:
        return
    bytes_ = size(entry["Size"])
    if bytes_ is None:
        return
    operator = entry.get("Operator", "")
    facts = metadata(operator, 0, len(operator))
    label = _LABEL.match(entry.get("XLA label", ""))
    found.append(
        ListedAllocation(
            bytes_,
            size(entry["Unpadded size"]) if "Unpadded size" in entry else None,
            entry.get("Shape"),
            _text(facts.get("op_name")),
            _number(facts.get("stack_frame_id")),
            _text(facts.get("source_file")),
            _number(facts.get("source_line")),
            label[1] if label is not None else None,
            entry["Allocation type"],
        )
    )


def _text(value: str | int | None) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: str | int | None) -> int | None:
    return value if isinstance(value, int) else None
