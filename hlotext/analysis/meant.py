"""The instructions and computations that a name may be meant for that a module does not have."""

from __future__ import annotations

import fnmatch
import itertools
import re
import shlex

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import nearest, suggestion
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.tables.other_names import opcode_named
from hlotext.syntax.source.limits import MAX_COMPARED_WORDS

_WILD = re.compile(r"[*?]")
_MOST = 3
"""Names that a message suggests."""


def meant_instruction(module: Module, name: str) -> Instruction | None:
    """Returns the instruction with this name, or if it is an opcode, the only instruction with that opcode; otherwise
    None.
    """
    found = module.find(name)
    if isinstance(found, Instruction):
        return found
    of_opcode = [one for one in module.instructions() if one.opcode == name]
    return of_opcode[0] if len(of_opcode) == 1 else None


def names_meant(module: Module, name: str) -> str:
    """Returns the end of a message about an unknown name, `; did you mean ...?`, or an empty string. See `NamesMeant`."""
    meant = NamesMeant(name)
    meant.add(module)
    return str(meant)


def bare(name: str) -> str:
    """Returns a name without `%`, quotes, commas, colons or equals signs around it, as left by copying it from a text."""
    return name.strip(" \"'`,:;=").removeprefix("%") or name


def _target(instruction: Instruction) -> str:
    """The target of a custom call, in lower case; empty for others."""
    if instruction.opcode != "custom-call":
        return ""
    return str(instruction.attributes.get("custom_call_target", "")).lower()


class NamesMeant:
    """Collects suggestions for an unknown name from one or several modules. `str()` is the end of a message.

    Suggests instructions with that opcode or target, however spelled, those of the entry first, or else names that are
    spelled similarly or contain it.
    """

    def __init__(self, name: str) -> None:
        self._name = bare(name)
        self._is_dressed = self._name != name.removeprefix("%")
        self._pattern = re.compile(fnmatch.translate(self._name)) if _WILD.search(self._name) else None
        stem, _, number = self._name.rpartition(".")
        self._opcode = opcode_named(stem if number.isdecimal() else self._name)
        self._place = ""
        """The file of the first module, for a shell; empty if it has none."""
        self._of_opcode: dict[str, None] = {}
        self._holding: dict[str, None] = {}
        self._others: dict[str, None] = {}

    def add(self, module: Module) -> None:
        """Adds the names of a module; of a large module, only as many as are compared."""
        word = self._name.lower()
        if not self._place and module.source is not None and not module.source.name.startswith("<"):
            self._place = shlex.quote(module.source.name)
        if self._is_dressed and module.find(self._name) is not None:
            self._of_opcode = {self._name: None}
            return
        if len(self._of_opcode) < _MOST:
            entry = module.entry
            opcode = self._opcode if self._opcode in OPCODES else None
            mine = [one for one in module.instructions() if one.opcode == opcode or _target(one) == word]
            mine.sort(key=lambda one: one.computation is not entry)
            self._of_opcode.update(dict.fromkeys(one.name for one in mine[:_MOST]))
        if self._of_opcode:
            return
        instructions = (i.name for computation in module.walk() for i in computation)
        for name in itertools.chain(instructions, (c.name for c in module.computations)):
            if word in name.lower() or (self._pattern is not None and self._pattern.fullmatch(name)):
                self._holding[name] = None
                if len(self._holding) == _MOST:
                    break
            elif len(self._others) < MAX_COMPARED_WORDS:
                self._others[name] = None

    def __str__(self) -> str:
        names = {**self._holding, **self._others}
        close = list(self._of_opcode)[:_MOST] or (
            [] if self._pattern is not None else nearest(self._name, names)
        )
        close = close or list(self._holding)
        if close:
            return f"; {suggestion(close)}"
        none = f"no instruction has the opcode {self._opcode}; " if self._opcode in OPCODES else ""
        return f"; {none}`hlotext grep _ {self._place or 'FILE'}` finds all instructions"
