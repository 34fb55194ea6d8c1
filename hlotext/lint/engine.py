"""Runs the rules over modules, and turns what they report into findings."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import attrs

from hlotext.analysis import causing_frame
from hlotext.findings.errors import Severity
from hlotext.ir import collector
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.source import Source, Span
from hlotext.lint.config import Config
from hlotext.lint.finding import LONGEST_LINE, Finding, from_diagnostic
from hlotext.lint.fingerprints import fingerprint, text_fingerprint
from hlotext.lint.rule import Context, Report, Rule, make_context
from hlotext.lint.suppress import is_suppressed
from hlotext.syntax.read import read_tolerantly
from hlotext.syntax.source.codes import CODES as SYNTAX_CODES

INTERNAL = "X900"
"""The code of a rule that failed. It is always reported."""


def run(module: Module, config: Config | None = None) -> list[Finding]:
    """What the rules find in a module, in the order of the text.

    A rule that fails gives one finding of code `X900`; the others go on.
    """
    with collector.paused(pays=False):
        return _run(module, config or Config())


def _run(module: Module, config: Config) -> list[Finding]:
    context = make_context(module, config.profile)
    found: list[Finding] = []
    rules = [rule for rule in config.active_rules() if rule.applies_to(context)]
    for rule, report in _reports(rules, context, found.append):
        finding = _finding(rule, report, context)
        if not _is_ignored(finding, config, module.source):
            found.append(finding)
    if any(code.startswith("V") for code in (*(config.select or ()), *config.extend_select)):
        found += _verify(module, config)
    return sorted(found, key=lambda finding: (finding.line, finding.column, finding.code))


@attrs.frozen
class Linted:
    """What was found in one text."""

    findings: tuple[Finding, ...]
    modules: int
    """How many modules were read."""
    instructions: int

    @property
    def has_failed(self) -> bool:
        """Whether a rule failed."""
        return any(finding.code == INTERNAL for finding in self.findings)


def lint_source(source: Source, config: Config | None = None) -> Linted:
    """What is found in a text of one or several modules: by the reader (codes X), then by the rules. Never raises on text.

    Of a text with errors only what the reader says is reported: rules on half a module would guess.
    """
    from hlotext.semantics.infer import infer_shape

    config = config or Config()
    result = read_tolerantly(source, infer_shape)
    found: list[Finding] = []
    for diagnostic in result.diagnostics:
        is_error = diagnostic.severity is Severity.ERROR
        if config.is_selected(diagnostic.code, True) or is_error:
            finding = from_diagnostic(diagnostic, SYNTAX_CODES.get(diagnostic.code, diagnostic.code))
            finding = attrs.evolve(finding, fingerprint=text_fingerprint(finding.code, finding.message))
            if is_error or not _is_ignored(finding, config, source):
                found.append(finding)
    if any(diagnostic.severity is Severity.ERROR for diagnostic in result.diagnostics):
        return Linted(tuple(found), 0, 0)
    for module in result.modules:
        found += run(module, config)
    return Linted(
        tuple(found), len(result.modules), sum(len(c) for m in result.modules for c in m.computations)
    )


def _reports(
    rules: Iterable[Rule], context: Context, failed: Callable[[Finding], None]
) -> Iterator[tuple[Rule, Report]]:
    """What the rules report, each about the instructions of its opcodes, then about the module."""
    by_opcode = context.census.by_opcode
    for rule in rules:
        try:
            for instruction in chain.from_iterable(by_opcode.get(opcode, ()) for opcode in rule.opcodes):
                for report in rule.check(instruction, context):
                    yield rule, report
            for report in rule.check_module(context):
                yield rule, report
        except Exception as error:
            failed(_failure(rule, error, context))


def _failure(rule: Rule, error: Exception, context: Context) -> Finding:
    source = context.module.source
    return Finding(
        code=INTERNAL,
        rule="rule-failed",
        severity=Severity.ERROR,
        message=f"rule {rule.code} failed: {type(error).__name__}: {error}",
        help="".join(traceback.format_exception(error)),
        file=source.name if source is not None else "<text>",
        module=context.module.name,
        fingerprint=text_fingerprint(INTERNAL, rule.code),
    )


def _finding(rule: Rule, report: Report, context: Context) -> Finding:
    module, instruction = context.module, report.instruction
    source = module.source
    span = instruction.span if instruction is not None else _header_span(module)
    origin = _origin(instruction)
    metadata = origin.metadata if origin is not None else None
    computation = instruction.computation if instruction is not None else None
    text = source.line(span.line) if source is not None and span is not None else str(instruction or "")
    return Finding(
        code=rule.code,
        rule=rule.name,
        severity=rule.severity,
        message=report.message,
        help=report.help,
        file=source.name if source is not None else "<text>",
        line=span.line if span is not None else 1,
        column=span.column if span is not None else 1,
        end_line=span.end_line if span is not None else 1,
        end_column=span.end_column if span is not None else 1,
        module=module.name,
        name=instruction.name if instruction is not None else "",
        computation=computation.name if computation is not None else "",
        op_name=metadata.op_name if metadata is not None else "",
        frame=causing_frame(instruction) if instruction is not None else None,
        bytes=report.bytes,
        flops=report.flops,
        source_line=text[:LONGEST_LINE],
        fingerprint=fingerprint(rule.code, report, context),
        instruction=instruction,
    )


def _origin(instruction: Instruction | None) -> Instruction | None:
    """The instruction that tells where this one comes from: of an asynchronous wrapper often only what it runs."""
    if instruction is None or instruction.metadata is not None:
        return instruction
    return instruction.async_wrapped_instruction or instruction


def _header_span(module: Module) -> Span | None:
    source = module.source
    if source is None:
        return None
    start = module._start
    name = source.text.find(module.name, start, start + 400)
    return source.span(start, name + len(module.name) if name >= 0 else start)


def _is_ignored(finding: Finding, config: Config, source: Source | None) -> bool:
    return (
        config.is_ignored_in(finding.code, finding.file)
        or (bool(finding.op_name) and config.is_ignored_for(finding.code, finding.op_name))
        or is_suppressed(finding.code, finding.instruction, source, finding.line)
    )


def _verify(module: Module, config: Config) -> Iterator[Finding]:
    from hlotext.verify.run import run as verify

    for diagnostic in verify(module):
        if config.is_selected(diagnostic.code, False):
            finding = from_diagnostic(diagnostic, "verify")
            finding = attrs.evolve(
                finding, module=module.name, fingerprint=text_fingerprint(finding.code, finding.message)
            )
            if not _is_ignored(finding, config, module.source):
                yield finding
