"""Literals as XLA itself reads and prints them, where jaxlib is installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from hlotext.ir.values import numbers
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.types import ElementType, TypeKind
from tests.literal_cases import TYPES, array_shape, cases

_ASK_XLA = """
import json, sys
from jaxlib import _hlo
full, short = _hlo.HloPrintOptions(), _hlo.HloPrintOptions()
full.print_large_constants, short.print_large_constants = True, False
presets = {"prints": full, "default": short, "essential": _hlo.HloPrintOptions.fingerprint()}
module_text = "HloModule m\\n\\nENTRY e {{\\n  ROOT c = {} constant({}\\n)\\n}}\\n"
for line in sys.stdin:
    shape, text = json.loads(line)
    try:
        module = _hlo.hlo_module_from_text(module_text.format(shape, text))
    except Exception as error:
        answer = None
    else:
        answer = {}
        for name, options in presets.items():
            printed = next(line for line in module.to_string(options).splitlines() if " constant(" in line)
            answer[name] = printed.split(" constant(", 1)[1].removesuffix(")")
    print(json.dumps(answer), flush=True)
"""


def ask_xla(questions: list[tuple[str, str]]) -> list[dict[str, str] | None]:
    """What XLA prints for each (shape, text) of a constant, None where it refuses, in its own process."""
    pytest.importorskip("jaxlib")
    run = subprocess.run(
        [sys.executable, "-c", _ASK_XLA],
        input="".join(json.dumps(question) + "\n" for question in questions),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.xla
def test_xla_agrees_with_the_data() -> None:
    """XLA reads and prints every case as this project does, but for the differences that the files name."""
    asked = [param.values[0] for kind in ("case", "error") for param in cases(kind)]
    asked = [case for case in asked if case.get("xla") != "not asked"]
    for case, answer in zip(asked, ask_xla([(case["shape"], case["text"]) for case in asked]), strict=True):
        place = (case["shape"], case["text"])
        if "xla" in case:
            assert case["why"]
            actual = "error" if answer is None else answer["prints"]
            assert actual == case["xla"] or case["xla"] == "made up", place
            assert actual != case.get("prints", case["text"]), place
        elif "message" in case:
            assert answer is None, place
        else:
            prints = case.get("prints", case["text"])
            default = case.get("default", prints)
            essential = case.get("essential", default)
            assert answer == {"prints": prints, "default": default, "essential": essential}, place


@pytest.mark.xla
def test_xla_prints_the_same() -> None:
    """Random arrays of every type and of many shapes print as XLA prints them, in all three ways.

    So that XLA reads what is meant, it gets a point in every negative zero, no NaN in a complex number, and
    not the smallest value of f8e8m0fnu, whose text it takes for the next one.
    """
    random = np.random.default_rng(7)
    questions, expected = [], []
    for type_ in TYPES:
        for _ in range(25):
            dimensions = tuple(random.integers(0, 4, random.integers(0, 7)).tolist())
            literal = random_literal(type_, dimensions, random)
            text = str(literal)
            if not type_.is_integral:
                text = re.sub(r"-0(?![\w.])", "-0.0", text)
            questions.append((str(literal.shape), text))
            expected.append(
                {
                    "prints": str(literal),
                    "default": literal.abbreviated_text(),
                    "essential": literal.essential_text(),
                }
            )
    for question, ours, answer in zip(questions, expected, ask_xla(questions), strict=True):
        assert answer == ours, question


def random_literal(type_: ElementType, dimensions: tuple[int, ...], random: np.random.Generator) -> Literal:
    """Any bits, but no NaN in complex numbers and not the smallest f8e8m0fnu."""
    part = numbers.component_type(type_)
    size = (*dimensions, 2) if type_.is_complex else dimensions
    if part.is_floating:
        bits = random.integers(0, 1 << part.bits, size, dtype=np.uint64).astype(f"u{part.dtype.itemsize}")
        if type_.name == "f8e8m0fnu":
            bits[bits == 0] = 1
        values = bits.view(part.dtype)
        if type_.is_complex:
            values = np.where(np.isnan(values), 1, values).astype(part.dtype).view(type_.dtype)
    elif type_.kind is TypeKind.PREDICATE:
        values = random.integers(0, 2, size).astype(np.bool_)
    else:
        least, greatest = numbers.limits(type_)
        dtype = np.int64 if least else np.uint64
        values = random.integers(least, greatest, size, dtype=dtype, endpoint=True)
        values = values.astype(np.int8).astype(type_.dtype) if type_.bits < 8 else values.astype(type_.dtype)
    return Literal.from_array(values.reshape(dimensions), array_shape(type_, dimensions))
