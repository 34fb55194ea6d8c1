"""What the readers refuse or leave out, so that no text costs more time or memory than its size warrants.

Each is far beyond what XLA writes, and each is an ordinary diagnostic. `ARCHITECTURE.md` explains them.
"""

from __future__ import annotations

MAX_NESTING = 50
"""Levels of tuple shapes, of operations in operand lists, of inline bodies, and of original values.

Those are followed by recursion, also by what users do with the values, and all at once must fit into Python's 1,000 frames.
Literals, configurations and unknown values nest without limit.
"""

MAX_DIMENSIONS = 200
"""Dimensions of an array. The number of its elements then has fewer than 4,300 digits, the most that Python writes."""

MAX_DIGITS = 1_000
"""Digits of an integer that are looked at; more than 20 never fit into 64 bits."""

MAX_DIAGNOSTICS = 1_000
"""Diagnostics that are kept of one text; the others are counted."""

MAX_SUGGESTIONS = 100
"""Misspelt words of one text for which the nearest known word is looked up."""

MAX_KNOWN_WORDS = 2_000
"""Known words, of similar length, that are compared with a misspelt one."""

MAX_STATEMENT = 1 << 16
"""Characters that an op line over several lines may have in a text with errors."""

MAX_UNPACKED = 4 << 30
"""Bytes that a packed file or text may unpack to."""
