"""Compares what the texts of a compilation compute with the first one: the runs of `bisect`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from hlotext.analysis.devices import devices_of
from hlotext.execution import (
    NotExecutable,
    PlainModule,
    Ran,
    Runner,
    distance,
    narrow_types,
    plain,
)
from hlotext.execution.client import Arrays
from hlotext.execution.inputs import device_arrays, random_arrays
from hlotext.execution.parts import cut, joined, leaves
from hlotext.findings.errors import HloSyntaxError, brief
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import COLLECTIVES
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import Sharding
from hlotext.syntax.source.inputs import InputError

if TYPE_CHECKING:
    from types import TracebackType

    from hlotext.dumps.bisection import State
    from hlotext.dumps.compilation import Compilation
    from hlotext.dumps.step import Step

_OF_NARROW, _OF_F32 = 0.01, 0.001
_SHIFTS = (0.0, -1.0, 2.0)
"""Around which the floats of each set of arguments lie: a branch that one set misses another may take."""
_OF_PARTITIONS = COLLECTIVES | {"partition-id", "replica-id"}

Results = tuple[Arrays, ...]


@attrs.frozen
class _Text:
    """One text that was run."""

    module_text: str
    """Its plain text."""
    results: Results
    """As of the whole program, if it is known how they are put together."""
    is_whole: bool


@attrs.define
class _Reference:
    """A text whose results are right: as it is, and with wide floats once that is asked for."""

    step: Step
    results: Results
    is_whole: bool
    wide: Results | None = None


class States:
    """Executes the modules of a compilation one after another. A context manager."""

    def __init__(self, compilation: Compilation, rtol: float | None, seed: int, timeout: float) -> None:
        self._compilation = compilation
        self._asked = rtol
        self._seed = seed
        self._runner: Runner | None = None
        self._timeout = timeout
        self._ran: dict[str, Ran] = {}
        self._inputs: dict[object, list[Arrays]] = {}
        self._taken: dict[int, tuple[list[str | None], PlainModule]] = {}
        """For each number of devices the names of the first text's arguments, and that text."""
        self._pieces: dict[tuple[int, tuple[Shape, ...]], tuple[tuple[int, ...], ...]] = {}
        self._whole: _Whole | None = None
        self._first: _Reference | None = None
        self._good: _Reference | None = None

    def __enter__(self) -> States:
        self._runner = Runner(timeout=self._timeout)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            self._runner.__exit__(kind, error, trace)

    def judge(self, step: Step) -> tuple[State, float | None, str | None]:
        """Returns the state of a step, its difference from the first step, and the reason if it was not executed."""
        try:
            results, is_whole = self._results(step, wide=False)
        except (NotExecutable, HloSyntaxError, InputError) as error:
            return "not run", None, brief(error)
        own = _Reference(step, results, is_whole)
        if self._first is None:
            self._first = self._good = own
            return "good", 0.0, None
        assert self._good is not None
        if self._good.is_whole != is_whole:
            # How parts make the whole is not known: the parts are compared among themselves from here on.
            self._first = self._good = own
            return "good", None, "how its results make up those of the whole program is unknown"
        far = distance(self._first.results, results)
        rtol = self._tolerance(own)
        if far <= rtol or distance(self._good.results, results) <= rtol:
            is_precise = far <= rtol
            self._good = own
            return "good" if is_precise else "precision", far, None
        if self._agrees_wide(own):
            self._good = own
            return "precision", far, None
        return "wrong", far, None

    def _tolerance(self, own: _Reference) -> float:
        """As asked for, else by the narrowest floats: rounding of f32 stays far below a thousandth."""
        if self._asked is not None:
            return self._asked
        texts = [one.step.module for one in (own, self._first, self._good) if one is not None]
        return _OF_NARROW if any(map(narrow_types, texts)) else _OF_F32

    def _agrees_wide(self, own: _Reference) -> bool:
        """True if a text gives what the good ones give once no float is narrower than f32."""
        assert self._first is not None
        assert self._good is not None
        try:
            if not any(narrow_types(one.step.module) for one in (own, self._first, self._good)):
                return False
            for one in (own, self._first, self._good):
                if one.wide is None:
                    one.wide, is_whole = self._results(one.step, wide=True)
                    if is_whole != own.is_whole:
                        return False
        except (NotExecutable, HloSyntaxError, InputError):
            return False
        assert own.wide is not None
        return any(
            one.wide is not None and distance(one.wide, own.wide) <= self._tolerance(own)
            for one in (self._first, self._good)
        )

    # ---- running

    def _results(self, step: Step, wide: bool) -> tuple[Results, bool]:
        """Results of a text, and whether they are the arrays of the whole program. Raises NotExecutable."""
        module = step.module
        devices = devices_of(module).total or 1
        whole = self._whole
        if devices == 1 or whole is None or not whole.is_cut(module):
            text = plain(module, wide=wide, devices=1)
            if whole is None and devices > 1 and _meets(module):
                whole = None
                text = plain(module, wide=wide)  # the first text that runs is one of parts already
            if self._whole is None and text.devices == 1:
                self._whole = whole = _Whole.of(module)
            elif whole is not None and devices > 1:
                whole.learn(module)
            return self._run(text, self._arguments(text, module)).results, True
        text = plain(module, wide=wide)
        arguments = self._cut(text, whole, wide)
        ran = self._run(text, arguments)
        try:
            return tuple([whole.joined(results) for results in ran.results]), True
        except NotExecutable:
            return ran.results, False

    def _run(self, text: PlainModule, arguments: list[Arrays]) -> Ran:
        if text.text in self._ran:
            ran = self._ran[text.text]
        else:
            if self._runner is None or self._runner.devices < text.devices:
                if self._runner is not None:
                    self._runner.__exit__()
                self._runner = Runner(text.devices, self._timeout)
            ran = self._ran[text.text] = self._runner.run(text, arguments)
        if ran.error is not None:
            raise NotExecutable(ran.error)
        return ran

    def _arguments(self, text: PlainModule, module: Module) -> list[Arrays]:
        """The same arguments for all texts: by number where all are as in the first text, else by the names of the program.

        Raises NotExecutable if it is not known which are the same.
        """
        labels = _labels(module)
        known, first = self._taken.setdefault(text.devices, (labels, text))
        sizes = [[shape.dimensions for shape in one.parameters] for one in (first, text)]
        if sizes[0] == sizes[1]:
            return self._drawn(text)
        numbers = _numbers(known, labels)
        if numbers is None or [sizes[0][number] for number in numbers] != sizes[1]:
            raise NotExecutable(
                "it takes different arguments from the first text, and their names do not show the correspondence"
            )
        if numbers != sorted(numbers):
            raise NotExecutable(
                "its arguments are in a different order from those of the first text, which passes them by number"
            )
        return [
            [
                arrays[number].astype(shape.element_type.dtype)
                for number, shape in zip(numbers, text.taken, strict=True)
            ]
            for arrays in self._drawn(first)
        ]

    def _drawn(self, text: PlainModule) -> list[Arrays]:
        """The same arguments for all texts that take the same; on each device its own, but for what devices share."""
        key = (tuple(map(str, text.taken)), text.devices)
        if key not in self._inputs:
            # What devices share is what the first text says: later ones may have lost the shardings.
            held = self._pieces.setdefault((text.devices, text.parameters), text.pieces)
            # Drawn in the types of the module, so that wide floats get the same numbers.
            self._inputs[key] = [
                [
                    array.astype(shape.element_type.dtype)
                    for array, shape in zip(
                        device_arrays(
                            attrs.evolve(text, pieces=held), self._seed + number, shift, text.parameters
                        ),
                        text.taken,
                        strict=True,
                    )
                ]
                for number, shift in enumerate(_SHIFTS)
            ]
        return self._inputs[key]

    def _cut(self, text: PlainModule, whole: _Whole, wide: bool) -> list[Arrays]:
        """The arguments of the whole program, cut for the devices."""
        if len(text.parameters) != len(whole.parameters):
            raise NotExecutable(
                f"it takes {len(text.parameters)} arrays, but the whole program takes {len(whole.parameters)}"
            )
        key = (tuple(map(str, text.taken)), text.devices, "cut")
        if key not in self._inputs:
            self._inputs[key] = [
                [
                    cut(array.astype(part.element_type.dtype), shape, sharding, part.dimensions, text.devices)
                    for array, shape, sharding, part in zip(
                        random_arrays(whole.parameters, self._seed + number, shift),
                        whole.parameters,
                        whole.shardings,
                        text.taken,
                        strict=True,
                    )
                ]
                for number, shift in enumerate(_SHIFTS)
            ]
        return self._inputs[key]


