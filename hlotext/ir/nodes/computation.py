"""Computations: named bodies of instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.ir.errors import EditError
from hlotext.ir.nodes import calls, edits, judge, printing, uses
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.values.shape import Shape

if TYPE_CHECKING:
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.nodes.order import Order
    from hlotext.ir.nodes.source import Span


@attrs.define(eq=False, repr=False)
class Computation:
    """One computation. Mutable, compared by identity; instructions keep the order of the text."""

    _name: str
    _instructions: list[Instruction] = attrs.field(factory=list)
    _root: Instruction | None = None
    execution_thread: str = "main"
    """The thread that runs it; `main` unless the text says otherwise."""
    module: Module | None = None
    """The module that holds it; None before it is added to one."""
    is_implicit: bool = False
    """True for a computation without a text of its own: the body behind a sugared async operation."""
    is_inline: bool = False
    """True for a body written in place of a name: `to_apply={ ... }`. It stands inside its caller's text."""
    _start: int = -1
    """Where it starts and ends in the source, where its brace opens, and the source offset at which its text may
    first begin (the end of what comes before); -1 for a computation that was not read."""
    _end: int = -1
    _brace: int = -1
    name_mark: str | None = None
    """What stands before names (`%` or nothing) where every op line was written as XLA writes them, operands joined by
    `, ` and numbered every five; None otherwise."""
    _parts_read: int | None = 0
    """How many of its module's `_parts` had been read at its end, where its op lines are made of these alone; 0 or None
    otherwise."""
    removed_spans: list[tuple[int, int]] = attrs.field(factory=list)
    """Where the op lines that were taken out stand in the source."""
    is_touched: bool = False
    """True once anything inside was edited."""
    is_signature_touched: bool = False
    """True once the header line must be printed anew."""
    _by_name: dict[str, Instruction] | None = None
    _order: Order | None = None
    _successors: dict[Instruction, dict[Instruction, None]] | None = None

    # ---- what it is

    @property
    def name(self) -> str:
        """Name without `%`, unique in its module; empty for an inline body."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        if self.module is not None:
            self.module.rename(self, name)
        else:
            self._name = name

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """All instructions in the order of the text."""
        return tuple(self._instructions)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._instructions)

    def __len__(self) -> int:
        return len(self._instructions)

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters by number."""
        found = [i for i in self._instructions if i._opcode == "parameter"]
        if [i._argument for i in found] != list(range(len(found))):
            found.sort(key=_number)
        return tuple(found)

    @property
    def root(self) -> Instruction:
        """The instruction whose result is the computation's. Raises ValueError when there are no instructions."""
        if self._root is not None:
            return self._root
        if not self._instructions:
            raise ValueError(f"computation {self._name} has no instructions, so it has no root")
        return self._instructions[-1]

    @root.setter
    def root(self, root: Instruction) -> None:
        old = self.root
        if root.computation is not self:
            raise EditError(f"{root.name} is not in computation {self._name}")
        if root is old:
            return
        edits.check_root(self, root)
        watch = judge.Watch(self.callers, self.module if self.is_entry else None)
        self._root = root
        try:
            watch.check()
        except EditError:
            self._root = old
            raise
        edits.touch_roots(self, old, root)

    @property
    def shape(self) -> Shape | None:
        """Shape of the result; None where it is not known, as of a computation that a pasted op line only names."""
        return self.root.shape if self._instructions else None

    @property
    def is_entry(self) -> bool:
        return self.module is not None and self.module.entry is self

    @property
    def callers(self) -> tuple[Instruction, ...]:
        """The instructions that call this computation, in the order of the module."""
        return self.module.callers_of(self) if self.module is not None else ()

    @property
    def is_inside(self) -> bool:
        """True where its text, if it has any, is a part of its caller's."""
        return self.is_implicit or self.is_inline

    @property
    def is_fusion_body(self) -> bool:
        """True where a fusion calls this computation."""
        return self.module is not None and any(i._opcode == "fusion" for i in self.module.calls_of(self))

    def __getitem__(self, name: str) -> Instruction:
        """The instruction of that name, with or without `%`. Raises KeyError."""
        if self._by_name is None:
            self._by_name = {i.name: i for i in self._instructions}
        return self._by_name[name.removeprefix("%")]

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            try:
                self[item]
            except KeyError:
                return False
            return True
        return isinstance(item, Instruction) and item.computation is self

    # ---- order

    @property
    def order(self) -> Order:
        """Where each instruction stands, for comparisons and insertions in constant time."""
        if self._order is None:
            from hlotext.ir.nodes.order import Order

            self._order = Order(self._instructions)
        return self._order

    def control_successors_of(self, instruction: Instruction) -> tuple[Instruction, ...]:
        """The instructions that name one as a control predecessor, in the order of the text."""
        if self._successors is None:
            self._successors = {}
            for successor in self._instructions:
                for predecessor in successor.control_predecessors:
                    self._successors.setdefault(predecessor, {})[successor] = None
        return tuple(self._successors.get(instruction, ()))

    # ---- editing; `hlotext.ir.nodes.edits` holds what each edit must prove before it happens

    def add(
        self, instruction: Instruction, before: Instruction | None = None, *, typed: bool = True
    ) -> Instruction:
        """Puts a new instruction at the end, or before another one. The first one becomes the root.

        Raises EditError if the name is taken, if an operand is from elsewhere or stands behind that place, and, with
        `typed`, if the shape is not what operands and attributes give.
        """
        if instruction.name in self:
            raise EditError(f"{self._name} already has an instruction named {instruction.name}")
        if instruction.computation is not None:
            raise EditError(f"{instruction.name} is in computation {instruction.computation.name} already")
        if instruction.opcode == "parameter" and self.callers:
            raise EditError(f"{self._name} has callers: add parameters with add_parameter")
        edits.check_members(self, instruction.name, instruction._operands, instruction._attributes)
        edits.check_control(self, instruction._attributes)
        called = calls.check(self, instruction, instruction._opcode, instruction._attributes)
        order = self.order
        needed = (*instruction._operands, *instruction.control_predecessors)
        if before is not None and any(order[i] >= order[before] for i in needed):
            raise EditError(f"{instruction.name} would stand before what it needs")
        uses.check_taken(instruction, instruction._opcode, instruction._operands)
        edits.check_added(self, instruction)
        if typed:
            edits.check_typed(self, instruction)
        root = self.root if self._instructions else None
        order.insert(len(self._instructions) if before is None else order.place(before), instruction)
        self._root = root or instruction
        instruction.computation = self
        if self._by_name is not None:
            self._by_name[instruction.name] = instruction
        for operand in instruction._operands:
            if operand._users is not None:
                operand._users[instruction] = None
        instruction._users = {}
        if instruction.control_predecessors:
            self._successors = None
        if self.module is not None:
            self.module.instruction_names.register(instruction.name)
            self.module.note_calls(instruction)
            if called:
                self.module.bring_before(self, called)
        instruction.touch()
        if instruction.opcode == "parameter":
            self.touch_signature()
        return instruction

    def remove(self, instruction: Instruction) -> None:
        """Takes an instruction out. Raises EditError while it is the root, or used, or a parameter that callers give."""
        self.remove_all([instruction])

    def remove_all(self, instructions: Iterable[Instruction]) -> None:
        """Takes instructions out that nothing but they themselves uses. Raises EditError as `remove` does."""
        gone = dict.fromkeys(instructions)
        for instruction in gone:
            if instruction.computation is not self:
                raise EditError(f"{instruction.name} is not in computation {self._name}")
            if instruction.is_root:
                raise EditError(f"{instruction.name} is the root of {self._name}")
            if instruction.opcode == "parameter" and self.module is not None:
                raise EditError(f"{instruction.name} is a parameter: use remove_parameter")
            uses.check_left(instruction, (o for o in instruction._operands if o not in gone))
            used = [u for u in (*instruction.users, *instruction.control_successors) if u not in gone]
            if used:
                raise EditError(f"{instruction.name} is still used by {', '.join(u.name for u in used)}")
        self._root = self.root
        for instruction in gone:
            if instruction._start >= 0:
                self.removed_spans.append((instruction._start, instruction._end))
        if len(gone) == 1:
            self.order.remove(*gone)
        else:
            self.order.remove_all(gone)
        for instruction in gone:
            for operand in instruction._operands:
                if operand._users is not None:
                    operand._users.pop(instruction, None)
            if self._by_name is not None:
                del self._by_name[instruction.name]
            if instruction.control_predecessors:
                self._successors = None
            if instruction.opcode == "parameter":
                self.touch_signature()
            if self.module is not None:
                self.module.forget_calls(instruction)
            for callee in instruction.called_computations:
                if callee.is_inside:  # its text goes with the line
                    callee.own_text()
            instruction.computation = None
            instruction._place = None
            instruction._users = None
        self.touch()

    def move_all(self, instructions: Iterable[Instruction], before: Instruction) -> None:
        """Moves instructions, in this order, to the place before another one. For edits that have proved it possible."""
        for instruction in instructions:
            self.order.remove(instruction)
            self.order.insert(self.order.place(before), instruction)
            self.touch()

    def rename(self, instruction: Instruction, name: str) -> None:
        """Gives an instruction another name; every line that names it is printed anew.

        Raises EditError if the name is taken.
        """
        if name == instruction.name:
            return
        if name in self:
            raise EditError(f"{self._name} already has an instruction named {name}")
        if self._by_name is not None:
            del self._by_name[instruction.name]
            self._by_name[name] = instruction
        instruction._name = name
        if self.module is not None:
            self.module.instruction_names.register(name)
        for touched in (instruction, *instruction.users, *instruction.control_successors):
            touched.touch()
        if instruction.opcode == "parameter":
            self.touch_signature()

    def own_text(self) -> None:
        """Makes a body that stands inside its caller's text (inline, or behind a sugared operation) a text of its own."""
        self.is_inline = self.is_implicit = False
        self._start = self._end = self._brace = -1
        self.name_mark = None
        self.removed_spans.clear()
        for instruction in self._instructions:
            instruction._place = None
            instruction.form = Form.LINE
        if self.module is not None and not self._name:
            self._name = self.module.computation_names.unique("inline_body")
        self.touch_signature()

    def touch(self) -> None:
        """Marks this computation as edited."""
        self.is_touched = True
        if self.is_inline or (self.is_implicit and self.callers):
            callers = self.callers
            self.own_text()
            for caller in callers:
                for part in caller.async_chain or (
                    caller,
                ):  # the short spelling of each names the body's operation
                    part.touch()
        if self.module is not None:
            self.module.touch()

    def touch_signature(self) -> None:
        """Marks the header line as edited."""
        self.is_signature_touched = True
        self.touch()
        if self.is_entry and self.module is not None:
            self.module.fit_entry_layout()

    def find_users(self) -> None:
        """Fills in the users of all instructions; edits keep them right from then on."""
        for instruction in self._instructions:
            instruction._users = {}
        for instruction in self._instructions:
            for operand in instruction._operands:
                if operand._users is None:
                    operand._users = {}
                operand._users[instruction] = None

    # ---- text

    @property
    def span(self) -> Span | None:
        """Where this stands in the source text; None for a computation that was not read."""
        if self.module is None or self.module.source is None or self._start < 0:
            return None
        return self.module.source.span(self._start, self._end)

    def __str__(self) -> str:
        return printing.printer().computation(self)

    def __repr__(self) -> str:
        return f"<Computation %{self._name} with {len(self._instructions)} instructions>"


