"""From nodes to `HloModuleProto`: what the text can say, in the fields in which XLA looks for it.

Ids count computations and instructions in the order of the text, an instruction's below its computation's
(`HloInstruction::CalculateUniqueId`). What a proto said that modules have no place for goes back where it came from.
"""

from __future__ import annotations

from typing import Any

from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.naming import NameUniquer, sanitized
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Calls, Derived, Printing
from hlotext.ir.values.enums import CustomCallApiVersion
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.window import Window
from hlotext.proto import attributes as table
from hlotext.proto import common, header, shardings, wire
from hlotext.proto.attributes import Tools
from hlotext.proto.errors import ProtoError
from hlotext.proto.literals import encoded, field, write_literal
from hlotext.proto.metadata import string_field, write_metadata
from hlotext.syntax import read

_ID, _CALLED = 35, 38
_SEPARATE = frozenset({"metadata", "control-predecessors"})


def write_module(module: Module, *, fill_elided: bool = False) -> bytes:
    """The serialized `HloModuleProto` of a module.

    With `fill_elided` constants whose values the text leaves out are written as zeros. Raises ProtoError: without it for such
    constants, by name; for what no proto holds (opcodes and attributes that it has no field for, text that is no UTF-8).
    """
    module.materialize()
    return _Writer(module, fill_elided).module_bytes()


