"""Makes right modules, for hypothesis: op lines by the opcode table, any shapes and literals, every attribute.

Right as the reader takes it: operand counts, attributes and their values fit the opcode, names are defined. Whether shapes
fit together is not the reader's question, so they are drawn freely where nothing but that depends on them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st

import hlotext as hlo
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Calls, Opcode, Payload
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType, TypeKind
from hlotext.semantics import conditions
from tests import attribute_cases

MOST_COMPUTATIONS = 4
MOST_LINES = 8
MOST_ELEMENTS = 24
"""Elements of a literal."""

ARRAY_TYPES = tuple(
    type_ for type_ in ELEMENT_TYPES.values() if type_.is_array_type and type_.kind is not TypeKind.UNKNOWN
)
_STEMS = ("x", "fusion", "get-tuple-element", "_a", "p.1", "A-b.c", "wrapped_add", "ENTRY_", "f32x", "true_")
_HEADER = (
    "is_scheduled=true", "replica_count=2", "num_partitions=8", 'frontend_attributes={a="b",c={"d":[1]}}',
    "allow_spmd_sharding_propagation_to_output={true}", "attribute_of_next_year={[(1)]}",
)  # fmt: skip
_TABLES = """FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=1 end_line=2 column=3 end_column=4}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

"""

Draw = Callable[[Any], Any]


@attrs.frozen
class Shape:
    """A shape as text, with what a literal of it needs to know."""

    text: str
    type: ElementType | None = None
    sizes: tuple[int, ...] = ()
    elements: tuple[Shape, ...] | None = None
    """Those of a tuple."""

    @property
    def is_small(self) -> bool:
        """Whether a literal of it is of a size to write down."""
        if self.elements is not None:
            return len(self.elements) < 4 and all(element.is_small for element in self.elements)
        count = math.prod(max(1, size) for size in self.sizes)
        return (
            self.type is not None
            and count <= MOST_ELEMENTS
            and "<=" not in self.text
            and "b(" not in self.text
        )


# ---- shapes and literals


@st.composite
def shapes(draw: Draw, depth: int = 0) -> Shape:
    """Arrays of any type with any layout, tuples, tokens and buffers."""
    kind = draw(st.sampled_from("aaaaaaaatokb" if depth < 3 else "aaok"))
    if kind == "t":
        elements = tuple(draw(st.lists(shapes(depth + 1), max_size=3)))
        return Shape(f"({', '.join(element.text for element in elements)})", elements=elements)
    if kind == "o":
        return Shape("opaque[]")
    if kind == "k":
        return Shape("token[]")
    array = draw(arrays())
    return Shape(f"b({array.text})") if kind == "b" else array


@st.composite
def arrays(draw: Draw) -> Shape:
    """An array: small enough for a literal, or huge."""
    type_ = draw(st.sampled_from(ARRAY_TYPES))
    size = st.integers(0, 5) | st.sampled_from((1, 8, 128, 2**20, 2**40))
    sizes = tuple(draw(st.lists(size, max_size=5)))
    dynamic = draw(st.sets(st.integers(0, 4), max_size=1)) if draw(st.booleans()) else set()
    written = [f"<={number}" if i in dynamic else str(number) for i, number in enumerate(sizes)]
    layout = ""
    if sizes and draw(st.booleans()):
        order = ",".join(map(str, draw(st.permutations(range(len(sizes))))))
        tiles = draw(st.sampled_from(("", ":T(8,128)", ":T(8,128)(2,1)", ":T(4)L(32)", ":E(4)")))
        space = draw(st.sampled_from(("", "S(1)", "S(5)")))
        layout = f"{{{order}{tiles or (':' if space else '')}{space}}}"
    return Shape(f"{type_.name}[{','.join(written)}]{layout}", type_, sizes)


def literals(shape: Shape) -> st.SearchStrategy[str]:
    """The text between the parentheses of a constant."""
    if shape.elements is not None:
        return st.tuples(*map(literals, shape.elements)).map(lambda parts: f"({', '.join(parts)})")
    assert shape.type is not None
    return _nested(_scalars(shape.type), shape.sizes)


def _nested(scalar: st.SearchStrategy[str], sizes: tuple[int, ...]) -> st.SearchStrategy[str]:
    if not sizes:
        return scalar
    inner = _nested(scalar, sizes[1:])
    rows = st.lists(inner, min_size=sizes[0], max_size=sizes[0])
    return rows.map(lambda row: f"{{{', '.join(row)}}}")


def _scalars(type_: ElementType) -> st.SearchStrategy[str]:
    """Values of a type as text, of every form in which they can stand."""
    kind = type_.kind
    if kind is TypeKind.PREDICATE:
        return st.sampled_from(("true", "false", "0", "1"))
    if kind in (TypeKind.SIGNED, TypeKind.UNSIGNED):
        lowest = -(2 ** (type_.bits - 1)) if kind is TypeKind.SIGNED else 0
        return st.integers(lowest, lowest + 2**type_.bits - 1).map(str)
    if kind is TypeKind.COMPLEX:
        part = st.floats(width=32).map(_number)
        return st.tuples(part, part).map(lambda pair: f"({pair[0]}, {pair[1]})")
    if type_.bits <= 8:
        zero = () if type_.name == "f8e8m0fnu" else ("0",)  # it holds powers of two alone
        return st.sampled_from((*zero, "0.5", "1", "1.0", "1e0", "2"))
    return st.floats(width=16).map(_number)


def _number(value: float) -> str:
    return repr(value)


# ---- op lines


@functools.cache
def attribute_texts() -> dict[str, tuple[str, ...]]:
    """Attributes with their values, by name: the good cases of the tests.

    Without those that name something, those that are not known, and strings with escapes or quotes, of which XLA prints some
    without.
    """
    found: dict[str, list[str]] = {}
    for case in attribute_cases.GOOD:
        facts: Any = case.values[0]
        if (
            facts["rule"] == "attribute"
            and "reference" not in facts
            and not facts.get("raw")
            and not any(odd in facts["text"] for odd in ("\\", "'\""))
        ):
            found.setdefault(facts["text"].split("=")[0], []).append(facts["text"])
    return {name: tuple(texts) for name, texts in found.items()}


@functools.cache
def free_opcodes() -> tuple[Opcode, ...]:
    """Opcodes of which the reader asks nothing but counts and attributes."""
    return tuple(
        row
        for row in opcodes.OPCODES.values()
        if row.name not in conditions.BY_OPCODE
        and row.name not in ROLES
        and row.payload is Payload.OPERANDS
        and not row.alternatives
        and all(
            use.name in attribute_texts()
            for use in row.attributes
            if use.required and use.calls is Calls.NONE
        )
    )


@attrs.define
class _Scope:
    """A computation that is being written."""

    draw: Draw
    callees: list[str]
    """Computations that stand before it."""
    mark: str
    """`%` or nothing before names."""
    lines: list[str] = attrs.field(factory=list)
    values: list[tuple[str, str]] = attrs.field(factory=list)
    """Names and shapes of what is defined."""
    parameters: int = 0

    @property
    def kinds(self) -> tuple[Callable[[], None], ...]:
        """What can be written next; what stands here twice is written more often."""
        return self.free_line, self.free_line, self.example_line, self.constant_line, self.async_lines

    def define(self, shape: str, right: str) -> None:
        """Adds a line; `right` is what follows the shape."""
        name = f"{self.draw(st.sampled_from(_STEMS))}.{len(self.values)}"
        self.values.append((name, shape))
        self.lines.append(f"{self.mark}{name} = {shape} {right}")

    def parameter(self, shape: str) -> None:
        self.define(shape, f"parameter({self.parameters})")
        self.parameters += 1

    def operand(self, value: tuple[str, str]) -> str:
        """A reference, with the shape or without."""
        name, shape = value
        return f"{shape} {self.mark}{name}" if self.draw(st.booleans()) else f"{self.mark}{name}"

    def free_line(self) -> None:
        """An operation of any shapes, with any of its attributes."""
        row = self.draw(st.sampled_from(free_opcodes()))
        counts = [count for count in range(7) if row.arity.accepts(count)]
        count = self.draw(st.sampled_from(counts))
        if not self.values:
            self.parameter(self.draw(shapes()).text)
        operands = [self.operand(self.draw(st.sampled_from(self.values))) for _ in range(count)]
        self.define(
            self.draw(shapes()).text, ", ".join([f"{row.name}({', '.join(operands)})", *self.attributes(row)])
        )

    def attributes(self, row: Opcode) -> list[str]:
        """The attributes that must be there, and some that may."""
        found = []
        given = set()
        for use in opcodes.allowed_attributes(row).values():
            if use.old or not (use.required or self.draw(st.integers(0, 5)) == 0):
                continue
            if use.calls is Calls.ONE:
                found.append(f"{use.name}={self.callee()}")
            elif use.calls is Calls.LIST:
                found.append(f"{use.name}={{{self.callee()}, {self.callee()}}}")
            elif use.name == "control-predecessors":
                found.append(f"{use.name}={{{self.mark}{self.draw(st.sampled_from(self.values))[0]}}}")
            elif use.name in attribute_texts():
                found.append(self.draw(st.sampled_from(attribute_texts()[use.name])))
            else:
                continue
            given.add(use.name)
        if "use_global_device_ids" in given and "channel_id" not in given:
            found.append("channel_id=1")
        return list(self.draw(st.permutations(found)))

    def callee(self) -> str:
        """A computation: one that stands before, or a body in its place."""
        if self.callees and self.draw(st.booleans()):
            return f"%{self.draw(st.sampled_from(self.callees))}"
        shape = self.draw(arrays()).text
        return f"{{ a = {shape} parameter(0) ROOT b = {shape} negate(a) }}"

    def example_line(self) -> None:
        """An operation as the table shows it, its operands from anywhere."""
        row = self.draw(st.sampled_from(complete_opcodes()))
        text, operands = example(row.name)
        names = []
        for shape in operands:
            equal = [value for value in self.values if value[1] == shape]
            if not equal or self.draw(st.booleans()):
                self.parameter(shape)
                equal = self.values[-1:]
            names.append(self.operand(self.draw(st.sampled_from(equal))))
        shape, opcode, tail = text
        if row.payload is Payload.PARAMETER_NUMBER:
            self.parameter(shape)
            return
        inside = tail if row.payload is Payload.LITERAL else f"({', '.join(names)}){tail}"
        self.define(shape, f"{opcode}{inside}")

    def async_lines(self) -> None:
        """An operation in parts, by names of its own or with a called computation."""
        calls = ", calls={ x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }"
        word, tail = self.draw(st.sampled_from((("negate", ""), ("async", calls))))
        self.parameter("f32[4]")
        whole = "((f32[4]), f32[4], u32[])"
        self.define(whole, f"{word}-start({self.operand(self.values[-1])}){tail}")
        for _ in range(self.draw(st.integers(0, 2))):
            self.define(whole, f"{word}-update({self.operand(self.values[-1])})")
        self.define("f32[4]", f"{word}-done({self.operand(self.values[-1])})")

    def constant_line(self) -> None:
        shape = self.draw(shapes().filter(lambda shape: shape.is_small))
        self.define(shape.text, f"constant({self.draw(literals(shape))})")


@functools.cache
def complete_opcodes() -> tuple[Opcode, ...]:
    """Opcodes whose examples stand by themselves: not those that go on with what another one has begun."""
    return tuple(row for row in opcodes.OPCODES.values() if ROLES.get(row.name) not in ("update", "done"))


@functools.cache
def example(opcode: str) -> tuple[tuple[str, str, str], tuple[str, ...]]:
    """The example of a row: its shape, opcode, and what follows the operands; and the shapes of its operands."""
    row = opcodes.OPCODES[opcode]
    instruction = hlo.parse_instruction(row.example)
    shape = str(instruction.shape)
    right = row.example[row.example.index(f" {instruction.opcode}(") + 1 :]
    name, _, rest = right.partition("(")
    if row.payload is not Payload.OPERANDS:
        return (shape, name, f"({rest}"), ()
    depth, end = 1, 0
    while depth:
        depth += {"(": 1, ")": -1}.get(rest[end], 0)
        end += 1
    operands = tuple(str(operand.shape) for operand in instruction.operands)
    return (shape, name, rest[end:]), operands


# ---- modules


@st.composite
def modules(draw: Draw) -> str:
    """The text of a right module."""
    parts = []
    if draw(st.booleans()):
        header = ", ".join(["HloModule m", *draw(st.lists(st.sampled_from(_HEADER), unique=True))])
        parts += [f"{header}\n\n", draw(st.sampled_from(("", _TABLES)))]
    mark = draw(st.sampled_from(("%", "")))
    callees: list[str] = []
    count = draw(st.integers(1, MOST_COMPUTATIONS))
    for number in range(count):
        scope = _Scope(draw, callees, mark)
        for _ in range(draw(st.integers(1, MOST_LINES))):
            draw(st.sampled_from(scope.kinds))()
        root = draw(st.integers(0, len(scope.lines)))
        end = draw(st.sampled_from(("\n", "\n", " // }\n", "\n\n", "\r\n")))
        entry = "ENTRY " if number == count - 1 and draw(st.booleans()) else ""
        name = f"{draw(st.sampled_from(_STEMS))}.{number}"
        lines = [f"  {'ROOT ' if i == root else ''}{line}{end}" for i, line in enumerate(scope.lines)]
        parts.append(f"{entry}{mark}{name} {{{end}{''.join(lines)}}}\n\n")
        callees.append(name)
    return "".join(parts)
