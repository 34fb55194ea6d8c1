"""The option and the fixture with which tests compare with golden files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import support

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
