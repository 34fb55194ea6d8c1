"""Runs the rules over modules, and turns what they report into findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs

from hlotext import proto
from hlotext.analysis import census, other_platform, responsible_frame, responsible_frames
from hlotext.analysis.chips import chip
from hlotext.analysis.origins import is_neighbors
from hlotext.findings.errors import Severity
from hlotext.findings.failures import INTERNAL, NOWHERE, failure
from hlotext.findings.finding import Facts, Finding, FindingList, RepairOutcome
from hlotext.ir import gc_control
from hlotext.ir.errors import UnknownSizeError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect, expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.source import Source, Span
from hlotext.lint.causes import Place, cause_of, merged
from hlotext.lint.checkout import Checkout
from hlotext.lint.config import Config, known_codes
from hlotext.lint.exchange_causes import with_cause
from hlotext.lint.fingerprints import fingerprint, text_fingerprint
from hlotext.lint.helpers import operation
from hlotext.lint.proof import is_avoidable
from hlotext.lint.registry import RuleError, current_code
from hlotext.lint.rule import Context, Report, Rule, make_context
from hlotext.lint.suppress import is_suppressed, notes_on_comments
from hlotext.semantics.assumed_entry import assumed_entry
from hlotext.semantics.infer import infer_shape
from hlotext.syntax.read import read_tolerantly
from hlotext.syntax.source.codes import CODES as SYNTAX_CODES
from hlotext.verify import verify
from hlotext.verify.well_formed import first_error

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation


def run(
    module: Module,
    config: Config | None = None,
    file: str = "<text>",
    compilation: Compilation | None = None,
    *,
    select: str | Sequence[str] | None = None,
) -> list[Finding]:
    """Lints a module and returns the findings, most expensive first.

    A rule that crashes yields one finding with code `X900`, or the verifier's error if the module is invalid. Other
    rules still run.

    Args:
        module: The module.
        config: Rules and thresholds. None (the default) uses the default configuration.
        file: Name of the source in findings, for a module that was not parsed from text. Excerpts are then printed op
            lines.
        compilation: The compilation whose final HLO the module is, from which rules get the causes of collectives.
        select: Codes of rules or prefixes, which replace those selected by the configuration.

    Raises:
        ConfigError: `select` or the configuration names an unknown code, threshold or chip.
        RuleError: A plugin rule or a rule file cannot be used.
    """
    expect_module(module)
    if config is not None:
        expect(config, Config)
    if select is not None:
        config = attrs.evolve(
            config or Config(), select=(select,) if isinstance(select, str) else tuple(select)
        )
    with gc_control.gc_paused(collect_first=False):
        name = module.source.name if module.source is not None else file
        return _run(module, config or Config(), name, compilation)


def _run(module: Module, config: Config, file: str, compilation: Compilation | None) -> list[Finding]:
    checkout = Checkout(config.source_root) if config.source_root is not None else None
    try:
        context = make_context(module, config.profile, checkout, config.chip, config.trips, compilation)
        rules = config.active_rules(context)
    except RuleError:  # a plugin that is no rule fails every file alike
        raise
    except Exception as error:
        return FindingList(_failures([("reading the facts that rules need", error)], module, file))
    found: list[Finding] = []
    failed: list[tuple[str, Exception]] = []
    causes: dict[tuple[object, ...], list[Place]] = {}
    reports = [
        (rule, report, tuple(_subjects(report, context))) for rule, report in _reports(rules, context, failed)
    ]
    said = {(rule.code, subject) for rule, _, subjects in reports for subject in subjects}
    covering = _covering((rule, report) for rule, report, _ in reports)
    for rule, report, subjects in reports:
        if any((current_code(code), subject) in said for code in rule.yields_to for subject in subjects):
            continue
        if report.instruction is not None and any(
            _is_part((rule, report), other, context) for other in covering.get(report.instruction, ())
        ):
            continue
        try:
            report = _caused(rule, report, context)
            finding = _finding(rule, report, context, file)
        except Exception as error:
            failed.append((f"pricing a finding of rule {rule.code}", error))
            continue
        if not _is_ignored(finding, config, module.source):
            causes.setdefault(cause_of(report, finding), []).append((rule, report, finding))
    for places in causes.values():
        if (whole := merged(places, config, context)) is not None:
            found.append(_with_outcome(whole, places, context) if config.what_if else whole)
    if any(code.startswith("V") for code in (*(config.select or ()), *config.extend_select)):
        found += _verify(module, config, file)
    found += _failures(failed, module, file)
    return FindingList(sorted(found, key=_dearest_first))


_Reported = tuple[Rule, Report]


def _covering(reports: Iterable[_Reported]) -> dict[Instruction, list[_Reported]]:
    """The reports that include the cost of an instruction."""
    found: dict[Instruction, list[_Reported]] = {}
    for rule, report in reports:
        for one in report.covers:
            found.setdefault(one, []).append((rule, report))
    return found


def _is_part(one: _Reported, other: _Reported, context: Context) -> bool:
    """True if all that a report is about is included in another: a saving that is proved in none that is not, except that of
    copies, which serve what goes."""
    (rule, report), (_, whole) = one, other
    named = (part[0] if isinstance(part, tuple) else part for part in report.spares)
    about = {report.instruction, *report.covers, *named}
    if report is whole or not whole.covers >= about or report.covers == whole.covers:
        return False
    is_copy = (report.waste or rule.waste) == "copied"
    return is_copy or is_avoidable(*other, context) or not is_avoidable(*one, context)


def _with_outcome(whole: Finding, places: Iterable[Place], context: Context) -> Finding:
    """The finding of a cause with the outcome of its repairs, in all its places together."""
    repairs = [report.repair for rule, report, _ in places if rule.code == whole.code and report.repair]
    if not repairs:
        return attrs.evolve(
            whole, what_if=RepairOutcome("", _NO_EDIT, context.prices.step, None, context.peak, None)
        )
    from hlotext.lint.repairing import tried

    return attrs.evolve(whole, what_if=tried(repairs, context))


_NO_EDIT = "hlotext cannot apply this repair to the text; change the program and recompile it"
"""The reason why a finding has no repair: its rule has none, or only for simpler forms."""


def _caused(rule: Rule, report: Report, context: Context) -> Report:
    """The report of a collective with its cause, where the dump folder tells it and the rule does not."""
    is_exchange = (report.waste or rule.waste) == "sent" and report.instruction in context.communication_of
    if context.compilation is None or rule.names_cause or not is_exchange:
        return report
    return with_cause(report, context)


def _dearest_first(finding: Finding) -> tuple[bool, float, int, int, str]:
    return (
        finding.severity is not Severity.ERROR, -finding.share, finding.line, finding.column, finding.code
    )  # fmt: skip


def _in_all_rounds(report: Report, context: Context) -> Report:
    """The report with bytes and operations of as many rounds as its seconds are for; memory that is held counts once."""
    one = report.instruction
    if one is None or (report.bytes is None and report.flops is None):
        return report
    bytes_, flops = (
        None if count is None else context.in_all_rounds(count, one) for count in (report.bytes, report.flops)
    )
    return attrs.evolve(report, bytes=report.bytes if report.is_held else bytes_, flops=flops)


def _priced(rule: Rule, report: Report, context: Context) -> tuple[float | None, int | None]:
    """Cost of a report in seconds and bytes of the peak: its own figures, else those of its instruction."""
    saved = report.peak_bytes
    if saved is None and report.spares:
        saved = context.saved_peak(report.spares)
    if report.seconds is not None or saved is not None or not (report.waste or rule.waste):
        return report.seconds, saved
    if report.is_held:
        return None, report.bytes
    if report.bytes is None and report.flops is None:
        return None, None
    rates = context.prices.chip.rates
    most = context.prices.seconds(report.instruction) if report.instruction is not None else 0.0
    if most or report.instruction in context.communication_of:
        return most, None
    peak, bandwidth = rates.peak("bf16"), rates.bandwidth
    by_flops = report.flops / peak.value if report.flops and peak is not None else 0.0
    by_bytes = report.bytes / bandwidth.value if report.bytes and bandwidth is not None else 0.0
    return max(by_flops, by_bytes), None


def _subjects(report: Report, context: Context) -> Iterator[object]:
    """Yields the subjects of a report: its instruction, and for a collective the part of the program that needs it, by
    operation and by Python line.
    """
    yield report.instruction
    one = context.communication_of.get(report.instruction) if report.instruction is not None else None
    if one is not None:
        if name := operation(one.start):
            yield one.kind, name
        if (frame := responsible_frame(one.start)) is not None:
            yield frame.file, frame.line


@attrs.frozen
class Linted:
    """Result of linting one text: its findings, and the numbers of modules and instructions."""

    findings: tuple[Finding, ...]
    modules: int
    """Number of modules read."""
    instructions: int
    loop_bodies: frozenset[str] = frozenset()
    """Names of loops and loop bodies, for which `Config.trips` may give trip counts."""
    notes: tuple[str, ...] = ()
    """Notes on modules without ENTRY (`assumed_entry`), and on comments that hide no finding."""

    @property
    def has_failed(self) -> bool:
        """True if a rule crashed."""
        return any(finding.code == INTERNAL for finding in self.findings)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return FindingList(self.findings)._repr_mimebundle_()


def lint_source(
    source: Source, config: Config | None = None, compilation: Compilation | None = None
) -> Linted:
    """Lints HLO text of one or more modules, including its syntax (codes X).

    If there are syntax errors, only these are reported, since rules cannot judge an incomplete module. `config` and
    `compilation` are as in `run`. Raises the errors of `run`, none of which depend on the text.
    """
    config = config or Config()
    result = read_tolerantly(source, infer_shape)
    found: list[Finding] = []
    for diagnostic in result.diagnostics:
        is_error = diagnostic.severity is Severity.ERROR
        if config.is_selected(diagnostic.code, True) or is_error:
            finding = _adopted(diagnostic, SYNTAX_CODES.get(diagnostic.code, diagnostic.code))
            if is_error or not _is_ignored(finding, config, source):
                found.append(finding)
    if any(diagnostic.severity is Severity.ERROR for diagnostic in result.diagnostics):
        return Linted(tuple(found), 0, 0)
    for module in result.modules:
        found += run(module, config, compilation=compilation)
    instructions = sum(len(c) for m in result.modules for c in m.computations)
    notes = (
        *filter(None, map(assumed_entry, result.modules)),
        *_other_platforms(result.modules, config),
        *notes_on_comments(source, known_codes(config)),
    )
    return Linted(tuple(found), len(result.modules), instructions, _loop_bodies(result.modules), notes)


def _other_platforms(modules: Iterable[Module], config: Config) -> Iterator[str]:
    """Notes on modules of another platform than the configured chip's."""
    if config.chip:
        yield from dict.fromkeys(filter(None, (other_platform(one, chip(config.chip)) for one in modules)))


