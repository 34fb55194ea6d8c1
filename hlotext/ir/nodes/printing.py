"""Text of nodes and protos of modules: the printers belong to packages above and install themselves here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.values.print_options import PrintOptions


class Printer(Protocol):
    """Interface of the printer that `str()` and `to_text()` of nodes use."""

    def source(self, module: Module) -> str: ...

    def module(self, module: Module, options: PrintOptions) -> str: ...

    def computation(self, computation: Computation) -> str: ...

    def instruction(self, instruction: Instruction) -> str: ...


_installed: list[Printer] = []


def install(printer: Printer) -> None:
    """Sets the printer of all nodes. Called when `hlotext.syntax` is imported."""
    _installed[:] = [printer]


def printer() -> Printer:
    """Returns the installed printer. Raises RuntimeError if none is installed."""
    if not _installed:
        raise RuntimeError("no printer is installed: import hlotext (or hlotext.syntax) first")
    return _installed[0]


_proto_writers: list[Callable[[Module, bool], bytes]] = []


def install_proto_writer(write: Callable[[Module, bool], bytes]) -> None:
    """Installs the function that `Module.to_proto` calls. Called when `hlotext` is imported."""
    _proto_writers[:] = [write]


def proto_writer() -> Callable[[Module, bool], bytes]:
    """Returns the function that serializes a module. Raises RuntimeError if none is installed."""
    if not _proto_writers:
        raise RuntimeError("no writer of protos is installed: import hlotext first")
    return _proto_writers[0]
