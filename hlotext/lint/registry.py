"""Every rule: those of this package, one in each file of `rules`, those of other packages, and those of a project's files."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from inspect import isclass
from pathlib import Path

from hlotext.ir import gc_control
from hlotext.ir.spelling import UnknownNameError, codes_meant
from hlotext.lint.rule import Context, Rule
from hlotext.lint.rule_rows import RULE_ROWS

ENTRY_POINTS = "hlotext.lint_rules"
"""The group of entry points that name rule classes of other packages."""
_CODE = re.compile(r"[A-Z]+[0-9]{3}")


class RuleError(ValueError):
    """Raised for a plugin rule that cannot be used. The message names it."""


class RuleMap(Mapping[str, type[Rule]]):
    """Rules by code, in order. The module of a built-in rule is imported on access."""

    def __init__(self, others: Iterable[type[Rule]] = ()) -> None:
        self._loaded = {rule.code: rule for rule in others}
        self._codes = dict.fromkeys(sorted({*RULE_ROWS, *self._loaded}))

    def __getitem__(self, code: str) -> type[Rule]:
        found = self._loaded.get(code)
        if found is None:
            if (row := RULE_ROWS.get(code)) is None:
                raise UnknownNameError("rule", code, lambda: codes_meant(code, self))
            with gc_control.gc_paused(collect_first=False):  # what is imported stays
                module = importlib.import_module(f"{_RULES}.{row.module}")
            found = self._loaded[code] = getattr(module, row.type_name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._codes)

    def __len__(self) -> int:
        return len(self._codes)

    def __contains__(self, code: object) -> bool:
        return code in self._codes

    def is_default(self, code: str) -> bool:
        """Returns `Rule.is_default` of a rule without importing it. Raises KeyError for an unknown code."""
        row = RULE_ROWS.get(code)
        return self[code].is_default if row is None else row.is_default

    def may_apply(self, code: str, context: Context) -> bool:
        """Returns False if a rule is known to find nothing in such a module, without importing the rule."""
        row = RULE_ROWS.get(code)
        return row is None or row.may_apply(context)


_RULES = "hlotext.lint.rules"


@functools.cache
def builtin_rules() -> RuleMap:
    """Returns the built-in rules by code, in order."""
    return RuleMap()


GONE = {
    "D108": "see `hlotext cost` for what a matmul wastes",
    "G108": "M111, M113 and M114 cover arrays that are written only to be moved",
    "L104": "L103 covers arrays that are written in another order",
    "M106": "M114 covers broadcasts that are written",
}
"""Codes of rules that are no more, and what says it now."""


@functools.cache
def former_codes() -> dict[str, str]:
    """Codes that became part of another rule, with its code."""
    return {old: code for code, row in RULE_ROWS.items() for old in row.former}


def current_code(code: str) -> str:
    """Returns the current code for a code: itself, or that of the rule into which it was merged."""
    return former_codes().get(code, code)


def past_codes() -> set[str]:
    """Returns the codes of earlier releases that no rule has now; see `note_of`."""
    return {*former_codes(), *GONE}


def note_of(code: str) -> str:
    """Returns what became of a code of an earlier release; empty for other codes."""
    if code in GONE:
        return f"{code} is no longer a rule: {GONE[code]}"
    now = current_code(code)
    return f"{code} is a part of {now}" if now != code else ""


@functools.cache
def all_rules(files: tuple[Path, ...] = ()) -> RuleMap:
    """Returns all rules by code, in order, including plugins and rules in a project's `files`.

    Raises RuleError for a plugin or a file that cannot be loaded or holds no rule, and for a code that is taken.
    """
    found: dict[str, type[Rule]] = {}
    for point in metadata.entry_points(group=ENTRY_POINTS):
        try:
            rule = point.load()
        except Exception as error:
            raise RuleError(
                f"rule {point.value} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        if not (isclass(rule) and issubclass(rule, Rule)):
            raise RuleError(f"{point.value} is not a rule class: it must be a subclass of hlotext.lint.Rule")
        _add(found, rule, point.value)
    for path in files:
        for rule in file_rules(path):
            _add(found, rule, f"{rule.__name__} of {path}")
    return RuleMap(found.values())


def _add(found: dict[str, type[Rule]], rule: type[Rule], name: str) -> None:
    if not _CODE.fullmatch(getattr(rule, "code", "")):
        raise RuleError(f"rule {name} needs a code of capital letters and three digits")
    if note := note_of(rule.code):
        raise RuleError(f"rule {name} has the code {rule.code}, which means another rule: {note}")
    if rule.code in RULE_ROWS:
        found.setdefault(rule.code, builtin_rules()[rule.code])
    if found.setdefault(rule.code, rule) is not rule:
        raise RuleError(f"rule {name} has the code {rule.code}, which another rule has")


OWN = "Z"
"""The family of a project's own rules."""
_of_files: dict[Path, tuple[type[Rule], ...]] = {}


def loaded_rule(code: str) -> type[Rule] | None:
    """Returns the rule with this code from the rule files loaded so far; None if there is none."""
    return next((rule for rules in _of_files.values() for rule in rules if rule.code == code), None)


def file_rules(path: Path) -> tuple[type[Rule], ...]:
    """Returns the rule classes of a Python file, which is executed on the first call.

    Raises RuleError for a file that cannot be executed or has no rule, and for a code that does not begin with Z.
    """
    place = path.resolve()
    if place in _of_files:
        return _of_files[place]
    name = f"hlotext_rules_{len(_of_files)}"
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None or not place.is_file():
        raise RuleError(f"{path} is not a Python file" if place.exists() else f"{path} does not exist")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # attrs looks there for annotations
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise RuleError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    rules = tuple(
        value
        for value in vars(module).values()
        if isclass(value) and issubclass(value, Rule) and value.__module__ == name and hasattr(value, "code")
    )
    if not rules:
        raise RuleError(f"{path} holds no subclass of hlotext.lint.Rule")
    for rule in rules:
        if not rule.code.startswith(OWN):
            raise RuleError(
                f"rule {rule.__name__} of {path} needs a code that begins with {OWN}, not {rule.code}"
            )
    _of_files[place] = rules
    return rules
