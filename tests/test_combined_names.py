"""Collectives that XLA combined and gave a name of all their op_names: what they were combined from, and what is said."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import dumps
from hlotext.analysis import scopes
from hlotext.analysis.op_names import joined_names
from hlotext.dumps.collectives import wording
from tests.support import DATA


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("jit(f)/(a/psum:b/psum)", ("jit(f)/a/psum", "jit(f)/b/psum")),
        ("(jit(f)/a:jit(g)/a)", ("jit(f)/a", "jit(g)/a")),
        (
            "jit(f)/(transpose(jvp(a,b->c))/dot_general:jvp()/add)",
            ("jit(f)/transpose(jvp(a,b->c))/dot_general", "jit(f)/jvp()/add"),
        ),
        ("f/(a/(b:c):d)", ("f/a/b", "f/a/c", "f/d")),  # combined by two passes
        ("jit(f)/transpose(jvp(a:b))", ()),
        ("jit(f)/(a:b)/dot_general", ()),
        ("jit(f)/dot_general:", ()),
        ("jit(f)/(dot_general)", ()),
        ("a:b)", ()),
        ("", ()),
    ],
)
def test_names_are_taken_apart_where_xla_joined_them(name: str, parts: tuple[str, ...]) -> None:
    assert joined_names(name) == parts


def test_names_nested_without_end_are_taken_apart_so_far() -> None:
    assert len(joined_names("(a:" * 3000 + "b" + ")" * 3000)) == 10


def test_the_scope_of_a_combined_collective_is_that_of_the_first() -> None:
    module = hlo.parse(FINAL.replace("OP_NAME", "jit(f)/(transpose(jvp(layer))/attention/dot_general:add)"))
    scope = scopes(module).of(module.entry["r"])
    assert (scope.path, scope.phase is not None and scope.phase.value) == (("layer", "attention"), "backward")


FINAL = """HloModule jit_f, is_scheduled=true, num_partitions=2

a {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  p = f32[12]{0} parameter(0)
  r = f32[12]{0} all-reduce(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=a,
      metadata={op_name="OP_NAME" stack_frame_id=1}
  ROOT n = f32[12]{0} negate(r), metadata={op_name="jit(f)/neg"}
}
"""
PROGRAM = """HloModule jit_f, num_partitions=2

a {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  p = f32[4,8]{1,0} parameter(0)
  z = f32[] constant(0)
  s = f32[8]{0} reduce(p, z), dimensions={0}, to_apply=a,
      metadata={op_name="jit(f)/reduce_sum" source_file="f.py" source_line=7}
  d = f32[8,8]{1,0} dot(p, p), lhs_contracting_dims={0}, rhs_contracting_dims={0},
      metadata={op_name="jit(f)/dot_general" source_file="f.py" source_line=8}
  t = f32[8,8]{1,0} transpose(d), dimensions={1,0}, metadata={op_name="jit(f)/transpose" source_file="f.py" source_line=8}
  ROOT u = (f32[8]{0}, f32[8,8]{1,0}) tuple(s, t)
}
"""


def _collectives(folder: Path, op_name: str, program: str | None = PROGRAM) -> dumps.CollectiveCause:
    (folder / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(FINAL.replace("OP_NAME", op_name))
    if program is not None:
        (folder / "module_0000.jit_f.before_optimizations.txt").write_text(program)
    (compilation,) = dumps.open(folder).compilations
    (one,) = compilation.collectives()
    return one


def test_each_name_is_an_operation_of_the_program(tmp_path: Path) -> None:
    """A transpose was folded into the product that it transposes, and left it its name."""
    one = _collectives(tmp_path, "jit(f)/(reduce_sum:transpose)")
    assert wording.facts(one) == [
        (
            "because",
            "reduce_sum (line 7) and dot (line 8) reduce over a dimension that is sharded along unnamed mesh axes",
        ),
        (
            "confidence",
            "medium: operation is known (uncertain: only the names of the combined collectives show it)",
        ),
    ]


def test_without_the_program_the_names_are_all_that_is_known(tmp_path: Path) -> None:
    one = _collectives(tmp_path, "jit(f)/(reduce_sum:reshape)", program=None)
    assert [reason.cause for reason in one.reasons] == ["partial", "unknown"]
    assert [reason.confidence for reason in one.reasons] == ["low", "low"]
    assert one.reasons[1].because == "unknown: it was created for reshape, which does not sum"


def test_sums_of_the_program_are_the_programs(tmp_path: Path) -> None:
    one = _collectives(tmp_path, "jit(f)/shard_map/(psum:reduce_sum)", program=None)
    assert [reason.cause for reason in one.reasons] == ["program", "unknown"]


def _with_changed_final(folder: Path, old: str, new: str) -> dumps.Compilation:
    """The training step with a scan, compiled for GPU, whose final HLO was changed."""
    with tarfile.open(DATA / "collectives" / "gpu_0.12.train_scan.shardy.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    (final,) = folder.glob("*gpu_after_optimizations.txt")
    text = final.read_text()
    assert old in text
    final.write_text(text.replace(old, new))
    return next(one for one in dumps.open(folder).compilations if one.last is not None)


def test_names_that_the_partitioner_did_not_write_are_said_to_be_missing(tmp_path: Path) -> None:
    compilation = _with_changed_final(tmp_path, "eval_jaxpr/reduce_sum:", "eval_jaxpr/renamed:")
    one = next(one for one in compilation.collectives() if len(one.reasons) == 3)
    assert {reason.part for reason in one.reasons} == {"all-reduce.3", "all-reduce.4", ""}
    assert one.reasons[-1].because == (
        "unknown: it was combined from 1 more that the HLO after partitioning does not have under their names"
    )
    assert one.confidence == "low"


def test_what_may_be_made_of_others_is_not_said_to_be_a_pass_s_own(tmp_path: Path) -> None:
    """Of another size than any of the partitioner's, and without names: these are missing, so it may be made of them."""
    names = "(transpose(jvp())/while/body/eval_jaxpr/reduce_sum:transpose(jvp())/transpose:jvp()/reduce_sum)"
    compilation = _with_changed_final(tmp_path, names, "another")
    (one,) = (one for one in compilation.collectives() if len(one.reasons) == 1)
    assert (one.why, one.confidence) == (f"unknown: {wording.OF_OTHERS}", "low")


def test_every_doubt_says_why(tmp_path: Path) -> None:
    """No level but the highest stands without what is not certain."""
    for path in sorted((DATA / "collectives").glob("[cg]pu*_0.12.*.tar.xz")):
        folder = tmp_path / path.name
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
        for one in folder.glob("*.[0-9][0-9][0-9][0-9].*"):
            one.unlink()  # the passes, so that both ends alone are left
        compilation = next(one for one in dumps.open(folder).compilations if one.last is not None)
        for cause in compilation.collectives():
            for reason in cause.reasons:
                assert (reason.confidence == "high") == (not reason.doubts), (path.name, reason)
