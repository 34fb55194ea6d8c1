"""The first pass behind which a module computes something else: faults planted in a small folder. Needs jaxlib."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlotext import dumps
from tests.cli_support import run

pytest.importorskip("jaxlib")

TEXT = """HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}
  %c = f32[] constant(0.5)
  %b = f32[4]{0} broadcast(%c), dimensions={}
  ROOT %r = f32[4]{0} multiply(%p, %b), sharding={devices=[2]<=[2]}
}
"""
FUSED = """HloModule jit_f, is_scheduled=true

%body (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0)
  %c = f32[] constant(0.5)
  %b = f32[4]{0} broadcast(%c), dimensions={}
  ROOT %m = f32[4]{0} multiply(%q, %b)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %r = f32[4]{0} fusion(%p), kind=kLoop, calls=%body
}
"""
PASSES = ("start", "algsimp", "cse", "fusion", "end")


def folder(place: Path, *texts: str) -> Path:
    """A dump with these texts, one after each pass."""
    place.mkdir()
    names = ["before_optimizations"]
    names += [f"{n:04d}.simplification.after_{name}.before_next" for n, name in enumerate(PASSES)]
    for name, text in zip(names, texts, strict=False):
        (place / f"module_0000.jit_f.{name}.txt").write_text(text)
    return place


def test_a_fault_that_stays(tmp_path: Path) -> None:
    """The file of the pass, and the one before it, whose text is an earlier one again."""
    wrong = FUSED.replace("0.5", "0.25")
    found = dumps.bisect(folder(tmp_path / "d", TEXT, TEXT.replace("%b", "%z"), FUSED, FUSED, wrong))
    assert found.first == "module_0000.jit_f.0003.simplification.after_fusion.before_next.txt"
    assert found.good == "module_0000.jit_f.0002.simplification.after_cse.before_next.txt"
    assert (found.between, found.transient, found.ran, found.distinct) == ((), (), 4, 4)
    assert found.tried[-1].difference == pytest.approx(0.5)


@pytest.mark.slow
def test_a_fault_that_vanishes(tmp_path: Path) -> None:
    found = dumps.bisect(folder(tmp_path / "d", TEXT, FUSED.replace("multiply", "add"), FUSED))
    assert found.first is None
    assert [name.split(".")[2] for name in found.transient] == ["0000"]
    assert not found.is_clean
    place = folder(tmp_path / "e", FUSED, FUSED.replace("multiply", "add"), FUSED)
    result = run("dump", "bisect", place, "--reduce", tmp_path / "pair")
    assert result.exit_code == 1
    (named,) = (line for line in result.stdout.splitlines() if "hlotext diff --full" in line)
    assert "before_optimizations.txt" in named
    assert named.endswith("0000.simplification.after_start.before_next.txt")
    assert "add(" in (tmp_path / "pair" / "wrong.txt").read_text()


@pytest.mark.slow
def test_what_does_not_run_stands_between(tmp_path: Path) -> None:
    odd = TEXT.replace("multiply(%p, %b)", 'custom-call(%p, %b), custom_call_target="odd"')
    found = dumps.bisect(folder(tmp_path / "d", TEXT, odd, FUSED.replace("0.5", "0.25")))
    assert [name.split(".")[2] for name in found.between] == ["0000"]
    assert found.first is not None


def test_a_fault_below_the_tolerance_is_mentioned(tmp_path: Path) -> None:
    """A jump from bits that are equal, though it is less than a thousandth."""
    place = folder(tmp_path / "d", TEXT, FUSED, FUSED.replace("0.5", "0.5001"))
    result = run("dump", "bisect", place)
    said = " ".join(result.stdout.split())
    assert result.exit_code == 0
    assert "suggests a small error (try --rtol 1e-05)" in said
    assert run("dump", "bisect", place, "--rtol", "1e-05").exit_code == 1


def test_layouts_and_copies_are_no_suspects(tmp_path: Path) -> None:
    """A pass that changes many of them changes no value by that."""
    wrong = TEXT.replace("multiply(%p, %b)", "add(%q, %b)").replace(
        "  ROOT", "  %q = f32[4]{0} copy(%p)\n  ROOT"
    )
    said = " ".join(run("dump", "bisect", folder(tmp_path / "d", TEXT, wrong)).stdout.split())
    assert "changed: r (add)" in said
    assert "added: q" not in said


TWO = """HloModule jit_f

