"""The pytest plugin: questions, failures that show instructions, snapshots, checks; and JAX's own programs."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import attrs
import pytest

import hlotext as hlo
from hlotext.cli import COMMANDS
from hlotext.cost import traffic
from hlotext.testing import inspect
from hlotext.testing.filecheck import check_text
from tests import support
from tests.cli_support import run
from tests.test_lint import recompiled

pytest_plugins = ["pytester"]

SYNC = (
    "HloModule m, num_partitions=4\n\nENTRY e {\n  x = f32[8]{0} parameter(0)\n  ROOT g = f32[32]{0} %s\n}\n"
)
GROUPS = "channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true"
FORMS = {
    "sync": SYNC % f"all-gather(x), {GROUPS}",
    "native": "HloModule m, num_partitions=4\n\nENTRY e {\n  x = f32[8]{0} parameter(0)\n"
    f"  s = (f32[8]{{0}}, f32[32]{{0}}) all-gather-start(x), {GROUPS}\n  ROOT g = f32[32]{{0}} all-gather-done(s)\n}}\n",
    "wrapped": "HloModule m, num_partitions=4\n\nbody {\n  p = f32[8]{0} parameter(0)\n"
    f"  ROOT g = f32[32]{{0}} all-gather(p), {GROUPS}\n}}\n\nENTRY e {{\n  x = f32[8]{{0}} parameter(0)\n"
    "  s = ((f32[8]{0}), f32[32]{0}, u32[]) async-start(x), calls=body\n  ROOT g = f32[32]{0} async-done(s)\n}\n",
    "fusion": "HloModule m, num_partitions=4\n\nbody {\n  p = f32[8]{0} parameter(0)\n"
    f"  ROOT g = f32[32]{{0}} all-gather(p), {GROUPS}\n}}\n\nENTRY e {{\n  x = f32[8]{{0}} parameter(0)\n"
    "  ROOT g = f32[32]{0} fusion(x), kind=kCustom, calls=body\n}\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_one_collective_however_it_is_written(text: str) -> None:
    """Count, bytes and axis are the same."""
    found = inspect(text, mesh={"x": 4})
    assert found.count("all-gather") == 1
    assert found.collectives("all-gather", axis="x").bytes == 128
    assert found.collectives().wire_bytes == 96


def test_axes() -> None:
    """Groups are those of the mesh, or axes that the text names; without either it is an error."""
    text = FORMS["sync"].replace("[1,4]<=[4]", "[2,2]<=[2,2]T(1,0)")
    assert len(inspect(text, {"a": 2, "b": 2}).collectives(axis="a")) == 1
    assert len(inspect(text, {"a": 2, "b": 2}).collectives(axis="b")) == 0
    assert len(inspect(text, {"a": 2, "b": 2}).collectives(axis=("a", "b"))) == 0
    named = FORMS["sync"].replace("[1,4]<=[4]", "mesh['a'=2,'b'=2] {'a'}")
    assert [len(inspect(named).collectives(axis=axis)) for axis in "ab"] == [1, 0]
    with pytest.raises(ValueError, match="pass the mesh"):
        inspect(text).collectives(axis="a")
    with pytest.raises(ValueError, match="no axis c"):
        inspect(text, {"a": 2, "b": 2}).collectives(axis="c")


def test_what_needs_a_module_says_where_it_is() -> None:
    tested = inspect(FORMS["sync"])
    with pytest.raises(TypeError, match=r"expected a Module, not Hlo; pass its \.module$"):
        traffic(tested)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected a Module, not str; hlotext\.parse\(text\) reads it$"):
        traffic("HloModule m")  # type: ignore[arg-type]
    assert len(traffic(tested.module).flows) == 1


def test_what_is_taken(tmp_path: Path) -> None:
    """Text, bytes, a path as string or Path, a module; nothing else."""
    path = tmp_path / "m.hlo"
    path.write_text(FORMS["sync"])
    for value in (FORMS["sync"], FORMS["sync"].encode(), path, str(path), hlo.load(path)):
        assert inspect(value).count("all-gather") == 1
    with pytest.raises(TypeError, match="expected a path"):
        inspect(3)


@pytest.mark.parametrize(
    "path",
    [p for p in support.corpus_files(("cpu", "gpu")) if p.stat().st_size < 200_000],
    ids=support.corpus_id,
)
def test_canonical_text_knows_no_names(path: Path) -> None:
    """It is the same after renaming everything and dropping the metadata."""
    module = hlo.load(path)
    before = inspect(module).canonical_text()
    assert inspect(recompiled(module)).canonical_text() == before


TEST = '''
TEXT = """{text}"""

def test_fails(hlo):
    assert hlo(TEXT).count("all-gather") == 0

def test_large_fails(hlo):
    assert not [c for c in hlo(TEXT).collectives("all-gather") if c.result_bytes > 8]

def test_name_fails(hlo):
    hlo(TEXT).no_such_name

def test_list_fails(hlo):
    assert hlo(TEXT).lint(select="G103").codes == []
    assert not hlo(TEXT).matches("all-gather(_)")

def test_snapshot(hlo):
    hlo(TEXT).assert_matches_snapshot()
    hlo(TEXT).assert_matches_snapshot("named")
'''
WITH_SOURCE = FORMS["sync"].replace(
    GROUPS,
    GROUPS
    + ', metadata={op_name=\\"jit(f)/gather\\" source_file=\\"model.py\\" source_line=7}'.replace('\\"', '"'),
)


def run_inside(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """pytest with the plugin and nothing else of this project's tests."""
    return pytester.runpytest_inprocess(*_plugin(), "-p", "no:cacheprovider", *arguments)


