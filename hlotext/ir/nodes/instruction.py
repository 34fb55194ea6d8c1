"""Instructions: the nodes of the HLO graph."""

from __future__ import annotations

import copy
import operator
import sys
from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from hlotext.ir.errors import EditError
from hlotext.ir.foreign_names import text_formatted, with_foreign_names
from hlotext.ir.nodes import edit_backend, printing
from hlotext.ir.nodes.async_ops import ROLES, async_starts
from hlotext.ir.nodes.node_list import NO_OPERANDS, OperandList, UserList
from hlotext.ir.nodes.raw import CallAttributes, NodeHead, NodeState, Place
from hlotext.ir.nodes.raw import Form as Form
from hlotext.ir.short_names import Abbreviated
from hlotext.ir.spelling import attribute_error, unknown
from hlotext.ir.tables import opcodes
from hlotext.ir.values.left_out import LeftOut
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.value import mimebundle

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.source import Span
    from hlotext.ir.nodes.typed_attributes import TypedAttributes
    from hlotext.ir.values.configs import BackendConfig
    from hlotext.ir.values.frames import StackFrame
    from hlotext.ir.values.metadata import Metadata
    from hlotext.ir.values.sharding import Sharding
else:
    TypedAttributes = MutableMapping


class Attributes(TypedAttributes):
    """Mutable mapping of an instruction's attributes. Setting or deleting one edits the instruction, or raises
    EditError.

    Keys are the names in the text. Values are typed (int, bool, str, tuples of int, enums, the value classes of
    `hlotext.ir`, `Computation` and `Instruction` references); `RawValue` for what this release does not know.
    """

    __slots__ = ("_instruction",)

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction

    if not TYPE_CHECKING:  # the type of each attribute stands in `typed_attributes.pyi`

        def __getitem__(self, name: str) -> Any:
            try:
                return self._instruction._attributes[name]
            except KeyError:
                raise unknown("attribute", name, self._instruction._attributes.keys) from None

    def __setitem__(self, name: str, value: Any) -> None:
        edit_backend.backend.set_attribute(self._instruction, name, value)

    def __delitem__(self, name: str) -> None:
        if name not in self._instruction._attributes:
            raise unknown("attribute", name, self._instruction._attributes.keys)
        edit_backend.backend.remove_attribute(self._instruction, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._instruction._attributes)

    def __len__(self) -> int:
        return len(self._instruction._attributes)

    if not TYPE_CHECKING:  # those of `MutableMapping` look each name up: passes ask for millions

        def get(self, name: str, default: Any = None) -> Any:
            return self._instruction._attributes.get(name, default)

        def __contains__(self, name: object) -> bool:
            return name in self._instruction._attributes

        def items(self) -> ItemsView[str, Any]:
            return self._instruction._attributes.items()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise attribute_error("instruction", name, self._instruction._attributes)

    def __repr__(self) -> str:
        return repr(self._instruction._attributes)


