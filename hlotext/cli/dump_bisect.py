"""`hlotext dump bisect`: the first pass behind which a module computes something else."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import click

from hlotext import diff, dumps
from hlotext.analysis import SourceLocations
from hlotext.analysis.formatting import pluralize
from hlotext.cli.common import FORMAT, Unreadable, limit_option, not_found, say, timeout_option, write_json
from hlotext.cli.folders import opened
from hlotext.cli.listing import Listing, Row
from hlotext.cli.output import WorkBar, output
from hlotext.diff.changes import CHANGED, Change
from hlotext.execution import NotExecutable, narrow_types, smallest_difference
from hlotext.findings.errors import HloSyntaxError, brief
from hlotext.ir.files import write_text
from hlotext.ir.tables import traits
from hlotext.syntax.source.inputs import InputError

_RTOL = 0.01
_FOUND = 1
_ROWS = 40
_NOISE = 1e-6
"""Relative differences that another order of sums makes in f32."""
_JUMP = 30
_CHANGES = 4
"""Operations that are told; more are counted."""
_SHOWN = ("wrong", "precision", "not run")


@click.command("bisect")
@click.argument("path", metavar="DIR")
@click.option(
    "-m", "--module", metavar="NAME|NUMBER", help="Compilation to use, if there are several.  [default: all]"
)
@click.option(
    "--rtol",
    type=click.FloatRange(min=0),
    help="Relative tolerance per element.  [default: 0.01, or 0.001 if no float is narrower than f32]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random arguments.")
@timeout_option(120.0, "per module, in seconds.")
@click.option(
    "--reduce",
    "target",
    metavar="DIR2",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the smallest pair of modules that still differ to this folder, right.txt and wrong.txt.",
)
@limit_option(_ROWS)
@FORMAT
def command(
    path: str,
    module: str | None,
    rtol: float | None,
    seed: int,
    timeout: float,
    target: Path | None,
    limit: int,
    output_format: str,
) -> None:
    """Find the first pass that changes results. Needs hlotext[jax].

    Each distinct module runs on jaxlib's CPU client with the same random arguments, in a child process; modules for
    several devices run as replicas. A step that only drops precision is recognized by running it with wide floats.
    Dump with --xla_dump_hlo_pass_re=.* --xla_dump_large_constants=true: a module with elided constants cannot run.

    \b
    Examples:
      hlotext dump bisect dumps/
      hlotext dump bisect dumps/ -m jit_step --seed 7
      hlotext dump bisect dumps/ --reduce fault && hlotext run fault/right.txt --against fault/wrong.txt

    Exit status: 0 no difference, 1 a pass is at fault, 2 unreadable input, or fewer than two modules ran.
    """
    folder = opened(path)
    total = sum(len(one.steps) for one in folder.compilations)
    try:
        with WorkBar("running texts", total) as bar:
            steps = bar.each(iter(range(total)))
            found = dumps.bisect(
                folder,
                rtol,
                seed,
                module=module,
                timeout=timeout,
                progress=lambda _: _one_more(steps),
            )
    except (NotExecutable, InputError, HloSyntaxError) as error:
        raise Unreadable(brief(error)) from None
    except LookupError as error:
        raise not_found(error) from None
    if output_format == "json":
        write_json(_json(found))
    else:
        _show(found, limit)
    if target is not None:
        _reduce(found, target, rtol, timeout)
    if not found.is_clean:
        raise click.exceptions.Exit(_FOUND)
    if found.ran < 2:
        raise Unreadable(f"{pluralize(found.ran, 'text')} of {found.distinct} ran: no verdict")


def _reduce(found: dumps.Bisection, target: Path, rtol: float | None, timeout: float) -> None:
    """Writes the smallest pair of texts that differs; says why where there is none."""
    steps = _pair(found)
    if steps is None:
        say("nothing written: no pair of modules differs")
        return
    right, wrong = steps
    if rtol is None:
        far = found.tried[found.compilation.steps.index(wrong)].difference
        rtol = min(_RTOL, (far or 0.0) / 2)
    try:
        pair = smallest_difference(
            right.module, wrong.module, rtol=rtol, timeout=timeout, progress=lambda left: say(_left(left))
        )
    except NotExecutable as error:
        say(f"nothing written: {error}")
        return
    target.mkdir(parents=True, exist_ok=True)
    for name, module in (("right.txt", pair.before), ("wrong.txt", pair.after)):
        write_text(target / name, str(module))
    seed = f" --seed {pair.seed}" if pair.seed else ""
    say(
        f"{pair.name} differs by {pair.difference:.2g}: "
        f"hlotext run {target / 'right.txt'} --against {target / 'wrong.txt'}{seed}"
    )


def _left(instructions: int) -> str:
    return f"reducing: {pluralize(instructions, 'instruction')} left in both modules"


def _pair(found: dumps.Bisection) -> tuple[dumps.Step, dumps.Step] | None:
    """The first wrong text and the last right one before it, also where later texts are right again."""
    name = found.first or next(iter(found.transient), None)
    right = None
    for step, one in zip(found.compilation.steps, found.tried, strict=True):
        if one.file == name:
            return (right, step) if right is not None else None
        if one.state in ("good", "precision"):
            right = step
    return None


def _one_more(steps: Iterator[int]) -> None:
    """Moves the bar on."""
    next(steps, None)


def _show(found: dumps.Bisection, limit: int) -> None:
    out = output()
    out.heading(f"{found.compilation.name}: {_verdict(found)}")
    facts = [("ran", f"{found.ran:,} of {pluralize(found.distinct, 'distinct text')}")]
    if found.first is not None:
        facts += [("first wrong", found.first), ("last right", found.good or "none")]
        facts += [("may be", name) for name in found.between]
    facts += [("temporarily wrong", name) for name in found.transient]
    facts += [("drops precision", name) for name in found.precision]
    pair = _pair(found)
    if pair is not None:
        facts += [("changed there", text) for text in _changes(*pair)]
        facts.append(("operations", shlex.join(["hlotext", "diff", "--full", *(step.path for step in pair)])))
    out.facts(facts)
    rows = [one for one in found.tried if one.is_new and one.state in _SHOWN]
    title = "Modules that are wrong, lose precision or did not run"
    out.table(Listing("dump.tried", _tried).table(title, rows, limit))


def _changes(right: dumps.Step, wrong: dumps.Step) -> list[str]:
    """The operations that the step changed, if they are few: any of them may be the fault."""
    try:
        changes = [one for one in diff.compare(right, wrong).changes if _may_compute(one)]
    except (InputError, HloSyntaxError):
        return []
    if len(changes) > _CHANGES:
        return [f"{len(changes):,} changed operations; --reduce finds the one at fault"]
    places = SourceLocations()
    told = []
    for change in changes:
        assert change.node is not None
        place = places.place(change.node)
        parts = "; ".join(map(str, change.parts))
        where = f" in {change.computation}" if change.computation else ""
        line = f", at {place.file}:{place.line}" if place is not None else ""
        told.append(
            f"{change.kind}: {change.name} ({change.opcode}){where}{f', {parts}' if parts else ''}{line}"
        )
    return told


def _may_compute(change: Change) -> bool:
    """False for what changes no value: the header, layouts, copies."""
    if change.node is None:
        return False
    if change.kind == CHANGED:
        return any(part.name != "layout" for part in change.parts)
    return change.opcode not in traits.COPIES


def _tried(one: dumps.Tried) -> Row:
    return one.state, None if one.difference is None else f"{one.difference:.2g}", one.file, one.why


def _pass(found: dumps.Bisection, name: str | None) -> str | None:
    """The pass, with its pipeline, that the file of this name is the text after."""
    pairs = zip(found.compilation.steps, found.tried, strict=True)
    return next((_where(step) for step, one in pairs if one.file == name), None)


def _where(step: dumps.Step) -> str:
    return f"{step.pipeline}/{step.name}" if step.is_pass else step.name


def _verdict(found: dumps.Bisection) -> str:
    if found.first is not None:
        return f"results differ from {_pass(found, found.first)} on" + (
            f", or one of {pluralize(len(found.between), 'text')} before it that do not run"
            if found.between
            else ""
        )
    if found.ran < 2:
        return "unknown: fewer than two modules ran"
    if found.transient:
        where = _pass(found, found.transient[0])
        return f"results differ from {where} on, but the last module's results are correct again"
    largest = max(found.tried, key=lambda one: one.difference or 0.0)
    unknown = _unknown(found)
    if not largest.difference:
        return f"all modules that ran compute the same results{unknown}"
    return (
        f"all modules that ran agree within --rtol: at most {largest.difference:.2g} apart, in"
        f" {largest.file}{_jump(found, largest)}{unknown}"
    )


def _jump(found: dumps.Bisection, largest: dumps.Tried) -> str:
    """A remark where the texts before the one that is farthest off were much nearer, though no float is narrow."""
    before = [one.difference or 0.0 for one in found.tried[: found.tried.index(largest)]]
    usual = max([_NOISE, *before])
    step = found.compilation.steps[found.tried.index(largest)]
    if (largest.difference or 0.0) < _JUMP * usual or narrow_types(step.module):
        return ""
    return f"; texts before it are at most {usual:.1g} apart, which suggests a small error (try --rtol {10 * usual:.0e})"


def _unknown(found: dumps.Bisection) -> str:
    """A remark on the texts at the end of which none ran."""
    count = 0
    for one in reversed(found.tried):
        if one.state != "not run":
            break
        count += 1
    if not count:
        return ""
    first = found.tried[-count]
    return (
        f"; unknown from {first.file} to the end because {pluralize(count, 'text')} did not run: {first.why}"
    )


def _json(found: dumps.Bisection) -> dict[str, Any]:
    return {
        "module": found.compilation.name,
        "first": found.first,
        "pass": _pass(found, found.first),
        "good": found.good,
        "between": list(found.between),
        "transient": list(found.transient),
        "precision": list(found.precision),
        "ran": found.ran,
        "distinct": found.distinct,
        "steps": [
            {**attrs.asdict(one), "pass": _where(step), "difference": _number(one.difference)}
            for one, step in zip(found.tried, found.compilation.steps, strict=True)
        ],
    }


def _number(difference: float | None) -> float | str | None:
    """JSON has no infinity."""
    return "infinite" if difference == float("inf") else difference
