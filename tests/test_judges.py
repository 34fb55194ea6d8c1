"""The judges of fresh compilations, on texts of a few lines whose truth is plain."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotext as hlo
from tests.judges.collectives import Tagged
from tests.judges.compiling import programs
from tests.judges.identity import Log, Witness, _named_as, log_of, read

FIRST = """HloModule m

ENTRY %e (p.0: f32[8]) -> f32[8] {
  %p.0 = f32[8]{0} parameter(0)
  %sin.0 = f32[8]{0} sine(%p.0), metadata={op_name="jit(f)/t0t/sin"}
  ROOT %psum.0 = f32[8]{0} all-reduce(%sin.0), to_apply=%add, metadata={op_name="jit(f)/t1t/psum"}
}
"""
SECOND = FIRST.replace("%psum.0", "%all-reduce.1").replace("all-reduce(%sin.0)", "all-reduce(%copy.2)").replace(
    "  ROOT", "  %copy.2 = f32[8]{0} copy(%sin.0)\n  ROOT"
)  # fmt: skip


def test_tags_and_the_log_tell_who_brought_an_operation() -> None:
    texts = [read(FIRST), read(SECOND)]
    witness = Witness(texts, Log({}, {}, {"copy.2": "sin.0"}))
    assert witness.truth("all-reduce.1")[0] == frozenset({0})  # the same tag, once in each text
    assert witness.truth("copy.2") == (None, frozenset({1}))  # put in front of an operand, and without a tag


def test_without_a_witness_nothing_is_judged() -> None:
    texts = [read(FIRST.replace('metadata={op_name="jit(f)/t1t/psum"}', "")), read(SECOND)]
    witness = Witness([texts[0], {n: o for n, o in texts[1].items() if n != "psum.0"}], Log({}, {}, {}))
    assert witness.truth("all-reduce.1")[0] == frozenset({1})  # what bears the tag came there
    replaced = Witness(texts, Log({"all-reduce.1": [("psum.0", "all-reduce")]}, {}, {}))
    assert replaced.truth("all-reduce.1")[1] == frozenset({0})


def test_what_was_put_together_came_with_its_parts_or_where_they_were_merged() -> None:
    """Its name lists the tags of its parts; that it was rewritten and split since does not count."""
    head, end = "HloModule m\n\nENTRY %e (p.0: f32[8]) -> f32[8] {\n  %p.0 = f32[8]{0} parameter(0)\n", "}\n"
    name = 'metadata={op_name="jit(f)/(t1t/psum:jvp()/t2t/psum)"}'
    lines = (
        '%a = f32[8] all-reduce(%p.0), metadata={op_name="jit(f)/t1t/psum"}\n  '
        '%b = f32[8] all-reduce(%p.0), metadata={op_name="jit(f)/jvp()/t2t/psum"}\n',
        f"%c = (f32[8], f32[8]) all-reduce(%p.0, %p.0), {name}\n",
        f"%d = f32[16] all-reduce(%q), {name}\n",
        f"%e = f32[16] all-reduce-start(%q), {name}\n",
    )
    texts = [read(f"{head}{end}"), *(read(f"{head}  {line}{end}") for line in lines)]
    assert Witness(texts, Log({}, {}, {})).truth("e") == (frozenset({1, 2}), None)


def test_what_reads_the_same_through_a_tuple_may_be_the_same() -> None:
    """A copy that is taken out and put in again behind a tuple: the log tells of neither."""
    old = SECOND.replace("%all-reduce.1", "%psum.0")
    new = old.replace(
        "%copy.2 = f32[8]{0} copy(%sin.0)",
        "%t = (f32[8]{0}) tuple(%sin.0)\n  %g = f32[8]{0} get-tuple-element(%t), index=0\n  %copy.3 = f32[8]{0} copy(%g)",
    ).replace("%copy.2", "%copy.3")
    assert Witness([read(old), read(new)], Log({}, {}, {})).truth("copy.3") == (None, None)


def test_what_a_call_runs_has_not_the_tag_of_the_call() -> None:
    assert read(FIRST.replace("t1t/psum", "t1t/jit(g)/psum"))["psum.0"].own_tag == ""


def test_names_made_of_op_names_are_translated() -> None:
    """Operations stand in the same order; where they do not, nothing is judged."""
    assert _named_as(FIRST, FIRST.replace("%sin.0", "%t0t_sin.0")) == FIRST
    with pytest.raises(ValueError, match="other operations"):
        _named_as(FIRST, SECOND)


def test_programs_may_have_dataclasses(tmp_path: Path) -> None:
    """These look their module up."""
    path = tmp_path / "few_programs.py"
    path.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import ClassVar\n\n"
        "@dataclass\nclass Config:\n    size: int = 2\n    name: ClassVar[str] = ''\n\nPROGRAMS = {'p': ({}, Config)}\n"
    )
    assert list(programs(path)) == ["p"]


def test_the_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "plain.log"
    path.write_text(
        "I1 1 hlo_computation.cc:1] transformed %a.1 = (f32[2]{0}, s32[]) tuple(%x, %y) to %b.2 = f32[2]{0} copy(%x)\n"
        "I1 1 hlo_instruction.cc:2] CloneWithNewOperands:\n  %c.1 = f32[2]{0} copy(%x), metadata={}\n"
        "I1 1 hlo_instruction.cc:3]   new operands:\n"
        "I1 1 hlo_instruction.cc:4]     %z.3\n"
        "I1 1 hlo_instruction.cc:5] Replacing operand 0 of dot.4 with copy, was reshape.40\n"
    )
    log = log_of(path)
    assert log.replaced == {"b.2": [("a.1", "tuple")]}
    assert log.cloned == {("copy", ("z.3",)): ["c.1"]}
    assert log.put_in == {"copy": "reshape.40"}


BEFORE = """HloModule m

ENTRY %e (x: f32[8,4]) -> f32[8,4] {
  %x = f32[8,4]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}
  %sin = f32[8,4]{1,0} sine(%x), sharding={devices=[2,1]<=[2]}, metadata={op_name="jit(f)/t0t/sin"}
  ROOT %cos = f32[8,4]{1,0} cosine(%sin), sharding={replicated}, metadata={op_name="jit(f)/t1t/cos"}
}
"""
AFTER = """HloModule m, num_partitions=2

ENTRY %e_spmd (param: f32[4,4]) -> f32[8,4] {{
  %param = f32[4,4]{{1,0}} parameter(0), sharding={{devices=[2,1]<=[2]}}
  %sin.1 = f32[4,4]{{1,0}} sine(%param), metadata={{op_name="jit(f)/t0t/sin"}}
  %all-gather = f32[8,4]{{1,0}} all-gather(%sin.1), dimensions={{0}}, replica_groups=[1,2]<=[2], metadata={{op_name="{name}"}}
  ROOT %cos.1 = f32[8,4]{{1,0}} cosine(%all-gather), metadata={{op_name="jit(f)/t1t/cos"}}
}}
"""


def test_tags_tell_why_a_collective_is_there() -> None:
    """Whether it bears the name of its tensor or of its reader."""
    for name in ("jit(f)/t0t/sin", "jit(f)/t1t/cos"):
        judge = Tagged(hlo.parse(BEFORE), hlo.parse(AFTER.format(name=name)))
        (collective,) = judge.made
        truth = judge.truth(collective)
        assert truth is not None
        assert str(truth) == "reshard user cos tensor sin"
