"""Text in XLA's own styles: every option of `PrintOptions`, byte for byte as `HloModule::ToString` writes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from hlotext.ir import opcodes
from hlotext.ir.attributes import RawValue, value_text
from hlotext.ir.computation import Computation, instruction_post_order, post_order
from hlotext.ir.instruction import Instruction
from hlotext.ir.literal import Literal
from hlotext.ir.metadata import BackendConfig, FrontendAttributes, Metadata
from hlotext.ir.module import Module
from hlotext.ir.opcode import AttributeUse, Calls, Derived, Opcode, Printing
from hlotext.ir.print_options import PrintOptions, SubcomputationMode
from hlotext.ir.shape import Shape
from hlotext.ir.sharding import Sharding
from hlotext.ir.text import quote_unless_dict
from hlotext.ir.types import TypeKind
from hlotext.syntax.header_printer import header_text, stack_frame_tables
from hlotext.syntax.line_copier import LineCopier


class TextPrinter:
    """Prints one module, or parts of it, with one set of options."""

    def __init__(self, options: PrintOptions) -> None:
        self.options = options
        self.percent = "%" if options.print_percent else ""
        self._values: dict[tuple[str, Any], str] = {}
        self._shapes: dict[int, str] = {}
        self._titles: dict[Computation, str] = {}
        """Names of the computations that have none in the text."""
        self.copier = LineCopier(self)

    # ---- names

    def name(self, name: str) -> str:
        """A name as these options print it."""
        if not self.options.print_ids:
            name = name.split(".", 1)[0]
        return f"{self.percent}{name}"

    def names(self, computation: Computation) -> Callable[[Instruction], str]:
        """How the instructions of a computation are named: by name, or `tmp_N` in print order."""
        if not self.options.canonicalize_instruction_names:
            return lambda instruction: self.name(instruction._name)
        numbers: dict[Instruction, int] = {}
        return lambda instruction: f"{self.percent}tmp_{numbers.setdefault(instruction, len(numbers))}"

    # ---- modules and computations

    def module(self, module: Module) -> str:
        """The whole module."""
        tab = "  " * self.options.indent_amount
        out = [f"{tab}{header_text(module, self.options)}"]
        if self.options.print_metadata and not module.stack_frames.is_empty:
            out.append(f"\n\n{stack_frame_tables(module.stack_frames)}")
        out.append("\n\n")
        computations: Iterable[Computation] = module.computations
        if self.options.canonicalize_computations:
            computations = canonical_order(module)
        hidden = self._hidden(module)
        self._titles = inline_titles(module)
        for computation in computations:
            if computation in hidden:
                continue
            out.append(self.computation(computation, self.options.indent_amount, computation is module.entry))
            out.append("\n\n")
        return "".join(out)

    def _hidden(self, module: Module) -> set[Computation]:
        """The computations that the short asynchronous spelling swallows."""
        if not self.options.syntax_sugar_async_ops:
            return set()
        return {
            instruction.called_computations[0]
            for instruction in module.instructions()
            if instruction._opcode == "async-start" and sugared(instruction) is not None
        }

    def computation(
        self, computation: Computation, indent: int = 0, is_entry: bool = False, nested: bool = False
    ) -> str:
        """One computation, without a line end behind its closing brace."""
        options = self.options
        tab = "  " * indent
        head = tab + ("ENTRY " if is_entry and not nested else "")
        if not nested:
            if options.print_ids:
                head += f"{self.percent}{self._titles.get(computation, computation.name)} "
            elif options.print_percent:
                head += "%"
            if options.print_program_shape:
                head += f"{signature(computation)} "
        lines = [f"{head}{{"]
        names = self.names(computation)
        copied = None if nested or indent else self.copier.body(computation, names)
        if copied is not None:
            return f"{head}{{{copied}{self._closing(computation, tab)}"
        root = computation.root if len(computation) else None
        # XLA prints a body inside its caller in the order of the graph, not in that of the schedule.
        for instruction in instruction_post_order(computation) if nested else computation.instructions:
            mark = "ROOT " if instruction is root else ""
            lines.append(f"{tab}  {mark}{self.instruction(instruction, names, indent + 1)}")
        return "\n".join(lines) + self._closing(computation, tab)

    def _closing(self, computation: Computation, tab: str) -> str:
        """The end of a computation, with the line end before its brace."""
        options = self.options
        end = f"\n{tab}}}"
        if options.print_ids and computation.execution_thread != "main":
            end += f', execution_thread="{computation.execution_thread}"'
        if options.print_name_after_closing_brace and len(computation) > 5:
            end += f" // {self._titles.get(computation, computation.name)}"
        return end

    # ---- instructions

    def instruction(
        self, instruction: Instruction, names: Callable[[Instruction], str], indent: int = 0
    ) -> str:
        """One op line, without its indentation and without `ROOT`."""
        options = self.options
        # XLA numbers the canonical names when it prints them: the operands' first, then the line's own would be wrong;
        # it asks for the line's own name first.
        own = names(instruction)
        opcode, wrapped = instruction._opcode, None
        if options.syntax_sugar_async_ops and opcode.startswith("async-"):
            wrapped = self.sugared(instruction)
            if wrapped is not None:
                opcode = f"{wrapped._opcode}-{opcode.removeprefix('async-')}"
        shape = (
            f"{self.shape(instruction._shape)} "
            if options.print_result_shape and instruction._shape is not None
            else ""
        )
        text = f"{own} = {shape}{opcode}({self.argument(instruction, names)})"
        attributes = self.attributes(instruction, names, indent, wrapped)
        return f"{text}, {', '.join(attributes)}" if attributes else text

    def sugared(self, instruction: Instruction) -> Instruction | None:
        """What an asynchronous instruction wraps, where it is to be written in the short spelling."""
        return sugared(instruction)

    def shape(self, shape: Shape) -> str:
        """A result's or an operand's shape."""
        # By identity: equal texts share one shape, and its hash would cost as much as its text.
        text = self._shapes.get(id(shape))
        if text is None:
            with_layout = self.options.include_layout_in_shapes
            text = str(shape.with_default_layout()) if with_layout else shape.text_without_layout()
            self._shapes[id(shape)] = text
        return text

    def argument(self, instruction: Instruction, names: Callable[[Instruction], str]) -> str:
        """What stands in the parentheses."""
        options = self.options
        if instruction._opcode == "parameter":
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
        """The value of a constant, as far as the options want it."""
        if self.options.print_only_essential_constants:
            return literal.essential_text()
        return literal.to_text() if self.options.print_large_constants else literal.abbreviated_text()

    def operand(self, operand: Instruction, names: Callable[[Instruction], str]) -> str:
        """One operand: its shape and its name, as far as the options want them."""
        options = self.options
        parts = []
        if options.print_operand_shape and operand._shape is not None:
            parts.append(self.shape(operand._shape))
        if options.canonicalize_instruction_names or options.print_operand_names:
            parts.append(names(operand))
        return " ".join(parts)

    # ---- attributes

    def attributes(
        self,
        instruction: Instruction,
        names: Callable[[Instruction], str],
        indent: int,
        wrapped: Instruction | None,
    ) -> list[str]:
        """Every attribute as `name=value`, in XLA's order."""
        row = opcodes.opcode(instruction._opcode)
        if row is None:
            return [
                f"{name}={self.value(instruction, name, value)}"
                for name, value in instruction._attributes.items()
            ]
        out: list[str] = []
        if wrapped is not None and instruction._opcode == "async-start":
            out += self._sugar_attributes(instruction, wrapped, names, indent)
        else:
            out += self._own(row, instruction, indent)
        out += self._common(row, instruction, names)
        known = opcodes.allowed_attributes(row)
        out += [f"{name}={value}" for name, value in instruction._attributes.items() if name not in known]
        return out

    def _own(self, row: Opcode, instruction: Instruction, indent: int, calls: bool = True) -> list[str]:
        """The opcode's own attributes; with `print_extra_attributes` off only the called computations."""
        out = []
        for use in row.attributes:
            if use.calls is not Calls.NONE:
                if calls:
                    out += self._call(use, instruction, indent)
            elif self.options.print_extra_attributes:
                text = self._use(use, instruction)
                if text is not None:
                    out.append(f"{use.name}={text}")
        return out

    def _use(self, use: AttributeUse, instruction: Instruction) -> str | None:
        """The text of one attribute's value; None when it is not printed."""
        options = self.options
        value = instruction._attributes.get(use.name)
        printed = use.printed
        if printed is Printing.INPUT_ONLY:
            return None
        if use.name == "channel_id" and value is not None and not options.print_channel_id:
            return "_"
        if use.name in ("infeed_config", "outfeed_config") and not options.print_infeed_outfeed_config:
            return None
        if use.name == "parameter_replication" and not options.print_ids:
            return None
        if printed is Printing.DERIVED:
            value = _derived(use, instruction)
        elif value is None:
            if printed is not Printing.ALWAYS:
                return None
            value = _derived(use, instruction)
        elif printed is Printing.IF_TRUE:
            if value is not True:
                return None
        elif printed is Printing.IF_NOT_DEFAULT:
            if value == _derived(use, instruction):
                return None
        elif printed is Printing.IF_ANY_NOT_DEFAULT and all(item == use.default for item in value):
            return None
        text = self.value(instruction, use.name, value)
        if printed is Printing.IF_NOT_EMPTY and text in ("", "{}", '""'):
            return None
        return text

    def value(self, instruction: Instruction, name: str, value: Any) -> str:
        """The text of a value that is no reference."""
        try:
            key = name, value
            text = self._values.get(key)
        except TypeError:  # not hashable
            return self._value(name, value)
        if text is None:
            text = self._values[key] = self._value(name, value)
        return text

    def _value(self, name: str, value: Any) -> str:
        if isinstance(value, RawValue):
            return str(value)
        if isinstance(value, Computation):
            return self.name(value.name)
        if name == "replica_groups" and self.options.print_full_replica_group_list and value != ():
            return str(value.full_list())
        if hasattr(value, "canonical"):
            value = value.canonical()
        if name == "sharding" and not self.options.print_metadata:
            value = value.without_metadata()
        return value_text(value, name)

    def _call(self, use: AttributeUse, instruction: Instruction, indent: int) -> list[str]:
        """A called computation by name, or its whole body."""
        mode = self.options.print_subcomputation_mode
        value = instruction._attributes.get(use.name)
        if (
            value is None
            or value == ()
            or mode is SubcomputationMode.OFF
            or use.printed is Printing.INPUT_ONLY
        ):
            return []
        if mode is SubcomputationMode.NAME_ONLY or (
            mode is SubcomputationMode.NON_SEQUENTIAL_BODIES and instruction._opcode in _SEQUENTIAL
        ):
            if mode is SubcomputationMode.NON_SEQUENTIAL_BODIES:
                return []
            if use.calls is Calls.LIST:
                return [f"{use.name}={{{', '.join(self.computation_name(c) for c in value)}}}"]
            return [f"{use.name}={self.computation_name(value)}"]
        if use.calls is Calls.LIST:
            bodies = ",\n".join(self.computation(c, indent, nested=True) for c in value)
            return [f"{use.name}={{\n{bodies}\n}}"]
        name = "calls" if instruction._opcode in _PRINTED_AS_CALLS else use.name
        return [f"{name}=\n{self.computation(value, indent, nested=True)}"]

    def computation_name(self, computation: Computation) -> str:
        return self.name(self._titles.get(computation, computation.name))

    def _sugar_attributes(
        self, start: Instruction, wrapped: Instruction, names: Callable[[Instruction], str], indent: int
    ) -> list[str]:
        """The own attributes of an asynchronous start in its short spelling."""
        out = []
        row = opcodes.OPCODES["async-start"]
        own = {use.name: use for use in row.attributes}
        thread = self._use(own["async_execution_thread"], start)
        if thread is not None and self.options.print_extra_attributes:
            out.append(f"async_execution_thread={thread}")
        wrapped_row = opcodes.OPCODES.get(wrapped._opcode)
        if wrapped_row is not None:
            # Whether the start has frontend attributes decides for all that XLA prints of the wrapped operation, the
            # bodies inside it too, whatever the option says.
            is_plain = not start._attributes.get("frontend_attributes")
            inner = TextPrinter(attrs.evolve(self.options, print_frontend_attributes=is_plain))
            out += inner._own(wrapped_row, wrapped, indent)
            out += inner._common(wrapped_row, wrapped, names, {"metadata", "origin", "backend_config"})
        aliasing = self._use(own["output_to_operand_aliasing"], start)
        if aliasing is not None:
            out.append(f"output_to_operand_aliasing={aliasing}")
        if self.options.print_subcomputation_mode is SubcomputationMode.FULL_BODIES:
            out += self._call(own["calls"], start, indent)
        return out

    def _common(
        self,
        row: Opcode,
        instruction: Instruction,
        names: Callable[[Instruction], str],
        hidden: Iterable[str] = (),
    ) -> list[str]:
        """The attributes that every instruction may have, in XLA's order."""
        given = instruction._attributes
        if not given:
            return []
        out = []
        for use in opcodes.common_attributes(row):
            value = given.get(use.name)
            if value is None or use.name in hidden:
                continue
            text = self._common_value(instruction, use, value, names)
            if text is not None:
                out.append(f"{use.name}={text}")
        return out

    def _common_value(
        self, instruction: Instruction, use: AttributeUse, value: Any, names: Callable[[Instruction], str]
    ) -> str | None:
        options = self.options
        if isinstance(value, Metadata):
            return self._metadata(instruction, value) if options.print_metadata else None
        if isinstance(value, BackendConfig):
            if not options.print_backend_config or not value.text:
                return None
            return str(_sorted_config(value) if options.sort_backend_config else value)
        if use.name == "control-predecessors":
            if not options.print_control_dependencies or not value:
                return None
            return f"{{{', '.join(names(i) for i in value)}}}"
        if isinstance(value, FrontendAttributes) and not options.print_frontend_attributes:
            return None
        if use.name == "origin" and not options.print_original_value:
            return None
        if isinstance(value, Sharding) and instruction._shape is not None:
            return self.value(instruction, use.name, value.for_shape(instruction._shape))
        return self._use(use, instruction)

    def _metadata(self, instruction: Instruction, metadata: Metadata) -> str | None:
        options = self.options
        if options.print_metadata_only_op_name:
            return str(Metadata(op_name=metadata.op_name)) if metadata.op_name else "{}"
        if options.print_inline_stack_frames and metadata.stack_frame_id and instruction.frames:
            metadata = metadata.with_frame(instruction.frames[0])
        return str(metadata) if metadata.is_printed else None


