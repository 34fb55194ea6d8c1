"""The least time of modules on chips: rooflines, schedules, what is hidden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import analysis, cost
from hlotext.analysis import Backend, chips, parse_mesh
from hlotext.cost import Bound
from tests.cli_support import run, run_json
from tests.support import ROOT

DATA = Path(__file__).parent / "data" / "cost"
TPU: list[dict[str, Any]] = json.loads((DATA / "time.json").read_text())
MODULES = sorted((ROOT / "corpus").glob("[cgt]pu/*.txt*"))


@pytest.mark.parametrize("row", TPU, ids=lambda row: row["program"])
def test_rooflines_are_the_compilers(row: dict[str, Any]) -> None:
    """As libtpu's cost analysis says, custom calls left out."""
    found = cost.estimate(hlo.parse(row["text"]), chip=row["chip"]).roofline_seconds
    assert found == pytest.approx(row["seconds"], rel=1e-5)


PLAIN = chips.with_figures(
    chips.Chip("plain", Backend.GPU),
    {
        "bf16": 1e12,
        "bandwidth": 1e9,
        "link": 1e9,
        "links": 1,
        "links_per_axis": 1,
        "host_link": 1e8,
        "dcn": 1e7,
    },
)
"""A chip of round figures."""

HIDDEN = """HloModule m, is_scheduled=true, num_partitions=4
ENTRY e {
  a = f32[256,256] parameter(0)
  b = f32[1024,1024] parameter(1)
  s = (f32[256,256], f32[1024,256]) all-gather-start(a), channel_id=1, GROUPS, dimensions={0}
  n = f32[1024,1024] negate(b)
  m = f32[1024,1024] negate(n)
  d = f32[1024,256] all-gather-done(s)
  k = f32[256,256] copy(a)
  r = f32[1024,256] all-reduce(d), channel_id=2, GROUPS, to_apply=sum
  ROOT t = (f32[1024,1024], f32[1024,256], f32[256,256]) tuple(m, r, k)
}
""".replace("GROUPS", "replica_groups={{0,1,2,3}}, use_global_device_ids=true").replace(
    "\nENTRY",
    "\nsum {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\nENTRY",
)


def test_a_schedule_by_hand() -> None:
    """8.39 ms of work hide all but nothing of a gather of 0.79 ms; a plain all-reduce of 1.57 ms hides nothing."""
    found = cost.estimate(hlo.parse(HIDDEN), PLAIN, parse_mesh("x=4"))
    block = 2**20 * 4 / 1e9
    gather, reduce, copy = 3 * 2**18 / 1e9, 1.5 * 2**20 / 1e9, 2 * 2**18 / 1e9
    table = 8 * 3 / 1e9
    times = {one.start.name: one for one in found.transfers}
    assert times["s"].seconds == pytest.approx(gather)
    assert (times["s"].exposed, times["s"].hidden, times["s"].queues) == (0, 1, ("links of x",))
    assert times["r"].exposed == pytest.approx(reduce)
    assert times["r"].hidden == 0
    assert found.seconds == pytest.approx(4 * block + copy + reduce + table)
    assert sum(step.seconds for step in found.critical_path) == pytest.approx(found.seconds)
    assert [step.instruction.name for step in found.critical_path] == ["n", "m", "k", "r", "t"]
    assert found.busy["links of x"] == pytest.approx(gather + reduce)
    assert found.by_bound[Bound.MEMORY] == pytest.approx(4 * block + copy + table)


def test_an_exposed_transfer_is_on_the_critical_path() -> None:
    """With links ten times slower the gather is waited for, and what ran meanwhile is not on the path."""
    slow = chips.with_figures(PLAIN, {"link": 1e7})
    found = cost.estimate(hlo.parse(HIDDEN), slow)
    gather, work = 3 * 2**18 / 1e7, 4 * 2**20 * 4 / 1e9
    assert found.transfers[1].start.name == "s"
    assert found.transfers[1].exposed == pytest.approx(gather - work)
    assert [step.instruction.name for step in found.critical_path] == ["s", "k", "r", "t"]
    assert sum(step.seconds for step in found.critical_path) == pytest.approx(found.seconds)