def opened(name: str, module: Module, start: int, brace: int) -> Computation:
    """A computation of a module whose header has been read: where it starts, and where its brace opens.

    What `Computation(...)` would do, in half of its time.
    """
    computation = object.__new__(Computation)
    computation._name = name
    computation._instructions = []
    computation._root = None
    computation.execution_thread = "main"
    computation.module = module
    computation.is_implicit = computation.is_inline = False
    computation._start = start
    computation._end = -1
    computation._brace = brace
    computation.name_mark = None
    computation._parts_read = 0
    computation.removed_spans = []
    computation.is_touched = computation.is_signature_touched = False
    computation._by_name = computation._order = computation._successors = None
    return computation


def _number(parameter: Instruction) -> Any:
    return parameter._argument or 0


def post_order(computations: Iterable[Computation]) -> list[Computation]:
    """These computations and all that they call, callees before callers, each once."""
    done: dict[Computation, None] = {}
    entered: set[Computation] = set()
    stack: list[tuple[Computation, bool]] = [(c, False) for c in reversed(list(computations))]
    while stack:
        computation, leaving = stack.pop()
        if leaving:
            done[computation] = None
        elif computation not in entered:
            entered.add(computation)
            stack.append((computation, True))
            callees = [callee for i in computation for callee in i.called_computations]
            stack.extend((callee, False) for callee in reversed(callees))
    return list(done)


def instruction_post_order(computation: Computation) -> list[Instruction]:
    """The instructions, operands before users, in the order of `HloComputation::MakeInstructionPostOrder`.

    Every instruction without users starts a walk, in the order of the text; a walk emits control predecessors, the last
    one first, then operands from left to right, then the instruction.
    """
    order: dict[Instruction, None] = {}
    entered: set[Instruction] = set()
    used = {operand for instruction in computation for operand in instruction.operands}
    for start in computation:
        if start in used:
            continue
        stack = [start]
        while stack:
            instruction = stack[-1]
            if instruction in entered:
                stack.pop()
                order[instruction] = None
                continue
            entered.add(instruction)
            before = (*reversed(instruction.operands), *instruction.control_predecessors)
            stack.extend(i for i in before if i not in entered)
    return list(order)
