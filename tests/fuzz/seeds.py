"""Texts to start from: real op lines in small modules, whole small modules, right and wrong ones, the grammar's examples."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import hlotext as hlo
from hlotext.syntax.language import grammar
from hlotext.syntax.language.grammar import attribute_rules, header_attribute_rules
from tests import mutation, support

LONGEST = 6_000
"""Bytes of a seed; larger files of the corpus are taken as they are by `large`."""
TINY = 1_000
MOST_LINES = 40
"""Bytes and lines of a seed of `tiny`."""

_OP_LINE = """HloModule m

ENTRY %e (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  ROOT %r = @
}
"""
_HEADER = """HloModule m, @

ENTRY e {
  ROOT c = f32[] constant(1)
}
"""

_WRAPPED: dict[str, str] = {
    "attribute": _OP_LINE.replace("@", "f32[2]{0} custom-call(%p), @"),
    "shape": _OP_LINE.replace("@", "@ custom-call(%p)"),
    "layout": _OP_LINE.replace("@", "f32[2,3,4,5]@ custom-call(%p)"),
    "literal": _OP_LINE.replace("@", "f32[2]{0} constant(@)"),
    "operation": _OP_LINE.replace("@", "f32[2]{0} @"),
    "right_side": _OP_LINE,
    "instruction": _OP_LINE.replace("ROOT %r = ", ""),
    "header_attribute": _HEADER,
}
"""Where an example of a rule stands in a module."""


@functools.cache
def small() -> tuple[bytes, ...]:
    """Seeds of at most `LONGEST` bytes, in a fixed order."""
    texts = [line.module().encode("utf-8", "surrogateescape") for line in mutation.lines()]
    texts += _files(support.corpus_files(), LONGEST)
    texts += _files(support.INVALID.iterdir(), LONGEST)
    for folder in ("ok", "err"):
        texts += _files((support.DATA / folder).rglob("*.hlo"), LONGEST)
    texts += [text.encode() for text in examples()]
    return tuple(dict.fromkeys(text for text in texts if len(text) <= LONGEST))


@functools.cache
def tiny() -> tuple[bytes, ...]:
    """Seeds of at most `TINY` bytes and `MOST_LINES` lines, and computations of the corpus by themselves, one of each kind.

    So short that a stage takes about a millisecond.
    """
    texts = [*small(), *_computations()]
    return tuple(
        dict.fromkeys(text for text in texts if len(text) <= TINY and text.count(b"\n") <= MOST_LINES)
    )


def _computations() -> Iterator[bytes]:
    """Computations that call nothing, each as the entry of a module: one for each list of opcodes."""
    found = set()
    for path in support.corpus_files():
        for computation in hlo.parse(support.read_text(path)).computations:
            kind = tuple(i.opcode for i in computation)
            if kind in found or len(kind) > MOST_LINES or any(i.called_computations for i in computation):
                continue
            found.add(kind)
            if not computation.is_printed_inline:
                text = str(computation).removeprefix("ENTRY ")
                yield f"HloModule m\n\nENTRY {text}\n".encode("utf-8", "surrogateescape")


@functools.cache
def large() -> tuple[bytes, ...]:
    """Whole files of the corpus."""
    return tuple(_files(support.corpus_files(), 200_000))


def _files(paths: object, longest: int) -> list[bytes]:
    found = (support.read_text(path) for path in sorted(map(Path, paths)) if path.suffix != ".xz")  # type: ignore[call-overload]
    return [text for text in found if len(text) <= longest]


def examples() -> list[str]:
    """Every example of the grammar where it stands in a module; by itself where that is HLO."""
    found = []
    named = {rule: f"{name}=" for name, rule in attribute_rules().items()}
    header = {rule: f"{name}=" for name, rule in header_attribute_rules().items()}
    for rule, example in grammar.examples():
        if is_hlo(example):
            found.append(example)
        if rule in _WRAPPED:
            found.append(_WRAPPED[rule].replace("@", example))
        if rule in named:
            found.append(_WRAPPED["attribute"].replace("@", named[rule] + example))
        if rule in header:
            found.append(_WRAPPED["header_attribute"].replace("@", header[rule] + example))
    return found


def is_hlo(text: str | bytes) -> bool:
    """Whether a text can be read strictly."""
    try:
        hlo.parse(text)
    except hlo.HloSyntaxError:
        return False
    return True
