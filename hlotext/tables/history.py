"""Costs of the builds of a dataset, one after the other: figures, steps, their causes, and which are accepted.

Figures of HLO are exact, so each change is a step: there is no noise to model. A step that is meant is a line of a
file, `MODULE BUILD METRIC  # why`, as a baseline is one of findings. What is one module over the builds
`hlotext.tables.programs` decides; a module that comes or goes is neither a rise nor a fall.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from hlotext.syntax.source.inputs import InputError
from hlotext.tables import queries, sql
from hlotext.tables.build_steps import AcceptedLine as AcceptedLine
from hlotext.tables.build_steps import BuildStep as BuildStep
from hlotext.tables.build_steps import Coming as Coming
from hlotext.tables.build_steps import Grown as Grown
from hlotext.tables.build_steps import Missing as Missing
from hlotext.tables.build_steps import ModuleHistory as ModuleHistory
from hlotext.tables.build_steps import NewFinding as NewFinding
from hlotext.tables.build_steps import Regression as Regression
from hlotext.tables.dataset import OK, Dataset
from hlotext.tables.figures import FIGURES, MISSING, TABLES
from hlotext.tables.programs import UNTOLD

MOST_OPERATIONS = 10
"""Kinds of operations that are named for one step, besides new collectives."""
ALL = "*"


@attrs.frozen
class History:
    """Builds of a dataset, ordered by name."""

    builds: tuple[str, ...]
    modules: tuple[ModuleHistory, ...]
    steps: tuple[BuildStep, ...]
    """By build, module and figure."""
    unreadable: tuple[tuple[str, str, str], ...]
    """Build, path and cause of inputs without figures."""
    lacking: tuple[str, ...]
    """Tables that were not made of all inputs, so that their figures are not known."""
    comings: tuple[Coming, ...] = ()
    """By build and module."""
    accepted: tuple[AcceptedLine, ...] = ()
    """The lines that accept what is meant."""
    chips: tuple[str, ...] = ()
    """The chips whose least times are told."""
    findings: Mapping[str, Sequence[NewFinding]] = attrs.field(factory=dict)
    """Findings of each module that came or went: errors and warnings first."""
    steps_of: Mapping[tuple[str, str], Sequence[BuildStep]] = attrs.field(init=False, eq=False, repr=False)
    """The steps of each module and figure, by build."""

    @steps_of.default
    def _grouped(self) -> Mapping[tuple[str, str], Sequence[BuildStep]]:
        found: dict[tuple[str, str], list[BuildStep]] = {}
        for one in self.steps:
            found.setdefault((one.module, one.figure), []).append(one)
        return found

    @property
    def missing(self) -> list[Missing]:
        """Modules of earlier builds that the newest one lacks, or may lack, so that their metrics are not compared.

        Without those whose absence is accepted.
        """
        newest = self.builds[-1]
        last = {one.module: one for one in self.comings}
        found = []
        for module in self.modules:
            coming = last.get(module.name)
            is_gone = coming is not None and coming.kind in ("gone", "untold")
            since = coming.build if coming is not None and is_gone else newest
            if newest in module.paths or _reason(self.accepted, module, since, MISSING) is not None:
                continue
            if newest in module.unknown:
                why = f"{module.unknown[newest]} in {newest}"
            elif coming is not None and is_gone:
                ago = "" if since == newest else f" since {since}"
                why = f"not in {newest}{ago}; the last build with it is {coming.before_build}"
            else:
                continue
            found.append(Missing(module.name, since, why))
        return sorted(found, key=lambda one: one.module)

    def regressions(self, figures: Collection[str]) -> list[Regression]:
        """Returns the metrics of modules that are worse in the newest build than in the last good one.

        A build is good in a metric if the value is not above the last good one, or its rise is accepted.
        """
        accepted = {(one.module, one.build, one.figure) for one in self.steps if one.accepted is not None}
        risen = {(one.module, one.build, one.figure) for one in self.steps if one.is_worse}
        found = []
        for module in self.modules:
            for figure in (name for name in FIGURES if name in figures):
                values = module.values[figure]
                good: float | None = None
                good_build = ""
                is_good = True
                for build in (build for build in self.builds if build in values):
                    key = (module.name, build, figure)
                    is_good = (
                        good is None
                        or values[build] <= good
                        or key in accepted
                        or (is_good and key not in risen)
                    )
                    if is_good or good is None:
                        good, good_build = values[build], build
                if not is_good and good is not None and (newest := self.builds[-1]) in values:
                    found.append(Regression(module.name, figure, good_build, good, values[newest]))
        return found

    def findings_since(self, module: str, build: str) -> list[NewFinding]:
        """Returns the findings of a module that appeared after a build, including those that disappeared again."""
        return [one for one in self.findings.get(module, ()) if one.build > build]

    def gone_findings(self, build: str, module: str) -> list[NewFinding]:
        """Returns the findings of a module that disappeared in a build, except those that it has for other arrays."""
        mine = self.findings.get(module, ())
        changed = {(one.code, one.file, one.line) for one in mine if one.build == build}
        return [
            one for one in mine if one.gone_build == build and (one.code, one.file, one.line) not in changed
        ]

    def largest_rise(self, rise: Regression) -> BuildStep | None:
        """Returns the unaccepted change that increased a metric most since the last good build; None if there is none."""
        return max(self.open_rises(rise), key=lambda one: one.value - one.before, default=None)

    def open_rises(self, rise: Regression) -> list[BuildStep]:
        """Returns the unaccepted changes that increased a metric since the last good build, by build."""
        mine = self.steps_of.get((rise.module, rise.figure), ())
        return [one for one in mine if one.is_worse and one.accepted is None and one.build > rise.good_build]


def history(url: str, accepted: Iterable[str] = (), percent: float = 0.0) -> History:
    """Returns the history of the builds in a dataset.

    Args:
        url: A path or URL of a dataset.
        accepted: Lines `MODULE BUILD METRIC`, optionally followed by `#` and a reason. `*` matches anything; MODULE may
            be the name in the header, for all modules that have it. `missing` as METRIC accepts that the build and
            later ones lack the module.
        percent: Changes of at most this many percent are ignored.

    Raises:
        InputError: There is no dataset, or a line of `accepted` is invalid.
        MissingDuckDB: The package `duckdb` is not installed.
    """
    dataset = Dataset.of(url)
    state = dataset.state()
    if not state.done:
        raise InputError(f"{url} is not a dataset with builds")
    read = [one.tables for one in state.done.values() if one.status == OK]
    lacking = tuple(name for name in TABLES if not all(name in tables for tables in read))
    rows = _records(sql.run(queries.query("figures").sql, dataset))
    builds = tuple(sorted({one.build for one in state.done.values()}))
    modules = _modules(rows, _records(sql.run(_PROGRAMS, dataset)), lacking)
    reasons = [_accepted(line) for line in accepted if line.partition("#")[0].strip()]
    given = {"build": None, "percent": percent, "rows": MOST_OPERATIONS}
    slower = _records(sql.run(queries.query("slower").sql, dataset, given))
    grown = _grown(slower)
    kinds = {(row["module"], row["build"]): row["grew"] for row in slower if row["grew"] is not None}
    findings = _findings(dataset) if "findings" not in lacking else {}
    appeared: dict[tuple[str, str], list[NewFinding]] = {}
    for name, each in findings.items():
        for one in each:
            appeared.setdefault((name, one.build), []).append(one)
    unreadable = sorted((one.build, one.path, one.error) for one in state.done.values() if one.status != OK)
    steps = tuple(_steps(builds, modules, grown, kinds, appeared, reasons, percent))
    comings = tuple(_comings(builds, modules, reasons))
    chips = () if "times" in lacking else tuple(row["chip"] for row in _records(sql.run(_CHIPS, dataset)))
    return History(
        builds, modules, steps, tuple(unreadable), lacking, comings, tuple(reasons), chips, findings
    )


def _records(result: sql.Result) -> list[dict[str, Any]]:
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows()]


_CHIPS = "select distinct chip from times order by all"
_PROGRAMS = "select program, name, build, status, why from programs order by all"


def _modules(
    rows: Iterable[Mapping[str, Any]], programs: Iterable[Mapping[str, Any]], lacking: Collection[str]
) -> tuple[ModuleHistory, ...]:
    by: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by.setdefault(row["module"], []).append(row)
    unknown: dict[str, dict[str, str]] = {}
    headers: dict[str, str] = {}
    for row in programs:
        headers[row["program"]] = row["name"]
        if row["status"] != OK:
            why = f"it may be {row['why']}" if row["status"] == UNTOLD else "not readable"
            unknown.setdefault(row["program"], {})[row["build"]] = why
    found = []
    for name, mine in by.items():
        values = {
            figure: {
                row["build"]: row[figure] for row in mine if row[figure] is not None and table not in lacking
            }
            for figure, (_, _, table) in FIGURES.items()
        }
        header = headers[name] if headers[name] != name else ""
        paths = {row["build"]: row["path"] for row in mine}
        found.append(ModuleHistory(name, paths, values, header, unknown.get(name, {})))
    return tuple(found)


def _comings(
    builds: Sequence[str], modules: Iterable[ModuleHistory], reasons: Sequence[AcceptedLine]
) -> list[Coming]:
    """Modules that come and go. A build that may have one says nothing, but for the first in which it cannot be told."""
    found: list[Coming] = []
    for module in modules:
        last = absent = ""
        for build in builds:
            why = module.unknown.get(build)
            if build in module.paths:
                if absent:
                    found.append(Coming(module.name, build, last or absent, "back" if last else "new"))
                last, absent = build, ""
            elif why is None:
                if last and not absent:
                    why = _reason(reasons, module, build, MISSING)
                    found.append(Coming(module.name, build, last, "gone", accepted=why))
                absent = build
            elif why.startswith("it may be"):
                accepted = _reason(reasons, module, build, MISSING)
                found.append(Coming(module.name, build, last, "untold", why, accepted))
                break
    return sorted(found, key=lambda one: (one.build, one.module))


def _grown(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], tuple[Grown, ...]]:
    """Grown operations by module, build and figure."""
    found: dict[tuple[str, str, str], dict[Grown, None]] = {}
    for row in rows:
        if row["operation"] is not None:
            one = Grown(
                row["operation"],
                row["label"],
                row["shape"] or "?",
                int(row["more_bytes"]),
                float(row["more_flops"]),
                row["alike"],
                row["file"],
                row["line"],
                float(row["more_seconds"]),
                row["scope"] or "",
                int(row["more_sent"]),
                row["is_new_collective"],
                int(row["more_held"]),
            )
            found.setdefault((row["module"], row["build"], row["figure"]), {})[one] = None
    return {key: tuple(each) for key, each in found.items()}


_FINDINGS = """
with builds as (
    select program, build, row_number() over (partition by program order by build) as number
    from programs where status = 'ok'
),
keys as (
    select m.program, m.build, f.fingerprint as key from findings f join programs m using (module)
    union
    select m.program, m.build, unnest(f.other_fingerprints) as key from findings f join programs m using (module)
),
-- The builds in a row that have a finding have one difference between their number and that of its own builds.
placed as (
    select k.program, k.key, b.number,
        b.number - row_number() over (partition by k.program, k.key order by b.number) as island
    from keys k join builds b using (program, build)
),
spans as (select program, key, min(number) as first, max(number) as last from placed group by program, key, island)
select b.program as module, if(b.number > 1, b.build, '') as build, coalesce(after.build, '') as gone_build, f.severity,
    f.code, f.message, f.name as instruction, f.file, f.line, if(f.is_held, f.bytes, 0) as held_bytes