class _Writer:
    """Writes one module."""

    def __init__(self, module: Module, fill_elided: bool) -> None:
        self.module = module
        self.tools = Tools(fill_elided)
        self.tools.inner_module_bytes = self._inner_bytes
        self.ids: dict[Instruction, int] = {}
        self.computation_ids: dict[Computation, int] = {}
        self._fields: dict[Any, tuple[bytes, bytes, Any]] = {}
        self._heads: dict[tuple[str, int], tuple[bytes, Any]] = {}
        self._metadata: dict[int, tuple[bytes, Any]] = {}

    def module_bytes(self) -> bytes:
        module = self.module
        if not module.computations:
            raise ProtoError(f"module {module.name} has no computations")
        self._refuse()
        ordered = post_order(module.computations)
        names = NameUniquer()
        titles = {c: names.unique(sanitized(c.name) if c.name else "_") for c in ordered}
        self.names = _unique_names(module)
        for number, computation in enumerate(ordered, 1):
            self.computation_ids[computation] = number
        pieces = [string_field(1, module.name), string_field(2, titles[module.entry])]
        bodies = [field(3, self._computation(computation, titles[computation])) for computation in ordered]
        pieces += bodies
        pieces.append(table.varint(6, self.computation_ids[module.entry]))
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
        elided = [] if self.tools.fill else [i.name for i in self.module.instructions() if _is_elided(i)]
        if elided:
            shown = ", ".join(elided[:10]) + (f" and {len(elided) - 10} more" if len(elided) > 10 else "")
            raise ProtoError(
                f"the text leaves out the values of {len(elided)} constants ({shown}): print them "
                "(print_large_constants), or ask for zeros (fill_elided)"
            )

    def _computation(self, computation: Computation, title: str) -> bytes:
        number = self.computation_ids[computation]
        ids = self.ids
        for local, instruction in enumerate(computation.instructions):
            ids[instruction] = number << 32 | local
        pieces = [string_field(1, title)]
        for instruction in computation.instructions:
            try:
                raw = self._instruction(instruction)
            except ProtoError as error:
                raise ProtoError(f"{instruction.name}: {error.bare_message}") from None
            pieces.append(b"\x12" + encoded(len(raw)) + raw)
        parameters = [(p.name, p.shape) for p in computation.parameters]
        if computation.shape is None or any(shape is None for _, shape in parameters):
            raise ProtoError(f"{computation.name}: a shape is not known")
        pieces.append(field(4, self.tools.shape_bytes.program_shape(parameters, computation.shape)))  # type: ignore[arg-type]
        pieces.append(table.varint(5, number))
        pieces.append(table.varint(6, ids[computation.root]))
        pieces.append(table.varint(7, int(computation.is_fusion_body)))
        if computation.execution_thread != "main":
            pieces.append(string_field(8, computation.execution_thread))
        return b"".join(pieces)

    def _schedule(self, ordered: list[Computation]) -> bytes:
        """The order of every computation but fusions' bodies (`HloModule::MakeNonfusionComputations`)."""
        entries = []
        for computation in ordered:
            if computation.is_fusion_body:
                continue
            ids = b"".join([encoded(self.ids[instruction]) for instruction in computation.instructions])
            entry = table.varint(1, self.computation_ids[computation]) + field(2, field(1, ids))
            entries.append(field(1, entry))
        return b"".join(entries)

    # ---- instructions

    def _instruction(self, instruction: Instruction) -> bytes:
        shape, opcode = instruction.shape, instruction.opcode
        if isinstance(instruction, BadInstruction) or shape is None:
            raise ProtoError("a line that could not be read, or without a shape, is in no proto")
        key = opcode, id(shape)
        known = self._heads.get(key)
        if known is None:
            raw = string_field(2, opcode) + field(3, self.tools.shape_bytes.shape(shape))
            known = self._heads[key] = raw, shape
        own_attributes = instruction._attributes
        pieces = [string_field(1, self.names.get(instruction) or instruction._name), known[0]]
        metadata = own_attributes.get("metadata")
        if metadata is not None:
            pieces.append(self._metadata_bytes(metadata))
        middle, rest = self._own(instruction)
        argument = instruction._argument
        if type(argument) is Literal:
            literal = write_literal(argument, self.tools.shape_bytes, self.tools.classes, self.tools.fill)
            pieces.append(field(8, literal))
        elif isinstance(argument, int) and argument:
            pieces.append(table.varint(9, argument))
        pieces.append(middle)
        ids = self.ids
        number = ids[instruction]
        pieces.append(b"\x98\x02" + encoded(number))
        operands = instruction._operands
        if operands:
            try:
                listed = b"".join([encoded(ids[operand]) for operand in operands])
            except KeyError:
                raise ProtoError("an operand is in no computation before it") from None
            pieces.append(b"\xa2\x02" + encoded(len(listed)) + listed)
        before = own_attributes.get("control-predecessors")
        if before:
            pieces.append(field(37, b"".join([encoded(ids[other]) for other in before])))
        called = instruction.called_computations
        if called and opcode not in ("async-update", "async-done"):
            pieces.append(field(38, b"".join([encoded(self.computation_ids[one]) for one in called])))
        pieces.append(rest)
        return b"".join(pieces)

    def _metadata_bytes(self, metadata: Any) -> bytes:
        known = self._metadata.get(id(metadata))
        if known is None:
            raw = field(7, metadata_bytes(metadata, self.tools))
            known = self._metadata[id(metadata)] = raw, metadata
        return known[0]

    def _own(self, instruction: Instruction) -> tuple[bytes, bytes]:
        """The fields of the other attributes: those before the id, and those behind the called computations."""
        given = instruction._attributes
        opcode = instruction._opcode
        if not given or (len(given) == 1 and "metadata" in given):
            key: Any = opcode
        else:
            # Values are shared by the instructions that have them, so that they are told apart by identity.
            key = opcode, *[(name, id(value)) for name, value in given.items() if name not in _SEPARATE]
        if opcode in _BY_SHAPES:
            shapes = [id(operand._shape) for operand in instruction._operands]
            key = key, id(instruction._shape), *shapes
        elif "sharding" in given:
            key = key, id(instruction._shape)
        known = self._fields.get(key)
        if known is None:
            known = self._fields[key] = *self._make_own(instruction), (given, instruction)
        return known[0], known[1]

    def _make_own(self, instruction: Instruction) -> tuple[bytes, bytes]:
        opcode = instruction._opcode
        row = opcodes.opcode(opcode)
        if row is None:
            raise ProtoError(f"opcode {opcode} is unknown to this release")
        given = _completed(instruction)
        pieces = []
        shared = table.SHARED.get(opcode, [])
        for names, write in shared:
            if not names or names & given.keys() or opcode in ("dot", "scaled-dot"):
                pieces.append(write(given, self.tools))
        for name, value in given.items():
            use = row.attribute(name)
            if use is None:
                pieces.append(self._common(name, value, instruction))
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
        if isinstance(value, RawValue) and not value.text.isdigit():
            raise ProtoError(f"the value {name}={value} is unknown to this release")
        return way[1](value, self.tools)

    def _common(self, name: str, value: Any, instruction: Instruction) -> bytes:
        if name in _SEPARATE:
            return b""
        tools = self.tools
        if isinstance(value, RawValue):
            raise ProtoError(f"the value {name}={value} is unknown to this release")
        if name == "sharding":
            assert instruction._shape is not None
            return field(40, shardings.write_sharding(value.for_shape(instruction._shape), tools.classes))
        if name == "backend_config":
            return field(43, value.text.encode("utf-8", "surrogateescape"))
        if name == "frontend_attributes":
            return field(68, common.write_frontend(value, tools))
        if name == "statistics":
            return field(82, common.write_statistics(value, tools))
        if name == "origin":
            return field(88, common.write_origin(value, tools))
        if name == "result_accuracy":
            return field(91, common.write_accuracy(value, tools))
        raise ProtoError(f"attribute {name} has no place in a proto")