def _plugin() -> list[str]:
    """What names the plugin where the package is not installed, so that its entry point does not."""
    return [] if "hlotext" in _registered() else ["-p", "hlotext.testing.plugin"]


def _registered() -> set[str]:
    from importlib.metadata import entry_points

    return {point.name for point in entry_points(group="pytest11")}


def test_failures_show_the_instruction(pytester: pytest.Pytester) -> None:
    """The op line, the operation's name and the Python line."""
    pytester.makepyfile(TEST.format(text=WITH_SOURCE))
    result = run_inside(pytester, "-k", "fails")
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        ["*assert not [[]*all-gather(x)*", "*'Hlo' object has no attribute 'no_such_name'*"]
    )
    result.stdout.fnmatch_lines(
        [
            "*assert 1 == 0*",
            "*1 in the module:*",
            "*all-gather(x)*",
            "*op_name: jit(f)/gather*",
            "*from: model.py:7*",
        ]
    )


def test_a_question_to_the_fixture_is_answered_with_the_call(pytester: pytest.Pytester) -> None:
    questions = ('hlo.count("negate")', "hlo.cuont()", 'hlo("HloModule m", axis="data")')
    pytester.makepyfile("\n".join(f"def test_{n}(hlo): {one}" for n, one in enumerate(questions)))
    said = str(run_inside(pytester).stdout)
    assert "AttributeError: the fixture hlo is a function; ask what it returns: hlo(compiled).count\n" in said
    assert "has no attribute 'cuont'; call it: hlo(compiled)" in said
    assert "TypeError: hlo() got an unexpected keyword argument 'axis'" in said


def test_snapshots(pytester: pytest.Pytester) -> None:
    """Missing ones fail, are written on demand, and are held against the program from then on."""
    file = pytester.makepyfile(TEST.format(text=FORMS["sync"]))
    missing = run_inside(pytester, "-k", "not fails")
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*--hlo-update-snapshots*"])
    run_inside(pytester, "-k", "not fails", "--hlo-update-snapshots").assert_outcomes(passed=1)
    folder = pytester.path / "__hlo_snapshots__" / file.stem
    assert sorted(path.name for path in folder.iterdir()) == ["test_snapshot.named.txt", "test_snapshot.txt"]
    run_inside(pytester, "-k", "not fails").assert_outcomes(passed=1)
    file.write_text(
        file.read_text()
        .replace("f32[32]{0} all", "f32[32]{0}  all")
        .replace("x =", "other =")
        .replace("(x)", "(other)")
    )
    run_inside(pytester, "-k", "not fails").assert_outcomes(passed=1)
    file.write_text(file.read_text().replace("f32", "bf16"))
    changed = run_inside(pytester, "-k", "not fails")
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines(["*-*f32[[]32]*", "*+*bf16[[]32]*"])


def test_filecheck_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "filecheck.matcher", None)
    with pytest.raises(ImportError, match=r"pip install 'hlotext\[filecheck\]'"):
        check_text("HloModule m", "CHECK: HloModule")


def test_filecheck() -> None:
    """By the package's own rules; a failure is an assertion with its report."""
    pytest.importorskip("filecheck")
    inspect(FORMS["sync"]).check(
        "CHECK: ENTRY\nCHECK-NEXT: parameter\nCHECK: all-gather\nCHECK-NOT: all-reduce"
    )
    with pytest.raises(AssertionError, match="does not match the checks"):
        inspect(FORMS["sync"]).check("CHECK: all-reduce")


def test_a_list_shows_itself() -> None:
    """Also where no comparison is made."""
    found = inspect(FORMS["native"])
    assert "all-gather-start(x)" in repr(found.collectives())
    assert attrs.has(type(found.collectives()[0]))
    assert "1 instructions" in repr(found.matches("all-gather-start(_)"))


