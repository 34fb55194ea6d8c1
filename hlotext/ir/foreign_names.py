"""Attributes that classes do not have, under the names that XLA, JAX and NumPy give them.

Python itself proposes a name that is spelled nearly alike. Nobody but us knows that `entry_computation` is `entry` here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, TypeVar

T = TypeVar("T", bound=type)


class ForeignName:
    """An attribute that a class does not have. Access raises AttributeError with the name that it has here.

    It is a descriptor: `__getattr__` would make every other attribute of the class slower (Python 3.11: seven times).
    """

    def __init__(self, name: str, meant: str) -> None:
        self._name, self._meant = name, meant

    def __get__(self, value: object, owner: type | None = None) -> NoReturn:
        kind = (type(value) if owner is None else owner).__name__
        # Without the object, of which Python would propose another attribute with a similar name.
        raise AttributeError(message(kind, self._name, self._meant), name=None, obj=None)


def message(kind: str, name: str, meant: str = "") -> str:
    """Message for an attribute that is not there, in Python's words, with what may be meant."""
    return f"{kind!r} object has no attribute {name!r}" + (f"; did you mean `.{meant}`?" if meant else "")


def with_foreign_names(kind: T) -> T:
    """Class decorator for a class of `FOREIGN`."""
    foreign = FOREIGN[kind.__name__]
    for name, meant in foreign.items():
        setattr(kind, name, ForeignName(name, meant))

    def own_names(value: object) -> list[str]:
        return [name for name in object.__dir__(value) if name not in foreign]

    kind.__dir__ = own_names  # type: ignore[method-assign, assignment]  # completed and proposed are names that exist
    return kind


FOREIGN: Mapping[str, Mapping[str, str]] = {
    "Module": {
        "as_text": "to_text()",
        "entry_computation": "entry",
        "entry_computation_layout": 'attributes["entry_computation_layout"]',
        "get_computation": "computation(name)",
        "get_instruction": "instruction(name)",
        "get_instructions": "instructions()",
        "input_output_alias": 'attributes["input_output_alias"]',
        "input_output_alias_config": 'attributes["input_output_alias"]',
        "instruction_count": "instructions()",
        "num_partitions": 'attributes["num_partitions"]',
        "parameters": "entry.parameters",
        "replica_count": 'attributes["replica_count"]',
        "root": "entry.root",
        "root_instruction": "entry.root",
        "to_string": "to_text()",
    },
    "Computation": {
        "caller_instructions": "callers",
        "get_instructions": "instructions",
        "instruction": "module.instruction(name)",
        "instruction_count": "instructions",
        "num_parameters": "parameters",
        "parameter_instruction": "parameters",
        "parameter_instructions": "parameters",
        "parent": "module",
        "root_instruction": "root",
    },
    "Instruction": {
        "args": "operands",
        "called_computation": "called_computations",
        "channel_id": 'attributes["channel_id"]',
        "custom_call_target": 'attributes["custom_call_target"]',
        "dimensions": 'attributes["dimensions"]',
        "dtype": "shape.element_type",
        "inputs": "operands",
        "module": "computation.module",
        "op_name": "metadata.op_name",
        "operand": "operands",
        "operand_count": "operands",
        "parent": "computation",
        "raw_backend_config_string": "backend_config.text",
        "replica_groups": 'attributes["replica_groups"]',
        "source_line": "metadata.source_line",
        "to_apply": 'attributes["to_apply"]',
        "user_count": "users",
    },
    "Shape": {
        "dims": "dimensions",
        "dtype": "element_type",
        "minor_to_major": "layout.minor_to_major",
        "ndim": "rank",
        "size": "element_count()",
        "tuple_elements": "tuple_shapes",
    },
}
"""Attributes to use instead, by class and foreign name."""
