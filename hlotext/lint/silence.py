"""Why a rule says nothing about a module: the first thing that keeps it from speaking."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.analysis import byte_text
from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.source import Source
from hlotext.lint.codes import INTERNAL
from hlotext.lint.config import Config, settable
from hlotext.lint.engine import run
from hlotext.lint.merged import MergedRule
from hlotext.lint.registry import all_rules
from hlotext.lint.rule import Context, Rule, make_context
from hlotext.lint.stopping import Stop, stops
from hlotext.lint.wording import listed
from hlotext.reports.human import basis_of, saving
from hlotext.semantics.infer import infer_shape
from hlotext.syntax.read import read_tolerantly

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation

_MOST = 5
"""Findings below a threshold that are told, and candidates with the condition at which they stop."""
_FLOORS: dict[str, Any] = dict.fromkeys(
    ("note", "note_peak", "scarce_memory", "floor_seconds", "floor_bytes"), 0
)
"""Settings below which nothing is said."""
_COSTS = frozenset({"bytes", "copied", "flops", "host", "peak", "percent", "saved", "some", "total"})
"""Thresholds that keep what costs little away, by the end of their names. Others say of what kind a finding is."""


@attrs.frozen
class Silence:
    """The reason why a rule reports nothing for one module."""

    module: str
    reason: str
    """The reason, in one sentence without a full stop."""
    details: tuple[str, ...] = ()
    """The suppressed messages."""


def explain_silence(
    source: Source, code: str, config: Config | None = None, compilation: Compilation | None = None
) -> list[Silence]:
    """Explains, for each module in HLO text, why a rule reports nothing.

    If the rule does report something, the result says so. Text with syntax errors yields a single result. `config` and
    `compilation` are as in `run`. Raises KeyError if `code` is not the code of a rule.
    """
    result = read_tolerantly(source, infer_shape)
    if any(finding.severity is Severity.ERROR for finding in result.diagnostics):
        return [Silence("", "the text has errors: rules run only on complete modules")]
    return [_silence(module, code, config or Config(), compilation) for module in result.modules]


def _silence(module: Module, code: str, config: Config, compilation: Compilation | None) -> Silence:
    rule = all_rules(config.rule_files)[code]
    found = [finding for finding in run(module, config, compilation=compilation) if finding.code == code]
    if found:
        return Silence(module.name, f"{code} has findings", _told(found))
    alone = attrs.evolve(config, select=(code,), ignore=())
    if not config.is_selected(code, rule.is_default):
        off = "the rule is off by default" if not rule.is_default else "the rule is not selected"
        return Silence(
            module.name,
            f"{off} (enable it with --extend-select {code})",
            _told(run(module, alone, compilation=compilation)),
        )
    context = make_context(module, config.profile, None, config.chip, config.trips, compilation)
    if (why := rule.needs().unmet(context)) is not None:
        return Silence(module.name, why)
    made = rule(**settable(rule, config.rules.get(code, {})))
    if not made.applies_to(context):
        return Silence(module.name, f"the rule does not apply to this module: see `hlotext help rule {code}`")
    if hidden := [one for one in run(module, alone, compilation=compilation) if one.code == code]:
        lines = {one.line for one in hidden}
        others = run(module, config, compilation=compilation)
        named = sorted({one.code for one in others if lines & {one.line, *one.other_lines}}) or [
            "another rule"
        ]
        verb = "reports" if len(named) == 1 else "report"
        return Silence(module.name, f"{listed(named)} {verb} the same cause", _told(hidden))
    loose = attrs.evolve(alone, **_FLOORS, rules={code: {**config.rules.get(code, {}), **_lowest(rule)}})
    below = [finding for finding in run(module, loose, compilation=compilation) if finding.code == code]
    if below:
        own = [f"{code}.{name.replace('_', '-')}" for name in _lowest(rule)]
        names = ", ".join([*own, *(name.replace("_", "-") for name in _FLOORS)])
        return Silence(
            module.name,
            f"its findings are below its thresholds (settings in [tool.hlotext.lint]: {names})",
            _told(below),
        )
    everywhere = attrs.evolve(loose, per_file_ignores={}, per_op_name_ignores={})
    if any(finding.code == code for finding in run(module, everywhere, compilation=compilation)):
        return Silence(
            module.name, "its findings are excluded by the configuration (per-file or per-op-name ignores)"
        )
    if any(finding.code == INTERNAL for finding in run(module, alone, compilation=compilation)):
        return Silence(module.name, "the rule failed: rerun with --debug")
    return _at_its_conditions(made, context)


def _lowest(rule: type[Rule]) -> dict[str, Any]:
    """The thresholds that keep small things away, set so that they do not."""
    return {
        field.name: type(field.default)(0)
        for field in attrs.fields(rule)
        if field.name.startswith("min_") and field.name.rpartition("_")[2] in _COSTS
    }


def _at_its_conditions(rule: Rule, context: Context) -> Silence:
    """The condition that the nearest candidates do not meet, of a rule of several forms that of each."""
    if not isinstance(rule, MergedRule):
        return _of_one(rule, context, rule.code)
    details = []
    for part in (make() for make in rule.parts):
        about = (sys.modules[type(part).__module__].__doc__ or type(part).__name__).partition("\n")[0]
        why = "modules of this kind are not checked"
        if part.applies_to(context):
            why = _of_one(part, context, rule.code).reason
        details.append(f"{about.rstrip('.')}: {why}")
    return Silence(
        context.module.name,
        f"none of the rule's {len(details)} patterns matches",
        tuple(details),
    )


def _of_one(rule: Rule, context: Context, code: str) -> Silence:
    """The condition that the nearest candidates do not meet."""
    name = context.module.name
    candidates = sum(len(context.census.by_opcode.get(opcode, ())) for opcode in rule.opcodes)
    if rule.opcodes and not candidates:
        opcodes = " or ".join(sorted(rule.opcodes))
        return Silence(name, f"the module has no {opcodes}")
    own = rule.nearest(context)
    nearest = [Stop(*own, (0, 0))] if own is not None else stops(rule, context)
    if not nearest and code.startswith("C") and not rule.opcodes and not context.communications:
        return Silence(name, "the module has no communication")
    if not nearest:
        others = f", or {' or '.join(sorted(rule.yields_to))} reports it" if rule.yields_to else ""
        count = candidates if rule.opcodes else len(context.census.instructions)
        opcodes = ", ".join(sorted(rule.opcodes))
        looked = f"{count:,} instructions" + (f" ({opcodes})" if rule.opcodes else "")
        return Silence(
            name, f"none of the {looked} matches the rule{others}, or a comment suppresses the finding"
        )
    return _of_the_nearest(code, name, nearest)


def _of_the_nearest(code: str, module: str, nearest: list[Stop]) -> Silence:
    """The conditions that the nearest candidates do not meet, as far as they have words."""
    named = list(dict.fromkeys(stop for stop in nearest if stop.condition))
    if not named:
        near = f"; the nearest is {nearest[0].candidate}" if nearest[0].candidate else ""
        return Silence(
            module,
            f"no operation matches the rule{near}: see `hlotext help rule {code}`",
        )
    first, *more = (attrs.evolve(stop, condition=_its(stop)) for stop in named)
    others = {stop.condition: stop for stop in reversed(more) if stop.condition != first.condition}
    details = [f"{stop.candidate or 'the module'}: {stop.condition}" for stop in reversed(others.values())]
    if not first.candidate:
        return Silence(module, f"the rule does not apply because {first.condition}", tuple(details)[:_MOST])
    why = f"no operation matches the rule: the nearest is {first.candidate}, but {first.condition}"
    return Silence(module, why, tuple(details)[:_MOST])


def _its(stop: Stop) -> str:
    """The condition without the candidate's name, which stands in front of it."""
    if not stop.candidate:
        return stop.condition
    return re.sub(rf"\bthe ([a-z ]+) of {re.escape(stop.candidate)}(?![\w.-])", r"its \1", stop.condition)


def _told(findings: list[Finding]) -> tuple[str, ...]:
    lines = []
    for finding in findings[:_MOST]:
        cost = f"; {byte_text(finding.bytes)}" if finding.bytes else ""
        if finding.seconds is not None or finding.peak_bytes is not None:
            cost = f"; saves {saving(finding)}, {basis_of(finding)}"
        lines.append(f"{finding.line}: {finding.message}{cost}")
    if len(findings) > _MOST:
        lines.append(f"... and {len(findings) - _MOST:,} more")
    return tuple(lines)
