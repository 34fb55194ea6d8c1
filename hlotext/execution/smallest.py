"""The smallest pair of texts that still differ: one operation, or few, out of two modules that compute different results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from hlotext.execution.client import Arrays, Runner
from hlotext.execution.comparing import difference
from hlotext.execution.equivalence import TOLERANCE
from hlotext.execution.errors import NotExecutable
from hlotext.execution.inputs import random_arrays
from hlotext.execution.plain_text import plain
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.extraction import computation_module, extract_between

_SEEDS = 3
_DEEPEST = 8


@attrs.frozen
class DifferingPair:
    """Two modules that take the same arguments and compute different results."""

    before: Module
    after: Module
    name: str
    """The instruction of `after` at which they differ, as the module that was given calls it."""
    difference: float
    """The largest relative one, on random arguments drawn from `seed`."""
    seed: int

    @property
    def instructions(self) -> int:
        """Those of both together."""
        return sum(len(computation) for one in (self.before, self.after) for computation in one.computations)


def smallest_difference(
    before: Module, after: Module, *, rtol: float = TOLERANCE, seed: int = 0, timeout: float = 120.0
) -> DifferingPair:
    """The smallest pair of modules around the first instruction at which two modules with equal arguments differ.

    Instructions of equal name and shape are run side by side; those before the first that differs and agree become
    parameters, and where the bodies of a fusion, call or loop differ by themselves these are taken apart the same way. A pair
    that only differs for the values that the program has keeps what computes them.

    Raises NotExecutable where one of the two does not run, or they do not differ.
    """
    with Runner(plain(before).devices, timeout) as runner:
        runs = _Runs(runner, rtol, seed)
        found = runs.differing(before, after, after.entry.root.name)
        if found is None:
            raise NotExecutable(f"{before.name} and {after.name} compute the same")
        for _ in range(_DEEPEST):
            smaller = runs.smaller(found)
            if smaller is None or smaller.instructions >= found.instructions:
                break
            found = smaller
        return found


@attrs.frozen
class _Runs:
    """Runs pairs of modules with the same arguments."""

    runner: Runner
    rtol: float
    seed: int

    def differing(self, before: Module, after: Module, name: str) -> DifferingPair | None:
        """The pair, if its results differ for one of the seeds. Raises NotExecutable."""
        for seed in range(self.seed, self.seed + _SEEDS):
            far = max(self.differences(before, after, seed), default=0.0)
            if far > self.rtol:
                return DifferingPair(before, after, name, far, seed)
        return None

    def differences(self, before: Module, after: Module, seed: int) -> list[float]:
        """The largest relative difference of each result. Raises NotExecutable."""
        texts = plain(before), plain(after)
        if texts[0].taken != texts[1].taken or texts[0].devices != texts[1].devices:
            raise NotExecutable("they do not take the same arguments")
        arguments = random_arrays(texts[0].taken, seed)
        devices = texts[0].devices
        if devices > 1:
            arguments = [np.stack([one] * devices) for one in arguments]
        ran: list[Arrays] = []
        for text in texts:
            one = self.runner.run(text, [arguments])
            if one.error is not None:
                raise NotExecutable(one.error)
            ran.append(one.results[0])
        if len(ran[0]) != len(ran[1]):
            raise NotExecutable("they have not the same number of results")
        return [difference(a, b) for a, b in zip(*ran, strict=True)]

    def smaller(self, pair: DifferingPair) -> DifferingPair | None:
        """A smaller pair out of one; None where none is found."""
        matched = [
            (old, new)
            for new in pair.after.entry
            if (old := _same(pair.before, new)) is not None and new.opcode not in _NO_RESULTS
        ]
        root = (pair.before.entry.root, pair.after.entry.root)
        if root not in matched and root[1].opcode != "tuple":
            matched.append(root)
        if not matched:
            return None
        try:
            first, agreeing = self._first(pair, matched)
        except (NotExecutable, EditError):
            return None
        if first is None:
            return None
        for before, after in self._around(first, agreeing):
            try:
                found = self.differing(before, after, first[1].name)
            except (NotExecutable, EditError):
                continue
            if found is not None:
                return found
        return None

    def _first(
        self, pair: DifferingPair, matched: Sequence[tuple[Instruction, Instruction]]
    ) -> tuple[tuple[Instruction, Instruction] | None, list[tuple[Instruction, Instruction]]]:
        """The first two instructions whose results differ, and those before them that agree."""
        given = [(_shape(new), old, new) for old, new in _parameters(pair)]
        before = extract_between([old for old, _ in matched], [(shape, old) for shape, old, _ in given])
        after = extract_between([new for _, new in matched], [(shape, new) for shape, _, new in given])
        far = self.differences(before, after, pair.seed)
        if len(far) != len(matched):
            return None, []
        agreeing = list(_parameters(pair))
        for one, distance in zip(matched, far, strict=True):
            if distance > self.rtol:
                return one, agreeing
            agreeing.append(one)
        return None, agreeing

    def _around(
        self, first: tuple[Instruction, Instruction], agreeing: Sequence[tuple[Instruction, Instruction]]
    ) -> Iterator[tuple[Module, Module]]:
        """Pairs to try, the smallest first: bodies that differ, the operation alone, the operation with all that it needs."""
        makers = [one.operands[0] if one.opcode == "get-tuple-element" else one for one in first]
        bodies = [one.called_computations for one in makers]
        if len(bodies[0]) == len(bodies[1]) and makers[0].opcode == makers[1].opcode:
            for old, new in zip(*bodies, strict=True):
                before, after = computation_module(old), computation_module(new)
                if str(before) != str(after):
                    yield before, after
        for given in (agreeing, [one for one in agreeing if one[1].opcode == "parameter"]):
            needed = _borders(first, given)
            yield (
                extract_between([first[0]], [(_shape(new), old) for old, new in needed]),
                extract_between([first[1]], [(_shape(new), new) for old, new in needed]),
            )


_NO_RESULTS = traits.GIVEN | {"after-all", "iota"}
"""Opcodes that compute nothing, and are not compared by themselves."""


def _parameters(pair: DifferingPair) -> Iterator[tuple[Instruction, Instruction]]:
    return zip(pair.before.entry.parameters, pair.after.entry.parameters, strict=True)


def _same(before: Module, new: Instruction) -> Instruction | None:
    """The instruction of the other entry of this name, if it has an array of the same type and sizes."""
    found = next((one for one in before.find_all(new.name) if isinstance(one, Instruction)), None)
    if found is None or found.computation is not before.entry:
        return None
    old, own = found.shape, new.shape
    if old is None or own is None or not own.is_array or not old.is_array:
        return None
    return found if (old.element_type, old.dimensions) == (own.element_type, own.dimensions) else None


def _shape(instruction: Instruction) -> Shape:
    assert instruction.shape is not None  # it ran
    return instruction.shape


def _borders(
    first: tuple[Instruction, Instruction], given: Sequence[tuple[Instruction, Instruction]]
) -> list[tuple[Instruction, Instruction]]:
    """The given pairs that the two instructions are computed from, directly or by others."""
    pairs = {one: pair for pair in given for one in pair}
    found: dict[tuple[Instruction, Instruction], None] = {}
    pending, seen = list(first), set(first)
    while pending:
        for operand in pending.pop().operands:
            if operand in pairs:
                found[pairs[operand]] = None
            elif operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return list(found)
