"""The module's header: its name, its attributes, and the entry's shapes, which follow from edits of the entry."""

from __future__ import annotations

from typing import Any

from hlotext.edit import dirty_lines, names, values
from hlotext.edit.journal import Edit
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.frames import StackFrameIndex

_OF_SHAPES_ALONE = frozenset(
    {
        "alias_passthrough_params", "buffer_donor", "entry_computation_layout", "frontend_attributes", "input_output_alias",
        "origin_recovery_table", "debug_attributes",
    }
)  # fmt: skip
"""Attributes on which nothing depends but what the header says itself."""


def rename_module(module: Module, name: str) -> None:
    """Implements the setter of `Module.name`."""
    name = names.checked(name, "module")
    if name == module._name:
        return
    with Edit(module) as edit:
        edit.journal.set(module, "_name", name)
        dirty_lines.touch_header(edit.journal, module)


def set_header(module: Module, name: str, value: Any) -> None:
    """Implements setting an attribute in `Module.attributes`."""
    value = values.header_attribute(name, value, module)
    if name in module._attributes and _same(module._attributes[name], value):
        return
    _replace(module, name, {**module._attributes, name: value})


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def remove_header(module: Module, name: str) -> None:
    """Implements deleting an attribute from `Module.attributes`."""
    _replace(module, name, {key: value for key, value in module._attributes.items() if key != name})


def _replace(module: Module, name: str, attributes: dict[str, Any]) -> None:
    with Edit(module) as edit:
        if name in _OF_SHAPES_ALONE or name.startswith("allow_spmd_sharding_propagation"):
            edit.recheck_header()
        else:
            edit.recheck_module()
        edit.journal.set(module, "_attributes", attributes)
        dirty_lines.touch_header(edit.journal, module)


def set_stack_frames(module: Module, stack_frames: Any) -> None:
    """Implements the setter of `Module.stack_frames`."""
    if not isinstance(stack_frames, StackFrameIndex):
        raise EditError(
            f"stack_frames of module {module.name} is a StackFrameIndex, not {values.shown(stack_frames)}: "
            "type(module.stack_frames)() empties it, and the strip-metadata pass removes all references to it"
        )
    if stack_frames == module.stack_frames:
        return
    with Edit(module) as edit:
        edit.recheck_module()
        edit.journal.set(module, "_stack_frames", stack_frames)
        edit.journal.set(module, "_has_new_tables", True)
        dirty_lines.touch_header(edit.journal, module)
