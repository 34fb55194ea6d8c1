"""Attributes of modules that XLA wrote: every typed value prints the text that it was read from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from tests import support
from tests.attribute_cases import canonical, text_of

WRITTEN_BY_XLA = support.corpus_files(("cpu", "gpu", "tpu"))


def attributes(module: hlo.Module) -> Iterator[tuple[str, Any]]:
    """Name and value of every attribute but those that are nodes."""
    yield from module.attributes.items()
    for instruction in module.instructions():
        for name, value in instruction.attributes.items():
            first = value[0] if isinstance(value, tuple) and value else value
            if not isinstance(first, (Computation, Instruction)):
                yield name, value


@pytest.mark.parametrize("path", WRITTEN_BY_XLA, ids=support.corpus_id)
def test_values_print_what_was_read(path: Path) -> None:
    """The text of each value stands in the file, and XLA's canonical form is the value itself."""
    text = support.read_text(path).decode("utf-8", "surrogateescape")
    printed = set()
    for name, value in attributes(hlo.parse(text)):
        assert value == canonical(value)
        printed.add(text_of(name, value))
    assert [attribute for attribute in printed if attribute not in text] == []
