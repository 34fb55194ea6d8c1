"""Text to nodes and back. Importing this installs the printer of all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotext.edit import sockets
from hlotext.ir.nodes import printing

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.values.literal import Literal
    from hlotext.ir.values.print_options import PrintOptions
    from hlotext.ir.values.shape import Shape


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


class _Reader:
    """What edits read texts with; the readers are loaded when first needed."""

    def value(self, rule: str, text: str) -> Any:
        from hlotext.findings.errors import TermError
        from hlotext.syntax.fast import shortcuts

        try:
            return shortcuts.read(rule, text)
        except TermError as error:
            raise ValueError(error.message) from None

    def literal(self, text: str, shape: Shape) -> Literal:
        from hlotext.findings.errors import TermError
        from hlotext.syntax.literals import read_literal

        try:
            return read_literal(text, shape)
        except TermError as error:
            raise ValueError(error.message) from None

    def is_name(self, text: str) -> bool:
        from hlotext.syntax.language import patterns

        return patterns.name().fullmatch(text) is not None and text[0] != "%" and text[-1] != ":"

    def attribute(self, text: str, *, is_header: bool) -> tuple[str, Any]:
        found = self.value("header_attribute" if is_header else "attribute", text)
        return found.name, found.value


sockets.install_reader(_Reader())
