"""C106: an exposed transfer."""

from __future__ import annotations

from hlotext.lint.merged import MergedRule
from hlotext.lint.parts.copy_not_overlapped import CopyNotOverlapped
from hlotext.lint.parts.exposed_collective import ExposedCollective
from hlotext.lint.parts.nothing_overlapped import NothingOverlapped
from hlotext.lint.parts.synchronous_collective import SynchronousCollective


class Exposed(MergedRule):
    code = "C106"
    name = "exposed"
    title = "an exposed transfer"
    waste = "waited"
    is_default = False  # what it costs is meant, or the text does not show how to spare it
    former = ("S102", "S103", "S104")
    needs_optimized = True
    yields_to = frozenset({"C101", "C102", "C104", "C105", "C107", "C108", "C111"})
    parts = (
        SynchronousCollective,
        NothingOverlapped,
        CopyNotOverlapped,
        ExposedCollective,
    )
