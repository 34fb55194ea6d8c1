"""Where findings are shown, and why a rule says nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis import Backend
from hlotext.ir.nodes.source import Source
from hlotext.ir.values.frames import StackFrame
from hlotext.lint.checkout import Checkout
from hlotext.testing import inspect
from tests import support
from tests.cli_support import run

DUMP = support.DATA / "lint" / "compiled" / "waste_gather_in_loop.cpu_8.after_optimizations.txt"


def frame(file: str, line: int = 2) -> StackFrame:
    return StackFrame(file, "f", line, 1, line, 2)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout with two files, and a package installed below it."""
    for name in ("train.py", "models/layers.py", "site-packages/jax/lax.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a = 1\nb = 2\nc = 3\n")
    return Checkout(tmp_path)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["models/layers.py"], ("models/layers.py", 2)),
        (["/home/ci/work/models/layers.py"], ("models/layers.py", 2)),
        (["C:\\work\\models\\layers.py"], ("models/layers.py", 2)),
        (["/usr/lib/python3.11/site-packages/jax/lax.py", "/x/train.py"], ("train.py", 2)),
        (["site-packages/jax/lax.py"], None),
        (["/x/other.py"], None),
        (["<stdin>"], None),
        (["../train.py"], None),
        ([], None),
    ],
)
def test_frames_are_found_in_the_checkout(
    checkout: Checkout, files: list[str], expected: tuple[str, int] | None
) -> None:
    """The innermost one that lies there; installed packages and files from elsewhere do not."""
    assert checkout.place(frame(file) for file in files) == expected


def test_a_line_that_is_not_there_is_no_place(checkout: Checkout) -> None:
    """The file is then another one of that name."""
    assert checkout.place([frame("train.py", 9)]) is None
    assert checkout.place([frame("train.py", 0)]) is None


def test_code_hosts_are_shown_the_line_of_the_program(tmp_path: Path) -> None:
    """With --source-root: in GitHub's, GitLab's and SARIF reports, with the line of the dump beside it."""
    programs = tmp_path / "corpus" / "programs"
    programs.mkdir(parents=True)
    (programs / "wasteful.py").write_text("x = 0\n" * 400)
    here = ("lint", DUMP, "--select", "C101", "--isolated")
    there = (*here, "--source-root", tmp_path)
    assert "file=corpus/programs/wasteful.py,line=" in run(*there, "--format", "github").stdout
    assert f"in {DUMP}:" in run(*there, "--format", "github").stdout.replace("%3A", ":")
    (row,) = json.loads(run(*there, "--format", "gitlab").stdout)
    assert row["location"]["path"] == "corpus/programs/wasteful.py"
    (result,) = json.loads(run(*there, "--format", "sarif").stdout)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "corpus/programs/wasteful.py"
    assert place["region"]["startLine"] == row["location"]["lines"]["begin"]
    assert DUMP.name in result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    (row,) = json.loads(run(*here, "--format", "gitlab").stdout)
    assert row["location"]["path"] == str(DUMP)


SMALL = """HloModule m, is_scheduled=true

ENTRY e {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  ROOT n = f32[4]{0} negate(x)
}
"""


@pytest.mark.parametrize(
    ("code", "config", "reason"),
    [
        ("G102", lint.Config(warn_peak=0.5), "its findings are below its thresholds"),
        ("K101", lint.Config(), "has no constant"),
        ("C101", lint.Config(), "has no communication"),
        ("L101", lint.Config(), "is for tpu, and this module is for cpu"),
        ("G112", lint.Config(), "off by default"),
        ("G102", lint.Config(ignore=("G",)), "not selected"),
        ("G102", lint.Config(**support.SAY_ALL), "G102 has findings"),
        ("M105", lint.Config(), "nothing is rematerialized"),
        ("M108", lint.Config(extend_select=("M108",)), "the rule"),
        ("S105", lint.Config(), "is for gpu, and this module is for cpu"),
        ("C110", lint.Config(), "needs several partitions, and this module has 1"),
        ("C101", lint.Config(), "the module has no communication"),
        ("G117", lint.Config(), "the module has no scatter"),
    ],
)
def test_silence_is_explained(code: str, config: lint.Config, reason: str) -> None:
    """By the first thing that keeps the rule from speaking."""
    (silence,) = lint.explain_silence(Source(SMALL), code, config)
    assert reason in silence.reason


