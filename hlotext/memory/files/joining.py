"""What XLA's files do not tell of the memory that they describe, taken from what the text alone tells."""

from __future__ import annotations

import attrs

from hlotext.memory.aliases import Buffer
from hlotext.memory.assignment import Assignment


def joined(read: Assignment, computed: Assignment) -> Assignment:
    """An assignment read from XLA's files, with the chip, and with which values share memory, as computed from the text.

    The files give places and lives. That a loop's state is written by a round of it, and so whose it is, only the text tells.
    """
    known = {(value.name, value.index): value for value in read.values}
    buffers: list[Buffer] = []
    for buffer in computed.buffers or ():
        found = tuple(
            known.pop((value.name, value.index)) for value in buffer if (value.name, value.index) in known
        )
        if found:
            buffers.append(found)
    return attrs.evolve(read, chip=computed.chip, buffers=tuple(buffers))