_SEQUENTIAL = frozenset({"call", "while", "conditional"})
_PRINTED_AS_CALLS = frozenset({"reduce-scatter", "scan", "fusion", "async-start"})
"""Opcodes whose body XLA introduces with `calls=` when it prints whole bodies."""


def _derived(use: AttributeUse, instruction: Instruction) -> Any:
    """The value that stands for an absent attribute."""
    if not isinstance(use.default, Derived):
        return use.default
    operand = instruction._operands[0] if instruction._operands else None
    shape = operand._shape if operand is not None else None
    if shape is None:
        return None
    if use.default is Derived.OPERAND_SHAPE:
        return shape.with_default_layout()
    if use.default is Derived.OPERAND_DIMENSIONS:
        return tuple(range(shape.rank))
    return _COMPARISON_TYPE.get(shape.element_type.kind)


_COMPARISON_TYPE = {
    TypeKind.FLOAT: "FLOAT",
    TypeKind.COMPLEX: "FLOAT",
    TypeKind.SIGNED: "SIGNED",
    TypeKind.UNSIGNED: "UNSIGNED",
    TypeKind.PREDICATE: "UNSIGNED",
}


def _sorted_config(config: BackendConfig) -> BackendConfig:
    """The same settings with sorted keys, when they are JSON."""
    try:
        value = config.json()
    except ValueError:
        return config
    return BackendConfig(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def signature(computation: Computation) -> str:
    """Parameters and result as a computation's header shows them: `(p: f32[2]) -> f32[2]`."""
    parameters = ", ".join([f"{p._name}: {_plain(p._shape)}" for p in computation.parameters])
    result = _plain(computation.shape) if len(computation) else "?"
    return f"({parameters}) -> {result}"


def inline_titles(module: Module) -> dict[Computation, str]:
    """Names for the bodies written in place of a name, as XLA makes them up: `_`, `_.1`, `_.2` ..."""
    taken = {computation.name for computation in module.computations}
    titles: dict[Computation, str] = {}
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
    """The operation that an asynchronous instruction wraps, where XLA's short spelling says it all; else None.

    That is where the wrapped computation holds nothing but its parameters and its root.
    """
    first = instruction
    while first._opcode != "async-start":
        if not first._operands or not first._operands[0]._opcode.startswith("async-"):
            return None
        first = first._operands[0]
    callees = first.called_computations
    if not callees or not callees[0]._instructions:
        return None
    root = callees[0].root
    if root._opcode in opcodes.NOT_WRAPPABLE or root._opcode not in opcodes.OPCODES:
        return None
    if any(i._opcode != "parameter" and i is not root for i in callees[0]):
        return None
    return root


def canonical_order(module: Module) -> list[Computation]:
    """The computations in an order that follows from the calls alone."""
    called = {callee for i in module.instructions() for callee in i.called_computations}
    return post_order(c for c in module.computations if c not in called)


__all__ = ["TextPrinter", "canonical_order", "quote_unless_dict", "signature", "sugared"]