@with_foreign_names
class Instruction(Abbreviated):
    """An instruction of a computation, created by parsing or `Computation.add`. Mutable and compared by identity.

    Setting a property marks the instruction, and its users if necessary, as modified. It raises EditError, and changes
    nothing, if the module would become invalid. `str(module)` reprints modified lines and copies all others from the
    source.
    """

    __slots__ = ("_attributes", "_computation", "_head", "_name", "_operands", "_state")

    _name: str
    _head: NodeHead
    _operands: tuple[Instruction, ...]
    _attributes: Mapping[str, Any]
    """Shared by all instructions whose attributes have the same text, so it is replaced, never changed in place."""
    _computation: Computation | None
    _state: NodeState | Place
    """The place alone while form, edits and users are those of a line just read."""

    def __init__(
        self,
        name: str,
        opcode: str,
        shape: Shape | None,
        operands: tuple[Instruction, ...] = (),
        attributes: Mapping[str, Any] | None = None,
        argument: int | Literal | None = None,
        computation: Computation | None = None,
        place: tuple[int, int] | None = None,
        form: Form = Form.LINE,
    ) -> None:
        self._name = name
        self._head = NodeHead(opcode, shape, argument)
        self._operands = operands
        self._attributes = {} if attributes is None else attributes
        self._computation = computation
        self._state = place if form is Form.LINE else NodeState(place, form)

    # ---- parts of the head and the state; for hot loops, which look into the slots themselves, these are too slow

    @property
    def _opcode(self) -> str:
        return self._head.opcode

    @_opcode.setter
    def _opcode(self, opcode: str) -> None:
        head = self._head
        self._head = NodeHead(opcode, head.shape, head.argument)

    @property
    def _shape(self) -> Shape | None:
        return self._head.shape

    @_shape.setter
    def _shape(self, shape: Shape | None) -> None:
        head = self._head
        self._head = NodeHead(head.opcode, shape, head.argument)

    @property
    def _argument(self) -> int | Literal | None:
        return self._head.argument

    @_argument.setter
    def _argument(self, argument: int | Literal | None) -> None:
        head = self._head
        self._head = NodeHead(head.opcode, head.shape, argument)

    @property
    def _own_state(self) -> NodeState:
        """The state as an object, in which more can be noted than the place."""
        state = self._state
        if type(state) is not NodeState:
            state = self._state = NodeState(state)  # type: ignore[arg-type]
        return state

    @property
    def _place(self) -> Place:
        state = self._state
        return state.place if type(state) is NodeState else state  # type: ignore[return-value]

    @_place.setter
    def _place(self, place: Place) -> None:
        if type(self._state) is NodeState:
            self._state.place = place
        else:
            self._state = place

    @property
    def _form(self) -> Form:
        state = self._state
        return state.form if type(state) is NodeState else Form.LINE

    @_form.setter
    def _form(self, form: Form) -> None:
        if form is not self._form:
            self._own_state.form = form

    @property
    def _is_modified(self) -> bool:
        state = self._state
        return type(state) is NodeState and state.is_modified

    @_is_modified.setter
    def _is_modified(self, is_modified: bool) -> None:
        if is_modified is not self._is_modified:
            self._own_state.is_modified = is_modified

    @property
    def _users(self) -> dict[Instruction, None] | None:
        state = self._state
        return state.users if type(state) is NodeState else None

    @_users.setter
    def _users(self, users: dict[Instruction, None] | None) -> None:
        if users is not None or type(self._state) is NodeState:
            self._own_state.users = users

    @property
    def bounds(self) -> tuple[int, int]:
        """Start and end offsets in the source text; (-1, -1) if it was not parsed from text."""
        place = self._place
        if type(place) is not int:
            return (-1, -1) if place is None else place  # type: ignore[return-value]
        computation = self._computation
        source = computation._module.source if computation is not None and computation._module else None
        assert computation is not None
        assert source is not None
        return source.line_behind(computation._brace, place)

    @property
    def _start(self) -> int:
        return self.bounds[0]

    @property
    def _end(self) -> int:
        return self.bounds[1]

    @property
    def offset(self) -> int:
        """Start offset in the source text; -1 if it was not parsed from text. Cheaper than `span`."""
        return self.bounds[0]

    @property
    def computation(self) -> Computation | None:
        """The computation that contains this instruction, or None before it is added to a computation."""
        return self._computation

    @property
    def form(self) -> Form:
        """Style of the line in the source, used for reprinting it."""
        return self._form

    @property
    def is_modified(self) -> bool:
        """True if edited, so that the source text is out of date."""
        return self._is_modified

    # ---- what it is

    @property
    def name(self) -> str:
        """Name without `%`, unique in its computation.

        Setting it renames the instruction in every line that refers to it. Raises EditError if the name is taken or
        invalid.
        """
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        edit_backend.backend.rename(self, name)

    @property
    def opcode(self) -> str:
        """The opcode as XLA represents it: `async-start` for a sugared `all-to-all-start`.

        Setting it raises EditError if the operands and attributes do not fit the new opcode.
        """
        return self._head.opcode

    @opcode.setter
    def opcode(self, opcode: str) -> None:
        edit_backend.backend.change(self, {"opcode": opcode}, typed=True)

    @property
    def shape(self) -> Shape | None:
        """Shape of the result, or None if the text omits it and it cannot be inferred.

        Setting it, to a value or text, raises EditError for a type other than the inferred one or the one that users need.
        """
        return self._head.shape

    @shape.setter
    def shape(self, shape: Shape | str) -> None:
        edit_backend.backend.change(self, {"shape": shape}, typed=True)

    @property
    def operands(self) -> tuple[Instruction, ...]:
        """The operands, in order.

        Setting them raises EditError if one is in another computation or depends on this instruction, or has an unsuitable
        type.
        """
        operands = self._operands
        if type(operands) is tuple:  # as the readers make them
            operands = self._operands = OperandList(operands) if operands else NO_OPERANDS
        return operands

    @operands.setter
    def operands(self, operands: Sequence[Instruction]) -> None:
        edit_backend.backend.change(self, {"operands": operands}, typed=True)

    @property
    def attributes(self) -> Attributes:
        """The attributes after the operand list, by name, in text order."""
        return Attributes(self)

    @property
    def literal(self) -> Literal | None:
        """The value of a `constant`, or None for other opcodes."""
        return self._head.argument if isinstance(self._head.argument, Literal) else None

    @literal.setter
    def literal(self, literal: Literal) -> None:
        edit_backend.backend.change(self, {"literal": literal}, typed=True)

    @property
    def parameter_number(self) -> int | None:
        """The number of a `parameter`, from 0, or None for other opcodes."""
        return self._head.argument if isinstance(self._head.argument, int) else None

    @parameter_number.setter
    def parameter_number(self, number: int) -> None:
        edit_backend.backend.renumber(self, number)

    # ---- attributes that every instruction may have

    @property
    def sharding(self) -> Sharding | None:
        """The sharding of the result, or None if absent."""
        return self._attributes.get("sharding")

    @property
    def metadata(self) -> Metadata | None:
        """Source of the instruction in the user's program, or None if absent."""
        return self._attributes.get("metadata")

    @property
    def backend_config(self) -> BackendConfig | None:
        """The backend config as text, with `.json()` to decode it, or None if absent."""
        return self._attributes.get("backend_config")

    @property
    def frontend_attributes(self) -> Mapping[str, str]:
        """Key-value pairs set by the frontend; empty if absent."""
        found: Mapping[str, str] = self._attributes.get("frontend_attributes", {})
        return found

    @property
    def frames(self) -> tuple[StackFrame, ...]:
        """Python stack frames from the metadata, innermost first; empty if absent."""
        metadata = self.metadata
        if metadata is None:
            return ()
        if metadata.stack_frame_id and self._computation is not None and self._computation.module is not None:
            return self._computation.module.stack_frames.frames(metadata.stack_frame_id)
        frame = metadata.frame
        return () if frame is None else (frame,)

    @property
    def innermost_frame(self) -> StackFrame | None:
        """The first of `frames`, computed without the other frames, or None if there are none."""
        metadata = self.metadata
        if metadata is None:
            return None
        if metadata.stack_frame_id and self._computation is not None and self._computation.module is not None:
            return self._computation.module.stack_frames.innermost(metadata.stack_frame_id)
        return metadata.frame

    # ---- the graph

    @property
    def is_root(self) -> bool:
        """True if this is the root of its computation."""
        return self._computation is not None and self._computation.root is self

    @property
    def users(self) -> tuple[Instruction, ...]:
        """The instructions that use this one's result, without duplicates.

        They are in the order of the computation, except that users added by edits come last.
        """
        return UserList(self.user_view)

    @property
    def user_view(self) -> KeysView[Instruction]:
        """Live view of the users, without a copy. Use it to count users or to test whether there are any."""
        state = self._state
        if type(state) is not NodeState or state.users is None:
            if self._computation is None:
                return _NOBODY
            self._computation._build_use_lists()
            state = self._own_state
        return _NOBODY if state.users is None else state.users.keys()

    @property
    def called_computations(self) -> tuple[Computation, ...]:
        """The computations that this instruction calls, in XLA's order (the body of a while before its condition)."""
        names = opcodes.CALLED_NAMES.get(self._head.opcode)
        if names is None or len(names) > 1:
            return tuple([callee for _, callee in self.callees()])
        if not names:
            return ()
        attributes = self._attributes
        # Nearly all that call name one computation.
        value: Any = attributes.callee if type(attributes) is CallAttributes else attributes.get(names[0])
        if type(value) is tuple:
            return tuple([callee for _, callee in self.callees()])
        return (value,) if hasattr(value, "_execution_thread") else ()

    def callees(self) -> Iterator[tuple[str, Computation]]:
        """Yields the attribute name and the computation of every call, in XLA's order."""
        attributes = self._attributes
        if type(attributes) is CallAttributes:
            if hasattr(attributes.callee, "_execution_thread"):
                yield attributes.called, attributes.callee
            return
        for name in opcodes.CALLED_NAMES.get(self._head.opcode, self._attributes):
            value: Any = self._attributes.get(name)
            if type(value) is tuple:
                # Only a list of computations has entries that can be entered.
                yield from ((name, callee) for callee in value if hasattr(callee, "_execution_thread"))
            elif hasattr(value, "_execution_thread"):
                yield name, value

    @property
    def control_predecessors(self) -> tuple[Instruction, ...]:
        """Instructions that must run before this one although it does not use their results.

        Excludes predecessors that compact text gives by name only (`LeftOut`), which the attribute includes.
        """
        found: tuple[Instruction | LeftOut, ...] = self._attributes.get("control-predecessors", ())
        return tuple([one for one in found if not isinstance(one, LeftOut)]) if found else ()

    @property
    def control_successors(self) -> tuple[Instruction, ...]:
        """Instructions that have this one as a control predecessor."""
        if self._computation is None:
            return ()
        return self._computation.control_successors_of(self)

    # ---- asynchronous pairs

    @property
    def async_chain(self) -> tuple[Instruction, ...]:
        """The start, updates and done of this asynchronous operation, in order; empty if it is not asynchronous.

        Covers `async-start` and the native pairs (`all-gather-start`, `copy-start`, `send` ...).
        """
        if self._head.opcode not in ROLES:
            return ()
        first = self
        while (
            ROLES[first._head.opcode] != "start"
            and first._operands
            and first._operands[0]._head.opcode in ROLES
        ):
            first = first._operands[0]
        chain = [first]
        while True:
            following = [
                user for user in chain[-1].users if ROLES.get(user._head.opcode) in ("update", "done")
            ]
            if not following or following[0] in chain:
                return tuple(chain)
            chain.append(following[0])

    @property
    def async_wrapped_instruction(self) -> Instruction | None:
        """The instruction that an `async-start`, `-update` or `-done` runs.

        None for other opcodes, and if its computation is unknown or empty.
        """
        body = self.async_wrapped_computation
        return body.root if body is not None and len(body) else None

    @property
    def async_wrapped_computation(self) -> Computation | None:
        """The computation that an `async-start`, `-update` or `-done` runs.

        None for other opcodes, and if the start is unknown.
        """
        start: Instruction = self
        while start._head.opcode in ("async-update", "async-done") and start._operands:
            start = start._operands[0]
        if start._head.opcode != "async-start":
            if not self._head.opcode.startswith("async-"):
                return None
            starts = async_starts(self)  # through tuples and loops
            start = starts[0] if starts else self
            place = self
            while not starts and not start.called_computations and place._operands:
                place = place._operands[0]  # an update that names it, although nothing starts it
                if place._head.opcode != "async-update":
                    return None
                start = place
        callees = start.called_computations
        return callees[0] if callees else None

    def __copy__(self) -> Instruction:
        return copy.deepcopy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies with the whole module: the copy is the instruction in a copy of the module."""
        return edit_backend.backend.reduced(self)

    # ---- text

    @property
    def span(self) -> Span | None:
        """Position in the source text, or None if it was not parsed from text."""
        module = self._computation.module if self._computation is not None else None
        if module is None or module.source is None or self._place is None:
            return None
        return module.source.span(*self.bounds)

    # ---- editing

    def change(
        self,
        *,
        opcode: str | None = None,
        shape: Shape | str | None = None,
        operands: Sequence[Instruction] | None = None,
        attributes: Mapping[str, Any] | None = None,
        literal: Literal | None = None,
        typed: bool = True,
    ) -> None:
        """Changes several parts of the instruction in a single edit.

        Operands that come later in the computation are moved before it.

        Args:
            opcode: The new opcode; None keeps it, as for all other arguments.
            shape: The new shape.
            operands: All operands, in order.
            attributes: All attributes by name; they replace the existing ones.
            literal: The value of a constant.
            typed: Check types immediately. If False, inside a `Module.transaction()`, types only have to match when the
                transaction ends.

        Raises:
            EditError: The edit would create a cycle, refer to something that does not exist, or give a type other than
                the inferred one or the one that users need. Nothing is changed then.
        """
        given = {
            "opcode": opcode, "shape": shape, "operands": operands, "attributes": attributes, "literal": literal,
        }  # fmt: skip
        edit_backend.backend.change(self, {k: v for k, v in given.items() if v is not None}, typed=typed)

    def replace_operand(self, number: int, operand: Instruction) -> None:
        """Replaces the operand at position `number`.

        Raises EditError as `change` does, and IndexError if there is no such operand.
        """
        edit_backend.backend.replace_operand(self, number, operand)

    def replace_all_uses_with(self, new: Instruction) -> None:
        """Replaces all uses of this instruction with `new`, including its role as root (`ReplaceAllUsesWith`).

        If `new` uses this instruction, that use is kept. Instructions that `new` depends on are moved before the
        first user. Raises EditError if the shapes differ (ignoring layouts), if the computations differ, or if a cycle
        would result.
        """
        edit_backend.backend.replace_uses(self, new)

    def replace_with(self, new: Instruction) -> None:
        """Replaces this instruction with `new` in uses and control dependencies, then removes it if unused.

        A done is not removed, since every asynchronous start needs its done. Raises EditError as
        `replace_all_uses_with` does.
        """
        edit_backend.backend.replace(self, new)

    def erase(self) -> None:
        """Removes this instruction from its computation.

        Raises EditError if it is in no computation, is the root, has users, or is a parameter that callers pass.
        """
        if self._computation is None:
            raise EditError(f"{self.name} is in no computation")
        edit_backend.backend.remove(self._computation, (self,))

    def move_before(self, other: Instruction) -> None:
        """Moves this instruction before another one of its computation.

        Raises EditError if it would precede an operand or follow a user, or if `other` is in another computation.
        """
        edit_backend.backend.move_before(self, other)

    def __str__(self) -> str:
        return printing.printer().instruction(self)

    __format__ = text_formatted
    _repr_mimebundle_ = mimebundle

    def __repr__(self) -> str:
        return f"<Instruction %{self._name} = {self._head.shape} {self._head.opcode}>"


if sys.version_info < (3, 12):
    # Every walk over a module reads these, so their getters are C functions: a third of the time of a method call. Later
    # releases call methods in place, which is faster still. That of operands makes a list first.
    for _name, _slot in (
        ("name", "_name"),
        ("opcode", "_head.opcode"),
        ("shape", "_head.shape"),
        ("computation", "_computation"),
    ):
        _property = vars(Instruction)[_name]
        _getter = operator.attrgetter(_slot)
        setattr(Instruction, _name, property(_getter, _property.fset, doc=_property.__doc__))


_NOBODY: KeysView[Instruction] = {}.keys()
"""The users of what is in no computation."""
