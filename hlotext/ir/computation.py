"""Computations: named bodies of instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from hlotext.ir import printing
from hlotext.ir.instruction import Instruction
from hlotext.ir.shape import Shape

if TYPE_CHECKING:
    from hlotext.ir.module import Module
    from hlotext.ir.source import Span


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
    removed_spans: list[tuple[int, int]] = attrs.field(factory=list)
    """Where the op lines that were taken out stand in the source."""
    is_touched: bool = False
    """True once anything inside was edited."""
    is_signature_touched: bool = False
    """True once the header line must be printed anew."""
    _by_name: dict[str, Instruction] | None = None

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
        return tuple(sorted(found, key=_number))

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
        if root.computation is not self:
            raise ValueError(f"{root.name} is not in computation {self._name}")
        for instruction in (self.root, root):
            instruction.touch()
        self._root = root
        self.touch_signature()

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
    def is_fusion_body(self) -> bool:
        """True where a fusion calls this computation."""
        return any(caller.opcode == "fusion" for caller in self.callers)

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

    # ---- editing

    def add(self, instruction: Instruction, before: Instruction | None = None) -> Instruction:
        """Puts a new instruction at the end, or before another one.

        Raises ValueError if the name is taken or an operand is from elsewhere.
        """
        if instruction.name in self:
            raise ValueError(f"{self._name} already has an instruction named {instruction.name}")
        for operand in instruction.operands:
            if operand.computation is not self:
                raise ValueError(
                    f"operand {operand.name} of {instruction.name} is not in computation {self._name}"
                )
        root = self.root if self._instructions else None
        place = len(self._instructions) if before is None else self._instructions.index(before)
        self._instructions.insert(place, instruction)
        self._root = root or instruction
        instruction.computation = self
        if self._by_name is not None:
            self._by_name[instruction.name] = instruction
        for operand in instruction.operands:
            if operand._users is not None:
                operand._users[instruction] = None
        instruction._users = {}
        instruction.touch()
        if instruction.opcode == "parameter":
            self.touch_signature()
        return instruction

    def remove(self, instruction: Instruction) -> None:
        """Takes an instruction out. Raises ValueError while it is the root or somebody uses it."""
        if instruction.is_root:
            raise ValueError(f"{instruction.name} is the root of {self._name}")
        if instruction.users or instruction.control_successors:
            used = ", ".join(u.name for u in (*instruction.users, *instruction.control_successors))
            raise ValueError(f"{instruction.name} is still used by {used}")
        self._root = self.root
        self._instructions.remove(instruction)
        if instruction._start >= 0:
            self.removed_spans.append((instruction._start, instruction._end))
        for operand in instruction.operands:
            if operand._users is not None:
                operand._users.pop(instruction, None)
        if self._by_name is not None:
            del self._by_name[instruction.name]
        self.touch()
        if instruction.opcode == "parameter":
            self.touch_signature()
        instruction.computation = None

    def rename(self, instruction: Instruction, name: str) -> None:
        """Gives an instruction another name; every line that names it is printed anew.

        Raises ValueError if the name is taken.
        """
        if name == instruction.name:
            return
        if name in self:
            raise ValueError(f"{self._name} already has an instruction named {name}")
        if self._by_name is not None:
            del self._by_name[instruction.name]
            self._by_name[name] = instruction
        instruction._name = name
        for touched in (instruction, *instruction.users, *instruction.control_successors):
            touched.touch()
        if instruction.opcode == "parameter":
            self.touch_signature()

    def touch(self) -> None:
        """Marks this computation as edited."""
        self.is_touched = True
        if self.is_inline:
            for caller in self.callers:
                if not caller.is_touched:
                    caller.touch()
        if self.module is not None:
            self.module.touch()

    def touch_signature(self) -> None:
        """Marks the header line as edited."""
        self.is_signature_touched = True
        self.touch()

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


def _number(parameter: Instruction) -> int:
    return parameter.parameter_number or 0


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
