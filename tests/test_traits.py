"""Traits of opcodes: one row of the opcode table tells all that packages ask."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections import Counter

import pytest

import hlotext as hlo
from hlotext.diff.node_matching import _agrees as agrees
from hlotext.ir.nodes.effects import has_side_effect
from hlotext.ir.tables import traits
from hlotext.semantics.forwarded_layouts import KEEP_LAYOUT
from tests import opcode_sets
from tests.support import DATA, ROOT


def test_sets_over_traits_have_the_recorded_opcodes() -> None:
    """A set that became an expression over traits has the opcodes that it listed before."""
    assert opcode_sets.differences() == []


EFFECTS = (
    ("f32[4] all-reduce(x), replica_groups={}, to_apply=s", 1, False),
    ("f32[4] all-reduce(x), channel_id=1, replica_groups={}, to_apply=s", 1, True),
    ("f32[4] all-reduce(x), channel_id=1, replica_groups={}, to_apply=s", 2, False),
    ("f32[4] all-reduce(x), replica_groups={}, constrain_layout=true, to_apply=s", 2, True),
    ("f32[4] all-reduce-done(x)", 2, True),
    ("f32[4] collective-permute(x), channel_id=1, source_target_pairs={{0,1}}", 1, True),
    ("f32[4] collective-broadcast(x), replica_groups={{0,1}}", 2, True),
    ("f32[4] collective-reduce(x), channel_id=1, replica_groups={}, to_apply=s", 1, False),
    ('f32[4] custom-call(x), custom_call_target="t"', 1, False),
    ('f32[4] custom-call(x), custom_call_target="t", custom_call_has_side_effect=true', 1, True),
    ("f32[4] copy-done(x)", 1, False),
    ("f32[4] negate(x)", 1, False),
    ("f32[4] of-another-release(x)", 1, True),
)


@pytest.mark.parametrize(("line", "partitions", "expected"), EFFECTS)
def test_side_effects_are_those_of_xla(line: str, partitions: int, expected: bool) -> None:
    """`HloInstruction::HasSideEffectNoRecurse`; a channel counts where the program is not partitioned."""
    module = hlo.parse(
        f"HloModule m, num_partitions={partitions}\n"
        "s { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
        f"ENTRY e {{ x = f32[4] parameter(0)  ROOT y = {line} }}"
    )
    assert has_side_effect(module.entry.root) is expected


def test_a_new_collective_is_one_row() -> None:
    """Effects, wire bytes, checks, asynchronous pairs and dead code elimination follow from the row alone."""
    answers = json.loads(
        subprocess.run(
            [sys.executable, "-m", "tests.new_collective"],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
        ).stdout
    )
    assert answers == {
        "effects": [True, False, False],
        "wire_bytes": [600, 600, 600],
        "latency_steps": 6,
        "verify": [],
        "verify wrong": ["V105"],
        "asynchronous": ["async-done", "async-start", "parameter"],
        "after dce": ["x", "unused", "y"],
    }


def test_a_respelled_attribute_is_one_word_in_its_row() -> None:
    """It is read under both names by both readers, counted alike, and printed as its source has it."""
    answers = subprocess.run(
        [sys.executable, "-m", "tests.respelled_attribute"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout
    assert json.loads(answers) == [[8, 30976, 1, 1]] * 4


def test_literal_sets_of_opcodes_are_listed() -> None:
    """A set of three or more opcodes is an expression over `hlotext.ir.tables.traits`, or listed with its reason.

    The list may only shrink: lower its counts when sets go.
    """
    counts = Counter(one.module for one in opcode_sets.literal_sets() if not one.is_table)
    listed = tomllib.loads((DATA / "opcode_literals.toml").read_text("utf-8"))
    allowed = {module: row["count"] for module, row in listed.items()}
    assert {module: count for module, count in counts.items() if count > allowed.get(module, 0)} == {}
    assert all(row["why"] for row in listed.values())


def test_sets_of_opcodes_name_opcodes() -> None:
    """The optimization barrier is `opt-barrier` in text: three sets had another word, which nothing matched."""
    assert [
        (module, word) for module, _, word in opcode_sets.unknown_words() if word not in OF_OTHER_TEXTS
    ] == []


OF_OTHER_TEXTS = {"custom-fusion"}
"""Words of texts that are not XLA's, and that sets name beside opcodes."""


def test_elementwise_functions_keep_the_layout() -> None:
    """Newer ones too (`exp2`, `log2`); XLA's own list lacks `atan`."""
    assert traits.ELEMENTWISE - {"atan"} <= KEEP_LAYOUT


def test_called_computations_are_no_difference_of_attributes() -> None:
    """Those of select-and-scatter belong to their modules as all others do."""
    text = (
        "ge { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=GE }\n"
        "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
        "ENTRY e { x = f32[4] parameter(0)  s = f32[2] parameter(1)  i = f32[] constant(0)\n"
        "  ROOT r = f32[4] select-and-scatter(x, s, i), window={size=2 stride=2}, select=ge, scatter=add }\n"
    )
    assert agrees(hlo.parse(text).entry.root, hlo.parse(text).entry.root)