SLICED = """HloModule m, is_scheduled=true
cut {
  p = f32[1024,1024] parameter(0)
  ROOT c = f32[512,1024] slice(p), slice={[0:512], [0:1024]}
}
ENTRY e {
  a = f32[1024,1024] parameter(0)
  b = f32[1024,1024] parameter(1)
  s = ((f32[1024,1024]), f32[512,1024], s32[]) async-start(a), calls=cut
  n = f32[1024,1024] negate(b)
  ROOT d = f32[512,1024] async-done(s)
}
"""


def test_an_asynchronous_slice_is_no_work_of_the_core() -> None:
    """A copy engine cuts it out, while the core negates: the core is not busy longer than the module takes."""
    found = cost.estimate(hlo.parse(SLICED), PLAIN)
    block = 2**20 * 4 / 1e9
    assert found.seconds == pytest.approx(2 * block)
    assert found.busy == {"core": pytest.approx(2 * block), "copies": pytest.approx(block)}
    assert [one.name for one in found.instructions] == ["n"]
    assert [one.name for one in found.beside] == ["s"]
    assert found.by_bound == {Bound.MEMORY: pytest.approx(2 * block)}


CALLED = """HloModule m, is_scheduled=true
inner {
  p = f32[1024,1024] parameter(0)
  ROOT c = f32[1024,1024] cosine(p)
}
outer {
  p = f32[1024,1024] parameter(0)
  ROOT c = f32[1024,1024] call(p), to_apply=inner
}
ENTRY e {
  a = f32[1024,1024] parameter(0)
  s = ((f32[1024,1024]), f32[1024,1024], s32[]) async-start(a), calls=outer, async_execution_thread="sparsecore"
  n = f32[1024,1024] negate(a)
  ROOT d = f32[1024,1024] async-done(s)
}
"""


def test_what_a_thread_calls_is_no_work_of_the_core() -> None:
    found = cost.estimate(hlo.parse(CALLED), PLAIN)
    assert [one.instruction.name for one in found.instructions] == ["n"]
    assert [(one.instruction.name, one.name) for one in found.beside] == [("c", "s")]
    assert found.busy["core"] == pytest.approx(2 * 2**20 * 4 / 1e9)


FUSED = """HloModule m, is_scheduled=true, num_partitions=4
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
fused {
  p = f32[1024] parameter(0)
  r = f32[1024] all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=sum
  ROOT n = f32[1024] negate(r)
}
ENTRY e {
  a = f32[1024] parameter(0)
  ROOT f = f32[1024] fusion(a), kind=kCustom, calls=fused
}
"""


def test_a_collective_inside_a_fusion_is_on_its_link() -> None:
    """What the core waits for there is no work of the core."""
    found = cost.estimate(hlo.parse(FUSED), PLAIN, parse_mesh("x=4"))
    path = {step.resource: step.seconds for step in found.critical_path}
    assert path == {"links of x": pytest.approx(1.5 * 4096 / 1e9), "core": pytest.approx(2 * 4096 / 1e9)}
    assert found.seconds == pytest.approx(3.5 * 4096 / 1e9)


LOOP = """HloModule m, is_scheduled=true
body {
  p = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[1024] get-tuple-element(p), index=1
  y = f32[1024] negate(x)
  ROOT t = (s32[], f32[1024]) tuple(next, y)
}
condition {
  p = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[1024] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[1024]) tuple(z, x)
  w = (s32[], f32[1024]) while(s), condition=condition, body=body
  ROOT r = f32[1024] get-tuple-element(w), index=1
}
"""


def test_loops_take_as_long_as_they_run() -> None:
    """Seven bodies and eight conditions."""
    found = cost.estimate(hlo.parse(LOOP), PLAIN)
    body, condition = (12 + 2 * 4096 + 16) / 1e9, 9 / 1e9
    assert found.seconds == pytest.approx(16 / 1e9 + 7 * body + 8 * condition)
    runs = {one.instruction.name: one.runs for one in found.instructions}
    assert runs == {"s": 1, "t": 7, "next": 7, "y": 7, "c": 8}
    assert sum(step.seconds for step in found.critical_path) == pytest.approx(found.seconds)


COUNTED = LOOP.replace("body=body", 'body=body, backend_config={"known_trip_count":{"n":"7"}}')


