"""Differences between XLA releases in reading the same text: words that only one knows, values that only one prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import comparison, xla_changes
from hlotext.ir.values.age import XlaAge
from hlotext.ir.values.enums import ComparisonOrder, ComparisonType, ShardingType
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.module_attributes import RecoveryTable
from hlotext.ir.values.named_sharding import NamedSharding
from hlotext.ir.values.original_value import OriginalValue
from hlotext.ir.values.replica_groups import MeshAxesReplicaGroupList
from hlotext.ir.values.sharding import Domain, OpSharding, Sharding, TupleSharding
from hlotext.ir.values.sparsity import OperandSparsity, SparsityConfig


def as_release(module: Module, age: XlaAge) -> None:
    """Changes attributes to those that XLA of an age prints."""
    changes = _Changes(age)
    table = module._attributes.get(_RECOVERY)
    if isinstance(table, RecoveryTable):
        is_raw = not age.has(xla_changes.ESCAPED_RECOVERY)
        entries = tuple(attrs.evolve(entry, is_raw=is_raw) for entry in table.entries)
        module._attributes = {**module._attributes, _RECOVERY: RecoveryTable(entries)}
    for instruction in module.instructions():
        own = _BY_OPCODE.get(instruction._head.opcode)
        given = instruction._attributes
        if own is not None:
            own(instruction, age)
            given = instruction._attributes
        changed = {
            name: new
            for name in _BY_NAME
            if name in given and (new := changes.value(given[name])) is not given[name]
        }
        if changed:
            instruction._attributes = {**given, **changed}


# ---- attributes of single opcodes


def _compare(instruction: Instruction, age: XlaAge) -> None:
    shape = instruction._operands[0]._head.shape if instruction._operands else None
    given = instruction._attributes
    if shape is None or not given.keys() & {"type", "order"}:
        return
    order = comparison.order_of(given, shape.element_type)
    if order is None:
        return
    rest = {name: value for name, value in given.items() if name not in ("type", "order")}
    if age.has(xla_changes.COMPARISON_ORDER):
        if order is not comparison.default_order(shape.element_type):
            rest["order"] = order
        instruction._attributes = rest
    elif "order" in given and order is not ComparisonOrder.WEAK:  # which has no older word
        if order is not comparison.default_order(shape.element_type):
            is_total = order is ComparisonOrder.TOTAL
            rest["type"] = ComparisonType.TOTALORDER if is_total else ComparisonType.FLOAT
        instruction._attributes = rest


def _written_out(name: str, default: bool, change: Any) -> Callable[[Instruction, XlaAge], None]:
    """For a flag that XLA writes out from some day on, and did not know before."""

    def as_release(instruction: Instruction, age: XlaAge) -> None:
        given = instruction._attributes
        if age.has(change):
            if name not in given:
                instruction._attributes = {**given, name: default}
        elif given.get(name) is default:
            instruction._attributes = {other: value for other, value in given.items() if other != name}

    return as_release


_ROOT = _written_out("has_dynamic_root", default=False, change=xla_changes.DYNAMIC_ROOT)
_BY_OPCODE: dict[str, Callable[[Instruction, XlaAge], None]] = {
    "compare": _compare,
    "topk": _written_out("is_stable", default=True, change=xla_changes.STABLE_TOPK),
    "collective-broadcast": _ROOT,
    "collective-reduce": _ROOT,
}


# ---- values

_RECOVERY = "origin_recovery_table"
_BY_NAME = ("sharding", "replica_groups", "domain", "origin", "sparsity_config")
_REDUCTION = "sdy::reduction_op"
_REDUCTIONS = frozenset({"SUM", "MAX", "MIN"})


class _Changes:
    """Changes values, equal ones once."""

    def __init__(self, age: XlaAge) -> None:
        self._age = age
        self._is_old = not age.has(xla_changes.SINGLE_DEVICE)
        self._names_unreduced = age.has(xla_changes.NAMED_UNREDUCED)
        self._known: dict[int, tuple[Any, Any]] = {}

    def value(self, value: Any) -> Any:
        """An attribute's value as XLA of the age prints it; the same object where it is that already."""
        found = self._known.get(id(value))
        if found is None:
            found = self._known[id(value)] = value, self._changed(value)
        return found[1]

    def _changed(self, value: Any) -> Any:
        if isinstance(value, Sharding):
            return self._sharding(value)
        if isinstance(value, MeshAxesReplicaGroupList):
            mesh = value.mesh
            if mesh.is_maximal and mesh.is_old_spelling != self._is_old:
                return attrs.evolve(value, mesh=attrs.evolve(mesh, is_old_spelling=self._is_old))
        elif isinstance(value, Domain):
            return attrs.evolve(value, entry=self.value(value.entry), exit=self.value(value.exit))
        elif isinstance(value, OriginalValue):
            if value.is_synthetic_call and self._age.has(xla_changes.CALL_HIERARCHY):
                return OriginalValue((), call_hierarchy="")
        elif isinstance(value, SparsityConfig) and self._age.has(xla_changes.SPARSITY_OPERANDS):
            return SparsityConfig(_with_operand(value.lhs), _with_operand(value.rhs))
        return value

    def _sharding(self, sharding: Sharding) -> Sharding:
        if isinstance(sharding, TupleSharding):
            elements = tuple(map(self.value, sharding.elements))
            return attrs.evolve(sharding, elements=elements)
        if isinstance(sharding, NamedSharding):
            mesh = sharding.mesh
            if mesh.is_maximal and mesh.is_old_spelling != self._is_old:
                return attrs.evolve(sharding, mesh=attrs.evolve(mesh, is_old_spelling=self._is_old))
            if sharding.is_unreduced and sharding.names_unreduced != self._names_unreduced:
                return attrs.evolve(sharding, names_unreduced=self._names_unreduced)
        elif isinstance(sharding, OpSharding) and self._age.has(xla_changes.TILED_REDUCTIONS):
            return _with_reduction(sharding)
        return sharding


def _with_operand(side: OperandSparsity | None) -> OperandSparsity | None:
    return side if side is None or side.idx is not None else attrs.evolve(side, idx=0)


def _with_reduction(sharding: OpSharding) -> OpSharding:
    """With what XLA adds to the metadata of an unreduced sharding, or of one whose metadata name a reduction."""
    named = [m.op_name for m in sharding.metadata if m.op_type == _REDUCTION and m.op_name in _REDUCTIONS]
    is_unreduced = sharding.type is ShardingType.UNREDUCED or ShardingType.UNREDUCED in (
        sharding.last_tile_dims or ()
    )
    if not named and not is_unreduced:
        return sharding
    added = Metadata(op_type=_REDUCTION, op_name=named[-1] if named else "SUM")
    return attrs.evolve(sharding, metadata=(*sharding.metadata, added))


__all__ = ["as_release"]
