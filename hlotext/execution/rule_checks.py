"""Rules of a file, each tried on its own example."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

import hlotext
from hlotext.execution.client import expect_jax
from hlotext.execution.equivalence import TOLERANCE, largest_difference
from hlotext.execution.errors import NotExecutable
from hlotext.findings.errors import HloSyntaxError, Severity
from hlotext.ir.errors import EditError
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.drivers import RewriteError
from hlotext.rewrite.rule_files import FileRule
from hlotext.verify import verify


@attrs.frozen
class RuleCheck:
    """Outcome of checking a rewrite rule on its example, from `check_rules`."""

    name: str
    line: int
    problem: str = ""
    """Problem found; empty if the rule fires on its example and preserves the results."""
    fired: int = 0


def check_rules(rules: Iterable[FileRule], *, timeout: float = 120.0) -> Iterator[RuleCheck]:
    """Runs each rule on its example, and yields its outcome: it must fire, leave a valid module, and preserve results on CPU.

    Args:
        rules: Rules of a file, as `load_rules` returns them.
        timeout: Seconds allowed for compiling and executing one example.

    Raises:
        NotExecutable: jax or jaxlib is not installed. An example that cannot be executed is a `RuleCheck.problem`.
    """
    expect_jax()
    for one in rules:
        problem, fired = _checked(one, timeout)
        yield RuleCheck(one.rule.name, one.line, problem, fired)


def _checked(one: FileRule, timeout: float) -> tuple[str, int]:
    if not one.example:
        return "it has no example", 0
    try:
        before = hlotext.parse(one.example)
    except HloSyntaxError as error:
        return f"its example cannot be read: {error.message}", 0
    wrong = [finding for finding in verify(before) if finding.severity is Severity.ERROR]
    if wrong:
        return f"its example is not a valid module: {wrong[0].code} {wrong[0].message}", 0
    after = before.clone()
    try:
        fired = apply_rules(after, [one.rule], on_refused="raise").get(one.rule.name, 0)
    except (EditError, RewriteError) as error:
        return f"it is rejected on its example: {error}", 0
    if not fired:
        return "it does not match its example: " + _why_not(one, before), 0
    wrong = [finding for finding in verify(after) if finding.severity is Severity.ERROR]
    if wrong:
        return f"its result is ill-formed: {wrong[0].code} {wrong[0].message}", fired
    try:
        far = largest_difference(before, after, timeout=timeout)
    except NotExecutable as error:
        return f"its example cannot be executed: {error}", fired
    if far > TOLERANCE:
        return f"it changes the result: the largest relative difference is {far:.2g}", fired
    return "", fired


def _why_not(one: FileRule, module: hlotext.Module) -> str:
    """The reason of the root, or of the first instruction of the pattern's opcode."""
    opcode = one.rule.pattern.opcode
    found = next((i for i in module.instructions() if i.opcode == opcode), module.entry.root)
    return one.rule.pattern.explain(found) or "nothing matches"
