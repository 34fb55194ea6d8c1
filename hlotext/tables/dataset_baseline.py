"""Findings that a dataset knows, as the linter's baseline."""

from __future__ import annotations

from collections import Counter

from hlotext.lint import Baseline, Entry
from hlotext.syntax.source.inputs import InputError
from hlotext.tables.dataset import MODULES, OK, Dataset

FINDINGS = "findings"


def baseline(url: str, build: str | None = None) -> Baseline:
    """Returns the findings of a build in a dataset as a baseline; None is the newest build.

    Raises InputError if there is no dataset or no such build, or if one of its modules has no table `findings`.
    """
    dataset = Dataset.of(url)
    state = dataset.state()
    newest = max((one.build for one in state.done.values()), default=None)
    build = newest if build is None else build
    inputs = [one for one in state.done.values() if one.build == build and one.status == OK]
    if not inputs:
        raise InputError(
            f"{url} is not a dataset with modules of {f'build {build}' if build else 'any build'}"
        )
    if any(FINDINGS not in one.tables for one in inputs):
        raise InputError(
            f"{url} lacks findings of build {build}: hlotext table --append --tables {FINDINGS} adds them"
        )
    modules = dataset.scan(state, MODULES).to_table(columns=["module", "name", "build"]).to_pylist()
    names = {row["module"]: row["name"] for row in modules if row["build"] == build}
    columns = ["module", "code", "message", "fingerprint", "other_fingerprints"]
    first: dict[str, Entry] = {}
    counts: Counter[str] = Counter()
    for row in dataset.scan(state, FINDINGS).to_table(columns=columns).to_pylist():
        if row["module"] in names:
            for key in (row["fingerprint"], *row["other_fingerprints"]):
                first.setdefault(key, Entry(key, row["code"], 0, names[row["module"]], row["message"]))
                counts[key] += 1
    entries = (Entry(key, one.code, counts[key], one.module, one.message) for key, one in first.items())
    return Baseline(tuple(sorted(entries, key=lambda entry: (entry.code, entry.module, entry.fingerprint))))
