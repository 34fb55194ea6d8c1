"""Modules that nobody holds any more are garbage, and are collected although reading keeps the collector away."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

import hlotext as hlo
from hlotext import compiler, lint
from hlotext.ir import gc_control
from tests import support

TEXT = "HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}\n"


def collections() -> int:
    return int(gc.get_stats()[2]["collections"])


_SERVER = f"""
import gc
import hlotext as hlo
from hlotext.ir import gc_control

gc_control.LEAST = 2_000
text = {TEXT!r}
hlo.parse(text)
gc.collect()
before, objects = gc.get_stats()[2]["collections"], len(gc.get_objects())
for _ in range(3_000):
    hlo.parse(text)
print(gc.get_stats()[2]["collections"] - before, len(gc.get_objects()) - objects)
"""


def test_a_process_that_reads_for_ever_does_not_grow() -> None:
    """What was read and dropped is collected from time to time, not after every text. In a process of its own."""
    run = subprocess.run(
        [sys.executable, "-c", _SERVER], capture_output=True, text=True, check=True, cwd=support.ROOT
    )
    collected, more = map(int, run.stdout.split())
    assert 1 < collected < 300
    assert more < 60_000


def test_modules_in_use_are_not_walked_through_for_every_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The more is alive, the more is read before the collector is called."""
    monkeypatch.setattr(gc_control, "LEAST", 2_000)
    monkeypatch.setattr(gc_control._debt, "alive", 10**9)
    gc.collect()
    hlo.parse(TEXT)
    before = collections()
    kept = [hlo.parse(TEXT) for _ in range(300)]
    assert len(kept) == 300
    assert collections() == before


def test_a_collection_by_others_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_control._debt, "made", 10**9)
    gc.collect()
    before = collections()
    hlo.parse(TEXT)
    assert collections() == before
    assert gc_control._debt.made < 10**6


def test_a_program_without_collector_is_left_alone() -> None:
    """One that has turned it off gets it back turned off, and is not collected for."""
    gc.disable()
    try:
        before = collections()
        hlo.parse(TEXT)
        assert not gc.isenabled()
        assert collections() == before
    finally:
        gc.enable()


def test_questions_about_a_module_do_not_collect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right behind reading there is much to look at and no garbage; the next text pays."""
    module = hlo.parse(TEXT)
    gc.collect()
    hlo.parse(TEXT)
    monkeypatch.setattr(gc_control._debt, "made", 10**9)
    before = collections()
    assert hlo.verify(module) == []
    lint.run(module)
    assert collections() == before
    hlo.parse(TEXT)
    assert collections() == before + 1


_FREEZING = f"""
import gc
import hlotext as hlo

at_start = gc.get_freeze_count()
hlo.parse({TEXT!r})
print(at_start > 0 and gc.get_freeze_count() == at_start)
gc.freeze()
frozen = gc.get_freeze_count()
hlo.parse({TEXT!r})
print(gc.get_freeze_count() >= frozen - 5)
"""


def test_only_what_the_program_froze_is_left_alone() -> None:
    """CPython 3.12 starts with a few frozen objects of its own, which say nothing of the program."""
    run = subprocess.run(
        [sys.executable, "-c", _FREEZING], capture_output=True, text=True, check=True, cwd=support.ROOT
    )
    assert run.stdout.split() == ["False", "True"]


def test_copy_insertion_is_not_interrupted() -> None:
    """The collector would walk through the whole module again and again while it grows."""
    loops = "".join(f"  copy.{n} = f32[4] copy(p)\n" for n in range(3_000))
    module = hlo.parse(f"ENTRY e {{\n  p = f32[4] parameter(0)\n{loops}  ROOT n = f32[4] negate(p)\n}}\n")
    compiler.copy_insertion(module, "cpu")
    before = sum(generation["collections"] for generation in gc.get_stats())
    compiler.copy_insertion(module, "cpu")
    assert sum(generation["collections"] for generation in gc.get_stats()) - before < 10
