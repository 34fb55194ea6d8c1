"""The grammar reader: Lark over a term or a whole module. Slow, obviously right, and imported when it is first needed.

Gives values and records, in which names are still names. Must not know nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.syntax.reading import begun as begun
    from hlotext.syntax.reading import records as records
    from hlotext.syntax.reading import reference as reference
    from hlotext.syntax.reading import terms as terms
else:
    __getattr__ = door(__name__, "begun", "records", "reference", "terms")
