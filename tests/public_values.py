"""A value of every public class: what the packages' functions give for small modules, with all that is inside of it."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import hlotext as hlo
from hlotext import (
    analysis,
    bugreport,
    compiler,
    cost,
    diff,
    dumps,
    execution,
    layout,
    lint,
    memory,
    messages,
    rewrite,
    tables,
    testing,
    textproto,
    thunks,
    triage,
    view,
)
from hlotext import matchers as m
from hlotext.dumps import identity
from hlotext.interop import jax
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.types import element_type
from hlotext.memory.compare import AssignmentDifference
from hlotext.reports import FindingsReport
from hlotext.rewrite import kit
from hlotext.rewrite.passes.simplify import algebra
from hlotext.semantics import infer
from tests import dump_cases, support

MOST = 4
"""Values of each class that are looked at."""


def public_classes() -> dict[type, str]:
    """Every class that a package names in `__all__`, with one name of it; a new one too."""
    found: dict[type, str] = {}
    packages = ["hlotext"]
    packages += [info.name for info in pkgutil.walk_packages(hlo.__path__, "hlotext.") if info.ispkg]
    for name in packages:
        if name.startswith("hlotext.cli"):
            continue
        package = importlib.import_module(name)
        for word in getattr(package, "__all__", ()):
            with contextlib.suppress(ImportError):
                if inspect.isclass(value := getattr(package, word)):
                    found.setdefault(value, f"{name}.{word}")
    return found


# ---- examples

MAKERS: list[Callable[[Path], Any]] = []


def maker(make: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Notes a function that makes examples; it is given an empty folder."""
    MAKERS.append(make)
    return make


def _corpus(name: str) -> hlo.Module:
    return hlo.parse(support.read_text(support.CORPUS / name))


