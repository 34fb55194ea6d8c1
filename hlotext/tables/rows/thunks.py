"""The steps of the runtime, predicted from the text."""

from __future__ import annotations

from typing import Any

from hlotext import thunks as runtime
from hlotext.tables.rows.subject import Subject
from hlotext.tables.table import Table, from_rows


def thunks(subject: Subject) -> Table:
    """Builds the table `thunks`; empty for TPU and for modules that are not scheduled."""
    try:
        found = runtime.predict(subject.module, memory=subject.assignment)
    except runtime.ThunkError:
        return from_rows("thunks", [])
    every = list(found.walk())
    numbers = {id(thunk): number for number, thunk in enumerate(every)}
    above: dict[int, tuple[int, str, int]] = {}
    rows: list[dict[str, Any]] = []
    for number, thunk in enumerate(every):
        parent, label, depth = above.get(number, (None, None, 0))
        for name, sequence in thunk.children:
            above.update((numbers[id(inner)], (number, name, depth + 1)) for inner in sequence)
        rows.append(
            {
                "module": subject.key,
                "number": number,
                "parent": parent,
                "label": label,
                "depth": depth,
                "kind": thunk.kind,
                "thunk_id": thunk.number,
                "name": thunk.name,
                "id": subject.ids.get(thunk.instruction) if thunk.instruction is not None else None,
                "previous": None if thunk.previous is None else numbers.get(id(thunk.previous)),
                "next": None if thunk.next is None else numbers.get(id(thunk.next)),
            }
        )
    return from_rows("thunks", rows, subject.build)
