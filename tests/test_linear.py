"""Work that must not grow with the square of a module: counted, never timed (`python -m tests.bench.linearity` times it)."""

from __future__ import annotations

import contextlib
import difflib
import random
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import cost, rewrite
from hlotext.analysis import origins
from hlotext.cli import line_diff
from hlotext.compiler import layout_constraints
from hlotext.compiler.layout_models import CpuLayoutAssignment
from hlotext.edit import calls, integrity
from hlotext.ir.nodes.operand_index import OperandIndex, ReindexedInstruction
from hlotext.ir.nodes.order import Order
from hlotext.rewrite.kit import limits
from hlotext.rewrite.kit.limits import PassLimitError
from hlotext.rewrite.kit.worklist import Worklist
from hlotext.rewrite.passes import PASSES
from hlotext.rewrite.passes.cleanup import cse
from tests import cli_support
from tests.bench.kinds import MODULES

N = 200


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """How often a function was called, in the one element of a list."""
    count, function = [0], getattr(owner, name)

    def call(*arguments: Any, **named: Any) -> Any:
        count[0] += 1
        return function(*arguments, **named)

    monkeypatch.setattr(owner, name, call)
    return count


def module(kind: str, n: int = N) -> hlo.Module:
    return hlo.parse(MODULES[kind][1](n))


def test_operands_of_a_wide_user_are_made_once_when_all_of_them_are_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = module("one user of equals")
    made = counted(monkeypatch, OperandIndex, "of")
    assert PASSES["cse"]().run(m).statistics == {"instructions": N - 1}
    assert made[0] == 1
    assert len(set(m.entry.root.operands)) == 1
    assert type(m.entry.root) is hlo.Instruction
    assert integrity.problems(m) == []


def test_a_fusion_is_looked_at_once_when_many_of_its_operands_are_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = module("equal operands of a fusion")
    looked = counted(monkeypatch, cse, "deduplicate_fusion_operands")
    PASSES["cse"]().run(m)
    assert looked[0] == 1
    assert len(m.entry.root.operands) == len(m.entry.root.called_computations[0].parameters) == 1
    assert integrity.problems(m) == []


def test_insertions_at_one_place_number_only_neighbours_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    m = module("a chain", 1000)
    anchor = m.entry.instructions[500]
    assert m.entry.order[anchor]
    all_anew = counted(monkeypatch, Order, "_number")
    for _ in range(500):
        rewrite.Builder.before(anchor).sine(anchor.operands[0])
    assert all_anew[0] == 0
    assert integrity.problems(m) == []


def test_the_others_that_take_a_wide_value_are_not_visited_whenever_one_of_them_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = module("many users of many")
    visited = counted(monkeypatch, Worklist, "visit")
    assert PASSES["tuple-simplifier"]().run(m).changed
    assert visited[0] < 12 * N


def test_calls_of_new_copies_are_checked_from_their_side(monkeypatch: pytest.MonkeyPatch) -> None:
    m = module("a chain of calls")
    top, bottom = m.computations[-2], m.computations[0]
    looked = counted(monkeypatch, calls, "_callers")
    last = m.computations[1].root
    copy = rewrite.import_computation(m, bottom)
    last.attributes["to_apply"] = copy  # that leads to nothing, while all the chain leads to the call
    assert looked[0] < 20
    with pytest.raises(hlo.EditError, match="call itself"):
        last.attributes["to_apply"] = top


