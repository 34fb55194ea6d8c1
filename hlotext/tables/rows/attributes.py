"""Attributes in long form: instructions of equal text share their attributes, so each set is printed once."""

from __future__ import annotations

import numpy as np

from hlotext.analysis.summary.details import attribute_text
from hlotext.tables.columns import AnyColumn, Numbers, Words, distinct, offsets_of, spread
from hlotext.tables.rows.subject import Subjects
from hlotext.tables.table import Table


def attributes(subjects: Subjects) -> Table:
    """Builds the table `attributes`."""
    every = subjects.instructions
    index, sets = distinct([one._attributes for one in every])
    keys: list[str] = []
    values: list[str] = []
    known: dict[tuple[str, int], str] = {}
    for one in sets:
        for name, value in one.items():
            text = known.get((name, id(value)))
            if text is None:
                text = known[name, id(value)] = attribute_text(value, name)
            keys.append(name)
            values.append(text)
    counts = np.array([len(one) for one in sets], np.int64)
    starts = offsets_of(counts)[:-1]
    own = counts[index]
    places = spread(starts[index], own)
    ids = np.repeat(subjects.ids, own)
    columns: dict[str, AnyColumn] = {
        "id": Numbers(ids),
        "key": Words.of(keys).taken(places),
        "value": Words.of(values).taken(places),
    }
    ends = offsets_of(own)[offsets_of(subjects.counts)]
    return subjects.table("attributes", np.diff(ends), columns)
