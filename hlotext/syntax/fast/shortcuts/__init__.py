"""Shortcuts for the values that differ on nearly every line: the same objects that the grammar would give, sooner.

Each returns None for a text that is not of the usual form; then the grammar reads it. Tests compare both on the corpus.
They and the values that they make are imported when the first attribute of their kind is read.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from hlotext.findings.errors import TermError
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


@functools.cache
def shortcut(rule: str) -> Callable[[str], Any] | None:
    """The shortcut for a rule; None where there is none."""
    if rule not in FAST_RULES:
        return None
    module, _, function = FAST_RULES[rule].partition(":")
    found: Callable[[str], Any] = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return found


def read(rule: str, text: str) -> Any:
    """The value of a text by the shortcut for its rule, else by the grammar. Raises TermError."""
    fast = shortcut(rule)
    if fast is not None:
        try:
            value = fast(text)
        except TermError:  # the grammar says where
            value = None
        if value is not None:
            return value
    return reading.terms.read(rule, text)
