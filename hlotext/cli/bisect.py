"""`hlotext bisect`: which pass, flag or release makes a command fail, by running it again and again."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from hlotext import dumps
from hlotext.cli.common import FORMAT, NotFound, Unreadable, cannot_run, say, timeout_option, write_json
from hlotext.cli.folders import opened
from hlotext.cli.output import output
from hlotext.execution.narrowing import Verdict, first_bad, smallest

_DISABLE = "xla_disable_hlo_passes"


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--passes",
    metavar="DIR",
    help="Find which passes of this dump must be disabled.",
)
@click.option(
    "--flags",
    nargs=2,
    metavar="GOOD BAD",
    help="Find which flags make it fail, given two values of XLA_FLAGS or files with them.",
)
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="VENV",
    help="Virtual environment to test; repeat the option, ordered from good to bad.",
)
@timeout_option(600.0, "per run, in seconds; a timeout counts as a failure.")
@click.argument("arguments", nargs=-1, required=True, metavar="-- COMMAND...")
@FORMAT
def command(
    passes: str | None,
    flags: tuple[str, str] | None,
    pythons: tuple[str, ...],
    timeout: float,
    arguments: tuple[str, ...],
    output_format: str,
) -> None:
    """Find the pass, flag or release of XLA that makes COMMAND fail. COMMAND must recompile and check on every run.

    Exit statuses are those of `git bisect run`: 0 good, 125 skip, anything else bad. Passes and flags are passed in
    XLA_FLAGS, in addition to those set; for environments, {python} in COMMAND is replaced with their Python, which is
    also first in PATH. A combination is reported if no single pass or flag is responsible. `dump bisect` needs no
    COMMAND.

    \b
    Examples:
      hlotext bisect --passes dumps/ -- python check.py
      hlotext bisect --flags good.txt bad.txt -- python check.py
      hlotext bisect --python venv-0.8 --python venv-0.9 --python venv-0.10 -- {python} check.py

    Exit status: 0 found, 1 nothing to find, 2 usage error or unreadable input.
    """
    chosen = [passes is not None, flags is not None, bool(pythons)]
    if sum(chosen) != 1:
        raise click.UsageError("one of --passes, --flags and --python is required")
    trial = _Trial(arguments, timeout)
    if passes is not None:
        what, found = "passes", _passes(passes, trial)
    elif flags is not None:
        what, found = "flags", _flags(flags[0], flags[1], trial)
    else:
        what, found = "environments", _pythons(pythons, trial)
    if output_format == "json":
        write_json({"what": what, "found": found, "runs": trial.runs, "skipped": trial.skipped})
        return
    out = output()
    out.heading(f"{what}: {', '.join(found)}")
    skipped = [("inconclusive", f"{trial.skipped:,} of them")] if trial.skipped else []
    out.facts([("runs", f"{trial.runs:,}"), *skipped])


class _Trial:
    """The command, run in one environment after another."""

    def __init__(self, arguments: Sequence[str], timeout: float) -> None:
        self._arguments = arguments
        self._timeout = timeout
        self.runs = 0
        self.skipped = 0

    def run(self, flags: Sequence[str] = (), python: str | None = None) -> Verdict:
        """The verdict with these flags behind those that are set, and this environment. Raises Unreadable."""
        environment: dict[str, str] = {**os.environ}
        environment["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *flags]).strip()
        words = list(self._arguments)
        if python is not None:
            folder = Path(python) / "bin"
            environment["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
            environment.pop("PYTHONHOME", None)
            words = [word.replace("{python}", str(folder / "python")) for word in words]
        try:
            status = subprocess.run(
                words, env=environment, capture_output=True, timeout=self._timeout, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            status = 1
        except OSError as error:
            raise cannot_run(words[0], error) from None
        verdict = Verdict.of(status)
        self.runs += 1
        self.skipped += verdict is Verdict.SKIP
        said = f"{' '.join(flags)} {python or ''}".strip() or "no flags added"
        say(f"{verdict.value}: {said if len(said) < 120 else said[:120] + '...'}")
        return verdict


def _passes(folder: str, trial: _Trial) -> list[str]:
    names = _names(opened(folder).compilations)
    if not names:
        raise Unreadable(f"{folder} shows no passes: dump with --xla_dump_hlo_pass_re=.*")

    def off(some: Sequence[int]) -> Verdict:
        return trial.run([f"--{_DISABLE}={','.join(names[number] for number in some)}"] if some else [])

    if (found := off(())) is not Verdict.BAD:
        raise NotFound(f"COMMAND is {found.value} with all passes enabled: nothing to find")
    if (found := off(range(len(names)))) is not Verdict.GOOD:
        raise NotFound(
            f"COMMAND is {found.value} with all {len(names)} passes disabled: no pass that can be disabled is at fault"
        )
    return [names[number] for number in smallest(len(names), off, Verdict.GOOD).chosen]


def _names(compilations: Sequence[dumps.Compilation]) -> list[str]:
    """The passes that ran, in their order: by XLA's own list where it is dumped, else by the names of files."""
    found: dict[str, None] = {}
    for one in compilations:
        found.update(dict.fromkeys(run.name for run in one.passes if run.name and run.changed))
        found.update(dict.fromkeys(step.name for step in one.steps if step.is_pass))
    return [name for name in found if name not in ("pipeline-start", "pipeline-end") and "," not in name]


def _flags(good: str, bad: str, trial: _Trial) -> list[str]:
    ours, theirs = _read(good), _read(bad)
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    if not names:
        raise NotFound("the two sets of flags are equal")

    def changed(some: Sequence[int]) -> Verdict:
        mixed = dict(ours)
        for number in some:
            name = names[number]
            mixed.pop(name, None)
            if name in theirs:
                mixed[name] = theirs[name]
        return trial.run([word for words in mixed.values() for word in words])

    if (found := changed(())) is not Verdict.GOOD:
        raise NotFound(f"COMMAND is {found.value} with the flags of GOOD")
    if (found := changed(range(len(names)))) is not Verdict.BAD:
        raise NotFound(f"COMMAND is {found.value} with the flags of BAD")
    chosen = smallest(len(names), changed, Verdict.BAD).chosen
    return [" ".join(theirs.get(names[n], (f"without {' '.join(ours.get(names[n], ()))}",))) for n in chosen]


def _read(text: str) -> Mapping[str, tuple[str, ...]]:
    """Flags by name, as they are typed: of a file, or of the text itself."""
    if os.path.isfile(text):
        try:
            text = Path(text).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Unreadable(f"{text} cannot be read: {error}") from None
    found: dict[str, tuple[str, ...]] = {}
    for word in shlex.split(text, comments=True):
        if not word.startswith("--"):
            neither = "neither a file nor" if word == text else "not"
            raise Unreadable(f"{word} is {neither} a flag (--name=value)")
        name = word.partition("=")[0]
        found[name] = (*found.get(name, ()), word)
    return found


def _pythons(places: Sequence[str], trial: _Trial) -> list[str]:
    for place in places:
        if not (Path(place) / "bin" / "python").exists():
            raise Unreadable(f"{place} is not a Python environment")
    try:
        found = first_bad(list(places), lambda place: trial.run(python=place))
    except ValueError as error:
        raise NotFound(str(error)) from None
    return [places[number] for number in range(found.good + 1, found.bad + 1)]
