"""Files of rules: TOML with a table for each rule, its text, and an example on which it fires.

```toml
[double-negation]
rule = "negate(negate($x)) => $x"
example = '''
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] negate(x)
  ROOT z = f32[4] negate(y)
}'''
```
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import attrs

from hlotext.ir import toml
from hlotext.ir.nodes.module import Module
from hlotext.matchers.pattern import PatternError
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.rules import RewriteRule
from hlotext.rewrite.kit.text_rules import rule
from hlotext.rewrite.passes.base import Pass, PassResult


class RuleFileError(ValueError):
    """Raised for an invalid rule file. The message gives the file and line."""


@attrs.frozen
class FileRule:
    """A rewrite rule loaded from a file, with its line and its example."""

    rule: RewriteRule
    line: int
    """Line of the rule's table in the file."""
    example: str = ""
    """A module on which the rule fires; empty if none is given."""


@attrs.frozen
class ApplyRules(Pass):
    """A pass that applies rewrite rules until none matches."""

    name: ClassVar[str] = "rules"
    summary: ClassVar[str] = "Applies the given rewrite rules."
    preserves_results: ClassVar[bool] = False

    rules: tuple[RewriteRule, ...] = ()

    def run(self, module: Module) -> PassResult:
        """Applies the rules to a module until none matches. Raises RewriteError if they do not terminate."""
        return PassResult.of(apply_rules(module, self.rules))

    def __str__(self) -> str:
        return self.name


def read_rules(text: str, name: str = "rules.toml") -> tuple[FileRule, ...]:
    """Parses rewrite rules in TOML text, in order. Raises RuleFileError, with file and line, if it is invalid.

    >>> [one.rule.name for one in read_rules('[twice]\\nrule = "add($x, $x) => multiply($x, 2)"')]
    ['twice']
    >>> read_rules('[twice]\\nrule = "add($x, x) => $x"', "r.toml")
    Traceback (most recent call last):
    hlotext.rewrite.rule_files.RuleFileError: r.toml:2: twice: column 9: there is no opcode x: write $x for any operand
    """
    try:
        tables = toml.loads(text)
    except toml.TomlError as error:
        raise RuleFileError(
            f'{name} is not valid TOML: {error}; a rule is a table [NAME] with rule = "add($x, 0) => $x"'
        ) from None
    found = []
    for key, table in tables.items():
        line = _line(text, key)
        if not isinstance(table, dict) or not isinstance(table.get("rule"), str):
            raise RuleFileError(f'{name}:{line}: {key} needs rule = "PATTERN => REPLACEMENT"')
        unknown = sorted(set(table) - {"rule", "example"})
        if unknown or not isinstance(table.get("example", ""), str):
            raise RuleFileError(
                f"{name}:{line}: {key} takes the strings rule and example, not {', '.join(unknown) or 'this'}"
            )
        try:
            found.append(FileRule(rule(table["rule"], key), line, table.get("example", "")))
        except PatternError as error:
            raise RuleFileError(f"{name}:{_line_of_rule(text, line)}: {key}: {error}") from None
    if not found:
        raise RuleFileError(f"{name}: no rules")
    return tuple(found)


def load_rules(path: str | Path) -> tuple[FileRule, ...]:
    """Loads the rewrite rules of a file. Raises RuleFileError if it is invalid, and OSError if it cannot be read."""
    data = Path(path).read_bytes()
    try:
        return read_rules(data.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise RuleFileError(f"{path} is not valid TOML: {error}") from None


def as_pass(rules: Sequence[FileRule]) -> Pass:
    """Returns a pass that applies the rules of a file."""
    return ApplyRules(tuple(one.rule for one in rules))


def _line(text: str, key: str) -> int:
    """The line of a table's head."""
    head = re.search(rf"""^\s*\[\s*["']?{re.escape(key)}["']?\s*\]""", text, re.M)
    return text.count("\n", 0, head.end()) + 1 if head is not None else 1


def _line_of_rule(text: str, line: int) -> int:
    """The line of `rule =` behind a table's head."""
    for number, one in enumerate(text.splitlines()[line - 1 :], line):
        if re.match(r"\s*rule\s*=", one):
            return number
    return line
