"""Text to nodes and back. Importing this installs the printer of all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.nodes import printing

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.values.print_options import PrintOptions


class _NodePrinter:
    """What `str()` and `to_text()` of nodes call; the printers are loaded when first needed."""

    def source(self, module: Module) -> str:
        from hlotext.syntax.printing.source_style import source_text

        return source_text(module)

    def module(self, module: Module, options: PrintOptions) -> str:
        from hlotext.syntax.printing.xla_styles import TextPrinter

        return TextPrinter(options).module(module)

    def computation(self, computation: Computation) -> str:
        from hlotext.syntax.printing.source_style import computation_text

        return computation_text(computation)

    def instruction(self, instruction: Instruction) -> str:
        from hlotext.syntax.printing.source_style import instruction_text

        return instruction_text(instruction)


printing.install(_NodePrinter())
