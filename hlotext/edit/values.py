"""Values that may be written: of the class that the attribute table says or converted to it, and such that they read back.

Plain Python values that mean one thing are converted: a list to a tuple, a text in HLO's form to the value that it reads
as, a dict to frontend attributes or a JSON config, a JAX sharding to a sharding. Everything else is refused.
"""

from __future__ import annotations

import enum
import functools
import importlib
import itertools
import json
import operator
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import attrs

from hlotext.edit.hooks import reader
from hlotext.ir import caches
from hlotext.ir.caches import text_cache
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import with_article
from hlotext.ir.tables.attributes import ATTRIBUTES, HEADER_ATTRIBUTES, AttributeType, Multiplicity
from hlotext.ir.tables.opcode import AttributeUse, Opcode, Printing
from hlotext.ir.tables.opcodes import OPCODES, allowed_attributes
from hlotext.ir.tables.other_names import attribute_meant
from hlotext.ir.values.left_out import LeftOut
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.raw_value import RawValue, value_text
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import TypeKind, types_meant
from hlotext.semantics.message_text import shown as shown_text


def shown(value: object) -> str:
    """Formats a value for a message."""
    if isinstance(value, Instruction | Computation):
        return value.name
    try:
        text = repr(value) if isinstance(value, str | list | dict | tuple) else str(value)
    except Exception:  # a foreign object may not be able to print itself
        text = type(value).__name__
    return shown_text(text.encode("utf-8", "backslashreplace").decode())


def shortened(names: Iterable[str]) -> str:
    """Returns the first five names, separated by commas, with `...` if there are more."""
    found = [*itertools.islice(names, 6)]
    return ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")


# ---- names


def name_problem(name: str) -> str:
    """Returns why a text cannot be a node's name; empty if it can."""
    if not name:
        return "a name needs at least one character"
    if name.startswith("__") and not name.startswith("__xla_"):
        return "a name cannot start with two underscores, except `__xla_`"
    if not reader().is_name(name):
        if name.replace("_", "a").isalnum() and not name[0].isdigit():
            return "it is a keyword"
        return "names consist of letters, digits, `_`, `.` and `-`, and start with a letter or `_`"
    return ""


def reads_as_thread(text: str) -> bool:
    """True if a text may be the name of an execution thread, which is written in quotes without escapes."""
    return (
        bool(text) and text.replace("_", "a").replace("-", "a").replace(".", "a").isalnum() and text.isascii()
    )


# ---- shapes and constants


def shape(value: object, where: str) -> Shape:
    """Returns a shape, or parses its text. Raises EditError for an invalid shape."""
    found = value
    if isinstance(value, str):
        try:
            found = reader().value("shape", value)
        except ValueError as error:
            raise EditError(f"the shape of {where} cannot be read: {error}") from None
        for _, leaf in found.leaves():
            name = leaf.element_type.name
            if leaf.element_type.kind is TypeKind.UNKNOWN and (meant := types_meant(name)):
                raise EditError(f"the shape of {where} has the unknown element type {name}", meant)
    if not isinstance(found, Shape):
        raise EditError(
            f"the shape of {where} must be a Shape or its text, such as 'f32[8,128]', not {shown(value)}"
        )
    if not _reads_back("shape", found):
        raise EditError(f"{shown(found)} is not a valid HLO shape", "see `hlotext.parse_shape`")
    return found


