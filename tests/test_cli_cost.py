"""The commands cost, time, comm and shard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import cost
from tests.cli_support import run
from tests.support import ROOT

TRAIN = str(next((ROOT / "corpus").glob("tpu/transformer_train*after*")))
MOE = str(ROOT / "corpus/tpu/moe_4_sharding_v3.v5e_2x2x1.before_optimizations.txt")
FILES = sorted((ROOT / "corpus").glob("*pu/*.txt*"))[::10]


def test_cost() -> None:
    """One screen; JSON has the library's figures."""
    text = run("cost", TRAIN)
    assert text.exit_code == 0
    assert "flops" in text.stdout
    assert "By scope" in text.stdout
    assert "use --chip NAME for an estimate" in text.stdout
    assert "--chip NAME gives it" not in run("cost", TRAIN, "--chip", "v5e").stdout
    found = json.loads(run("cost", TRAIN, "--format", "json", "--by", "opcode", "--padded").stdout)[
        "modules"
    ][0]
    analysis = cost.analyze(hlo.load(TRAIN))
    assert found["xla"]["flops"] == analysis.as_xla().flops
    assert found["run"]["flops"] == analysis.run.flops == sum(part["flops"] for part in found["parts"])
    assert found["padded_bytes_by_memory_space"]["0"] >= found["bytes_by_memory_space"]["0"]
    for by in cost.KEYS:
        assert f"By {by}" in run("cost", TRAIN, "--by", by).stdout
    assert f"{analysis.as_tpu('v5e').flops:.0f}" in run("cost", TRAIN, "--as-xla").stdout


def test_time() -> None:
    """Whatever is estimated says so."""
    text = run("time", TRAIN, "--chip", "v5e")
    assert text.exit_code == 0
    assert "estimate" in text.stdout
    found = json.loads(run("time", TRAIN, "--chip", "v5e", "--format", "json").stdout)["modules"][0]
    assert found["is_estimate"]
    assert found["seconds"] == pytest.approx(sum(step["seconds"] for step in found["critical_path"]))
    faster = run("time", TRAIN, "--chip", "v5e", "--set", "bandwidth=1e15", "--format", "json")
    assert json.loads(faster.stdout)["modules"][0]["seconds"] < found["seconds"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--chip", "v99"], "no chip is named"),
        (["--chip", "v5e", "--set", "speed=3"], "no property 'speed'"),
        (["--chip", "v5e", "--set", "bandwidth"], "NAME=NUMBER"),
        (["--chip", "v5e", "--mesh", "x=3"], "3 devices"),
        (["--chip", "nothing.toml"], "cannot be read"),
    ],
)
def test_time_says_what_is_wrong(arguments: list[str], problem: str) -> None:
    """Usage errors."""
    result = run("time", MOE, *arguments)
    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_chip_from_a_file(tmp_path: Path) -> None:
    """TOML."""
    (tmp_path / "mine.toml").write_text('base = "v5e"\nname = "mine"\nbandwidth = 1e12\n')
    assert " on mine" in run("time", TRAIN, "--chip", str(tmp_path / "mine.toml")).stdout


LOOP = """HloModule m, num_partitions=4

sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}

body {{
  p = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[1024] get-tuple-element(p), index=1
  r = f32[1024] all-reduce(x), channel_id=1, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true, to_apply=sum
  ROOT t = (s32[], f32[1024]) tuple(next, r)
}}

condition {{
  p = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] {end}
  ROOT l = pred[] compare(i, n), direction=LT
}}

ENTRY e {{
  z = s32[] constant(0)
  x = f32[1024] parameter(0)
  t = (s32[], f32[1024]) tuple(z, x)
  ROOT w = (s32[], f32[1024]) while(t), condition=condition, body=body
}}
"""


@pytest.mark.parametrize(
    ("end", "runs", "sent"), [("constant(3)", "3", "18.0 KiB"), ("bitcast-convert(i)", "?", ">= 6.00 KiB")]
)
def test_what_an_operation_sends_is_that_of_all_its_runs(
    tmp_path: Path, end: str, runs: str, sent: str
) -> None:
    (tmp_path / "m.txt").write_text(LOOP.format(end=end), "utf-8")
    row = run("comm", tmp_path / "m.txt").stdout.partition("Operations")[2].splitlines()[2]
    assert row.split("f32[1024]")[1].split() == [runs, *sent.split()]
    [one] = json.loads(run("comm", tmp_path / "m.txt", "--format", "json").stdout)["modules"][0]["operations"]
    assert one["sent_bytes"] == 6144
    assert one["sent_bytes_all_runs"] == (18432 if runs == "3" else 6144)


