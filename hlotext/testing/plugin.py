"""The pytest plugin: the fixture `hlo`, the option `--hlo-update-snapshots`, and failures that show the instructions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hlotext import testing

if TYPE_CHECKING:
    from hlotext.testing.assertions import Hlo

OPTION = "--hlo-update-snapshots"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the command-line option of the plugin."""
    group = parser.getgroup("hlotext")
    group.addoption(OPTION, action="store_true", help="write HLO snapshots instead of comparing with them")


@pytest.fixture
def hlo(request: pytest.FixtureRequest) -> Callable[..., Hlo]:
    """`hlo(compiled)`: questions about a jax Lowered or Compiled, text, a path or a module; see `hlotext.testing.Hlo`."""
    # Nothing of hlotext is loaded for tests that do not ask for it.
    test_file, update = Path(request.node.path), bool(request.config.getoption(OPTION))
    taken: dict[str, int] = {}

    class _WithSnapshots(testing.Hlo):
        def assert_matches_snapshot(self, name: str = "") -> None:
            taken[name] = taken.get(name, 0) + 1
            file = testing.snapshot.file_name(request.node.name, name, taken[name])
            testing.snapshot.check_snapshot(
                test_file.parent / testing.snapshot.FOLDER / test_file.stem / file,
                self.canonical_text(),
                update=update,
            )

    _WithSnapshots.__name__ = _WithSnapshots.__qualname__ = (
        testing.Hlo.__name__
    )  # as messages of Python show it

    def inspect(value: Any, mesh: Any = None) -> Hlo:
        return _WithSnapshots(testing.module_of(value), mesh, testing.reading.beside(value))

    return _Fixture(inspect)


class _Fixture:
    """The function that the fixture is; a question that is asked of it is answered with the call."""

    def __init__(self, inspect: Callable[..., Hlo]) -> None:
        self._inspect = inspect
        inspect.__qualname__ = "hlo"  # as Python's messages name it

    def __call__(self, *arguments: Any, **named: Any) -> Hlo:
        return self._inspect(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"the fixture hlo has no attribute {name!r}")
        if hasattr(testing.Hlo, name):
            raise AttributeError(f"the fixture hlo is a function; ask what it returns: hlo(compiled).{name}")
        raise AttributeError(
            f"the fixture hlo is a function and has no attribute {name!r}; call it: hlo(compiled)"
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the op lines of findings to the report of a failed `assert not findings`, which pytest would truncate."""
    inspected = sys.modules.get("hlotext.testing.assertions")
    if call.when == "setup" and inspected is not None:
        inspected.last_tested = None  # type: ignore[attr-defined]
    report = yield
    found = getattr(inspected, "last_tested", None)
    is_failed = (
        call.when == "call" and call.excinfo is not None and call.excinfo.errisinstance(AssertionError)
    )
    if is_failed and found:
        report.sections.append((f"hlotext: {found!r}", "\n".join(found.explain())))
    return report


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explains a number or list of instructions in a failed comparison."""
    for side in (left, right):
        explain = getattr(side, "explain", None)
        if explain is not None and type(side).__module__ == "hlotext.testing.assertions":
            size = int(side) if isinstance(side, int) else len(side)  # type: ignore[arg-type]
            shown = [f"{_short(left)} {op} {_short(right)}", f"{size} in the module:", *explain()]
            return shown if size else shown[:1]
    return None


def _short(value: object) -> str:
    if isinstance(value, int):
        return int.__repr__(value)
    if type(value).__module__ == "hlotext.testing.assertions":
        return type(value).__name__.lower()
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
