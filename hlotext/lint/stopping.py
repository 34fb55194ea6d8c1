"""At which condition of a rule its nearest candidates stop: its functions are run once more, and their conditions watched."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Sized
from itertools import chain
from types import FrameType
from typing import Any

import attrs

from hlotext.analysis import Communication
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.merged import MergedRule
from hlotext.lint.rule import Context, Rule

_MOST_CANDIDATES = 2_000
"""Candidates that are watched: watching takes a hundred times as long as running."""


@attrs.frozen
class Stop:
    """Where a rule has done with one candidate."""

    candidate: str
    """The name of the instruction; empty for what is about the whole module."""
    condition: str
    """The condition as the rule's source has it, and what its names stood for."""
    progress: tuple[int, int]
    """Number of conditions met, and the line of the last one: larger for nearer candidates."""


def stops(rule: Rule, context: Context) -> list[Stop]:
    """Where the candidates of a rule stop, the nearest first; those that it reports are left out."""
    if isinstance(rule, MergedRule):
        parts = (part() for part in rule.parts)
        found = [stop for part in parts if part.applies_to(context) for stop in stops(part, context)]
        return sorted(found, key=lambda stop: stop.progress, reverse=True)
    found = []
    by_opcode = context.census.by_opcode
    candidates = chain.from_iterable(by_opcode.get(opcode, ()) for opcode in sorted(rule.opcodes))
    for number, one in enumerate(candidates):
        if number >= _MOST_CANDIDATES:
            break
        found += _watched(rule, rule.check, one, context)
    found += _watched(rule, rule.check_module, context)
    return sorted(found, key=lambda stop: stop.progress, reverse=True)


def _watched(rule: Rule, function: Callable[..., Iterator[Any]], *arguments: Any) -> list[Stop]:
    watch = _Watch.of(rule, function)
    if watch is None:
        return []
    before = sys.gettrace()
    sys.settrace(watch.called)
    try:
        for _ in function(*arguments):
            watch.reported()
    except Exception:  # a rule that fails is reported as such where it runs
        return []
    finally:
        sys.settrace(before)
    first = arguments[0] if isinstance(arguments[0], Instruction) else None
    return watch.stops(first)


@attrs.define(eq=False)
class _Watch:
    """The conditions of one function that were met, by candidate: each round of its loops has another one."""

    rule: Rule
    code: Any
    tests: dict[int, ast.If]
    loops: dict[int, ast.For]
    rounds: list[list[tuple[ast.If, str, str, bool]]] = attrs.field(factory=lambda: [[]])
    """For each round the conditions: the test, the values of its names, the candidate, and whether it held."""
    done: list[bool] = attrs.field(factory=lambda: [False])
    _open: tuple[ast.If, str, str] | None = None

    @classmethod
    def of(cls, rule: Rule, function: Callable[..., Any]) -> _Watch | None:
        """A watch for a function; None for one of the base class, or without source."""
        raw = getattr(function, "__func__", function)
        if raw in (Rule.check, Rule.check_module):
            return None
        try:
            lines, first = inspect.getsourcelines(raw)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, TypeError, SyntaxError):
            return None
        ast.increment_lineno(tree, first - 1)
        tests = {node.test.lineno: node for node in ast.walk(tree) if isinstance(node, ast.If)}
        tests |= {node.lineno: node for node in tests.values()}
        loops = {node.lineno: node for node in ast.walk(tree) if isinstance(node, ast.For)}
        return cls(rule, raw.__code__, tests, loops)

    def called(self, frame: FrameType, event: str, _: Any) -> Any:
        """Watches the lines of the function, and of nothing that it calls."""
        return self._line if frame.f_code is self.code else None

    def reported(self) -> None:
        """The candidate is a finding."""
        self.done[-1] = True

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event in ("line", "return"):
            line = frame.f_lineno if event == "line" else 0
            if self._open is not None:
                test, values, candidate = self._open
                inside = test.body[0].lineno <= line <= (test.body[-1].end_lineno or line)
                if inside or not test.test.lineno <= line <= (test.test.end_lineno or line):
                    self.rounds[-1].append((test, values, candidate, inside))
                    self._open = None
            if line in self.loops:
                self.rounds.append([])
                self.done.append(False)
            elif line in self.tests and self._open is None:
                self._open = self.tests[line], self._values(self.tests[line].test, frame), _candidate(frame)
        return self._line

    def _values(self, test: ast.expr, frame: FrameType) -> str:
        """The values of a condition's variables, as far as they can be printed."""
        found: dict[str, str] = {}
        for node in ast.walk(test):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            ):
                found[node.attr] = _shown(getattr(self.rule, node.attr, None))
            elif isinstance(node, ast.Name) and node.id in frame.f_locals:
                found[node.id] = _shown(frame.f_locals[node.id])
        return ", ".join(f"{name} is {text}" for name, text in found.items() if text)

    def stops(self, first: Instruction | None) -> list[Stop]:
        """Where each round ended that reported nothing."""
        found = []
        for met, is_done in zip(self.rounds, self.done, strict=True):
            if not met or is_done:
                continue
            test, values, candidate, held = met[-1]
            said = ast.unparse(test.test).replace("self.", "")
            verb = "holds" if held else "does not hold"
            where = f" ({values})" if values else ""
            name = first.name if first is not None else candidate
            found.append(Stop(name, f"`{said}` {verb}{where}", (len(met), test.lineno)))
        return found


def _shown(value: object) -> str:
    """A value in a word; empty for what has none."""
    if isinstance(value, Instruction):
        return value.name
    if isinstance(value, Communication):
        return value.start.name
    if value is None or isinstance(value, bool | str):
        return repr(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Sized):
        return f"{len(value):,} long" if value else "empty"
    return f"{value:.4g}" if isinstance(value, float) else ""


def _candidate(frame: FrameType) -> str:
    """The candidate of a loop iteration: the instruction or communication that its variables refer to."""
    for value in reversed(list(frame.f_locals.values())):
        if isinstance(value, Instruction | Communication):
            return _shown(value)
    return ""
