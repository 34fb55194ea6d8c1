"""Each algebraic rule's docstring is its test: `before => after`."""

from __future__ import annotations

import re

import pytest

import hlotext as hlo
from hlotext.edit import integrity
from hlotext.rewrite.passes.algebra import RULES
from hlotext.rewrite.rewriter import Rule, apply_rules

PARAMETERS = {
    **dict.fromkeys("xyz", "f32[4,3]"), **dict.fromkeys("ij", "s32[4,3]"), **dict.fromkeys("pq", "pred[4,3]"),
    "w": "c64[4,3]", "s": "f32[]", "n": "s32[]",
}  # fmt: skip
SPLATS = {
    "f0": "f32 0", "f1": "f32 1", "f2": "f32 2", "fneg1": "f32 -1", "fhalf": "f32 0.5", "i0": "s32 0", "i1": "s32 1",
    "ineg1": "s32 -1", "yes": "pred true", "no": "pred false",
}  # fmt: skip


def module_of(expression: str) -> hlo.Module:
    """A module whose root is an expression of the names above."""
    lines = [f"{name} = {shape} parameter({n})" for n, (name, shape) in enumerate(PARAMETERS.items())]
    for name, text in SPLATS.items():
        type_, value = text.split()
        lines.append(f"{name}.c = {type_}[] constant({value})")
        lines.append(f"{name} = {type_}[4,3] broadcast({name}.c), dimensions={{}}")
    *parts, root = expression.split("; ")
    lines += parts
    if "(" not in root:
        root = f"copy({root})"
    return hlo.parse(
        "ENTRY e {\n" + "\n".join(f"  {line}" for line in [*lines, f"ROOT root = {root}"]) + "\n}\n"
    )


def text(i: hlo.Instruction) -> str:
    """An instruction with its operands written out, names left away but for parameters."""
    if i.opcode == "parameter":
        return i.name
    if i.literal is not None:
        return f"{i.shape.without_layout() if i.shape else ''} {i.literal}"
    attributes = "".join(f", {k}={v}" for k, v in i.attributes.items() if v != ())
    shape = i.shape.without_layout() if i.shape is not None else ""
    return f"{shape} {i.opcode}({', '.join(map(text, i.operands))}{attributes})"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_example(rule: Rule) -> None:
    before, after = re.split(r"\s*=>\s*", rule.doc.strip())
    module, wanted = module_of(" ".join(before.split())), module_of(after)
    counts = apply_rules(module, [rule])
    assert counts == {rule.name: 1}, rule.pattern.explain(module.entry.root)
    expected = wanted.entry.root.operands[0] if "(" not in after else wanted.entry.root
    assert text(module.entry.root) == text(expected)
    assert integrity.problems(module) == []


def test_there_are_enough_rules() -> None:
    assert len(RULES) > 50
    assert len({rule.name for rule in RULES}) == len(RULES)