@pytest.mark.xla
def test_one_line_for_each_predicate() -> None:
    """Against programs that jax compiles now, for 8 devices."""
    pytest.importorskip("jax")
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(support.ROOT),
    }
    options = ["-q", *_plugin(), "-p", "no:cacheprovider", "-W", "default"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests/jax_predicates.py"],
        cwd=support.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def test_hooks_of_pre_commit() -> None:
    """Each runs a command that there is, with options that it has."""
    text = (support.ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    entries = [
        line.split(": ", 1)[1].split() for line in text.splitlines() if line.strip().startswith("entry: ")
    ]
    assert len(entries) == 3
    for program, command, *options in entries:
        assert program == "hlotext"
        assert command in COMMANDS
        assert all(option in run(command, "--help").stdout for option in options)


@pytest.mark.parametrize("asked", ["all_gather", "allgather", "AllReduce", "fussion"])
def test_what_is_no_opcode_is_an_error(asked: str) -> None:
    """A test for none of a misspelt opcode would always pass."""
    found = inspect(
        support.CORPUS / "cpu" / "data_parallel.cpu_4.0006.spmd-cleanup.after_dce.before_tuple-simplifier.txt"
    )
    with pytest.raises(ValueError, match="is not an HLO opcode"):
        found.count(asked)
    with pytest.raises(ValueError, match="is not a kind of communication"):
        found.collectives(asked)


def test_a_mesh_that_cannot_be_is_an_error() -> None:
    """Of another number of devices than the module runs on, or of a size that is none; an axis it lacks too."""
    path = (
        support.CORPUS / "cpu" / "data_parallel.cpu_4.0006.spmd-cleanup.after_dce.before_tuple-simplifier.txt"
    )
    with pytest.raises(ValueError, match="has 16 devices, but the module runs on 4"):
        inspect(path, {"data": 4, "model": 4})
    with pytest.raises(ValueError, match="has size 0"):
        inspect(path, {"data": 0})
    assert inspect(path, {"data": 4}).collectives(axis="data") is not None
    with pytest.raises(ValueError, match="has no axis model"):
        inspect(path, {"data": 4}).collectives(axis="model")
    with pytest.raises(ValueError, match="did you mean `data`"):
        inspect(path, {"data": 4}).collectives(axis="dta")


STEP = """HloModule m, num_partitions=4
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
ENTRY e {
  a = f32[64,32] parameter(0)
  b = f32[32,16] parameter(1)
  d = f32[64,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[64,16] all-reduce(d), channel_id=1, use_global_device_ids=true, replica_groups={{0,1},{2,3}}, to_apply=sum
  ROOT s = f32[64,16] all-reduce(r), channel_id=2, use_global_device_ids=true, replica_groups={{0,2},{1,3}}, to_apply=sum
}
"""


def test_costs_and_bytes_by_axis() -> None:
    """This step costs at most so much, and an axis carries no more than so many bytes."""
    found = inspect(STEP, mesh={"dp": 2, "tp": 2})
    reduced = 64 * 16 // 2
    assert found.flops == 2 * 64 * 32 * 16 + 2 * reduced
    assert found.bytes == 4 * (64 * 32 + 32 * 16 + 64 * 16) + 2 * 4 * 2 * 64 * 16
    assert found.cost.is_exact
    assert found.collectives(axis="tp").wire_bytes == found.collectives(axis="dp").wire_bytes == 4 * 64 * 16
    assert len(found.collectives(axis=("dp", "tp"))) == 0
    with pytest.raises(ValueError, match="no axis pp"):
        found.collectives(axis="pp")
    with pytest.raises(ValueError, match="names no mesh axes"):
        inspect(STEP).collectives(axis="tp")


LOOP = """HloModule m, num_partitions=4

cond {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  ROOT t = (s32[], f32[8]) tuple(next, y)
}
ENTRY e {
  x = f32[8] parameter(0)
  z = s32[] START
  s = (s32[], f32[8]) tuple(z, x)
  w = (s32[], f32[8]) while(s), condition=cond, body=body
  y = f32[8] get-tuple-element(w), index=1
  ROOT g = f32[32] all-gather(y), channel_id=2, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true
}
"""


BRANCHES = """HloModule m, num_partitions=4

all {
  x = f32[8] parameter(0)
  g = f32[32] all-gather(x), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true
  ROOT y = f32[8] slice(g), slice={[0:8]}
}
next {
  x = f32[8] parameter(0)
  ROOT y = f32[8] collective-permute(x), channel_id=2, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
}
ENTRY e {
  p = pred[] parameter(0)
  x = f32[8] parameter(1)
  y = f32[8] conditional(p, x, x), true_computation=all, false_computation=next
  ROOT z = f32[8] collective-permute(y), channel_id=3, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
}
"""


def test_of_a_conditional_the_dearest_branch_counts() -> None:
    """A limit holds whichever branch is taken; `hlotext comm` says that its sum of both is the most."""
    found = inspect(BRANCHES).collectives()
    assert (found.bytes, found.wire_bytes, found.is_at_most) == (128 + 32, 96 + 32, True)
    assert found[0].runs is None
    kept = inspect(BRANCHES).collectives("collective-permute")
    assert (kept.bytes, kept.is_at_most) == (64, True)
    (total,) = traffic(hlo.parse(BRANCHES)).by_link().values()
    assert (total.mark, total.bytes) == ("<= ", 96 + 32 + 32)


def test_a_branch_in_a_loop_counts_in_each_round() -> None:
    """The most that eight rounds can send, not one."""
    body = LOOP.replace("START", "constant(0)").replace(
        "  y = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}\n",
        "  y = f32[8] conditional(i, x, x), branch_computations={next, keep}\n",
    )
    branches = BRANCHES[BRANCHES.index("next {") : BRANCHES.index("ENTRY")]
    keep = "keep {\n  ROOT x = f32[8] parameter(0)\n}\n"
    found = inspect(body.replace("cond {", branches + keep + "cond {", 1)).collectives()
    assert (found.bytes, found.is_at_most) == (5 * 32 + 128, True)


def test_bytes_in_loops_count_once_per_iteration() -> None:
    """As `hlotext comm` counts them; of a loop of unknown length there is no sum, lest a limit pass."""
    found = inspect(LOOP.replace("START", "constant(0)")).collectives()
    assert found.bytes == 5 * 32 + 128
    (total,) = traffic(hlo.parse(LOOP.replace("START", "constant(0)"))).by_link().values()
    assert found.wire_bytes == total.bytes == 5 * 32 + 96
    assert [row["bytes"] for row in found.table()] == [32, 128]
    unknown = inspect(LOOP.replace("START", "parameter(1)")).collectives()
    for name in ("bytes", "wire_bytes"):
        with pytest.raises(ValueError, match="the trip count of y"):
            getattr(unknown, name)
    assert unknown[1:][0].result_bytes == 128


def test_unknown_costs_are_said() -> None:
    """A limit must not pass because something was not counted."""
    call = 'ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT c = f32[4] custom-call(a), custom_call_target="mine"\n}\n'
    found = inspect(call)
    with pytest.raises(ValueError, match="the cost of c is unknown"):
        _ = found.flops
    assert [one.name for one in found.cost.unknown_calls] == ["c"]


def test_inspect_is_a_name_of_the_package() -> None:
    """`hlo.inspect` is what the fixture gives."""
    import hlotext

    found = hlotext.inspect("ENTRY e { x = f32[8] parameter(0)  ROOT y = f32[8] negate(x) }")
    assert found.count("negate") == 1


def test_arguments_results_and_scopes() -> None:
    """What goes in and comes out, array by array, and costs as a tree of scopes."""
    text = """HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }

ENTRY e {
  s = f32[8,4]{1,0} parameter(0), metadata={op_name="state['w']"}
  x = f32[4]{0} parameter(1)
  y = f32[8,4]{1,0} negate(s), metadata={op_name="jit(f)/layer_0/neg"}
  z = f32[8,4]{1,0} add(y, s), metadata={op_name="jit(f)/layer_1/add"}
  ROOT r = (f32[4]{0}, f32[8,4]{1,0}) tuple(x, z)
}
"""
    found = inspect(text)
    assert [(one.label, one.shape, one.is_donated) for one in found.arguments] == [
        ("state['w']", "f32[8,4]", True),
        ("x", "f32[4]", False),
    ]
    assert [(one.shape, one.aliased_with) for one in found.results] == [("f32[4]", None), ("f32[8,4]", (0,))]
    assert next((node.name, node.flops) for _, node in found.scopes().walk(1)) == ("layer_*", 64)
    assert [node.name for _, node in found.scopes(fold=False).walk(1)][:2] == ["layer_1", "layer_0"]


def test_collectives_say_why(tmp_path: Path) -> None:
    """From the final HLO alone, and from the dump folder that it lies in."""
    with tarfile.open(support.DATA / "collectives" / "cpu_0.12.mlp_second_wrong.shardy.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    (path,) = tmp_path.glob("*cpu_after_optimizations.txt")
    (one,) = inspect(path).collectives()
    assert one.why == (
        "because dot_general (line 30) needs the result of mul (line 29) as P('dp', None), but it is P('dp', 'tp')"
    )
    (alone,) = inspect(path.read_text()).collectives("all-gather")
    assert alone.why.startswith("unknown: its metadata names only mul (line 29)")
