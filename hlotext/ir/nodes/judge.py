"""How edits learn what they would make wrong: the verifier belongs to a room above and installs itself here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from hlotext.ir.errors import EditError

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module

Problems = Sequence[tuple[str, str]]
"""What is wrong: the code of each problem, and a sentence."""


class Judge(Protocol):
    """Says what is wrong with a part of a module, errors alone."""

    def operation(self, instruction: Instruction) -> Problems:
        """With an instruction, seen by itself."""

    def header(self, module: Module) -> Problems:
        """With what the header says of the entry computation."""


_installed: list[Judge] = []


def install(judge: Judge) -> None:
    """Makes this the judge of every edit; `hlotext` does so when it is imported."""
    _installed[:] = [judge]


def operation_problems(instruction: Instruction) -> Problems:
    """What the installed judge says of an instruction; nothing before one is installed."""
    return _installed[0].operation(instruction) if _installed else ()


class Watch:
    """What was wrong before an edit with all that it may break, so that new problems are told from old ones."""

    def __init__(self, instructions: Iterable[Instruction] = (), header: Module | None = None) -> None:
        self._before: dict[Instruction, Counter[str]] = {}
        self._module = header
        self._header = _codes(_header_problems(header))
        self.add(instructions)

    def add(self, instructions: Iterable[Instruction]) -> None:
        """Watches more instructions, as they are now; those that are watched already stay as they were."""
        for instruction in instructions:
            if instruction not in self._before:
                self._before[instruction] = _codes(operation_problems(instruction))

    def check(self) -> None:
        """Raises EditError for the first problem that was not there."""
        for instruction, before in self._before.items():
            problems = operation_problems(instruction)
            if problems:
                _raise_new(f"{instruction.name}: ", problems, before)
        if self._module is not None:
            self._check_header(self._module)

    def _check_header(self, module: Module) -> None:
        """The header as it follows from the edit, which it does unless the edit is refused."""
        before = module.attributes.copy(), module.is_touched, module.is_header_touched
        module.fit_entry_layout()
        try:
            _raise_new("the header: ", _header_problems(module), self._header)
        except EditError:
            module.attributes, module.is_touched, module.is_header_touched = before
            raise


def _header_problems(module: Module | None) -> Problems:
    return _installed[0].header(module) if _installed and module is not None else ()


def _codes(problems: Problems) -> Counter[str]:
    return Counter(code for code, _ in problems)


def _raise_new(what: str, problems: Problems, before: Counter[str]) -> None:
    known = before.copy()
    for code, message in problems:
        known[code] -= 1
        if known[code] < 0:
            raise EditError(f"{what}{message}")