def loop_bodies(source: Source) -> frozenset[str]:
    """Returns the names of the loops and loop bodies of a text, as far as it can be read."""
    return _loop_bodies(read_tolerantly(source, infer_shape).modules)


def _loop_bodies(modules: Iterable[Module]) -> frozenset[str]:
    loops = [one for module in modules for one in census(module).by_opcode.get("while", ())]
    bodies = (one.attributes.get("body") for one in loops)
    return frozenset(
        (*(one.name for one in loops), *(str(body.name) for body in bodies if isinstance(body, Computation)))
    )


def lint_proto(data: bytes, name: str, config: Config | None = None) -> Linted:
    """Lints a proto of one or several modules as if it were their text.

    A damaged proto gives one finding of code `X101`, whose message has the path and the byte of the damage.

    Raises:
        MissingProtobuf: (an ImportError) without protobuf.
    """
    config = config or Config()
    found: list[Finding] = []
    instructions = 0
    try:
        modules = proto.read_modules(data, name)
        for module in modules:
            found += run(module, config, name)
            instructions += sum(map(len, module.computations))
    except proto.ProtoError as error:
        damage = attrs.evolve(error.diagnostic, span=NOWHERE, source=Source("", name))
        return Linted((_adopted(damage, SYNTAX_CODES[damage.code]),), 0, 0)
    return Linted(tuple(found), len(modules), instructions, _loop_bodies(modules))


