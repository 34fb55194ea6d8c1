"""Readers of single terms, for users: a shape, a layout, a sharding."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.findings.errors import HloSyntaxError, TermError
from hlotext.ir.arguments import caller_level
from hlotext.ir.nodes.source import Source
from hlotext.ir.spelling import did_you_mean
from hlotext.ir.values.types import ELEMENT_TYPES, dtype_meant, shape_meant
from hlotext.syntax import reading
from hlotext.syntax.hints.hints import BRACES, TEXT_ENDS
from hlotext.syntax.hints.parse_failure import CLOSERS
from hlotext.syntax.literals import read_literal
from hlotext.syntax.source.reporter import Reporter

if TYPE_CHECKING:
    from hlotext.findings.finding import Diagnostic
    from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
    from hlotext.ir.values.literal import Literal
    from hlotext.ir.values.replica_groups import ReplicaGroups
    from hlotext.ir.values.shape import Layout, Shape
    from hlotext.ir.values.sharding import Sharding
    from hlotext.ir.values.window import PaddingConfig, Window


def _read(rule: str, text: str) -> Any:
    if not isinstance(text, str):
        use = "" if text is None else f", such as {_EXAMPLES[rule]!r}"
        raise TypeError(f"the text of a {rule} must be a string{use}, not {type(text).__name__}")
    try:
        return reading.terms.read(rule, text)
    except TermError:
        raise HloSyntaxError(_diagnosed(rule, text)) from None


def problem(rule: str, text: str) -> str:
    """Returns why a text cannot be parsed by a rule, with the column, in one line; empty if only the rule itself can
    tell.
    """
    try:
        found = _diagnosed(rule, text)
    except (LookupError, KeyError):
        return ""
    help = f" ({found.help})" if found.help else ""
    where = f" at column {found.span.column}" if found.span.column > 1 else ""
    return f"{found.message}{where}{help}"


def _diagnosed(rule: str, text: str) -> Diagnostic:
    reporter = Reporter(Source(text), tolerant=True)
    try:
        reading.reference.parse(reporter.source, rule)
    except reading.reference.ParseError as failure:
        failure.report(reporter)
    found = reporter.diagnostics[0]
    opened = text[found.related[0][1].start] if found.related else ""
    example = f"for example: `{_EXAMPLES[rule]}`" if rule in _EXAMPLES else ""
    help = f"is a `{CLOSERS[opened]}` missing here?" if opened else example
    if found.help.startswith(BRACES):
        braced = f"{{{text}}}"
        return attrs.evolve(found, help=f"{BRACES}: `{braced}`" if _reads(rule, braced) else example)
    return attrs.evolve(found, help=help if found.help in ("", TEXT_ENDS) else found.help)


def _reads(rule: str, text: str) -> bool:
    try:
        reading.terms.read(rule, text)
    except TermError:
        return False
    return True


_EXAMPLES = {
    "shape": "bf16[8,128]{1,0}",
    "layout": "{1,0:T(8,128)}",
    "sharding": "{devices=[2,4]<=[8]}",
    "replica_groups": "{{0,1},{2,3}}",
    "window": "{size=3x3 pad=1_1x1_1}",
    "dim_labels": "b01f_01io->b01f",
    "padding": "1_2x0_1_0",
}


def _syntax_error(code: str, text: str, problem: TermError) -> HloSyntaxError:
    reporter = Reporter(Source(text), tolerant=True)
    reporter.error(code, problem.message, problem.position, help=problem.help)
    return HloSyntaxError(reporter.diagnostics[0])


def parse_shape(text: str) -> Shape:
    """Parses a shape, such as `bf16[8,128]{1,0:T(8,128)(2,1)}`, a tuple or a token.

    Raises HloSyntaxError if the text is invalid, or has numpy's name of an element type. Other unknown types are
    kept, with a warning where one is spelled nearly like a known one.
    """
    shape = read_shape(text)
    for _, leaf in shape.leaves():
        name = leaf.element_type.name
        if name not in ELEMENT_TYPES and (meant := did_you_mean(name, ELEMENT_TYPES)):
            message = f"the element type {name} is unknown to this release; {meant}"
            warnings.warn(message, RuntimeWarning, stacklevel=caller_level())
    return shape


def read_shape(text: str) -> Shape:
    """Parses a shape as `parse_shape`, without a warning: whoever asks says himself what is unknown."""
    try:
        shape: Shape = _read("shape", text)
    except HloSyntaxError:
        if not (meant := shape_meant(text)):
            raise
        problem = TermError("this is a shape of MLIR", 0, help=meant)
        raise _syntax_error("X101", text, problem) from None
    for _, leaf in shape.leaves():
        name = leaf.element_type.name
        if meant := dtype_meant(name):
            problem = TermError(f"{name} is numpy's name of an element type", text.find(name), help=meant)
            raise _syntax_error("X101", text, problem)
    return shape


def parse_layout(text: str) -> Layout:
    """Parses a layout such as `{1,0:T(8,128)(2,1)S(1)}`. Raises HloSyntaxError if the text is invalid."""
    layout: Layout = _read("layout", text)
    return layout


def parse_literal(text: str, shape: Shape | str) -> Literal:
    """Parses the text inside `constant(...)` as a literal of a shape, which may be given as text.

    Raises HloSyntaxError if the text is invalid or does not fit the shape.
    """
    shape = read_shape(shape) if isinstance(shape, str) else shape
    try:
        return read_literal(text, shape)
    except TermError as error:
        problem = error
    raise _syntax_error("X118", text, problem)


def parse_sharding(text: str) -> Sharding:
    """Parses a sharding with its braces, such as `{devices=[2,4]<=[8]}`. Raises HloSyntaxError if the text is invalid."""
    sharding: Sharding = _read("sharding", text)
    return sharding


def parse_replica_groups(text: str) -> ReplicaGroups:
    """Parses replica groups: `{{0,1},{2,3}}`, `[2,4]<=[8]` or `mesh['a'=2,'b'=4] {'b'}`.

    Raises HloSyntaxError if the text is invalid.
    """
    groups: ReplicaGroups = _read("replica_groups", text)
    return groups


def parse_window(text: str) -> Window:
    """Parses a window with its braces, such as `{size=3x3 pad=1_1x1_1}`. Raises HloSyntaxError if the text is invalid."""
    window: Window = _read("window", text)
    return window


def parse_dim_labels(text: str) -> ConvolutionDimensionNumbers:
    """Parses the dimension labels of a convolution, such as `b01f_01io->b01f`.

    Raises HloSyntaxError if the text is invalid.
    """
    labels: ConvolutionDimensionNumbers = _read("dim_labels", text)
    return labels


def parse_padding(text: str) -> PaddingConfig:
    """Parses a padding config such as `1_2x0_1_0`. Raises HloSyntaxError if the text is invalid."""
    padding: PaddingConfig = _read("padding", text)
    return padding
