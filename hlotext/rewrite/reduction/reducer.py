"""The search: which step is tried next, and what is kept of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial

import attrs

from hlotext.edit.parameters import BY_OPERANDS, remove_parameter
from hlotext.edit.per_argument_attributes import resize_lists
from hlotext.findings.errors import Severity
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes.cleanup.cse import CommonSubexpressionElimination
from hlotext.rewrite.passes.cleanup.dce import DeadCodeElimination
from hlotext.rewrite.passes.cleanup.strip import RemoveShardings, StripMetadata
from hlotext.rewrite.reduction import header, sizes, transformations
from hlotext.rewrite.reduction.loop_state import drop_unused_state
from hlotext.verify import verify


@attrs.define
class Reduction:
    """Result of `reduce`: the smallest module found, and the sizes before and after."""

    module: Module
    """The smallest module found."""
    before: int
    """Number of instructions in the original module."""
    after: int
    tests: int
    """Number of calls of `fails`."""


def reduce(module: Module, fails: Callable[[Module], bool], max_tests: int = 2000) -> Reduction:
    """Reduces a module to a smaller one for which `fails` still returns True. The given module is not modified.

    Tries these steps in every computation, from large to small: making an earlier instruction the root; replacing
    groups of instructions (halved on failure) by parameters, loop state or zeros; inlining branches, loops and calls;
    removing unused loop state and parameters; replacing an instruction by an operand; removing attributes and header
    fields; shrinking arrays. Stops when no step helps. Candidates never have more `verify` findings than the given
    module.

    Args:
        module: The module.
        fails: Returns True for a module that still shows the fault.
        max_tests: Maximum number of calls of `fails`.

    Raises:
        ValueError: `fails` returns False for the given module.
    """
    expect_module(module)
    run = _Reducer(module.clone(), fails, max_tests)
    before = sum(map(len, module.computations))
    if not fails(run.module):
        raise ValueError(
            "the original module does not fail: fails(module) must be True for it, "
            "and a command must exit with a status other than 0"
        )
    run.all()
    return Reduction(run.module, before, sum(map(len, run.module.computations)), run.tests)


Edit = Callable[[Module], None]


class _Reducer:
    def __init__(self, module: Module, fails: Callable[[Module], bool], max_tests: int) -> None:
        self.module = module
        self.fails = fails
        self.tests = 1
        self.max_tests = max_tests
        self.size = size_of(module)
        self.known = _errors(module)

    @property
    def is_over(self) -> bool:
        return self.tests >= self.max_tests

    def attempt(self, edit: Edit) -> bool:
        """Keeps an edit if the module is smaller with it, not wrong in a new way, and still fails."""
        if self.is_over:
            return False
        copy = self.module.clone()
        try:
            with copy.transaction():  # the steps of an edit need to fit together at its end alone
                edit(copy)
                _clean(copy)
        except EditError:
            return False
        size = size_of(copy)
        if size >= self.size or _errors(copy) - self.known:
            return False
        self.tests += 1
        if not self.fails(copy):
            return False
        self.module, self.size = copy, size
        return True

    # ---- the order of the steps

    def all(self) -> None:
        self.attempt(lambda m: None)
        self.attempt(_stripped)
        self.attempt(_without_shardings)
        self.attempt(transformations.without_unused)
        size = None
        while size != self.size and not self.is_over:
            size = self.size
            self.structure()
            self.details()

    def structure(self) -> None:
        """Everything that takes instructions away, until nothing does."""
        size = None
        while size != self.size and not self.is_over:
            size = self.size
            self.new_roots()
            for edit in transformations.GROUP_STEPS:
                self.in_groups(edit)
            for step in transformations.SINGLE_STEPS:
                self.one_by_one(step)
            self.attempt(_merged)

    def details(self) -> None:
        """Reduces what is written of the remaining instructions: attributes, the header, sizes."""
        for name in header.removable(self.module):
            self.attempt(partial(header.remove, name=name))
        for name in sorted({name for i in self.module.instructions() for name in i.attributes}):
            if not self.attempt(partial(transformations.without_attribute_anywhere, name=name)):
                self.one_by_one(transformations.without_attribute_step(name))
        sizes.shrink(lambda: self.module, self.attempt)

    def new_roots(self) -> None:
        """Takes the middle of what is left of the entry for its root, then ever smaller steps back, as bisection does."""
        step = len(self.module.entry) // 2
        while step:
            entry = self.module.entry
            places = [
                p for p in range(len(entry) - 1 - step, -1, -step) if entry.instructions[p].shape is not None
            ]
            if not any(self.attempt(partial(transformations.new_root, place=p)) for p in places[:8]):
                step //= 2

    def in_groups(self, step: transformations.GroupStep) -> None:
        """Tries a step on groups of one computation's instructions, halving the groups where that does not help."""
        for number in reversed(range(len(self.module.computations))):
            size = self._length(number)
            while size:
                place = 0
                while place < self._length(number):
                    chosen = range(place, min(place + size, self._length(number)))
                    if not step.applies(self.module.computations[number], chosen) or not self.attempt(
                        partial(_in_group, step=step, number=number, chosen=chosen)
                    ):
                        place += size
                size //= 2

    def _length(self, number: int) -> int:
        """Number of instructions of a computation; 0 if it no longer exists."""
        found = self.module.computations[number : number + 1]
        return len(found[0]) if found and not found[0].is_sugared else 0

    def one_by_one(self, step: transformations.SingleStep) -> None:
        """Tries a step on each instruction of the opcodes that it is for."""
        tried = 0
        while True:
            places = self.places(step.applies)
            if tried >= len(places) or self.is_over:
                return
            if not self.attempt(_on(places[tried], step.run)):
                tried += 1

    def places(self, applies: Callable[[Instruction], bool]) -> list[tuple[int, int]]:
        return [
            (c, p)
            for c, computation in reversed(tuple(enumerate(self.module.computations)))
            if not computation.is_sugared
            for p, i in enumerate(computation)
            if applies(i)
        ]


