"""How often passes do what XLA's of the same work do, on steps that XLA recorded.

    python -m tests.pass_pairs FOLDER                   measures all, writes hlotext/rewrite/passes/agreement.py; what it says
                                                        of the other release stays
    python -m tests.pass_pairs FOLDER --sample          keeps the shortest pairs in a file, for the tests
    python -m tests.pass_pairs FOLDER [--sample] --only PASS,PASS     does so for these passes of ours, and keeps the rest

FOLDER holds one folder per pass of XLA, in it NNN.before.txt and NNN.after.txt, and index.json: for each pair its pass,
platform and program; without "after" XLA changed nothing. A pair is equal where both modules are the same graph: names,
numbers, metadata and the order of unscheduled lines do not count.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import lzma
import re
import sys
from collections import defaultdict
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import attrs

import hlotext as hlo
from hlotext.rewrite import Pipeline, parse_passes
from hlotext.rewrite.passes import all_passes
from hlotext.rewrite.passes.agreement import AGREEMENT, DATE, NEWEST, NEWEST_AGREEMENT, NEWEST_DATE, Agreement
from tests.support import ROOT

MODELS = {
    "CallInliner": "call-inliner",
    "adding_copies_to_resolve_interference": "copy-insertion-adding",
    "adding_special-case_copies": "copy-insertion-special",
    "algsimp": "algsimp",
    "all-reduce-promotion": "all-reduce-promotion",
    "all_to_all_decomposer": "all-to-all-decomposer",
    "async-collective-creator": "async-collective-creator",
    "batched_gather_scatter_normalizer": "batched-gather-scatter-normalizer",
    "call-inliner": "call-inliner",
    "comparison-expander": "comparison-expander",
    "computation-deduplicator": "computation-deduplicator",
    "conditional-canonicalizer": "conditional-canonicalizer",
    "constant_folding": "constant-folding",
    "convert-mover": "convert-mover",
    "cse": "cse",
    "cse_barrier_expander": "cse-barrier-expander",
    "dce": "dce",
    "dot_decomposer": "dot-decomposer",
    "dynamic-dimension-simplifier": "dynamic-dimension-simplifier",
    "flatten-call-graph": "flatten-call-graph",
    "float-normalization-bf16": "float-normalization",
    "fusion-wrapper": "fusion-wrapper",
    "gather_simplifier": "gather-simplifier",
    "gpu-convert-async-collectives-to-sync": "gpu-convert-async-collectives-to-sync",
    "hlo-constant-splitter": "hlo-constant-splitter",
    "hlo-module-dce": "hlo-module-dce",
    "layout_normalization": "layout-normalization",
    "map-inline": "map-inline",
    "post-scheduling-copies": "post-scheduling-copies",
    "removing_unnecessary_copies": "copy-insertion-removing",
    "rename-instructions": "rename-instructions",
    "rename_fusions": "rename-fusions",
    "reshape-decomposer": "reshape-decomposer",
    "reshape-mover": "reshape-mover",
    "root-instruction-sinker": "root-instruction-sinker",
    "scatter_simplifier": "scatter-simplifier",
    "select_and_scatter_expander": "select-and-scatter-expander",
    "sharding-remover": "sharding-remover",
    "simplify-fp-conversions": "simplify-fp-conversions",
    "simplify-while-loops": "simplify-while-loops",
    "sort-iota-fusion": "sort-iota-fusion",
    "stable-sort-expander": "stable-sort-expander",
    "topk-decomposer": "topk-decomposer",
    "transpose-folding": "transpose-folding",
    "tree_reduction_rewriter": "tree-reduction-rewriter",
    "tuple-simplifier": "tuple-simplifier",
    "while-loop-constant-sinking": "while-loop-constant-sinking",
    "while-loop-invariant-code-motion": "while-loop-invariant-code-motion",
}
"""XLA's name of a pass -> ours."""
ON_PLATFORM: dict[tuple[str, str], str] = {
    ("fusion", "cpu"): "cpu-fusion",
    ("layout-assignment", "cpu"): "cpu-layout-assignment",
}
"""XLA's name of a pass and a platform -> ours, where each platform has a pass of its own or one of them alone a model."""
WITHOUT_LAYOUTS = {"cse": ("is_layout_sensitive=false",)}
"""Options of a pass before layouts are assigned, when XLA looks at none."""
IN_PIPELINE = {
    ("call-inliner", "cpu", "HLO_passes_through_layout_assignment"): "single_call_site=true",
    (
        "computation-deduplicator",
        "gpu",
        "post-fusion-simplification-pipeline_optimization",
    ): "mark_fusion_duplications=true",
}
"""What XLA asks of a pass on a platform in a pipeline, as options of ours (`CpuCompiler::RunHloPassesThroughLayoutAssn`,
`RunFusionPasses` of the GPU compiler)."""
NAMED = frozenset({"rename-fusions", "rename-instructions"})
"""Passes that change nothing but names: their pairs are equal where names are too, but for the numbers at their ends. These
XLA gives in the order of its vectors, and past names that went before, of which the text tells neither."""
IGNORED = frozenset(
    {"metadata", "origin", "statistics", "original_value", "stack_frame_id", "control-predecessors"}
)
TABLE = ROOT / "hlotext" / "rewrite" / "passes" / "agreement.py"
SAMPLE = ROOT / "tests" / "data" / "passes_pairs.json.xz"
LONGEST = 8_000
NUMBER = re.compile(r"\.(0|[1-9][0-9]*)$")


