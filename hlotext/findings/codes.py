"""Codes of findings. The tables are with those who report them: readers, verifier, linter."""

from __future__ import annotations

from importlib import resources

import attrs

from hlotext.findings.errors import Severity


@attrs.frozen
class Code:
    """A kind of finding."""

    name: str
    """Such as `X101`; stable from release to release."""
    severity: Severity
    title: str
    """Short description, in one line without a full stop."""
    package: str = "hlotext.syntax"
    """The package whose folder `pages` holds its documentation."""

    def page(self) -> str:
        """Returns its documentation as Markdown: why it matters, an example, how to fix it."""
        text = resources.files(self.package).joinpath(f"pages/{self.name}.md").read_text("utf-8")
        return f"# {self.name}: {self.title}\n\nSeverity: {self.severity.value}.\n\n{text}"
