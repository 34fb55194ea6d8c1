"""How nodes get their text: the printer belongs to a room above and installs itself here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.values.print_options import PrintOptions


class Printer(Protocol):
    """What `str()` and `to_text()` of nodes call."""

    def source(self, module: Module) -> str: ...

    def module(self, module: Module, options: PrintOptions) -> str: ...

    def computation(self, computation: Computation) -> str: ...

    def instruction(self, instruction: Instruction) -> str: ...


_installed: list[Printer] = []


def install(printer: Printer) -> None:
    """Makes this the printer of all nodes; `hlotext.syntax` does so when it is imported."""
    _installed[:] = [printer]


def printer() -> Printer:
    """The installed printer. Raises RuntimeError before one is installed."""
    if not _installed:
        raise RuntimeError("no printer is installed: import hlotext (or hlotext.syntax) first")
    return _installed[0]
