"""Values of the rules in header.lark."""

from __future__ import annotations

import re
from typing import Any

from hlotext.ir.values.aliasing import (
    BufferDonor,
    BufferDonorConfig,
    InputOutputAlias,
    InputOutputAliasConfig,
)
from hlotext.ir.values.enums import AliasKind, DebugLogMode
from hlotext.ir.values.module_attributes import (
    DebugAttribute,
    DebugAttributes,
    DebugEntry,
    RecoveryEntry,
    RecoveryTable,
)
from hlotext.ir.values.original_value import OriginalArray
from hlotext.ir.values.shape import ComputationLayout
from hlotext.syntax.language.words import integer
from hlotext.syntax.reading.builders.values import Children, Field, name_of, one_of, unique_fields, unquote_at

_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*"')
"""A quote that no backslash escapes."""


class HeaderBuilder:
    """Builds the values of the rules in header.lark."""

    def input_output_alias(self, children: Children) -> InputOutputAliasConfig:
        return InputOutputAliasConfig(tuple(child for child in children if child is not None))

    def output_alias(self, children: Children) -> InputOutputAlias:
        output_index, parameter, index, kind = children
        member = AliasKind.MAY if kind is None else AliasKind(one_of(kind, AliasKind, "an alias's kind"))
        return InputOutputAlias(output_index, integer(parameter), index, member)

    def buffer_donor(self, children: Children) -> BufferDonorConfig:
        return BufferDonorConfig(tuple(child for child in children if child is not None))

    def donor(self, children: Children) -> BufferDonor:
        return BufferDonor(integer(children[0]), children[1])

    def computation_layout(self, children: Children) -> ComputationLayout:
        *parameters, result = children
        return ComputationLayout(tuple(shape for shape in parameters if shape is not None), result)

    def recovery_table(self, children: Children) -> RecoveryTable:
        return RecoveryTable(tuple(children))

    def recovery_entry(self, children: Children) -> RecoveryEntry:
        old, new, token = children
        text, is_raw = None, False
        if token is not None:
            is_raw = token.type == "RECOVERY_MODULE" and bool(_QUOTE.search(token, 1, len(token) - 1))
            text = str(token[1:-1]) if is_raw else unquote_at(token)
        # XLA reads an empty pair of braces as an array without a name.
        return RecoveryEntry(old or OriginalArray(""), new or OriginalArray(""), text, is_raw)

    def debug_attributes(self, children: Children) -> DebugAttributes:
        return DebugAttributes(tuple(child for child in children if child is not None))

    def debug_entry(self, children: Children) -> DebugEntry:
        array, *attributes = children
        return DebugEntry(
            array or OriginalArray(""), tuple(child for child in attributes if child is not None)
        )

    def debug_attribute(self, children: Children) -> DebugAttribute:
        return DebugAttribute(
            **unique_fields([child for child in children if child is not None], "debug attribute")
        )

    def debug_field(self, children: Children) -> Field:
        name, token = children
        value: Any
        if name == "log_mode=":
            value = one_of(token, DebugLogMode, "log_mode")
        else:
            value = token == "true" if name == "partitioned=" else integer(token)
        return Field(name_of(name), value, name)