GPU = "gpu/data_parallel.h100_1x1x4.after_optimizations.txt"
TPU = "tpu/data_parallel.v5e_2x2x1.after_codegen.txt"
LOOP = "cpu/ring_attention.cpu_4.after_optimizations.txt"
SMALL = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[64]{0} parameter(0), metadata={op_name="jit(f)/a" source_file="x.py" source_line=3}
  n = f32[64]{0} negate(p)
  t = (f32[64]{0}, f32[64]{0}) tuple(n, p)
  ROOT g = f32[64]{0} get-tuple-element(t), index=0
}
"""
SHARDED = """ENTRY e {
  x = f32[64,8]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  c = f32[64,8]{1,0} copy(x), sharding={devices=[4,1]<=[4]}
  ROOT t = (f32[64,8]{1,0}, f32[64,8]{1,0}) tuple(c, c)
}"""


@maker
def _analysis(_: Path) -> Any:
    module = _corpus(GPU)
    return [
        analysis.census(module), analysis.call_graph(module), analysis.communications(module),
        analysis.scopes(module),
        analysis.devices_of(module), analysis.mesh_of(module), analysis.age_of(module), analysis.summarize(module),
        analysis.source_locations(module), analysis.argument_shards(module), analysis.parse_mesh("x=4"),
        analysis.SourceLocations(), analysis.array_origin(module.entry.root),
        analysis.total_of(hlo.parse_shape("f32[3]")), analysis.SourceLocation("a.py", 1, "f"),
        analysis.choose_chip(_corpus(TPU)),
    ]  # fmt: skip


@maker
def _compiler(_: Path) -> Any:
    steps = support.DATA / "steps"
    module = hlo.parse(SMALL)
    return [
        compiler.explain(steps / "spmd.before.txt", steps / "spmd.after.txt", "spmd-partitioner", platform="cpu"),
        compiler.why_in(hlo.parse(SHARDED), "t", "cpu"), compiler.cpu_fusion(module), compiler.schedule(module),
        compiler.schedules(module), compiler.View("t", ("a",), (("1",),)),
        compiler.Decision("a", "b", "c"), compiler.Group("t", ()), compiler.Kernel(name="k", file="f", bytes=3, launches=()),
    ]  # fmt: skip


@maker
def _cost(_: Path) -> Any:
    module = _corpus(GPU)
    found = cost.analyze(module)
    from hlotext.cost.tpu import as_tpu

    return [
        found, cost.estimate(module, "h100"), cost.scope_tree(found), cost.traffic(module),
        as_tpu(_corpus(TPU), "v5e"), cost.CompilerEstimate(2e-6, 1, 2, 0.5),
        cost.ConvolutionDimensions((), ((0, 0),), ((1, 1),), ((1, 0),)),
        cost.Cost(), cost.TrafficTotal(), cost.HostCopy(module.entry.root, 3, 1),
        cost.InstructionCost(module.entry.root, module.entry, cost.Cost()),
        cost.target_costs({"acme_*": {"flops": "2 * elements(results[0])"}}),
    ]  # fmt: skip


@maker
def _diff(folder: Path) -> Any:
    old, new = hlo.parse(SMALL), hlo.parse(SMALL.replace("negate", "sine"))
    for name, text in (("a", SMALL), ("b", SMALL.replace("negate", "sine"))):
        (folder / name).mkdir()
        (folder / name / "module_0000.jit_f.before_optimizations.txt").write_text(text)
    found = diff.compare(old, new)
    bounds = diff.parse_thresholds("bytes+1%,flops+0")
    return [
        diff.Changes(found.changes), found, bounds, diff.folders(folder / "a", folder / "b"),
        diff.violations(bounds, diff.compare(new, _corpus(GPU)).totals, 1),
        diff.CacheKeyDiff((diff.CacheKeyPair("m", {"a": ("1", None)}),), 0, 1), found.totals,
    ]  # fmt: skip


@maker
def _dumps(folder: Path) -> Any:
    for name in (
        "before_optimizations",
        "0001.fusion.after_pipeline-start.before_cse",
        "cpu_after_optimizations",
    ):
        (folder / f"module_0000.jit_f.{name}.txt").write_text(SMALL)
    dump = dumps.open(folder)
    (done,) = dump
    last = done.steps[-1]
    owner = identity.owner(done.steps, 1)
    return [
        dump, done, compiler.executable(done), done.identity, list(dumps.module_texts([folder]))[:2],
        list(done.timeline())[:2],
        dumps.TimelineEntry(last, None, 1.0), dumps.Note("D1", "m"), dumps.Options(), owner, identity.Event(last, "k", "n"),
        identity.Birth(last, "n"),
        identity.Link(hlo.parse(SMALL).entry.root, "r", "high", last), identity.State(SMALL), last.changes,
        done.options,
        dumps.hosts([support.DATA / "hosts"]), dumps.HostFinding("different", "m", ("a",), "x"),
        dumps.PassRun(1, "a", "b", (), True, 1, 2),
        dumps.Bisection(done, None, None, (), (), (), (dumps.Tried("a", "not run", why="w"),)),
    ]  # fmt: skip


@maker
def _collectives(folder: Path) -> Any:
    with tarfile.open(support.DATA / "collectives" / "cpu.scan_fsdp.shardy.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    (folder / "truth.json").unlink()
    done = next(one for one in dumps.open(folder).compilations if one.last is not None)
    causes = done.collectives()
    suggestion = next(s for one in causes for reason in one.reasons for s in reason.suggestions)
    figures = jax.Figures(8, 1, None, 2.5e-6)
    outcome = jax.PassOutcome("jit_f", "skipped", "KeyError: 1")
    return [causes, jax.Trial(suggestion, figures, figures), figures, outcome, jax.DryRun((outcome,))]


@maker
def _execution(_: Path) -> Any:
    plain = execution.plain(hlo.parse(SMALL))
    array = np.zeros(64, "f4")
    ran = execution.Ran(([array],), seconds=(0.5,))
    return [
        execution.Execution([array], [array], 0.5, 1, plain),
        ran,
        execution.RuleCheck("r", 1, "it has no example"),
        execution.DifferingPair(hlo.parse(SMALL), hlo.parse(SMALL), "r", 0.5, 0),
    ]


@maker
def _bugreport(_: Path) -> Any:
    leak = bugreport.Leak("ada", "user name", 3)
    return [bugreport.make(hlo.parse(SMALL)), leak, bugreport.BugReportError("m", (leak,))]


@maker
def _triage(folder: Path) -> Any:
    done = triage.run([support.DATA / "triage"], triage.Settings(lint.Config(chip="h100")), jobs=1)
    one = done.modules[0]
    action = done.actions[0]
    return [
        done,
        action,
        one,
        *one.contents,
        *one.layers,
        triage.Settings(),
        triage.Stall("all-reduce", 1e-3, "train.py", 3),
        triage.Unexamined("a", "b"),
        triage.Role.STATE,
    ]


@maker
def _layout(_: Path) -> Any:
    tiled = hlo.parse_shape("f32[5,7]{1,0:T(8,128)}")
    pairs = (
        ("f32[4,6]{1,0}", "f32[24]{0}"),
        ("f32[4,6]{1,0}", "f32[6,4]{0,1}"),
        ("f32[6,4]{1,0}", "f32[2,12]{0,1}"),
    )
    return [
        layout.format_of(tiled), layout.explain(tiled), layout.explain(hlo.parse_shape("(f32[2]{0}, s32[])")),
        layout.placement(tiled), [layout.decompose_bitcast(*map(hlo.parse_shape, pair)) for pair in pairs],
        layout.CATALOGUE, layout.HOST_INDEX_TABLE, layout.Relation(), layout.SliceRange(0, 3),
        view.LayoutPicture(tiled),
    ]  # fmt: skip


@maker
def _lint(_: Path) -> Any:
    source = hlo.Source(SMALL, "m.hlo")
    found = lint.lint_source(source, lint.Config(extend_select=("ALL",)))
    baseline = lint.Baseline.of(found.findings)
    return [
        found, lint.Config(), lint.Report(None, "m"), [rule() for rule in lint.all_rules().values()],
        lint.make_context(hlo.parse(SMALL)),
        baseline, baseline.compare(found.findings),
        lint.FileResult("m.hlo", found), lint.explain_silence(source, "D107"),
        hlo.verify(hlo.parse(SMALL.replace("64", "6", 1))),
        FindingsReport(found.findings, ("m.hlo",), lint.code_of, "1"), hlo.parse_tolerant(SMALL.replace("negate", "?")),
    ]  # fmt: skip


@maker
def _matchers(_: Path) -> Any:
    return [
        m.parse_pattern("%y = $S all-*($A, ...), dimensions={0}, channel_id=$C", allow_unknown=True),
        m.splat(1.0, "s"),
        m.add_any_order(m.op("x"), m.constant(0)).with_rank(2).with_one_user().with_shape(shape="f32[2]"),
        m.parameter(2),
        m.op().with_predicate(has_two), m.all_gather().with_attribute("dimensions", [0]),
        m.Not(m.op()).through("copy"),
    ]  # fmt: skip


def has_two(instruction: Instruction) -> bool:
    return len(instruction.operands) == 2


def is_empty(module: hlo.Module) -> bool:
    return not module.computations


@maker
def _memory(folder: Path) -> Any:
    module = _corpus(GPU)
    found = memory.assign(module, "gpu")
    (done,) = dumps.open(dump_cases.unpacked("cpu.mlp_train", folder))
    return [
        found, found.peak(), found.statistics, done.memory, AssignmentDifference("a", "b", "c", "d"),
        messages.read((support.DATA / "messages" / "tpu_hbm_table.txt").read_text()),
        memory.assign(_corpus(TPU), "tpu"),
    ]  # fmt: skip


@maker
def _thunks(_: Path) -> Any:
    found = thunks.predict(_corpus(GPU), platform="gpu")
    return [
        found, thunks.Overlap(start=thunks.Thunk(kind="k"), done=None, between=()), thunks.overlaps(found),
        thunks.ThunkNote(message="m"), thunks.CaptureBlocker("C1", "m"), thunks.Launch("k", (1, 1, 1), (1, 1, 1)),
        thunks.CaptureRun(thunks=(), is_captured=False, ended_by=None, cause=None, holder=None),
    ]  # fmt: skip


@maker
def _rewrite(_: Path) -> Any:
    module = hlo.parse(SMALL)
    return [
        [make() for make in rewrite.PASSES.values()], rewrite.parse_passes("dce,cse"), twice, algebra.RULES,
        algebra.AlgebraicSimplifierOptions(),
        rewrite.Pipeline(rewrite.parse_passes("dce")).run(module), rewrite.Pipeline(rewrite.parse_passes("dce")),
        rewrite.Builder.after(module.entry.root), rewrite.reduce(hlo.parse(SMALL), lambda _: True),
        rewrite.RuleProfile(), rewrite.read_rules('[a]\nrule = "abs(abs($x)) => abs($x)"'), rewrite.ApplyRules(),
        rewrite.Rewrite.of(module.entry.root), rewrite.Editor(module), kit.PostOrder(print),
        kit.InstructionBudget("p", module),
        algebra.AlgebraRewrite(hlo.parse(SMALL), algebra.AlgebraicSimplifierOptions()), rewrite.passes.AllReducePromotion(),
        rewrite.passes.Property("p", is_empty),
        infer.rule_of("negate"), infer.Op("negate", (hlo.parse_shape("f32[2]"),)),
        infer.ProgramShape((), hlo.parse_shape("f32[2]")),
        hlo.Metadata(op_name="jit(f)/x"),
    ]  # fmt: skip


@rewrite.pattern(m.negate(m.op("x")))
def twice(rewrite: rewrite.Rewrite) -> Instruction:
    """A rule that stands under the name of its function."""
    return rewrite.b.negate(rewrite["x"])


@maker
def _others(_: Path) -> Any:
    found = testing.inspect(_corpus(GPU))
    module = _corpus(GPU)
    return [
        tables.TABLES, tables.instructions(module), testing.inspect(hlo.parse(SMALL)), found.collectives(),
        found.count("add"), found.instructions("add"), found.lint(), textproto.parse("a {b: 1}"),
        view.neighbourhood(module), hlo.parse_shape("f32[2]{0:T(8)}"), hlo.PrintOptions(), module.entry.root.span,
        hlo.parse("ENTRY e {\n  ROOT c = f32[2] constant({1, 2})\n}\n").entry.root.literal, element_type("f32"),
        view.report_input(support.CORPUS / TPU),
        found.gemms(), cost.matrix_products(module), analysis.loops(hlo.load(support.CORPUS / LOOP)),
    ]  # fmt: skip


@maker
def _protos(_: Path) -> Any:
    from hlotext import proto

    data = hlo.parse(SMALL).to_proto()
    return [
        proto.read_modules(data), proto.Trace((proto.TracedModule("m", 1, 2, 0.5, {}, None),), ()),
        proto.OpTime((proto.DeviceTime("d", 1, 2.0),)),
        proto.ProtoBuffers(hlo.parse(SMALL), (), (), (), ()),
    ]  # fmt: skip


# ---- all that is inside of them


def examples() -> tuple[dict[type, list[Any]], dict[str, BaseException]]:
    """Values of each class, up to `MOST`, and what could not be made, as its extra is missing."""
    found: dict[type, list[Any]] = {}
    failed: dict[str, BaseException] = {}
    with tempfile.TemporaryDirectory() as folder:
        for make in MAKERS:
            place = Path(folder) / make.__name__
            place.mkdir()
            try:
                made = make(place)
            except ImportError as error:
                failed[make.__name__] = error
            else:
                for value in inside(made):
                    kept = found.setdefault(type(value), [])
                    if len(kept) < MOST:
                        kept.append(value)
    return found, failed


def inside(root: Any) -> Iterator[Any]:
    """The values of hlotext's classes that a value holds, itself too, and those that its properties give."""
    seen: dict[int, Any] = {}
    counts: dict[type, int] = {}
    stack = [root]
    while stack:
        value = stack.pop()
        if id(value) in seen or isinstance(value, type | str | bytes | int | float):
            if type(value).__module__.startswith("hlotext.") and not isinstance(value, type):
                yield value  # a number with more to say
            continue
        seen[id(value)] = value
        if isinstance(value, Mapping):
            stack += [*list(value)[:50], *list(value.values())[:50]]
        elif isinstance(value, tuple | list | set | frozenset):
            stack += list(value)[:50]
        if not type(value).__module__.startswith("hlotext."):
            continue
        yield value
        counts[type(value)] = counts.get(type(value), 0) + 1
        if counts[type(value)] <= MOST and not isinstance(value, Instruction | hlo.Computation | hlo.Module):
            stack += parts(value).values()
            for name, _ in inspect.getmembers(type(value), lambda one: isinstance(one, property)):
                if not name.startswith("_"):
                    with contextlib.suppress(Exception):
                        stack.append(getattr(value, name))


def parts(value: Any) -> dict[str, Any]:
    """What an object holds, by name."""
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value))]
    else:
        names = [name for class_ in type(value).__mro__ for name in class_.__dict__.get("__slots__", ())]
        names += getattr(value, "__dict__", {})
    return {name: getattr(value, name) for name in names if hasattr(value, name) and name != "__weakref__"}
