"""What of one compilation is unknown to hlotext, and how often its answers are those of XLA."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import attrs

import hlotext as hlo
from hlotext import cost, dumps, memory, thunks
from hlotext.dumps.step import UNKNOWN
from hlotext.thunks import compare
from tests import pass_pairs
from tests.xla_release.compiling import FACTS, PLAIN, TEXT

_UNKNOWN_IN_TEXT = {"X201": "opcode", "X203": "attribute"}
"""Notes of the reader on what no row of the tables knows."""


@attrs.frozen
class News:
    """Something that hlotext does not know, or takes otherwise than XLA."""

    kind: str
    """opcode, attribute, note, refused text, printed text, verify, file, pipeline, pass or model."""
    name: str
    where: str
    """The file that shows it."""


@attrs.define
class Survey:
    """The news and the figures of any number of compilations."""

    news: dict[tuple[str, str], News] = attrs.field(factory=dict)
    """By kind and name: the first place of each."""
    scores: dict[str, dict[str, list[int]]] = attrs.field(factory=dict)
    """By program and answer: how often it is XLA's, and how often it was asked."""
    misses: list[tuple[str, str]] = attrs.field(factory=list)
    """(answer, file or pass that shows it) of answers that are not XLA's."""
    passes: set[str] = attrs.field(factory=set)
    program: str = ""
    """The one that is looked through."""

    def add(self, kind: str, name: str, where: str) -> None:
        self.news.setdefault((kind, name), News(kind, name, where))

    def score(self, answer: str, is_right: bool, where: str) -> None:
        if not is_right:
            self.misses.append((answer, f"{self.program}: {where}"))
        row = self.scores.setdefault(self.program, {}).setdefault(answer, [0, 0])
        row[0] += is_right
        row[1] += 1


def total(scores: Mapping[str, Mapping[str, list[int]]], programs: Collection[str]) -> dict[str, list[int]]:
    """By answer: how often it is XLA's and how often it was asked, over some programs."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for program in programs:
        for answer, (right, of) in scores[program].items():
            found[answer][0] += right
            found[answer][1] += of
    return dict(sorted(found.items()))


def survey(folder: Path, found: Survey) -> None:
    """Looks through a folder that `compiling` left: `dump/`, the final HLO, JAX's figures.

    Raises InputError where there is no dump. A question that ends with an exception counts as news, not as an end.
    """
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    found.program = folder.name
    dump = dumps.open(folder / "dump")
    final = _text(folder / TEXT, (folder / TEXT).read_text(encoding="utf-8", errors="surrogateescape"), found)
    for file in dump.files:
        if file.kind == "other":
            found.add("file", Path(file.path).name, file.path)
    if (folder / PLAIN).is_dir():
        for compilation in dumps.open(folder / PLAIN).compilations:
            for step in compilation.steps:
                _text(step.path, step.file.text(), found)
    for compilation in dump.compilations:
        if compilation.last is None:
            continue
        _steps(compilation, facts["jax"], found)
        for question in (_memory, _thunks):
            _guarded(question.__name__.strip("_"), compilation, question, found)
    if final is not None and facts.get("cost"):
        age = next((c.age for c in dump.compilations if c.last is not None), None)
        _cost(final, facts["cost"], facts["platform"], age, found)


def _guarded(
    answer: str,
    compilation: dumps.Compilation,
    question: Callable[[dumps.Compilation], bool | None],
    found: Survey,
) -> None:
    try:
        is_right = question(compilation)
    except Exception as error:  # the survey goes on: what raised is what it is made to find
        found.add("model", f"{answer}: {type(error).__name__}: {error}", compilation.name)
        is_right = False
    if is_right is not None:
        found.score(answer, is_right, compilation.name)


def _text(place: Path | str, text: str, found: Survey) -> hlo.Module | None:
    """A text, read; what is unknown in it, refused of it, or printed otherwise is noted."""
    name = Path(place).name
    result = hlo.parse_tolerant(text)
    for diagnostic in result.diagnostics:
        kind = _UNKNOWN_IN_TEXT.get(diagnostic.code, "note")
        found.add(kind, diagnostic.message, name)
    try:
        module = hlo.parse(text)
    except hlo.HloSyntaxError as error:
        found.score("texts", False, name)
        found.add("refused text", str(error).splitlines()[0], name)
        return None
    errors = [d for d in hlo.verify(module) if d.severity.value == "error"]
    for refused in errors[:1]:
        found.add("verify", f"{refused.code} {refused.message}", name)
    is_same = str(module) == text
    if not is_same:
        found.add("printed text", name, name)
    found.score("texts", is_same and not errors, name)
    return module


def _steps(compilation: dumps.Compilation, release: str, found: Survey) -> None:
    """Every step: its text, its stage, and our counterpart of its pass."""
    before: str | None = None
    has_layouts = False
    for step in compilation.steps:
        text = step.file.text()
        changed = text != before
        if changed:
            _text(step.path, text, found)
        if step.is_pass and step.name not in ("pipeline-start", "pipeline-end"):
            found.passes.add(step.name)
        if step.stage == UNKNOWN:
            found.add("pipeline", f"{step.pipeline}/{step.name}", Path(step.path).name)
        ours = pass_pairs.model(step.name, compilation.platform or "") if step.is_pass else None
        has_layouts = has_layouts or step.name == "layout-assignment"
        if ours is not None and before is not None and changed:
            platform = compilation.platform or ""
            options = pass_pairs.IN_PIPELINE.get((step.name, platform, step.pipeline), "")
            pair = pass_pairs.Pair(
                step.name, platform, compilation.name, has_layouts, before, text, release, options
            )
            try:
                found.score("passes", pair.is_equal(), Path(step.path).name)
            except Exception as error:  # as in _guarded
                found.add("model", f"{ours}: {type(error).__name__}: {error}", Path(step.path).name)
                found.score("passes", False, Path(step.path).name)
        before = text


def _memory(compilation: dumps.Compilation) -> bool | None:
    """Whether places are those of XLA's files; None where there are none."""
    read = compilation.memory
    module = compilation.after
    if read is None or module is None:
        return None
    computed = memory.assign(module, compilation.platform, compilation.chip, age=compilation.age)
    return not any(not d.is_estimated for d in memory.differences(read, computed))


