"""What models of XLA's passes do as XLA did it before a day, and since."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

import hlotext as hlo
from hlotext.ir.tables import xla_changes
from hlotext.rewrite.passes import make_pass

SOFTMAX = """HloModule m
largest { l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT o = f32[] maximum(l, r) }
ENTRY e {
  x = f32[4,8]{1,0} parameter(0)
  k = f32[] constant(3)
  y = f32[4,8]{1,0} broadcast(k), dimensions={}
  s = f32[4,8]{1,0} multiply(x, y)
  least = f32[] constant(-inf)
  m = f32[4]{0} reduce(s, least), dimensions={1}, to_apply=largest
  b = f32[4,8]{1,0} broadcast(m), dimensions={0}
  d = f32[4,8]{1,0} subtract(s, b)
  ROOT r = f32[4,8]{1,0} exponential(d)
}
"""
ALONE = """HloModule m
ENTRY e {
  x = f32[4,8]{1,0} parameter(0)
  ROOT t = f32[8,4]{1,0} transpose(x), dimensions={1,0}
}
"""
SINH = "ENTRY e { x = f32[4,8]{1,0} parameter(0)  ROOT t = f32[4,8]{1,0} sinh(x) }"
CONVOLUTION = """HloModule m
ENTRY e {
  x = f32[1,8,8,3]{3,2,1,0} parameter(0)
  k = f32[3,3,3,4]{3,2,1,0} parameter(1)
  ROOT c = f32[1,6,6,4]{3,2,1,0} convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f
}
"""
REDUCED = """HloModule m, num_partitions=4
sum { l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT o = f32[] add(l, r) }
ENTRY e {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  ROOT a = (f32[4]{0}, f32[4]{0}) all-reduce(x, y), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, \
to_apply=sum, frontend_attributes={k="v"}
}
"""
STARTED = """HloModule m, is_scheduled=true, num_partitions=4
async_computation { p = f32[4]{0} parameter(0)  ROOT g = f32[16]{0} all-gather(p), channel_id=1, replica_groups={{0,1,2,3}}, \
dimensions={0}, use_global_device_ids=true }
ENTRY e {
  x = f32[4]{0} parameter(0)
  s = ((f32[4]{0}), f32[16]{0}) async-start(x), calls=async_computation
  d = f32[16]{0} async-done(s)
  ROOT n = f32[16]{0} negate(d)
}
"""
TOPK = "ENTRY e { x = f32[4,9] parameter(0)  ROOT t = (f32[4,2], s32[4,2]) topk(x), k=2, largest=true }"

NARROW = """ENTRY e {
  x = bf16[4,8] parameter(0)
  y = bf16[4,8] parameter(1)
  w = bf16[8,16] parameter(2)
  m = bf16[4,8] maximum(x, y)
  ROOT d = bf16[4,16] dot(m, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
WAITED = """HloModule m
ENTRY e {
  x = f32[4]{0} parameter(0)
  n = f32[4]{0} negate(x)
  t = (f32[4]{0}, f32[4]{0}) tuple(x, n)
  a = f32[4]{0} get-tuple-element(t), index=0
  b = f32[4]{0} get-tuple-element(t), index=1
  s = f32[4]{0} sine(a), control-predecessors={t}
  ROOT r = (f32[4]{0}, f32[4]{0}) tuple(s, b)
}
"""
FORWARDED = """HloModule m
changed { p = (f32[8]{0}, s32[]) parameter(0)  x = f32[8]{0} get-tuple-element(p), index=0
  k = s32[] get-tuple-element(p), index=1
  v = f32[1]{0} constant({7})  u = f32[8]{0} dynamic-update-slice(x, v, k)  ROOT t = (f32[8]{0}) tuple(u) }
kept { p = (f32[8]{0}) parameter(0)  x = f32[8]{0} get-tuple-element(p), index=0  ROOT t = (f32[8]{0}) tuple(x) }
body { s = (s32[], pred[], f32[8]{0}) parameter(0)  k = s32[] get-tuple-element(s), index=0
  c = pred[] get-tuple-element(s), index=1
  x = f32[8]{0} get-tuple-element(s), index=2  a = (f32[8]{0}, s32[]) tuple(x, k)  b = (f32[8]{0}) tuple(x)
  one = s32[] constant(1)  n = s32[] add(k, one)
  r = (f32[8]{0}) conditional(c, a, b), true_computation=changed, false_computation=kept
  y = f32[8]{0} get-tuple-element(r), index=0  ROOT t = (s32[], pred[], f32[8]{0}) tuple(n, c, y) }
more { s = (s32[], pred[], f32[8]{0}) parameter(0)  k = s32[] get-tuple-element(s), index=0  five = s32[] constant(5)
  ROOT l = pred[] compare(k, five), direction=LT }
ENTRY e {
  c = pred[] parameter(0)
  x = f32[8]{0} parameter(1)
  zero = s32[] constant(0)
  i = (s32[], pred[], f32[8]{0}) tuple(zero, c, x)
  ROOT w = (s32[], pred[], f32[8]{0}) while(i), condition=more, body=body
}
"""

CASES = [
    (
        "float-normalization", "platform=cpu", xla_changes.CPU_MOVES_BF16, NARROW,
        "convert convert convert convert convert convert dot maximum", "dot maximum",
    ),
    ("tuple-simplifier", "", xla_changes.TUPLES_GO_FROM_ORDER, WAITED, "negate sine tuple tuple", "negate sine tuple"),
    ("cpu-fusion", "", xla_changes.CPU_KEEPS_SOFTMAX_WHOLE, SOFTMAX, "fusion fusion", "fusion fusion reduce"),
    ("fusion-wrapper", "platform=cpu", xla_changes.CPU_WRAPS_TRANSPOSES, ALONE, "transpose", "fusion"),
    (
        "fusion-wrapper", "platform=cpu", xla_changes.CPU_WRAPS_FUNCTIONS, SINH,
        "sinh", "fusion",
    ),
    (
        "fusion-wrapper", "platform=cpu", xla_changes.CPU_WRAPS_CONVOLUTIONS, CONVOLUTION.replace("3,2,1,0} p", "0,1,2,3} p"),
        "convolution", "fusion",
    ),
    ("fusion-wrapper", "platform=cpu", xla_changes.CPU_WRAPS_CONVOLUTIONS, CONVOLUTION, "convolution", "convolution"),
    (
        "async-collective-creator", "", xla_changes.GENERIC_COLLECTIVES, REDUCED,
        "all-reduce-done all-reduce-start", "async-done async-start",
    ),
    (
        "gpu-convert-async-collectives-to-sync", "", xla_changes.PLAIN_SYNCHRONOUS, STARTED,
        "async-done async-start negate", "all-gather negate",
    ),
]  # fmt: skip


def made(name: str, options: str, day: date | None, text: str) -> hlo.Module:
    """What a pass makes of a module, as on a day; None: as the newest XLA."""
    module = hlo.parse(text)
    words = [options] if options else []
    make_pass(name, ",".join([*words, *([f"age={day}"] if day else [])])).run(module)
    assert [d for d in hlo.verify(hlo.parse(str(module))) if d.severity.value == "error"] == []
    return module


def opcodes(module: hlo.Module) -> str:
    """What the entry holds, parameters and constants left out."""
    return " ".join(sorted(i.opcode for i in module.entry if i.opcode not in ("parameter", "constant")))


@pytest.mark.parametrize(("name", "options", "day", "text", "before", "since"), CASES)
def test_days(name: str, options: str, day: date, text: str, before: str, since: str) -> None:
    assert opcodes(made(name, options, day - timedelta(1), text)) == before
    assert opcodes(made(name, options, day, text)) == since
    assert opcodes(made(name, options, None, text)) == since


def test_an_all_reduce_that_any_start_runs() -> None:
    """What lies in the operands is said; notes stand on both, and inside."""
    module = made("async-collective-creator", "", None, REDUCED)
    start = next(i for i in module.entry if i.opcode == "async-start")
    assert str(start.attributes["output_to_operand_aliasing"]) == "{{1,0}: (0, {}), {1,1}: (1, {})}"
    inner = start.async_wrapped_instruction
    assert inner is not None
    for i in (start, start.users[0], inner):
        assert dict(i.frontend_attributes) == {"k": "v"}


def test_what_is_marked_is_plain_whatever_runs_beside_it() -> None:
    marked = STARTED.replace(
        "calls=async_computation",
        'calls=async_computation, backend_config={"collective_backend_config":{"is_sync":true}}',
    ).replace("  d = ", "  w = f32[4]{0} sine(x)\n  d = ")
    assert (
        opcodes(made("gpu-convert-async-collectives-to-sync", "", None, marked)) == "all-gather negate sine"
    )
    beside = STARTED.replace("  d = ", "  w = f32[4]{0} sine(x)\n  d = ")
    assert "async-start" in opcodes(made("gpu-convert-async-collectives-to-sync", "", None, beside))


def test_words_for_the_order_of_floats() -> None:
    assert "order=TOTAL" in str(made("topk-decomposer", "", None, TOPK))
    assert "type=TOTALORDER" in str(made("topk-decomposer", "", date(2026, 6, 14), TOPK))


def test_copies_of_a_branch_that_changes_nothing() -> None:
    """Since a day the array of a loop is copied no more because one branch of a conditional hands it on."""
    day = xla_changes.COPIES_OF_ALL_BRANCHES

    def copies(day: date | None) -> list[str]:
        module = made("copy-insertion", "platform=cpu", day, FORWARDED)
        return sorted(
            str(i.shape) for c in module.computations if not c.is_entry for i in c if i.opcode == "copy"
        )

    assert copies(day - timedelta(1)).count("f32[8]{0}") > 0
    assert copies(day).count("f32[8]{0}") == copies(None).count("f32[8]{0}") == 0


WRITTEN = """HloModule m
body { s = (s32[], f32[8]{0}) parameter(0)  i = s32[] get-tuple-element(s), index=0  one = s32[] constant(1)
  j = s32[] add(i, one)  x = f32[] convert(i)  v = f32[8]{0} broadcast(x), dimensions={}
  ROOT t = (s32[], f32[8]{0}) tuple(j, v) }
cond { s = (s32[], f32[8]{0}) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(5)
  ROOT lt = pred[] compare(i, n), direction=LT }
ENTRY e { z = s32[] constant(0)  x = f32[8]{0} parameter(0)  t = (s32[], f32[8]{0}) tuple(z, x)
  ROOT w = (s32[], f32[8]{0}) while(t), condition=cond, body=body }
"""


def test_no_copy_of_what_a_loop_writes_and_does_not_read() -> None:
    """The copy in front of the body's end waits for none at its start then."""
    day = xla_changes.TUPLES_GO_FROM_ORDER
    found = {}
    for which in (day - timedelta(1), day, None):
        module = made("copy-insertion-adding", "platform=cpu", which, WRITTEN)
        copies = [i for c in module.computations if c.name == "body" for i in c if i.opcode == "copy"]
        found[which] = (len(copies), sum(bool(i.control_predecessors) for i in copies))
    assert list(found.values()) == [(4, 2), (3, 1), (3, 1)]