def literal(value: object, shape: Shape | None, where: str) -> Literal:
    """Returns a literal, or makes one of text, an array, or a number for a scalar. Raises EditError if it does not have
    the shape.
    """
    if isinstance(value, bool | int | float) and shape is not None and shape.is_array and not shape.rank:
        value = str(value).lower()
    found = value
    try:
        if isinstance(value, str) and shape is not None:
            found = reader().literal(value, shape)
        elif not isinstance(value, Literal) and hasattr(value, "__array__") and hasattr(value, "dtype"):
            found = Literal.from_array(value)
    except (ValueError, TypeError, KeyError) as error:
        raise EditError(f"the value of {where} cannot be {shown(value)}: {error}") from None
    if not isinstance(found, Literal):
        raise EditError(
            f"the value of {where} must be a Literal, an array, or its text, not {shown(value)}",
            "see `Literal.from_array`",
        )
    if shape is None:
        return found
    if found.shape.text_without_layout() != shape.text_without_layout():
        raise EditError(f"the value of {where} is {found.shape}, not {shape}", "set both together")
    return shaped(found, shape)


def shaped(literal: Literal, shape: Shape) -> Literal:
    """Returns a literal with the shape of its constant, which may differ in layout."""
    if literal.shape == shape:
        return literal
    parts = zip(literal.tuple_literals, shape.tuple_shapes, strict=bool(literal.tuple_literals))
    return attrs.evolve(
        literal, shape=shape, tuple_literals=tuple(shaped(part, inner) for part, inner in parts)
    )


# ---- attributes


def attribute(instruction: Instruction, opcode: str, name: object, value: object) -> Any:
    """Returns an attribute's value as stored on an instruction of an opcode. Raises EditError if the opcode does not
    allow it.

    Accepted values are cached: plain ones by value, frozen ones, which are shared, by identity.
    """
    class_ = type(value)
    if class_ in _PLAIN:
        key: Any = (opcode, name, class_, value)
    elif (class_ is tuple or class_ is list) and _INTEGERS.issuperset(map(type, value)):  # type: ignore[call-overload]
        key = (opcode, name, tuple, tuple(value))  # type: ignore[arg-type]
    else:
        key = (opcode, name, None, id(value))
    known = _RIGHT.results.get(key) if type(name) is str else None
    if known is not None:
        found = known[0]
    else:
        found = _checked(instruction, opcode, name, value)
        if key[2] is not None or class_ in _frozen_classes():
            _RIGHT.put(key, (found, value))
    shape = instruction._head.shape
    if name == "sharding" and shape is not None and shape.tuple_shapes and type(found) is not RawValue:
        return found.for_shape(shape)  # as it is printed
    return found


_PLAIN = frozenset({str, int, bool})
_INTEGERS = frozenset({int})

_RIGHT = caches.Cache(1 << 13)
"""Values of attributes that were found right, and the values from which they were made."""


@functools.cache
def _frozen_classes() -> frozenset[type]:
    """Classes of attributes' values, whose objects never change."""
    found: set[type] = set()
    for info in ATTRIBUTES.values():
        for class_ in info.kind.classes():
            found.update(
                (class_, *class_.__subclasses__()) if class_.__module__.startswith("hlotext") else ()
            )
    return frozenset(found)


def _checked(instruction: Instruction, opcode: str, name: object, value: object) -> Any:
    """The value of an attribute that was not met before. Raises EditError."""
    where = instruction._name
    if not isinstance(name, str):
        raise EditError(f"the name of an attribute of {where} must be a string, not {shown(name)}")
    row = OPCODES.get(opcode)
    if row is None:
        if name in ATTRIBUTES and not isinstance(value, RawValue):  # read alike whatever the opcode
            return _attribute(
                ATTRIBUTES[name].kind, name, value, f"{name} of {where}", instruction._head.shape
            )
        return _unknown(name, value, where, is_header=False)
    use = allowed_attributes(row).get(name)
    if use is None:
        if name not in ATTRIBUTES and isinstance(value, RawValue):
            return _unknown(name, value, where, is_header=False)
        raise EditError(
            f"{_both(opcode, where)} takes no attribute {shown(name)}",
            closest_match(name, allowed_attributes(row)),
        )
    if use.printed is Printing.INPUT_ONLY:
        raise EditError(f"{name} of {opcode} {where} is only read, never printed", "omit it")
    found = _attribute(ATTRIBUTES[name].kind, name, value, f"{name} of {where}", instruction._head.shape)
    _check_printed(use, found, where)
    return found


