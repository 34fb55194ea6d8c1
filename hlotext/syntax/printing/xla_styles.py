"""Text in XLA's own styles: every option of `PrintOptions`, byte for byte as `HloModule::ToString` writes it."""

from __future__ import annotations

from collections.abc import Iterable

from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation, instruction_post_order, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import opcodes, traits
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.print_options import PrintOptions
from hlotext.ir.values.shape import Shape
from hlotext.syntax.printing.attributes import MAX_NESTED_RATIO, MIN_NESTED, AttributePrinter, Names
from hlotext.syntax.printing.header import header_text, stack_frame_tables
from hlotext.syntax.printing.line_copier import LineCopier
from hlotext.syntax.printing.splices import Splices

_ASYNC = traits.GENERIC_ASYNC


class TextPrinter(AttributePrinter):
    """Prints a module, or parts of it, with given options."""

    def __init__(self, options: PrintOptions) -> None:
        super().__init__(options)
        self._shapes: dict[int, str] = {}
        self.copier = LineCopier(self)

    # ---- names

    def names(self, computation: Computation) -> Names:
        """Returns a function from instructions of a computation to their printed names: their own, or `tmp_N` in print
        order.
        """
        if not self.options.canonicalize_instruction_names:
            return lambda instruction: self.name(instruction._name)
        numbers: dict[Instruction, int] = {}
        return lambda instruction: f"tmp_{numbers.setdefault(instruction, len(numbers))}"

    # ---- modules and computations

    def module(self, module: Module) -> str:
        """Returns the text of the module."""
        tab = "  " * self.options.indent_amount
        out = Splices(module.source.text if module.source is not None else "")
        out.add(f"{tab}{header_text(module, self.options)}")
        if self.options.print_metadata and not module.stack_frames.is_empty:
            out.add(f"\n\n{stack_frame_tables(module.stack_frames)}")
        out.add("\n\n")
        computations: Iterable[Computation] = module.computations
        if self.options.canonicalize_computations:
            computations = canonical_order(module)
        self.copier.learn(module)
        hidden = self._hidden(module)
        self._titles = inline_titles(module)
        self._room[0] = MIN_NESTED + MAX_NESTED_RATIO * sum(map(len, module.computations))
        runs = {} if self.options.canonicalize_computations else self.copier.runs(module, hidden)
        entry = module.entry if module.computations else None
        for computation in computations:
            end = runs.get(computation)
            if end:
                out.copy(computation._start, end)
            elif end == 0 or computation in hidden:
                continue
            else:
                out.add(self.computation(computation, self.options.indent_amount, computation is entry))
            out.add("\n\n")
        return out.text()

    def _hidden(self, module: Module) -> set[Computation]:
        """The computations that the short asynchronous spelling swallows."""
        if not self.options.syntax_sugar_async_ops or _ASYNC.isdisjoint(self.copier.opcodes(module)):
            return set()
        return {
            callees[0]
            for instruction in module.instructions()
            if instruction._head.opcode in _ASYNC
            and (callees := instruction.called_computations)
            and sugared(instruction) is not None
        }

    def computation(
        self, computation: Computation, indent: int = 0, is_entry: bool = False, nested: bool = False
    ) -> str:
        """Returns the text of a computation, without line end after its closing brace."""
        options = self.options
        tab = "  " * indent
        head = tab + ("ENTRY " if is_entry and not nested else "")
        if not nested and not options.is_in_nested_computation:
            if options.print_ids:
                head += f"{self.percent}{self._titles.get(computation, computation.name)} "
            elif options.print_percent:
                head += "%"
        if options.print_program_shape:
            head += f"{signature(computation, options.print_ids)} "
        lines = [f"{head}{{"]
        copied = None if nested or indent else self.copier.body(computation)
        if copied is not None:
            return f"{head}{{{copied}{self.closing(computation, tab)}"
        names = self.names(computation)
        root = computation.root if len(computation) else None
        # XLA prints a body inside its caller in the order of the graph, not in that of the schedule.
        for instruction in instruction_post_order(computation) if nested else computation.instructions:
            if isinstance(instruction, BadInstruction):
                lines += [f"{tab}  {instruction.text}"] if instruction.text else []
                continue
            if options.compact_gte and _is_element(instruction) and instruction is not root:
                continue
            mark = "ROOT " if instruction is root else ""
            lines.append(f"{tab}  {mark}{self.instruction(instruction, names, indent + 1)}")
        return "\n".join(lines) + self.closing(computation, tab)

    def closing(self, computation: Computation, tab: str) -> str:
        """Returns the end of a computation, with the line end before its brace."""
        options = self.options
        end = f"\n{tab}}}"
        config = computation._backend_config
        if computation.execution_thread == "main" and not (options.print_name_after_closing_brace or config):
            return end
        if options.print_ids and computation.execution_thread != "main":
            end += f', execution_thread="{computation.execution_thread}"'
        if config is not None and config.text and options.print_backend_config:
            end += f", backend_config={config}"
        if options.print_name_after_closing_brace and len(computation) > 5:
            end += f" // {self._titles.get(computation, computation.name)}"
        return end

    # ---- instructions

    def instruction(self, instruction: Instruction, names: Names, indent: int = 0) -> str:
        """Returns an op line, without indentation and `ROOT`."""
        options = self.options
        # XLA numbers the canonical names when it prints them: the operands' first, then the line's own would be wrong;
        # it asks for the line's own name first.
        own = names(instruction)
        opcode, wrapped = instruction._head.opcode, None
        if options.syntax_sugar_async_ops and opcode.startswith("async-"):
            wrapped = self.sugared(instruction)
            if wrapped is not None:
                opcode = f"{wrapped._head.opcode}-{opcode.removeprefix('async-')}"
        shape = (
            f"{self.shape(instruction._head.shape)} "
            if options.print_result_shape and instruction._head.shape is not None
            else ""
        )
        text = f"{own} = {shape}{opcode}({self.argument(instruction, names)})"
        attributes = self.attributes(instruction, names, indent, wrapped)
        return f"{text}, {', '.join(attributes)}" if attributes else text

    def sugared(self, instruction: Instruction) -> Instruction | None:
        """Returns the operation wrapped by an asynchronous instruction if that is printed in sugared form; else None."""
        return sugared(instruction)

    def shape(self, shape: Shape) -> str:
        """Returns the text of a result or operand shape."""
        # By identity: equal texts share one shape, and its hash would cost as much as its text.
        text = self._shapes.get(id(shape))
        if text is None:
            with_layout = self.options.include_layout_in_shapes
            text = str(shape.with_default_layout()) if with_layout else shape.text_without_layout()
            self._shapes[id(shape)] = text
        return text

    def argument(self, instruction: Instruction, names: Names) -> str:
        """Returns the text in an op line's parentheses."""
        options = self.options
        if instruction._head.opcode == "parameter":
            return str(instruction.parameter_number) if options.print_parameter_number else ""
        if instruction.literal is not None:
            return self.literal(instruction.literal)
        operands = instruction._operands
        shown = operands[:4] if options.compact_operands and len(operands) > 4 else operands
        texts = [self.operand(operand, names) for operand in shown]
        interval = options.print_operand_index_annotation_interval
        if interval and len(texts) > interval:
            for i in range(interval, len(texts), interval):
                texts[i] = f"/*index={i}*/{texts[i]}"
        if len(shown) < len(operands):
            texts.append(f"...(+{len(operands) - len(shown)})")
        return ", ".join(texts)

    def literal(self, literal: Literal) -> str:
        """Returns the value of a constant, as far as the options print it."""
        if self.options.print_only_essential_constants:
            return literal.essential_text()
        return literal.to_text() if self.options.print_large_constants else literal.abbreviated_text()

    def operand(self, operand: Instruction, names: Names) -> str:
        """Returns shape and name of an operand, as far as the options print them."""
        options = self.options
        parts = []
        if options.print_operand_shape and operand._head.shape is not None:
            parts.append(self.shape(operand._head.shape))
        if options.canonicalize_instruction_names or options.print_operand_names:
            indices = ""
            while options.compact_gte and _is_element(operand):
                indices = f"#{operand._attributes['index']}{indices}"
                operand = operand._operands[0]
            parts.append(names(operand) + indices)
        return " ".join(parts)


