"""Dumps of many hosts, and two folders, side by side: three hosts of `tests/data/hosts`, changed in one way after another."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import diff, dumps
from tests.cli_support import run
from tests.support import DATA

HOSTS = DATA / "hosts"
LOCAL = """HloModule jit_iota, entry_computation_layout={()->s32[4]{0}}

ENTRY %main () -> s32[4] {
  ROOT %iota = s32[4]{0} iota(), iota_dimension=0
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four hosts that compiled the same."""
    for number in range(4):
        own = tmp_path / "job" / f"host_{number}"
        shutil.copytree(HOSTS / "host_0", own)
        options = own / "module_0000.jit_step.debug_options"
        options.write_text(options.read_text().replace("host_0", own.name))
    return tmp_path / "job"


def edit(host: Path, word: str, change: Callable[[str], str]) -> None:
    """Changes the texts of a host whose names hold a word."""
    for path in host.glob(f"*{word}*"):
        path.write_text(change(path.read_text()))


def swapped(text: str) -> str:
    """The two all-reduces in the other order."""
    first, second = re.findall(r"^  %all-reduce.*\n", text, re.MULTILINE)
    return text.replace(first + second, second + first)


def test_hosts_that_compiled_the_same(folder: Path) -> None:
    """Names, paths, metadata, numbers of modules and dump folders do not count."""
    host = folder / "host_2"
    edit(
        host,
        "optimizations",
        lambda text: text.replace("%scaled", "%other").replace("train.py", "/mnt/b/train.py"),
    )
    for path in list(host.iterdir()):
        path.rename(path.with_name(path.name.replace("0000", "0017")))
    report = dumps.hosts([folder])
    assert (report.verdict, report.findings, report.modules) == ("same", (), 1)
    assert report.hosts == ("host_0", "host_1", "host_2", "host_3")


CHANGES: dict[str, tuple[str, Callable[[str], str], str, str | None]] = {
    "program": ("optimizations", lambda t: t.replace("constant(0.5)", "constant(0.25)"), "different", "rate"),
    "final": ("after", lambda t: t.replace("multiply(", "add("), "different", "scaled"),
    "order": ("after", swapped, "collectives", "all-reduce"),
    "channel": ("after", lambda t: t.replace("channel_id=2", "channel_id=3"), "collectives", "all-reduce.1"),
    "groups": ("after", lambda t: t.replace("{{0,1},{2,3}}", "{{0,2},{1,3}}"), "collectives", "all-reduce"),
    "option": ("debug_options", lambda t: t + "xla_cpu_enable_fast_math: true\n", "options", None),
    "damaged": ("before", lambda t: t[:200], "unreadable", None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_odd_host_is_named(name: str, folder: Path) -> None:
    word, change, kind, instruction = CHANGES[name]
    edit(folder / "host_2", word, change)
    report = dumps.hosts([folder])
    (finding,) = report.findings
    assert report.verdict == "different"
    assert (finding.kind, finding.module, finding.hosts) == (kind, "jit_step", ("host_2",))
    assert finding.instruction == instruction
    if name == "option":
        assert finding.setting == "xla_cpu_enable_fast_math"
        assert finding.settings == {"xla_cpu_enable_fast_math": (None, "true")}


def test_a_deadlock_comes_before_the_program_that_causes_it(folder: Path) -> None:
    """The texts before optimization differ too, and must not hide it."""
    edit(folder / "host_2", "optimizations", swapped)
    edit(folder / "host_2", "before", lambda text: text.replace("constant(0.5)", "constant(0.25)"))
    deadlock, program = dumps.hosts([folder]).findings
    assert (deadlock.kind, deadlock.hosts, deadlock.instruction) == ("collectives", ("host_2",), "all-reduce")
    assert "all-reduce.1 f32" in deadlock.message
    assert "{{0,1},{2,3}}" in deadlock.message
    assert (program.kind, program.instruction) == ("different", "rate")
    assert "0.25, elsewhere 0.5" in program.message
    assert deadlock.message.endswith(program.message)


def test_collectives_before_optimization_count_where_no_text_is_final(folder: Path) -> None:
    for host in folder.iterdir():
        next(host.glob("*after*")).unlink()
    edit(folder / "host_1", "before", swapped)
    kinds = [finding.kind for finding in dumps.hosts([folder]).findings]
    assert kinds == ["collectives", "different"]


CALL = """HloModule jit_step

%body (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %rate = f32[4]{0} constant({1, 1, 1, 1})
  ROOT %scaled = f32[4]{0} multiply(%x, %rate)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0), sharding={replicated}
  ROOT %call = f32[4]{0} call(%p), to_apply=%body
}
"""


def test_what_differs_is_the_instruction_inside_a_call(folder: Path) -> None:
    for host in folder.iterdir():
        (host / "module_0000.jit_step.before_optimizations.txt").write_text(CALL)
    edit(folder / "host_1", "before", lambda text: text.replace("multiply(", "add("))
    (finding,) = dumps.hosts([folder]).findings
    assert finding.instruction == "call"
    assert "scaled (multiply) in body: add, elsewhere multiply" in finding.message


def test_another_release_is_the_cause_and_not_another_program(folder: Path) -> None:
    for host in folder.iterdir():
        text = CALL.replace("sharding={replicated}", "sharding={mesh['x'=4], [{}]}")
        (host / "module_0000.jit_step.before_optimizations.txt").write_text(text)
    own = CALL.replace("sharding={replicated}", 'frontend_attributes={xla.sdy.sharding="#sdy"}')
    (folder / "host_3" / "module_0000.jit_step.before_optimizations.txt").write_text(own)
    (finding,) = dumps.hosts([folder]).findings
    assert (finding.hosts, finding.setting) == (("host_3",), "XLA")
    assert "JAX 0.10 or before" in finding.message
    assert "the program before optimization is the same" in finding.message


def test_an_operation_that_one_host_has_more_is_named(folder: Path) -> None:
    """Not the one whose place it takes."""
    edit(
        folder / "host_1",
        "before",
        lambda text: text.replace(
            "  %all-reduce = ", "  %dropped = f32[8]{0} negate(%scaled)\n  %all-reduce = "
        ),
    )
    (finding,) = dumps.hosts([folder]).findings
    assert (finding.instruction, finding.opcode) == ("dropped", "negate")
    assert "dropped (negate), which only it has" in finding.message


def test_donation_on_one_host_is_told(folder: Path) -> None:
    """No operation differs."""
    edit(
        folder / "host_1",
        "before",
        lambda text: text.replace("HloModule jit_step", "HloModule jit_step, buffer_donor={ (0, {}) }", 1),
    )
    (finding,) = dumps.hosts([folder]).findings
    assert (finding.kind, finding.hosts) == ("different", ("host_1",))
    assert "donation: donated now in argument" in finding.message


def devices(*ids: int) -> str:
    """Options with which JAX compiled for these devices."""
    rows = "".join(f"computation_devices {{ replica_device_ids: {one} }}\n" for one in ids)
    return f"executable_build_options {{ device_assignment {{ {rows} }} }}\n"


def test_devices_in_another_order_on_one_host(folder: Path) -> None:
    """Every text is the same: only the options of the compilation have the order of the mesh."""
    for host in folder.iterdir():
        (host / "module_0000.jit_step").mkdir()
        order = (3, 2, 1, 0) if host.name == "host_2" else (0, 1, 2, 3)
        (host / "module_0000.jit_step" / "compile_options.textproto").write_text(devices(*order))
    (finding,) = dumps.hosts([folder]).findings
    assert (finding.kind, finding.hosts, finding.setting) == ("options", ("host_2",), "device_assignment")
    assert "3,2,1,0, elsewhere 0,1,2,3, so its collectives pair different devices" in finding.message


def test_another_chip_on_one_host(folder: Path) -> None:
    """The programs are the same until the compiler comes."""
    for host in folder.iterdir():
        name = "NVIDIA B200" if host.name == "host_2" else "NVIDIA H100 80GB HBM3"
        target = f'device_description_str: "{name}"\n'
        (host / "module_0000.jit_step.gpu_target_config.pbtxt").write_text(target)
    (finding,) = dumps.hosts([folder]).findings
    assert (finding.kind, finding.hosts, finding.setting) == ("options", ("host_2",), "chip")
    assert finding.message.startswith("chip is b200, elsewhere h100")


def test_a_module_that_a_host_did_not_reach_is_behind_its_cause(folder: Path) -> None:
    """The host compiled another program, and nothing more."""
    for host in folder.iterdir():
        for path in list(host.glob("*.txt")):
            if host.name != "host_3":
                text = path.read_text().replace("HloModule jit_step", "HloModule jit_eval")
                path.with_name(path.name.replace("0000.jit_step", "0001.jit_eval")).write_text(text)
    edit(folder / "host_3", "before", lambda text: text.replace("f32[8]", "f32[24]"))
    program, missing = dumps.hosts([folder]).findings
    assert (program.kind, program.module, program.hosts) == ("different", "jit_step", ("host_3",))
    assert "size 8 -> 24 in argument" in program.message
    assert (missing.kind, missing.module, missing.hosts) == ("missing", "jit_eval", ("host_3",))
    assert "host_3 compiled nothing from here on" in missing.message


def test_each_host_with_a_program_of_its_own(folder: Path) -> None:
    for number, host in enumerate(sorted(folder.iterdir())):
        edit(host, "before", lambda text, own=number: text.replace("constant(0.5)", f"constant({own})"))  # type: ignore[misc]
    (finding,) = dumps.hosts([folder]).findings
    assert "in 4 forms: each host has its own" in finding.message
    assert "1 on host_1, 0 on host_0" in finding.message


def test_combined_collectives_in_another_order_deadlock(folder: Path) -> None:
    """Arrays of one combined all-reduce count by their order too."""
    row = "  %sum = ({0}) all-reduce(%a, %b), channel_id=1, replica_groups={{{{0,1}}}}, to_apply=%add\n"
    text = """HloModule jit_step, num_partitions=2

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %main {
  %a = f32[4]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
ROW}
"""
    for host in folder.iterdir():
        order = "f32[8]{0}, f32[4]{0}" if host.name == "host_1" else "f32[4]{0}, f32[8]{0}"
        own = text.replace("ROW", row.format(order).replace("  %sum", "  ROOT %sum"))
        if host.name == "host_1":
            own = own.replace("(%a, %b)", "(%b, %a)")
        for stage in ("before_optimizations", "cpu_after_optimizations"):
            (host / f"module_0000.jit_step.{stage}.txt").write_text(own)
    deadlock, _ = dumps.hosts([folder]).findings
    assert (deadlock.kind, deadlock.hosts) == ("collectives", ("host_1",))
    assert "on host_1" in deadlock.message
    assert "on host_0" in deadlock.message


def test_constants_that_no_text_shows_are_unknown(folder: Path) -> None:
    for host in folder.iterdir():
        edit(
            host,
            "optimizations",
            lambda text: text.replace(
                "%rates = f32[8]{0} broadcast(%rate), dimensions={}", "%rates = f32[8]{0} constant({...})"
            ),
        )
    report = dumps.hosts([folder])
    assert (report.verdict, report.elided_constants) == ("same", 1)
    said = " ".join(run("dump", "hosts", str(folder), "-j", "1").stdout.split())
    assert "1 constant elided as {...}" in said
    pair = diff.folders(folder / "host_0", folder / "host_1").pairs[0]
    assert pair.elided == 1
    said = " ".join(run("diff", folder / "host_0", folder / "host_1").stdout.split())
    assert "have equal values is unknown" in said


def test_names_of_mesh_axes_do_not_keep_collectives_apart(folder: Path) -> None:
    def mesh(axis: str) -> Callable[[str], str]:
        return lambda text: text.replace("{{0,1},{2,3}}", f"mesh['{axis}'=2,'y'=2] {{'y'}}")

    for host in folder.iterdir():
        edit(host, "after", mesh("b" if host.name == "host_1" else "a"))
    assert "collectives" not in [finding.kind for finding in dumps.hosts([folder]).findings]


def test_a_host_that_did_not_finish(folder: Path) -> None:
    next((folder / "host_3").glob("*after*")).unlink()
    (finding,) = dumps.hosts([folder]).findings
    assert (finding.kind, finding.hosts) == ("unfinished", ("host_3",))


def test_what_one_host_compiled_for_itself_is_a_note(folder: Path) -> None:
    for stage in ("before_optimizations", "cpu_after_optimizations"):
        (folder / "host_1" / f"module_0003.jit_iota.{stage}.txt").write_text(LOCAL)
    report = dumps.hosts([folder])
    (finding,) = report.findings
    assert (report.verdict, finding.kind, finding.module, finding.hosts) == (
        "local",
        "local",
        "jit_iota",
        ("host_1",),
    )


def test_a_module_for_several_devices_must_be_everywhere(folder: Path) -> None:
    for path in list((folder / "host_0").iterdir()):
        path.unlink()
    (finding,) = dumps.hosts([folder]).findings
    assert (finding.kind, finding.hosts) == ("missing", ("host_0",))
    assert "it deadlocks if devices of several hosts take part" in finding.message


def test_a_missing_module_is_compared_among_the_others(folder: Path) -> None:
    for path in list((folder / "host_0").iterdir()):
        path.unlink()
    edit(folder / "host_3", "optimizations", lambda text: text.replace("constant(0.5)", "constant(0.25)"))
    first, second = dumps.hosts([folder]).findings
    assert (first.kind, first.hosts) == ("missing", ("host_0",))
    assert (second.kind, second.hosts, second.instruction) == ("different", ("host_3",), "rate")


def without_collectives(text: str) -> str:
    return re.sub(r"= (\S+) all-reduce\((\S+)\), .*", r"= \1 negate(\2)", text)


def test_nothing_waits_for_a_module_without_collectives(folder: Path) -> None:
    for path in list((folder / "host_0").iterdir()):
        path.unlink()
    for host in folder.iterdir():
        edit(host, "optimizations", without_collectives)
    (finding,) = dumps.hosts([folder]).findings
    assert (finding.kind, finding.hosts) == ("missing", ("host_0",))
    assert "no host waits" in finding.message
    for path in folder.glob("*/*after*"):
        path.unlink()
    assert "unknown without the final HLO" in dumps.hosts([folder]).findings[0].message


@pytest.mark.parametrize(
    ("change", "consequence"),
    [
        (None, "both have collectives, so they deadlock if"),
        (without_collectives, "no host waits for another"),
    ],
)
def test_modules_in_another_order_are_a_note(
    folder: Path, change: Callable[[str], str] | None, consequence: str
) -> None:
    for number, host in enumerate(sorted(folder.iterdir())):
        for path in list(host.iterdir()):
            other = path.with_name(
                path.name.replace("0000.jit_step", f"{'0001' if number < 3 else '0000'}.jit_eval")
            )
            text = path.read_text().replace("HloModule jit_step", "HloModule jit_eval")
            if number == 3:
                path.rename(path.with_name(path.name.replace("0000", "0001")))
            other.write_text(text)
        if change is not None:
            edit(host, "optimizations", change)
    report = dumps.hosts([folder])
    (finding,) = report.findings
    assert (report.verdict, finding.kind, finding.hosts) == ("same", "order", ("host_3",))
    assert consequence in finding.message


def test_without_a_majority_all_are_named(folder: Path) -> None:
    edit(folder / "host_1", "after", swapped)
    (finding,) = dumps.hosts([folder / "host_0", folder / "host_1"]).findings
    assert finding.hosts == ("host_0", "host_1")


def test_one_host_alone_is_an_error(folder: Path) -> None:
    with pytest.raises(ValueError, match="two hosts"):
        dumps.hosts([folder / "host_0"])


def test_several_processes_answer_the_same(folder: Path) -> None:
    edit(folder / "host_2", "after", swapped)
    assert dumps.hosts([folder], jobs=2) == dumps.hosts([folder])


def test_the_command(folder: Path) -> None:
    """Exit status 1 for what differs; the finding in every form."""
    assert run("dump", "hosts", str(folder), "-j", "1").exit_code == 0
    edit(folder / "host_2", "after", swapped)
    result = run("dump", "hosts", str(folder), "-j", "1")
    assert result.exit_code == 1
    assert "host_2" in result.stdout
    assert "all-reduce" in result.stdout
    table = run("dump", "hosts", str(folder), "-j", "1", "--format", "markdown").stdout
    assert "| collectives | jit_step | host_2 |" in table
    document = json.loads(run("dump", "hosts", str(folder), "-j", "1", "--format", "json").stdout)
    assert document["findings"][0]["kind"] == "collectives"
    assert run("dump", "hosts", str(folder / "host_0"), "-j", "1").exit_code == 2


# ---- two folders


def test_folders_with_a_flag(folder: Path) -> None:
    """A setting that moves no operation is an answer."""
    edit(folder / "host_1", "debug_options", lambda text: text + "xla_cpu_enable_fast_math: true\n")
    (pair,) = diff.folders(folder / "host_0", folder / "host_1").pairs
    assert pair.settings == {"xla_cpu_enable_fast_math": (None, "true")}
    assert (pair.before, pair.after, pair.is_same) == ("same", "same", False)


def test_folders_are_paired_by_what_compilations_are(folder: Path) -> None:
    """Two of one name by their programs, whatever their numbers; the rest by name."""
    old, new = folder / "host_0", folder / "host_1"
    slower = (old / "module_0000.jit_step.before_optimizations.txt").read_text().replace("0.5", "0.125")
    (old / "module_0005.jit_step.before_optimizations.txt").write_text(slower)
    for path in list(new.iterdir()):
        path.rename(path.with_name(path.name.replace("0000", "0008")))
    (new / "module_0002.jit_step.before_optimizations.txt").write_text(slower)
    (new / "module_0004.jit_iota.before_optimizations.txt").write_text(LOCAL)
    found = diff.folders(old, new)
    assert [(pair.old.number, pair.new.number, pair.before) for pair in found.pairs] == [
        (0, 8, "same"),
        (5, 2, "same"),
    ]
    assert [one.name for one in found.only_new] == ["jit_iota"]
    assert not found.only_old
    assert not found.is_same


def test_a_renamed_module_is_the_same_one(folder: Path) -> None:
    """Its header's hash, which the name goes into, is no change; with `exact` the name is the cause."""
    old, new = folder / "host_0", folder / "host_1"
    for number, host in enumerate((old, new)):
        own = f'HloModule jit_step, frontend_attributes={{fingerprint_before_lhs="{number}a"}}'
        edit(host, "after", lambda text, own=own: text.replace("HloModule jit_step", own))  # type: ignore[misc]
    for path in list(new.iterdir()):
        text = path.read_text().replace("HloModule jit_step", "HloModule jit_update")
        path.with_name(path.name.replace("0000.jit_step", "0017.jit_update")).write_text(text)
        path.unlink()
    (pair,) = diff.folders(old, new).pairs
    assert (pair.before, pair.after, pair.is_renamed, pair.is_same) == ("same", "same", True, True)
    assert run("diff", old, new).exit_code == 0
    (exact,) = diff.folders(old, new, exact=True).pairs
    assert (exact.before, exact.names_only, exact.is_same) == ("different", True, False)
    result = run("diff", old, new, "--exact")
    assert result.exit_code == 1
    assert "jit_step -> jit_update" in " ".join(result.stdout.split())