def meant_by(opcode: str | None, name: str, value: object) -> Any:
    """Returns an attribute's value as stored, for comparison. Raises EditError for an unknown attribute or invalid
    value.

    None as opcode allows the attributes of all opcodes. Computations may be given by name.
    """
    row = OPCODES.get(opcode) if opcode is not None else None
    known: Collection[str] = ATTRIBUTES if row is None else allowed_attributes(row)
    if isinstance(value, RawValue) and name not in known:
        return value
    if name not in known:
        raise EditError(
            f"{opcode or 'an instruction'} has no attribute {shown(name)}", closest_match(name, known)
        )
    kind = ATTRIBUTES[name].kind
    if kind.form in _OF_NODES and isinstance(value, str):
        return value.removeprefix("%")
    return _attribute(kind, name, value, f"{name} in a pattern", None)


def is_printed(row: Opcode | None, name: object, value: object) -> bool:
    """True if XLA prints an attribute; copies omit attributes that it only reads."""
    use = allowed_attributes(row).get(name) if row is not None and isinstance(name, str) else None
    return getattr(value, "is_printed", True) is not False and (
        use is None or use.printed is not Printing.INPUT_ONLY
    )


def header_attribute(name: object, value: object, module: Module) -> Any:
    """Returns the value of a header attribute as stored. Raises EditError for an unknown attribute or invalid value."""
    where = f"module {module._name}"
    if not isinstance(name, str):
        raise EditError(f"the name of an attribute of {where} must be a string, not {shown(name)}")
    info = HEADER_ATTRIBUTES.get(name)
    if info is None:
        if isinstance(value, RawValue):
            return _unknown(name, value, where, is_header=True)
        raise EditError(
            f"the header of {where} takes no attribute {shown(name)}", closest_match(name, HEADER_ATTRIBUTES)
        )
    found = _attribute(info.kind, name, value, f"{name} of {where}", None)
    if isinstance(found, int) and found < 0:
        raise EditError(f"{name} of {where} must not be negative, but is {found}")
    return found


def closest_match(name: str, known: Collection[str]) -> str:
    """Returns a suggestion of the nearest known word, or else all known words."""
    return attribute_meant(name[:100], known) or f"it takes {', '.join(sorted(known))}"


def _check_printed(use: AttributeUse, value: Any, where: str) -> None:
    """Raises EditError for a value that XLA does not print, so that it would be lost."""
    if getattr(value, "is_printed", True) is False:
        raise EditError(
            f"metadata of {where} is printed only with op_name, op_type, a source file or a stack frame",
            "set one of them",
        )
    if use.printed is Printing.DERIVED and value != tuple(range(len(value))):
        raise EditError(f"{use.name} of {where} is determined by the shapes", "leave it as it is")


def _unknown(name: str, value: object, where: str, *, is_header: bool) -> RawValue:
    """An attribute that this release does not know, as its text."""
    if isinstance(value, RawValue):
        try:
            if reader().attribute(f"{name}={value}", is_header=is_header) == (name, value):
                return value
        except ValueError:
            pass
    raise EditError(f"{shown(name)}={shown(value)} of {where} cannot be read back")


def _attribute(kind: AttributeType, name: str, value: object, where: str, shape: Shape | None) -> Any:
    if kind.form in _OF_NODES:
        return _nodes(kind, value, where)
    if value is None:
        raise EditError(f"{where} cannot be None", "delete the attribute")
    if type(value) is RawValue:
        return _raw(kind, value, where)
    try:
        if (found := _simple(kind, value)) is not None:
            return found
        if type(value) in _PLAIN or type(value) in _frozen_classes():
            return _REMEMBERED(kind.rule, name, type(value), value)
    except (TypeError, OverflowError):  # not hashable, or no number of any size
        pass
    except RecursionError:
        raise EditError(f"{where} is nested too deeply") from None
    except ValueError as error:
        raise _refusal(kind, value, where, error) from None
    try:
        return _converted(kind, name, value, shape)
    except (ValueError, TypeError, OverflowError, AttributeError, KeyError, RecursionError) as error:
        raise _refusal(kind, value, where, error) from None


