"""A pytest plugin that notes which tests run the lines of mutants: `python -m tests.mutants` loads it. Python 3.12 or newer.

Only the functions that hold a mutant are watched, so that a run takes little longer than one without it.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.mutants import sites

WANTED, OUTPUT = "HLOTEXT_MUTANTS", "HLOTEXT_MUTANTS_MAP"
_TOOL = 4


class Recorder:
    """Which tests run which lines, and how long each test takes."""

    def __init__(self, wanted: dict[str, set[int]], output: Path) -> None:
        self.wanted = wanted
        self.output = output
        self.test = ""
        self.tests: dict[str, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = defaultdict(float)
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - mypy checks for 3.11, which lacks it
        self.disable = monitoring.DISABLE
        self.monitoring = monitoring
        monitoring.use_tool_id(_TOOL, "mutants")
        monitoring.register_callback(_TOOL, monitoring.events.PY_START, self.started)
        monitoring.register_callback(_TOOL, monitoring.events.LINE, self.ran)
        monitoring.set_events(_TOOL, monitoring.events.PY_START)

    def started(self, code: CodeType, offset: int) -> object:
        """Watches the lines of a function with mutants, when it is called for the first time."""
        lines = self.wanted.get(code.co_filename)
        if lines and not lines.isdisjoint(line for _, _, line in code.co_lines()):
            self.monitoring.set_local_events(_TOOL, code, self.monitoring.events.LINE)
        return self.disable

    def ran(self, code: CodeType, line: int) -> object:
        if line not in self.wanted[code.co_filename]:
            return self.disable
        self.tests[f"{code.co_filename}:{line}"].add(self.test)
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test = item.nodeid
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        worker = os.environ.get("PYTEST_XDIST_WORKER")
        if worker or not session.config.getoption("numprocesses", None):
            found = {place: sorted(tests - {""}) for place, tests in self.tests.items()}
            text = json.dumps({"tests": found, "seconds": self.seconds})
            self.output.with_suffix(f".{worker or 'main'}.json").write_text(text)


def pytest_configure(config: pytest.Config) -> None:
    wanted: dict[str, set[int]] = defaultdict(set)
    for mutant in sites.read(json.loads(Path(os.environ[WANTED]).read_text())):
        wanted[str(sites.PACKAGE / mutant.path)].update(mutant.lines)
    config.pluginmanager.register(Recorder(wanted, Path(os.environ[OUTPUT])))