def model(name: str, platform: str) -> str | None:
    """Ours for a pass of XLA's on a platform; None where there is none."""
    return ON_PLATFORM.get((name, platform), MODELS.get(name))


@attrs.frozen
class Pair:
    """What a pass of XLA was given, and what it made of that."""

    name: str
    """XLA's name of the pass."""
    platform: str
    program: str
    has_layouts: bool
    before: str
    after: str | None
    """None: XLA changed nothing."""
    release: str = "0.10.2"
    """The jaxlib that wrote it."""
    options: str = ""
    """What XLA's pass was asked for, as options of ours."""

    @property
    def passes(self) -> str:
        """What of ours does the work, as XLA of that release does it."""
        ours = model(self.name, self.platform) or ""
        options = [self.options] if self.options else []
        if not self.has_layouts:
            options += WITHOUT_LAYOUTS.get(ours, ())
        (one,) = parse_passes(
            f"{ours}{{{','.join(options)}}}" if options else ours, self.platform, self.release
        )
        return str(one)

    def is_equal(self) -> bool:
        """Whether ours leaves what XLA's left."""
        module = hlo.parse(self.before)
        Pipeline(parse_passes(self.passes), verify=False).run(module)
        wanted = hlo.parse(self.before if self.after is None else self.after)
        if Prints(module).whole() != Prints(wanted).whole():
            return False
        return self.passes not in NAMED or names_of(module) == names_of(wanted)


def names_of(module: hlo.Module) -> list[str]:
    """The names of computations and instructions in the order of the text, without the numbers at their ends."""
    found = [name for c in module.computations for name in (c.name, *(i.name for i in c))]
    return [NUMBER.sub("", name) for name in found]


class Prints:
    """Fingerprints of computations that do not depend on names or on the order of the lines."""

    def __init__(self, module: hlo.Module) -> None:
        self.module = module
        self.known: dict[hlo.Computation, str] = {}

    def whole(self) -> tuple[str, list[str]]:
        """Of the entry, and of all computations."""
        own = [self.of(c) for c in self.module.computations if not c.is_fusion_body]
        return self.of(self.module.entry), sorted(own)

    def of(self, computation: hlo.Computation) -> str:
        if computation not in self.known:
            prints: dict[hlo.Instruction, str] = {}
            for i in _operands_first(computation):
                own = [f"{k}={self._text(v)}" for k, v in sorted(i.attributes.items()) if k not in IGNORED]
                payload = str(i.literal) if i.opcode == "constant" else i.parameter_number
                waits = sorted(prints[p] for p in i.control_predecessors)
                operands = [prints[o] for o in i.operands]
                prints[i] = _hash(i.opcode, i.shape, payload, *own, "|", *operands, "|", *waits)
            self.known[computation] = _hash(prints[computation.root], *sorted(prints.values()))
        return self.known[computation]

    def _text(self, value: Any) -> str:
        if isinstance(value, hlo.Computation):
            return self.of(value)
        if isinstance(value, (tuple, list)):
            return "(" + ",".join(map(self._text, value)) + ")"
        return "".join(str(value).split())


def _hash(*parts: object) -> str:
    return hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=12).hexdigest()


def _operands_first(computation: hlo.Computation) -> list[hlo.Instruction]:
    found: dict[hlo.Instruction, None] = {}
    pending = [*reversed(computation.instructions)]
    while pending:
        i = pending[-1]
        needed = [o for o in (*i.operands, *i.control_predecessors) if o not in found]
        if needed and i not in found:
            pending += needed
        else:
            found[pending.pop()] = None
    return list(found)


def pairs_of(folder: Path, only: Container[str] | None = None) -> Iterator[Pair]:
    """The pairs of a folder whose pass has a counterpart here; with `only` one of these."""
    for row in json.loads((folder / "index.json").read_text()):
        ours = model(row["pass"], row["platform"])
        if ours is not None and not row.get("no model") and (only is None or ours in only):
            after = (folder / row["after"]).read_text() if row.get("after") else None
            has_layouts = row.get("layouts", True)
            before = (folder / row["before"]).read_text()
            release, options = row.get("xla", "0.10.2"), row.get("options", "")
            yield Pair(
                row["pass"], row["platform"], row["program"], has_layouts, before, after, release, options
            )


