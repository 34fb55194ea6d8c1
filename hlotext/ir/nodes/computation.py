"""Computations: named bodies of instructions."""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hlotext.ir.errors import EditError
from hlotext.ir.foreign_names import text_formatted, with_foreign_names
from hlotext.ir.nodes import edit_backend, printing
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.node_list import InstructionList, ParameterList
from hlotext.ir.nodes.raw import NodeState
from hlotext.ir.short_names import Abbreviated
from hlotext.ir.spelling import UnknownNameError, bare_name
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.value import mimebundle

if TYPE_CHECKING:
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.nodes.order import Order
    from hlotext.ir.nodes.source import Span
    from hlotext.ir.values.configs import BackendConfig


class _Rare:
    """Fields that are empty or False in most computations."""

    __slots__ = (
        "backend_config",
        "by_name",
        "has_new_thread",
        "is_draft",
        "is_inline",
        "is_modified",
        "is_signature_touched",
        "is_sugared",
        "numbered_stems",
        "order",
        "removed_spans",
        "successors",
    )  # fmt: skip

    def __init__(self) -> None:
        self.backend_config: BackendConfig | None = None
        self.is_sugared = self.is_inline = self.is_modified = False
        self.is_signature_touched = self.has_new_thread = self.is_draft = False
        self.removed_spans: Sequence[tuple[int, int]] = ()
        self.by_name: dict[str, Instruction] | None = None
        self.order: Order[Instruction] | None = None
        self.successors: dict[Instruction, dict[Instruction, None]] | None = None
        self.numbered_stems: frozenset[str] | None = None


_NOTHING = _Rare()
"""Shared by all computations that have none of them."""


def _kept_rarely(name: str) -> Any:
    """A property for a field of `_Rare`."""

    def put(computation: Computation, value: Any) -> None:
        if computation._rare is _NOTHING:
            if value is None or value is False:
                return
            computation._rare = _Rare()
        setattr(computation._rare, name, value)

    return property(operator.attrgetter(f"_rare.{name}"), put)


def with_rare_fields(computations: Iterable[Computation]) -> list[Computation]:
    """Returns the computations that may have a rare property: to be inline, sugared or edited, for example."""
    return [computation for computation in computations if computation._rare is not _NOTHING]


COPIED = (
    "_name", "_execution_thread", "_start", "_end", "_brace", "_name_mark", "_parts_read", "_backend_config", "_is_sugared",
    "_is_inline", "_is_modified", "_is_signature_touched", "_has_new_thread",
)  # fmt: skip
"""Fields of a computation that a copy has as they are."""


_SLOTS = (
    "_brace", "_end", "_execution_thread", "_instructions", "_module", "_name", "_name_mark", "_parts_read", "_rare",
    "_root", "_start",
)  # fmt: skip
"""Those of `Computation`, which has properties for the others."""


