"""A module of any stage as plain HLO text that jaxlib's CPU client compiles.

Layouts, tiles, memory spaces, schedules, control dependencies and backend configurations go. Fusions become calls,
asynchronous pairs what they wrap, bitcasts moves of elements, mixed precisions conversions, known custom calls what they
compute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata

import attrs

from hlotext.analysis.devices import devices_of, participant_groups
from hlotext.execution import manual_regions
from hlotext.execution.bitcasts import bitcast
from hlotext.execution.custom_calls import custom_call
from hlotext.execution.errors import NotExecutable
from hlotext.execution.lines import Lines, Plain, wider
from hlotext.execution.parts import pieces
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import comparison, traits, xla_changes
from hlotext.ir.tables.opcodes import ELEMENTWISE, NATIVE_ASYNC
from hlotext.ir.values.age import as_age
from hlotext.ir.values.enums import ComparisonOrder
from hlotext.ir.values.print_options import PrintOptions
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ElementType, element_type
from hlotext.syntax.printing.xla_styles import TextPrinter

_PRINTER = TextPrinter(
    attrs.evolve(
        PrintOptions(),
        print_metadata=False,
        print_backend_config=False,
        print_control_dependencies=False,
        print_original_value=False,
        print_frontend_attributes=False,
        include_layout_in_shapes=False,
        syntax_sugar_async_ops=False,
    )
)
_NEGATIVE_ZERO = re.compile(r"(?<![\w.+\-])-0(?![\w.])")
_DROPPED = frozenset(
    {
        *(
            "sharding",
            "kind",
            "statistics",
            "origin",
            "channel_id",
            "use_global_device_ids",
            "replica_groups",
        ),
        *("operand_layout_constraints", "output_to_operand_aliasing", "api_version", "custom_call_schedule"),
        *("result_accuracy", "is_composite", "is_stable_layout", "constrain_layout"),
        *("cross_program_prefetch_index", "called_computations", "original_value", "execution_thread"),
    }
)
"""Attributes of no meaning for the result, or given anew."""
_CALLS = frozenset({"calls", "to_apply", "branch_computations", "true_computation", "false_computation"})
_SAME = frozenset({"copy", "opt-barrier", "add-dependency", "domain", "copy-start", "copy-done"})
"""They give their first operand."""
_MOVES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("broadcast", "reshape", "transpose", "slice", "reverse", "dynamic-slice", "gather"), (0,)
    ),
    **dict.fromkeys(("pad", "dynamic-update-slice"), (0, 1)),
    "dynamic-reshape": (0,),
}
"""Opcodes that move elements of these operands; a TPU's may convert them on the way."""
_REDUCERS = frozenset(
    {"reduce", "reduce-window", "scatter", "select-and-scatter", "all-reduce", "reduce-scatter"}
)
"""Opcodes that combine elements by a computation, whose types they take."""
_COLLECTIVES = frozenset(
    {"all-reduce", "reduce-scatter", "all-gather", "all-to-all", "collective-permute", "collective-broadcast"}
)
_IMPOSSIBLE = frozenset(
    {
        "infeed",
        "outfeed",
        "send",
        "recv",
        "send-done",
        "recv-done",
        "rng",
        "rng-get-and-update-state",
        "custom-fusion",
    }
)
_PRED_FREE = frozenset(
    {"compare", "convert", "bitcast-convert", "is-finite", "real", "imag", "complex", "select"}
)
"""Elementwise opcodes whose operands may be of other types than their result."""
_NARROW = (
    "bf16",
    "f16",
    "f8e5m2",
    "f8e4m3fn",
    "f8e4m3b11fnuz",
    "f8e4m3",
    "f8e3m4",
    "f8e5m2fnuz",
    "f8e4m3fnuz",
)
WIDENED: Mapping[ElementType, ElementType] = {element_type(name): element_type("f32") for name in _NARROW}
"""Floats narrower than f32: with these as f32 steps that only drop precision compute the same."""


@attrs.frozen
class PlainModule:
    """A module in a form that the CPU client accepts."""

    text: str
    parameters: tuple[Shape, ...]
    """Parameter arrays in the types of the original module, without layouts, with tuples flattened."""
    taken: tuple[Shape, ...]
    """Parameter arrays in the types of the converted module."""
    results: tuple[Shape, ...]
    """Result arrays in the types of the converted module."""
    devices: int
    """Number of devices (replicas) that execute it."""
    pieces: tuple[tuple[int, ...], ...] = ()
    """For each parameter array, the index of the shard that each device holds (`parts.pieces`)."""


