"""A rule: a pattern and what becomes of a match; and the context that it works with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs

from hlotext.ir import sending
from hlotext.ir.errors import EditError
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import unknown
from hlotext.matchers.matching import NOTHING_SKIPPED, MatchOptions
from hlotext.matchers.pattern import Match, Pattern, PatternError
from hlotext.matchers.words import unknown_opcode
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.facts import is_typed

NO_CAPTURES: Match = {}


@with_foreign_names
class Rewrite(Editor):
    """Context of a rewrite: the matched instruction, its captures, a builder, and the edits of `Editor`.

    A driver reuses one object for a whole run, moving it with `at`, so rules must not store it.

    >>> import hlotext as hlo
    >>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] sine(x) }")
    >>> r = Rewrite.of(module.entry.root, {"x": module.entry.root.operands[0]})
    >>> print(r.b.cosine(r["x"]))
    cosine = f32[4] cosine(x)
    """

    instruction: Instruction
    """The matched instruction."""

    def __init__(self, module: Module, options: Any = None, *, is_layout_sensitive: bool = False) -> None:
        super().__init__(module, is_layout_sensitive=is_layout_sensitive)
        self.options = options
        """The `options` given to `apply_rules`; for the rules of a pass, the pass itself."""
        self.match = NO_CAPTURES
        """Captures of the pattern by name; empty for a rule for opcodes."""
        self._builder: Builder | None = None

    @classmethod
    def of(cls, instruction: Instruction, match: Match = NO_CAPTURES) -> Rewrite:
        """Creates the context of one match, outside a driver. Raises EditError if the instruction is not in a module."""
        home = instruction.computation
        if home is None or home.module is None:
            raise EditError(f"{instruction.name} is not in a module")
        rewrite = cls(home.module)
        rewrite.at(instruction, match)
        return rewrite

    def at(self, instruction: Instruction, match: Match = NO_CAPTURES) -> None:
        """Moves to an instruction and the captures of its match; new instructions are inserted before it."""
        self.place = self.instruction = instruction
        self.match = match
        self._builder = None

    @property
    def b(self) -> Builder:
        """Builder that inserts before the instruction and copies its metadata and sharding."""
        if self._builder is None:
            self._builder = Builder.before(self.instruction)
        return self._builder

    def __getitem__(self, name: str) -> Instruction:
        found: Instruction | None = self.match.get(name)
        if found is None:
            raise unknown("capture", name, self.match.keys)
        return found

    def like(self, name: str) -> Builder:
        """Returns a builder that copies metadata and sharding from the capture `name`, not the matched instruction."""
        return attrs.evolve(self.b, like=self[name])

    def may_rewrite(self, i: Instruction) -> bool:
        """Returns True if post-order drivers visit an instruction: its shape and its operands' shapes are known."""
        return is_typed(i)


Result = Instruction | bool | None
"""Result of a rule: what takes the instruction's place. True, or the instruction itself: it was changed in place, or the
rule has replaced it by an edit of the context. None and False: no change.
"""

RewriteFunction = Callable[[Any], Result]
"""A function of a `Rewrite`, or of a subclass that a driver is given."""

Context = TypeVar("Context", bound=Rewrite)