def sampled() -> list[Pair]:
    """The pairs that the tests run."""
    return [Pair(**row) for row in json.loads(lzma.decompress(SAMPLE.read_bytes()))]


def measure(folder: Path, only: Container[str] | None = None) -> None:
    """Runs every pair, and writes the table."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    release = ""
    for pair in pairs_of(folder, only):
        release = pair.release
        place = 0 if pair.after is not None else 2
        row = counts[model(pair.name, pair.platform) or ""]
        row[place] += 1
        try:
            row[place + 1] += pair.is_equal()
        except Exception as error:
            print(
                f"{pair.name} {pair.platform} {pair.program}: {type(error).__name__}: {error}",
                file=sys.stderr,
            )
    write(release, counts, only)


def write(release: str, counts: dict[str, list[int]], only: Container[str] | None = None) -> None:
    """Writes the table of a release anew; with `only` some rows of it."""
    names: dict[str, list[str]] = defaultdict(list)
    for theirs, ours in (*MODELS.items(), *((name, ours) for (name, _), ours in ON_PLATFORM.items())):
        if theirs not in names[ours]:
            names[ours].append(theirs)
    today = datetime.date.today().isoformat()
    is_newest = release == NEWEST
    known = NEWEST_AGREEMENT if is_newest else AGREEMENT
    found = {
        ours: Agreement(", ".join(names[ours]), *row)
        for ours, row in counts.items()
        if only is None or ours in only
    }
    table = {**(known if only is not None else {}), **found}
    head = TABLE.read_text("utf-8").partition("DATE = ")[0]
    rows = ROWS.format(
        date=DATE if is_newest else today,
        rows=_rows(AGREEMENT if is_newest else table),
        newest=NEWEST,
        newest_date=today if is_newest else NEWEST_DATE,
        newest_rows=_rows(table if is_newest else NEWEST_AGREEMENT),
    )
    TABLE.write_text(head + rows, encoding="utf-8")


def _rows(table: dict[str, Agreement]) -> str:
    return "\n".join(
        f'    "{ours}": Agreement("{row.xla}", {row.changed}, {row.changed_equal}, {row.unchanged}, {row.unchanged_equal}),'
        for ours, row in sorted(table.items())
    )


def sample(folder: Path, only: Container[str] | None = None) -> None:
    """Keeps the shortest equal pair of each pass, platform and kind; long ones only of passes that have no others.

    Pairs of another release than those of the folder stay.
    """
    found = sorted(pairs_of(folder, only), key=lambda p: len(p.before) + len(p.after or ""))
    releases = {pair.release for pair in found}
    best: dict[tuple[str, str, bool, str], Pair] = {}
    for pair in sampled():
        is_new = only is None or model(pair.name, pair.platform) in only
        if not (is_new and pair.release in releases):
            best[pair.name, pair.platform, pair.after is None, pair.release] = pair
    for pair in found:
        key = pair.name, pair.platform, pair.after is None, pair.release
        fits = len(pair.before) <= LONGEST or not any(name == pair.name for name, *_ in best)
        if key not in best and fits and pair.is_equal():
            best[key] = pair
    rows = json.dumps([attrs.asdict(pair) for pair in best.values()], indent=0)
    SAMPLE.write_bytes(lzma.compress(rows.encode(), preset=9))
    print(f"{len(best)} pairs, {len(rows)} bytes, {SAMPLE.stat().st_size} packed")


ROWS = '''DATE = "{date}"
"""When that was measured, on the programs of JAX 0.10 that the corpus is made of, for CPU, GPU and TPU."""

AGREEMENT = {{
{rows}
}}
"""By the name of the pass; others have no counterpart in XLA."""

NEWEST = "{newest}"
"""The newest release of jaxlib whose steps were recorded."""

NEWEST_DATE = "{newest_date}"
"""When passes were compared with its steps."""

NEWEST_AGREEMENT = {{
{newest_rows}
}}
"""The same for that release; without a row: no step recorded for the pass."""
'''
"""What is made anew of the table; what stands above it stays."""


def main(folder: str, *options: str) -> None:
    only = options[options.index("--only") + 1].split(",") if "--only" in options else None
    run = sample if "--sample" in options else measure
    run(Path(folder), only)


if __name__ == "__main__":
    assert {*MODELS.values(), *ON_PLATFORM.values()} <= set(all_passes())
    main(*sys.argv[1:])
