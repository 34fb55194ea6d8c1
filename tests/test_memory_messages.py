"""`hlotext memory` of a log: what over by, who takes it, and what would save it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import messages
from hlotext.memory import assign
from hlotext.memory.out_of_memory import savings, shares
from tests.cli_support import run
from tests.support import DATA

LOG = DATA / "messages" / "tpu_hbm_table.txt"
MESSAGE = (
    "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, "
    "the total memory required for HLO temporaries (33.02G) exceeds available HBM (15.75G). HLO module: jit_f.\n"
)
MODULE = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[256]{0})->f32[256]{0}}

ENTRY %main (p: f32[256]) -> f32[256] {
  %p = f32[256]{0} parameter(0)
  %n = f32[256]{0} negate(%p)
  ROOT %r = f32[256]{0} sine(%n)
}
"""


def test_allocations_are_summed() -> None:
    """All of them, by what they are for."""
    (message,) = (one for one in messages.read(LOG.read_text()) if one.memory is not None)
    assert message.memory is not None
    found = shares(message, lambda row: row.shape)
    assert sum(share.count for share in found) == len(message.memory.allocations)
    assert [share.bytes for share in found] == sorted((share.bytes for share in found), reverse=True)


def test_what_would_lower_the_peak() -> None:
    """The argument, which nothing needs behind its only reader, may be written over."""
    (best, *_) = savings(assign(hlo.parse(MODULE), "tpu"))
    assert best.what == "donate 0"
    assert best.saved > 0


def test_the_command(tmp_path: Path) -> None:
    """The table of the message, the module of the dump, and what is neither."""
    result = run("memory", LOG, "--limit", "2")
    assert result.exit_code == 0
    assert "over by    1.14 GiB" in result.stdout
    assert "broadcast.1" in result.stdout
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "module_0000.jit_f.cl_1.after_optimizations.txt").write_text(MODULE)
    log = tmp_path / "oom.log"
    log.write_text(MESSAGE)
    document = json.loads(run("memory", log, "--dump", dump, "--format", "json").stdout)
    (found,) = document["messages"]
    assert found["module"] == "jit_f"
    assert found["savings"][0]["what"] == "donate 0"
    assert "lowers the peak by 1% of the excess" in run("memory", log, "--dump", dump).stdout
    log.write_text(MESSAGE.replace("33.02G", "4.25K").replace("15.75G", "2.25K"))
    assert "donate 0" in run("memory", log, "--dump", dump).stdout
    assert run("memory", log, "--dump", DATA / "hosts" / "host_0").exit_code == 2
    assert run("memory", log, dump).exit_code == 2


@pytest.mark.parametrize("text", [MODULE, "nothing about memory"])
def test_what_is_no_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / "f.txt"
    path.write_text(text)
    assert run("memory", path, "--dump", tmp_path).exit_code == 2


SCANNED = """HloModule jit_f, is_scheduled=true

body {
  s = (s32[], f32[8,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,1024]{1,0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[8,1024]{1,0} negate(x)
  ROOT r = (s32[], f32[8,1024]{1,0}) tuple(next, y)
}

condition {
  s = (s32[], f32[8,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(8)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY e {
  z = s32[] constant(0)
  zero = f32[] constant(0)
  b = f32[8,1024]{1,0} broadcast(zero), dimensions={}
  t = (s32[], f32[8,1024]{1,0}) tuple(z, b)
  w = (s32[], f32[8,1024]{1,0}) while(t), condition=condition, body=body
  g = f32[8,1024]{1,0} get-tuple-element(w), index=1
  ROOT q = f32[1024,1024]{1,0} dot(g, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""


ALIKE = """HloModule jit_f, is_scheduled=true

ENTRY e {
  a = f32[8,1024]{1,0} parameter(0)
  neg.0 = f32[8,1024]{1,0} negate(a), metadata={op_name="jit(f)/layer_0/neg"}
  neg.1 = f32[8,1024]{1,0} negate(a), metadata={op_name="jit(f)/layer_1/neg"}
  ROOT q = (f32[8,1024]{1,0}, f32[8,1024]{1,0}) tuple(neg.0, neg.1)
}
"""


def test_equal_arrays_of_a_message_share_a_row(tmp_path: Path) -> None:
    """As in the table of `hlotext memory`, so that many layers do not hide the rest."""
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "module_0000.jit_f.cl_1.after_optimizations.txt").write_text(ALIKE)
    log = tmp_path / "oom.log"
    log.write_text(MESSAGE)
    table = run("memory", log, "--dump", dump).stdout.split("At the peak")[1].splitlines()
    assert [line.split()[:5] for line in table if "KiB" in line] == [
        ["64.0", "KiB", "2", "x", "32.0"],
        ["32.0", "KiB", "f32[8,1024]", "a"],
    ]


def test_what_a_loop_leaves_is_not_estimated_and_not_called_hopeless(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "module_0000.jit_f.cl_1.after_optimizations.txt").write_text(SCANNED)
    log = tmp_path / "oom.log"
    log.write_text(MESSAGE)
    printed = run("memory", log, "--dump", dump).stdout
    assert "none of the estimated changes (donation, rematerialization) lowers the peak" in printed
    assert "carried by loops; jax.checkpoint on the body of a scan avoids" in printed
    assert printed.index("jax.checkpoint") < printed.index(
        "none of the estimated changes"
    )  # what helps most stands first
    document = json.loads(run("memory", log, "--dump", dump, "--format", "json").stdout)
    assert {one["opcode"] for one in document["messages"][0]["not_estimated"]} == {"parameter"}


STACKED = """HloModule m, is_scheduled=true