def metadata_bytes(metadata: Any, tools: Tools) -> bytes:
    """The serialized metadata of an op line."""
    if isinstance(metadata, RawValue):
        raise ProtoError(f"the metadata {metadata} is unknown to this release")
    return write_metadata(metadata, tools.classes)


_BY_SHAPES = frozenset({"outfeed", "map", "custom-call"})
"""Opcodes whose fields follow from shapes too."""

_DEFAULTS: dict[str, dict[str, Any]] = {
    "custom-call": {"api_version": "API_VERSION_ORIGINAL", "feature_group_count": 1, "batch_group_count": 1},
    "convolution": {"feature_group_count": 1, "batch_group_count": 1},
    "scan": {"is_associative": False},
    "topk": {"largest": True},
}
"""What the absence of an attribute in the text stands for, where it is not what the absence of the field does."""


def _completed(instruction: Instruction) -> dict[str, Any]:
    """The attributes, with those that the text may leave out and the proto must not."""
    given = dict(instruction._attributes)
    opcode = instruction._opcode
    for name, value in _DEFAULTS.get(opcode, {}).items():
        if name not in given:
            given[name] = CustomCallApiVersion(value) if name == "api_version" else value
    row = opcodes.opcode(opcode)
    for use in row.attributes if row is not None else ():
        if use.name in given:
            continue
        if use.name == "replica_groups":
            given[use.name] = ()
        elif use.default is Derived.OPERAND_SHAPE and instruction._operands:
            shape = instruction._operands[0]._shape
            if shape is not None:
                given[use.name] = shape.with_default_layout()
        elif use.default is Derived.RESULT_DIMENSIONS and instruction._shape is not None:
            given[use.name] = tuple(range(instruction._shape.rank))
        elif use.name == "window" and opcode != "custom-call":
            given[use.name] = Window()
    if "operand_layout_constraints" in given:
        given["operand_layout_constraints"] = tuple(given["operand_layout_constraints"])
    return given


def _is_elided(instruction: Instruction) -> bool:
    argument = instruction._argument
    if type(argument) is Literal and argument.is_partly_elided:
        return True
    literal = instruction._attributes.get("literal") if instruction._opcode == "custom-call" else None
    return isinstance(literal, Literal) and literal.is_partly_elided


def _unique_names(module: Module) -> dict[Instruction, str]:
    """Other names for instructions whose own is taken in an earlier computation: in a module all are different."""
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