ENTRY %main {
  %x = f32[4]{0} parameter(0), metadata={op_name="x"}
  %u = f32[8]{0} parameter(1), metadata={op_name="unused"}
  %y = f32[2,2]{1,0} parameter(2), metadata={op_name="y"}
  %z = f32[4]{0} reshape(%y)
  ROOT %r = f32[4]{0} subtract(%x, %z)
}
"""
WITHOUT = TWO.replace('  %u = f32[8]{0} parameter(1), metadata={op_name="unused"}\n', "").replace(
    "(2)", "(1)"
)


def test_an_argument_that_a_pass_took_away(tmp_path: Path) -> None:
    """The others keep their values, and a fault behind it is still found."""
    assert dumps.bisect(folder(tmp_path / "d", TWO, WITHOUT)).is_clean
    wrong = WITHOUT.replace("subtract", "add")
    found = dumps.bisect(folder(tmp_path / "e", TWO, WITHOUT, wrong))
    assert found.first == "module_0000.jit_f.0001.simplification.after_algsimp.before_next.txt"


def test_arguments_that_cannot_be_told_apart_are_unknown(tmp_path: Path) -> None:
    """Neither right nor wrong, and the verdict says that the end is open."""
    nameless = WITHOUT.replace(', metadata={op_name="x"}', "")
    place = folder(tmp_path / "d", TWO, TWO.replace("%z", "%s"), nameless)
    found = dumps.bisect(place)
    assert found.is_clean
    assert [one.state for one in found.tried] == ["good", "good", "not run"]
    said = " ".join(run("dump", "bisect", place).stdout.split())
    assert "unknown from module_0000.jit_f.0001" in said
    assert "it takes different arguments from the first text" in said


def test_the_operation_that_the_pass_changed_is_told(tmp_path: Path) -> None:
    place = folder(tmp_path / "d", TEXT, FUSED, FUSED.replace("multiply(%q, %b)", "add(%q, %b)"))
    said = " ".join(run("dump", "bisect", place).stdout.split())
    assert "changed: m (add) in body, opcode: multiply -> add" in said


@pytest.mark.slow
def test_precision_is_no_fault(tmp_path: Path) -> None:
    """Other results, the same ones with wide floats."""
    rounded = TEXT.replace("multiply(%p, %b)", "multiply(%h, %b)").replace(
        "  ROOT", "  %n = f8e5m2[4]{0} convert(%p)\n  %h = f32[4]{0} convert(%n)\n  ROOT"
    )
    found = dumps.bisect(folder(tmp_path / "d", TEXT, rounded))
    assert found.first is None
    assert [name.split(".")[2] for name in found.precision] == ["0000"]
    assert found.tried[-1].difference is not None
    assert found.tried[-1].difference > 0.01


PARTS = """HloModule jit_f, num_partitions=2

ENTRY %main (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  %i = u32[] partition-id()
  %g = f32[4]{0} all-gather(%p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  %two = u32[] constant(2)
  %o = u32[] multiply(%i, %two)
  %own = f32[2]{0} dynamic-slice(%g, %o), dynamic_slice_sizes={2}
  %c = f32[] constant(0.5)
  %b = f32[2]{0} broadcast(%c), dimensions={}
  ROOT %r = f32[2]{0} multiply(%own, %b)
}
"""


@pytest.mark.slow
def test_partitions_agree_with_the_whole(tmp_path: Path) -> None:
    """Arguments are cut and results joined as the first text says; a device that takes another's part is a fault."""
    whole = TEXT.replace("HloModule jit_f,", "HloModule jit_f, num_partitions=2,")
    found = dumps.bisect(folder(tmp_path / "good", whole, PARTS))
    assert found.is_clean
    assert found.ran == 2
    swapped = PARTS.replace("multiply(%i, %two)", "subtract(%two, %o2)").replace(
        "  %o =", "  %o2 = u32[] multiply(%i, %two)\n  %o ="
    )
    found = dumps.bisect(folder(tmp_path / "bad", whole, PARTS, swapped))
    assert found.first is not None
    assert "algsimp" in found.first


@pytest.mark.slow
def test_other_groups_are_noticed_without_the_whole_program(tmp_path: Path) -> None:
    """Each device has arguments of its own, so that it matters with which others it adds them up."""
    text = """HloModule jit_f, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %r = f32[4]{0} all-reduce(%p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add
}
"""
    other = text.replace("{{0,1},{2,3}}", "{{0,2},{1,3}}")
    assert dumps.bisect(folder(tmp_path / "good", text, text.replace("%r", "%z"))).is_clean
    assert dumps.bisect(folder(tmp_path / "bad", text, other)).first is not None
    shared = (
        text.replace("parameter(0)\n  ROOT %r", "parameter(0), sharding={replicated}\n  ROOT %r"),
        other,
    )
    assert dumps.bisect(folder(tmp_path / "shared", *shared)).is_clean


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    """Status 1 for a fault, 2 where no verdict."""
    place = folder(tmp_path / "d", TEXT, FUSED, FUSED.replace("0.5", "0.25"))
    result = run("dump", "bisect", place)
    assert result.exit_code == 1
    assert "after_algsimp" in result.stdout
    document = json.loads(run("dump", "bisect", place, "--format", "json").stdout)
    assert document["good"].split(".")[2] == "0000"
    assert run("dump", "bisect", folder(tmp_path / "clean", TEXT, FUSED)).exit_code == 0
    assert run("dump", "bisect", folder(tmp_path / "alone", TEXT)).exit_code == 2
    assert run("dump", "bisect", place, "-m", "nobody").exit_code == 1
