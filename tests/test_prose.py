"""Documentation in the field's words: patterns that are avoided may only become fewer."""

from __future__ import annotations

import tomllib

from tests import prose
from tests.support import DATA


def test_docstrings_that_begin_as_a_question_become_fewer() -> None:
    """A docstring names the thing or the action. `python -m tests.prose PACKAGE` prints those that do not.

    The recorded counts may only be lowered (`python -m tests.prose > tests/data/prose.toml`).
    """
    recorded = tomllib.loads((DATA / "prose.toml").read_text("utf-8"))
    counts = prose.counts()
    assert {package: count for package, count in counts.items() if count > recorded.get(package, 0)} == {}
