"""FileCheck-style checks of a module's text, by the package `filecheck`."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from hlotext.ir.files import write_text


def check_text(text: str, checks: str) -> None:
    """Raises AssertionError, with FileCheck's report, where the text does not fit the check lines."""
    from filecheck.matcher import Matcher
    from filecheck.options import Options

    with tempfile.TemporaryDirectory() as folder:
        expected, actual = Path(folder, "checks.txt"), Path(folder, "module.hlo")
        write_text(expected, checks + "\n")
        write_text(actual, text)
        report = io.StringIO()
        with contextlib.redirect_stderr(report), contextlib.redirect_stdout(report):
            status = Matcher.from_opts(Options(str(expected), str(actual))).run()
    if status:
        raise AssertionError(f"the module does not match the checks:\n{report.getvalue().strip()}")