@pytest.mark.parametrize("code", ["M103", "M108", "S105"])
def test_silence_about_what_is_not_meant(code: str) -> None:
    """The second module of a rule's cases: what it finds is below a threshold, or no operation matches."""
    source = Source((support.DATA / "lint" / f"{code}.txt").read_text())
    _, silent = lint.explain_silence(source, code, lint.Config(extend_select=(code,)))
    assert silent.module == "silent"
    assert "thresholds" in silent.reason or "the rule" in silent.reason


def test_silence_before_the_schedule_and_of_broken_text() -> None:
    """What a rule needs is said."""
    (silence,) = lint.explain_silence(Source(SMALL.replace(", is_scheduled=true", "")), "M103")
    assert "needs a scheduled module" in silence.reason
    (silence,) = lint.explain_silence(Source(SMALL.replace("negate(x)", "negate(")), "M103")
    assert "errors" in silence.reason


def test_silence_on_the_command_line() -> None:
    """One line for each module, what it would say below; an unknown code is refused."""
    result = run("lint", DUMP, "--explain-silence", "c102")
    assert result.exit_code == 0
    assert (
        "no operation matches the rule: the nearest is all_gather.3, but it is not true that a collective in"
        in result.stdout
    )
    assert run("lint", DUMP, "--explain-silence", "C999").exit_code == 2


ONE_HOT = """HloModule m, is_scheduled=true

ENTRY %e (x: f32[64,64]) -> f32[64,64] {
  %x = f32[64,64]{1,0} parameter(0)
  ROOT %d = f32[64,64]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_the_condition_that_failed_is_named() -> None:
    """With the values that it compares; a product without a one-hot matrix is no one-hot matrix of 0 classes."""
    (silence,) = lint.explain_silence(Source(ONE_HOT), "D107")
    assert silence.reason == ("the rule does not apply because no operand of a matmul is known to be one-hot")
    assert silence.details == ()
    sharded = (support.CORPUS / "tpu" / "mlp_train.v4_2x2x1.after_optimizations.txt").read_text()
    (silence,) = lint.explain_silence(Source(sharded), "C110")
    assert silence.reason == "the rule needs several partitions, and this module has 1"


GRADIENT = """HloModule gradient, is_scheduled=true

ENTRY e {
  classes = s32[512] parameter(0)
  table = f32[256,64] parameter(1)
  spread = s32[512,256] broadcast(classes), dimensions={0}
  counted = s32[512,256] iota(), iota_dimension=1
  hit = pred[512,256] compare(spread, counted), direction=EQ, metadata={op_name="eq" source_file="f.py" source_line=3}
  ones = f32[512,256] convert(hit)
  given = f32[512,64] parameter(2)
  loss = f32[512,64] negate(given), metadata={op_name="neg" source_file="f.py" source_line=9}
  ROOT of_table = f32[64,256] dot(loss, ones), lhs_contracting_dims={0}, rhs_contracting_dims={0}OWN
}
"""


@pytest.mark.parametrize(("own", "line"), [("", 3), (', metadata={source_file="f.py" source_line=5}', 5)])
def test_a_matmul_without_a_place_has_that_of_its_one_hot_matrix(own: str, line: int) -> None:
    """A gradient's other operand is of the loss."""
    config = lint.Config(**support.SAY_ALL, select=("D107",), profile=Backend.CPU)
    (finding,) = lint.run(hlo.parse(GRADIENT.replace("OWN", own)), config)
    assert finding.frame is not None
    assert (finding.instruction.name if finding.instruction else "", finding.frame.line) == ("of_table", line)


COMBINED = """HloModule combined, is_scheduled=true, num_partitions=8

ENTRY main {
  x = f32[65536] parameter(0)
  y = f32[65536] parameter(1)
  i = s32[] parameter(2)
  g = (f32[524288], f32[524288]) all-gather(x, y), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, GLOBAL
  a = f32[524288] get-tuple-element(g), index=0
  b = f32[524288] get-tuple-element(g), index=1
  d = f32[65536] dynamic-slice(a, i), dynamic_slice_sizes={65536}
  ROOT t = (f32[65536], f32[524288]) tuple(d, b)
}
""".replace("GLOBAL", "use_global_device_ids=true")


