"""The smallest pair of texts that still differ: one operation, or few, out of two modules that compute different results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

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
from hlotext.rewrite.outlining import inline

_SEEDS = 3
_DEEPEST = 8


@attrs.frozen
class DifferingPair:
    """A pair of small modules whose results differ for the same arguments."""

    before: Module
    after: Module
    name: str
    """Name in the original module of the instruction at which `after` differs."""
    difference: float
    """Largest relative difference on random arguments drawn from `seed`."""
    seed: int

    @property
    def instructions(self) -> int:
        """Number of instructions in both modules together."""
        return sum(len(computation) for one in (self.before, self.after) for computation in one.computations)


def smallest_difference(
    before: Module,
    after: Module,
    *,
    rtol: float = TOLERANCE,
    seed: int = 0,
    timeout: float = 120.0,
    progress: Callable[[int], None] | None = None,
) -> DifferingPair:
    """Isolates the first instruction at which two modules with equal arguments differ, as the smallest pair of modules.

    Fusions are inlined; then instructions are executed side by side, paired by the value they compute, not by name.
    Instructions before the first difference become parameters, and callees that differ on their own (bodies of calls
    and loops) are isolated in the same way. If the difference only occurs for the program's own values, the
    instructions that compute them are kept.

    Args:
        before: The module before a change.
        after: The module after the change.
        rtol: Relative tolerance.
        seed: Seed of the random arguments.
        timeout: Seconds per execution.
        progress: Called with the number of remaining instructions.

    Returns:
        The smallest pair found.

    Raises:
        NotExecutable: A module cannot be executed, or the results do not differ.
    """
    with Runner(plain(before).devices, timeout) as runner:
        runs = _Runs(runner, rtol, seed)
        found = runs.differing(before, after, after.entry.root.name)
        if found is None:
            raise NotExecutable(f"{before.name} and {after.name} compute the same results")
        for _ in range(_DEEPEST):
            if progress is not None:
                progress(found.instructions)
            smaller = runs.smaller(attrs.evolve(found, before=_flat(found.before), after=_flat(found.after)))
            if smaller is None or smaller.instructions >= found.instructions:
                break
            found = smaller
        return found


def _flat(module: Module) -> Module:
    """A copy without fusions in the entry: a fault inside one is an operation among others."""
    copy = module.clone()
    for fusion in [i for i in copy.entry if i.opcode == "fusion"]:
        try:
            copies = inline(fusion)
        except EditError:
            continue
        for name, own in [(old.name, own) for old, own in copies.items()]:
            if next(iter(copy.find_all(name)), None) is None:
                own.name = name  # as the program calls it
    return copy


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
            raise NotExecutable("their arguments differ")
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
            raise NotExecutable("their numbers of results differ")
        return [difference(a, b) for a, b in zip(*ran, strict=True)]

    def values(self, module: Module, seed: int) -> Arrays:
        """The results. Raises NotExecutable."""
        text = plain(module)
        arguments = random_arrays(text.taken, seed)
        if text.devices > 1:
            arguments = [np.stack([one] * text.devices) for one in arguments]
        ran = self.runner.run(text, [arguments])
        if ran.error is not None:
            raise NotExecutable(ran.error)
        return ran.results[0]

    def smaller(self, pair: DifferingPair) -> DifferingPair | None:
        """A smaller pair out of one; None if none is found."""
        try:
            first, agreeing = self._first(pair)
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
        self, pair: DifferingPair
    ) -> tuple[tuple[Instruction, Instruction] | None, list[tuple[Instruction, Instruction]]]:
        """The first two instructions whose results differ, and those before them that agree."""
        given = [(_shape(new), old, new) for old, new in _parameters(pair)]
        olds, news = (_computed(module) for module in (pair.before, pair.after))
        if not olds or not news:
            return None, []
        before = self._values_of(olds, [(shape, old) for shape, old, _ in given], pair.seed)
        after = self._values_of(news, [(shape, new) for shape, _, new in given], pair.seed)
        alike: dict[object, list[Instruction]] = defaultdict(list)
        for old in olds:
            alike[_kind(old)].append(old)
        agreeing = list(_parameters(pair))
        met: set[Instruction] = set()
        for new in news:
            others = sorted(alike[_kind(new)], key=lambda old: (old.name != new.name, old in met))[
                :_CANDIDATES
            ]
            same = next((old for old in others if difference(before[old], after[new]) <= self.rtol), None)
            if same is not None:
                agreeing.append((same, new))
                met.add(same)
                continue
            # What only the other program has of this kind, the one of this name first, and the root for the root.
            open_ = [old for old in others if old not in met and _is_known(old, met)]
            left = [old for old in others if old.name == new.name]
            left += [old for old in open_ if old.opcode == new.opcode or len(open_) == 1]
            if new.is_root and pair.before.entry.root in before:
                left.append(pair.before.entry.root)
            if left and _kind(left[0]) == _kind(new):
                return (left[0], new), agreeing
        return None, []

    def _values_of(
        self, some: Sequence[Instruction], given: Sequence[tuple[Shape, Instruction]], seed: int
    ) -> dict[Instruction, np.ndarray[Any, Any]]:
        found = self.values(extract_between(some, given), seed)
        if len(found) != len(some):
            raise NotExecutable("their numbers of results differ")
        return dict(zip(some, found, strict=True))

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


_CANDIDATES = 64
"""Instructions of one shape whose values are compared with a value at most."""


def _computed(module: Module) -> list[Instruction]:
    """The instructions of the entry that compute an array."""
    return [
        i for i in module.entry if i.shape is not None and i.shape.is_array and i.opcode not in _NO_RESULTS
    ]


def _is_known(old: Instruction, met: Collection[Instruction]) -> bool:
    """True if something agrees with every operand."""
    return all(one in met or one.opcode in _NO_RESULTS for one in old.operands)


def _kind(instruction: Instruction) -> object:
    shape = _shape(instruction)
    return shape.element_type, shape.dimensions


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
