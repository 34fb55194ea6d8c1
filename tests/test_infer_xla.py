"""Shape inference against XLA's own: its reader infers result shapes that a text leaves out."""

from __future__ import annotations

import random
import re

import pytest

import hlotext as hlo
from hlotext.ir.tables.opcodes import OPCODES
from tests import infer_cases
from tests.xla import ask_xla

NOT_INFERRED = {"broadcast", "scaled-dot"}
"""XLA's reader takes a broadcast's dimensions for sizes, and a scaled-dot's scales for its right side."""
VERIFIED = {"add-dependency", "scan", "sort"}
"""Opcodes whose operands and computations only XLA's verifier compares, after reading."""


def unstated(line: str) -> str | None:
    """A case without its result shape; None where XLA's reader does not infer that opcode's."""
    text = infer_cases.expanded(line)
    match = re.search(r"(?:^|\s)([a-z][a-z0-9-]*)\(", text)
    row = OPCODES.get(match[1]) if match is not None else None
    if match is None or row is None or not row.shape_optional or row.new or row.name in NOT_INFERRED:
        return None
    return f"ROOT result = {text[match.start(1) :]}"


def ours(text: str) -> str | None:
    """The shape that this project infers for a line without one; None where it refuses."""
    try:
        shape = hlo.parse_instruction(text).shape
    except hlo.HloSyntaxError:
        return None
    return None if shape is None else str(shape.without_layout())


def theirs(answer: str | None) -> str | None:
    """The shape of the instruction `result` in XLA's text."""
    if answer is None:
        return None
    match = re.search(r"%result = (.*?) [a-z][a-z0-9-]*\(", answer)
    assert match is not None
    return str(hlo.parse_shape(match[1]).without_layout())


@pytest.mark.xla
def test_xla_infers_the_same_shapes() -> None:
    lines = [line for path in infer_cases.files("ok") for line in infer_cases.op_lines(path)]
    texts = [text for text in map(unstated, lines) if text is not None]
    assert len(texts) > 100
    for text, answer in zip(texts, ask_xla(texts), strict=True):
        if not ("opt-barrier((" in text or _is_variadic_window(text)):
            assert ours(text) == theirs(answer), text


def _is_variadic_window(text: str) -> bool:
    """Several arrays in a reduce-window, which XLA's reader, unlike its verifier, cannot infer."""
    return re.search(r"reduce-window\([^)]* y,", text) is not None


@pytest.mark.xla
def test_xla_refuses_what_is_wrong() -> None:
    lines = [line for path in infer_cases.files("err") for line in infer_cases.op_lines(path)]
    texts = [text for text in map(unstated, lines) if text is not None]
    for text, answer in zip(texts, ask_xla(texts), strict=True):
        assert ours(text) is None, text
        assert answer is None or _only_verified(text), text


def _only_verified(text: str) -> bool:
    """Whether only XLA's verifier finds the fault: a wrong comparator, or a size that would broadcast."""
    return any(f" {name}(" in text for name in VERIFIED) or re.search(r"f32\[1?\] y\)", text) is not None


@pytest.mark.xla
@pytest.mark.slow  # once, with the newest release
def test_xla_agrees_on_changed_cases() -> None:
    """Numbers and types of the cases changed at random: the same are refused, others have the same shape."""
    random_ = random.Random(20260701)
    lines = [
        line
        for kind in ("ok", "err")
        for path in infer_cases.files(kind)
        for line in infer_cases.op_lines(path)
    ]
    texts: list[str] = []
    while len(texts) < 600:
        text = unstated(_changed(random_.choice(lines), random_))
        if text is not None and not any(f" {name}(" in text for name in (*VERIFIED, "map", "opt-barrier")):
            texts.append(text)
    agreed = 0
    for text, answer in zip(texts, ask_xla(texts), strict=True):
        mine, other = ours(text), theirs(answer)
        agreed += mine == other
        if mine != other and not _known_difference(text):
            pytest.fail(f"{text}: inferred {mine}, but XLA infers {other}")
    assert agreed > 550


def _changed(line: str, random_: random.Random) -> str:
    """A case with one number, or one element type, replaced."""
    places = list(
        re.finditer(r"(?<![\w.])(?:<=)?\d+(?![\w.])|\?(?=[,\]])|\b(?:f32|s32|c64|bf16)(?=\[)", line)
    )
    if not places:
        return line
    place = random_.choice(places)
    if place[0][0].isalpha():
        new = random_.choice(["f32", "s32", "pred", "c64", "bf16", "f64"])
    elif line.rfind("[", 0, place.start()) > line.rfind("]", 0, place.start()):
        new = random_.choice(["0", "1", "2", "3", "4", "8", "?", "<=3", "<=4"])
    else:
        new = random_.choice(["-1", "0", "1", "2", "3", "5"])
    return line[: place.start()] + new + line[place.end() :]


def _known_difference(text: str) -> bool:
    """XLA's reader lets scalars broadcast, dimensions be dropped twice, and lengths be negative."""
    binary = re.search(r"= [a-z0-9-]+\(\w+\[(.*?)\] x, \w+\[(.*?)\] y\)", text)
    return (
        (binary is not None and binary[1] != binary[2])
        or "fft_length={-1" in text
        or "_batching_dims={" in text
        or "topk(f32[]" in text
        or _is_variadic_window(text)
    )
