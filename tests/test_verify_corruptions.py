"""Corrupted real modules: the verifier finds nearly every corruption, where it is, and what it does not find cannot be found.

`HLOTEXT_CORRUPTIONS=20000 pytest tests/test_verify_corruptions.py -s` tries more of them, and lists what was not found.
"""

from __future__ import annotations

import functools
import os
import random
import re
from collections import Counter

import attrs
import pytest

import hlotext as hlo
from hlotext.ir.nodes.instruction import Instruction
from tests import support
from tests.corruptions import KINDS, Corruption, corrupt, near
from tests.corruptions.base import mixes_precisions

COUNT = int(os.environ.get("HLOTEXT_CORRUPTIONS", "2000"))
SEED = 20260701
LARGEST = 120_000
"""Characters of the largest module that is corrupted: reading it again costs less than a tenth of a second."""

_ANY = "*"
UNDETECTABLE: dict[tuple[str, str], str] = {
    (_ANY, "custom-call"): "only the target knows what it takes and gives",
    ("element_type", "dot"): "a dot sums in whatever type it states",
    (
        "element_type",
        "convert",
    ): "a convert gives any type, and its user is another one, which takes any type",
    ("float_width", "convert"): "a convert gives any type, and its user is another one, which takes any type",
    ("other_operand", "bitcast"): "another value of as many bytes in memory",
    ("other_operand", "bitcast-convert"): "another value of as many bytes",
    ("other_operand", "convert"): "a convert takes any type",
    ("other_operand", "slice"): "the range lies inside the other operand too, and gives the same shape",
    ("swapped", "concatenate"): "the sizes along the joined dimension add up in any order",
    ("swapped", "convolution"): "both operands fit the dimension labels and the window either way",
    ("swapped", "dot"): "both operands fit the dimension numbers either way, and the result has one shape",
    ("swapped", "scaled-dot"): "both scales fit both operands",
}
"""Why a corruption of a kind and an opcode may be no error at all: the text is then another right module."""

_STATES = ("async-start", "collective-permute-start")
_SHAPE_KINDS = ("dimension", "element_type", "rank", "tuple_element")


@attrs.frozen
class Miss:
    """A corruption that was not found where it is."""

    corruption: Corruption
    path: str
    mixes: bool
    """Whether the module may mix precisions."""

    def reason(self) -> str:
        """Why it cannot be found; empty if it could."""
        instruction, kind = self.corruption.instruction, self.corruption.kind
        if instruction is None:
            return ""
        known = UNDETECTABLE.get((kind, instruction.opcode)) or UNDETECTABLE.get((_ANY, instruction.opcode))
        if known:
            return known
        if instruction.opcode in _STATES and kind in _SHAPE_KINDS:
            return "what a start keeps besides operands and result is the backend's own"
        if self.mixes and kind in ("element_type", "other_operand", "swapped"):
            return "this module may mix precisions, as the TPU compiler does"
        callers = _callers(instruction)
        if callers and all(caller.opcode == "custom-call" for caller in callers):
            return "only custom calls call this computation, and only they know what it takes"
        users = instruction.users
        if users and all(user.opcode == "custom-call" for user in users):
            return "only custom calls use it, and the operation gives any such shape"
        return ""


def _callers(instruction: Instruction) -> tuple[Instruction, ...]:
    return instruction.computation.callers if instruction.computation is not None else ()


@functools.cache
def _modules() -> list[tuple[str, str]]:
    """Name and text of the real modules that are not too large."""
    paths = support.corpus_files(("cpu", "gpu", "tpu"))
    texts = [(support.corpus_id(path), support.read_text(path).decode()) for path in paths]
    return [(name, text) for name, text in texts if len(text) <= LARGEST]


def _is_found(text: str, corruption: Corruption, names: set[str]) -> bool:
    """Whether an error or a warning stands at the corrupted instruction, at a user of it, or beside the header."""
    result = hlo.parse_tolerant(text)
    found = [d for d in result.diagnostics if d.severity is not hlo.Severity.NOTE]
    found = found or [d for d in hlo.verify(result.module) if d.severity is not hlo.Severity.NOTE]
    if corruption.instruction is None:
        return bool(found)
    pattern = re.compile(rf"^\s*(?:ROOT )?%?(?:{'|'.join(map(re.escape, names))}) = ", re.MULTILINE)
    lines = {text.count("\n", 0, match.end()) + 1 for match in pattern.finditer(text)}
    return any(
        not lines.isdisjoint({d.line, *(span.line for _, span in d.related)})
        or (d.instruction is not None and d.instruction.name in names)
        for d in found
    )


@pytest.mark.slow
def test_corruptions_are_found() -> None:
    """At least 98% of them at the corrupted instruction or a direct user; the others are right modules."""
    chance = random.Random(SEED)
    kinds: Counter[str] = Counter()
    misses: list[Miss] = []
    while kinds.total() < COUNT:
        name, text = chance.choice(_modules())
        module = hlo.parse(text)
        mixes = mixes_precisions(module)
        corruption = corrupt(module, chance.choice(list(KINDS)), chance)
        if corruption is None:
            continue
        kinds[corruption.kind] += 1
        if not _is_found(str(module), corruption, {instruction.name for instruction in near(corruption)}):
            misses.append(Miss(corruption, name, mixes))
    report = [f"{m.path}: {m.corruption.kind}: {m.corruption.what}: {m.reason() or '?'}" for m in misses]
    print(
        f"{COUNT - len(misses)} of {COUNT} corruptions of {len(kinds)} kinds found; not found:",
        *report,
        sep="\n",
    )
    assert kinds.keys() == KINDS.keys()
    assert [line for line in report if line.endswith(": ?")] == []
    assert len(misses) <= 0.02 * COUNT


def test_a_corruption_is_seen_by_the_test() -> None:
    """The test's own means: without a corruption nothing counts as found."""
    for _, text in _modules()[:5]:
        module = hlo.parse(text)
        root = module.entry.root
        assert not _is_found(text, Corruption("none", "nothing", root), {root.name})