def _refusal(kind: AttributeType, value: object, where: str, error: Exception) -> EditError:
    why = f": {error}" if isinstance(error, ValueError) and str(error) else ""
    if why.endswith(kind.words):
        why = ""
    return EditError(f"expected {with_article(kind.words)} as {where}, not {shown(value)}{why}")


def _both(opcode: str, name: str) -> str:
    """An opcode and the name of its instruction, if that says more: builders name instructions after opcodes."""
    return opcode if name == opcode else f"{opcode} {name}"


_OF_NODES = {
    Multiplicity.COMPUTATION: Computation,
    Multiplicity.COMPUTATIONS: Computation,
    Multiplicity.INSTRUCTIONS: Instruction,
}


def _nodes(kind: AttributeType, value: object, where: str) -> Any:
    """Computations and instructions; whether they may be named there is for the edit to say."""
    wanted = _OF_NODES[kind.form]
    if kind.form is Multiplicity.COMPUTATION:
        if isinstance(value, Computation):
            return value
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | Computation):
        found = tuple(value)
        if all(
            isinstance(item, wanted) or (type(item) is LeftOut and wanted is Instruction) for item in found
        ):
            return tuple(dict.fromkeys(found)) if wanted is Instruction else found
    elif kind.form is Multiplicity.INSTRUCTIONS and isinstance(value, Instruction):
        return (value,)
    raise EditError(
        f"expected {kind.words} of the module as {where}, not {shown(value)}", found_by(value, wanted)
    )


def found_by(value: object, wanted: type) -> str:
    """Returns advice on how to find a node by its name, for a value that is not a node."""
    if isinstance(value, str) and ("=" in value or "(" in value):
        return "hlotext.rewrite.Builder makes instructions: Builder.before(user).add(x, y)"
    name = f"{value!r}" if isinstance(value, str) else "name"
    return f"module.{'computation' if wanted is Computation else 'instruction'}({name}) finds one"


def _raw(kind: AttributeType, value: RawValue, where: str) -> Any:
    """Reads the text of a raw value."""
    try:
        found = reader().value(kind.rule, value.text)
    except ValueError as error:
        raise _refusal(kind, value, where, error) from None
    return found


_SMALL = 1 << 31
"""Whole numbers below this are read without a look at how long they are."""


def _simple(kind: AttributeType, value: object) -> Any:
    """The values of most edits, which need no second look: small numbers, true and false, words; None for others."""
    if kind.form is Multiplicity.ONE:
        if type(value) is int:
            return value if kind.class_names == ("int",) and 0 <= value < _SMALL else None
        if type(value) is bool:
            return value if kind.class_names == ("bool",) else None
        if isinstance(value, enum.Enum):
            return value if kind.class_names != ("str",) and isinstance(value, kind.classes()) else None
    elif kind.form is Multiplicity.LIST and kind.class_names == ("int",) and type(value) is tuple:
        return value if all(type(item) is int and 0 <= item < _SMALL for item in value) else None
    return None


@text_cache(1 << 12)
def _REMEMBERED(rule: str, name: str, class_: type, value: Any) -> Any:  # noqa: N802 - the memory of a function
    kind = HEADER_ATTRIBUTES[name].kind if name in HEADER_ATTRIBUTES else ATTRIBUTES[name].kind
    return _converted(kind, name, value, None)


