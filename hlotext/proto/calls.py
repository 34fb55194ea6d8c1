"""Called computations as attributes."""

from __future__ import annotations

from typing import Any

from hlotext.ir.caches import text_cache
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Calls, Printing
from hlotext.ir.values.shape import Shape
from hlotext.proto.errors import ProtoError

REPEATING = frozenset({"async-update", "async-done"})
"""Opcodes that repeat what the start calls."""
ONLY = {
    row.name: uses[0].name
    for row in opcodes.OPCODES.values()
    if row.name != "conditional"
    and len(uses := [use for name in row.stored_called_names if (use := row.attribute(name)) is not None])
    == 1
    and uses[0].calls is not Calls.LIST
    and uses[0].printed is not Printing.INPUT_ONLY
}
"""The attribute of opcodes that call exactly one computation."""


def callees(opcode: str, called: list[Computation], operands: tuple[Instruction, ...]) -> dict[str, Any]:
    """Returns the called computations as attributes, given in XLA's storage order.

    Raises ProtoError if the opcode does not call that many.
    """
    if len(called) == 1 and (name := ONLY.get(opcode)) is not None:
        return {name: called[0]}
    index: Shape | None = operands[0].shape if operands and opcode == "conditional" else None
    names = _names_of_calls(opcode, index is not None and index.element_type.name == "pred")
    if names is None:
        raise ProtoError(f"opcode {opcode} calls computations in a way unknown to this release")
    if isinstance(names, str):
        return {names: tuple(called)}
    if len(names) != len(called):
        raise ProtoError(
            f"{opcode} calls {len(names)} computations, but {len(called)} are given", "called_computation_ids"
        )
    return dict(zip(names, called, strict=True))


@text_cache(1_000)
def _names_of_calls(opcode: str, is_predicate: bool) -> str | tuple[str, ...] | None:
    """The attributes that name computations, or the one that lists them; None for an opcode that is not known."""
    row = opcodes.opcode(opcode)
    if row is None:
        return None
    names = row.stored_called_names
    if opcode == "conditional":
        names = names[:2] if is_predicate else names[2:]
    uses = [use for name in names if (use := row.attribute(name)) is not None]
    if uses and uses[0].calls is Calls.LIST:
        return uses[0].name
    return tuple([use.name for use in uses if use.printed is not Printing.INPUT_ONLY])
