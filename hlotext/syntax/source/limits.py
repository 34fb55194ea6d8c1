"""Limits of the readers, so that no text costs more time or memory than its size warrants.

Each is far beyond what XLA writes, and each is an ordinary diagnostic. `syntax/README.md` lists them.
"""

from __future__ import annotations

MAX_NESTING = 50
"""Levels of tuple shapes, of operations in operand lists, of inline bodies, and of original values.

Those are followed by recursion, also by what users do with the values, and all at once must fit into Python's 1,000 frames.
"""

MAX_BRACKETS = 500
"""Levels of brackets of any kind in what the grammar reads: it keeps all that are open, a kilobyte for each."""

MAX_DIMENSIONS = 200
"""Dimensions of an array. The number of its elements then has fewer than 4,300 digits, the most that Python writes."""

MAX_DIGITS = 1_000
"""Digits of an integer that are looked at; more than 20 never fit into 64 bits."""

MAX_DIAGNOSTICS = 1_000
"""Errors that are kept of one text, and notes; the others are counted."""

MAX_COMPARED_WORDS = 10_000
"""Known words that are compared with the misspelt ones of one text; from then on no more are suggested."""

MAX_MESSAGE = 1_000
"""Characters of a message; the shape of a tuple can be megabytes long."""

MAX_STATEMENT = 1 << 16
"""Characters that an op line over several lines may have in a text with errors."""

MAX_SOURCE = 4 << 30
"""Bytes that a source may hold, or unpack to; the variable `HLOTEXT_MAX_SOURCE` says another number."""

LEAST_LAZY = 256 << 20
"""Bytes of a file from which on `load` reads computations when they are touched."""
