"""Shape inference: cases and errors as data, the opcode table's rules, every instruction of the corpus."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.ir.nodes.instruction import Form
from hlotext.ir.tables.opcode import Opcode
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.semantics import infer
from hlotext.semantics.infer.rules import RULES
from tests import infer_cases, support

OK = [
    pytest.param(line, id=f"{path.stem}-{number}")
    for path in infer_cases.files("ok")
    for number, line in enumerate(infer_cases.op_lines(path))
]

LINE = Form.LINE

NEVER_INFERRED = {"custom-call", "parameter"}
"""Opcodes whose result only the text can say."""


@pytest.mark.parametrize("line", OK)
def test_inferred_shape(line: str) -> None:
    instruction = infer_cases.read(line)
    assert instruction.shape is not None
    assert str(infer.infer_shape(instruction)) == str(instruction.shape.without_layout())


@pytest.mark.parametrize("path", infer_cases.files("err"), ids=lambda path: path.stem)
def test_what_is_wrong(path: Path, golden: Callable[[Path, str], None]) -> None:
    """Each case is refused, with the message that stands under it and the operand or attribute at fault."""
    out = []
    for line in path.read_text().splitlines():
        if line[:1] == " ":
            continue
        out.append(line)
        if line[:1] not in ("", "#"):
            with pytest.raises(infer.ShapeInferenceError) as caught:
                infer.infer_shape(infer_cases.read(line))
            out.append(f"    ! {_fault(caught.value)}{caught.value.message}")
    golden(path, "\n".join(out) + "\n")


def _fault(error: infer.ShapeInferenceError) -> str:
    if error.operand is not None:
        return f"operand {error.operand}: "
    return f"{error.attribute}: " if error.attribute is not None else ""


# ---- the opcode table


def test_every_rule_is_used_and_exists() -> None:
    named = {row.shape_rule for row in OPCODES.values()} - {None}
    assert named == set(RULES)
    assert {row.name for row in OPCODES.values() if row.shape_rule is None} == NEVER_INFERRED


@pytest.mark.parametrize("row", OPCODES.values(), ids=str)
def test_shape_of_the_table_s_example(row: Opcode) -> None:
    instruction = hlo.parse_instruction(row.example)
    if row.name in NEVER_INFERRED:
        with pytest.raises(infer.CannotInfer):
            infer.infer_shape(instruction)
    else:
        assert instruction.shape is not None
        assert str(infer.infer_shape(instruction)) == str(instruction.shape.without_layout())


def test_rules_that_leave_something_open_need_a_stated_shape() -> None:
    for row in OPCODES.values():
        rule = infer.rule_of(row.name)
        if rule is None or rule.open in (infer.Open.NOTHING, infer.Open.DEVICES):
            continue
        instruction = hlo.parse_instruction(row.example)
        instruction._shape = None
        try:
            shape = infer.infer_shape(instruction)
        except infer.CannotInfer:
            continue
        assert shape.is_array or row.name == "collective-permute-start", row.name


@pytest.mark.parametrize(
    "line",
    [
        "f32[4] add(x, f32[4] y)",  # an operand without a shape
        "f32[4] call(f32[4] x), to_apply=%elsewhere",  # a computation that is not there
        "f32[4] frobnicate(f32[4] x)",
    ],
)
def test_what_a_pasted_line_does_not_say(line: str) -> None:
    module = hlo.parse_tolerant(line).module
    assert module is not None
    with pytest.raises(infer.CannotInfer):
        infer.infer_shape(module.entry.root)


# ---- real modules


def test_every_instruction_of_the_corpus() -> None:
    """What is inferred is what XLA printed; only the TPU compiler states narrower floats than inferred."""
    found: Counter[infer.Agreement] = Counter()
    opcodes: set[str] = set()
    for path in support.corpus_files():
        for instruction in hlo.load(path).instructions():
            if instruction.opcode in NEVER_INFERRED:
                continue
            assert instruction.shape is not None
            inferred = infer.infer_shape(instruction)
            how = infer.agreement(instruction.opcode, instruction.shape, inferred)
            narrowed = how is infer.Agreement.FLOAT_PRECISION and path.parent.name == "tpu"
            assert how is infer.Agreement.EQUAL or narrowed, (
                f"{path.name}: {instruction!r}, inferred {inferred}"
            )
            found[how] += 1
            opcodes.add(instruction.opcode)
    assert found[infer.Agreement.EQUAL] > 13_000
    assert found[infer.Agreement.FLOAT_PRECISION] < 50
    assert len(opcodes) > 100


@pytest.mark.parametrize("path", support.corpus_files(), ids=support.corpus_id)
def test_shapes_left_out_are_filled_in(path: Path) -> None:
    """A real module without the result shapes that may be left out (spec 5.7) reads as the one with them, layouts aside."""
    module = hlo.load(path)
    text, cut = _without_result_shapes(module)
    again = hlo.parse(text)
    assert cut or not any(_follows(i) for i in module.instructions())
    for instruction, other in zip(module.instructions(), again.instructions(), strict=True):
        assert instruction.shape is not None
        assert other.shape is not None
        how = infer.agreement(other.opcode, instruction.shape, other.shape.without_layout())
        narrowed = how is infer.Agreement.FLOAT_PRECISION and path.parent.name == "tpu"
        assert how is infer.Agreement.EQUAL or narrowed, f"{other!r}, printed {instruction.shape}"


def _follows(instruction: hlo.Instruction) -> bool:
    """Whether the shape may be left out, and does not say more than the operands do."""
    rule = infer.rule_of(instruction.opcode)
    return OPCODES[instruction.opcode].shape_optional and rule is not None and rule.open is infer.Open.NOTHING


def _without_result_shapes(module: hlo.Module) -> tuple[str, int]:
    """The text of a module without the shapes that may be left out, and how many these are."""
    assert module.source is not None
    pieces, end, cut = [], 0, 0
    text = module.source.text
    for instruction in sorted(module.instructions(), key=lambda i: i._start):
        if instruction.form is not LINE or instruction.span is None:
            continue
        if not _follows(instruction):
            continue
        line = text[instruction.span.start : instruction.span.end]
        stated = re.compile(rf"= (.+?) (?={re.escape(instruction.opcode)}\()").search(line)
        if stated is None or instruction.span.start < end:
            continue  # the short spelling of an asynchronous operation, or a body inside a line
        pieces += [text[end : instruction.span.start + stated.start(1)]]
        end = instruction.span.start + stated.end(1) + 1
        cut += 1
    return "".join([*pieces, text[end:]]), cut
