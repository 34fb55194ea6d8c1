"""What the process remembers of modules is bounded and can be forgotten; what it switches can be forbidden."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import analysis
from hlotext.ir import caches, gc_control
from tests.support import ROOT

OF_THE_CODE_ALONE = {
    "hlotext/dumps/kinds.py:_joined",
    "hlotext/dumps/kinds.py:_with_module",
    "hlotext/ir/foreign_names.py:_unknown",
    "hlotext/ir/tables/opcodes.py:allowed_attributes",
    "hlotext/ir/tables/opcodes.py:common_attributes",
    "hlotext/ir/values/types.py:_dtype",
    "hlotext/proto/fast_computations.py:_pattern",
    "hlotext/rewrite/kit/builder.py:_decisive",
    "hlotext/proto/pool.py:enum_names",
    "hlotext/proto/pool.py:enum_numbers",
    "hlotext/semantics/infer/shapes.py:_float_range",
    "hlotext/syntax/fast/line_records.py:_name",
    "hlotext/syntax/fast/shortcuts/__init__.py:_exact",
    "hlotext/syntax/fast/shortcuts/__init__.py:shortcut",
    "hlotext/syntax/hints/hints.py:_spelled",
    "hlotext/syntax/language/patterns.py:_parentheses",
    "hlotext/syntax/language/patterns.py:op_line",
    "hlotext/syntax/language/patterns.py:plain_header",
    "hlotext/syntax/literals/arrays.py:_number",
    "hlotext/tables/arrow.py:_named",
    "hlotext/tables/arrow.py:arrow_schema",
    "hlotext/lint/registry.py:all_rules",
    "hlotext/lint/stopping.py:_functions",
    "hlotext/lsp/diagnostics.py:page_address",
    "hlotext/schemas/columns.py:tables",
    "hlotext/view/report/charts.py:document",
}
"""Functions with arguments, each of a set that the code or the settings give: opcodes, types, kinds, tables, files."""


def cached_functions() -> set[str]:
    """Functions with arguments that `functools` caches, outside of `caches`."""
    found = set()
    for path in (ROOT / "hlotext").rglob("*.py"):
        place = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and place != "hlotext/ir/caches.py":
                arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                decorators = {ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list}
                if arguments and decorators & {
                    "functools.cache",
                    "functools.lru_cache",
                    "cache",
                    "lru_cache",
                }:
                    found.add(f"{place}:{node.name}")
    return found


def test_all_caches_of_what_modules_say_are_made_in_one_place() -> None:
    """What `functools` caches has no arguments, or only such as the code itself gives."""
    assert cached_functions() == OF_THE_CODE_ALONE


def test_a_cache_begins_anew_beyond_its_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is long counts; equal calls are made once while they are remembered."""
    monkeypatch.setattr(caches, "MAX_WEIGHT", 10_000)
    calls: list[str] = []

    @caches.weighted_cache(1_000)
    def double(text: str) -> str:
        calls.append(text)
        return text + text

    for _ in range(3):
        assert double("a" * 100) == "a" * 200
    assert len(calls) == 1
    for number in range(50):
        double(f"{number:0100}")
    assert double.cache_info().currsize < 25  # type: ignore[attr-defined]
    assert double("a" * 100) == "a" * 200
    assert calls.count("a" * 100) == 2
    caches.clear()
    assert double.cache_info().currsize == 0  # type: ignore[attr-defined]


def test_long_texts_are_not_remembered() -> None:
    """They would take memory, and hardly come twice."""
    calls: list[str] = []

    @caches.text_cache(10)
    def length(text: str) -> int:
        calls.append(text)
        return len(text)

    for _ in range(2):
        assert length("b" * caches.LONGEST) == caches.LONGEST
        assert length("b" * (caches.LONGEST + 1)) == caches.LONGEST + 1
    assert len(calls) == 3


_LONG_TUPLES = """
import os, random
import hlotext as hlo
from hlotext import analysis

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

def text(number):
    shapes = ", ".join(f"f32[{number},{i % 50 + 1}]{{1,0}}" for i in range(1000))
    return (f"HloModule m\\n\\nENTRY %e (p: ({shapes})) -> ({shapes}) {{\\n  ROOT %p = ({shapes}) parameter(0)\\n}}\\n")

def use(number):
    module = hlo.parse(text(number))
    hlo.verify(module)
    analysis.total_of(module.entry.root.shape)

for number in range(20):
    use(number)
hlo.clear_caches()
first = resident()
for number in range(20, 150):
    use(number)
before = resident()
hlo.clear_caches()
print(before - first, resident() - first)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_long_tuples_are_forgotten() -> None:
    """A hundred distinct tuples of a thousand arrays, each in every cache of shapes, are given back."""
    run = subprocess.run(
        [sys.executable, "-c", _LONG_TUPLES], capture_output=True, text=True, check=True, cwd=ROOT
    )
    before, after = map(int, run.stdout.split())
    assert before < 60
    assert after < 20


def test_clearing_changes_no_answer() -> None:
    """Values in use stay, equal ones are equal."""
    module = hlo.parse("ROOT a = (f32[8,128]{1,0:T(8,128)}, s32[]) parameter(0)")
    shape = module.entry.root.shape
    total = analysis.total_of(shape)
    hlo.clear_caches()
    again = hlo.parse(str(module))
    assert again.entry.root.shape == shape
    assert analysis.total_of(again.entry.root.shape) == total


def test_the_collector_can_be_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a call, and from the start by the environment."""
    paused: list[int] = []
    monkeypatch.setattr(gc, "disable", lambda: paused.append(1))
    try:
        hlo.allow_gc_pauses(False)
        hlo.parse("a = f32[] parameter(0)")
        assert not paused
    finally:
        hlo.allow_gc_pauses(True)
    hlo.parse("a = f32[] parameter(0)")
    assert paused
    code = "import gc; gc.disable = gc.freeze = None; import hlotext as hlo; hlo.verify(hlo.parse('a = f32[] parameter(0)'))"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env={gc_control.VARIABLE: "untouched"})
