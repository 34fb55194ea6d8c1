"""X301: an attribute that XLA no longer has."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.tables.attributes import ATTRIBUTES
from hlotext.lint.rule import Context, Report, Rule


class DeprecatedSyntax(Rule):
    code = "X301"
    name = "deprecated-syntax"
    title = "an attribute removed from XLA"
    is_default = False

    def check_module(self, context: Context) -> Iterator[Report]:
        source = context.module.source
        respelled = source.spellings if source is not None else {}
        old = OLD | respelled.keys()
        if not any(
            old & i.attributes.keys() for i in context.census.attribute_sets
        ):  # no attribute is deprecated
            return
        for instruction in context.census.instructions:
            for name in [name for name in instruction.attributes if name in old]:
                yield Report(
                    instruction,
                    f"{respelled.get(name, name)} is an attribute of older XLA releases",
                    "remove it or rename it",
                    None,
                    name,
                )


OLD = frozenset(name for name, row in ATTRIBUTES.items() if row.era == "old")
"""Names of attributes that have been replaced."""
