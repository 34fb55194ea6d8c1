"""Layouts of what a builder infers, and messages of edits that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hlotext as hlo
from hlotext import rewrite

FINAL = """HloModule m, is_scheduled=true, num_partitions=4

s { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT t = f32[] add(a, b) }

ENTRY e {
 x = f32[8,8]LAYOUT parameter(0)
 ROOT n = f32[8,8]LAYOUT negate(x)
}
"""
GROUPS: dict[str, Any] = {"channel_id": 1, "replica_groups": "{{0,1,2,3}}", "use_global_device_ids": True}
SUMMED: dict[str, Any] = {**GROUPS, "to_apply": "s"}


@pytest.mark.parametrize("layout", ["{0,1}", "{0,1:T(8,128)}", "{1,0:T(8,128)}"])
def test_what_is_inferred_takes_the_layout_of_its_operand(layout: str) -> None:
    """In a scheduled module any other would be refused; tiles stay too."""
    builds: list[Callable[[rewrite.Builder, hlo.Instruction], hlo.Instruction]] = [
        lambda b, x: b.add(x, 1.0),
        lambda b, x: b.full_like(x, 2.0),
        lambda b, x: b.compare(x, 0, "GT"),
        lambda b, x: b.slice(x, (0, 0), (4, 4)),
        lambda b, x: b.pad(x, 0.0, padding="0_1x0_1"),
        lambda b, x: b.concatenate(x, x, dimensions=(0,)),
        lambda b, x: b.all_gather(x, dimensions=(0,), **GROUPS),
        lambda b, x: b.reduce_scatter(x, dimensions=(0,), **SUMMED),
    ]
    for build in builds:
        module = hlo.parse(FINAL.replace("LAYOUT", layout))
        new = build(rewrite.Builder.before(module.entry.root), module.instruction("x"))
        assert str(new.shape).partition("]")[2] == layout, new
    for text in ("negate($x) => multiply($x, -1)", "negate($x) => add($x, multiply($x, -2))"):
        module = hlo.parse(FINAL.replace("LAYOUT", layout))
        rewrite.apply_rules(module, [rewrite.rule(text, "r")], on_refused="raise")
        assert not [f for f in hlo.verify(module) if f.severity.value == "error"]


def test_messages_name_the_way_out() -> None:
    """Of another layout, of a start without its done, of stack frames that should be empty."""
    module = hlo.parse(FINAL.replace("LAYOUT", "{0,1}"))
    b, x = rewrite.Builder.before(module.entry.root), module.instruction("x")
    other = b.broadcast(b.constant(1.0, "f32"), (8, 8))
    with pytest.raises(rewrite.EditError, match=r"but operand 1 is f32\[8,8\]\{1,0\}: .*shape="):
        b.add(x, other)
    with pytest.raises(rewrite.EditError, match=r"with module.transaction\(\)"):
        b.op("copy-start", (x,), shape="(f32[8,8]{0,1}, f32[8,8]{0,1}, u32[])")
    with pytest.raises(rewrite.EditError, match=r"type\(module.stack_frames\)\(\)"):
        module.stack_frames = None  # type: ignore[assignment]
    module.stack_frames = type(module.stack_frames)()


def test_groups_of_one_device() -> None:
    """A gather in groups of one gives what it takes."""
    module = hlo.parse("ENTRY e { x = f32[4,8] parameter(0)  ROOT n = f32[4,8] negate(x) }")
    b = rewrite.Builder.before(module.entry.root)
    assert (
        str(b.all_gather(module.instruction("x"), dimensions=(0,), replica_groups="{{0}}").shape)
        == "f32[4,8]"
    )
