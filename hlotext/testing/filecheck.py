"""FileCheck-style checks of a module's text, by the package `filecheck`."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from pathlib import Path

from hlotext.ir.files import write_text
from hlotext.ir.spelling import did_you_mean

_WORDS = (
    "CHECK",
    "CHECK-NEXT",
    "CHECK-SAME",
    "CHECK-NOT",
    "CHECK-DAG",
    "CHECK-LABEL",
    "CHECK-EMPTY",
    "CHECK-COUNT-2",
)
_KNOWN = re.compile(rf"{'|'.join(_WORDS[:-1])}|CHECK-COUNT-\d+")
_NO_DIRECTIVE = "No check strings found"
"""The message of FileCheck for checks without a directive."""
_DIRECTIVE = re.compile(r"^\W*([A-Z]+(?:-[A-Z0-9]+)*):", re.MULTILINE)
"""A word of capitals with a colon at the beginning of a line, behind marks of a comment."""


def check_text(text: str, checks: str) -> None:
    """Raises AssertionError, with FileCheck's report, if text does not match the check lines.

    Raises ValueError for a directive unknown to FileCheck, which would silently check nothing, and without any directive,
    and ImportError if the package filecheck is not installed.
    """
    for word in _DIRECTIVE.findall(checks):
        if not _KNOWN.fullmatch(word):
            meant = did_you_mean(word, _WORDS)
            if meant or word.startswith("CHECK"):
                raise ValueError(f"there is no directive {word}; {meant or 'use ' + ', '.join(_WORDS)}")
    try:
        from filecheck.matcher import Matcher
        from filecheck.options import Options
    except ModuleNotFoundError:
        raise ImportError("FileCheck lines need an extra: pip install 'hlotext[filecheck]'") from None

    with tempfile.TemporaryDirectory() as folder:
        expected, actual = Path(folder, "checks.txt"), Path(folder, "module.hlo")
        write_text(expected, checks + "\n")
        write_text(actual, text)
        report = io.StringIO()
        with contextlib.redirect_stderr(report), contextlib.redirect_stdout(report):
            status = Matcher.from_opts(Options(str(expected), str(actual))).run()
    if status and _NO_DIRECTIVE in report.getvalue():
        raise ValueError("the checks have no directive; a line is one with `CHECK: ` before its text")
    if status:
        raise AssertionError(f"the module does not match the checks:\n{report.getvalue().strip()}")
