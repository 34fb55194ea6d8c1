"""M119: an array, or a large part of it, that is rewritten to replace a small one."""

from __future__ import annotations

from hlotext.lint.merged import MergedRule
from hlotext.lint.parts.masked_slice import MaskedSlice
from hlotext.lint.parts.written_back import WrittenBack


class RewrittenForSlice(MergedRule):
    code = "M119"
    name = "rewritten-for-slice"
    title = "an array rewritten to replace one slice of it"
    waste = "copied"
    needs_optimized = True
    parts = (
        MaskedSlice,
        WrittenBack,
    )