from builds b
join programs m on m.program = b.program and m.build = b.build
join findings f using (module)
join spans s on s.program = b.program and s.key = f.fingerprint and s.first = b.number
left join builds after on after.program = b.program and after.number = s.last + 1
where b.number > 1 or after.build is not null
order by f.severity = 'note', f.is_held, f.bytes desc, f.code, f.id
"""
"""Findings of each module, each with the build that has it first, none for what the module's first build has, and the one
that has it no more."""


def _findings(dataset: Dataset) -> dict[str, list[NewFinding]]:
    """Findings that came or went by module."""
    found: dict[str, list[NewFinding]] = {}
    for row in _records(sql.run(_FINDINGS, dataset)):
        one = NewFinding(
            row["severity"],
            row["code"],
            row["message"],
            row["instruction"] or "",
            row["file"],
            row["line"],
            int(row["held_bytes"] or 0),
            row["build"],
            row["gone_build"],
        )
        found.setdefault(row["module"], []).append(one)
    return found


_LINE = re.compile(r"(?P<module>\S+)\s+(?P<build>\S+)\s+(?P<figure>\S+)\s*(?:#\s*(?P<why>.*))?")


def _accepted(line: str) -> AcceptedLine:
    match = _LINE.fullmatch(line.strip())
    if match is None or match["figure"] not in (*FIGURES, MISSING, ALL):
        raise InputError(
            f"expected MODULE BUILD METRIC, where METRIC is {', '.join(FIGURES)}, {MISSING} or *, not {line.strip()}"
        )
    return AcceptedLine(match["module"], match["build"], match["figure"], match["why"] or "")


def _reason(reasons: Sequence[AcceptedLine], module: ModuleHistory, build: str, figure: str) -> str | None:
    """Why it is accepted, as the first line says that fits; None if none does."""
    names = (module.name, module.header_name or module.name)
    return next((one.why for one in reasons for name in names if _fits(one, name, build, figure)), None)


def _fits(line: AcceptedLine, module: str, build: str, figure: str) -> bool:
    return line.module in (ALL, module) and line.build in (ALL, build) and line.figure in (ALL, figure)


def _steps(
    builds: Sequence[str],
    modules: Sequence[ModuleHistory],
    grown: Mapping[tuple[str, str, str], tuple[Grown, ...]],
    kinds: Mapping[tuple[str, str], int],
    appeared: Mapping[tuple[str, str], Sequence[NewFinding]],
    reasons: Sequence[AcceptedLine],
    percent: float,
) -> Iterable[BuildStep]:
    found = []
    for module in modules:
        for figure, values in module.values.items():
            known = [build for build in builds if build in values]
            for old, new in itertools.pairwise(known):
                before, value = float(values[old]), float(values[new])
                if abs(value - before) <= abs(before) * percent / 100:
                    continue
                key = (module.name, new, figure)
                why = _reason(reasons, module, new, figure)
                what = grown.get(key, ()) if value > before else ()
                new_findings = tuple(appeared.get(key[:2], ())) if value > before else ()
                grew = kinds.get(key[:2], 0) if value > before else 0
                one = BuildStep(module.name, new, old, figure, before, value, what, why, new_findings, grew)
                found.append(one)
    return sorted(found, key=lambda one: (one.build, one.module, list(FIGURES).index(one.figure)))