def _reports(
    rules: Iterable[Rule], context: Context, failed: list[tuple[str, Exception]]
) -> Iterator[tuple[Rule, Report]]:
    """Yields reports: each rule's on the instructions of its opcodes, then on the module."""
    by_opcode = context.census.by_opcode
    for rule in rules:
        try:
            for instruction in chain.from_iterable(by_opcode.get(opcode, ()) for opcode in rule.opcodes):
                for report in rule.check(instruction, context):
                    yield rule, report
            for report in rule.check_module(context):
                yield rule, report
        except UnknownSizeError:  # no compiler takes it so, and what a repair would save cannot be told
            continue
        except Exception as error:
            failed.append((f"rule {rule.code}", error))


def _adopted(finding: Finding, rule: str, module: str = "") -> Finding:
    """Converts a finding of a reader or the verifier to one of the linter."""
    instruction = finding.instruction
    return attrs.evolve(
        finding,
        rule=rule,
        module=module,
        frame=instruction.innermost_frame if instruction is not None else None,
        fingerprint=text_fingerprint(finding.code, finding.message),
    )


def _failures(failed: list[tuple[str, Exception]], module: Module, file: str) -> list[Finding]:
    """Findings of what raised an error: rules take for granted what the verifier checks, so of an ill-formed module the
    verifier's error is reported, and which rules were not checked.
    """
    if failed and (wrong := first_error(module)) is not None:
        unchecked = ", ".join(dict.fromkeys(what for what, _ in failed))
        note = f"not checked, since the module is ill-formed: {unchecked}"
        adopted = _shown(_adopted(wrong, "verify", module.name), module, file)
        return [attrs.evolve(adopted, help=f"{adopted.help}; {note}" if adopted.help else note)]
    return [_failure(what, error, module.name, file) for what, error in failed]


