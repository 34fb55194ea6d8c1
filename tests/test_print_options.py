"""The print options that XLA's Python interface does not have, as the differences that each makes to the default style.

Those that it has are compared with XLA itself in test_print_xla.py. What is expected here follows XLA's sources:
`HloPrintOptions` and the `PrintWithCanonicalNameMap` and `PrintExtraAttributesImpl` methods of instructions.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import hlotext as hlo
from hlotext.ir.values.print_options import SubcomputationMode
from tests import support
from tests.test_print_xla import SINGLE

FOLDER = support.DATA / "golden" / "print"
MODULE = hlo.parse((FOLDER / "module.hlo").read_text(encoding="utf-8"))

Golden = Callable[[Path, str], None]

CHANGES: dict[str, dict[str, Any]] = {
    "compact_gte": {"compact_gte": True},
    "essential_constants": {"print_only_essential_constants": True},
    "full_bodies": {"print_subcomputation_mode": SubcomputationMode.FULL_BODIES},
    "full_replica_groups": {"print_full_replica_group_list": True},
    "index_every_2": {"print_operand_index_annotation_interval": 2},
    "index_never": {"print_operand_index_annotation_interval": 0},
    "inline_frames": {"print_inline_stack_frames": True},
    "name_behind_brace": {"print_name_after_closing_brace": True},
    "no_async_sugar": {"syntax_sugar_async_ops": False},
    "no_channel_id": {"print_channel_id": False},
    "no_feed_config": {"print_infeed_outfeed_config": False},
    "no_frontend_attributes": {"print_frontend_attributes": False},
    "no_original_value": {"print_original_value": False},
    "no_parameter_number": {"print_parameter_number": False},
    "no_subcomputations": {"print_subcomputation_mode": SubcomputationMode.OFF},
    "non_sequential_bodies": {"print_subcomputation_mode": SubcomputationMode.NON_SEQUENTIAL_BODIES},
    "only_op_name": {"print_metadata_only_op_name": True},
    "sorted_backend_config": {"sort_backend_config": True},
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_an_option_changes(name: str, golden: Golden) -> None:
    """The lines that differ from the default style, with all constants."""
    full = hlo.PrintOptions(print_large_constants=True)
    before = MODULE.to_text(full).splitlines(keepends=True)
    after = MODULE.to_text(attrs.evolve(full, **CHANGES[name])).splitlines(keepends=True)
    changed = "".join(difflib.unified_diff(before, after, "default", name, n=0))
    assert changed
    golden(FOLDER / f"{name}.diff", changed)


def test_module_fingerprint(golden: Golden) -> None:
    """What XLA hashes of a whole module."""
    golden(FOLDER / "module_fingerprint.txt", MODULE.to_text(hlo.PrintOptions.module_fingerprint()))


def test_every_option_is_tested() -> None:
    """Here, or against XLA."""
    options = {field.name for field in attrs.fields(hlo.PrintOptions)}
    changed = {name for changes in CHANGES.values() for name in changes}
    assert options == changed | set(SINGLE) | {"canonicalize_instruction_names"}


def test_text_with_elements_behind_names_reads_back() -> None:
    """`compact_gte` leaves the get-tuple-elements out, and reading makes them again."""
    text = MODULE.to_text(hlo.PrintOptions(compact_gte=True, print_large_constants=True))
    again = hlo.parse(text)
    assert again.to_text(hlo.PrintOptions(compact_gte=True, print_large_constants=True)) == text
    (while_,) = (i for i in again.instructions() if i.opcode == "while")
    assert [while_.operands[0].opcode, while_.operands[0].operands[0].opcode] == ["get-tuple-element"] * 2
