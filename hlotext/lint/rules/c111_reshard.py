"""C111: a reshard, or an uneven sharding."""

from __future__ import annotations

from hlotext.lint.merged import MergedRule
from hlotext.lint.parts.reshard import Reshard
from hlotext.lint.parts.uneven_sharding import UnevenSharding


class Resharded(MergedRule):
    code = "C111"
    name = "reshard"
    title = "a reshard, or an uneven sharding"
    waste = "sent"
    yields_to = frozenset({"C101", "C102", "C104", "C105", "C107", "C108", "C113", "C114", "C115", "C116"})
    names_cause = True
    parts = (Reshard, UnevenSharding)