def test_one_array_of_a_combined_all_gather_is_singular() -> None:
    (finding,) = lint.run(hlo.parse(COMBINED), lint.Config(**support.SAY_ALL, select=("C108",)))
    assert "(1 array of a combined all-gather)" in finding.message


def test_a_quantity_is_told_with_its_bound() -> None:
    """Both with their unit."""
    text = (
        ONE_HOT.replace("64", "8")
        .replace("ROOT %d", "%d")
        .replace("\n}\n", "\n  ROOT %f = f32[8,8]{1,0} fusion(%d), kind=kLoop, calls=%body\n}\n")
    )
    body = "%body (p: f32[8,8]) -> f32[8,8] {\n  ROOT %p = f32[8,8]{1,0} parameter(0)\n}\n\nENTRY"
    (silence,) = lint.explain_silence(
        Source(text.replace("ENTRY", body)), "G107", lint.Config(extend_select=("G107",))
    )
    assert silence.reason == (
        "no operation matches the rule: the nearest is f, but it has too few instructions "
        "(1 instruction, not more than 500 instructions)"
    )


def test_a_finding_that_another_rule_reports_is_not_below_a_threshold() -> None:
    """C115 says more about the gather of C101: neither costs too little."""
    path = support.DATA / "lint" / "compiled" / "waste_gather_in_loop.cpu_8.after_optimizations.txt"
    (silence,) = lint.explain_silence(Source(path.read_text()), "C101")
    assert silence.reason == "C115 reports the same cause"


CALL_AFTER_WORK = """HloModule worked, is_scheduled=true

ENTRY main {
  x = f32[8192,8192]{1,0} parameter(0)
  y = f32[8192,8192]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  first = f32[1,1]{1,0} slice(y), slice={[0:1], [0:1]}
  logged = f32[1]{0} bitcast(first)
  c = f32[1]{0} custom-call(logged), custom_call_target="xla_ffi_python_gpu_callback", custom_call_has_side_effect=true
  ROOT z = f32[8192,8192]{1,0} dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
DONATED = """HloModule donated, is_scheduled=true, buffer_donor={ (1, {}) }

ENTRY main {
  x = f32[1024,1024]{1,0} parameter(0)
  y = f32[64]{0} parameter(1)
  ROOT z = f32[1024,1024]{1,0} negate(x)
}
"""


@pytest.mark.parametrize(
    ("text", "code", "profile", "numbers"),
    [
        (CALL_AFTER_WORK, "G106", Backend.CPU, "(0.000454%, below the minimum of 1%)"),
        (DONATED, "M102", Backend.CPU, "(0 B, below the minimum of 410 KiB)"),
    ],
)
def test_no_threshold_is_shown_without_its_unit(text: str, code: str, profile: Backend, numbers: str) -> None:
    """A share of bytes is bytes, and a share of the time between two calls a percentage."""
    (silence,) = lint.explain_silence(Source(text), code, lint.Config(profile=profile))
    assert numbers in silence.reason


def test_few_updated_arguments_are_not_said_to_be_none() -> None:
    """Any function of arrays gives back one of their shape: whether that is a state only its caller knows."""
    text = """HloModule m, is_scheduled=true

ENTRY e {
  w = f32[1048576]{0} parameter(0)
  g = f32[1048576]{0} parameter(1)
  ROOT r = f32[1048576]{0} subtract(w, g)
}"""
    (silence,) = lint.explain_silence(Source(text), "M103")
    assert "because too few arguments are updated to rule out coincidence" in silence.reason


def test_an_update_in_another_form_is_not_denied() -> None:
    """A cache that a scan reads slice by slice and writes into a new array is updated, too: what was looked for is told."""
    text = """HloModule m, is_scheduled=true

