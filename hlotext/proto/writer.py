"""From nodes to `HloModuleProto`: what the text can say, in the fields in which XLA looks for it.

Ids count computations and instructions in the order of the text, an instruction's below its computation's
(`HloInstruction::CalculateUniqueId`). What a proto said that modules have no place for goes back where it came from.
"""

from __future__ import annotations

import struct
from typing import Any

from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.naming import NameUniquer, sanitized
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.comparison import order_of
from hlotext.ir.tables.opcode import Calls, Derived, Printing
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.values.enums import CustomCallApiVersion
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.window import Window
from hlotext.proto import attributes as table
from hlotext.proto import common, header, print_order, shardings, wire
from hlotext.proto.calls import REPEATING
from hlotext.proto.codec import Tools, varint
from hlotext.proto.errors import ProtoError
from hlotext.proto.instruction_templates import is_shown
from hlotext.proto.literals import encoded, field, write_literal
from hlotext.proto.metadata import string_field, write_metadata
from hlotext.syntax import read

_ID, _CALLED = 35, 38
_WITH_LITERALS = frozenset({"constant", "custom-call"})
_SIZES = [encoded(size) for size in range(1 << 10)]
_SEPARATE = frozenset({"metadata", "control-predecessors"})


def write_module(module: Module, *, fill_elided: bool = False) -> bytes:
    """Serializes a module to an `HloModuleProto`.

    Args:
        module: The module.
        fill_elided: Write elided constants as zeros.

    Raises:
        ProtoError: A constant is elided (unless `fill_elided`), or the module cannot be represented as a proto, because
            of an opcode or attribute without a field, or text that is not UTF-8.
    """
    expect_module(module)
    module.materialize()
    try:
        return _Writer(module, fill_elided).module_bytes()
    except ProtoError:
        raise
    except (ValueError, OverflowError, struct.error) as error:
        raise ProtoError(f"a value of the header has no place in a proto: {error}") from None


