"""M108: arrays that dominate peak memory."""

from __future__ import annotations

from hlotext.lint.merged import MergedRule
from hlotext.lint.parts.copies_at_peak import CopiesAtPeak
from hlotext.lint.parts.long_lived_array import LongLivedArray


class PeakOfMemory(MergedRule):
    code = "M108"
    name = "peak"
    title = "arrays that dominate peak memory"
    waste = "held"
    is_default = False  # what it costs is meant, or the text does not show how to spare it
    former = ("M109", "M110")
    needs_schedule = True
    yields_to = frozenset({"L103", "M101"})
    parts = (
        CopiesAtPeak,
        LongLivedArray,
    )