@pytest.mark.parametrize(
    ("text", "conditions", "graph"),
    [
        pytest.param(LOOP, 8, 8, id="counted by nobody but us"),
        pytest.param(COUNTED, 0, 0, id="counted by the runtime of CPU or GPU"),
        pytest.param(COUNTED.replace("f32[1024]", "f32[1024]{0:T(1024)}"), 8, 8, id="TPU"),
    ],
)
def test_runtimes_that_count_iterations_run_no_condition(text: str, conditions: int, graph: int) -> None:
    """XLA's WhileThunk runs the body `known_trip_count` times and looks at no condition."""
    module = hlo.parse(text)
    runs = {one.instruction.name: one.runs for one in cost.estimate(module, PLAIN).instructions}
    assert (runs["y"], runs.get("c", 0)) == (7, conditions)
    assert analysis.call_graph(module).runs[module.computation("condition")] == graph


def test_a_counted_condition_with_other_trips_runs_as_little() -> None:
    module = hlo.parse(COUNTED)
    found = cost.estimate(module, PLAIN, trips={"w": 3})
    runs = {one.instruction.name: one.runs for one in found.instructions}
    assert (runs["y"], runs.get("c", 0)) == (3, 0)


@pytest.mark.parametrize("path", MODULES[::7], ids=lambda path: path.name)
def test_paths_add_up(path: Path) -> None:
    """The critical path takes as long as the module, whatever it holds, on every chip."""
    module = hlo.load(path)
    for name in ("v5e", "h100", "v2"):
        found = cost.estimate(module, name)
        assert sum(step.seconds for step in found.critical_path) == pytest.approx(found.seconds)
        assert found.exposed <= found.seconds * (1 + 1e-9)
        assert found.busy["core"] <= found.seconds * (1 + 1e-9)


def test_the_core_waits_once_for_what_a_thread_sends() -> None:
    """The sparse core's collectives stall the core as long as what starts them does, and what starts them is no copy."""
    path = next(path for path in MODULES if path.name.startswith("fsdp_tp_128.tpu7x"))
    found = cost.estimate(hlo.load(path), "tpu7x")
    assert 0.5 * found.seconds < found.exposed <= (found.seconds - found.busy["core"]) * (1 + 1e-9)
    kinds = {one.start.name: one.communication is not None for one in found.transfers if one.exposed > 1e-6}
    assert kinds["all-reduce.93"]
    assert all(kinds.values())


def test_chips_of_ones_own() -> None:
    """By figures and by TOML, with what is wrong said."""
    own = chips.read_chip('base = "v6e"\nname = "mine"\nbandwidth = 2e12\nmemory_bytes = 64_000_000_000\n')
    assert (own.name, own.memory_bytes) == ("mine", 64 * 10**9)
    assert own.rates.bandwidth == chips.Figure(2e12, chips.USER)
    assert own.rates.compiler_bandwidth is None
    assert own.rates.peak("fp8") == own.rates.peak("bf16")
    for text, problem in {
        "bandwith = 1": "no property 'bandwith'",
        "link = -1": "positive number",
        "link = true": "positive number",
        "base = 'v99'": "no chip is named",
        "= 3": "not valid TOML",
    }.items():
        with pytest.raises(ValueError, match=problem):
            chips.read_chip(text)


def test_seconds_are_grouped_by_known_keys_only() -> None:
    """An unknown key is refused as `Analysis.by` refuses it; it was taken for `line`."""
    estimate = cost.estimate(hlo.parse(TPU[0]["text"]), chip=TPU[0]["chip"])
    with pytest.raises(ValueError, match="not by 'lines'"):
        estimate.seconds_by("lines")  # type: ignore[arg-type]
    assert estimate.seconds_by("opcode") is None


def test_an_estimate_of_an_edited_module_is_not_completed() -> None:
    """What an estimate computes on access is of the module as it was estimated, or is refused."""
    module = hlo.parse(TPU[0]["text"])
    first, second = (cost.estimate(module, chip=TPU[0]["chip"]) for _ in range(2))
    assert first is second
    module.entry.root.name = "edited"
    with pytest.raises(RuntimeError, match="was edited after"):
        _ = first.roofline_seconds
    again = cost.estimate(module, chip=TPU[0]["chip"])
    assert again is not first
    assert again.roofline_seconds == pytest.approx(TPU[0]["seconds"], rel=1e-5)