def plain(module: Module, *, wide: bool = False, devices: int | None = None) -> PlainModule:
    """Converts a module to a form that jaxlib's CPU client accepts.

    Args:
        module: A module of any stage. It is not modified.
        wide: Widen floats narrower than f32 to f32.
        devices: Number of devices. None uses the module's own number (from its header, else its replica groups and
            shardings), or 1 if unknown. Use 1 to run a program before partitioning as a whole. A program with
            `shard_map` regions runs on the devices of their mesh, all with the same arguments.

    Returns:
        The converted module, with the types of its arguments and results.

    Raises:
        NotExecutable: An instruction cannot be executed on CPU, or its semantics are unknown; the message names it. Or
            `devices` is above 1 and differs from the module's own number, if that is above 1 too.
    """
    return _Writer(module, WIDENED if wide else {}, devices).module()


def narrow_types(module: Module) -> frozenset[ElementType]:
    """Returns the floating-point types narrower than f32 in the shapes of a module's instructions."""
    expect_module(module)
    return frozenset(
        leaf.element_type
        for i in module.instructions()
        if i.shape is not None
        for _, leaf in i.shape.leaves()
        if leaf.element_type in WIDENED
    )


class _Writer:
    def __init__(self, source: Module, types: Mapping[ElementType, ElementType], devices: int | None) -> None:
        self.source = source
        self.types = types
        known = devices_of(source)
        self.devices = devices or known.total or 1
        if devices is not None and devices > 1 and known.total not in (None, 1, devices):
            raise NotExecutable(
                f"the module is for {known.total} devices, not {devices}; set devices= to {known.total}, or to 1 to run "
                "the whole program"
            )
        # Of a text that names no devices those that are asked for are partitions.
        self.partitions = (known.partitions or 1) if known.total == self.devices else self.devices
        self.is_whole = manual_regions.has_regions(source)
        self.names: dict[Computation, str] = {}
        self.roots: dict[Computation, Plain] = {}
        self.inputs: dict[Computation, list[Shape]] = {}
        self._numbers = [0]
        self._entry: tuple[list[Shape], list[Shape], list[Shape]] = ([], [], [])

    def shape(self, shape: Shape | None) -> Shape:
        """A shape as it stands in the plain text. Raises NotExecutable."""
        if shape is None:
            raise NotExecutable("a shape is unknown")
        if shape.is_tuple:
            return Shape.tuple(tuple(map(self.shape, shape.tuple_shapes)))
        if shape.is_array and not shape.is_static:
            raise NotExecutable(f"{shape} has a dynamic size")
        bare = shape.without_layout()
        wide = self.types.get(bare.element_type)
        return bare if wide is None else Shape(wide, bare.dimensions)

    # ---- computations

    def module(self) -> PlainModule:
        entry = self.source.entry
        reached = _reached(entry)
        texts = [
            self.computation(one)
            for one in post_order(self.source.computations)
            if one in reached and one is not entry
        ]
        texts.append(self.computation(entry, is_entry=True))
        name = "".join(c if c.isalnum() else "_" for c in self.source.name) or "module"
        head = f"HloModule {name}" + (f", replica_count={self.devices}" if self.devices > 1 else "")
        parameters, taken, results = map(tuple, self._entry)
        replicas = self.devices // self.partitions
        held = [piece for one in entry.parameters for piece in pieces(one, replicas, self.partitions)]
        if self.is_whole:
            held = [(0,) * self.devices for _ in held]
        text = f"{head}\n\n" + "\n\n".join(texts) + "\n"
        return PlainModule(text, parameters, taken, results, self.devices, tuple(held))

    def computation(self, computation: Computation, is_entry: bool = False) -> str:
        name = f"c{len(self.names)}"
        self.names[computation] = name
        body = _Body(self, computation)
        if is_entry:
            for parameter in computation.parameters:
                body.values[parameter] = self._flat_parameter(body.lines, parameter.shape)
        for instruction in computation:
            if instruction not in body.values:
                try:
                    body.values[instruction] = body.value(instruction)
                except NotExecutable as error:
                    raise NotExecutable(f"{instruction.opcode} {instruction.name}: {error}") from None
        root = body.values[computation.root]
        if is_entry:
            root = self._flat_results(body.lines, root)
        self.roots[computation] = root
        self.inputs[computation] = [body.values[p].shape for p in computation.parameters]
        return body.lines.text(name, root, is_entry)

    def _flat_parameter(self, lines: Lines, shape: Shape | None) -> Plain:
        plain_shape = self.shape(shape)
        assert shape is not None
        if shape.is_tuple:
            return lines.tuple([self._flat_parameter(lines, part) for part in shape.tuple_shapes])
        if not shape.is_array:
            raise NotExecutable(f"a parameter of the entry is {shape}")
        parameters, taken, _ = self._entry
        parameters.append(shape.without_layout())
        taken.append(plain_shape)
        return lines.add("parameter", plain_shape, (str(len(taken) - 1),))

    def _flat_results(self, lines: Lines, root: Plain) -> Plain:
        """The root as one tuple of arrays, or the array; tokens are left out."""
        leaves = list(self._leaves(lines, root))
        self._entry[2].extend(leaf.shape for leaf in leaves)
        return lines.tuple(leaves)

    def _leaves(self, lines: Lines, value: Plain) -> list[Plain]:
        if value.shape.is_tuple:
            return [
                leaf
                for index in range(len(value.shape.tuple_shapes))
                for leaf in self._leaves(lines, lines.element(value, index))
            ]
        return [value] if value.shape.is_array else []


