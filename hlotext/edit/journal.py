"""The journal of a module: every step of an edit with its contrary, and what must be judged before the edit is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from hlotext.edit import dirty_lines, validation
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction

if TYPE_CHECKING:
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.nodes.record import Listener, Node

Kind = Literal["inserted", "modified", "removed", "header"]
Event = tuple[Kind, Any]
"""A kind of change and the changed node; the module itself for its header."""

_INVERSE: dict[Kind, Kind] = {
    "inserted": "removed", "removed": "inserted", "modified": "modified", "header": "header",
}  # fmt: skip


class Journal:
    """Undo log of the nested edits of a module in progress; for nodes outside a module, `module` is None."""

    __slots__ = ("_undo", "announced", "edits", "events", "module", "untyped")

    def __init__(self, module: Module | None) -> None:
        self.module = module
        self._undo: list[tuple[Any, ...]] = []
        self.events: list[Event] = []
        self.announced = 0
        """Number of events that were announced to listeners."""
        self.edits: list[Edit] = []
        """Those that are going on, from the outermost to the innermost."""
        self.untyped: Edit | None = None
        """The transaction without types among them, at the end of which all types are checked."""

    # ---- steps

    def set(self, node: Any, field: str, value: Any) -> None:
        """Sets a private field of a node, and records the old value."""
        self._undo.append((setattr, node, field, getattr(node, field)))
        setattr(node, field, value)

    def push_undo(self, contrary: Callable[..., Any], *arguments: Any) -> None:
        """Records the inverse of the step just made."""
        self._undo.append((contrary, *arguments))

    def note(self, kind: Kind, node: Any) -> None:
        """Records an event for a node."""
        self.events.append((kind, node))

    @property
    def savepoint(self) -> tuple[int, int]:
        """Position in the log to which `roll_back` can return."""
        return len(self._undo), len(self.events)

    def roll_back(self, place: tuple[int, int]) -> None:
        """Undoes all steps since a savepoint, last first."""
        undo = self._undo
        while len(undo) > place[0]:
            contrary, *arguments = undo.pop()
            contrary(*arguments)
        told = self.events[place[1] : self.announced]
        del self.events[place[1] :]
        self.announced = min(self.announced, place[1])
        if self.module is not None:
            self.module._revision += 1
            for kind, node in reversed(told):
                _tell(self.module._listeners, _INVERSE[kind], node)

    def steps_behind(self, place: tuple[int, int]) -> list[tuple[Any, ...]]:
        """Returns the inverses of the steps since a savepoint."""
        return self._undo[place[0] :]

    def take(self, steps: list[tuple[Any, ...]], events: list[Event]) -> None:
        """Continues the log of another journal."""
        self._undo, self.events, self.announced = list(steps), list(events), len(events)

    def announce(self) -> None:
        """Notifies listeners of the events that they have not been notified of."""
        events, module = self.events, self.module
        if self.announced == len(events):
            return
        if module is not None and module._listeners:
            for kind, node in events[self.announced :]:
                _tell(module._listeners, kind, node)
        self.announced = len(events)


def _tell(listeners: Iterable[Listener], kind: Kind, node: Node) -> None:
    if kind != "header":
        for listener in listeners:
            getattr(listener, kind)(node)


class Edit:
    """A single atomic edit: `with Edit(module) as edit:`.

    Rolls back if an exception leaves the block, or if validation at its end finds a new error.
    """

    __slots__ = (
        "_header",
        "_instructions",
        "_suspects",
        "_whole",
        "computations",
        "finish",
        "follow",
        "is_transaction",
        "journal",
        "relaid",
        "savepoint",
    )  # fmt: skip

    def __init__(self, module: Module | None, *, is_transaction: bool = False) -> None:
        journal: Journal | None = module._journal if module is not None else None
        if journal is None:
            journal = Journal(module)
            if module is not None:
                module._journal = journal
        self.journal = journal
        self.is_transaction = is_transaction
        self.savepoint = journal.savepoint
        self._instructions: dict[Instruction, validation.Counts] | None = None
        self._header: validation.Counts | None = None
        self._whole: validation.Counts | None = None
        self._suspects: dict[Instruction, None] | None = None
        self.computations: dict[Computation, None] | None = None
        self.finish: Callable[[Edit], None] | None = None
        """Completes the edit as a whole, before it is validated."""
        self.follow: Any = None
        """Changes of types whose users wait for the end of a transaction without types: `run()` makes them follow."""
        self.relaid: dict[Instruction, None] | None = None
        """Parameters and roots to which this edit gave another layout."""

    def __enter__(self) -> Edit:
        self.journal.edits.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        journal = self.journal
        try:
            if kind is None:
                self._commit()
            else:
                journal.roll_back(self.savepoint)
        except BaseException:
            journal.roll_back(self.savepoint)
            raise
        finally:
            journal.edits.pop()
            if journal.untyped is self:
                journal.untyped = None
            module = journal.module
            if not journal.edits and module is not None:
                module._journal = None
        if kind is None and (not journal.edits or journal.edits[-1].is_transaction):
            journal.announce()

    # ---- what is judged at the end

    @property
    def outermost(self) -> Edit:
        """The transaction at whose end types must match; this edit if there is none."""
        if self.journal.untyped is not None:
            return self.journal.untyped
        for edit in reversed(self.journal.edits):
            if edit.is_transaction:
                return edit
        return self.journal.edits[0]

    def recheck(self, instructions: Iterable[Instruction], *, typed: bool = True) -> None:
        """Compares the errors of instructions now and at the end: of this edit, or unless `typed`, of the enclosing
        transaction.
        """
        edit = self if typed and self.journal.untyped is None else self.outermost
        watched = edit._instructions
        if watched is None:
            watched = edit._instructions = {}
        for instruction in instructions:
            if instruction not in watched:
                watched[instruction] = validation.count_errors(instruction)

    def check_new(
        self,
        instruction: Instruction,
        *,
        typed: bool = True,
        before: validation.Counts = validation.NO_ERRORS,
    ) -> None:
        """Validates a new instruction at the end. Errors in `before`, those of its original, are allowed."""
        edit = self if typed and self.journal.untyped is None else self.outermost
        if edit._instructions is None:
            edit._instructions = {}
        edit._instructions[instruction] = before

    def recheck_header(self, *, typed: bool = True) -> None:
        """Compares the errors of the header about the entry now and at the end."""
        edit = self if typed and self.journal.untyped is None else self.outermost
        if edit._header is None and self.journal.module is not None:
            edit._header = validation.header_counts(self.journal.module)

    def recheck_module(self) -> None:
        """Compares the errors of the whole module now and at the end, for rare edits that may invalidate anything."""
        edit = self.outermost
        if edit._whole is None and self.journal.module is not None:
            edit._whole = validation.module_counts(self.journal.module)

    def check_used(self, instructions: Iterable[Instruction]) -> None:
        """Checks at the end that these instructions, in fusions, are still used."""
        edit = self.outermost
        if edit._suspects is None:
            edit._suspects = {}
        edit._suspects.update(dict.fromkeys(instructions))

    def numbers(self, computation: Computation) -> None:
        """Checks at the end that a computation has instructions, and consecutive parameter numbers."""
        edit = self.outermost
        if edit.computations is None:
            edit.computations = {}
        edit.computations[computation] = None

    def _commit(self) -> None:
        """Raises EditError for what is wrong and was not."""
        module = self.journal.module
        if self.follow is not None:
            self.follow.run()
        if self.finish is not None:
            self.finish(self)
        if self is self.journal.edits[0] and module is not None and module._computations:
            entry = module._computations[-1] if module._entry is None else module._entry
            if entry._is_sugared and module.op_line is None:
                validation.check_types(entry)  # it takes more to say than a line
                validation.check_starts(entry)
                for inside in [c for c in module._computations if c.is_printed_inline]:
                    dirty_lines.split_body(self.journal, inside)
                self.journal.set(module, "_source", None)
        for numbered in self.computations or ():
            validation.check_parameters(numbered)
        if self._instructions is not None:
            for instruction, before in self._instructions.items():
                computation = instruction._computation
                if module is None or (computation is not None and computation._module is module):
                    validation.check(instruction, before)  # not of one that has gone meanwhile
        if self._header is not None and module is not None:
            validation.check_header(module, self._header)
        if self._suspects is not None:
            validation.check_fusions(self._suspects)
        if self._whole is not None and module is not None:
            validation.check_module(module, self._whole)


class Transaction:
    """Context manager of `Module.transaction()`, and the `EditRecord` that it returns."""

    def __init__(self, module: Module, *, typed: bool = True) -> None:
        self._module = module
        self._typed = typed
        self._edit: Edit | None = None
        self._events: list[Event] = []
        self._steps: list[tuple[Any, ...]] = []
        self._place = (0, 0)
        self._revision = -1

    def __enter__(self) -> Transaction:
        self._edit = Edit(self._module, is_transaction=True).__enter__()
        journal = self._edit.journal
        if not self._typed and journal.untyped is None:
            journal.untyped = self._edit
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        edit = self._edit
        assert edit is not None
        self._edit = None
        journal, place = edit.journal, edit.savepoint
        edit.__exit__(kind, error, trace)
        self._events, self._steps = journal.events[place[1] :], journal.steps_behind(place)
        self._place = place
        self._revision = self._module._revision

    # ---- the record

    def _net(self) -> dict[Any, Kind]:
        """Net change of each node."""
        edit = self._edit
        events = self._events if edit is None else edit.journal.events[edit.savepoint[1] :]
        found: dict[Any, Kind] = {}
        for kind, node in events:
            before = found.get(node)
            if kind == "inserted":
                found[node] = "modified" if before == "removed" else "inserted"
            elif kind == "removed" and before == "inserted":
                del found[node]
            elif kind != "modified" or before is None:
                found[node] = kind
        return found

    def _of(self, kind: Kind) -> tuple[Any, ...]:
        return tuple(node for node, what in self._net().items() if what == kind)

    @property
    def inserted(self) -> tuple[Node, ...]:
        return self._of("inserted")

    @property
    def modified(self) -> tuple[Node, ...]:
        return self._of("modified")

    @property
    def removed(self) -> tuple[Node, ...]:
        return self._of("removed")

    @property
    def changed_header(self) -> bool:
        return bool(self._of("header"))

    def undo(self) -> None:
        """Implements `EditRecord.undo`."""
        if self._edit is not None:
            self._edit.journal.roll_back(self._edit.savepoint)
            return
        if self._module._revision != self._revision:
            raise EditError(
                f"module {self._module.name} was edited since, so this cannot be undone on its own"
            )
        journal: Journal | None = self._module._journal
        if journal is not None:  # a transaction around it goes on
            journal.roll_back(self._place)
        else:
            journal = Journal(self._module)
            journal.take(self._steps, self._events)
            journal.roll_back((0, 0))
        self._steps.clear()
        self._events.clear()
        self._revision = -1
