"""Interface of writes to nodes. The implementation is in `hlotext.edit`, which installs itself here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager

    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.nodes.record import EditRecord, Listener


class EditBackend(Protocol):
    """Interface of the setters and editing methods of nodes. Every method may raise EditError, and then changes
    nothing.
    """

    def change(self, instruction: Instruction, changes: Mapping[str, Any], *, typed: bool) -> None: ...

    def set_attribute(self, instruction: Instruction, name: str, value: Any) -> None: ...

    def remove_attribute(self, instruction: Instruction, name: str) -> None: ...

    def replace_operand(self, instruction: Instruction, number: int, operand: Instruction) -> None: ...

    def renumber(self, parameter: Instruction, number: int) -> None: ...

    def replace_uses(self, old: Instruction, new: Instruction) -> None: ...

    def replace(self, old: Instruction, new: Instruction) -> None: ...

    def move_before(self, instruction: Instruction, other: Instruction) -> None: ...

    def rename(self, instruction: Instruction, name: str) -> None: ...

    def add(
        self, computation: Computation, instruction: Instruction, before: Instruction | None, *, typed: bool
    ) -> None: ...

    def remove(self, computation: Computation, instructions: Iterable[Instruction]) -> None: ...

    def set_root(self, computation: Computation, root: Instruction) -> None: ...

    def set_thread(self, computation: Computation, thread: str) -> None: ...

    def rename_computation(self, computation: Computation, name: str) -> None: ...

    def add_computation(
        self, module: Module, computation: Computation, before: Computation | None
    ) -> None: ...

    def remove_computations(self, module: Module, computations: Iterable[Computation]) -> None: ...

    def set_entry(self, module: Module, computation: Computation) -> None: ...

    def rename_module(self, module: Module, name: str) -> None: ...

    def set_header(self, module: Module, name: str, value: Any) -> None: ...

    def remove_header(self, module: Module, name: str) -> None: ...

    def set_stack_frames(self, module: Module, stack_frames: Any) -> None: ...

    def clone(self, module: Module) -> Module: ...

    def reduced(self, node: Module | Computation | Instruction) -> tuple[Any, ...]: ...

    def transaction(self, module: Module, *, typed: bool) -> AbstractContextManager[EditRecord]: ...

    def listen(self, module: Module, listener: Listener) -> AbstractContextManager[None]: ...


class _NoBackend:
    """Placeholder until a backend is installed."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("nodes cannot be edited: import hlotext (or hlotext.edit) first")


backend: EditBackend = cast("EditBackend", _NoBackend())
"""The backend of all nodes."""


def install(chosen: EditBackend) -> None:
    """Installs the backend of all nodes. Called when `hlotext.edit` is imported."""
    global backend
    backend = chosen