def _converted(kind: AttributeType, name: str, value: Any, shape: Shape | None) -> Any:
    """The value as it reads back. Raises ValueError, TypeError and the like for what cannot be written."""
    if kind.class_names == ("str",):
        if not isinstance(value, str):
            raise ValueError
        if name == "async_execution_thread" and not reads_as_thread(value):
            raise ValueError("a thread name consists of letters, digits, `_`, `.` and `-`")
        return _read_back(kind, name, str.__str__(value), value)  # an enumerator that is a text is that text
    if isinstance(value, str) and not isinstance(value, enum.Enum) and kind.rule != "backend_config":
        return reader().value(kind.rule, value)
    found = _built(kind, value, shape)
    if found is None:
        raise ValueError
    return _read_back(kind, name, found, value)


def _read_back(kind: AttributeType, name: str, found: Any, value: Any) -> Any:
    """Reads the text of a value back; the result must be that value."""
    text = str(found) if isinstance(found, enum.Enum) else value_text(found, name)
    try:
        again = reader().value(kind.rule, text)
    except ValueError as error:
        raise ValueError(f"its text cannot be read: {error}") from None
    if isinstance(found, float):
        return again if isinstance(again, float) else float(again)
    if type(again) is not type(found) or not (again == found or str(again) == text):
        raise ValueError(f"it would be read as {shown(again)}")
    return again


def _built(kind: AttributeType, value: Any, shape: Shape | None) -> Any:
    """The value of the class that a Python value means; None if it means none."""
    classes = kind.classes()
    if kind.form is Multiplicity.LIST:
        items = (value,) if classes == (int,) and hasattr(value, "__index__") else _items(value)
        return tuple(_listed(kind, item, classes) for item in items)
    if kind.form is Multiplicity.PAIRS:
        pairs = tuple(tuple(map(_number, _items(pair))) for pair in _items(value))
        return pairs if all(len(pair) == 2 for pair in pairs) else None
    if kind.form is Multiplicity.NUMBERS:
        items = _items(value)
        if any(isinstance(item, list | tuple) for item in items):
            return tuple(tuple(map(_number, _items(item))) for item in items)
        return tuple(map(_number, items))
    if classes in ((int,), (bool,), (float,)):
        return _plain(classes[0], value)
    if isinstance(value, classes):
        return value
    maker = _MAKERS.get(kind.rule)
    return maker(value, shape) if maker is not None else None


def _items(value: Any) -> tuple[Any, ...]:
    """The entries of a list, a tuple, a range or an array."""
    if isinstance(value, list | tuple | range):
        return tuple(value)
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return tuple(value.tolist())
    raise ValueError


def _listed(kind: AttributeType, item: Any, classes: tuple[type, ...]) -> Any:
    if classes in ((int,), (bool,)):
        return _plain(classes[0], item)
    if isinstance(item, classes):
        return item
    if isinstance(item, str):
        if issubclass(classes[0], enum.Enum):
            return classes[0](item)
        return reader().value("shape", item)
    raise ValueError


def _plain(class_: type, value: Any) -> Any:
    if class_ is bool:
        if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
            return bool(value)
        raise ValueError
    if class_ is float:
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            raise ValueError
        return float(value)
    return _number(value)


def _number(value: Any) -> int:
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        raise ValueError
    return operator.index(value)


def _reads_back(rule: str, value: Any) -> bool:
    try:
        return _reading(rule, value)
    except (TypeError, ValueError, AttributeError, RecursionError):
        return False


@text_cache(1 << 13)
def _reading(rule: str, value: Any) -> bool:
    again = reader().value(rule, str(value))
    if again == value:
        return True
    # A scalar has one layout, which is not written.
    return isinstance(value, Shape) and bool(again.with_default_layout() == value.with_default_layout())


# ---- what other Python values mean


def _value_class(name: str, module: str) -> Any:
    return getattr(importlib.import_module(f"hlotext.ir.values.{module}"), name)


def _frontend_attributes(value: Any, shape: Shape | None) -> Any:
    if isinstance(value, Mapping) and all(
        isinstance(k, str) and isinstance(v, str) for k, v in value.items()
    ):
        return _value_class("FrontendAttributes", "configs")(value)
    return None