def test_comm() -> None:
    """A matrix and a list, with the mesh that the module names or a given one."""
    text = run("comm", MOE)
    assert text.exit_code == 0
    assert "mesh" in text.stdout
    train = "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt"
    assert "f32[256,512] and 3 more" in run("comm", train).stdout
    [sum_of_gradients] = json.loads(run("comm", train, "--format", "json").stdout)["modules"][0]["operations"]
    assert sum_of_gradients["dtypes"] == ["f32"]
    assert sum_of_gradients["sent_shapes"] == ["f32[512]", "f32[256,512]", "f32[10]", "f32[512,10]"]
    found = json.loads(run("comm", MOE, "--mesh", "a=2,b=2", "--format", "json").stdout)["modules"][0]
    assert found["mesh"] == {"axes": {"a": 2, "b": 2}, "source": "given"}
    assert sum(row["bytes"] for row in found["matrix"]) == sum(
        link["bytes"] for link in found["links"].values()
    )
    for arguments, problem in {
        ("--mesh", "a=3"): "3 devices",
        ("--mesh", "a"): "NAME=SIZE",
        ("--device-order", "0,1"): "needs --mesh",
        ("--mesh", "a=4", "--device-order", "0,1,2"): "not a permutation",
        ("--mesh", "a=4", "--device-order", "x"): "numbers",
    }.items():
        result = run("comm", MOE, *arguments)
        assert result.exit_code == 2
        assert problem in result.stderr


def test_shard(tmp_path: Path) -> None:
    """An array; a device; an element; a picture; a module."""
    text = run("shard", "f32[10,512]", "{devices=[4,1,2]<=[8] last_tile_dim_replicate}")
    assert "f32[3,512]" in text.stdout
    assert "| 0-1 |" in text.stdout
    found = json.loads(
        run("shard", "f32[8,8]", "{devices=[2,2]<=[4]}", "--device", "3", "--format", "json").stdout
    )
    assert found["parts"] == {"3": [[4, 8], [4, 8]]}
    assert "device 1" in run("shard", "f32[8,8]", "{devices=[2,2]<=[4]}", "--element", "3,7").stdout
    assert run("shard", "f32[8,8]", "{devices=[2,2]<=[4]}", "--svg", "-").stdout.startswith("<svg")
    picture = tmp_path / "picture.svg"
    assert run("shard", "f32[8]", "{devices=[4]<=[4]}", "--svg", str(picture)).exit_code == 0
    assert picture.read_text().count("<rect") == 4
    module = json.loads(run("shard", MOE, "--format", "json").stdout)["modules"][0]
    assert not module["is_partitioned"]
    assert all(
        row["device_bytes"] <= row["bytes"] for row in module["arguments"] if row["device_bytes"] is not None
    )
    assert "Arguments" in run("shard", MOE).stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nothing"], "neither a file nor a shape"),
        (["f32[8", "{replicated}"], "the text ends here"),
        (["f32[8]", "{devices=[2,4]<=[8]}"], "does not match an array of 1"),
        (["f32[8]", "{devices=[2]<=[2]}", "--element", "9"], "no element"),
        (["f32[8]", "{devices=[2]<=[2]}", "--element", "x"], "indices"),
        (["f32[8]", "{manual}", "--svg", "-"], "does not determine"),
    ],
)
def test_shard_says_what_is_wrong(arguments: list[str], problem: str) -> None:
    """Usage errors and unreadable shapes."""
    result = run("shard", *arguments)
    assert result.exit_code == 2
    assert problem in result.stderr


@pytest.mark.parametrize(
    "command", [["cost"], ["comm"], ["time", "--chip", "h100"], ["shard"]], ids=lambda c: c[0]
)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_kind_of_module(path: Path, command: list[str]) -> None:
    """Text and JSON, whatever the module."""
    assert run(command[0], str(path), *command[1:]).exit_code == 0
    json.loads(run(command[0], str(path), *command[1:], "--format", "json").stdout)


SOME_ROUNDS = """HloModule m, is_scheduled=true

round {
  state = (f32[1048576], pred[]) parameter(0)
  x = f32[1048576] get-tuple-element(state), index=0
  more = pred[] get-tuple-element(state), index=1
  y = f32[1048576] sine(x)
  ROOT out = (f32[1048576], pred[]) tuple(y, more)
}

going {
  state = (f32[1048576], pred[]) parameter(0)
  ROOT more = pred[] get-tuple-element(state), index=1
}

ENTRY main {
  x = f32[1048576] parameter(0)
  more = pred[] parameter(1)
  start = (f32[1048576], pred[]) tuple(x, more)
  ROOT loop = (f32[1048576], pred[]) while(start), condition=going, body=round
}
"""


