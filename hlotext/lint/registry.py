"""Every rule: those of this package, one in each file of `rules`, and those that other packages register."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from importlib import metadata
from inspect import isclass

from hlotext.lint import rules as _rules
from hlotext.lint.rule import Rule

ENTRY_POINTS = "hlotext.lint_rules"
"""The group of entry points that name rule classes of other packages."""
_CODE = re.compile(r"[A-Z]+[0-9]{3}")


class RuleError(ValueError):
    """A rule of another package that cannot be used; the message names it."""


@functools.cache
def builtin_rules() -> dict[str, type[Rule]]:
    """The rules of this package by code, in order."""
    found: dict[str, type[Rule]] = {}
    for file in pkgutil.iter_modules(_rules.__path__):
        module = importlib.import_module(f"{_rules.__name__}.{file.name}")
        for value in vars(module).values():
            if isclass(value) and issubclass(value, Rule) and value.__module__ == module.__name__:
                found[value.code] = value
    return dict(sorted(found.items()))


@functools.cache
def all_rules() -> dict[str, type[Rule]]:
    """All rules by code, in order. Raises RuleError for a foreign one that is none, or that takes a code twice."""
    found = dict(builtin_rules())
    for point in metadata.entry_points(group=ENTRY_POINTS):
        try:
            rule = point.load()
        except Exception as error:
            raise RuleError(
                f"rule {point.value} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        if not (isclass(rule) and issubclass(rule, Rule)):
            raise RuleError(f"{point.value} is no class of rules: it must be a subclass of hlotext.lint.Rule")
        if not _CODE.fullmatch(getattr(rule, "code", "")):
            raise RuleError(f"rule {point.value} needs a code of capital letters and three digits")
        if found.setdefault(rule.code, rule) is not rule:
            raise RuleError(f"rule {point.value} has the code {rule.code}, which another rule has")
    return dict(sorted(found.items()))
