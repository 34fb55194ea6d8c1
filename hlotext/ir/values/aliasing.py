"""Outputs that share buffers with inputs, and donated inputs."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from hlotext.ir.values.enums import AliasKind
from hlotext.ir.values.text import braced
from hlotext.ir.values.value import Value

ShapeIndex: TypeAlias = tuple[int, ...]
"""Path into a tuple shape: `(1, 0)` is element 0 of element 1; empty for the whole shape."""


@attrs.frozen(repr=False)
class InputOutputAlias(Value):
    """An output that shares a parameter's buffer: `{0}: (1, {2}, may-alias)`."""

    output_index: ShapeIndex
    parameter_number: int
    parameter_index: ShapeIndex = ()
    kind: AliasKind = AliasKind.MAY

    def __str__(self) -> str:
        source = f"({self.parameter_number}, {braced(self.parameter_index)}, {self.kind})"
        return f"{braced(self.output_index)}: {source}"


@attrs.frozen(repr=False)
class InputOutputAliasConfig(Value):
    """`input_output_alias=` of a module (`HloInputOutputAliasConfig`): `{ {}: (0, {}, may-alias) }`."""

    entries: tuple[InputOutputAlias, ...] = ()

    def canonical(self) -> InputOutputAliasConfig:
        """Returns the entries sorted by output index, as XLA prints them, keeping the first entry of each output."""
        entries = {entry.output_index: entry for entry in reversed(self.entries)}
        return InputOutputAliasConfig(tuple(entries[index] for index in sorted(entries)))

    def __str__(self) -> str:
        return f"{{ {', '.join(map(str, self.entries))} }}" if self.entries else "{}"


@attrs.frozen(order=True, repr=False)
class BufferDonor(Value):
    """A parameter, or a subshape of one, whose buffer XLA may reuse: `(1, {0})`."""

    param_number: int
    param_index: ShapeIndex = ()

    def __str__(self) -> str:
        return f"({self.param_number}, {braced(self.param_index)})"


@attrs.frozen(repr=False)
class BufferDonorConfig(Value):
    """`buffer_donor=` of a module (`HloBufferDonorConfig`): `{ (0, {}), (1, {0}) }`."""

    entries: tuple[BufferDonor, ...] = ()

    def canonical(self) -> BufferDonorConfig:
        """Returns the entries sorted, without duplicates, as XLA prints them."""
        return BufferDonorConfig(tuple(sorted(set(self.entries))))

    def __str__(self) -> str:
        return f"{{ {', '.join(map(str, self.entries))} }}" if self.entries else "{}"


@attrs.frozen(repr=False)
class OutputOperandAlias(Value):
    """A subshape of an instruction's result that shares an operand's buffer: `{1}: (2, {0})`."""

    output_shape_index: ShapeIndex
    operand_index: int
    operand_shape_index: ShapeIndex = ()

    def __str__(self) -> str:
        return (
            f"{braced(self.output_shape_index)}: ({self.operand_index}, {braced(self.operand_shape_index)})"
        )


@attrs.frozen(repr=False)
class OutputToOperandAliasing(Value):
    """`output_to_operand_aliasing=` of fusions and custom calls: `{{}: (0, {}), {1}: (2, {0})}`."""

    aliases: tuple[OutputOperandAlias, ...] = ()

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.aliases))}}}"