def _failure(what: str, error: Exception, module: str, file: str) -> Finding:
    return attrs.evolve(
        failure(what, error, module=module), fingerprint=text_fingerprint(INTERNAL, what), facts=Facts(file)
    )


def _finding(rule: Rule, report: Report, context: Context, file: str) -> Finding:
    module, instruction = context.module, report.instruction
    origin = report.origin or instruction
    report = _in_all_rounds(report, context)
    seconds, peak_bytes = _priced(rule, report, context)
    source = module.source
    span = instruction.span if instruction is not None else _header_span(module)
    if span is None and instruction is not None:
        # It was built or edited, or read from a proto: what is shown is the line as it prints now.
        source = Source(str(instruction), file)
    elif source is None:
        source = Source(f"HloModule {module.name}", file)
    return Finding(
        rule.code,
        rule.severity,
        report.message,
        NOWHERE if span is None else span,
        report.help,
        source=source,
        instruction=instruction,
        rule=rule.name,
        module=module.name,
        frame=responsible_frame(origin) if origin is not None else None,
        is_frame_near=origin is not None and is_neighbors(origin),
        checkout=context.checkout.place(responsible_frames(origin) if origin is not None else ())
        if context.checkout is not None
        else None,
        bytes=report.bytes,
        flops=report.flops,
        waste=report.waste or rule.waste,
        seconds=seconds,
        peak_bytes=peak_bytes,
        is_at_most=report.is_at_most,
        fix=rule.fix,
        is_held=report.is_held,
        fingerprint=fingerprint(rule.code, report, context),
        former_fingerprints=tuple(fingerprint(code, report, context) for code in rule.former),
    )


def _header_span(module: Module) -> Span | None:
    source = module.source
    if source is None:
        return None
    start = module.start
    name = source.text.find(module.name, start, start + 400)
    return source.span(start, name + len(module.name) if name >= 0 else start)


def _is_ignored(finding: Finding, config: Config, source: Source | None) -> bool:
    return (
        config.is_ignored_in(finding.code, finding.file)
        or (bool(finding.op_name) and config.is_ignored_for(finding.code, finding.op_name))
        or is_suppressed(finding.code, finding.instruction, source, finding.span.start)
    )


def _verify(module: Module, config: Config, file: str) -> Iterator[Finding]:
    for diagnostic in verify(module):
        if config.is_selected(diagnostic.code, False):
            finding = _shown(_adopted(diagnostic, "verify", module.name), module, file)
            if not _is_ignored(finding, config, module.source):
                yield finding


def _shown(finding: Finding, module: Module, file: str) -> Finding:
    """The finding with a source: the op line as it prints, where the module was read from no text."""
    if finding.source is not None:
        return finding
    line = f"HloModule {module.name}" if finding.instruction is None else str(finding.instruction)
    return attrs.evolve(finding, source=Source(line, file))


def failed_file(file: str, error: Exception) -> Linted:
    """Returns the result for a text for which reading or a rule raised an exception."""
    return Linted((_failure("reading and linting this file", error, "", file),), 0, 0)