ENTRY e {
  w = f32[1048576]{0} parameter(0)
  ROOT r = f32[1048576]{0} reverse(w), dimensions={0}
}"""
    (silence,) = lint.explain_silence(Source(text), "M103")
    assert silence.reason == (
        "the rule does not apply because no large undonated argument is updated elementwise, in part, or as loop state "
        "(xs and ys: M112)"
    )


def test_silence_is_priced_on_the_chip_of_the_folder(tmp_path: Path) -> None:
    """As the findings themselves are, on the command line and in tests."""
    text = tmp_path / "module_0001.jit_f.cl_1.after_optimizations.txt"
    text.write_text(
        (support.DATA / "lint" / "compiled" / "waste_padding.v5e_2x2x1.after_optimizations.txt").read_text()
    )
    target = 'tpu_topology_args { version: "TPU_VERSION_GHOSTLITE" }'
    text.with_name("module_0001.jit_f.cl_1.target_arguments.txt").write_text(target)
    assert "estimated for v6e (the dump's chip)" in run("lint", text, "--select", "ALL").stdout
    code = lint.run(hlo.load(text))[0].code
    assert "estimated for v6e (the dump's chip)" in run("lint", text, "--explain-silence", code).stdout
    assert any("estimated for v6e (the dump's chip)" in line for line in inspect(text).lint().explain())


def test_conditions_are_told_in_english() -> None:
    """For no rule and no module of its cases a word of the source comes out: setting names apart, all are plain."""
    told = 0
    for code in lint.all_rules(()):
        path = support.DATA / "lint" / f"{code}.txt"
        if not path.exists():
            continue
        for silence in lint.explain_silence(
            Source(path.read_text()), code, lint.Config(extend_select=(code,))
        ):
            if "the rule" not in silence.reason or " has findings" in silence.reason:
                continue
            for text in (silence.reason, *silence.details):
                told += 1
                plain = text.replace(f"`hlotext help rule {code}`", "")
                assert not re.search(
                    r"`|==|!=|<|>|\bself\b|\bNone\b|\(\)|\b_|\bisinstance\b|[a-z]\.[a-z_]+\(", plain
                ), text


def test_a_condition_that_was_met_is_not_named() -> None:
    """Nor is one denied that lies before the one that failed: a loop for a backward pass is there, of small values."""
    text = (support.DATA / "lint" / "M116.txt").read_text().partition("\nHloModule silent")[0]
    text = text.replace("[4,1024]", "[1,1024]").replace("4096", "1024")  # it keeps as much as its state
    (silence,) = lint.explain_silence(Source(text), "M116")
    assert silence.reason == (
        "no operation matches the rule: the nearest is there, but it keeps no more for the backward pass than checkpointing "
        "would (262,144, not more than 262,400)"
    )
    (silence,) = lint.explain_silence(Source(text.replace("transpose(jvp())", "f")), "M116")
    assert silence.reason == "the rule does not apply because the module has no loop of a backward pass"


def test_the_name_of_the_candidate_is_not_repeated() -> None:
    """It stands in front of its condition: `its kind`, not `the kind of r`."""
    reduction = (
        "HloModule m, is_scheduled=true, num_partitions=4\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT c = f32[] add(a, b)\n}\n\nENTRY e {\n  p = f32[4096]{0} parameter(0)\n"
        "  ROOT r = f32[4096]{0} all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, to_apply=add\n}\n"
    )
    (silence,) = lint.explain_silence(Source(reduction), "C101")
    assert silence.reason == (
        "no operation matches the rule: the nearest is r, but its kind is all-reduce, not one of all-gather, all-to-all, "
        "ragged-all-to-all"
    )


def test_what_stops_the_last_candidate_of_an_inner_loop_is_told() -> None:
    """It was lost where the candidates were those of a function that the rule calls: products of many rows, of one loop."""
    text = (support.DATA / "lint" / "G124.txt").read_text().partition("\nHloModule silent")[0]
    (silence,) = lint.explain_silence(Source(text.replace("8,1024", "512,1024")), "G124")
    assert silence.reason == (
        "no operation matches the rule: the nearest is loop, but one matmul over all iterations would take as long"
    )


def test_a_rule_of_several_forms_says_why_of_each() -> None:
    """And what it looks for."""
    (silence,) = lint.explain_silence(Source(ONE_HOT), "D101", lint.Config(profile=Backend.TPU))
    assert silence.reason == "none of the rule's 11 patterns matches"
    told = dict(line.split(": ", 1) for line in silence.details)
    assert told["Matmuls, and the operations around them, in a wide type although the data was narrow"] == (
        "the rule does not apply because every matmul with f32 operands also depends on wide data"
    )
    weights = told["f32 weights that a program without a backward pass only reads"]
    assert weights.startswith(
        "the rule does not apply because the f32 weights are small (16.0 KiB, below the minimum of "
    )


PADDED = """HloModule padded, is_scheduled=true