@attrs.define
class _Whole:
    """The program before it was partitioned, and how its arrays are distributed, as far as its texts say it."""

    parameters: tuple[Shape, ...]
    results: tuple[Shape, ...]
    shardings: list[Sharding | None]
    result_shardings: list[Sharding | None]

    @classmethod
    def of(cls, module: Module) -> _Whole:
        found = cls(
            _arrays(*(p.shape for p in module.entry.parameters)), _arrays(module.entry.root.shape), [], []
        )
        found.shardings = [None] * len(found.parameters)
        found.result_shardings = [None] * len(found.results)
        found.learn(module)
        return found

    def learn(self, module: Module) -> None:
        """Takes what another text of the whole program says of shardings: propagation adds some."""
        given: list[Sharding | None] = []
        for parameter in module.entry.parameters:
            if parameter.shape is not None:
                given += leaves(parameter.sharding, parameter.shape)
        root = module.entry.root
        gives: list[Sharding | None] = []
        if root.shape is not None:
            gives += leaves(root.sharding, root.shape)
            if (
                root.sharding is None
                and root.opcode == "tuple"
                and not any(o.shape is None for o in root.operands)
            ):
                gives = [s for o in root.operands for s in leaves(o.sharding, o.shape)]  # type: ignore[arg-type]
        for known, new in ((self.shardings, given), (self.result_shardings, gives)):
            if len(known) == len(new):
                known[:] = [b if b is not None else a for a, b in zip(known, new, strict=True)]

    def is_cut(self, module: Module) -> bool:
        """True if a text is of one device's parts: other sizes, or operations that meet other devices."""
        parameters = _arrays(*(p.shape for p in module.entry.parameters))
        results = _arrays(module.entry.root.shape)
        return (parameters, results) != (self.parameters, self.results) or _meets(module)

    def joined(self, parts: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]) -> Arrays:
        """The arrays of the whole. Raises NotExecutable if it is not known how they are distributed."""
        if len(parts) != len(self.results):
            raise NotExecutable("it has different results")
        return [
            joined(part, shape, sharding)
            for part, shape, sharding in zip(parts, self.results, self.result_shardings, strict=True)
        ]


def _labels(module: Module) -> list[str | None]:
    """The program's names of the arrays that go in: `op_name`, with the index in a tuple; None if there is none."""
    found: list[str | None] = []
    for parameter in module.entry.parameters:
        name = parameter.metadata.op_name if parameter.metadata is not None else None
        for index, leaf in parameter.shape.leaves() if parameter.shape is not None else ():
            if leaf.is_array:
                found.append(f"{name}{list(index)}" if name else None)
    return found


def _numbers(known: Sequence[str | None], labels: Sequence[str | None]) -> list[int] | None:
    """The numbers of named arrays among known ones; None unless each name is there once."""
    if None in labels or len(set(labels)) < len(labels) or any(known.count(label) != 1 for label in labels):
        return None
    return [known.index(label) for label in labels]


def _arrays(*shapes: Shape | None) -> tuple[Shape, ...]:
    return tuple(
        leaf.without_layout()
        for shape in shapes
        if shape is not None
        for _, leaf in shape.leaves()
        if leaf.is_array
    )


def _meets(module: Module) -> bool:
    return any(i.opcode in _OF_PARTITIONS for i in module.instructions())
