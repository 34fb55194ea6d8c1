"""At which condition of a rule its nearest candidates stop: its functions are run once more, and their conditions watched."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.conditions import Condition, name_of
from hlotext.lint.merged import MergedRule
from hlotext.lint.rule import Context, Rule

_MOST_CANDIDATES = 2_000
"""Candidates that are watched: watching takes a hundred times as long as running."""
_MOST_TOLD = 50
"""Stops whose conditions are put into words."""
_LEAVING = (ast.Return, ast.Continue, ast.Break, ast.Raise)


@attrs.frozen
class Stop:
    """The condition at which a rule rejected a candidate."""

    candidate: str
    """The name of the instruction; empty for what is about the whole module."""
    condition: str
    """The condition that failed, in English; empty if it has no words."""
    progress: tuple[int, int]
    """Number of conditions met, and the line of the last one: larger for nearer candidates."""


@attrs.frozen
class _Ended:
    """A stop whose condition is not in words yet."""

    candidate: str
    condition: Condition
    progress: tuple[int, int]


def stops(rule: Rule, context: Context) -> list[Stop]:
    """Returns where a rule rejected candidates, the nearest first, without those that it reports."""
    ended = sorted(_ended(rule, context), key=lambda one: one.progress, reverse=True)[:_MOST_TOLD]
    return [Stop(one.candidate, one.condition.sentence(), one.progress) for one in ended]


def _ended(rule: Rule, context: Context) -> Iterator[_Ended]:
    if isinstance(rule, MergedRule):
        for part in (part() for part in rule.parts):
            if part.applies_to(context):
                yield from _ended(part, context)
        return
    by_opcode = context.census.by_opcode
    candidates = chain.from_iterable(by_opcode.get(opcode, ()) for opcode in sorted(rule.opcodes))
    for one in islice(candidates, _MOST_CANDIDATES):
        yield from _watched(rule, rule.check, one, context)
    yield from _watched(rule, rule.check_module, context)


def _watched(rule: Rule, function: Callable[..., Iterator[Any]], *arguments: Any) -> list[_Ended]:
    raw = getattr(function, "__func__", function)
    if raw in (Rule.check, Rule.check_module) or not _functions(raw.__code__.co_filename):
        return []
    first = arguments[0].name if isinstance(arguments[0], Instruction) else ""
    watch = _Watch(rule, raw.__code__, first)
    before = sys.gettrace()
    sys.settrace(watch.called)
    try:
        for _ in function(*arguments):
            watch.reported()
    except Exception:  # a rule that fails is reported as such where it runs
        return []
    finally:
        sys.settrace(before)
    return watch.ended()


@functools.lru_cache(maxsize=256)
def _functions(path: str) -> dict[tuple[str, int], _Function]:
    """The functions of a file, by name and first line; none if its source is not there."""
    try:
        text = Path(path).read_text("utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = {
        one.start[0]: one.string.lstrip("# ")
        for one in tokens
        if one.type == tokenize.COMMENT and one.line[: one.start[1]].rstrip().endswith(":")
    }
    return {
        (node.name, min([node.lineno, *(one.lineno for one in node.decorator_list)])): _Function.of(
            node, comments
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


@attrs.frozen
class _Function:
    """The conditions and loops of a function, by line."""

    tests: dict[int, ast.If]
    loops: frozenset[int]
    comments: dict[int, str]
    """The comments behind conditions, by the line where these begin."""

    @classmethod
    def of(cls, node: ast.FunctionDef, comments: Mapping[int, str]) -> _Function:
        tests = {one.test.lineno: one for one in ast.walk(node) if isinstance(one, ast.If)}
        behind = {
            one.lineno: next(
                (comments[line] for line in range(one.lineno, one.body[0].lineno) if line in comments), ""
            )
            for one in tests.values()
        }
        tests |= {one.lineno: one for one in tests.values()}
        loops = frozenset(one.lineno for one in ast.walk(node) if isinstance(one, ast.For))
        return cls(tests, loops, behind)


@attrs.define(eq=False)
class _Call:
    """A call of a function: what it has met since its loops began another round."""

    function: _Function
    met: int = 0
    last: tuple[ast.If, dict[str, Any], str, bool] | None = None
    """The last condition, the values of its names, the candidate, and whether it held."""
    below: _Ended | None = None
    """The stop of a function that it called since then."""
    open: tuple[ast.If, dict[str, Any], str] | None = None


@attrs.define(eq=False)
class _Watch:
    """The conditions of a rule's function, and of those in its file that it calls."""

    rule: Rule
    code: CodeType
    first: str
    found: list[_Ended] = attrs.field(factory=list)
    is_reported: bool = False
    _calls: dict[FrameType, _Call] = attrs.field(factory=dict)

    def called(self, frame: FrameType, event: str, _: Any) -> Any:
        """Watches the lines of functions in the rule's file, and of nothing else."""
        code = frame.f_code
        if code.co_filename != self.code.co_filename:
            return None
        function = _functions(code.co_filename).get((code.co_name, code.co_firstlineno))
        if function is None:
            return None
        self._calls.setdefault(frame, _Call(function))
        return self._line

    def reported(self) -> None:
        """The candidate is a finding."""
        self.is_reported = True

    def ended(self) -> list[_Ended]:
        """Where each round ended that reported nothing."""
        return self.found

    def _line(self, frame: FrameType, event: str, value: Any) -> Any:
        call = self._calls[frame]
        if event not in ("line", "return"):
            return self._line
        line = frame.f_lineno if event == "line" else 0
        if call.open is not None:
            self._close(call, line)
        if event == "return":
            self._return(frame, call, value)
        elif line in call.function.loops:
            self._round(frame, call)
        elif line in call.function.tests and call.open is None:
            names = {**frame.f_globals, **frame.f_locals}
            call.open = call.function.tests[line], names, _candidate(frame)
        return self._line

    def _close(self, call: _Call, line: int) -> None:
        """A condition is done with: the line that follows says how it came out."""
        assert call.open is not None
        test, names, candidate = call.open
        inside = test.body[0].lineno <= line <= (test.body[-1].end_lineno or line)
        if inside or not test.test.lineno <= line <= (test.test.end_lineno or line):
            if line == 0 and isinstance(test.body[-1], ast.Return):
                inside = test.body[0].lineno == test.test.lineno
            call.met += 1
            call.last = test, names, candidate, inside
            call.open = None

    def _round(self, frame: FrameType, call: _Call) -> None:
        """The loop begins another round: the one before is done."""
        stop = None
        if frame.f_code is self.code:
            self._end(call)
        elif frame.f_code.co_flags & inspect.CO_GENERATOR:
            stop = self._stop(
                call
            )  # it returns nothing after its last round, either: what stopped this one is known then
        call.met, call.last, call.below = 0, None, stop

    def _return(self, frame: FrameType, call: _Call, value: Any) -> None:
        if frame.f_code is self.code:
            if value is None:
                self._end(call)
                call.last = call.below = None
            return
        caller = self._caller(frame)
        if (
            caller is not None
            and (value is None or value is False)
            and (below := self._stop(call)) is not None
        ):
            caller.below = below
        if not frame.f_code.co_flags & inspect.CO_GENERATOR:
            self._calls.pop(frame, None)

    def _caller(self, frame: FrameType) -> _Call | None:
        """The call that is watched and waits for this one."""
        outer = frame.f_back
        while outer is not None and outer not in self._calls:
            outer = outer.f_back
        return None if outer is None else self._calls[outer]

    def _end(self, call: _Call) -> None:
        stop = self._stop(call)
        if stop is not None and not self.is_reported:
            self.found.append(stop)
        self.is_reported = False

    def _stop(self, call: _Call) -> _Ended | None:
        """The stop of a call: in what it called, unless it compared that itself, or at its last condition."""
        if call.last is None:
            return call.below
        test, names, candidate, held = call.last
        leaves = _gives_up(test.body)
        condition = Condition(test.test, names, held, self.rule, call.function.comments[test.lineno])
        is_told = condition.comment and call.below is not None and not call.below.condition.comment
        if call.below is not None and (held != leaves or (_is_asked(condition.decisive()) and not is_told)):
            return attrs.evolve(
                call.below, progress=(call.met + call.below.progress[0], call.below.progress[1])
            )
        if held != leaves:  # the condition was met: something behind it, which has no words, was not
            return None
        return _Ended(self.first or candidate, condition, (call.met, test.lineno))


def _gives_up(body: list[ast.stmt]) -> bool:
    """True if a branch is done with a candidate and reports nothing: it neither yields nor returns anything."""
    if any(isinstance(one, ast.Yield | ast.YieldFrom) for stmt in body for one in ast.walk(stmt)):
        return False
    last = body[-1]
    if isinstance(last, ast.Return) and last.value is not None:
        return isinstance(last.value, ast.Constant) and last.value.value in (None, False)
    return isinstance(last, _LEAVING)


def _is_asked(test: ast.expr) -> bool:
    """True if a condition only asks whether a function found something."""
    if isinstance(test, ast.UnaryOp):
        test = test.operand
    if isinstance(test, ast.Compare):
        right = test.comparators[0]
        return isinstance(right, ast.Constant) and right.value is None
    return isinstance(test, ast.Name | ast.NamedExpr)


def _candidate(frame: FrameType) -> str:
    """The candidate of a loop iteration: the instruction or communication that its variables refer to."""
    return next(filter(None, map(name_of, reversed(list(frame.f_locals.values())))), "")
