"""The option and the fixture with which tests compare with golden files, and how hypothesis runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests import support

# A slow machine is no failure: no example has a time limit.
settings.register_profile("hlotext", deadline=None)
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