def _reached(entry: Computation) -> set[Computation]:
    found = {entry}
    pending = [entry]
    while pending:
        for instruction in pending.pop():
            for callee in instruction.called_computations:
                if callee not in found:
                    found.add(callee)
                    pending.append(callee)
    return found


class _Body:
    """One computation on its way."""

    def __init__(self, writer: _Writer, computation: Computation) -> None:
        self.writer = writer
        self.lines = Lines(writer._numbers)
        self.values: dict[Instruction, Plain] = {}
        self.computation = computation

    def value(self, i: Instruction) -> Plain:
        """Result of an instruction. Raises NotExecutable."""
        opcode = i.opcode
        if opcode in _IMPOSSIBLE:
            raise NotExecutable("does not run on the CPU client, or is not deterministic")
        if opcode == "parameter":
            return self.lines.add("parameter", self.shape(i), (str(i.parameter_number),))
        if opcode == "constant":
            return self.constant(i)
        operands = [self.values[operand] for operand in i.operands]
        if opcode in _SAME:
            return self.same(i, operands[0])
        if opcode == "tuple":
            return self.lines.tuple(operands)
        if opcode == "get-tuple-element":
            return self.lines.element(operands[0], i.attributes["index"])
        rule = _RULES.get(opcode)
        if rule is not None:
            return rule(self, i, operands)
        if opcode in NATIVE_ASYNC or opcode in ROLES:
            return self.asynchronous(i, operands)
        if opcode in _MOVES:
            return self.moved(i, operands)
        if opcode in _REDUCERS:
            return self.reduced(i, opcode, operands, self.shape(i))
        if opcode in _COLLECTIVES:
            return self.collective(i, opcode, operands, self.shape(i))
        if opcode in ELEMENTWISE and opcode not in _PRED_FREE:
            return self.in_one_type(i, operands, range(len(operands)))
        return self.plainly(i, opcode, operands, self.shape(i))

    def shape(self, i: Instruction) -> Shape:
        return self.writer.shape(i.shape)

    def plainly(self, i: Instruction, opcode: str, operands: Sequence[Plain], shape: Shape) -> Plain:
        """The same operation."""
        return self.lines.add(opcode, shape, operands, *self.attributes(i))

    def attributes(self, i: Instruction, *dropped: str) -> list[str]:
        """The attributes that count, with the computations by their new names."""
        calls: dict[str, list[str]] = {}
        for name, callee in i.callees():
            calls.setdefault(name, []).append(f"%{self.writer.names[callee]}")
        found = []
        for text in _PRINTER.attributes(i, _no_name, 0, None):
            name = text.partition("=")[0]
            if name == "algorithm" and i.opcode in traits.DOTS:
                continue  # of another platform's units
            if name in ("type", "order") and i.opcode == "compare":
                text = _order_text(i)
                if not text:
                    continue
            if name not in _DROPPED and name not in calls and name not in dropped and name not in _CALLS:
                found.append(text)
        for name, callees in calls.items():
            is_list = isinstance(i.attributes[name], tuple)
            found.append(f"{name}={{{', '.join(callees)}}}" if is_list else f"{name}={callees[0]}")
        return found

    # ---- rules

    def constant(self, i: Instruction) -> Plain:
        if i.literal is None or i.literal.is_partly_elided:
            raise NotExecutable("its elements are not in the text; dump with xla_dump_large_constants=true")
        # XLA reads -0 as an integer, whose zero has no sign.
        text = _NEGATIVE_ZERO.sub("-0.0", i.literal.to_text())
        return self.lines.add("constant", self.shape(i), (text,))

    def same(self, i: Instruction, value: Plain) -> Plain:
        """The operand, which a TPU's copy may convert."""
        if i.opcode == "copy-start" or value.shape.is_tuple or not value.shape.is_array:
            return value
        return self.lines.convert(value, self.shape(i).element_type)

    def bitcast(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        source, target = i.operands[0].shape, i.shape
        if source is None or target is None:
            raise NotExecutable("a shape is unknown")
        return bitcast(self.lines, operands[0], source, target, self.shape(i).element_type)

    def convert(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        return self.lines.convert(operands[0], self.shape(i).element_type)

    def reduce_precision(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        if self.writer.types:
            return operands[0]
        return self.plainly(i, i.opcode, operands, self.shape(i))

    def bits(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        source = i.operands[0].shape
        if self.writer.shape(source) != (source.without_layout() if source else None) or (
            i.shape is not None and self.shape(i) != i.shape.without_layout()
        ):
            raise NotExecutable("a bitcast of a widened float")
        return self.plainly(i, i.opcode, operands, self.shape(i))

    def compare(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        type_ = wider(value.type for value in operands)
        return self.plainly(
            i, i.opcode, [self.lines.convert(value, type_) for value in operands], self.shape(i)
        )

    def select(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        return self.in_one_type(i, operands, (1, 2))

    def concatenate(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        return self.in_one_type(i, operands, range(len(operands)))

    def product(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        """A dot or a convolution, in the widest type."""
        shape = self.shape(i)
        type_ = wider([*(value.type for value in operands[:2]), shape.element_type])
        if not type_.is_floating:
            type_ = shape.element_type
        values = [self.lines.convert(value, type_) for value in operands[:2]]
        found = self.lines.add(
            i.opcode, Shape(type_, shape.dimensions), [*values, *operands[2:]], *self.attributes(i)
        )
        return self.lines.convert(found, shape.element_type)

    def in_one_type(self, i: Instruction, operands: Sequence[Plain], which: Sequence[int]) -> Plain:
        """Computed in the widest type of the operands and the result, as a TPU mixes them."""
        shape = self.shape(i)
        types = [operands[number].type for number in which]
        if any(one.is_complex is not shape.element_type.is_complex for one in types):
            return self.plainly(i, i.opcode, operands, shape)  # from complex numbers to real ones, or back
        type_ = wider([*types, shape.element_type])
        values = [
            self.lines.convert(value, type_) if number in which else value
            for number, value in enumerate(operands)
        ]
        found = self.plainly(i, i.opcode, values, Shape(type_, shape.dimensions))
        return self.lines.convert(found, shape.element_type)

    def moved(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        shape = self.shape(i)
        which = _MOVES[i.opcode]
        values = [
            self.lines.convert(value, shape.element_type) if number in which else value
            for number, value in enumerate(operands)
        ]
        return self.plainly(i, i.opcode, values, shape)

    def reduced(self, i: Instruction, opcode: str, operands: Sequence[Plain], shape: Shape) -> Plain:
        """Combined in the types of the computation that combines."""
        reducer = i.called_computations[-1] if i.called_computations else None
        if reducer is None:
            raise NotExecutable("it does not specify how elements are combined")
        types = [one.element_type for one in self.writer.inputs[reducer]]
        count = len(types) // 2 if len(types) > 2 else 1
        values = list(operands)
        if opcode in ("all-reduce", "reduce-scatter"):
            values = [self.lines.convert(value, types[0]) for value in values]
            leaves = [types[0]] * len(values)
        elif opcode == "scatter":
            indices = len(values) // 2
            values = [
                value if number == indices else self.lines.convert(value, types[number % (indices + 1)])
                for number, value in enumerate(values)
            ]
            leaves = types[:indices]
        elif opcode == "select-and-scatter":
            values = [self.lines.convert(value, types[0]) for value in values]
            leaves = types[:1]
        else:
            values = [self.lines.convert(value, types[number % count]) for number, value in enumerate(values)]
            leaves = types[:count]
        parts = shape.tuple_shapes if shape.is_tuple else (shape,)
        inner = [Shape(type_, part.dimensions) for type_, part in zip(leaves, parts, strict=True)]
        own = Shape.tuple(tuple(inner)) if shape.is_tuple else inner[0]
        extra = [self.groups(i)] if opcode in _COLLECTIVES else []
        found = self.lines.add(opcode, own, values, *self.attributes(i), *extra)
        return self.fitted(found, shape)

    def fitted(self, value: Plain, shape: Shape) -> Plain:
        """The value, converted where the shape has other types."""
        if value.shape == shape:
            return value
        if not shape.is_tuple:
            return self.lines.convert(value, shape.element_type) if shape.is_array else value
        parts = [self.fitted(self.lines.element(value, n), part) for n, part in enumerate(shape.tuple_shapes)]
        return self.lines.tuple(parts)

    def call(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        """A fusion, a call, and what an asynchronous one wraps."""
        (callee,) = i.called_computations[:1]
        wanted = self.writer.inputs[callee]
        values = [self.fitted(value, shape) for value, shape in zip(operands, wanted, strict=True)]
        root = self.writer.roots[callee]
        found = self.lines.add("call", root.shape, values, f"to_apply=%{self.writer.names[callee]}")
        return found if i.opcode == "async-start" else self.fitted(found, self.shape(i))

    def looped(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        """The state in the types of the body."""
        shape = self.writer.inputs[i.called_computations[0]][0]
        return self.fitted(self.plainly(i, i.opcode, [self.fitted(operands[0], shape)], shape), self.shape(i))

    def asynchronous(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        """All is done where it starts; the rest passes the result on."""
        if i.opcode == "async-start":
            return self.call(i, operands)
        if ROLES[i.opcode] != "start":
            return self.fitted(operands[0], self.shape(i)) if ROLES[i.opcode] == "done" else operands[0]
        opcode = NATIVE_ASYNC[i.opcode]
        shape = self.shape(i)
        if opcode in ("all-gather", "collective-permute"):
            shape = shape.tuple_shapes[1]
        if opcode in _REDUCERS:
            return self.reduced(i, opcode, operands, shape)
        if opcode in _COLLECTIVES:
            return self.collective(i, opcode, operands, shape)
        raise NotExecutable(f"{i.opcode} is not supported")

    def collective(self, i: Instruction, opcode: str, operands: Sequence[Plain], shape: Shape) -> Plain:
        return self.lines.add(opcode, shape, operands, *self.attributes(i), self.groups(i))

    def groups(self, i: Instruction) -> str:
        """The groups of a collective as lists of devices, which are replicas here."""
        if "source_target_pairs" in i.attributes:
            return ""
        joined = participant_groups(self.writer.source, i)
        if joined is None:
            return "replica_groups={}"
        return "replica_groups={" + ",".join("{" + ",".join(map(str, g)) + "}" for g in joined) + "}"

    def number(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        """Of the replica that stands for a device its partition, or its replica."""
        device = self.lines.add("replica-id", self.shape(i))
        partitions = self.lines.scalar(device.type, str(self.writer.partitions))
        return self.lines.binary("remainder" if i.opcode == "partition-id" else "divide", device, partitions)

    def custom(self, i: Instruction, operands: Sequence[Plain]) -> Plain:
        if manual_regions.is_edge(i):
            return manual_regions.edge(self.lines, i, operands, self.shape(i), self.writer.devices)
        found = custom_call(self.lines, i, operands, self.shape(i))
        return found if found is not None else self.plainly(i, i.opcode, operands, self.shape(i))


def _order_text(compare: Instruction) -> str:
    """The order of a comparison in the word that the installed jaxlib reads; empty for the usual one."""
    shape = compare.operands[0].shape if compare.operands else None
    order = comparison.order_of(compare.attributes, shape.element_type) if shape is not None else None
    if shape is None or order is None or order is comparison.default_order(shape.element_type):
        return ""
    try:
        age = as_age(metadata.version("jaxlib"))
    except (metadata.PackageNotFoundError, ValueError):
        age = None
    if age is None or age.has(xla_changes.COMPARISON_ORDER):
        return f"order={order.value}"
    return f"type={'TOTALORDER' if order is ComparisonOrder.TOTAL else 'FLOAT'}"


def _no_name(instruction: Instruction) -> str:
    return instruction.name


_RULES: dict[str, Callable[[_Body, Instruction, Sequence[Plain]], Plain]] = {
    "bitcast": _Body.bitcast,
    "convert": _Body.convert,
    "reduce-precision": _Body.reduce_precision,
    "bitcast-convert": _Body.bits,
    "compare": _Body.compare,
    "select": _Body.select,
    "concatenate": _Body.concatenate,
    "dot": _Body.product,
    "convolution": _Body.product,
    "fusion": _Body.call,
    "call": _Body.call,
    "while": _Body.looped,
    "partition-id": _Body.number,
    "replica-id": _Body.number,
    "custom-call": _Body.custom,
}
