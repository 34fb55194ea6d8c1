"""Shortcuts for the values that differ on nearly every line: the same objects that the grammar would give, sooner.

Each returns None for a text that is not of the usual form; then the grammar reads it. Tests compare both on the corpus.
They and the values that they make are imported when the first attribute of their kind is read.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from hlotext.syntax.errors import TermError

FAST_RULES: dict[str, str] = {
    "algorithm": "fast_words:algorithm",
    "backend_config": "fast_notes:backend_config",
    "bool_or_list": "fast_plain:bool_or_list",
    "boolean": "fast_plain:boolean",
    "buffer_donor": "fast_aliases:buffer_donor",
    "comparison_direction": "fast_words:comparison_direction",
    "comparison_type": "fast_words:comparison_type",
    "computation_layout": "fast_shapes:fast_computation_layout",
    "custom_call_api_version": "fast_words:custom_call_api_version",
    "custom_call_schedule": "fast_words:custom_call_schedule",
    "dim_labels": "fast_convolutions:dim_labels",
    "fft_type": "fast_words:fft_type",
    "frontend_attributes": "fast_notes:frontend_attributes",
    "fusion_kind": "fast_words:fusion_kind",
    "input_output_alias": "fast_aliases:input_output_alias",
    "int_list": "fast_plain:int_list",
    "integer": "fast_plain:integer",
    "metadata": "fast_notes:metadata",
    "number": "fast_plain:number",
    "operand_precision": "fast_words:operand_precision",
    "output_to_operand_aliasing": "fast_aliases:output_to_operand_aliasing",
    "padding": "fast_windows:padding",
    "random_distribution": "fast_words:random_distribution",
    "replica_groups": "fast_devices:replica_groups",
    "shape": "fast_shapes:fast_shape",
    "shape_list": "fast_shapes:shape_list",
    "sharding": "fast_devices:sharding",
    "slice_dimensions": "fast_windows:slice_dimensions",
    "slice_sizes": "fast_plain:int_list",
    "source_target_pairs": "fast_devices:source_target_pairs",
    "string": "fast_plain:string",
    "transpose_a": "fast_words:transpose_a",
    "window": "fast_windows:window",
}
"""Shortcuts by the grammar's rule: module of this package and function."""


@functools.cache
def shortcut(rule: str) -> Callable[[str], Any] | None:
    """The shortcut for a rule; None where there is none."""
    if rule not in FAST_RULES:
        return None
    module, _, function = FAST_RULES[rule].partition(":")
    found: Callable[[str], Any] = getattr(importlib.import_module(f"hlotext.syntax.{module}"), function)
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
    from hlotext.syntax import terms  # most texts do not need the grammar

    return terms.read(rule, text)
