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
    assert "the program is the same" in finding.message


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
    assert "a deadlock if devices of several hosts take part" in finding.message


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
    assert "unknown without a final text" in dumps.hosts([folder]).findings[0].message


@pytest.mark.parametrize(
    ("change", "consequence"),
    [(None, "both have collectives: a deadlock if"), (without_collectives, "no host waits for another")],
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