ENTRY main {
  most = f32[128,64,130]{2,1,0:T(8,128)} parameter(0)
  few = f32[8,1]{1,0:T(8,128)} parameter(1)
  some = f32[128,64,130]{2,1,0:T(8,128)} negate(most)
  ROOT out = (f32[128,64,130]{2,1,0:T(8,128)}, f32[8,1]{1,0:T(8,128)}) tuple(some, few)
}
"""


def test_the_nearest_in_padding_is_what_padding_costs_most() -> None:
    """Not a column of eight that takes a tile."""
    (silence,) = lint.explain_silence(Source(PADDED), "L101")
    assert "the nearest is most, but f32[128,64,130]" in silence.reason
    assert "takes 8.00 MiB for 4.06 MiB of values (1.97x, below the minimum of 2x)" in silence.reason


REPLICATED = """HloModule held, num_partitions=4

ENTRY main {
  small = bf16[64,64] parameter(0), sharding={replicated}, metadata={op_name="gain"}
  table = bf16[1024,1024] parameter(1), sharding={replicated}, metadata={op_name="wte"}
  x = bf16[64,1024] parameter(2), sharding={devices=[4,1]<=[4]}
  y = bf16[64,1024] dot(x, table), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = bf16[64,1024] dot(small, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = bf16[64,1024] add(y, z)
}
"""


def test_the_largest_replicated_argument_is_told_with_its_threshold() -> None:
    meant = REPLICATED.replace('"gain"', '"p[0]"').replace('"wte"', '"p[1]"')
    (silence,) = lint.explain_silence(Source(meant), "C110")
    assert "the nearest is p[1], but it takes 2.00 MiB, below the minimum of 128 MiB" in silence.reason
    assert silence.reason.endswith(" (replicated arguments total 2.01 MiB)")


ATTENTION = (support.DATA / "lint" / "M121.txt").read_text().split("\n\nHloModule silent")[0]
for _old, _new in (
    ("4]{1,0}", "4]{2,1,0}"),
    ("f32[64,", "f32[2,64,"),
    ("contracting_dims={1}", "contracting_dims={2}"),
    ("dims={0}", "dims={1}"),
    ("lhs_con", "lhs_batch_dims={0}, lhs_con"),
    ("rhs_con", "rhs_batch_dims={0}, rhs_con"),
    ("p1 = f32[2,64,64]{2,1,0} dot(", "scores = f32[2,64,64]{2,1,0} dot("),
    (
        "  a1 =",
        '  p1 = f32[2,64,64]{2,1,0} exponential(scores), metadata={op_name="jit(f)/jvp()/exp"}\n  a1 =',
    ),
):
    ATTENTION = ATTENTION.replace(_old, _new)


FLASH = "a fused kernel (flash_attention of jax.experimental.pallas.ops.tpu.flash_attention)"
CUDNN = (
    "a fused kernel (jax.nn.dot_product_attention(..., implementation='cudnn'), for float16 and bfloat16 with a "
    "head dimension that is a multiple of 8 and at most 128, or 256 on Hopper and later)"
)


@pytest.mark.parametrize(
    ("profile", "kernel"),
    [
        (Backend.TPU, FLASH),
        (Backend.GPU, CUDNN),
        (Backend.CPU, "a jax.lax.map over blocks of queries, each under jax.checkpoint"),
    ],
)
def test_attention_is_fused_by_what_its_platform_has(profile: Backend, kernel: str) -> None:
    config = lint.Config(select=("M125",), profile=profile, **support.SAY_ALL)
    (finding,) = lint.lint_source(Source(ATTENTION), config).findings
    assert finding.help.startswith(f"use {kernel}, which")
