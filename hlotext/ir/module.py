"""Modules: what one HLO text holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.ir import printing
from hlotext.ir.computation import Computation
from hlotext.ir.frames import StackFrameIndex
from hlotext.ir.instruction import Instruction
from hlotext.ir.print_options import PrintOptions

if TYPE_CHECKING:
    from hlotext.ir.source import Source


@attrs.define(eq=False, repr=False)
class Module:
    """One module. Mutable, compared by identity; `str()` is the source text as far as nothing was edited."""

    _name: str
    attributes: dict[str, Any] = attrs.field(factory=dict)
    """Typed header attributes by name, in the order of the text. After a change call `touch_header()`."""
    _computations: list[Computation] = attrs.field(factory=list)
    _entry: Computation | None = None
    stack_frames: StackFrameIndex = attrs.field(factory=StackFrameIndex)
    """The tables between the header and the first computation; empty when the text has none."""
    source: Source | None = None
    """The text that this was read from; None for a module that was built."""
    _start: int = 0
    _header_end: int = 0
    _end: int = 0
    removed: list[Computation] = attrs.field(factory=list)
    """Computations that were taken out; their text is still in the source."""
    is_touched: bool = False
    is_header_touched: bool = False
    revision: int = 0
    """Goes up with every edit; caches of derived facts compare it."""
    _callers: tuple[int, dict[Computation, dict[Instruction, None]]] | None = None
    _by_name: tuple[int, dict[str, Instruction | Computation]] | None = None
    _facts: tuple[int, dict[str, Any]] | None = None
    """What `hlotext.analysis` found out, by the fact's name, and the revision that it is true of."""

    @property
    def name(self) -> str:
        """The name in the header; for text without a header the one that XLA makes up."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name
        self.touch_header()

    @property
    def computations(self) -> tuple[Computation, ...]:
        """All computations in the order of the text; inline bodies stand before their caller's computation."""
        return tuple(self._computations)

    @property
    def entry(self) -> Computation:
        """The computation marked ENTRY, else the last one. Raises ValueError for a module without computations."""
        if self._entry is not None:
            return self._entry
        if not self._computations:
            raise ValueError(f"module {self._name} has no computations, so it has no entry")
        return self._computations[-1]

    @property
    def is_scheduled(self) -> bool:
        """True where the order of the instructions is the order in which they run."""
        return self.attributes.get("is_scheduled") is True

    def instructions(self) -> Iterator[Instruction]:
        """Every instruction of every computation, in the order of the text."""
        for computation in self._computations:
            yield from computation._instructions

    def find(self, name: str) -> Instruction | Computation | None:
        """The instruction or else the computation of that name (`%` optional); the first one in the text; or None."""
        if self._by_name is None or self._by_name[0] != self.revision:
            names: dict[str, Instruction | Computation] = {}
            for instruction in self.instructions():
                names.setdefault(instruction.name, instruction)
            for computation in self._computations:
                names.setdefault(computation.name, computation)
            self._by_name = self.revision, names
        return self._by_name[1].get(name.removeprefix("%"))

    def callers_of(self, computation: Computation) -> tuple[Instruction, ...]:
        """The instructions that call a computation, in the order of the text."""
        if self._callers is None or self._callers[0] != self.revision:
            callers: dict[Computation, dict[Instruction, None]] = {}
            for instruction in self.instructions():
                for callee in instruction.called_computations:
                    callers.setdefault(callee, {})[instruction] = None
            self._callers = self.revision, callers
        return tuple(self._callers[1].get(computation, ()))

    def materialize(self) -> Module:
        """Forces everything that is read lazily, and returns the module.

        The reader types every attribute at once, since equal texts share their values, so there is nothing to do.
        """
        return self

    # ---- editing

    def add(self, computation: Computation, before: Computation | None = None) -> Computation:
        """Puts a new computation at the end, or before another one. Raises ValueError if the name is taken."""
        if any(c.name == computation.name for c in self._computations):
            raise ValueError(f"module {self._name} already has a computation named {computation.name}")
        entry = self.entry if self._computations else computation
        place = len(self._computations) if before is None else self._computations.index(before)
        self._computations.insert(place, computation)
        self._entry = entry
        computation.module = self
        computation.touch()
        return computation

    def remove(self, computation: Computation) -> None:
        """Takes a computation out. Raises ValueError while it is the entry or somebody calls it."""
        if computation.is_entry:
            raise ValueError(f"{computation.name} is the entry computation")
        if callers := computation.callers:
            raise ValueError(f"{computation.name} is still called by {', '.join(c.name for c in callers)}")
        self._entry = self.entry
        self._computations.remove(computation)
        self.removed.append(computation)
        computation.module = None
        self.touch()

    def rename(self, computation: Computation, name: str) -> None:
        """Gives a computation another name; every line that names it is printed anew.

        Raises ValueError if the name is taken.
        """
        if name == computation.name:
            return
        if any(c.name == name for c in self._computations):
            raise ValueError(f"module {self._name} already has a computation named {name}")
        callers = computation.callers
        computation._name = name
        computation.touch_signature()
        for caller in callers:
            caller.touch()

    def touch(self) -> None:
        """Marks the module as edited."""
        self.is_touched = True
        self.revision += 1

    def touch_header(self) -> None:
        """Marks the header line as edited."""
        self.is_header_touched = True
        self.touch()

    # ---- text

    def to_text(self, options: PrintOptions | None = None) -> str:
        """The module printed as XLA prints it with these options (default: XLA's default preset)."""
        return printing.printer().module(self, options or PrintOptions.default())

    def __str__(self) -> str:
        return printing.printer().source(self)

    def __repr__(self) -> str:
        return f"<Module {self._name} with {len(self._computations)} computations>"
