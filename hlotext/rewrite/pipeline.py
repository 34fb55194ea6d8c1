"""Passes in a row: verified, dumped and timed one by one; and which of them broke a module."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import attrs

from hlotext.edit import integrity
from hlotext.findings.errors import Severity
from hlotext.ir import sending
from hlotext.ir.files import write_text
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.record import EditRecord
from hlotext.rewrite.kit.rules import RewriteRule
from hlotext.rewrite.passes.base import Age, Pass, PassResult
from hlotext.verify import verify


class PassError(sending.Whole, RuntimeError):
    """Raised if a pass raises an exception, its preconditions do not hold, or it leaves an invalid module."""

    def __init__(self, message: str, pass_: Pass, dump: Path | None = None) -> None:
        super().__init__(message + (f"; the module is in {dump}" if dump is not None else ""))
        self.pass_ = pass_
        self.dump = dump
        """Path of the file with the module as the pass left it; None if nothing was dumped."""


@attrs.frozen
class PipelineStep:
    """Result of one pass of a pipeline, with its time in seconds."""

    pass_: Pass
    result: PassResult
    seconds: float


def _way(one: object) -> str:
    """The way from something else to a pass, behind a semicolon; may be empty."""
    if isinstance(one, str):
        return f"; hlotext.rewrite.parse_passes({one!r}) returns a list of them"
    if isinstance(one, RewriteRule):
        return "; hlotext.rewrite.ApplyRules makes one of rules"
    if isinstance(one, list | tuple) and one and all(isinstance(inner, Pass) for inner in one):
        return "; it is a list of passes already: leave out the brackets around it"
    return f"; make one: {one.__name__}()" if isinstance(one, type) and issubclass(one, Pass) else ""


def _as_tuple(passes: Iterable[Pass]) -> tuple[Pass, ...]:
    """The passes. Raises TypeError for what is no list of passes."""
    if isinstance(passes, str):
        raise TypeError(
            "expected a list of passes, not str; hlotext.rewrite.passes.parse_passes(text) returns one"
        )
    if isinstance(passes, Pass):
        raise TypeError(f"expected a list of passes, not {type(passes).__name__}; use [pass]")
    found = tuple(passes)
    for one in found:
        if not isinstance(one, Pass):
            what = f"the class {one.__name__}" if isinstance(one, type) else type(one).__name__
            raise TypeError(f"expected a list of passes, but it contains {what}{_way(one)}")
    return found


@with_foreign_names
@attrs.frozen
class Pipeline:
    """A sequence of passes, with validation of the module after each by default.

    >>> import hlotext as hlo
    >>> from hlotext.rewrite.passes import parse_passes
    >>> module = hlo.parse("ENTRY e { x = f32[] parameter(0)  y = f32[] sine(x)  ROOT r = f32[] negate(x) }")
    >>> [str(step.pass_) for step in Pipeline(parse_passes("dce,cse")).run(module) if step.result.changed]
    ['dce']
    """

    passes: tuple[Pass, ...] = attrs.field(converter=_as_tuple)
    name: str = "pipeline"
    verify: bool = True
    """Validate the graph after each pass, and report new findings of `hlotext.verify`."""
    dump_to: Path | None = None
    """Folder to which the module is dumped after each pass, with file names as in XLA; None dumps nothing."""

    def following(self, platform: str = "", age: Age = "") -> Pipeline:
        """Returns this pipeline with the options that a platform's compiler uses at an XLA age.

        Applies `Pass.following` to each pass, which keeps options that are already set. Raises ValueError for an unknown
        platform (`cpu`, `gpu`, `tpu`) or age.

        >>> from hlotext.rewrite.passes import parse_passes
        >>> [str(p) for p in Pipeline(parse_passes("dce,reshape-mover")).following("gpu").passes]
        ['dce', 'reshape-mover{platform=gpu}']
        """
        return attrs.evolve(self, passes=[pass_.following(platform, age) for pass_ in self.passes])

    def run(self, module: Module) -> list[PipelineStep]:
        """Runs the passes in order on a module, which is modified in place, and returns a step for each.

        Raises PassError if a pass fails, and restores the module to its state before that pass.
        """
        known: Counter[str] | None = None
        steps: list[PipelineStep] = []
        if self.dump_to is not None:
            self._dump(module, 0, "pipeline-start", self._following(0))
        for number, pass_ in enumerate(self.passes):
            for needed in pass_.requires:
                if not needed.holds(module):
                    raise PassError(f"{pass_.name} requires that {needed}", pass_)
            try:
                step, known = self._step(module, number, known)
            except (
                _NotSound
            ):  # most modules are sound: what was wrong before is asked only where something is wrong after
                step, known = self._step(module, number, _errors(module))
            steps.append(step)
            if self.dump_to is not None and step.result.changed:
                self._dump(module, number + 1, pass_.name, self._following(number + 1))
        return steps

    def _step(
        self, module: Module, number: int, known: Counter[str] | None
    ) -> tuple[PipelineStep, Counter[str] | None]:
        """Runs one pass; what it did, and what is wrong with the module now. `known`: what was; None: not asked yet."""
        pass_ = self.passes[number]
        start = time.perf_counter()
        with module.transaction() as record:
            result = self._run(pass_, module, number)
            seconds = time.perf_counter() - start
            if self.verify and result.changed:
                known = self._check(pass_, module, record, known, number)
        return PipelineStep(pass_, result, seconds), known

    def _run(self, pass_: Pass, module: Module, number: int) -> PassResult:
        try:
            return pass_.run(module)
        except Exception as error:
            dump = self._dump(module, number + 1, pass_.name, "failed") if self.dump_to is not None else None
            raise PassError(f"{pass_.name} raised {type(error).__name__}: {error}", pass_, dump) from error

    def _check(
        self, pass_: Pass, module: Module, record: EditRecord, known: Counter[str] | None, number: int
    ) -> Counter[str]:
        """Errors of the module now. Raises PassError for an error that it did not have before."""
        # A pass that says that it changed something of which no edit tells went around the gate.
        touched = _touched(record) or None
        wrong = integrity.problems(module, touched)
        # Of a sound module, what was not touched is as it was; of another, all is compared with what was found before.
        found, texts = Counter[str](), dict[str, str]()
        if not wrong:
            for d in verify(module, within=None if known else touched):
                if d.severity is Severity.ERROR:
                    found[d.code] += 1
                    texts[d.code] = d.message
            if found and known is None:
                raise _NotSound
            wrong = [f"{code} {texts[code]}" for code in found - (known or Counter())]
        broken = [str(promise) for promise in pass_.ensures if not promise.holds(module)]
        if wrong or broken:
            dump = self._dump(module, number + 1, pass_.name, "failed") if self.dump_to is not None else None
            what = wrong[0] if wrong else f"violated: {broken[0]}"
            raise PassError(f"{pass_.name} produced an ill-formed module: {what}", pass_, dump)
        return found

    def _following(self, number: int) -> str:
        return self.passes[number].name if number < len(self.passes) else "pipeline-end"

    def _dump(self, module: Module, number: int, after: str, before: str) -> Path:
        """Writes `module_0000.NAME.0001.PIPELINE.after_PASS.before_PASS.txt`."""
        assert self.dump_to is not None
        self.dump_to.mkdir(parents=True, exist_ok=True)
        path = (
            self.dump_to
            / f"module_0000.{module.name}.{number:04}.{self.name}.after_{after}.before_{before}.txt"
        )
        write_text(path, str(module))
        return path


class _NotSound(Exception):  # noqa: N818 - no error
    """Something is wrong after a pass, and what was before is not known."""


def _touched(record: EditRecord) -> set[Computation]:
    """The computations in which something was edited."""
    found: set[Computation] = set()
    for node in (*record.inserted, *record.modified):
        home = node.computation if isinstance(node, Instruction) else node
        if home is not None:
            found.add(home)
    for node in record.removed:
        if isinstance(node, Instruction):
            found.update(o.computation for o in node.operands if o.computation is not None)
    return found


def _errors(module: Module) -> Counter[str]:
    """Number of errors of a module by code: passes rename the things that messages name."""
    return Counter(d.code for d in verify(module) if d.severity is Severity.ERROR)


def bisect(module: Module, passes: Sequence[Pass], is_good: Callable[[Module], bool]) -> Pass | None:
    """Returns the first pass after which a module is no longer good, or None if it is good after all passes.

    Runs prefixes of the passes on copies of the module, about log2(n) of them. Assumes that a module that is no longer
    good stays that way.

    Args:
        module: The module before the passes, which is not modified.
        passes: The passes, in order.
        is_good: Returns True for a good module.

    Raises:
        ValueError: The module is not good to begin with.
    """
    expect_module(module)

    def good_after(count: int) -> bool:
        copy = module.clone()
        for pass_ in passes[:count]:
            pass_.run(copy)
        return is_good(copy)

    if not good_after(0):
        raise ValueError("the module is not good even before the first pass")
    if good_after(len(passes)):
        return None
    good, bad = 0, len(passes)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if good_after(middle) else (good, middle)
    return passes[bad - 1]