def _is_element(instruction: Instruction) -> bool:
    """True if an instruction can be written after its operand's name, `%t#0`."""
    return (
        instruction._head.opcode == "get-tuple-element"
        and "index" in instruction._attributes
        and len(instruction._operands) == 1
    )


def signature(computation: Computation, with_ids: bool = True) -> str:
    """Returns parameters and result as in a computation's header: `(p: f32[2]) -> f32[2]`.

    Without `with_ids` names end at their first period.
    """
    parameters = ", ".join(
        [
            f"{p._name if with_ids else p._name.split('.', 1)[0]}: {_plain(p._head.shape)}"
            for p in computation.parameters
        ]
    )
    result = _plain(computation.shape) if len(computation) else "?"
    return f"({parameters}) -> {result}"


def inline_titles(module: Module) -> dict[Computation, str]:
    """Returns the names of inline bodies as XLA generates them: `_`, `_.1`, `_.2`, ..."""
    titles: dict[Computation, str] = {}
    if not any(computation._is_inline for computation in module.computations):
        return titles
    taken = {computation.name for computation in module.computations}
    number = 0
    for computation in module.computations:
        if computation.is_inline:
            while (title := f"_.{number}" if number else "_") in taken:
                number += 1
            titles[computation] = title
            number += 1
    return titles


def _plain(shape: Shape | None) -> str:
    return shape.text_without_layout() if shape is not None else "?"


def sugared(instruction: Instruction) -> Instruction | None:
    """Returns the operation wrapped by an asynchronous instruction if the sugared form can express it; else None.

    It can if the wrapped computation consists of parameters and the root.
    """
    body = instruction.async_wrapped_computation
    if body is None or not body._instructions:
        return None
    root = body.root
    if root._head.opcode not in opcodes.OPCODES:
        return None
    if any(i._head.opcode != "parameter" and i is not root for i in body):
        return None
    return root


def canonical_order(module: Module) -> list[Computation]:
    """Returns the computations in post order, determined by calls only."""
    called = {callee for i in module.instructions() for callee in i.called_computations}
    return post_order(c for c in module.computations if c not in called)


__all__ = ["TextPrinter", "canonical_order", "signature", "sugared"]
