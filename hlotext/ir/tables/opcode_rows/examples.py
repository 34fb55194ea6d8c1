"""Computations that the rows' example lines call inline."""

from __future__ import annotations

ADD = "{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }"
NEGATE = "{ x = f32[4] parameter(0) ROOT z = f32[4] negate(x) }"
LESS = "{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = pred[] compare(x, y), direction=LT }"
SCAN_STEP = (
    "{ x = f32[] parameter(0) c = f32[] parameter(1) s = f32[] add(x, c) "
    "ROOT z = (f32[], f32[]) tuple(s, s) }"
)
WHILE_CONDITION = (
    "{ x = s32[] parameter(0) l = s32[] constant(9) ROOT z = pred[] compare(x, l), direction=LT }"
)
WHILE_BODY = "{ x = s32[] parameter(0) o = s32[] constant(1) ROOT z = s32[] add(x, o) }"
