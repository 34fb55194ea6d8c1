"""Shortcuts for buffers that are shared or given away, in the form in which XLA writes them."""

from __future__ import annotations

import re

from hlotext.ir.values.aliasing import (
    BufferDonor,
    BufferDonorConfig,
    InputOutputAlias,
    InputOutputAliasConfig,
    OutputOperandAlias,
    OutputToOperandAliasing,
)
from hlotext.ir.values.enums import AliasKind
from hlotext.syntax.fast.shortcuts.plain import exact, numbers
from hlotext.syntax.language.words import integer

_INDEX = r"\{((?:[0-9]{1,9}(?:,[0-9]{1,9})*)?)\}"
_ALIAS = re.compile(rf"({_INDEX}: \(([0-9]{{1,9}}), {_INDEX}, (may-alias|must-alias)\))")


def input_output_alias(text: str) -> InputOutputAliasConfig | None:
    """Parses `{ {0}: (0, {}, may-alias), {1}: (1, {2}, must-alias) }`; None if the grammar must."""
    pieces = _ALIAS.findall(text)
    if text != f"{{ {', '.join([piece for piece, *_ in pieces])} }}":
        return None
    return InputOutputAliasConfig(
        tuple(
            InputOutputAlias(numbers(out), int(number), numbers(index), _ALIAS_KINDS[kind])
            for _, out, number, index, kind in pieces
        )
    )


_ALIAS_KINDS = {str(kind): kind for kind in AliasKind}


_OPERAND_ALIAS = re.compile(r"\{([0-9,]*+)\}: \(([0-9]++), \{([0-9,]*+)\}\)")


@exact
def output_to_operand_aliasing(text: str) -> OutputToOperandAliasing | None:
    """Parses `{{0}: (0, {}), {1}: (2, {0})}`; None if the grammar must."""
    found = _OPERAND_ALIAS.findall(text)
    return OutputToOperandAliasing(
        tuple(
            OutputOperandAlias(numbers(out), integer(number), numbers(index)) for out, number, index in found
        )
    )


_DONOR = re.compile(r"\(([0-9]++), \{([0-9,]*+)\}\)")


@exact
def buffer_donor(text: str) -> BufferDonorConfig | None:
    """Parses `{ (0, {}), (1, {0}) }`; None if the grammar must."""
    found = _DONOR.findall(text)
    return BufferDonorConfig(tuple(BufferDonor(integer(number), numbers(index)) for number, index in found))