class _Writer:
    """Writes one module."""

    def __init__(self, module: Module, fill_elided: bool) -> None:
        self.module = module
        self.tools = Tools(fill_elided)
        self.tools.inner_module_bytes = self._inner_bytes
        self.stored = dict(module._stored_bodies)
        self.ids: dict[Instruction, bytes] = {}
        """The varints of ids."""
        self.computation_ids: dict[Computation, int] = {}
        self._fields: dict[Any, tuple[bytes, bytes, Any]] = {}
        self._heads: dict[tuple[str, int], tuple[bytes, Any]] = {}
        self._metadata: dict[int, tuple[bytes, Any]] = {}
        self._literals: dict[int, tuple[bytes, Literal]] = {}
        self._parameter_shapes: dict[int, bytes] = {}
        self._known: dict[tuple[int, int, str], tuple[bytes, bytes, bytes]] = {}
        """Cached bytes of instructions with the same attributes, shape and opcode."""
        self._kept: list[Any] = []
        self._lowest: list[bytes] = []

    def module_bytes(self) -> bytes:
        module = self.module
        if not module.computations:
            raise ProtoError(f"module {module.name} has no computations")
        self._refuse()
        fusion_bodies = self.fusion_bodies = {
            callee
            for instruction in module.instructions()
            if instruction._head.opcode == "fusion"
            for callee in instruction.called_computations
        }
        # Instructions in the order in which readers, XLA's too, give them: so what is read and written again is the same.
        has_plan = module.is_scheduled
        self.instructions = {
            computation: computation._instructions
            if has_plan and computation not in fusion_bodies
            else print_order.as_read(computation)
            for computation in _as_stored(module)
        }
        ordered = list(self.instructions)
        names = NameUniquer()
        titles = {c: names.unique(sanitized(c.name) if c.name else "_") for c in ordered}
        self.names = _unique_names(module)
        for number, computation in enumerate(ordered, 1):
            self.computation_ids[computation] = number
        pieces = [string_field(1, module.name), string_field(2, titles[module.entry])]
        bodies = [field(3, self._computation(computation, titles[computation])) for computation in ordered]
        pieces += bodies
        pieces.append(varint(6, self.computation_ids[module.entry]))
        if module.is_scheduled:
            pieces.append(field(7, self._schedule(ordered)))
        pieces += header.write(module, self.tools)
        pieces.append(module._carried)
        return b"".join(pieces)

    def _inner_bytes(self, text: str) -> bytes:
        """The proto of a module that stands as text in the table of original values."""
        found, _ = read.read_modules(read.as_source(text, "<recovery module>"))
        return write_module(found[0], fill_elided=self.tools.fill)

    def _refuse(self) -> None:
        """Raises ProtoError with all names at once for constants without values."""
        elided = (
            []
            if self.tools.fill
            else [
                i.name
                for i in self.module.instructions()
                if i._head.opcode in _WITH_LITERALS and _is_elided(i)
            ]
        )
        if elided:
            shown = ", ".join(elided[:10]) + (f" and {len(elided) - 10} more" if len(elided) > 10 else "")
            raise ProtoError(
                f"the text elides the values of {len(elided)} constants ({shown}); print them (print_large_constants), or "
                "use zeros (fill_elided)"
            )

    def _computation(self, computation: Computation, title: str) -> bytes:
        number = self.computation_ids[computation]
        instructions = self.instructions[computation]
        tail = encoded(number << 4)
        if len(instructions) >> 28:
            raise ProtoError(f"{computation.name} has more instructions than ids can count")
        numbered = _as_numbered(instructions, self.stored.get(computation._name))
        self.ids.update(zip(numbered, [low + tail for low in self._low(len(numbered))], strict=True))
        pieces = [string_field(1, title)]
        self._instructions(instructions, pieces)
        pieces.append(self._signature(computation))
        pieces.append(varint(5, number))
        pieces.append(b"\x30" + self.ids[computation.root])
        if computation in self.fusion_bodies:
            pieces.append(b"\x38\x01")
        if computation.execution_thread != "main":
            pieces.append(string_field(8, computation.execution_thread))
        if computation.backend_config is not None and computation.backend_config.text:
            pieces.append(string_field(9, computation.backend_config.text))
        return b"".join(pieces)

    def _low(self, count: int) -> list[bytes]:
        """The lower four bytes of the varints of so many ids: above 32 bits stands the computation."""
        low = self._lowest
        for n in range(len(low), count):
            low.append(bytes((n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127 | 128, n >> 21 & 127 | 128)))
        return low[:count]

    def _signature(self, computation: Computation) -> bytes:
        """The field with the shapes of parameters and result."""
        parameters = computation.parameters
        shapes = [p._head.shape for p in parameters]
        if computation.shape is None or None in shapes:
            raise ProtoError(f"{computation.name}: a shape is not known")
        known, of = self._parameter_shapes, self.tools.shape_bytes.shape
        pieces = []
        for shape in shapes:
            raw = known.get(id(shape))
            if raw is None:
                raw = known[id(shape)] = field(1, of(shape))  # type: ignore[arg-type]
            pieces.append(raw)
        pieces.append(field(2, of(computation.shape)))
        pieces += [string_field(3, self.names.get(p, p._name)) for p in parameters]
        return field(4, b"".join(pieces))

    def _schedule(self, ordered: list[Computation]) -> bytes:
        """The order of every computation but fusions' bodies (`HloModule::MakeNonfusionComputations`)."""
        entries = []
        for computation in ordered:
            if computation in self.fusion_bodies:
                continue
            ids = b"".join([self.ids[instruction] for instruction in computation._instructions])
            entry = varint(1, self.computation_ids[computation]) + field(2, field(1, ids))
            entries.append(field(1, entry))
        return b"".join(entries)

    # ---- instructions

    def _instructions(self, instructions: list[Instruction], pieces: list[bytes]) -> None:
        """Adds the fields of a computation's instructions.

        The hot loop of the writer, one turn for each instruction, so its steps stand here and not in methods.
        """
        ids, names, known, tags = self.ids, self.names, self._known, _SIZES
        append, join, id_of = pieces.append, b"".join, ids.__getitem__
        for instruction in instructions:
            name = names.get(instruction, instruction._name) if names else instruction._name
            opcode = instruction._head.opcode
            try:
                try:
                    head, middle, rest = known[
                        id(instruction._attributes), id(instruction._head.shape), opcode
                    ]
                except KeyError:
                    head, middle, rest = self._parts(instruction)
                if instruction._head.argument is not None:
                    middle = self._argument(instruction._head.argument) + middle
                try:
                    text = name.encode()
                except UnicodeEncodeError:
                    raise ProtoError("a string is not UTF-8, so no proto can hold it") from None
                operands = instruction._operands
                try:
                    if len(operands) == 1:
                        listed = ids[operands[0]]
                    else:
                        listed = join([id_of(operand) for operand in operands])
                except KeyError:
                    raise ProtoError("an operand is in no computation before it") from None
                if opcode not in CALLS_NOTHING or "control-predecessors" in instruction._attributes:
                    rest = self._references(instruction) + rest
            except ProtoError as error:
                raise ProtoError(f"{instruction.name}: {error.bare_message}") from None
            except (ValueError, OverflowError, struct.error) as error:  # protobuf's, of numbers out of range
                raise ProtoError(f"{instruction.name}: a value has no place in a proto: {error}") from None
            size = len(text)
            if size > 127 or len(listed) > 127:
                raw = join((
                    b"\x0a", encoded(size), text, head, middle, b"\x98\x02", ids[instruction],
                    field(36, listed) if listed else b"", rest,
                ))  # fmt: skip
            elif listed:
                raw = join((
                    b"\x0a", tags[size], text, head, middle, b"\x98\x02", ids[instruction],
                    b"\xa2\x02", tags[len(listed)], listed, rest,
                ))  # fmt: skip
            else:
                raw = join((b"\x0a", tags[size], text, head, middle, b"\x98\x02", ids[instruction], rest))
            size = len(raw)
            append(b"\x12")
            append(tags[size] if size < len(tags) else encoded(size))
            append(raw)

    def _parts(self, instruction: Instruction) -> tuple[bytes, bytes, bytes]:
        """The fields of opcode, shape and metadata, those before the id, those behind the called computations."""
        shape, opcode, attributes = instruction._head.shape, instruction._head.opcode, instruction._attributes
        if isinstance(instruction, BadInstruction) or shape is None:
            raise ProtoError("a line that could not be read, or without a shape, is in no proto")
        known = self._heads.get((opcode, id(shape)))
        if known is None:
            raw = string_field(2, opcode) + field(3, self.tools.shape_bytes.shape(shape))
            known = self._heads[opcode, id(shape)] = raw, shape
        head = known[0]
        metadata = attributes.get("metadata")
        if metadata is not None:
            head += self._metadata_bytes(metadata)
        middle, rest = self._own(instruction)
        if opcode not in _BY_SHAPES:
            self._known[id(attributes), id(shape), opcode] = head, middle, rest
            self._kept.append((attributes, shape))  # ids are told apart as long as what they are of lives
        return head, middle, rest

    def _argument(self, argument: Any) -> bytes:
        """The field of a constant's literal or a parameter's number."""
        if type(argument) is Literal:
            known = self._literals.get(id(argument))
            if known is None:
                raw = write_literal(argument, self.tools.shape_bytes, self.tools.classes, self.tools.fill)
                known = self._literals[id(argument)] = field(8, raw), argument
            return known[0]
        return varint(9, argument) if isinstance(argument, int) else b""

    def _references(self, instruction: Instruction) -> bytes:
        """The fields of control predecessors and called computations."""
        pieces = []
        before = instruction.control_predecessors
        if before:
            pieces.append(field(37, b"".join([self.ids[other] for other in before])))
        called = instruction.called_computations
        if called and instruction._head.opcode not in REPEATING:
            pieces.append(field(38, b"".join([encoded(self.computation_ids[one]) for one in called])))
        return b"".join(pieces)

    def _metadata_bytes(self, metadata: Any) -> bytes:
        known = self._metadata.get(id(metadata))
        if known is None and isinstance(metadata, Metadata) and not metadata.is_printed:
            known = self._metadata[id(metadata)] = b"", metadata  # as if there were none
        if known is None:
            raw = field(7, metadata_bytes(metadata, self.tools))
            known = self._metadata[id(metadata)] = raw, metadata
        return known[0]

    def _own(self, instruction: Instruction) -> tuple[bytes, bytes]:
        """The fields of the other attributes: those before the id, and those behind the called computations."""
        given = instruction._attributes
        opcode = instruction._head.opcode
        if not given or (len(given) == 1 and "metadata" in given):
            key: Any = opcode
        else:
            # Values are shared by the instructions that have them, so that they are told apart by identity.
            key = opcode, *[(name, id(value)) for name, value in given.items() if name not in _SEPARATE]
        if opcode in _BY_SHAPES:
            shapes = [id(operand._head.shape) for operand in instruction._operands]
            key = key, id(instruction._head.shape), *shapes
        elif "sharding" in given:
            key = key, id(instruction._head.shape)
        known = self._fields.get(key)
        if known is None:
            known = self._fields[key] = *self._make_own(instruction), (given, instruction)
        return known[0], known[1]

    def _make_own(self, instruction: Instruction) -> tuple[bytes, bytes]:
        opcode = instruction._head.opcode
        row = opcodes.opcode(opcode)
        if row is None:
            raise ProtoError(f"opcode {opcode} is unknown to this release")
        given = _completed(instruction)
        pieces = []
        for name, value in given.items():
            if isinstance(value, RawValue) and not value.text.isdigit() and name not in _SEPARATE:
                raise ProtoError(f"the value {name}={value} is unknown to this release")
        shared = table.SHARED.get(opcode, [])
        for names, write in shared:
            if not names or names & given.keys() or opcode in ("dot", "scaled-dot"):
                pieces.append(write(given, self.tools))
        for name, value in given.items():
            use = row.attribute(name)
            if use is None:
                pieces.append(self._common(name, value, instruction))
            elif opcode == "compare" and name != "order" and not is_shown(use, value, instruction._operands):
                continue  # it follows from the operands, so readers leave it out
            elif use.calls is Calls.NONE and use.printed is not Printing.INPUT_ONLY:
                pieces.append(self._one(opcode, name, value, bool(shared)))
        found: list[tuple[int, bytes]] = []
        for piece in pieces:
            position = 0
            for number, _, _, end in wire.scan(piece, 0, len(piece)):
                # A varint's end is the fourth value; bytes and fixed sizes end there too.
                found.append((number, piece[position:end]))
                position = end
        found.sort(key=lambda item: item[0])
        return (
            b"".join([raw for number, raw in found if number < _ID]),
            b"".join([raw for number, raw in found if number > _CALLED]),
        )

    def _one(self, opcode: str, name: str, value: Any, may_share: bool) -> bytes:
        way = table.SPECIAL.get((opcode, name)) or table.ATTRIBUTES.get(name)
        if way is None:
            raise ProtoError(f"attribute {name} has no place in a proto")
        if way[1] is None:
            if not may_share:
                raise ProtoError(f"attribute {name} has no place in a proto")
            return b""
        try:
            return way[1](value, self.tools)
        except (TypeError, AttributeError):  # a list for a number, numbers for a list of lists
            raise ProtoError(
                f"{name} of {opcode} has a value of another kind than its place in a proto"
            ) from None

    def _common(self, name: str, value: Any, instruction: Instruction) -> bytes:
        if name in _SEPARATE:
            return b""
        tools = self.tools
        if isinstance(value, RawValue):
            raise ProtoError(f"the value {name}={value} is unknown to this release")
        if name == "sharding":
            assert instruction._head.shape is not None
            return field(
                40, shardings.write_sharding(value.for_shape(instruction._head.shape), tools.classes)
            )
        if name == "backend_config":
            return _unless_empty(43, value.text.encode("utf-8", "surrogateescape"))
        if name == "frontend_attributes":
            return _unless_empty(68, common.write_frontend(value, tools))
        if name == "statistics":
            return _unless_empty(82, common.write_statistics(value, tools))
        if name == "origin":
            return field(88, common.write_origin(value, tools))
        if name == "result_accuracy":
            return _unless_empty(91, common.write_accuracy(value, tools))
        raise ProtoError(f"attribute {name} has no place in a proto")