def test_time_takes_the_rounds_of_loops() -> None:
    """A loop of unknown rounds counts as often as is said; a body that is not there, or no number, is refused."""

    def seconds(*more: str) -> float:
        result = run("time", "-", "--chip", "h100", "--format", "json", *more, input=SOME_ROUNDS)
        assert result.exit_code == 0, result.stderr
        return float(json.loads(result.stdout)["modules"][0]["seconds"])

    assert seconds("--trips", "round=100") == pytest.approx(100 * seconds("--trips", "%round=1"), rel=0.1)
    for wrong in ("elsewhere=3", "round=many", "round"):
        assert run("time", "-", "--chip", "h100", "--trips", wrong, input=SOME_ROUNDS).exit_code == 2


def test_totals_count_the_rounds_that_are_given() -> None:
    """With a chip and without: none is needed for operations and bytes."""
    for more in ((), ("--chip", "h100")):
        line = ("cost", "-", "--trips", "round=100", *more, "--format", "json")
        run_ = json.loads(run(*line, input=SOME_ROUNDS).stdout)["modules"][0]["run"]
        once = json.loads(run("cost", "-", "--format", "json", input=SOME_ROUNDS).stdout)["modules"][0]["run"]
        assert run_["flops"] == 100 * once["flops"]
        assert not run_["unknown_loops"]


def test_a_hidden_copy_is_said_to_share_the_bandwidth(tmp_path: Path) -> None:
    """The copy and the core each read 4 MiB of main memory at the same time."""
    text = """HloModule m, is_scheduled=true
ENTRY e {
  a = f32[1024,1024]{1,0} parameter(0)
  b = f32[1024,1024]{1,0} parameter(1)
  s = (f32[1024,1024]{1,0:S(1)}, f32[1024,1024]{1,0}, u32[]) copy-start(a)
  n = f32[1024,1024]{1,0} negate(b)
  d = f32[1024,1024]{1,0:S(1)} copy-done(s)
  ROOT t = (f32[1024,1024]{1,0}, f32[1024,1024]{1,0:S(1)}) tuple(n, d)
}
"""
    path = tmp_path / "m.txt"
    path.write_text(text)
    shown = " ".join(run("cost", str(path), "--time", "--chip", "v5e").output.split())
    assert "core and copies share the memory bandwidth, but each is modeled with all of it" in shown


PRODUCT = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[64,64]{1,0} parameter(0)
  c = (f32[64,64], u8[9]) custom-call(a, a), custom_call_target="__cublas$gemm", backend_config=CONFIG
  g = f32[64,64] get-tuple-element(c), index=0
  ROOT n = f32[64,64]{1,0} negate(g), metadata={op_name="jit(f)/act/neg"}
}
""".replace(
    "CONFIG",
    '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}, metadata={op_name="jit(f)/dot"}',
)


def test_the_rows_of_scopes_add_up(tmp_path: Path) -> None:
    """What stands in no scope has a row of its own; why XLA counts less is said by what the module has."""
    (tmp_path / "m.txt").write_text(PRODUCT)
    text = run("cost", tmp_path / "m.txt").stdout
    rows = dict(
        line.split("%")[0].rsplit(maxsplit=1)
        for line in text.splitlines()
        if line.startswith("  ") and "%" in line and "scope" not in line
    )
    assert rows == {"  (top level)": "99.2", "  act": "0.8"}
    assert "without custom calls)" in text
    assert "loop bodies once" not in text
    tree = cost.scope_tree(cost.analyze(hlo.parse(PRODUCT)))
    assert sum(node.flops for node in tree.children.values()) == tree.flops


def test_where_the_folder_names_the_chip_nobody_is_asked_for_it() -> None:
    """`--time` is enough there."""
    text = run("cost", ROOT / "tests/data/dumps/tpu.mlp_train.tar.xz").stdout
    assert "use --time for an estimate" in text
    assert "--chip NAME" not in text


def test_a_chip_that_is_not_the_dumps_is_said() -> None:
    """The compiler would have made another program for it."""
    folder = ROOT / "tests/data/dumps/tpu.mlp_train.tar.xz"
    assert "(tpu tpu7x, dumped for v5e)" in run("memory", folder, "--chip", "v7x").stdout
    assert "dumped for" not in run("memory", folder, "--chip", "v5e").stdout


HELPER = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[64,64]{1,0:T(8,128)})->f32[64,64]{1,0:T(8,128)}}

FileNames
1 "/src/net.py"

FunctionNames
1 "net"
2 "conv"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=1 end_column=9}
2 {file_name_id=1 function_name_id=1 line=20 end_line=20 column=1 end_column=9}
3 {file_name_id=1 function_name_id=2 line=3 end_line=3 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}
3 {file_location_id=3 parent_frame_id=2}
4 {file_location_id=3 parent_frame_id=3}

ENTRY e {
  p = f32[64,64]{1,0:T(8,128)} parameter(0)
  a = f32[64,64]{1,0:T(8,128)} dot(p, p),CONTRACT, metadata={op_name="jit(net)/top/a/dot" stack_frame_id=3}
  ROOT b = f32[64,64]{1,0:T(8,128)} dot(a, a),CONTRACT, metadata={op_name="jit(net)/top/b/dot" stack_frame_id=4}
}
""".replace("CONTRACT", " lhs_contracting_dims={1}, rhs_contracting_dims={0}")