def test_a_chip_without_rates_says_nothing() -> None:
    """No numbers are made up."""
    found = cost.estimate(hlo.parse(LOOP), chips.Chip("v99", Backend.TPU))
    assert (found.seconds, found.roofline_seconds) == (0, None)
    assert {one.bound for one in found.instructions} <= {Bound.UNKNOWN}


@pytest.mark.parametrize("row", chips.CHIPS.values(), ids=lambda row: row.name)
def test_every_figure_has_its_source(row: chips.Chip) -> None:
    """And narrow types are not slower than wide ones."""
    rates = row.rates
    figures = [
        *rates.peaks.values(),
        rates.bandwidth,
        rates.link,
        rates.links,
        rates.host_link,
        rates.dcn,
        rates.clock,
    ]
    assert all(figure.source and figure.value > 0 for figure in figures if figure is not None)
    if rates.peaks:
        base = rates.peak("bf16")
        assert base is not None
        bf16 = base.value
        assert all(
            (figure.value >= bf16) is (kind in ("bf16", "int8", "fp8") or len(rates.peaks) == 1)
            for kind, figure in rates.peaks.items()
        )
        assert all(
            rates.peak(kind) is rates.peak("bf16") for kind in ("f64", "f32") if kind not in rates.peaks
        )


KERNEL = """HloModule m, is_scheduled=true

ENTRY %e (p: f32[1024,1024]) -> f32[1024,1024] {
  %p = f32[1024,1024]{1,0} parameter(0)
  ROOT %k = f32[1024,1024]{1,0} custom-call(%p), custom_call_target="__gpu$xla.gpu.triton"
}
"""


def test_a_kernel_of_unknown_cost_takes_its_bytes_at_least(tmp_path: Path) -> None:
    """A module that is one Triton kernel is no module that takes nothing; totals without its work are marked."""
    path = tmp_path / "kernel.txt"
    path.write_text(KERNEL)
    found = cost.estimate(hlo.parse(KERNEL), "h100")
    bandwidth = found.chip.rates.bandwidth
    assert bandwidth is not None
    assert found.chip.rates.launch is not None
    assert found.seconds == pytest.approx(2 * (4 << 20) / bandwidth.value + found.chip.rates.launch.value)
    assert [one.name for one in found.unknown_calls] == ["k"]
    text = run("time", path, "--chip", "h100").stdout
    assert "minimum time     at least 3.50 us" in text
    assert "1 call of unknown cost, counted by bytes only: __gpu$xla.gpu.triton" in text
    assert "at least 8.00 MiB" in run("cost", path).stdout
    other = tmp_path / "other.txt"
    other.write_text(KERNEL.replace("ROOT %k", "%l = f32[1024,1024]{1,0} negate(%p)\n  ROOT %k"))
    text = run("diff", path, other).stdout
    assert "at least 8,388,608 B (1 call of unknown cost)" in text
    assert run_json("diff", path, other, "--fail-on", "changes+99")["totals"]["bytes"]["unknown_calls"] == [
        1,
        1,
    ]


def test_output_says_which_fixed_costs_a_bound_includes(tmp_path: Path) -> None:
    """On GPU the launch of each kernel is in the figures; on TPU it is not."""
    path = tmp_path / "small.txt"
    head = "HloModule m, is_scheduled=true"
    path.write_text(f"{head}\n\nENTRY e {{\n  p = f32[64] parameter(0)\n  ROOT n = f32[64] negate(p)\n}}\n")
    text = run("cost", path, "--chip", "h100").stdout
    assert "(estimate; includes 1.00 us of launch overhead per kernel, but not latency)" in text
    assert "core bound by    overhead 100.0% (kernels under 5 us)\n" in text
    text = run("cost", path, "--chip", "v5e").stdout
    assert "minimum time     <1 ns (estimate; excludes launch overhead and latency)" in text
    assert "core bound by    memory 100.0%\n" in text  # one program runs all steps: none is a launch


def test_the_order_by_time_with_vmem_is_in_the_title() -> None:
    text = run(
        "cost", ROOT / "corpus" / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt", "--chip", "v5e"
    ).stdout
    assert ("Core (all runs), sorted by time with VMEM" in text) == (
        "with VMEM" in text.split("Core (all runs)")[1]
    )
    assert "with VMEM" in text


