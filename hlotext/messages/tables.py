"""The table of allocations that TPU's compiler prints when main memory is not enough."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlotext.messages.message import ListedAllocation
from hlotext.messages.quoted import SIZE, metadata, size

_BEGIN = re.compile(rf"\d+\.\s+Size:\s+({SIZE})")
_FIELD = re.compile(
    r"(Operator|Shape|Unpadded size|XLA label|Allocation type|Extra memory due to padding):\s*(.*)"
)
_END = re.compile(r"={5,}")
_LABEL = re.compile(r"%?([\w.\-]+) = ")


def allocations(lines: Sequence[str]) -> tuple[tuple[ListedAllocation, ...], bool]:
    """The whole entries of a table, and whether it ends inside of one, which then is left out."""
    found: list[ListedAllocation] = []
    entry: dict[str, str] = {}
    key = ""
    for line in lines:
        begin = _BEGIN.fullmatch(line)
        if begin is not None:
            _keep(entry, found)
            entry, key = {"Size": begin[1]}, ""
        elif not entry:
            continue
        elif not line or _END.fullmatch(line):
            _keep(entry, found)
            key = ""
            entry = entry if "Allocation type" not in entry else {}
        elif (field := _FIELD.fullmatch(line)) is not None:
            key = field[1]
            entry[key] = field[2]
        elif key:  # a line that the log has wrapped
            entry[key] += f" {line}"
    is_cut = bool(entry) and "Allocation type" not in entry
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