store {
  stack = f32[8,1024]{1,0} parameter(0)
  row = f32[1024]{0} parameter(1)
  i = s32[] parameter(2)
  one = f32[1,1024]{1,0} reshape(row)
  zero = s32[] constant(0)
  ROOT u = f32[8,1024]{1,0} dynamic-update-slice(stack, one, i, zero)
}

body {
  s = (s32[], f32[1024]{0}, f32[8,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1024]{0} get-tuple-element(s), index=1
  k = f32[8,1024]{1,0} get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  e = f32[1024]{0} exponential(x), metadata={op_name="exp" source_file="m.py" source_line=7}
  v = f32[8,1024]{1,0} fusion(k, e, i), kind=kLoop, calls=store, metadata={source_file="m.py" source_line=20}
  y = f32[1024]{0} negate(e)
  ROOT r = (s32[], f32[1024]{0}, f32[8,1024]{1,0}) tuple(next, y, v)
}

condition {
  s = (s32[], f32[1024]{0}, f32[8,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(8)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY e {
  p = f32[1024]{0} parameter(0)
  z = s32[] constant(0)
  zero = f32[] constant(0)
  b = f32[8,1024]{1,0} broadcast(zero), dimensions={}
  t = (s32[], f32[1024]{0}, f32[8,1024]{1,0}) tuple(z, p, b)
  w = (s32[], f32[1024]{0}, f32[8,1024]{1,0}) while(t), condition=condition, body=body
  g = f32[8,1024]{1,0} get-tuple-element(w), index=2
  ROOT q = f32[1024,1024]{1,0} dot(g, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""


def test_what_a_loop_stores_is_blamed_on_the_line_that_computes_it(tmp_path: Path) -> None:
    """Not on the line of the scan, which stores it; the row says which value the loop carries, and what writes it."""
    dump = tmp_path / "dump"
    dump.mkdir()
    text = dump / "module_0000.jit_f.cl_1.after_optimizations.txt"
    text.write_text(STACKED)
    log = tmp_path / "oom.log"
    log.write_text(MESSAGE)
    places: list[list[str | Path]] = [[log, "--dump", dump], [text, "--platform", "cpu", "--at", "w"]]
    for place in places:
        (row,) = [one for one in run("memory", *place).stdout.splitlines() if "{2} < v" in one]
        assert "m.py:7" in row
        assert "m.py:20" not in row


ASYNC = (
    "vs = ((f32[8,1024]{1,0}, f32[1024]{0}, s32[]), f32[8,1024]{1,0}, u32[]) fusion-start(k, e, i), kind=kLoop, calls=store\n"
    "  v = f32[8,1024]{1,0} fusion-done(vs), metadata={source_file="
)


@pytest.mark.parametrize("is_async", [False, True])
def test_so_is_what_it_stores_from_then_to_the_end_of_the_round(tmp_path: Path, is_async: bool) -> None:
    text = tmp_path / "m.txt"
    whole = "v = f32[8,1024]{1,0} fusion(k, e, i), kind=kLoop, calls=store, metadata={source_file="
    assert whole in STACKED
    text.write_text(STACKED.replace(whole, ASYNC) if is_async else STACKED)
    printed = run("memory", text, "--platform", "gpu", "--at", "y").stdout
    (row,) = [one for one in printed.splitlines() if "32.0 KiB" in one]
    assert "m.py:7" in row


def test_gradients_are_not_proposed_for_donation() -> None:
    """A result could take their memory, but a caller may need them again: the parameters are what is updated."""
    module = hlo.parse("""HloModule jit_update, is_scheduled=true

ENTRY main {
  w = f32[64,64]{1,0} parameter(0), metadata={op_name="params['w']"}
  v = f32[64,32]{1,0} parameter(1), metadata={op_name="params['v']"}
  g = f32[64,64]{1,0} parameter(2), metadata={op_name="grads['w']"}
  h = f32[64,32]{1,0} parameter(3), metadata={op_name="grads['v']"}
  rate = f32[] constant(0.1)
  a = f32[64,64]{1,0} broadcast(rate), dimensions={}
  b = f32[64,64]{1,0} multiply(g, a)
  c = f32[64,64]{1,0} subtract(w, b)
  d = f32[64,32]{1,0} broadcast(rate), dimensions={}
  e = f32[64,32]{1,0} multiply(h, d)
  f = f32[64,32]{1,0} subtract(v, e)
  ROOT t = (f32[64,64]{1,0}, f32[64,32]{1,0}) tuple(c, f)
}
""")
    found = [one.what for one in savings(assign(module, "gpu"))]
    assert "donate 0, 1 (params['w'], params['v'])" in found
    assert not any("grads" in what for what in found)
