"""The option and the fixture with which tests compare with golden files, and how hypothesis runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests import support

# A slow machine is no failure: no example has a time limit. The same examples every time, so that a red run tells of the
# change and not of the dice; HLOTEXT_NEW_EXAMPLES=1 rolls them.
settings.register_profile("hlotext", deadline=None, derandomize="HLOTEXT_NEW_EXAMPLES" not in os.environ)
settings.load_profile("hlotext")

OPTION = "--update-goldens"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION, action="store_true", help="write golden files anew instead of comparing with them"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """`golden(path, actual)` asserts that a text is what stands in the file, or writes it there on demand."""
    update = bool(request.config.getoption(OPTION))
    return lambda path, actual: support.check_golden(path, actual, update=update)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that play a terminal play one with colours and a cursor, whatever the one is in which they run."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