def test_calls_of_copied_callers_are_checked_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conditional in the middle of a long chain of them, of which copies are made."""
    m = module("nested conditionals")
    asked = counted(monkeypatch, calls, "_callers")
    assert PASSES["conditional-canonicalizer"]().run(m).statistics == {"conditionals": N - 1}
    assert asked[0] < 20 * N
    assert integrity.problems(m) == []


def test_branches_of_a_conditional_are_listed_as_often_as_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = module("branches")
    listed = counted(monkeypatch, hlo.Instruction, "callees")
    PASSES["hlo-module-dce"]().run(m)
    assert listed[0] < 20 * N
    text = str(m).replace("f32[4]", "f32[4]{0}")
    m = hlo.parse(text)
    listed[0] = 0
    assert hlo.verify(m, layout_sensitive=True) == []
    assert listed[0] < 20 * N


def test_a_wide_state_is_looked_through_once_when_its_parts_are_laid_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = module("a wide loop")
    looked = counted(monkeypatch, layout_constraints, "at_most_rank_1")
    CpuLayoutAssignment().run(m)
    assert looked[0] <= sum(map(len, m.computations))


def test_equal_wide_shapes_of_two_texts_are_compared_part_by_part_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the process remembers of the first text has shapes that are equal to those of the second, and others."""
    assert hlo.verify(module("a tuple of tuples")) == []
    again = module("a tuple of tuples")
    compared = counted(monkeypatch, hlo.Shape, "__eq__")
    assert hlo.verify(again) == []
    assert compared[0] < 20 * N
    array = again.entry.parameters[0].shape
    assert array is not None
    first, second = (hlo.Shape.tuple((array,) * 40) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != hlo.Shape.tuple((array,) * 41)
    with pytest.warns(RuntimeWarning, match="a Shape never equals a string"):
        assert first != "f32[4]"


def test_who_waits_for_whom_is_kept_up_by_edits() -> None:
    """Found out once, and right after every edit and every step back."""
    m = module("a chain", 40)
    lines = m.entry.instructions

    def waiting(number: int) -> list[str]:
        assert integrity.problems(m) == []
        return [i.name for i in lines[number].control_successors]

    assert waiting(5) == []
    known = m.entry._successors
    for late, early in ((20, 5), (10, 5), (30, 10), (10, 3)):
        own = dict(lines[late].attributes)
        own["control-predecessors"] = (*lines[late].control_predecessors, lines[early])
        lines[late].change(attributes=own)
    both = [lines[10].name, lines[20].name]
    assert waiting(5) == both
    with contextlib.suppress(ZeroDivisionError), m.transaction():
        lines[10].change(attributes={**lines[10].attributes, "control-predecessors": (lines[3], lines[4])})
        assert (waiting(5), waiting(4)) == (both[1:], both[:1])
        raise ZeroDivisionError
    assert (waiting(5), waiting(4)) == (both, [])
    del lines[20].attributes["control-predecessors"]
    assert waiting(5) == both[:1]
    assert m.entry._successors is known


def test_numbers_of_channels_are_asked_for_where_one_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    target, library = module("a chain"), module("calls of others", 20)
    walked = counted(monkeypatch, hlo.Module, "instructions")
    for computation in library.computations[:-1]:
        rewrite.import_computation(target, computation)
    assert walked[0] < 20


@pytest.mark.parametrize("seed", range(20))
def test_wide_users_are_like_others_whatever_is_done_with_them(seed: int) -> None:
    """Exchanged operands, with looks at them in between, and all of it undone."""
    m = module("one user", 40)
    root, given = m.entry.root, m.entry.root.operands
    given[0].replace_all_uses_with(given[1])
    assert type(root) is ReindexedInstruction
    assert root.operands == (given[1], *given[1:])
    assert type(root) is hlo.Instruction
    root.change(operands=given)
    text = str(m)
    rng = random.Random(seed)
    expected = list(given)
    with m.transaction() as record:
        for _ in range(60):
            if rng.random() < 0.5:
                place = rng.randrange(len(given))
                expected[place] = rng.choice(given)
                root.replace_operand(place, expected[place])
            else:
                old, new = rng.sample(given, 2)
                old.replace_all_uses_with(new)
                expected = [new if operand is old else operand for operand in expected]
            if rng.random() < 0.2:
                assert list(root.operands) == expected
            if rng.random() < 0.1:
                root.change(operands=rng.sample(expected, len(expected)))
                expected = list(root.operands)
        assert integrity.problems(m) == []
    assert list(root.operands) == expected
    if seed % 2:
        record.undo()
        assert root.operands == given
        assert str(m) == text
    assert integrity.problems(m) == []


def test_a_loop_in_a_loop_is_put_in_place_once(monkeypatch: pytest.MonkeyPatch) -> None:
    m = module("nested loops", 40)
    size = sum(map(len, m.computations))
    made = counted(monkeypatch, hlo.Computation, "add")
    assert PASSES["while-to-one-trip"]().run(m).statistics == {"loops": 40}
    assert made[0] < 2 * size
    assert len(m.computations) == 1
    assert [str(d) for d in hlo.verify(m) if d.severity is hlo.Severity.ERROR] == []


def test_loops_that_double_end_in_a_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each body runs the loop below twice."""
    text = MODULES["nested loops"][1](30)
    for number in range(1, 30):
        loop = f"  %w.b{number} = (s32[], f32[4]) while(%q.b{number}), condition=%cond{number - 1}, body=%body{number - 1}\n"
        again = loop.replace(f"%w.b{number}", f"%v.b{number}").replace(f"%q.b{number}", f"%w.b{number}")
        text = text.replace(loop, loop + again).replace(
            f"get-tuple-element(%w.b{number})", f"get-tuple-element(%v.b{number})"
        )
    m = hlo.parse(text)
    monkeypatch.setattr(limits, "MAX_GROWTH", 500)
    with pytest.raises(PassLimitError):
        PASSES["while-to-one-trip"]().run(m)


@pytest.mark.parametrize("kind", ["nested loops", "a doubling chain of calls"])
def test_figures_of_what_multiplies_or_doubles_are_made(kind: str, tmp_path: Path) -> None:
    """Counts beyond all floats, and paths that double with each call."""
    path = tmp_path / "m.txt"
    path.write_text(MODULES[kind][1](1100 if "calls" in kind else 660))
    for line in ("show", "cost", "cost --format json", "time --chip v5e"):
        command, *options = line.split()
        result = cli_support.run(command, str(path), *options)
        assert result.exit_code == 0, f"{line}: {result.stderr}"
    assert len(cost.estimate(hlo.parse(path.read_text()), "v5e").critical_path) < 40_000


def test_what_a_caller_runs_is_exchanged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conditional of equal branches, whose callees are replaced together."""
    m = module("branches", 100)
    changed = counted(monkeypatch, hlo.Instruction, "change")
    assert PASSES["computation-deduplicator"]().run(m).statistics == {"computations": 98}
    assert changed[0] == 1
    assert len(set(m.entry.root.called_computations)) == 2


@pytest.mark.parametrize("seed", range(30))
def test_diffs_of_short_texts_are_those_of_difflib(seed: int) -> None:
    rng = random.Random(seed)
    old = [f"{rng.randrange(9)}\n" for _ in range(rng.randrange(60))]
    new = [line for line in old if rng.random() < 0.8]
    for _ in range(rng.randrange(6)):
        new.insert(rng.randrange(len(new) + 1), f"{rng.randrange(9)}\n")
    if old and new and old[0] != new[0]:
        expected = difflib.unified_diff(old, new, "m", "m")
        assert list(line_diff.unified(old, new, "m")) == list(expected)
    _check_diff(old, new)


def test_diffs_of_long_texts_compare_no_more_than_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    old = [line for number in range(1500) for line in (f"a{number}\n", "}\n", "\n", "same\n")]
    new = [line.replace("a", "b") for line in old]
    compared = counted(monkeypatch, difflib.SequenceMatcher, "find_longest_match")
    _check_diff(old, new)
    assert compared[0] < 2 * len(old)


def _check_diff(old: list[str], new: list[str]) -> None:
    """A diff says of both texts all that differs."""
    lines = [line for line in line_diff.unified(old, new, "m") if line[:3] not in ("---", "+++")]
    assert bool(lines) == (old != new)
    made, place = [], 0
    for line in lines:
        if line.startswith("@@"):
            start, count = (int(n) for n in [*line.split()[1][1:].split(","), "1"][:2])
            begin = start - 1 if count else start
            made += old[place:begin]
            place = begin
        elif line[0] == "+":
            made.append(line[1:])
        else:
            assert old[place] == line[1:]
            made += [line[1:]] if line[0] == " " else []
            place += 1
    assert [*made, *old[place:]] == new


def test_loops_in_loops_are_written_out_up_to_a_bound() -> None:
    m = module("nested loops", 24)
    size = sum(map(len, m.computations))
    PASSES["unroll-loops"]().run(m)
    assert sum(map(len, m.computations)) < 10 * size + limits.MAX_GROWTH
    assert any(i.opcode == "while" for i in m.instructions())


def test_not_all_neighbours_are_asked_where_an_instruction_comes_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = module("many users of many", 2000)
    asked = counted(monkeypatch, origins, "_inside")
    assert origins.responsible_frame(m.entry["y7"]) is None
    assert asked[0] < 2000
