"""Comparison of two modules: pairs their operations, and reports what differs and by how much.

>>> from hlotext import diff
>>> text = "HloModule m, replica_count=2 ENTRY %e { %p = f32[2] parameter(0) ROOT %n = f32[2] negate(%p) }"
>>> found = diff.compare(text, text.replace("negate", "abs").replace("%n", "%renamed"))
>>> found.is_equal, [(change.kind, change.what) for change in found.changes]
(False, [('changed', 'negate -> abs')])
"""

from hlotext.diff.cache_keys import CacheKeyDiff, CacheKeyPair, cache_keys
from hlotext.diff.changes import Change, Changes, Part
from hlotext.diff.compare import Diff, compare, golden_text
from hlotext.diff.folders import FolderDiff, FolderPair, folders
from hlotext.diff.thresholds import Threshold, ThresholdError, Violation, parse_thresholds, violations
from hlotext.diff.totals import TotalChange, Totals

__all__ = [
    "CacheKeyDiff",
    "CacheKeyPair",
    "Change",
    "Changes",
    "Diff",
    "FolderDiff",
    "FolderPair",
    "Part",
    "Threshold",
    "ThresholdError",
    "TotalChange",
    "Totals",
    "Violation",
    "cache_keys",
    "compare",
    "folders",
    "golden_text",
    "parse_thresholds",
    "violations",
]
