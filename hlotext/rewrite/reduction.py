"""Delta debugging: the smallest module that still fails."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import FINISHERS
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.literal import Literal
from hlotext.rewrite.extraction import drop_header_attributes
from hlotext.rewrite.outlining import inline
from hlotext.rewrite.parameters import remove_parameter
from hlotext.rewrite.passes.dce import DeadCodeElimination
from hlotext.rewrite.passes.strip import StripMetadata


@attrs.define
class Reduction:
    """What a reduction did."""

    module: Module
    """The smallest module found."""
    before: int
    """Instructions of the module that was given."""
    after: int
    tests: int
    """How often the module was tried."""


def reduce(module: Module, fails: Callable[[Module], bool], max_tests: int = 2000) -> Reduction:
    """Makes a module smaller as long as `fails` says that it still fails; the module given stays as it is.

    Tries, from large to small: a root further inside, ever fewer elements of the result, instructions replaced by parameters
    or zeros in groups that are halved, calls put in place, unused parameters, metadata. Ends where no step helps or after
    `max_tests` trials. Raises ValueError if the module does not fail to begin with.
    """
    run = _Reducer(module.clone(), fails, max_tests)
    before = sum(map(len, module.computations))
    if not fails(run.module):
        raise ValueError("the module does not fail to begin with")
    run.all()
    return Reduction(run.module, before, sum(map(len, run.module.computations)), run.tests)


class _Reducer:
    def __init__(self, module: Module, fails: Callable[[Module], bool], max_tests: int) -> None:
        self.module = module
        self.fails = fails
        self.tests = 1
        self.max_tests = max_tests

    def attempt(self, edit: Callable[[Module], None]) -> bool:
        """Keeps an edit if the module is smaller with it and still fails."""
        if self.tests >= self.max_tests:
            return False
        copy = self.module.clone()
        size = _size(copy)
        try:
            edit(copy)
            DeadCodeElimination().run(copy)
            _drop_parameters(copy)
        except EditError:
            return False
        if _size(copy) >= size:
            return False
        self.tests += 1
        if not self.fails(copy):
            return False
        self.module = copy
        return True

    def all(self) -> None:
        self.attempt(lambda m: None)
        self.attempt(_stripped)
        size = None
        while size != _size(self.module) and self.tests < self.max_tests:
            size = _size(self.module)
            self.new_roots()
            self.cut_in_groups()
            self.single_steps()

    def new_roots(self) -> None:
        """Takes the middle of what is left for the root, then ever smaller steps back, as bisection does."""
        step = len(self.module.entry) // 2
        while step:
            entry = self.module.entry
            places = [
                p for p in range(len(entry) - 1 - step, -1, -step) if entry.instructions[p].shape is not None
            ]
            if not any(self.attempt(lambda m, p=p: _root(m, p)) for p in places[:8]):  # type: ignore[misc]
                step //= 2

    def cut_in_groups(self) -> None:
        """Replaces groups of instructions by parameters, halving the groups where that does not help."""
        step = max(len(self.module.entry) // 2, 1)
        while step:
            place = 0
            while place < len(self.module.entry):
                chosen = range(place, min(place + step, len(self.module.entry)))
                if not self.attempt(lambda m, chosen=chosen: _cut(m, chosen)):  # type: ignore[misc]
                    place += step
            step //= 2

    def single_steps(self) -> None:
        """Steps that take one instruction each: an operand in its user's place, calls, loops, tuples' elements."""
        for edit in (_inlined, _operand_for_user, _shorter_tuple):
            place = 0
            while place < len(self.module.entry):
                if not self.attempt(lambda m, edit=edit, place=place: edit(m, place)):  # type: ignore[misc]
                    place += 1


def _size(module: Module) -> tuple[int, int]:
    """Instructions first, then operands."""
    return sum(map(len, module.computations)), len(str(module))


def _stripped(module: Module) -> None:
    StripMetadata().run(module)


def _root(module: Module, place: int) -> None:
    entry = module.entry
    _free_root(module)
    entry.root = entry.instructions[place]


def _free_root(module: Module) -> None:
    """Lets the entry's result change: nothing in the header speaks of it any more."""
    drop_header_attributes(
        module, lambda name: name in ("input_output_alias", "buffer_donor") or name.startswith("allow_spmd")
    )


def _cut(module: Module, chosen: range) -> None:
    """Replaces the values of some instructions that others use by parameters."""
    entry = module.entry
    _free_root(module)
    inside = dict.fromkeys(entry.instructions[p] for p in chosen)
    number = len(entry.parameters)
    for i in inside:
        if i.opcode in _KEPT or i.is_root or all(user in inside for user in i.users):
            continue
        entry_first = entry.instructions[0]
        new = Instruction(module.instruction_names.unique("cut"), "parameter", i.shape, argument=number)
        entry.add(new, entry_first, typed=False)
        number += 1
        i.replace_all_uses_with(new)


_KEPT = frozenset({"parameter", "constant"}) | FINISHERS.keys()
"""What no parameter is put in place of: what is as small already, and starts, which go with their dones."""


def _inlined(module: Module, place: int) -> None:
    inline(module.entry.instructions[place])


def _operand_for_user(module: Module, place: int) -> None:
    """Puts an operand of the same shape in an instruction's place."""
    i = module.entry.instructions[place]
    for operand in i.operands:
        if str(operand.shape) == str(i.shape):
            i.replace_all_uses_with(operand)
            return


def _shorter_tuple(module: Module, place: int) -> None:
    """Makes a tuple at the root its first element that is no parameter, and an array elsewhere a zero."""
    i = module.entry.instructions[place]
    _free_root(module)
    if i.is_root and i.opcode == "tuple" and i.operands:
        module.entry.root = next((o for o in i.operands if o.opcode != "parameter"), i.operands[0])
    elif (
        i.opcode not in ("constant", "parameter")
        and i.shape is not None
        and i.shape.is_array
        and not i.shape.rank
    ):
        zero = Literal.from_array(np.zeros((), i.shape.element_type.dtype), i.shape)
        new = Instruction(module.instruction_names.unique("zero"), "constant", i.shape, argument=zero)
        module.entry.add(new, i, typed=False)
        i.replace_all_uses_with(new)


def _drop_parameters(module: Module) -> None:
    """Takes unused parameters of the entry away."""
    entry: Computation = module.entry
    for number in reversed(range(len(entry.parameters))):
        parameter = entry.parameters[number]
        if not (parameter.users or parameter.is_root or parameter.control_successors):
            remove_parameter(entry, number)
