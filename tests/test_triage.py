"""`hlotext triage`: many modules ranked, what their memory holds, and which repairs are worth most."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import cost, lint, memory, triage
from hlotext.analysis import updates
from hlotext.cli.triage import _shares
from hlotext.dumps.outlines import outline
from hlotext.ir.nodes.source import Source
from hlotext.triage import Role
from tests import support
from tests.cli_support import run, run_json

CORPUS = support.ROOT / "corpus"

DECODE = (support.DATA / "triage" / "decode.hlo").read_text()


def contents(module: hlo.Module) -> dict[Role, tuple[int, str]]:
    (found,) = triage_of(module)
    return {one.role: (one.arrays, one.largest) for one in found.contents}


def triage_of(module: hlo.Module) -> tuple[triage.Examined, ...]:
    from hlotext.triage.contents import contents_of

    assignment = memory.assign(module, "cpu")
    found, layers = contents_of(assignment)
    assert sum(one.bytes for one in found) == assignment.peak().bytes
    return (
        triage.Examined(
            "x",
            "x",
            "cpu",
            "cpu",
            True,
            0,
            0.0,
            True,
            0,
            0,
            0.0,
            cost.TrafficTotal(),
            0,
            "",
            "",
            found,
            layers,
            (),
        ),
    )


def test_roles_of_arguments() -> None:
    found = contents(hlo.parse(DECODE))
    assert found[Role.CACHES] == (1, "cache['k']")
    assert found[Role.STATE] == (1, "total")
    assert found[Role.EMBEDDINGS] == (1, "params['embed']")
    assert found[Role.WEIGHTS] == (2, "params['w']")  # s8 is a quantized weight
    assert found[Role.INPUTS][0] == 2
    assert Role.RESULTS in found


def test_what_is_updated_is_no_weight_without_donation() -> None:
    """A cache that comes back with a new part; parameters of which most come back; what is only read by its name."""
    text = "\n".join(line for line in DECODE.splitlines() if not line.startswith("HloModule"))
    found = contents(hlo.parse("HloModule jit_decode\n" + text))
    assert found[Role.CACHES] == (1, "cache['k']")
    named = """HloModule m

