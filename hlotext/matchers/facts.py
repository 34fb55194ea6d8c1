"""Properties of an instruction's shape and attributes that patterns test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hlotext import syntax
from hlotext.edit import values
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import opcodes, traits
from hlotext.ir.tables.opcode import Derived, Printing
from hlotext.ir.values.configs import BackendConfig
from hlotext.ir.values.replica_groups import ReplicaGroupList, ReplicaGroups
from hlotext.ir.values.sharding import Sharding

COMMUTATIVE = traits.COMMUTATIVE
"""Opcodes whose operands may be swapped (`HloOpcodeIsBinaryCommutative`)."""


def subshape_text(instruction: Instruction, index: tuple[int, ...]) -> str | None:
    """Returns the text, without layouts, of a subshape; None if there is none."""
    shape = instruction.shape
    for number in index:
        if shape is None or not shape.is_tuple or not 0 <= number < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[number]
    return shape.text_without_layout() if shape is not None else None


def is_effective_scalar(instruction: Instruction) -> bool:
    """Returns True if an array has a single element (`ShapeUtil::IsEffectiveScalar`)."""
    shape = instruction.shape
    return shape is not None and shape.is_array and all(size == 1 for size in shape.dimensions)


def dot_dims(instruction: Instruction, kind: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Returns the `contracting` or `batch` dimensions of a dot's operands, or None for other instructions."""
    if instruction.opcode not in traits.DOTS:
        return None
    attributes = instruction.attributes
    lhs, rhs = (tuple(attributes.get(f"{side}_{kind}_dims", ())) for side in ("lhs", "rhs"))
    return lhs, rhs


def groups(given: ReplicaGroups | Sequence[Sequence[int]] | str) -> ReplicaGroups:
    """Converts replica groups to an explicit list, up to 2^20 devices. Raises HloSyntaxError for invalid text."""
    if isinstance(given, str):
        given = syntax.read_terms.parse_replica_groups(given)
    if isinstance(given, ReplicaGroups):
        return given.canonical().full_list()
    return ReplicaGroupList(tuple(tuple(group) for group in given))


def groups_of(instruction: Instruction) -> ReplicaGroups | None:
    found = instruction.attributes.get("replica_groups")
    return groups(found) if isinstance(found, ReplicaGroups) else None


def sharding(given: Sharding | str) -> Sharding:
    """Converts text to a sharding; shardings are returned as they are. Raises HloSyntaxError for invalid text."""
    if isinstance(given, str):
        return syntax.read_terms.parse_sharding(given)
    return given


def has_sharding(instruction: Instruction, wanted: Sharding) -> bool:
    """Returns True if an instruction has an equal sharding, whatever its notation and metadata."""
    found = instruction.sharding
    if found is None:
        return False
    try:
        return found.without_metadata().means_the_same(wanted.without_metadata())
    except ValueError:  # axes of a mesh that is not there
        return found == wanted


def attribute(opcode: str | None, name: str, value: object) -> Any:
    """Converts an attribute value to its type. Raises EditError (a ValueError) if it is invalid."""
    found = values.meant_by(opcode, name, value)
    return groups(found) if isinstance(found, ReplicaGroups) else found


def has_attribute(instruction: Instruction, name: str, wanted: Any, given: object) -> bool:
    """Returns True if an instruction has an attribute with this value, whatever the notation of either."""
    found = instruction.attributes.get(name)
    if found is None:
        found = _left_out(instruction, name)
    if found is None:
        return False
    if isinstance(wanted, Sharding):
        return has_sharding(instruction, wanted)
    if isinstance(found, ReplicaGroups):
        return bool(groups(found) == wanted)
    if isinstance(found, BackendConfig) and isinstance(given, Mapping):
        try:
            return bool(found.json() == given)
        except ValueError:
            return False
    if isinstance(wanted, str) and isinstance(name_of := getattr(found, "name", None), str):
        return bool(name_of == wanted)
    return bool(found == wanted) or (isinstance(given, str) and str(found) == given)


def _left_out(instruction: Instruction, name: str) -> Any:
    """Value that an absent attribute stands for; None if there is none."""
    row = opcodes.opcode(instruction.opcode)
    use = opcodes.allowed_attributes(row).get(name) if row is not None else None
    if use is None:
        return None
    if use.printed is Printing.IF_TRUE:
        return False
    return None if isinstance(use.default, Derived) else use.default


def reducer(instruction: Instruction) -> str | None:
    """Returns the opcode that an instruction's reducer applies, or None if it is not a single operation."""
    attributes = instruction.attributes
    called = attributes.get("scatter" if instruction.opcode == "select-and-scatter" else "to_apply")
    parameters = getattr(called, "parameters", ())
    if called is None or len(parameters) != 2:
        return None
    root = called.root
    is_straight = root.operands == parameters
    is_swapped = root.operands == parameters[::-1] and root.opcode in COMMUTATIVE
    return root.opcode if is_straight or is_swapped else None