@attrs.frozen
class RewriteRule(sending.Uncopied):
    """A rewrite rule: a pattern, and a function that rewrites its matches. Created by `pattern` and `rule`."""

    name: str
    pattern: Pattern
    function: RewriteFunction
    options: MatchOptions = NOTHING_SKIPPED
    handler: str = ""
    """XLA function that the rule is modeled on; empty if there is none."""
    opcodes: frozenset[str] | None = attrs.field(init=False, eq=False, repr=False)
    """Opcodes that the rule can match, or None if it can match any."""
    is_plain: bool = attrs.field(init=False, eq=False, repr=False)
    """True if the pattern consists only of opcodes. The function then checks everything else."""
    first_operand: str | None = attrs.field(init=False, eq=False, repr=False)
    """Opcode that the first operand must have, or None if several are possible."""

    def __attrs_post_init__(self) -> None:
        options = self.pattern.options or self.options
        opcodes = None if options.start else _opcodes_of(self.pattern)
        object.__setattr__(self, "opcodes", opcodes)
        is_plain = opcodes is not None and self.pattern == _pattern_of(sorted(opcodes))
        object.__setattr__(self, "is_plain", is_plain)
        object.__setattr__(self, "first_operand", _first_operand(self.pattern, options))

    @property
    def doc(self) -> str:
        """Documentation of the rule, from the function's docstring."""
        return self.function.__doc__ or ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Supports pickling. Raises TypeError if the function cannot be imported."""
        place = self.function.__module__, self.function.__qualname__
        if sending.named(*place) is self:  # it stands under the name of its function
            return sending.found, place
        sending.check(self.function, f"the rule {self.name}")
        return RewriteRule, (self.name, self.pattern, self.function, self.options, self.handler)


def _opcodes_of(pattern: Pattern) -> frozenset[str] | None:
    if pattern.alternatives:
        parts = [_opcodes_of(alternative) for alternative in pattern.alternatives]
        return None if None in parts else frozenset(opcode for part in parts if part for opcode in part)
    return frozenset({pattern.opcode}) if pattern.opcode is not None else None


def _first_operand(pattern: Pattern, options: MatchOptions) -> str | None:
    wanted = pattern.operands
    if not wanted or pattern.alternatives or pattern.any_order or options is not NOTHING_SKIPPED:
        return None
    return wanted[0].opcode if wanted[0].options is None else None


def _pattern_of(opcodes: Sequence[str]) -> Pattern:
    """The pattern of an instruction of one of these opcodes."""
    if len(opcodes) == 1:
        return Pattern(opcode=opcodes[0])
    return Pattern(alternatives=tuple(Pattern(opcode=opcode) for opcode in opcodes))


def pattern(
    wanted: Pattern | str | Sequence[str],
    options: MatchOptions = NOTHING_SKIPPED,
    *,
    name: str | None = None,
    handler: str = "",
) -> Callable[[Callable[[Context], Result]], RewriteRule]:
    """Decorator that turns a function into a rewrite rule for a pattern, or for all instructions of some opcodes.

    Args:
        wanted: The pattern, or the opcodes. With opcodes, the function inspects the instruction itself.
        options: Instructions to look through.
        name: Name of the rule in counts and messages. None (the default) uses the function's name.
        handler: XLA function that the rule is modeled on.

    Raises:
        PatternError: An opcode is unknown, or is the text of a pattern (use `matchers.parse_pattern`).

    >>> from hlotext import matchers as m
    >>> @pattern(m.sine(m.op("x")))
    ... def sine_to_cosine(r):
    ...     return r.b.cosine(r["x"])
    >>> @pattern(("minimum", "maximum"))
    ... def of_itself(r):
    ...     x, y = r.instruction.operands
    ...     return x if x is y else None
    >>> import hlotext as hlo
    >>> from hlotext.rewrite import apply_rules
    >>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  y = f32[4] maximum(x, x)  ROOT z = f32[4] sine(y) }")
    >>> apply_rules(module, [sine_to_cosine, of_itself])
    {'of_itself': 1, 'sine_to_cosine': 1}
    >>> print(module.entry.root)
    ROOT cosine = f32[4] cosine(x)
    """
    if not isinstance(wanted, Pattern):
        given = (wanted,) if isinstance(wanted, str) else sorted(wanted)
        for opcode in given:
            if said := unknown_opcode(opcode):
                is_pattern = "(" in opcode or "$" in opcode
                raise PatternError(
                    "hlotext.matchers.parse_pattern(text) makes a pattern of text" if is_pattern else said
                )
        wanted = _pattern_of(given)

    def make(function: Callable[[Context], Result]) -> RewriteRule:
        if not callable(function):
            raise TypeError(f"pattern(...) makes a rule of a function, not {type(function).__name__}")
        return RewriteRule(name or function.__name__, wanted, function, options, handler)

    return make