def test_exact_counts_names(folder: Path) -> None:
    edit(folder / "host_1", "optimizations", lambda text: text.replace("%scaled", "%other"))
    (pair,) = diff.folders(folder / "host_0", folder / "host_1").pairs
    (exact,) = diff.folders(folder / "host_0", folder / "host_1", exact=True).pairs
    assert (pair.before, exact.before) == ("same", "different")


def test_another_order_of_operations_is_no_other_program(folder: Path) -> None:
    """What depends on nothing may stand elsewhere; collectives may not."""
    edit(folder / "host_1", "after", swapped)
    (pair,) = diff.folders(folder / "host_0", folder / "host_1").pairs
    assert pair.after == "different"

    def moved(text: str) -> str:
        """The constant in front of the parameter."""
        lines = re.search(r"^(  %p = .*\n)(  %rate = .*\n)", text, re.MULTILINE)
        assert lines is not None
        return text.replace(lines[0], lines[2] + lines[1])

    edit(folder / "host_2", "after", moved)
    (pair,) = diff.folders(folder / "host_0", folder / "host_2").pairs
    assert (pair.after, pair.is_same) == ("reordered", False)


def test_the_command_compares_folders(folder: Path) -> None:
    """In every form, with exit status 1 for what differs."""
    old, new = folder / "host_0", folder / "host_1"
    assert run("diff", old, new).exit_code == 0
    edit(new, "debug_options", lambda text: text + "xla_cpu_enable_fast_math: true\n")
    result = run("diff", old, new)
    assert result.exit_code == 1
    assert "no operations differ" in result.stdout
    assert "xla_cpu_enable_fast_math" in result.stdout
    edit(new, "before", lambda text: text.replace("constant(0.5)", "constant(0.25)"))
    table = run("diff", old, new, "--format", "markdown").stdout
    assert "| `xla_cpu_enable_fast_math` | default | true |" in table
    (pair,) = json.loads(run("diff", old, new, "--format", "json").stdout)["pairs"]
    assert pair["before"]["instruction"] == "rate"
    assert run("diff", old / "nothing", new, "--exact").exit_code == 2


