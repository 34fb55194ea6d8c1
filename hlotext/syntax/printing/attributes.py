"""The attributes behind an op line's parentheses, in XLA's order and with XLA's rules of what is left out."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import comparison, opcodes, traits
from hlotext.ir.tables.opcode import AttributeUse, Calls, Derived, Opcode, Printing
from hlotext.ir.values.configs import BackendConfig, FrontendAttributes
from hlotext.ir.values.left_out import LeftOut
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.print_options import PrintOptions, SubcomputationMode
from hlotext.ir.values.raw_value import RawValue, canonical_text, value_text
from hlotext.ir.values.sharding import Sharding
from hlotext.syntax.source.limits import MAX_NESTING

Names: TypeAlias = Callable[[Instruction], str]
"""Names of the instructions of a computation."""


MIN_NESTED = 100_000
"""Op lines of bodies that are printed inside op lines, whatever the size of the module."""
MAX_NESTED_RATIO = 100
"""And how many more for each op line of the module."""


class AttributePrinter(abc.ABC):
    """Prints attributes with given options."""

    def __init__(self, options: PrintOptions) -> None:
        self.options = options
        self.percent = "%" if options.print_percent else ""
        self._values: dict[tuple[str, Any], str] = {}
        self._titles: dict[Computation, str] = {}
        """Names of the computations that have none in the text."""
        self._open: list[Computation] = []
        """The bodies inside which the printer is."""
        self._room = [MIN_NESTED]
        """Number of further op lines that may be printed in bodies inside op lines; a list, to be shared by printers."""

    @abc.abstractmethod
    def computation(
        self, computation: Computation, indent: int = 0, is_entry: bool = False, nested: bool = False
    ) -> str:
        """Returns a computation's text; `nested` is inside an op line."""

    def name(self, name: str) -> str:
        """Returns a name as these options print it."""
        if not self.options.print_ids:
            name = name.split(".", 1)[0]
        return f"{self.percent}{name}"

    def attributes(
        self,
        instruction: Instruction,
        names: Names,
        indent: int,
        wrapped: Instruction | None,
    ) -> list[str]:
        """Returns all attributes as `name=value`, in XLA's order."""
        row = opcodes.opcode(instruction._head.opcode)
        if row is None:
            return [
                f"{name}={self.value(instruction, name, value)}"
                for name, value in instruction._attributes.items()
            ]
        out: list[str] = []
        if wrapped is not None and instruction._head.opcode == "async-start":
            out += self._sugar_attributes(instruction, wrapped, names, indent)
        else:
            out += self._own(row, instruction, indent)
        out += self._common(row, instruction, names)
        given = instruction._attributes
        if not given.keys() <= (known := opcodes.allowed_attributes(row)).keys():
            out += [
                f"{name}={self.value(instruction, name, value)}"
                for name, value in given.items()
                if name not in known
            ]
        return out

    def _own(self, row: Opcode, instruction: Instruction, indent: int, calls: bool = True) -> list[str]:
        """The opcode's own attributes; with `print_extra_attributes` off only the called computations."""
        out: list[str] = []
        given = instruction._attributes
        for use in row.attributes:
            if use.calls is not Calls.NONE:
                if calls:
                    out += self._call(use, instruction, indent)
            elif use.name not in given and use.printed not in _PRINTED_WHEN_ABSENT:
                continue
            elif self.options.print_extra_attributes or use.name == "is_composite":
                text = self._use(use, instruction)
                if text is not None:
                    out.append(f"{_word(use, instruction)}={text}")
        return out

    def _use(self, use: AttributeUse, instruction: Instruction) -> str | None:
        """The text of one attribute's value; None when it is not printed."""
        options = self.options
        value = instruction._attributes.get(use.name)
        printed = use.printed
        if printed is Printing.INPUT_ONLY:
            return None
        if isinstance(value, RawValue):
            return str(value)
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
        if value is None:
            return None
        text = self.value(instruction, use.name, value)
        if printed is Printing.IF_NOT_EMPTY and text in ("", "{}", '""'):
            return None
        return text

    def value(self, instruction: Instruction, name: str, value: Any) -> str:
        """Returns the text of a value that is not a reference."""
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
        if (
            isinstance(value, tuple)
            and value
            and all(isinstance(i, Computation | Instruction) for i in value)
        ):
            return f"{{{', '.join(self.name(item.name) for item in value)}}}"
        if name == "replica_groups" and self.options.print_full_replica_group_list and value != ():
            return str(value.full_list())
        if name == "sharding" and not self.options.print_metadata:
            return value_text(value.canonical().without_metadata(), name)
        return canonical_text(value, name)

    def _call(self, use: AttributeUse, instruction: Instruction, indent: int) -> list[str]:
        """A called computation by name, or its whole body."""
        mode = self.options.print_subcomputation_mode
        value = instruction._attributes.get(use.name)
        if use.name == "called_computations" and value is None and "to_apply" in instruction._attributes:
            # A custom call's `to_apply` is read as a list of one.
            callee = instruction._attributes["to_apply"]
            value = callee if isinstance(callee, RawValue) else (callee,)
        if (
            value is None
            or value == ()
            or mode is SubcomputationMode.OFF
            or use.printed is Printing.INPUT_ONLY
        ):
            return []
        if isinstance(value, RawValue):
            return [f"{use.name}={value}"]
        if mode is SubcomputationMode.NAME_ONLY or (
            mode is SubcomputationMode.NON_SEQUENTIAL_BODIES and instruction._head.opcode in _SEQUENTIAL
        ):
            if mode is SubcomputationMode.NON_SEQUENTIAL_BODIES:
                return []
            if use.calls is Calls.LIST:
                return [f"{use.name}={{{', '.join(self.computation_name(c) for c in value)}}}"]
            return [f"{use.name}={self.computation_name(value)}"]
        if use.calls is Calls.LIST:
            bodies = ",\n".join([self._nested(c, indent) for c in value])
            return [f"{use.name}={{\n{bodies}\n}}"]
        name = "calls" if instruction._head.opcode in _PRINTED_AS_CALLS else use.name
        return [f"{name}=\n{self._nested(value, indent)}"]

    def _nested(self, computation: Computation, indent: int) -> str:
        """A called computation's body; its name where it is inside itself, or where the text would get out of hand.

        That is deeper than `MAX_NESTING`, and where computations that call each other twice would double the text again
        and again.
        """
        if computation in self._open or len(self._open) == MAX_NESTING or self._room[0] < 0:
            return self.computation_name(computation)
        self._room[0] -= len(computation)
        self._open.append(computation)
        text = self.computation(computation, indent, nested=True)
        self._open.pop()
        return text

    def computation_name(self, computation: Computation) -> str:
        return self.name(self._titles.get(computation, computation.name))

    def _sugar_attributes(
        self, start: Instruction, wrapped: Instruction, names: Names, indent: int
    ) -> list[str]:
        """The own attributes of an asynchronous start in its short spelling."""
        own = {use.name: use for use in opcodes.OPCODES["async-start"].attributes}
        out = []
        if self.options.print_extra_attributes:
            thread = self._use(own["async_execution_thread"], start)
            if thread is not None:
                out.append(f"async_execution_thread={thread}")
            out += self._of_wrapped(start, wrapped, names, indent)
            aliasing = self._use(own["output_to_operand_aliasing"], start)
            if aliasing is not None and "output_to_operand_aliasing" not in wrapped._attributes:
                out.append(f"output_to_operand_aliasing={aliasing}")
        if self.options.print_subcomputation_mode is SubcomputationMode.FULL_BODIES:
            out += self._call(own["calls"], start, indent)
        return out

    def _of_wrapped(self, start: Instruction, wrapped: Instruction, names: Names, indent: int) -> list[str]:
        """Attributes of the wrapped operation that the short spelling prints."""
        row = opcodes.OPCODES.get(wrapped._head.opcode)
        if row is None:
            return []
        # Frontend attributes on the start decide for all that XLA prints of the wrapped operation, including the bodies
        # inside it, whatever the option says.
        is_plain = not start._attributes.get("frontend_attributes")
        inner = type(self)(attrs.evolve(self.options, print_frontend_attributes=is_plain))
        inner._open, inner._room, inner._titles = self._open, self._room, self._titles
        own = inner._own(row, wrapped, indent)
        return own + inner._common(row, wrapped, names, self.hidden_of_wrapped(start))

    def hidden_of_wrapped(self, start: Instruction) -> frozenset[str]:
        """Returns the common attributes of the wrapped operation that the sugared form of its start omits."""
        return _HIDDEN_OF_WRAPPED

    def _common(
        self,
        row: Opcode,
        instruction: Instruction,
        names: Names,
        hidden: Iterable[str] = (),
    ) -> list[str]:
        """The attributes that every instruction may have, in XLA's order."""
        given = instruction._attributes
        if not given:
            return []
        out = []
        for use in opcodes.common_attributes(row):
            name = use.name
            if name not in given or name in hidden or (value := given[name]) is None:
                continue
            text = self._common_value(instruction, use, value, names)
            if text is not None:
                out.append(f"{name}={text}")
        return out

    def _common_value(
        self, instruction: Instruction, use: AttributeUse, value: Any, names: Names
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
            # XLA prints their own names here, even where it numbers all others.
            shown = [i for i in value if type(i) is not LeftOut or self.names_left_out(instruction)]
            return f"{{{', '.join(self.name(i.name) for i in shown)}}}" if shown else None
        if isinstance(value, FrontendAttributes) and not options.print_frontend_attributes:
            return None
        if use.name == "origin" and not options.print_original_value:
            return None
        if isinstance(value, Sharding) and instruction._head.shape is not None:
            return self.value(instruction, use.name, value.for_shape(instruction._head.shape))
        return self._use(use, instruction)

    def names_left_out(self, instruction: Instruction) -> bool:
        """True if control predecessors that a compact text omits are referenced; a full text defines them."""
        computation = instruction._computation
        return self.options.compact_gte and computation is not None and is_compact(computation)

    def _metadata(self, instruction: Instruction, metadata: Metadata) -> str | None:
        options = self.options
        if options.print_metadata_only_op_name:
            return str(Metadata(op_name=metadata.op_name)) if metadata.op_name else "{}"
        if options.print_inline_stack_frames and metadata.stack_frame_id:
            frame = instruction.innermost_frame
            if frame is not None:
                metadata = metadata.with_frame(frame)
        return str(metadata) if metadata.is_printed else None


def is_compact(computation: Computation) -> bool:
    """True if the compact form writes `%t#0` for an operand of the computation."""
    return any(operand._head.opcode == "get-tuple-element" for i in computation for operand in i._operands)


_HIDDEN_OF_WRAPPED = frozenset({"metadata", "origin", "backend_config"})
_PRINTED_WHEN_ABSENT = (Printing.ALWAYS, Printing.DERIVED)
_SEQUENTIAL = traits.CONTROL_FLOW
_PRINTED_AS_CALLS = frozenset({"reduce-scatter", "scan", "fusion", "async-start"})
"""Opcodes whose body XLA introduces with `calls=` when it prints whole bodies."""


def _word(use: AttributeUse, instruction: Instruction) -> str:
    """The name under which an attribute is printed: as the module's text calls it, else as the newest release does."""
    home = instruction._computation
    if not use.spellings or home is None or home._module is None or home._module._source is None:
        return use.name
    return home._module._source.spellings.get(use.name, use.name)


def _derived(use: AttributeUse, instruction: Instruction) -> Any:
    """The value that stands for an absent attribute."""
    if not isinstance(use.default, Derived):
        return use.default
    if use.default is Derived.RESULT_DIMENSIONS:
        return tuple(range(instruction._head.shape.rank)) if instruction._head.shape is not None else None
    operand = instruction._operands[0] if instruction._operands else None
    shape = operand._head.shape if operand is not None else None
    if shape is None:
        return None
    if use.default is Derived.OPERAND_SHAPE:
        return shape.with_default_layout()
    if use.default is Derived.COMPARISON_ORDER:
        return comparison.default_order(shape.element_type)
    return comparison.default_type(shape.element_type)


def _sorted_config(config: BackendConfig) -> BackendConfig:
    """The same settings with sorted keys, when they are JSON."""
    try:
        value = config.json()
    except ValueError:
        return config
    return BackendConfig(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
