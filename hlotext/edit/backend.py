"""The edit backend that nodes call: one function for each way of writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hlotext.edit.cloning import clone_module as clone
from hlotext.edit.header import remove_header, rename_module, set_header, set_stack_frames
from hlotext.edit.identity import move_before, rename, renumber
from hlotext.edit.instructions import change, remove_attribute, set_attribute
from hlotext.edit.journal import Transaction as transaction  # noqa: N813 - called like a function
from hlotext.edit.pickling import reduced
from hlotext.edit.structure import (
    add,
    add_computation,
    remove,
    remove_computations,
    rename_computation,
    set_entry,
    set_root,
    set_thread,
)
from hlotext.edit.uses import replace, replace_operand, replace_uses
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.record import Listener

__all__ = [
    "add",
    "add_computation",
    "change",
    "clone",
    "listen",
    "move_before",
    "reduced",
    "remove",
    "remove_attribute",
    "remove_computations",
    "remove_header",
    "rename",
    "rename_computation",
    "rename_module",
    "renumber",
    "replace",
    "replace_operand",
    "replace_uses",
    "set_attribute",
    "set_entry",
    "set_header",
    "set_root",
    "set_stack_frames",
    "set_thread",
    "transaction",
]


@contextmanager
def listen(module: Module, listener: Listener) -> Iterator[None]:
    """Implements `Module.listen`."""
    lacking = [name for name in ("inserted", "modified", "removed") if not hasattr(listener, name)]
    if lacking:
        raise TypeError(
            f"a listener has the methods inserted, modified and removed; it lacks {', '.join(lacking)}"
        )
    before = module._listeners
    module._listeners = (*before, listener)
    try:
        yield
    finally:
        module._listeners = tuple(one for one in module._listeners if one is not listener)
