"""A module as a golden file: what it does, without names, ids, and where it comes from."""

from __future__ import annotations

import hlotext as hlo
from hlotext import rewrite

_PASSES = "strip-metadata,canonical-names"


def golden_text(module: hlo.Module) -> str:
    """The text of a module with names that only count, and no metadata: equal programs make files that differ little.

    It is HLO, to be compared with `compare` or `hlotext diff`, for which names and order do not count at all.
    """
    copy = module.clone()
    rewrite.Pipeline(rewrite.parse_passes(_PASSES), verify=False).run(copy)
    return copy.to_text()
