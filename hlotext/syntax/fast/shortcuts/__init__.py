"""Fast parsers for values that differ on nearly every line, with the same results as the grammar.

Each returns None for text in an unusual form, which the grammar then parses. Tests compare both on the corpus. Parsers
and value classes are imported when the first attribute of their kind is parsed.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from hlotext.findings.errors import TermError
from hlotext.ir.values.raw_value import canonical_text
from hlotext.syntax import reading

FAST_RULES: dict[str, str] = {
    "algorithm": "words:algorithm",
    "backend_config": "notes:backend_config",
    "bool_or_list": "plain:bool_or_list",
    "boolean": "plain:boolean",
    "buffer_donor": "aliases:buffer_donor",
    "comparison_direction": "words:comparison_direction",
    "comparison_order": "words:comparison_order",
    "comparison_type": "words:comparison_type",
    "computation_layout": "shapes:fast_computation_layout",
    "custom_call_api_version": "words:custom_call_api_version",
    "custom_call_schedule": "words:custom_call_schedule",
    "dim_labels": "windows:dim_labels",
    "fft_type": "words:fft_type",
    "frontend_attributes": "notes:frontend_attributes",
    "fusion_kind": "words:fusion_kind",
    "input_output_alias": "aliases:input_output_alias",
    "int_list": "plain:int_list",
    "integer": "plain:integer",
    "metadata": "notes:metadata",
    "number": "plain:number",
    "operand_precision": "words:operand_precision",
    "output_to_operand_aliasing": "aliases:output_to_operand_aliasing",
    "padding": "windows:padding",
    "random_distribution": "words:random_distribution",
    "replica_groups": "devices:replica_groups",
    "shape": "shapes:fast_shape",
    "shape_list": "shapes:shape_list",
    "sharding": "devices:sharding",
    "slice_dimensions": "windows:slice_dimensions",
    "slice_sizes": "plain:int_list",
    "source_target_pairs": "devices:source_target_pairs",
    "string": "plain:string",
    "transpose_a": "words:transpose_a",
    "window": "windows:window",
}
"""Shortcuts by the grammar's rule: module of this package and function."""

EXACT_RULES: dict[str, str] = {
    "backend_config": "notes:raw_config",
    "metadata": "notes:source_metadata",
    **{
        rule: FAST_RULES[rule]
        for rule in (
            "algorithm", "bool_or_list", "boolean", "comparison_direction", "custom_call_api_version",
            "custom_call_schedule", "fft_type", "fusion_kind", "int_list", "integer", "random_distribution",
            "slice_sizes", "transpose_a",
        )
    },
}  # fmt: skip
"""Shortcuts that take only a text that is, letter for letter, how XLA writes the value."""


@functools.cache
def shortcut(rule: str) -> Callable[[str], Any] | None:
    """The shortcut for a rule; None if there is none."""
    return _function(FAST_RULES[rule]) if rule in FAST_RULES else None


@functools.cache
def _exact(rule: str) -> Callable[[str], Any] | None:
    return _function(EXACT_RULES[rule]) if rule in EXACT_RULES else None


def _function(place: str) -> Callable[[str], Any]:
    module, _, function = place.partition(":")
    found: Callable[[str], Any] = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return found


def read_attribute(rule: str, name: str, text: str) -> tuple[Any, bool]:
    """Parses an attribute value. Returns it, and True if XLA is known to print exactly this text for it.

    Raises TermError if the text is invalid.
    """
    exact = _exact(rule)
    if exact is not None and (value := exact(text)) is not None:
        return value, True
    value = read(rule, text)
    # The text of others may be long, or none of theirs alone.
    return value, rule in FAST_RULES and _is_written(value, name, text)


def _is_written(value: Any, name: str, text: str) -> bool:
    try:
        return getattr(value, "is_printed", True) and text != '""' and canonical_text(value, name) == text
    except ValueError:  # a string with characters that no text in UTF-8 can have
        return False


def read(rule: str, text: str) -> Any:
    """Parses a text with the shortcut for a grammar rule, or else with the grammar. Raises TermError if it is invalid."""
    fast = shortcut(rule)
    if fast is not None:
        try:
            value = fast(text)
        except TermError:  # the grammar says where
            value = None
        if value is not None:
            return value
    return reading.terms.read(rule, text)