def _backend_config(value: Any, shape: Shape | None) -> Any:
    if isinstance(value, str):
        return _value_class("BackendConfig", "configs")(value)  # its own text, not that between quotes
    if isinstance(value, dict):
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        return _value_class("BackendConfig", "configs")(text)
    return None


def _replica_groups(value: Any, shape: Shape | None) -> Any:
    groups = tuple(tuple(map(_number, _items(group))) for group in _items(value))
    return _value_class("ReplicaGroupList", "replica_groups")(groups)


def _sharding(value: Any, shape: Shape | None) -> Any:
    """A sharding of JAX: it says itself what it is to XLA, for an array of that rank."""
    if hasattr(value, "_to_xla_hlo_sharding"):
        if shape is None or not shape.is_array:
            raise ValueError("a JAX sharding describes one array")
        value = value._to_xla_hlo_sharding(shape.rank)
    if type(value).__name__ == "HloSharding":
        return reader().value("sharding", str(value))
    return None


def _literal_with_shape(value: Any, shape: Shape | None) -> Any:
    return Literal.from_array(value) if hasattr(value, "__array__") and hasattr(value, "dtype") else None


def _metadata(value: Any, shape: Shape | None) -> Metadata | None:
    if not isinstance(value, Mapping):
        return None
    known = [field.name for field in attrs.fields(Metadata)]
    for name in value:
        if name not in known:
            raise ValueError(f"it has no field {shown(name)}, only {', '.join(known)}")
    return Metadata(**value)


def _window(value: Any, shape: Shape | None) -> Any:
    """A window from its parts as they are printed: `{"size": (3, 3), "pad": [(1, 1), (0, 0)]}`, or texts."""
    if not isinstance(value, Mapping):
        return None
    return reader().value(
        "window", f"{{{' '.join(f'{name}={_by_x(part)}' for name, part in value.items())}}}"
    )


def _padding(value: Any, shape: Shape | None) -> Any:
    """Padding from low, high and maybe interior of each dimension: `[(0, 28), (1, 1, 2)]`."""
    parts = [_items(part) for part in _items(value)]
    if any(len(part) not in (2, 3) for part in parts):
        raise ValueError("each dimension needs (low, high) or (low, high, interior)")
    return reader().value("padding", _by_x([part if len(part) == 3 else (*part, 0) for part in parts]))


def _slice(value: Any, shape: Shape | None) -> Any:
    """A slice from start, limit and maybe stride of each dimension: `[(0, 8), (2, 4, 2)]`."""
    parts = (":".join(str(_number(one)) for one in _items(part)) for part in _items(value))
    return reader().value("slice_dimensions", f"{{{', '.join(f'[{part}]' for part in parts)}}}")


def _by_x(part: Any) -> str:
    if isinstance(part, str):
        return part
    return "x".join(
        "_".join(map(str, one)) if isinstance(one, list | tuple) else str(int(one)) for one in _items(part)
    )


def _statistics(value: Any, shape: Shape | None) -> Any:
    """Numbers by name; the one that is shown, `visualizing_index`, is the first unless it is among them."""
    if not isinstance(value, Mapping):
        return None
    entries = {"visualizing_index": 0, **value}
    return reader().value(
        "statistics", f"{{{','.join(f'{name}={number}' for name, number in entries.items())}}}"
    )


_MAKERS: dict[str, Any] = {
    "metadata": _metadata,
    "window": _window,
    "padding": _padding,
    "slice_dimensions": _slice,
    "statistics": _statistics,
    "frontend_attributes": _frontend_attributes,
    "backend_config": _backend_config,
    "replica_groups": _replica_groups,
    "sharding": _sharding,
    "literal_with_shape": _literal_with_shape,
}
"""Functions that convert other Python values to attribute values, by grammar rule."""
