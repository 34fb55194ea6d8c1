"""Normalization of a module as by XLA's parser: names, orders, tables, values.

XLA's tools print the parsed module rather than the text: callees come before callers, operands before users unless
scheduled, and duplicate names get a number. Comparing a tool's output with the result of `reread` shows only the tool's
own changes.
"""

from __future__ import annotations

from hlotext.syntax.reread.module import reread

__all__ = ["reread"]