ENTRY e {
  w = f32[8,8] parameter(0), metadata={op_name="params['w']"}
  b = f32[8,8] parameter(1), metadata={op_name="params['b']"}
  x = f32[8,8] parameter(2), metadata={op_name="x"}
  q = f32[8,8] parameter(3), metadata={op_name="q"}
  f = f32[8,8] parameter(4), metadata={op_name="weights"}
  d = f32[8,8] dot(x, f), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[8,8] dot(d, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  wn = f32[8,8] subtract(w, g)
  bn = f32[8,8] subtract(b, g)
  ROOT t = (f32[8,8], f32[8,8]) tuple(wn, bn)
}
"""
    roles = {one.role: (one.arrays, one.largest) for one in triage_of(hlo.parse(named))[0].contents}
    assert roles[Role.STATE][0] == 2
    assert roles[Role.INPUTS] == (1, "x")
    assert roles[Role.WEIGHTS] == (1, "weights")
    assert roles[Role.READ_ONLY] == (1, "q")


SCANNED = """HloModule scanned, is_scheduled=trueDONATED

condition {
  state = (s32[], f32[8,64,4096], f32[8,64,4096]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(8)
  ROOT less = pred[] compare(n, bound), direction=LT
}

body {
  state = (s32[], f32[8,64,4096], f32[8,64,4096]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  xs = f32[8,64,4096] get-tuple-element(state), index=1
  ys = f32[8,64,4096] get-tuple-element(state), index=2
  none = s32[] constant(0)
  slice = f32[1,64,4096] dynamic-slice(xs, n, none, none), dynamic_slice_sizes={1,64,4096}
  row = f32[1,1,4096] constant({...})
  changed = f32[1,64,4096] CHANGE
  out = f32[8,64,4096] dynamic-update-slice(ys, changed, n, none, none)
  ROOT t = (s32[], f32[8,64,4096], f32[8,64,4096]) tuple(next, xs, out)
}

ENTRY main {
  zero = s32[] constant(0)
  cache = f32[8,64,4096] parameter(0), metadata={op_name="k"}
  room = f32[8,64,4096] custom-call(), custom_call_target="AllocateBuffer"
  start = (s32[], f32[8,64,4096], f32[8,64,4096]) tuple(zero, cache, room)
  loop = (s32[], f32[8,64,4096], f32[8,64,4096]) while(start), condition=condition, body=body
  after = f32[8,64,4096] get-tuple-element(loop), index=2
  ROOT copied = f32[8,64,4096] copy(after)
}
"""
WRITTEN = SCANNED.replace("CHANGE", "dynamic-update-slice(slice, row, none, n, none)")


@pytest.mark.parametrize("donated", ["", ", input_output_alias={ {}: (0, {}, may-alias) }"])
def test_caches_that_a_scan_takes_and_gives_back_are_caches(donated: str) -> None:
    """As xs and ys, donated or not. A slice that is made of nothing but what it was multiplied with is no cache."""
    found = contents(hlo.parse(WRITTEN.replace("DONATED", donated)))
    assert found[Role.CACHES] == (1, "k")
    assert Role.READ_ONLY not in found
    other = contents(hlo.parse(SCANNED.replace("CHANGE", "negate(slice)").replace("DONATED", donated)))
    assert Role.CACHES not in other


def test_donating_a_cache_that_a_scan_slices_is_no_advice() -> None:
    """XLA copies the new array into the donated one behind the loop: compiled for v5e and CPU, with 2 GiB of caches, the peak
    stays as it is and the copy takes its time. Nor are such caches weights, of which one could say that they are too wide."""
    module = hlo.parse(WRITTEN.replace("DONATED", ""))
    (update,) = updates.updates(module)
    assert (update.is_in_place, update.is_sliced, update.is_carried) == (True, True, False)
    assert not updates.copies_for_updates(module)
    found = lint.run(module, lint.Config(**support.SAY_ALL))
    assert {one.code for one in found} & {"D101", "M103", "M112"} == {"M112"}


def test_a_cache_that_a_loop_carries_around_a_scan_is_worth_donating() -> None:
    """What a decoding loop hands to its next step goes through the layers as xs and ys; compiled for v5e, donating two
    caches of 2 GiB lowers the peak by 4 GiB."""
    head, entry = WRITTEN.replace("DONATED", "").split("ENTRY main {")
    inner = entry.replace('parameter(0), metadata={op_name="k"}', "get-tuple-element(state), index=1")
    inner = inner.replace("zero =", "state = (s32[], f32[8,64,4096]) parameter(0)\n  zero =", 1)
    inner = inner.replace("ROOT copied", "copied").replace(
        "}\n",
        "  n = s32[] get-tuple-element(state), index=0\n  one = s32[] constant(1)\n  next = s32[] add(n, one)\n"
        "  ROOT t = (s32[], f32[8,64,4096]) tuple(next, copied)\n}\n",
    )
    text = f"""{head}
tokens {{
  state = (s32[], f32[8,64,4096]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(16)
  ROOT less = pred[] compare(n, bound), direction=LT
}}

one_token {{{inner}
ENTRY main {{
  zero = s32[] constant(0)
  cache = f32[8,64,4096] parameter(0), metadata={{op_name="k"}}
  kept = f32[8,64,4096] copy(cache)
  start = (s32[], f32[8,64,4096]) tuple(zero, kept)
  loop = (s32[], f32[8,64,4096]) while(start), condition=tokens, body=one_token
  ROOT after = f32[8,64,4096] get-tuple-element(loop), index=1
}}
"""
    (update,) = updates.updates(hlo.parse(text))
    assert (update.is_in_place, update.is_sliced, update.is_carried) == (True, False, True)


@pytest.mark.parametrize(
    "change", [("gather(narrow", "gather(other"), ("dynamic-update-slice(cache", "add(cache")]
)
def test_what_no_gather_and_no_update_touches(change: tuple[str, str]) -> None:
    """Another table is gathered from, or all of the donated array is written: the argument has the plain role."""
    text = DECODE
    if "gather" in change[0]:
        text = text.replace(
            "  narrow = ", "  other = bf16[512,64]{1,0} constant({...})\n  narrow = "
        ).replace(*change)
        assert Role.EMBEDDINGS not in contents(hlo.parse(text))
    else:
        text = text.replace("dynamic-update-slice(cache, new, zero, at, zero)", "negate(cache)")
        assert Role.CACHES not in contents(hlo.parse(text))


@pytest.mark.parametrize(
    "name",
    ["cpu/mlp_train.cpu_1.after_optimizations.txt", "cpu/ring_attention.cpu_4.after_optimizations.txt"],
)
def test_the_figures_are_those_of_other_commands(name: str) -> None:
    path = CORPUS / name
    found = triage.run([path], jobs=1)
    (one,) = found.modules
    module = hlo.load(path)
    assert one.seconds == cost.estimate(module, one.chip).seconds
    assert one.peak_bytes == memory.assign(module).peak().bytes
    assert sum(content.bytes for content in one.contents) == one.peak_bytes
    assert [(f.code, f.message, f.seconds) for f in one.findings] == [
        (f.code, f.message, f.seconds) for f in lint.run(module, file=str(path))
    ]
    assert not found.failures


WASTE = (support.DATA / "triage" / "waste.hlo").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, size in (("small", 64), ("large", 512), ("middle", 256)):
        (tmp_path / f"{name}.hlo").write_text(
            WASTE.replace("jit_waste", f"jit_{name}").replace("512", str(size))
        )
    return tmp_path


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_cause_in_several_modules_is_one_action(folder: Path, jobs: int) -> None:
    found = triage.run([folder], triage.Settings(lint.Config(chip="h100")), jobs)
    assert [one.name for one in found.modules] == ["jit_large", "jit_middle", "jit_small"]
    action = found.actions[0]
    assert (action.file, action.line, action.is_proved) == ("train.py", 7, True)
    assert action.modules[0] == str(folder / "large.hlo")
    assert len(action.modules) >= 2
    each = [
        finding.seconds or 0.0
        for one in found.modules
        for finding in one.findings
        if (finding.code, finding.frame and finding.frame.line) == (action.code, 7)
    ]
    assert action.seconds == pytest.approx(sum(each))
    assert action.time_share == pytest.approx(sum(each) / sum(one.seconds for one in found.modules))
    assert action.memory_share == pytest.approx((action.peak_bytes or 0) / (action.usable_bytes or 1))
    assert action.value == max(action.time_share, action.memory_share)
    assert [one.value for one in found.actions] == sorted((one.value for one in found.actions), reverse=True)


def test_the_command(folder: Path) -> None:
    (folder / "broken.hlo").write_text("HloModule x\nENTRY e {\n  ROOT a = f32[ add(b, c)\n}\n")
    result = run("triage", folder, "--chip", "h100")
    assert result.exit_code == 2
    assert "broken.hlo" in result.stderr
    assert "Action 1: G116" in result.stdout
    assert "train.py:7" in result.stdout
    assert result.stdout.index("jit_large") < result.stdout.index("jit_middle")
    (folder / "broken.hlo").unlink()
    document = run_json("triage", folder, "--chip", "h100", "--sort", "memory")
    assert document["modules"][0]["module"] == "jit_large"
    assert document["actions"][0]["command"].startswith("hlotext lint ")
    text = run("triage", folder, "--chip", "h100", "--format", "markdown").stdout
    assert "### Action 1: G116" in text
    assert "| min time |" in text.replace("  ", " ")


def test_nothing_of_a_name_acts(tmp_path: Path) -> None:
    text = DECODE.replace("jit_decode", '"a\x1b[31m<b>|c"')
    (tmp_path / "x.hlo").write_text(text)
    for kind in ("text", "markdown"):
        assert "\x1b" not in run("triage", tmp_path, "--format", kind).stdout
    assert json.loads(run("triage", tmp_path, "--format", "json").stdout)


def test_a_folder_without_modules_is_a_failure(tmp_path: Path) -> None:
    result = run("triage", tmp_path, tmp_path / "nosuch")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 2


def test_shares_are_those_of_lint(folder: Path) -> None:
    """Of the module that lint speaks of, and beside it of all; of one module alone the two are one."""
    config = lint.Config(chip="h100")
    (finding, *_) = lint.lint_source(Source((folder / "small.hlo").read_text()), config).findings
    alone = triage.run([folder / "small.hlo"], triage.Settings(config), 1).actions[0]
    assert alone.share == finding.share
    text = " ".join(run("triage", folder, "--chip", "h100").stdout.split())
    assert re.search(r"saves \S+ \S+ \([\d.]+% of all modules\)", text)
    assert re.search(r"in \d modules, mostly in \S+ \([\d.]+% of its step\)", text)


UNDONATED = """HloModule jit_decode, is_scheduled=true

ENTRY main {
  cache = f32[ROWS,1024]{1,0} parameter(0), metadata={op_name="cache"}
  new = f32[1,1024]{1,0} parameter(1), metadata={op_name="new"}
  at = s32[] parameter(2), metadata={op_name="at"}
  zero = s32[] constant(0)
  copied = f32[ROWS,1024]{1,0} copy(cache)
  ROOT next = f32[ROWS,1024]{1,0} dynamic-update-slice(copied, new, at, zero)
}
"""


def _donations(tmp_path: Path, **rows_by_chip: int) -> triage.Triage:
    for chip, rows in rows_by_chip.items():
        text = UNDONATED.replace("ROWS", str(rows)).replace("jit_decode", f"jit_{chip}")
        (tmp_path / f"{chip}.hlo").write_text(text)
    return triage.run([tmp_path], triage.Settings(lint.Config()), 1)


def test_memory_is_worth_its_share_of_the_chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of 2 GiB is more of a v5e than one of 4 GiB is of an H100; host memory of unknown size is as large as any."""
    from hlotext.triage import examined

    chips = {"jit_v5e": "v5e", "jit_h100": "h100", "jit_cpu": "cpu"}

    def choose(module: hlo.Module, *_: object) -> tuple[hlo.analysis.chips.Chip, bool]:
        return hlo.analysis.chips.chip(chips[module.name]), False

    monkeypatch.setattr(examined, "_chip", choose)
    found = _donations(tmp_path, v5e=2 << 18, h100=4 << 18, cpu=1 << 18)
    by_place = {Path(one.modules[0]).stem: one for one in found.actions if one.code == "M103"}
    assert [place for place in by_place if place != "cpu"] == ["v5e", "h100"]
    assert by_place["cpu"].usable_bytes is None
    assert by_place["h100"].usable_bytes == hlo.analysis.chips.chip("h100").usable_bytes(0)
    for one in by_place.values():
        assert one.memory_share == pytest.approx(
            (one.peak_bytes or 0) / (one.usable_bytes or by_place["h100"].usable_bytes or 1)
        )


CALLBACK = """HloModule m

body {
  state = (s32[], f32[64]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  x = f32[64] get-tuple-element(state), index=1
  y = f32[64] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback", api_version=API_VERSION_TYPED_FFI
  ROOT t = (s32[], f32[64]) tuple(next, y)
}

condition {
  state = (s32[], f32[64]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(20)
  ROOT less = pred[] compare(n, bound), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  x = f32[64] parameter(0)
  start = (s32[], f32[64]) tuple(zero, x)
  ROOT loop = (s32[], f32[64]) while(start), condition=condition, body=body
}
"""


def test_findings_without_a_price_are_listed(tmp_path: Path) -> None:
    """No text tells how long a Python callback takes: it stands behind what has a price, in all formats."""
    (tmp_path / "m.txt").write_text(CALLBACK)
    found = triage.run([tmp_path / "m.txt"], jobs=1)
    assert [one.code for one in found.unpriced] == ["G106"]
    listed = len(found.actions) + len(found.suspects) + len(found.unpriced)
    assert listed == len(found.modules[0].findings)
    shown = run("triage", tmp_path / "m.txt").stdout
    assert "Not priced 1: G106 host-callback" in shown
    assert "runs 20 times in a loop" in shown
    assert "saves" not in shown.partition("Not priced")[2]
    assert "Not priced 1" in run("triage", tmp_path / "m.txt", "--format", "markdown").stdout
    (one,) = run_json("triage", tmp_path / "m.txt", "--format", "json")["unpriced"]
    assert (one["code"], one["seconds"], one["peak_bytes"]) == ("G106", None, None)


def test_what_lowers_the_peak_of_what_does_not_fit_is_the_first_action(tmp_path: Path) -> None:
    """Checkpointing of a scan, which is no action where the module fits, goes before what saves time."""
    text = (support.DATA / "lint" / "M116.txt").read_text("utf-8").partition("HloModule silent")[0]
    text = text.replace("[64,", "[8,").replace("constant(64)", "constant(8)")
    text = text.replace("4096", str(4 << 27)).replace("1024", str(1 << 27))
    text = text.replace("broadcast(h), dimensions={1}", "iota(), iota_dimension=1")
    for chip, codes in (("v5e", ["M116", "G116"]), ("v5p", ["G116"])):
        config = lint.Config(profile=hlo.analysis.Backend.TPU, chip=chip)
        file = tmp_path / "m.hlo"
        file.write_text(text)
        found = triage.run([str(file)], triage.Settings(config), 1)
        assert [one.code for one in found.actions] == codes


def test_a_column_that_tells_no_rows_apart_is_left_out() -> None:
    """The name of the only file stands in the heading; names that differ need no files beside them."""
    place = CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
    text = run("triage", place).stdout
    assert text.splitlines()[0] == f"1 module in {place}"
    assert not re.search(r"^ .*module +file$", text, re.MULTILINE)
    other = CORPUS / "tpu" / "mlp_train.v4_2x2x1.after_optimizations.txt"
    modules, _, fullest = run("triage", place, other).stdout.partition("Main memory at the peak")
    assert re.search(r"module +file$", modules, re.MULTILINE)
    assert " file" not in fullest.partition("Action")[0].splitlines()[1]


def test_a_text_beside_the_folder_that_it_was_dumped_to_is_shown_once(tmp_path: Path) -> None:
    """`compiled.as_text()` is the dumped text, but for numbers of frames and notes for the backend."""
    dumped = (support.ROOT / "corpus/gpu/data_parallel.h100_1x1x4.after_optimizations.txt").read_text()
    (tmp_path / "dump").mkdir()
    final = tmp_path / "dump" / "module_0001.jit_step.sm_9.0_gpu_after_optimizations.txt"
    final.write_text(dumped)
    compiled = re.sub(r"stack_frame_id=\d+", "stack_frame_id=1", dumped)
    assert compiled != dumped
    (tmp_path / "compiled.txt").write_text(compiled)
    changed = re.sub(r"f32\[\d+", "f32[8", dumped)
    (tmp_path / "other.txt").write_text(changed)
    found = run_json("triage", str(tmp_path))
    assert found["repeated"] == [{"file": str(tmp_path / "compiled.txt"), "same_as": str(final)}]
    assert {one["file"] for one in found["modules"]} == {str(final), str(tmp_path / "other.txt")}
    assert "compiled.txt is the same module as" in run("triage", str(tmp_path)).output


def test_functions_that_were_compiled_again_and_tables_that_are_cut(tmp_path: Path) -> None:
    for number, size in enumerate((4, 8, 16, 32, 64, 128, 256)):
        text = f"""HloModule jit_f, is_scheduled=true

ENTRY e {{
  p = f32[{size}]{{0}} parameter(0), metadata={{op_name="x"}}
  ROOT n = f32[{size}]{{0}} negate(p)
}}
"""
        (tmp_path / f"module_000{number}.jit_f.cpu_after_optimizations.txt").write_text(text)
    shown = " ".join(run("triage", tmp_path).stdout.split())
    assert "recompiled jit_f was compiled 7 times, for 7 shapes of x: f32[" in shown
    (again,) = run_json("triage", tmp_path)["recompiled"]
    assert (again["module"], again["compilations"], again["argument"], again["other_arguments"]) == (
        "jit_f", 7, "x", 0,
    )  # fmt: skip
    assert len(set(again["shapes"])) == 7
    assert "... and 2 more" in shown


def test_rows_that_are_permuted_are_no_embeddings() -> None:
    """As those of the right-hand side of a linear solve, or single elements that are picked."""
    for shape, sizes, rows in (("f32[64,8]", "1,8", 64), ("f32[64]", "1", 7), ("f32[64,8]", "1,8", 7)):
        rank = len(sizes.split(","))
        result = shape.replace("64", str(rows))
        offsets = "{1}" if rank > 1 else "{}"
        text = f"""HloModule m, is_scheduled=true

ENTRY e {{
  b = {shape} parameter(0)
  i = s32[{rows},1] parameter(1)
  ROOT g = {result} gather(b, i), offset_dims={offsets}, collapsed_slice_dims={{0}}, start_index_map={{0}},
    index_vector_dim=1, slice_sizes={{{sizes}}}
}}
"""
        roles = contents(hlo.parse(text))
        assert (Role.EMBEDDINGS in roles) is (rank > 1 and rows < 64)


def test_the_transfer_that_most_of_a_wait_is_for_is_named() -> None:
    place = CORPUS / "gpu" / "data_parallel.h100_1x1x4.after_optimizations.txt"
    (one,) = triage.run([place], jobs=1).modules
    estimate = cost.estimate(hlo.load(place), one.chip)
    most = max(estimate.transfers, key=lambda transfer: transfer.exposed)
    assert one.stall is not None
    assert (one.stall.name, one.stall.seconds) == (most.start.name, most.exposed)
    shown = " ".join(run("triage", place).stdout.split())
    assert f"of it on {most.start.name} (" in shown
    assert run_json("triage", place, "--format", "json")["modules"][0]["stall"]["name"] == most.start.name
    alone = CORPUS / "cpu" / "mlp_train.cpu_1.after_optimizations.txt"
    assert triage.run([alone], jobs=1).modules[0].stall is None


def test_narrow_tables_keep_the_roles_that_most_of_a_peak_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from hlotext.cli import triage as command
    from hlotext.cli.table_layout import fit

    (tmp_path / "m.hlo").write_text(UNDONATED.replace("ROWS", "4096"))
    table = command._memory(triage.run([tmp_path], jobs=1), 5)
    kept = [table.columns[n].title for n in fit(table.columns, table.rows, 44).columns]
    assert kept == ["module", "peak", "caches", "results"]


def test_loops_of_unknown_length_are_no_larger_part_of_all_modules_than_the_table_says(
    tmp_path: Path,
) -> None:
    """Lint prices them at 32 iterations, the table counts them once."""
    text = WASTE.replace("constant(100)", 'custom-call(), custom_call_target="count"')
    text = re.sub(r", backend_config=\{.*", "", text)
    (tmp_path / "known.hlo").write_text(WASTE)
    (tmp_path / "other.hlo").write_text(
        text.replace("jit_waste", "jit_other").replace("train.py", "other.py")
    )
    found = triage.run([tmp_path], triage.Settings(lint.Config(chip="h100")), 1)
    total = sum(one.seconds for one in found.modules)
    by_place = {one.place: one for one in found.modules}
    assert [one.unknown_loops for one in found.modules] == [0, 1]
    assert {action.file for action in found.actions + found.suspects} >= {"train.py", "other.py"}
    for action in found.actions + found.suspects:
        assert action.time_share <= sum(by_place[place].seconds for place in action.modules) / total + 1e-9


EARLY = """HloModule jit_f, entry_computation_layout={{(f32[{n}]{{0}})->f32[{n}]{{0}}}}

ENTRY e {{
  x = f32[{n}]{{0}} parameter(0)
  ROOT y = f32[{n}]{{0}} negate(x)
}}
"""


@pytest.mark.parametrize(
    ("early", "final", "is_left_out"),
    [
        pytest.param(1024, 1024, True, id="the same"),
        pytest.param(1024, 128, True, id="partitioned by 8"),
        pytest.param(1024, 1000, False, id="another compilation"),
        pytest.param(128, 1024, False, id="a smaller one"),
    ],
)
def test_hlo_before_optimization_is_left_out_beside_the_final_one(
    early: int, final: int, is_left_out: bool, tmp_path: Path
) -> None:
    (tmp_path / "lowered.txt").write_text(EARLY.format(n=early))
    text = EARLY.format(n=final).replace("HloModule jit_f", "HloModule jit_f, is_scheduled=true")
    (tmp_path / "compiled.txt").write_text(text)
    found = triage.run([tmp_path], jobs=1)
    places = [Path(one.place).name for one in found.modules]
    pairs = [tuple(Path(place).name for place in pair) for pair in found.unoptimized]
    if is_left_out:
        assert (places, pairs) == (["compiled.txt"], [("lowered.txt", "compiled.txt")])
        (entry,) = run_json("triage", tmp_path)["unoptimized"]
        assert Path(entry["optimized"]).name == "compiled.txt"
        assert "HLO before optimization of modules below" in run("triage", tmp_path).stdout
    else:
        assert (sorted(places), pairs) == (["compiled.txt", "lowered.txt"], [])


LONG = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{0} get-tuple-element(%p), index=1
  %y = f32[8]{0} negate(%x), metadata={op_name="neg"}
  ROOT %t = (s32[], f32[8]{0}) tuple(%i, %y)
}

%condition (q: (s32[], f32[8])) -> pred[] {
  %q = (s32[], f32[8]{0}) parameter(0)
  ROOT %no = pred[] constant(false)
}

ENTRY %e (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %zero = s32[] constant(0)
  %init = (s32[], f32[8]{0}) tuple(%zero, %a)
  %loop = (s32[], f32[8]{0}) while(%init), condition=%condition, body=%body
  ROOT %r = f32[8]{0} get-tuple-element(%loop), index=1
}
"""
COMPACT = re.sub(r"\n  %[ix] = .*", "", LONG).replace("(%x)", "(%p#1)").replace("(%i,", "(%p#0,")


@pytest.mark.parametrize(("change", "is_same"), [("negate", True), ("tanh", False)])
def test_a_dumped_text_is_known_in_either_style_of_tuple_elements(change: str, is_same: bool) -> None:
    """XLA dumps `%p#1`, and JAX prints `%x = get-tuple-element(%p), index=1`."""
    assert (outline(LONG) == outline(COMPACT.replace("negate", change))) is is_same


def test_what_iterations_are_assumed_for_has_no_share_of_all_modules() -> None:
    assert _shares(0.34, "step", None, "all modules") == "34% of its step"
    assert _shares(None, "step", None, "all modules") == ""
    assert _shares(0.34, "step", 0.05, "all modules") == "34% of its step, 5% of all modules"