def _unless_empty(number: int, raw: bytes) -> bytes:
    """A field that says nothing where it is empty, so that readers take it for none."""
    return field(number, raw) if raw else b""


def metadata_bytes(metadata: Any, tools: Tools) -> bytes:
    """Serializes the metadata of an op line. Raises ProtoError if it is unknown to this release."""
    if isinstance(metadata, RawValue):
        raise ProtoError(f"the metadata {metadata} is unknown to this release")
    return write_metadata(metadata, tools.classes)


_BY_SHAPES = frozenset({"compare", "outfeed", "map", "custom-call"})
"""Opcodes whose fields follow from shapes too."""

_DEFAULTS: dict[str, dict[str, Any]] = {
    "custom-call": {"api_version": "API_VERSION_ORIGINAL", "feature_group_count": 1, "batch_group_count": 1},
    "convolution": {"feature_group_count": 1, "batch_group_count": 1},
    "scan": {"is_associative": False},
    "topk": {"largest": True, "is_stable": True},
}
"""Values of attributes absent from the text, where they differ from the default of the field."""


def _completed(instruction: Instruction) -> dict[str, Any]:
    """The attributes, with those that the text may leave out and the proto must not."""
    given = dict(instruction._attributes)
    opcode = instruction._head.opcode
    for name, value in _DEFAULTS.get(opcode, {}).items():
        if name not in given:
            given[name] = CustomCallApiVersion(value) if name == "api_version" else value
    row = opcodes.opcode(opcode)
    for use in row.attributes if row is not None else ():
        if use.name in given and not (use.default is Derived.RESULT_DIMENSIONS and given[use.name] == ()):
            continue
        if use.name == "replica_groups":
            given[use.name] = ()
        elif use.default is Derived.OPERAND_SHAPE and instruction._operands:
            shape = instruction._operands[0]._head.shape
            if shape is not None:
                given[use.name] = shape.with_default_layout()
        elif use.default is Derived.RESULT_DIMENSIONS and instruction._head.shape is not None:
            given[use.name] = tuple(range(instruction._head.shape.rank))
        elif use.name == "window" and opcode != "custom-call":
            given[use.name] = Window()
    if opcode == "compare" and "order" not in given and instruction._operands:
        shape = instruction._operands[0]._head.shape
        print_order = order_of(given, shape.element_type) if shape is not None else None
        if print_order is not None:
            given["order"] = print_order  # the newest XLA reads nothing else, older ones the type
    if "operand_layout_constraints" in given:
        given["operand_layout_constraints"] = tuple(given["operand_layout_constraints"])
    return given