def test_what_is_not_well_formed_takes_no_time() -> None:
    """A sort along a dimension that is not there; the rest of the module keeps its time."""
    module = hlo.parse(
        "HloModule m, is_scheduled=true\n\n"
        "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT\n}\n\n"
        "ENTRY e {\n  p = f32[4096,4096] parameter(0)\n  s = f32[4096,4096] sort(p), dimensions={-3}, to_apply=less\n"
        "  ROOT n = f32[4096,4096] negate(p)\n}\n"
    )
    found = cost.estimate(module)
    assert [step.instruction.name for step in found.instructions] == ["n"]


def test_costs_by_line_have_the_least_time() -> None:
    """The longest first; without a chip there is no time, and none of opcodes, which fusions mix."""
    place = ROOT / "corpus" / "tpu" / "mlp_train.v4_2x2x1.after_optimizations.txt"
    parts = run_json("cost", place, "--by", "line", "--time")["modules"][0]["parts"]
    times = [one["seconds"] for one in parts]
    assert times == sorted(times, reverse=True)
    assert times[0] > 0
    assert "  busy" in run("cost", place, "--by", "line", "--time").stdout.rpartition("By line")[2]
    assert "  busy" not in run("cost", place, "--by", "line").stdout.rpartition("By line")[2]
    assert "  busy" not in run("cost", place, "--by", "opcode", "--time").stdout.rpartition("By opcode")[2]


def test_a_rate_of_all_types_is_named_by_those_of_the_products(tmp_path: Path) -> None:
    """A CPU has one rate."""
    text = tmp_path / "m.txt"
    text.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  x = f32[64,64]{1,0} parameter(0)\n"
        "  ROOT d = f32[64,64]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    told = [line.split() for line in run("cost", text, "--chip", "cpu").stdout.splitlines()]
    assert [line[:9] for line in told if line[:1] == ["peak"]] == [
        ["peak", "rates", "f32", "500", "GFLOP/s,", "cache", "200", "GB/s,", "links"]
    ]
    assert [line[:4] for line in told if line[:2] == ["working", "set"]] == [
        ["working", "set", "32.0", "KiB,"]
    ]


def test_what_nothing_is_known_of_is_not_said_to_be_bound_by_something_else() -> None:
    """A scatter in a TPU's VMEM, whose rate is not known; a small product on a CPU, which starts it as a kernel."""
    vmem = "{1,0:T(8,128)S(1)}"
    text = (
        "HloModule m, is_scheduled=true\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT c = f32[] add(a, b)\n}\n\n"
        f"ENTRY e {{\n  p = f32[8192,128]{vmem} parameter(0)\n  i = s32[4096,1]{vmem} parameter(1)\n"
        f"  u = f32[4096,128]{vmem} parameter(2)\n  ROOT s = f32[8192,128]{vmem} scatter(p, i, u), update_window_dims={{1}}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n}\n"
    )
    module = hlo.parse(text)
    assert [one.bound for one in cost.estimate(module, "v5e").instructions if one.name == "s"] == [
        Bound.UNKNOWN
    ]
    product = "ROOT x = f32[{n},{n}]{{1,0}} dot(p, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    for size, bound in ((16, Bound.OVERHEAD), (4096, Bound.COMPUTE)):
        module = hlo.parse(
            f"ENTRY e {{\n  p = f32[{size},{size}]{{1,0}} parameter(0)\n  {product.format(n=size)}\n}}\n"
        )
        assert [one.bound for one in cost.estimate(module, "cpu").instructions if one.name == "x"] == [bound]


def test_the_time_of_a_run_and_of_a_unit_have_names_of_their_own() -> None:
    """What units are busy with adds up to the busy time of each, not to the minimum time of the run: they overlap."""
    place = ROOT / "corpus" / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
    (module,) = run_json("cost", place, "--chip", "v5e")["modules"]
    assert sum(one["seconds"] for one in module["instructions"]) == pytest.approx(module["busy"]["core"])
    moved = sum(seconds for unit, seconds in module["busy"].items() if unit != "core")
    assert sum(one["seconds"] for one in module["transfers"]) == pytest.approx(moved)
    assert module["seconds"] < sum(module["busy"].values())
    shown = run("cost", place, "--chip", "v5e", "--by", "line").stdout
    assert shown.count("  minimum time ") == 1
    assert " min time" not in shown