def _on(place: tuple[int, int], run: Callable[[Instruction], None]) -> Edit:
    """An edit of the instruction of that number in the computation of that number."""
    return lambda module: run(module.computations[place[0]].instructions[place[1]])


def _in_group(module: Module, step: transformations.GroupStep, number: int, chosen: range) -> None:
    step.run(module.computations[number], chosen)


def size_of(module: Module) -> tuple[int, float, int]:
    """Returns the sort key of a module's size: instructions, then array elements and dimension sizes, then characters."""
    elements = 0.0
    for i in module.instructions():
        for _, leaf in i.shape.leaves() if i.shape is not None else ():
            if leaf.is_array:
                elements += math.prod(leaf.dimensions) + sum(leaf.dimensions)
    return sum(map(len, module.computations)), elements, len(str(module))


def _clean(module: Module) -> None:
    """Takes out what nothing needs after an edit."""
    before = None
    while before != (before := sum(map(len, module.computations))):
        DeadCodeElimination().run(module)
        drop_unused_state(module)
        for computation in module.computations:
            _drop_parameters(computation)
    resize_lists(module)


def _drop_parameters(computation: Computation) -> None:
    """Takes unused parameters away where the callers allow it."""
    if computation.is_sugared or any(caller.opcode not in BY_OPERANDS for caller in computation.callers):
        return
    for number in reversed(range(len(computation.parameters))):
        parameter = computation.parameters[number]
        if not (parameter.users or parameter.is_root or parameter.control_successors):
            try:
                remove_parameter(computation, number)
            except EditError:
                return


def _stripped(module: Module) -> None:
    StripMetadata().run(module)


def _merged(module: Module) -> None:
    CommonSubexpressionElimination().run(module)


def _without_shardings(module: Module) -> None:
    RemoveShardings().run(module)


def _errors(module: Module) -> Counter[str]:
    """Number of errors by code; mixed precision is allowed, since an edit may remove the attribute that allows it."""
    found = verify(module, mixed_precision=True)
    return Counter(d.code for d in found if d.severity is Severity.ERROR)