@with_foreign_names
class Computation(Abbreviated):
    """A computation of a module: parameters and other instructions, one of which is the root.

    Mutable and compared by identity. Instructions keep the order of the text.
    """

    __slots__ = _SLOTS

    _start: int
    """Source offsets of its start, its end and its opening brace, and the earliest offset at which its text may begin (the
    end of the preceding text); -1 for a computation that was not parsed from text."""
    _name_mark: str | None
    """Prefix of names (`%` or nothing) where every op line was written as XLA writes them, operands joined by
    `, ` and numbered every five; None otherwise."""
    _parts_read: int | None
    """Number of its module's `_parts` read up to its end, if its op lines consist of these only; otherwise 0 or None."""
    _rare: _Rare

    _backend_config: BackendConfig | None = _kept_rarely("backend_config")
    _is_sugared: bool = _kept_rarely("is_sugared")
    _is_inline: bool = _kept_rarely("is_inline")
    _is_modified: bool = _kept_rarely("is_modified")
    _is_signature_touched: bool = _kept_rarely("is_signature_touched")
    """True once the header line must be reprinted."""
    _has_new_thread: bool = _kept_rarely("has_new_thread")
    """True once its thread differs from that in the text after its closing brace."""
    _is_draft: bool = _kept_rarely("is_draft")
    """True while it is being built for its module, which does not list it yet."""
    _removed_spans: Sequence[tuple[int, int]] = _kept_rarely("removed_spans")
    """Source offsets of removed op lines; a list once there are any."""
    _by_name: dict[str, Instruction] | None = _kept_rarely("by_name")
    _order: Order[Instruction] | None = _kept_rarely("order")
    _successors: dict[Instruction, dict[Instruction, None]] | None = _kept_rarely("successors")
    _numbered_stems: frozenset[str] | None = _kept_rarely("numbered_stems")
    """Stems of the names that the parser generates, with a number, for operands written inline, because an earlier line
    has the stem as its name; None until needed."""

    def __init__(
        self,
        name: str,
        *,
        execution_thread: str = "main",
        module: Module | None = None,
        backend_config: BackendConfig | None = None,
        is_sugared: bool = False,
        is_inline: bool = False,
        start: int = -1,
        brace: int = -1,
    ) -> None:
        self._name = name
        self._instructions: list[Instruction] = []
        self._root: Instruction | None = None
        self._execution_thread = execution_thread
        self._module = module
        self._start, self._end, self._brace = start, -1, brace
        self._name_mark, self._parts_read, self._rare = None, 0, _NOTHING
        if is_sugared or is_inline or backend_config is not None:
            self._backend_config = backend_config
            self._is_sugared, self._is_inline = is_sugared, is_inline

    # ---- what it is

    @property
    def name(self) -> str:
        """Name without `%`, unique in its module; empty for an inline body.

        Setting it also updates the callers. Raises EditError if the name is taken or invalid.
        """
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        edit_backend.backend.rename_computation(self, name)

    @property
    def module(self) -> Module | None:
        """The module that contains this computation, or None before it is added to a module."""
        return self._module

    @property
    def execution_thread(self) -> str:
        """Name of the execution thread; `main` unless the text says otherwise.

        Setting it raises EditError for an invalid name.
        """
        return self._execution_thread

    @execution_thread.setter
    def execution_thread(self, thread: str) -> None:
        edit_backend.backend.set_thread(self, thread)

    @property
    def backend_config(self) -> BackendConfig | None:
        """The `backend_config=` after the closing brace, or None if absent."""
        return self._backend_config

    @property
    def is_sugared(self) -> bool:
        """True for a computation that the text implies: the body of a sugared async operation, or that of an op line."""
        return self._is_sugared

    @property
    def is_inline(self) -> bool:
        """True for a body written inline instead of by name, as in `to_apply={ ... }`.

        Its text is part of its caller's.
        """
        return self._is_inline

    @property
    def is_modified(self) -> bool:
        """True if the computation or any of its instructions was edited."""
        return self._is_modified

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """All instructions in text order."""
        return InstructionList(self._instructions)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._instructions)

    def __len__(self) -> int:
        return len(self._instructions)

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters, ordered by number."""
        found = [i for i in self._instructions if i._head.opcode == "parameter"]
        if [i._head.argument for i in found] != list(range(len(found))):
            found.sort(key=_number)
        return ParameterList(found)

    @property
    def root(self) -> Instruction:
        """The root instruction, whose result is the computation's result.

        Reading it raises ValueError if there are no instructions. Setting it raises EditError for an instruction of
        another computation, or one of another shape than the callers need.
        """
        if self._root is not None:
            return self._root
        if not self._instructions:
            raise ValueError(f"computation {self._name} has no instructions, so it has no root")
        return self._instructions[-1]

    @root.setter
    def root(self, root: Instruction) -> None:
        edit_backend.backend.set_root(self, root)

    @property
    def shape(self) -> Shape | None:
        """Shape of the result, or None if unknown, as for a computation that a pasted op line refers to by name."""
        return self.root.shape if self._instructions else None

    @property
    def is_entry(self) -> bool:
        """True for the module's entry computation."""
        return self._module is not None and not self._is_draft and self._module.entry is self

    @property
    def callers(self) -> tuple[Instruction, ...]:
        """The instructions that call this computation, in text order, each once."""
        return self._module.callers_of(self) if self._module is not None else ()

    @property
    def calls(self) -> Collection[Instruction]:
        """The instructions that call this computation, each once, in no particular order.

        Unlike `callers`, it is not sorted, so it stays cheap while callers are edited.
        """
        return self._module.calls_of(self) if self._module is not None else ()

    @property
    def is_printed_inline(self) -> bool:
        """True if the computation is printed as part of its caller, or not at all."""
        return self.is_sugared or self.is_inline

    @property
    def is_fusion_body(self) -> bool:
        """True if a fusion calls this computation."""
        return self._module is not None and any(
            i._head.opcode == "fusion" for i in self._module.calls_of(self)
        )

    def __getitem__(self, name: str) -> Instruction:
        """Returns the instruction with this name (`%` optional). Raises KeyError."""
        by_name, name = self._named(), bare_name(name, "computation.instructions", self._instructions)
        try:
            return by_name[name]
        except KeyError:
            raise UnknownNameError("instruction", name, by_name.keys, lambda: self._elsewhere(name)) from None

    def _elsewhere(self, name: str) -> str:
        """Where a name is in the module that this computation does not have; empty if nowhere."""
        found = self._module.find(name) if self._module is not None else None
        if found is None:
            return ""
        if isinstance(found, Computation):
            return f"it is a computation: module.computation({name!r})"
        return f"it is in {found.computation.name if found.computation else 'another'}: module.instruction({name!r})"

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            return item.removeprefix("%") in self._named()
        return isinstance(item, Instruction) and item.computation is self

    def _named(self) -> dict[str, Instruction]:
        if self._by_name is None:
            self._by_name = {i._name: i for i in self._instructions}
        return self._by_name

    # ---- order

    @property
    def order(self) -> Order[Instruction]:
        """Order of the instructions: `order[i] < order[j]` compares two positions in constant time.

        The numbers ascend with gaps; `order.index(i)` is the index in `instructions`.
        """
        rare = self._rare
        if rare.order is None:
            from hlotext.ir.nodes.order import Order

            self._order = order = Order(self._instructions)
            return order
        return rare.order

    def control_successors_of(self, instruction: Instruction) -> tuple[Instruction, ...]:
        """Returns the control successors of an instruction, in text order."""
        if self._successors is None:
            self._successors = {}
            for successor in [i for i in self._instructions if "control-predecessors" in i._attributes]:
                for predecessor in successor.control_predecessors:
                    self._successors.setdefault(predecessor, {})[successor] = None
        found = self._successors.get(instruction)
        if not found:
            return ()
        # Edits keep up who waits, not where they stand.
        return tuple(found) if len(found) == 1 else tuple(sorted(found, key=self.order.__getitem__))

    # ---- editing

    def add(
        self, instruction: Instruction, before: Instruction | None = None, *, typed: bool = True
    ) -> Instruction:
        """Inserts a new instruction at the end, or before another instruction, and returns it.

        The first instruction of a computation becomes its root.

        Args:
            instruction: An instruction that is not in a computation yet.
            before: Instruction to insert before; None appends.
            typed: Require the shape to equal the inferred shape. If False, inside a `Module.transaction()`, shapes only
                have to match when the transaction ends.

        Returns:
            The inserted instruction.

        Raises:
            EditError: The name is taken, the instruction is in a computation already, an operand is in another
                computation or follows the position, or the shape is not the inferred one.
        """
        edit_backend.backend.add(self, instruction, before, typed=typed)
        return instruction

    def remove(self, instruction: Instruction) -> None:
        """Removes an instruction.

        Raises EditError if it is in another computation, is the root, has users, or is a parameter that callers pass.
        """
        edit_backend.backend.remove(self, (instruction,))

    def remove_all(self, instructions: Iterable[Instruction]) -> None:
        """Removes instructions that are used only by each other. Raises EditError as `remove` does."""
        edit_backend.backend.remove(self, instructions)

    def rename(self, instruction: Instruction, name: str) -> None:
        """Renames an instruction and updates every line that refers to it.

        Raises EditError if the name is taken or invalid, or if the instruction is in another computation.
        """
        if instruction.computation is not self:
            raise EditError(f"{instruction.name} is not in computation {self._name}")
        edit_backend.backend.rename(instruction, name)

    def _build_use_lists(self) -> None:
        """Fills in the users of all instructions; edits keep them right from then on."""
        for instruction in self._instructions:
            known: Any = instruction._state
            if type(known) is not NodeState:
                known = instruction._state = NodeState(known)
            known.users = {}
        for instruction in self._instructions:
            for operand in instruction._operands:
                state: Any = operand._state
                if type(state) is not NodeState or state.users is None:
                    operand._users = {}
                    state = operand._state
                state.users[instruction] = None

    def __copy__(self) -> Computation:
        return copy.deepcopy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies with the whole module: the copy is the computation in a copy of the module."""
        return edit_backend.backend.reduced(self)

    # ---- text

    @property
    def bounds(self) -> tuple[int, int]:
        """Start and end offsets in the source text; (-1, -1) if it was not parsed from text."""
        return self._start, self._end

    @property
    def span(self) -> Span | None:
        """Position in the source text, or None if it was not parsed from text."""
        if self._module is None or self._module.source is None or self._start < 0:
            return None
        return self._module.source.span(self._start, self._end)

    def __str__(self) -> str:
        return printing.printer().computation(self)

    __format__ = text_formatted
    _repr_mimebundle_ = mimebundle

    def __repr__(self) -> str:
        return f"<Computation %{self._name} with {len(self._instructions)} instructions>"


def _number(parameter: Instruction) -> Any:
    return parameter._head.argument or 0


def post_order(
    computations: Iterable[Computation], known: Container[Computation] = frozenset()
) -> list[Computation]:
    """Returns computations and all that they call, callees before callers; those in `known` and what only they call are
    left out.
    """
    done: dict[Computation, None] = {}
    entered: set[Computation] = set()
    stack: list[tuple[Computation, bool]] = [(c, False) for c in reversed(list(computations))]
    while stack:
        computation, leaving = stack.pop()
        if leaving:
            done[computation] = None
        elif computation not in entered and computation not in known:
            entered.add(computation)
            stack.append((computation, True))
            callees = [
                callee
                for i in computation
                if i._head.opcode not in CALLS_NOTHING
                for callee in i.called_computations
            ]
            stack.extend((callee, False) for callee in reversed(callees))
    return list(done)


def computation_order(
    computations: Iterable[Computation], calls: Mapping[Computation, Sequence[Sequence[Computation]]]
) -> list[Computation]:
    """Returns computations with callees before callers (`HloModule::MakeComputationPostOrder` with `dfs_postorder`).

    Every computation without callers starts a walk. `calls` are those of each computation, a list for each instruction that
    calls, in the order in which XLA stores the instructions. Recursive computations are left out.
    """
    called = {callee for groups in calls.values() for group in groups for callee in group}
    order: list[Computation] = []
    visited: set[Computation] = set()
    for root in computations:
        if root in called:
            continue
        stack: list[tuple[Computation, int]] = [(root, 0)]
        visited.add(root)
        while stack:
            computation, place = stack.pop()
            groups = calls.get(computation, ())
            for place in range(place, len(groups)):  # noqa: B020 - from where it was left
                # All that one instruction calls is marked at once, and entered from the first on.
                new = groups[place]
                if len(new) > 1:
                    new = list(dict.fromkeys(new))
                new = [callee for callee in new if callee not in visited]
                if not new:
                    continue
                visited.update(new)
                if len(new) == 1 and new[0] not in calls:
                    order.append(new[0])
                    continue
                stack.append((computation, place + 1))
                stack.extend((callee, 0) for callee in reversed(new))
                break
            else:
                order.append(computation)
    return order


def without_users(computation: Computation) -> list[Instruction]:
    """Returns the instructions that no other uses as an operand, except the root. Builds no lists of users."""
    instructions = computation._instructions
    used = {computation.root}
    used.update(itertools.chain.from_iterable([i._operands for i in instructions]))
    if len(used) == len(instructions):  # as nearly always: operands stand in the same computation
        return []
    return [i for i in instructions if i not in used]


def instruction_post_order(computation: Computation) -> list[Instruction]:
    """Returns the instructions, operands before users, in the order of `HloComputation::MakeInstructionPostOrder`.

    A depth-first walk starts at each instruction without users, in text order; it emits control predecessors, the last
    one first, then operands from left to right, then the instruction.
    """
    instructions = computation._instructions
    used = set(itertools.chain.from_iterable([i._operands for i in instructions]))
    order: list[Instruction] = []
    entered: set[Instruction] = set()
    outer: list[tuple[Instruction, Iterator[Instruction]]] = []
    for i in instructions:
        if i in used or i in entered:
            continue
        entered.add(i)
        rest = _before(i)
        while True:
            for operand in rest:
                if operand not in entered:
                    entered.add(operand)
                    outer.append((i, rest))
                    i, rest = operand, _before(operand)
                    break
            else:
                order.append(i)
                if not outer:
                    break
                i, rest = outer.pop()
    return order


def _before(i: Instruction) -> Iterator[Instruction]:
    """The control predecessors of an instruction, the last one first, then its operands."""
    if "control-predecessors" in i._attributes:
        return itertools.chain(reversed(i.control_predecessors), i._operands)
    return iter(i._operands)