TRAIN = """HloModule jit_train, entry_computation_layout={(f32[32,8]{1,0}, f32[8,4]{1,0})->f32[32,4]{1,0}}, num_partitions=4

ENTRY main {
  x = f32[32,8]{1,0} parameter(0), sharding={mesh['data'=4], [{'data'}, {}]}, metadata={op_name="x"}
  w = f32[8,4]{1,0} parameter(1), sharding={mesh['data'=4], [{}, {}]}, metadata={op_name="w"}
  dot = f32[32,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={source_file="t.py" source_line=3}
  ROOT tanh = f32[32,4]{1,0} tanh(dot), metadata={source_file="t.py" source_line=4}
}
"""
CAUSES: dict[str, tuple[Callable[[str], str], str]] = {
    "batch": (lambda t: t.replace("[32", "[64"), "size 32 -> 64 in argument x"),
    "dtype": (lambda t: t.replace("f32", "bf16"), "element type f32 -> bf16 in all 2 arguments"),
    "mesh": (lambda t: t.replace("mesh['data'=4]", "mesh['data'=2]"), "mesh: data=4 -> data=2"),
    "sharding": (
        lambda t: t.replace("[{}, {}]", "[{'data'}, {}]"),
        "sharding of w: {mesh, [{}, {}]} -> {mesh, [{'data'}, {}]}",
    ),
    "donation": (
        lambda t: t.replace("jit_train,", "jit_train, buffer_donor={ (1, {}) },"),
        "donation: donated now in argument w",
    ),
    "operation": (
        lambda t: t.replace("tanh(", "negate("),
        "operations only in the first: tanh (1), at t.py:4; only in the second: negate (1), at t.py:4",
    ),
    "precision": (
        lambda t: t.replace(
            "rhs_contracting_dims={0}", "rhs_contracting_dims={0}, operand_precision={highest,highest}"
        ),
        "operation dot (dot): operand_precision=none -> operand_precision={highest,highest}, at t.py:3",
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_the_first_line_says_what_changed(name: str, tmp_path: Path) -> None:
    """Rather than the operations that differ because of it."""
    change, said = CAUSES[name]
    for side, text in (("old", TRAIN), ("new", change(TRAIN))):
        (tmp_path / side).mkdir()
        (tmp_path / side / "module_0000.jit_train.before_optimizations.txt").write_text(text)
    (pair,) = diff.folders(tmp_path / "old", tmp_path / "new").pairs
    assert pair.changes[0].text == said
    result = run("diff", tmp_path / "old", tmp_path / "new")
    assert said in " ".join(result.stdout.split()).partition("jit_train (module 0)")[0]
    (row,) = json.loads(run("diff", tmp_path / "old", tmp_path / "new", "--format", "json").stdout)["pairs"]
    assert row["changed"][0]["text"] == said


def test_a_mesh_in_the_header_is_told_first(tmp_path: Path) -> None:
    """As JAX 0.10 writes it, where shardings are lists of tiles."""
    old = TRAIN.replace(
        "jit_train,", 'jit_train, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=4, "b"=2]>}},'
    )
    tiles = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
    new = old.replace('"a"=4, "b"=2', '"a"=2, "b"=4').replace("{mesh['data'=4], [{}, {}]}", tiles)
    for side, text in (("old", old), ("new", new)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "module_0000.jit_train.before_optimizations.txt").write_text(text)
    (pair,) = diff.folders(tmp_path / "old", tmp_path / "new").pairs
    assert pair.changes[0].text == "mesh: a=4,b=2 -> a=2,b=4"


def test_source_lines_that_moved_are_told(tmp_path: Path) -> None:
    for side, text in (("old", TRAIN), ("new", TRAIN.replace("source_line=4", "source_line=9"))):
        (tmp_path / side).mkdir()
        (tmp_path / side / "module_0000.jit_train.before_optimizations.txt").write_text(text)
    found = diff.folders(tmp_path / "old", tmp_path / "new")
    assert found.is_same
    assert found.pairs[0].moved == "source lines of 1 operation, first t.py:4 -> t.py:9"
    told = run("diff", tmp_path / "old", tmp_path / "new").stdout
    assert "no differences but source lines; not all texts can be compared" in told
    assert "unknown: neither folder has a text of jit_train after optimization" in told


LOG = """DEBUG:jax._src.cache_key:get_cache_key hash of serialized computation: {0}
DEBUG:jax._src.cache_key:get_cache_key hash of serialized jax_lib version: {2}
DEBUG:jax._src.cache_key:get_cache_key hash of serialized XLA flags: {1}
"""


def log(program: str, flags: str) -> str:
    """What JAX logs of one key."""
    return LOG.format(program * 64, flags * 64, "7" * 64)


def test_keys_of_the_cache(tmp_path: Path) -> None:
    """The part that made it miss; a key that only one log has shifts nothing."""
    old, new = tmp_path / "old.log", tmp_path / "new.log"
    old.write_text(log("a", "1") + log("b", "1"))
    new.write_text(log("c", "2") + log("a", "2") + log("b", "1"))
    found = diff.cache_keys(old.read_text(), new.read_text())
    assert found is not None
    assert [dict(pair.parts) for pair in found.pairs] == [{"XLA flags": ("1" * 64, "2" * 64)}, {}]
    assert (found.only_old, found.only_new) == (0, 1)
    result = run("diff", old, new, "--exact")
    assert result.exit_code == 1
    assert "XLA flags" in result.stdout
    assert "XLA flags" in run("diff", old, new, "--exact", "--format", "markdown").stdout
    assert json.loads(run("diff", old, new, "--exact", "--format", "json").stdout)["keys_only_new"] == 1
    assert diff.cache_keys("", new.read_text()) is None


PROGRAM = """HloModule m

ENTRY e {
  a = f32[4]{0} parameter(0)
  b = f32[8]{0} parameter(1)
  c = f32[] constant(2)
  d = f32[4]{0} broadcast(c), dimensions={}
  m = f32[4]{0} multiply(a, d)
  n = f32[8]{0} negate(b)
  ROOT t = (f32[4]{0}, f32[8]{0}) tuple(m, n)
}
"""


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda text: text, (None, None)),
        (lambda text: text.replace("negate", "abs"), ("n", "n")),
        (lambda text: text.replace("constant(2)", "constant(3)"), ("c", "c")),
        (lambda text: text.replace("multiply(a, d)", "multiply(d, a)"), ("m", "m")),
    ],
    ids=["same", "opcode", "constant", "operands"],
)
def test_parameters_pair_by_number_and_constants_by_use(
    change: Callable[[str], str], names: tuple[str | None, str | None]
) -> None:
    lines = change(PROGRAM).splitlines()
    lines[3:6] = reversed(lines[3:6])
    found = dumps.fingerprints.first_difference(hlo.parse(PROGRAM), hlo.parse("\n".join(lines)))
    assert tuple(one and one.name for one in found) == names


def test_each_odd_host_is_named_whatever_tells_it_apart(folder: Path) -> None:
    """One differs before optimization, one only after it, one cannot be read."""
    for number in range(4, 7):
        shutil.copytree(folder / "host_0", folder / f"host_{number}")
    edit(folder / "host_1", "optimizations", lambda text: text.replace("constant(0.5)", "constant(0.25)"))
    edit(folder / "host_2", "after", lambda text: text.replace("multiply(", "add("))
    edit(folder / "host_3", "before", lambda text: text[:200])
    report = dumps.hosts([folder])
    found = {finding.hosts: finding for finding in report.findings}
    assert {hosts: one.kind for hosts, one in found.items()} == {
        ("host_1",): "different",
        ("host_2",): "different",
        ("host_3",): "unreadable",
    }
    assert "only after optimization; first" in found["host_2",].message
    assert "7 hosts, 1 module\n" in run("dump", "hosts", folder, "-j", "1").stdout
