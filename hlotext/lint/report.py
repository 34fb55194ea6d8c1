"""Findings as entries of reports."""

from __future__ import annotations

from typing import Any

from hlotext.analysis import byte_text
from hlotext.findings.diagnostic import excerpt
from hlotext.ir.nodes.source import Span
from hlotext.lint.engine import INTERNAL
from hlotext.lint.finding import Finding
from hlotext.lint.registry import all_rules
from hlotext.reports import Entry
from hlotext.syntax.source.codes import RULES as SYNTAX_RULES
from hlotext.verify.codes import CODES as VERIFY_RULES


def title_of(code: str) -> str:
    """What a code stands for, in one line."""
    if code == INTERNAL:
        return "a rule that failed"
    if (rule := all_rules().get(code)) is not None:
        return rule.title
    known = SYNTAX_RULES.get(code) or VERIFY_RULES.get(code)
    return known.title if known is not None else code


def page_of(code: str) -> str:
    """The documentation of a code, Markdown."""
    if (rule := all_rules().get(code)) is not None:
        return rule.page()
    known = SYNTAX_RULES.get(code) or VERIFY_RULES.get(code)
    return known.page() if known is not None else f"# {code}: {title_of(code)}\n"


def entry_of(finding: Finding, *, debug: bool = False) -> Entry:
    """A finding as reports take it. `debug` shows the traceback of a rule that failed."""
    properties: dict[str, Any] = {"rule": finding.rule}
    if finding.bytes is not None:
        properties["bytes"] = finding.bytes
    if finding.flops is not None:
        properties["flops"] = finding.flops
    if finding.frame is not None:
        frame = finding.frame
        properties["frame"] = {"file": frame.file, "line": frame.line, "function": frame.function}
    rule = all_rules().get(finding.code)
    if rule is not None and rule.fix:
        properties["fix"] = {"pass": rule.fix, "safety": "safe"}
    is_hidden = finding.code == INTERNAL and not debug
    return Entry(
        code=finding.code,
        title=title_of(finding.code),
        severity=finding.severity,
        message=finding.message,
        file=finding.file,
        line=finding.line,
        column=finding.column,
        end_line=finding.end_line,
        end_column=finding.end_column,
        help="--debug shows the traceback" if is_hidden else finding.help,
        module=finding.module,
        computation=finding.computation,
        instruction=finding.name,
        op_name=finding.op_name,
        fingerprint=finding.fingerprint,
        properties=properties,
        text=_text(finding, is_hidden),
    )


def _text(finding: Finding, is_hidden: bool) -> str:
    """Place and message, the line with a caret, where it comes from, and what to do."""
    out = [f"{finding.place}: {finding.severity.value}[{finding.code}]: {finding.message}"]
    if finding.source_line:
        width = len(finding.source_line)
        span = Span(
            0,
            0,
            finding.line,
            min(finding.column, width),
            finding.end_line,
            min(finding.end_column, width + 1),
        )
        out += excerpt(finding.source_line, finding.line, span)
    if finding.op_name:
        out.append(f"  op_name: {finding.op_name}")
    if finding.frame is not None:
        out.append(f"  from: {finding.frame}")
    if costs := _costs(finding):
        out.append(f"  costs: {costs} each time the module runs")
    if is_hidden:
        out.append("  help: --debug shows the traceback")
    elif finding.help:
        rule = all_rules().get(finding.code)
        fix = f" (--fix does it, by {rule.fix}: safe)" if rule is not None and rule.fix else ""
        out.append(f"  help: {finding.help}{fix}")
    return "\n".join(out)


def _costs(finding: Finding) -> str:
    """The estimates in words; empty where there are none, or nothing to save."""
    bytes_ = byte_text(finding.bytes) if finding.bytes else ""
    flops = f"{_short(finding.flops)}FLOP" if finding.flops else ""
    return " and ".join(filter(None, (bytes_, flops)))


def _short(count: int) -> str:
    """A count with three digits and a prefix: `2.15 G`."""
    value, prefix = float(count), ""
    for prefix in ("", "k", "M", "G", "T", "P", "E"):
        if value < 999.5 or prefix == "E":
            break
        value /= 1000
    return f"{value:.3g} {prefix}"
