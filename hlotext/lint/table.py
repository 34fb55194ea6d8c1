"""The table of rules of the documentation."""

from __future__ import annotations

from itertools import groupby

import attrs

from hlotext.lint.registry import builtin_rules
from hlotext.lint.rule import FAMILIES, Rule


def rule_table() -> str:
    """Returns a Markdown table of the built-in rules with their defaults."""
    rows = ["| code | finds | waste | on | devices | settings |", "|---|---|---|---|---|---|"]
    for family, rules in groupby(builtin_rules().items(), key=lambda item: item[0][0]):
        rows.append(f"| **{family}** | **{FAMILIES[family]}** | | | | |")
        rows += [_row(rule) for _, rule in rules]
    return "\n".join(rows) + "\n"


def _row(rule: type[Rule]) -> str:
    devices = ", ".join(sorted(backend.value for backend in rule.backends)) or "all"
    is_on = ("note" if rule.severity.value == "note" else "yes") if rule.is_default else ""
    settings = ", ".join(f"{field.name} {field.default}" for field in attrs.fields(rule))
    return f"| {rule.code} | {rule.title} | {rule.waste} | {is_on} | {devices} | {settings} |"
