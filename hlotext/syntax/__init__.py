"""Parsing and printing of HLO text. Importing this package registers the printer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotext import syntax  # itself: by this name the door below opens here, too
from hlotext.edit import hooks
from hlotext.findings.errors import TermError
from hlotext.ir.lazy_imports import lazy_submodules
from hlotext.ir.nodes.printing import install
from hlotext.syntax import fast, printing
from hlotext.syntax.language import patterns
from hlotext.syntax.literals import read_literal

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.values.literal import Literal
    from hlotext.ir.values.print_options import PrintOptions
    from hlotext.ir.values.shape import Shape
    from hlotext.syntax import lazy as lazy
    from hlotext.syntax import read as read
    from hlotext.syntax import read_terms as read_terms
    from hlotext.syntax import source as source


class _NodePrinter:
    """Printer behind `str()` and `to_text()` of nodes; the printers are loaded when first needed."""

    def source(self, module: Module) -> str:
        return printing.source_style.source_text(module)

    def module(self, module: Module, options: PrintOptions) -> str:
        return printing.xla_styles.TextPrinter(options).module(module)

    def computation(self, computation: Computation) -> str:
        return printing.source_style.computation_text(computation)

    def instruction(self, instruction: Instruction) -> str:
        return printing.source_style.instruction_text(instruction)


install(_NodePrinter())


class _Reader:
    """Reader that edits use; the readers are loaded when first needed."""

    def value(self, rule: str, text: str) -> Any:
        try:
            return fast.shortcuts.read(rule, text)
        except TermError as error:
            raise ValueError(syntax.read_terms.problem(rule, text) or error.message) from None

    def literal(self, text: str, shape: Shape) -> Literal:
        try:
            return read_literal(text, shape)
        except TermError as error:
            raise ValueError(error.message) from None

    def is_name(self, text: str) -> bool:
        return patterns.name().fullmatch(text) is not None and text[0] != "%" and text[-1] != ":"

    def attribute(self, text: str, *, is_header: bool) -> tuple[str, Any]:
        found = self.value("header_attribute" if is_header else "attribute", text)
        return found.name, found.value


hooks.install_reader(_Reader())

if not TYPE_CHECKING:
    __getattr__ = lazy_submodules(__name__, "lazy", "read", "read_terms")