def _thunks(compilation: dumps.Compilation) -> bool | None:
    """Whether the thunks that the text predicts are those that XLA listed as emitted; None where it listed none."""
    module = compilation.after
    files = compilation.files_of("thunk-sequence")
    if not files or module is None:
        return None
    listed = thunks.parse(files[0].text(), files[0].path)
    if not listed.thunks:
        return None
    named = compilation.files_of("thunk-metadata")
    metadata = thunks.parse(named[0].text(), named[0].path).thunks if named else ()
    names = {thunk.number: thunk.name for thunk in metadata if thunk.number and thunk.name}
    predicted = thunks.predict(module, compilation.options, age=compilation.age)
    return not compare.differences(listed, predicted, names)


_FIGURES = {"flops": "flops", "transcendentals": "transcendentals", "bytes accessed": "bytes_accessed"}
"""JAX's name of a figure, and ours."""


def _cost(
    module: hlo.Module,
    wanted: dict[str, float],
    platform: str,
    age: hlo.analysis.XlaAge | None,
    found: Survey,
) -> None:
    """XLA's own figures. TPU's compiler has an analysis of its own, which the open one does not equal."""
    if platform == "tpu":
        return
    analysis = cost.analyze(module, age=age)
    figures = [(wanted.get(theirs, 0.0), getattr(analysis, ours)) for theirs, ours in _FIGURES.items()]
    is_right = all(b is not None and abs(a - b) <= 1e-6 * max(1.0, abs(a)) for a, b in figures)
    found.score("cost", is_right, TEXT)


def by_kind(found: Survey) -> Iterator[tuple[str, list[News]]]:
    """The news in groups."""
    for kind in sorted({news.kind for news in found.news.values()}):
        yield kind, [news for news in found.news.values() if news.kind == kind]