def test_callers_of_a_helper(tmp_path: Path) -> None:
    """The line of a helper has all its work; its callers have their parts, which add up to it."""
    (tmp_path / "m.txt").write_text(HELPER)
    found = cost.analyze(hlo.load(tmp_path / "m.txt"))
    product = 2 * 64**3
    assert found.by("line")["/src/net.py:3"].flops == 2 * product
    assert {name: one.flops for name, one in found.by("caller").items() if one.flops} == {
        "/src/net.py:3 from /src/net.py:10": product,
        "/src/net.py:3 from /src/net.py:20": product,
    }
    assert (
        "2 lines call the costliest one; --by caller"
        in run("cost", tmp_path / "m.txt", "--by", "line").stdout
    )
    assert "called from" not in run("cost", TRAIN, "--by", "scope").stdout


def test_depth_rolls_scopes_up(tmp_path: Path) -> None:
    """With --by scope a scope has what is below it; elsewhere the option is refused and not ignored."""
    (tmp_path / "m.txt").write_text(HELPER)
    module = hlo.load(tmp_path / "m.txt")
    scopes = cost.analyze(module).by("scope", depth=1)
    assert scopes["top"].flops == cost.analyze(module).run.flops
    times = cost.estimate(module, "v5e").seconds_by("scope", depth=1)
    assert times is not None
    assert times["top"] == pytest.approx(
        sum(one.seconds for one in cost.estimate(module, "v5e").instructions)
    )
    shown = run("cost", tmp_path / "m.txt", "--by", "scope", "--depth", "1", "--chip", "v5e").stdout
    assert "top/" not in shown
    for wrong in (("--by", "line"), ("--chip", "v5e"), ("--as-xla",)):
        assert run("cost", tmp_path / "m.txt", "--depth", "1", *wrong).exit_code == 2


def test_utilization_at_the_bound(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(HELPER)
    found = cost.estimate(hlo.load(tmp_path / "m.txt"), "v5e")
    peak = found.chip.rates.peaks["bf16"].value
    assert found.utilization == pytest.approx(2 * 2 * 64**3 / (peak * found.seconds))
    shown = run("cost", tmp_path / "m.txt", "--chip", "v5e").stdout
    assert found.utilization is not None
    assert f"at most {100 * found.utilization:.1f}% of 197 TFLOP/s" in shown


def test_int8_matmuls_are_measured_against_the_rate_of_int8(tmp_path: Path) -> None:
    """Against bf16's they would use more than all of the chip."""
    (tmp_path / "m.txt").write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  x = s8[8192,8192]{1,0} parameter(0)\n"
        "  ROOT d = s32[8192,8192]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    found = cost.estimate(hlo.load(tmp_path / "m.txt"), "h100")
    assert found.utilized_peak == found.chip.rates.peaks["int8"]
    assert found.utilization is not None
    assert 0.9 < found.utilization <= 1
    assert "% of 1.98 PFLOP/s" in run("cost", tmp_path / "m.txt", "--chip", "h100").stdout


@pytest.mark.parametrize("chip", ["v5e", "v5p", "v6e"])
def test_cycles_belong_to_the_chip_of_the_compiler(chip: str) -> None:
    """Cycles of a program that was compiled for another chip, or may have been, are no estimate for this one."""
    path = ROOT / "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt"
    own = hlo.analysis.choose_chip(hlo.load(path))
    assert own is not None
    [line] = [
        one for one in run("cost", path, "--chip", chip).stdout.splitlines() if "compiler estimate" in one
    ]
    assert (f"at the clock rate of {chip}" in line) == (own.candidates != (chip,))
