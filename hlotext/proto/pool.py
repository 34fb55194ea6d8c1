"""Message classes made of the table at run time, in a pool and under package names of our own.

TensorFlow and JAX may have XLA's own descriptors in the same process: nothing here is registered where they look.

There are two sets of classes. `full` has every message as XLA has it, for JSON and for writing. `shallow` has bytes wherever
`full` has a message: reading takes a message apart level by level, so that equal parts are told by their bytes and made
once, nesting is under control, and memory does not grow with what a few bytes of a hostile file could stand for.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from hlotext.proto import schema
from hlotext.proto.errors import MissingProtobuf

_SCALARS = {"f64": 1, "f32": 2, "i64": 3, "u64": 4, "i32": 5, "bool": 8, "str": 9, "bytes": 12, "u32": 13}
"""Types of the table by their number in `FieldDescriptorProto.Type`."""
_MESSAGE, _BYTES, _ENUM, _STRING = 11, 12, 14, 9
_OPTIONAL, _REPEATED = 1, 3
_FIELD = re.compile(
    r"(?P<name>\w+)=(?P<number>\d+):(?P<type>\w+)(?:\((?P<key>\w+),(?P<value>\w+)\))?(?P<mark>[*?]?)"
    r"(?:\|(?P<oneof>\w+))?"
)


class Field:
    """A field of the table of messages."""

    __slots__ = (
        "is_message",
        "is_optional",
        "is_repeated",
        "key",
        "name",
        "number",
        "oneof",
        "type",
        "value",
    )

    def __init__(self, text: str) -> None:
        match = _FIELD.fullmatch(text)
        assert match is not None, text
        self.name = match["name"]
        self.number = int(match["number"])
        self.type = match["type"]
        """A scalar, a message, an enumeration, or `map`."""
        self.key, self.value = match["key"], match["value"]
        self.is_repeated = match["mark"] == "*" or self.type == "map"
        self.is_optional = match["mark"] == "?"
        self.oneof = match["oneof"]
        self.is_message = self.type not in _SCALARS and self.type not in schema.ENUMS


@functools.cache
def messages() -> dict[str, dict[int, Field]]:
    """The fields of every message by number."""
    found: dict[str, dict[int, Field]] = {}
    current: dict[int, Field] = {}
    for word in schema.TABLE.split():
        if "=" not in word:
            current = found[word] = {}
            continue
        field = Field(word)
        current[field.number] = field
    return found


class Classes:
    """The message classes of one package, as attributes."""

    def __init__(self, package: str, is_shallow: bool) -> None:
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
        except ImportError:
            raise MissingProtobuf from None
        self._pb = descriptor_pb2
        self._package = package
        self._is_shallow = is_shallow
        file = descriptor_pb2.FileDescriptorProto(
            name=f"{package.replace('.', '/')}.proto", package=package, syntax="proto3"
        )
        for name, values in schema.ENUMS.items():
            # Values of different enumerations have equal names, which is why each has a message around it.
            enum = file.message_type.add(name=f"{name}Enum").enum_type.add(name="E")
            for value in values.split():
                word, _, number = value.partition("=")
                enum.value.add(name=word, number=int(number))
        for name, fields in messages().items():
            self._add(file.message_type.add(name=name), name, fields)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        self._pool = pool
        self._factory = message_factory.GetMessageClass
        self.DecodeError: type[Exception] = message.DecodeError

    def _add(self, message: Any, name: str, fields: dict[int, Field]) -> None:
        for field in fields.values():
            label = _REPEATED if field.is_repeated else _OPTIONAL
            made = message.field.add(name=field.name, number=field.number, label=label)
            if field.type == "map" and not self._is_shallow:
                self._map(message, made, name, field)
            elif field.is_message:
                made.type = _BYTES if self._is_shallow else _MESSAGE
                if not self._is_shallow:
                    made.type_name = self._name(field.type)
            else:
                self._scalar(made, field.type)
            if field.oneof:
                made.oneof_index = self._oneof(message, field.oneof)
        for field in message.field:
            is_kept = fields[field.number].is_optional or (
                self._is_shallow and fields[field.number].is_message
            )
            if is_kept and field.label == _OPTIONAL and not field.HasField("oneof_index"):
                field.proto3_optional = True
                field.oneof_index = self._oneof(message, f"_{field.name}")

    @staticmethod
    def _oneof(message: Any, name: str) -> int:
        names = [oneof.name for oneof in message.oneof_decl]
        if name not in names:
            message.oneof_decl.add(name=name)
            return len(names)
        return names.index(name)

    def _name(self, type_: str) -> str:
        return f".{self._package}.{type_}"

    def _scalar(self, made: Any, type_: str) -> None:
        if type_ in schema.ENUMS:
            made.type = _ENUM
            made.type_name = self._name(f"{type_}Enum.E")
        else:
            made.type = _SCALARS[type_]

    def _map(self, message: Any, made: Any, name: str, field: Field) -> None:
        entry_name = f"{''.join(word.capitalize() for word in field.name.split('_'))}Entry"
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        for number, word, type_ in ((1, "key", field.key), (2, "value", field.value)):
            part = entry.field.add(name=word, number=number, label=_OPTIONAL)
            if type_ in _SCALARS:
                part.type = _SCALARS[type_]
            else:
                part.type = _MESSAGE
                part.type_name = self._name(type_)
        made.type = _MESSAGE
        made.type_name = self._name(f"{name}.{entry_name}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._factory(self._pool.FindMessageTypeByName(f"{self._package}.{name}"))
        setattr(self, name, found)
        return found


@functools.cache
def full() -> Classes:
    """Messages as XLA has them. Raises MissingProtobuf."""
    return Classes("hlotext.xla", is_shallow=False)


@functools.cache
def shallow() -> Classes:
    """Messages with bytes in place of messages, maps as their entries' bytes. Raises MissingProtobuf."""
    return Classes("hlotext.shallow", is_shallow=True)


@functools.cache
def enum_names(name: str) -> dict[int, str]:
    """The values of an enumeration: number to word."""
    pairs = (value.partition("=") for value in schema.ENUMS[name].split())
    return {int(number): word for word, _, number in pairs}


@functools.cache
def enum_numbers(name: str) -> dict[str, int]:
    """The values of an enumeration: word to number."""
    return {word: number for number, word in enum_names(name).items()}


def raw(message: Any) -> bytes:
    """Serializes a message."""
    made: bytes = message.SerializeToString()
    return made
