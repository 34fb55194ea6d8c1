"""Compact parts of instructions, of which modules have hundreds of thousands: shared heads, rare state, calls."""

from __future__ import annotations

import enum
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.values.literal import Literal
    from hlotext.ir.values.shape import Shape


class Form(enum.Enum):
    """Form of an instruction in the source text."""

    LINE = "line"
    """A line of its own. New instructions have this form too."""
    NESTED = "nested"
    """An operand written out in place: `add(negate(x), y)`."""
    COMPACT = "compact"
    """A get-tuple-element written `%t#0` in an operand list."""
    IMPLICIT = "implicit"
    """Not in the text: what the text refers to without defining it, such as the operands of a pasted op line."""


class NodeHead:
    """Opcode and result shape of an instruction, with the literal of a `constant` or the number of a `parameter`.

    Shared by all instructions with the same text, so it is replaced rather than modified.
    """

    __slots__ = ("argument", "opcode", "shape")

    def __init__(self, opcode: str, shape: Shape | None, argument: int | Literal | None = None) -> None:
        self.opcode = opcode
        self.shape = shape
        self.argument = argument

    def __reduce__(self) -> tuple[Any, ...]:
        return NodeHead, (self.opcode, self.shape, self.argument)


Place = int | tuple[int, int] | None
"""Where an instruction is in the source: the number of its line behind the line with its computation's brace, for a line of
its own in the usual form; else the offsets of its start and end; None for one that was not read."""


class NodeState:
    """Form, edit state and users of an instruction. An instruction that was just parsed has only its source position
    instead.
    """

    __slots__ = ("form", "is_modified", "place", "users")

    def __init__(self, place: Place, form: Form = Form.LINE, is_modified: bool = False) -> None:
        self.place = place
        self.form = form
        self.is_modified = is_modified
        self.users: dict[Instruction, None] | None = None


class CallAttributes(Mapping[str, Any]):
    """Attributes that many lines share except for the one called computation."""

    __slots__ = ("called", "callee", "common")

    def __init__(self, common: dict[str, Any], called: str, callee: Any) -> None:
        self.common = common
        """The attributes of the first such line, shared by all of them."""
        self.called = called
        """The attribute that names the computation."""
        self.callee = callee

    def as_dict(self) -> dict[str, Any]:
        """Returns the attributes as a dict, in text order."""
        return {**self.common, self.called: self.callee}

    def __getitem__(self, name: str) -> Any:
        return self.callee if name == self.called else self.common[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.callee if name == self.called else self.common.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self.common

    def __iter__(self) -> Iterator[str]:
        return iter(self.common)

    def __len__(self) -> int:
        return len(self.common)

    def keys(self) -> KeysView[str]:
        return self.common.keys()

    def items(self) -> ItemsView[str, Any]:
        return self.as_dict().items()

    def values(self) -> ValuesView[Any]:
        return self.as_dict().values()

    def __repr__(self) -> str:
        return repr(self.as_dict())
