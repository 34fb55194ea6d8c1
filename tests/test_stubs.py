"""Stubs are what the opcode table says, and mypy finds typos with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlotext import matchers as m
from hlotext.ir.tables import opcodes
from hlotext.rewrite.kit.builder import Builder
from tests import stubs, support

RIGHT = """
import hlotext as hlo
from hlotext import matchers as m, rewrite

def first_dimension(i: hlo.Instruction) -> int:
    return i.attributes["dimensions"][0] + len(i.attributes["window"].dimensions) + i.attributes["index"]

@rewrite.pattern(m.sine(m.op("x"), metadata="*").with_one_user())
def sine_to_cosine(r: rewrite.Rewrite) -> hlo.Instruction | None:
    total = r.b.reduce(r["x"], r.b.constant(0, "f32"), dimensions=(0,), to_apply=r.instruction.called_computations[0])
    r.b.reverse(r["x"], dimensions=[0], sharding="{replicated}", frontend_attributes={"a": "b"}, shape="f32[4]")
    r.b.custom_call(total, shape=rewrite.shape_of("f32"), custom_call_target="f", name="called")
    return r.b.cosine(r["x"], name="cosine") if m.add_any_order(m.op(), m.constant(0)).matches(total) else None
"""

IN_RULE = "from hlotext import rewrite\n\ndef f(r: rewrite.Rewrite) -> object:\n    return "
TYPOS = {
    "dimensoins": (
        "import hlotext as hlo\n\ndef f(i: hlo.Instruction) -> object:\n    return i.attributes['dimensoins'].foo\n",
        4,
    ),
    "dimensions of a window": (
        "import hlotext as hlo\n\ndef f(i: hlo.Instruction) -> object:\n    return i.attributes['window'].size\n",
        4,
    ),
    "sinee": ("from hlotext import matchers as m\n\npattern = m.sinee(m.op())\n", 3),
    "cosinee": (f"{IN_RULE}r.b.cosinee(r['x'], shap=3)\n", 4),
    "shap": (f"{IN_RULE}r.b.cosine(r['x'], shap=3)\n", 4),
    "dimension": ("from hlotext import matchers as m\n\npattern = m.concatenate(dimension=(0,))\n", 3),
    "no shape": (f"{IN_RULE}r.b.custom_call(r['x'], custom_call_target='f')\n", 4),
    "two operands": (f"{IN_RULE}r.b.cosine(r['x'], r['x'])\n", 4),
}
"""Programs with one mistake each, and its line."""


@pytest.mark.parametrize("name", stubs.STUBS)
def test_stubs_are_up_to_date(name: str) -> None:
    """`python -m tests.stubs` would write what is there, in the form that ruff gives it."""
    pytest.importorskip("ruff")
    assert (stubs.PACKAGE / name).read_text(encoding="utf-8") == stubs.formatted(stubs.STUBS[name]())


def test_stubs_name_what_is_there() -> None:
    """Every function and method of a stub exists at run time, and every opcode is in both."""
    made = re.findall(r"^def (\w+)", stubs.matcher_stub(), re.MULTILINE)
    assert all(callable(getattr(m, name)) for name in made)
    methods = re.findall(r"^    def (\w+)", stubs.builder_stub(), re.MULTILINE)
    for row in opcodes.OPCODES.values():
        name = stubs.method_name(row)
        assert name in methods or name in vars(Builder), name
        assert name in made or name in vars(m), name


@pytest.mark.slow
def test_mypy_finds_typos(tmp_path: Path) -> None:
    """With `--strict` each wrong program has an error in its line, and the right one has none."""
    mypy = pytest.importorskip("mypy.api")
    for name, (text, _) in TYPOS.items():
        (tmp_path / f"wrong_{name.replace(' ', '_')}.py").write_text(text, encoding="utf-8")
    (tmp_path / "right.py").write_text(RIGHT, encoding="utf-8")
    output, _, _ = mypy.run(
        [
            "--config-file",
            str(support.ROOT / "pyproject.toml"),
            "--no-error-summary",
            *map(str, tmp_path.iterdir()),
        ]
    )
    found = set(re.findall(r"(\w+)\.py:(\d+): error", output))
    assert found == {(f"wrong_{name.replace(' ', '_')}", str(line)) for name, (_, line) in TYPOS.items()}, (
        output
    )