def _as_stored(module: Module) -> list[Computation]:
    """The computations, callees before callers: as they lay in the proto that the module was read from, else as it has them.

    Readers give them in another order, which does not tell the one in the file.
    """
    places = {name: place for place, name in enumerate(module._stored)}
    return post_order(sorted(module.computations, key=lambda c: places.get(c.name, len(places))))


def _as_numbered(instructions: list[Instruction], stored: tuple[str, ...] | None) -> list[Instruction]:
    """The instructions in the order of their ids: that of the proto that they are from, else the one in which they stand."""
    if stored is None:
        return instructions
    places = {name: place for place, name in enumerate(stored)}
    return sorted(instructions, key=lambda instruction: places.get(instruction._name, len(places)))


def _is_elided(instruction: Instruction) -> bool:
    argument = instruction._head.argument
    if type(argument) is Literal and argument.is_partly_elided:
        return True
    literal = instruction._attributes.get("literal") if instruction._head.opcode == "custom-call" else None
    return isinstance(literal, Literal) and literal.is_partly_elided


def _unique_names(module: Module) -> dict[Instruction, str]:
    """Other names for instructions whose own is taken in an earlier computation: in a module all are different."""
    names = [i._name for i in module.instructions() if i._form is Form.LINE and i._name]
    if len(set(names)) == len(names) == sum(len(c) for c in module.computations):
        return {}
    uniquer: NameUniquer | None = None
    taken: set[str] = set()
    found: dict[Instruction, str] = {}
    for instruction in module.instructions():
        name = instruction._name
        if name in taken or instruction._form is not Form.LINE:
            if uniquer is None:
                uniquer = NameUniquer(i._name for i in module.instructions())
            if name in taken or not name:
                name = found[instruction] = uniquer.unique(name)
        taken.add(name)
    return found
