"""Passes in a row: verified, dumped and timed one by one; and which of them broke a module."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import attrs

from hlotext.edit import integrity
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.verify import verify


class PassError(RuntimeError):
    """A pass that raised, whose conditions do not hold, or that left a module that is wrong."""

    def __init__(self, message: str, pass_: Pass, dump: Path | None = None) -> None:
        super().__init__(message + (f"; the module is in {dump}" if dump is not None else ""))
        self.pass_ = pass_
        self.dump = dump
        """The file that holds the module as the pass left it; None where no folder was given."""


@attrs.frozen
class Step:
    """What one pass of a pipeline did."""

    pass_: Pass
    result: PassResult
    seconds: float


def _as_tuple(passes: Iterable[Pass]) -> tuple[Pass, ...]:
    return tuple(passes)


@attrs.frozen
class Pipeline:
    """Passes that run one after the other.

    >>> import hlotext as hlo
    >>> from hlotext.rewrite.passes import parse_passes
    >>> module = hlo.parse("ENTRY e { x = f32[] parameter(0)  y = f32[] sine(x)  ROOT r = f32[] negate(x) }")
    >>> [str(step.pass_) for step in Pipeline(parse_passes("dce,cse")).run(module) if step.result.changed]
    ['dce']
    """

    passes: tuple[Pass, ...] = attrs.field(converter=_as_tuple)
    name: str = "pipeline"
    verify: bool = True
    """Checks the graph after each pass, and whether `hlotext.verify` finds anything that it did not find before."""
    dump_to: Path | None = None
    """A folder for the module's text after each pass, under the names that XLA gives such files; None: none is written."""

    def run(self, module: Module) -> list[Step]:
        """Runs the passes. Raises PassError, with the module as it was before the pass at fault."""
        known = _errors(module) if self.verify else Counter()
        steps: list[Step] = []
        if self.dump_to is not None:
            self._dump(module, 0, "pipeline-start", self._following(0))
        for number, pass_ in enumerate(self.passes):
            for needed in pass_.requires:
                if not needed.holds(module):
                    raise PassError(f"{pass_.name} requires that {needed}", pass_)
            start = time.perf_counter()
            with module.transaction():
                result = self._run(pass_, module, number)
                seconds = time.perf_counter() - start
                if self.verify and result.changed:
                    self._check(pass_, module, known, number)
            steps.append(Step(pass_, result, seconds))
            if self.dump_to is not None and result.changed:
                self._dump(module, number + 1, pass_.name, self._following(number + 1))
        return steps

    def _run(self, pass_: Pass, module: Module, number: int) -> PassResult:
        try:
            return pass_.run(module)
        except Exception as error:
            dump = self._dump(module, number + 1, pass_.name, "failed") if self.dump_to is not None else None
            raise PassError(f"{pass_.name} raised {type(error).__name__}: {error}", pass_, dump) from error

    def _check(self, pass_: Pass, module: Module, known: Counter[str], number: int) -> None:
        """Raises PassError where the module is wrong in a way in which it was not."""
        wrong = integrity.problems(module) or list(_errors(module) - known)
        broken = [str(promise) for promise in pass_.ensures if not promise.holds(module)]
        if wrong or broken:
            dump = self._dump(module, number + 1, pass_.name, "failed") if self.dump_to is not None else None
            what = wrong[0] if wrong else f"it does not hold that {broken[0]}"
            raise PassError(f"{pass_.name} left a module that is wrong: {what}", pass_, dump)

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
        path.write_text(str(module), encoding="utf-8", errors="surrogateescape")
        return path


def _errors(module: Module) -> Counter[str]:
    """What is wrong with a module, without places, which change."""
    return Counter(f"{d.code} {_nameless(d.message)}" for d in verify(module) if d.severity is Severity.ERROR)


def _nameless(message: str) -> str:
    return " ".join(word for word in message.split() if "." not in word and "%" not in word)


def bisect(module: Module, passes: Sequence[Pass], is_good: Callable[[Module], bool]) -> Pass | None:
    """The first pass after which a module is no longer good; None if it is good after all of them.

    Runs ever fewer passes on copies of the module, so the last good prefix is found in about log2(n) runs, each judged by
    `is_good`; goodness is taken to end once and for all. Raises ValueError if the module is not good to begin with.
    """

    def good_after(count: int) -> bool:
        copy = module.clone()
        for pass_ in passes[:count]:
            pass_.run(copy)
        return is_good(copy)

    if not good_after(0):
        raise ValueError("the module is not good before any pass")
    if good_after(len(passes)):
        return None
    good, bad = 0, len(passes)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if good_after(middle) else (good, middle)
    return passes[bad - 1]
