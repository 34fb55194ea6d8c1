"""Every code that a finding may have: of the readers, the verifier and the rules."""

from __future__ import annotations

from hlotext.findings.codes import Code
from hlotext.findings.errors import Severity
from hlotext.findings.failures import FAILED, INTERNAL
from hlotext.lint.registry import all_rules, current_code, loaded_rule
from hlotext.syntax.source.codes import RULES as SYNTAX_CODES
from hlotext.verify.codes import CODES as VERIFY_CODES

__all__ = ["INTERNAL", "code_of", "every_code"]


def every_code() -> dict[str, Code]:
    """Returns all documented codes by name: X, V, then those of lint rules, including plugins.

    Raises RuleError if a plugin rule cannot be used.
    """
    failed = {INTERNAL: FAILED}
    return {
        **SYNTAX_CODES,
        **failed,
        **VERIFY_CODES,
        **{code: rule.described() for code, rule in all_rules().items()},
    }


def code_names() -> tuple[str, ...]:
    """Returns the names of `every_code`."""
    return (*SYNTAX_CODES, INTERNAL, *VERIFY_CODES, *all_rules())


def code_of(name: str) -> Code:
    """Returns the description of a code: severity, title and page. Codes of earlier releases are replaced.

    An unknown code is returned as an error whose title is the code. Raises RuleError if a plugin rule cannot be used.
    """
    name = current_code(name)
    if (rule := all_rules().get(name) or loaded_rule(name)) is not None:
        return rule.described()
    return (
        SYNTAX_CODES.get(name)
        or {INTERNAL: FAILED}.get(name)
        or VERIFY_CODES.get(name)
        or _Plain(name, Severity.ERROR, name)
    )


class _Plain(Code):
    """A code without a page."""

    def page(self) -> str:
        return f"# {self.name}: {self.title}\n"
