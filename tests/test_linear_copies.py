"""Work that must not grow with the square of how often a line is copied (`python -m tests.bench.copies` times it)."""

from __future__ import annotations

from typing import Any

import pytest

import hlotext as hlo
from hlotext import lint, memory
from hlotext.compiler.layout_models import CpuLayoutAssignment
from hlotext.edit import instructions, integrity, uses
from hlotext.lint.rules import g106_host_callback
from hlotext.memory import assigner
from hlotext.rewrite.passes import PASSES
from hlotext.syntax import reading
from hlotext.syntax.source.limits import MAX_STATEMENT
from tests.test_linear import N, counted


def _copied(line: str, n: int, parameter: str, root: str = "") -> hlo.Module:
    """A module of n such lines, `#` their numbers, whose results are elements of one tuple."""
    lines = "".join(f"  {line.replace('#', str(k))}\n" for k in range(n))
    shape = line.split(" = ", 1)[1].split(" ", 1)[0]
    results = ", ".join(f"%x{k}" for k in range(n))
    end = root.replace("#", results) or f"({', '.join([shape] * n)}) tuple({results})"
    return hlo.parse(
        f"HloModule m\n\nENTRY %e {{\n  %p = {parameter} parameter(0)\n{lines}  ROOT %r = {end}\n}}\n"
    )


def _operands_given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many operands each change gives that replaces all of an instruction."""
    found: list[int] = []
    give = instructions.set_operands

    def noted(journal: Any, instruction: hlo.Instruction, operands: Any) -> None:
        found.append(len(operands))
        give(journal, instruction, operands)

    monkeypatch.setattr(instructions, "set_operands", noted)
    return found


def test_users_of_a_value_in_another_layout_are_moved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA moves those that are left for each of them that it comes to."""
    m = _copied("%x# = f32[2,3]{1,0} copy(%p)", N, "f32[2,3]{0,1}")
    moved = counted(monkeypatch, uses, "set_operand")
    replaced = counted(monkeypatch, uses, "_replace_one")
    assert PASSES["layout-normalization"]().run(m).statistics["instructions"] >= N
    assert moved[0] <= 5 * N
    assert replaced[0] == 0
    assert integrity.problems(m) == []


def test_elements_of_a_wide_tuple_are_widened_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    m = _copied("%x# = bf16[4] multiply(%p, %p)", N, "bf16[4]")
    given = _operands_given(monkeypatch)
    assert PASSES["float-normalization"]().run(m).statistics == {"instructions": N}
    assert sum(given) <= 5 * N
    assert {i.opcode for i in m.entry.root.operands} == {"convert"}


def test_operands_that_are_laid_out_anew_are_changed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ", ".join(["f32[2,3]{0,1}"] * N)
    m = _copied(
        '%x# = f32[2,3] custom-call(%p), custom_call_target="t", operand_layout_constraints={f32[2,3]{1,0}}',
        N, "f32[2,3]",
        f'f32[2,3] custom-call(#), custom_call_target="u", operand_layout_constraints={{{wanted}}}',
    )  # fmt: skip
    given = _operands_given(monkeypatch)
    assert CpuLayoutAssignment().run(m).statistics["copies"] == N
    assert sum(given) <= 5 * N
    assert {i.opcode for i in m.entry.root.operands} == {"copy"}


def test_sharding_calls_in_a_row_move_each_user_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(
        f'  %x{k + 1} = f32[4] custom-call(%x{k}), custom_call_target="Sharding", sharding={{replicated}}\n'
        for k in range(N)
    )
    m = hlo.parse(
        f"HloModule m\n\nENTRY %e {{\n  %x0 = f32[4] parameter(0)\n{lines}  ROOT %r = f32[4] sine(%x{N})\n}}\n"
    )
    moved = counted(monkeypatch, uses, "set_operand")
    assert PASSES["sharding-remover"]().run(m).statistics == {"calls": N}
    assert moved[0] <= 3 * N
    assert m.entry.root.operands == (m.entry.parameters[0],)


def test_what_runs_between_two_calls_of_the_host_is_added_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    m = _copied('%x# = f32[4] custom-call(%p), custom_call_target="xla_ffi_python_cpu_callback"', N, "f32[4]")
    added = counted(monkeypatch, g106_host_callback, "written_bytes")
    assert [finding.code for finding in lint.run(m, lint.Config(select=("G106",)))] == ["G106"]
    assert added[0] <= 2 * N


def test_memory_that_may_live_out_is_not_tried_for_what_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(
        f"  %k{k} = token[] after-all()\n  %sent{k} = (f32[4], u32[], token[]) send(%p, %k{k}), channel_id={k + 1}\n"
        f"  %d{k} = token[] send-done(%sent{k}), channel_id={k + 1}\n  %x{k} = f32[4] sine(%p)\n"
        for k in range(N)
    )
    results, types = (", ".join(what) for what in ([f"%x{k}" for k in range(N)], ["f32[4]"] * N))
    m = hlo.parse(
        f"HloModule m, is_scheduled=true\n\nENTRY %e {{\n  %p = f32[4] parameter(0)\n{lines}"
        f"  ROOT %r = ({types}) tuple({results})\n}}\n"
    )
    tried = counted(monkeypatch, assigner.Assigner, "_fits")
    memory.assign(m, platform="tpu")
    assert tried[0] <= 5 * N


def test_a_header_of_any_length_is_read_without_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = "(" * 20 + "f32[4]" + ", f32[4])" * 20
    count = 2 * MAX_STATEMENT // len(shape)
    parameters = ", ".join(f"p{k}: {shape}" for k in range(count))
    lines = "".join(f"  %p{k} = {shape} parameter({k})\n" for k in range(count))
    read: list[int] = []
    parse = reading.reference.parse

    def noted(source: Any, rule: str, start: int, stop: int) -> Any:
        read.append(stop - start)
        return parse(source, rule, start, stop)

    monkeypatch.setattr(reading.reference, "parse", noted)
    result = hlo.parse_tolerant(
        f"HloModule m\n\nENTRY %e ({parameters}) -> f32[4] {{\n{lines}  ROOT %r = f32[4] constant(0)\n}}\n"
    )
    assert len(result.module.entry) == count + 1
    assert sum(read) <= 1.2 * len(parameters)
