"""Modules: what one HLO text holds."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.ir import collector
from hlotext.ir.errors import EditError
from hlotext.ir.nodes import printing
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Layout, Shape

if TYPE_CHECKING:
    from hlotext.ir.nodes.naming import NameUniquer
    from hlotext.ir.nodes.source import Source
    from hlotext.ir.values.frames import StackFrameIndex
    from hlotext.ir.values.print_options import PrintOptions

ENTRY_LAYOUT = "entry_computation_layout"


def _fitting(old: Shape | None, shape: Shape, layouts_count: bool) -> Shape:
    """The old shape where it differs in layouts at most, else the new one with layouts filled in.

    Where layouts count: in tiles, padding and memory spaces at most, which the header of TPU text lacks.
    """
    if old == shape:
        return shape
    new = _laid_out(shape)
    if old is None or old.text_without_layout() != shape.text_without_layout():
        return new
    return old if not layouts_count or _ordered(old) == _ordered(new) else new


def _ordered(shape: Shape) -> list[Layout | None]:
    """The layouts inside a shape with the order of dimensions and the size of elements alone."""
    layouts = [leaf.layout for _, leaf in shape.with_default_layout().leaves()]
    return [x and Layout(x.minor_to_major, element_size_in_bits=x.element_size_in_bits) for x in layouts]


def _laid_out(shape: Shape) -> Shape:
    """A shape with the descending layout where an array has none; scalars are written without."""
    if shape.is_tuple:
        return Shape.tuple(tuple(map(_laid_out, shape.tuple_shapes)))
    return shape.with_default_layout() if shape.dimensions else shape


@attrs.define(eq=False, repr=False)
class Module:
    """One module. Mutable, compared by identity; `str()` is the source text as far as nothing was edited."""

    _name: str
    attributes: dict[str, Any] = attrs.field(factory=dict)
    """Typed header attributes by name, in the order of the text. After a change call `touch_header()`."""
    _computations: list[Computation] = attrs.field(factory=list)
    _entry: Computation | None = None
    _stack_frames: StackFrameIndex | None = None
    """None for a text without tables that nobody has asked for them."""
    source: Source | None = None
    """The text that this was read from; None for a module that was built."""
    _start: int = 0
    _header_end: int = 0
    _end: int = 0
    _parts: list[tuple[str, str, Shape | Literal | int | dict[str, Any]]] = attrs.field(factory=list)
    """What op lines are made of, each once and in the order in which it was first read: its text, the opcode on the line, and
    what was read: the shape (its text goes on to the opcode), the literal or number in the parentheses, the attributes."""
    removed: list[Computation] = attrs.field(factory=list)
    """Computations that were taken out; their text is still in the source."""
    is_touched: bool = False
    is_header_touched: bool = False
    revision: int = 0
    """Goes up with every edit; caches of derived facts compare it."""
    _callers: dict[Computation, dict[Instruction, None]] | None = None
    _place_of: dict[Computation, int] | None = None
    _by_name: tuple[int, dict[str, Instruction | Computation]] | None = None
    _instruction_names: NameUniquer | None = None
    _computation_names: NameUniquer | None = None
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
    def stack_frames(self) -> StackFrameIndex:
        """The tables between the header and the first computation; empty when the text has none."""
        if self._stack_frames is None:
            from hlotext.ir.values.frames import StackFrameIndex  # small texts have no tables

            self._stack_frames = StackFrameIndex()
        return self._stack_frames

    @stack_frames.setter
    def stack_frames(self, stack_frames: StackFrameIndex) -> None:
        self._stack_frames = stack_frames

    @property
    def is_scheduled(self) -> bool:
        """True where the order of the instructions is the order in which they run."""
        return self.attributes.get("is_scheduled") is True

    def instructions(self) -> Iterator[Instruction]:
        """Every instruction of every computation, in the order of the text."""
        return itertools.chain.from_iterable(computation._instructions for computation in self._computations)

    def walk(
        self, among: Iterable[Computation] | None = None, *, only_callers: bool = False
    ) -> Iterator[Computation]:
        """The computations, or those `among` them, one by one, for questions that keep none of their instructions.

        Of a large file that is read as it is touched (`load`), what is read meanwhile is let go again from time to time, so
        that memory does not grow with the file. Names, numbers, frozen values and computations may be kept; instructions of
        a computation that is touched later are other objects. What is edited before the end is not let go.

        With `only_callers` computations that call nothing may be left out, where that is known without reading them.
        """
        found = self._computations if among is None else among
        return iter(tuple(found)) if self.source is None else self.source.walk(found, only_callers)

    def named(self, name: str) -> Iterator[Instruction | Computation]:
        """The instructions, then the computations of that name (`%` optional). Only what may hold it is read for that."""
        name = name.removeprefix("%")
        computations = self._computations
        for computation in computations if self.source is None else self.source.defining(computations, name):
            yield from (i for i in computation._instructions if i._name == name)
        yield from (computation for computation in computations if computation._name == name)

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
        found = self.calls_of(computation)
        if len(found) < 2:
            return tuple(found)
        places = self._places()
        return tuple(sorted(found, key=lambda i: (places[i.computation], i.computation.order[i])))  # type: ignore[index,union-attr]

    def calls_of(self, computation: Computation) -> Collection[Instruction]:
        """The instructions that call a computation, each once, in no order: cheaper than `callers_of`."""
        if self._callers is None:
            self._callers = {}
            for instruction in self.instructions():
                if instruction._opcode not in CALLS_NOTHING:
                    self.note_calls(instruction)
        return self._callers.get(computation, {}).keys()

    def note_calls(self, instruction: Instruction) -> None:
        """Remembers an instruction of the module as a caller; edits say so."""
        if self._callers is not None:
            for callee in instruction.called_computations:
                self._callers.setdefault(callee, {})[instruction] = None

    def forget_calls(self, instruction: Instruction) -> None:
        """Forgets an instruction as a caller, before it changes or goes."""
        if self._callers is not None:
            for callee in instruction.called_computations:
                self._callers.get(callee, {}).pop(instruction, None)

    def materialize(self) -> Module:
        """Forces everything that is read lazily, and returns the module.

        That is nothing but what `load` left in a large file: whatever else is read has all its attributes typed at once.
        """
        if self.source is not None:
            with collector.paused(pays=False):
                self.source.read_all(self._computations)
        return self

    # ---- editing

    @property
    def instruction_names(self) -> NameUniquer:
        """Hands out names that no instruction of the module has."""
        if self._instruction_names is None:
            from hlotext.ir.nodes.naming import NameUniquer  # only edits need it

            self._instruction_names = NameUniquer(i._name for i in self.instructions())
        return self._instruction_names

    @property
    def computation_names(self) -> NameUniquer:
        """Hands out names that no computation of the module has."""
        if self._computation_names is None:
            from hlotext.ir.nodes.naming import NameUniquer

            self._computation_names = NameUniquer(c._name for c in self._computations)
        return self._computation_names

    def add(self, computation: Computation, before: Computation | None = None) -> Computation:
        """Puts a new computation at the end, or before another one.

        Raises EditError if the name is taken, or if it calls a computation that is not in the module.
        """
        self._check_free(computation.name)
        if computation.module is not None:
            raise EditError(f"{computation.name} is in module {computation.module.name} already")
        for instruction in computation:
            for callee in instruction.called_computations:
                if callee.module is not self and callee is not computation:
                    raise EditError(f"{instruction.name} calls {callee.name}, which is not in the module")
        entry = self.entry if self._computations else computation
        place = len(self._computations) if before is None else self._place_before(before)
        self._computations.insert(place, computation)
        self._place_of = None
        self._entry = entry
        computation.module = self
        self.computation_names.register(computation.name)
        for instruction in computation:
            self.instruction_names.register(instruction.name)
            self.note_calls(instruction)
        computation.touch()
        return computation

    def _check_free(self, name: str) -> None:
        """Raises EditError where a computation has that name."""
        if self.computation_names.may_be_taken(name) and any(c.name == name for c in self._computations):
            raise EditError(f"module {self._name} already has a computation named {name}")

    def bring_before(self, computation: Computation, callees: Iterable[Computation]) -> None:
        """Moves computations, with all that they call, before the one that calls them, as XLA's reader wants them."""
        places = self._places()
        late = [c for c in post_order(callees) if places[c] > places[computation]]
        if late:
            self._computations[:] = [c for c in self._computations if c not in late]
            place = self._place_before(computation)
            self._computations[place:place] = late
            self._place_of = None
            self.touch()

    def _places(self) -> dict[Computation, int]:
        """The number of each computation in the list; remembered until computations come, go or move."""
        if self._place_of is None:
            self._place_of = {computation: place for place, computation in enumerate(self._computations)}
        return self._place_of

    def _place_before(self, computation: Computation) -> int:
        """The place in the list for what is to stand before a computation, and before all that stands inside its text."""
        place = self._computations.index(computation)
        while place and self._computations[place - 1].is_inside:
            place -= 1
        return place

    def remove(self, computation: Computation) -> None:
        """Takes a computation out. Raises EditError while it is the entry or somebody calls it."""
        self.remove_all([computation])

    def remove_all(self, computations: Iterable[Computation]) -> None:
        """Takes computations out that nothing but they themselves calls. Raises EditError as `remove` does."""
        gone = dict.fromkeys(computations)
        for computation in gone:
            if computation.is_entry:
                raise EditError(f"{computation.name} is the entry computation")
            callers = [c for c in computation.callers if c.computation not in gone]
            if callers:
                raise EditError(f"{computation.name} is still called by {', '.join(c.name for c in callers)}")
        self._entry = self.entry
        self._computations[:] = [c for c in self._computations if c not in gone]
        self._place_of = None
        for computation in gone:
            if computation._start >= 0 and not computation.is_inline:
                self.removed.append(computation)
            for instruction in computation:
                self.forget_calls(instruction)
            computation.module = None
        self.touch()

    def set_entry(self, computation: Computation) -> None:
        """Makes another computation the entry. Raises EditError if it is called or not in the module."""
        if computation.module is not self:
            raise EditError(f"{computation.name} is not in module {self._name}")
        if computation.callers:
            raise EditError(f"{computation.name} is called by {computation.callers[0].name}")
        for changed in (self.entry, computation):
            changed.touch_signature()
        self._entry = computation
        self.fit_entry_layout()

    def rename(self, computation: Computation, name: str) -> None:
        """Gives a computation another name; every line that names it is printed anew.

        Raises EditError if the name is taken.
        """
        if name == computation.name:
            return
        self._check_free(name)
        callers = computation.callers
        computation._name = name
        self.computation_names.register(name)
        computation.touch_signature()
        for caller in callers:
            caller.touch()

    def fit_entry_layout(self) -> None:
        """Brings the header's `entry_computation_layout` up to date after the entry's parameters or root changed.

        Layouts stay where the shapes are the same but for layouts, unless the module is scheduled: then layouts are final.
        """
        from hlotext.ir.values.shape import ComputationLayout  # only what is edited needs it

        old = self.attributes.get(ENTRY_LAYOUT)
        if not isinstance(old, ComputationLayout):
            return
        shapes = [p.shape for p in self.entry.parameters]
        result = self.entry.shape
        if result is None or any(shape is None for shape in shapes):
            return
        given = (*old.parameter_shapes, *(None for _ in shapes[len(old.parameter_shapes) :]))
        strict = self.is_scheduled
        new = ComputationLayout(
            tuple(_fitting(a, b, strict) for a, b in zip(given, shapes, strict=False) if b is not None),
            _fitting(old.result_shape, result, strict),
        )
        if new != old:
            self.attributes[ENTRY_LAYOUT] = new
            self.touch_header()

    def clone(self) -> Module:
        """A copy that shares no node with this one; it prints as this one does, edits included."""
        from hlotext.ir.nodes.cloning import clone_module

        return clone_module(self)

    def transaction(self) -> AbstractContextManager[Module]:
        """`with module.transaction():` undoes every edit made inside when an exception leaves the block."""
        from hlotext.ir.nodes.snapshot import transaction

        return transaction(self)

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
        from hlotext.ir.values.print_options import PrintOptions

        return printing.printer().module(self, options or PrintOptions.default())

    def __str__(self) -> str:
        return printing.printer().source(self)

    def __repr__(self) -> str:
        return f"<Module {self._name} with {len(self._computations)} computations>"
