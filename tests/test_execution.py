"""Modules executed on the CPU: what is left out, what is spelt out, and what dies of it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import attrs
import numpy as np
import pytest

import hlotext as hlo
from hlotext import execution
from hlotext.execution import NotExecutable, difference, plain
from hlotext.execution.parts import cut, joined
from hlotext.ir.values.shape import Shape
from hlotext.layout.tiling import placement
from tests.cli_support import run

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jaxlib") is None, reason="runs texts on jaxlib")
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def shape(text: str) -> Shape:
    found = hlo.parse(f"ENTRY e {{ ROOT p = {text} parameter(0) }}").entry.root.shape
    assert found is not None
    return found


BITCASTS = (
    ("f32[2,3]{1,0}", "f32[3,2]{0,1}"),
    ("f32[2,3,4]{0,2,1}", "f32[6,4]{1,0}"),
    ("f32[5]{0:T(128)}", "f32[1]{0:T(128)}"),
    ("f32[16,256]{1,0:T(8,128)}", "f32[2,2,8,128]{3,2,1,0:T(8,128)}"),
    ("f32[3,5]{1,0:T(2,2)}", "f32[24]{0}"),
    ("bf16[16,128]{1,0:T(8,128)(2,1)}", "bf16[8,128,2]{2,1,0}"),
    ("f32[4]{0}", "s32[4]{0}"),
    ("f32[3]{0}", "u8[12]{0}"),
    ("u8[12]{0}", "f32[3]{0}"),
    ("f32[]{:T(128)}", "f32[1]{0:T(128)}"),
)


@needs_jax
def test_bitcasts_are_moves_of_bytes() -> None:
    """As `layout` places them, through orders, tiles, partial views and other types."""
    lines = [
        f"p{n} = {old} parameter({n})\n b{n} = {new} bitcast(p{n})" for n, (old, new) in enumerate(BITCASTS)
    ]
    names = ", ".join(f"b{n}" for n in range(len(BITCASTS)))
    results = ", ".join(new for _, new in BITCASTS)
    body = "\n ".join(lines)
    module = hlo.parse(f"ENTRY e {{\n {body}\n ROOT t = ({results}) tuple({names}) }}")
    ran = execution.run(module)
    for (old, new), given, found in zip(BITCASTS, ran.arguments, ran.results, strict=True):
        assert found.tobytes() == expected(shape(old), shape(new), given).tobytes(), (old, new)


def expected(old: Shape, new: Shape, array: Array) -> Array:
    """The bytes of memory, put where the shape says, and taken from where the other one does."""
    memory = np.zeros(max(placement(old).allocated_bytes, placement(new).allocated_bytes), np.uint8)
    step = array.dtype.itemsize
    for index in np.ndindex(*array.shape):
        place = placement(old).position(index) * step
        memory[place : place + step] = np.frombuffer(array[index].tobytes(), np.uint8)
    type_ = new.element_type.dtype
    found = np.zeros(new.dimensions, type_)
    for index in np.ndindex(*new.dimensions):
        place = placement(new).position(index) * type_.itemsize
        found[index] = np.frombuffer(memory[place : place + type_.itemsize].tobytes(), type_)[0]
    return found


FUSED = """HloModule m, is_scheduled=true

add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }

body { q = bf16[4]{0} parameter(0)
 r = f32[4]{0:T(128)S(1)} parameter(1)
 ROOT m = f32[4]{0} multiply(q, r) }

wrapped { w = f32[4]{0} parameter(0)
 ROOT n = f32[4]{0} negate(w) }

ENTRY e {
 p = f32[4]{0:T(128)} parameter(0), sharding={replicated}, metadata={op_name="x"}
 h = bf16[4]{0:T(128)(2,1)} convert(p)
 cs = (f32[4]{0:S(1)}, f32[4]{0}, u32[]{:S(2)}) copy-start(p), control-predecessors={h}
 cd = f32[4]{0:S(1)} copy-done(cs)
 f = f32[4]{0} fusion(h, cd), kind=kLoop, calls=body, backend_config={"a":1}
 as = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(f), calls=wrapped
 ad = f32[4]{0} async-done(as)
 z = f32[] constant(0)
 s = f32[]{:T(128)} reduce(h, z), dimensions={0}, to_apply=add
 w = f32[2]{0} custom-call(), custom_call_target="AllocateBuffer"
 t = s64[4]{0} constant({1, -2, 5000000000, -7})
 lo = u32[4]{0} custom-call(t), custom_call_target="X64SplitLow"
 hi = u32[4]{0} custom-call(t), custom_call_target="X64SplitHigh"
 c = s64[4]{0} custom-call(lo, hi), custom_call_target="X64Combine"
 ROOT r = ((f32[4]{0}, f32[]), f32[2]{0}, s64[4]{0}) tuple(pair, w, c)
}
""".replace(" ROOT r", " pair = (f32[4]{0}, f32[]) tuple(ad, s)\n ROOT r")


@needs_jax
def test_what_backends_add_is_left_out() -> None:
    """Fusions, asynchronous pairs, tiles, memory spaces, mixed precisions, known custom calls, nested results."""
    values = np.array([1.5, -2.25, 3.0, 0.125], np.float32)
    ran = execution.run(hlo.parse(FUSED), [values])
    negated, total, zeros, combined = ran.results
    assert negated.tolist() == (-values * values).tolist()
    assert total == values.sum()
    assert zeros.tolist() == [0, 0]
    assert combined.tolist() == [1, -2, 5000000000, -7]


@pytest.mark.slow
@needs_jax
def test_wide_floats_round_less() -> None:
    """1/3 in bf16 is another number; with wide floats it is not."""
    text = "ENTRY e { p = f32[] parameter(0)  h = bf16[] convert(p)  ROOT r = f32[] convert(h) }"
    third = [np.float32(1 / 3)]
    assert execution.run(hlo.parse(text), third).results[0] != third[0]
    assert execution.run(hlo.parse(text), third, wide=True).results[0] == third[0]


PARTS = """HloModule m, num_partitions=4

add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }

ENTRY e {
 p = f32[2]{0} parameter(0)
 i = u32[] partition-id()
 f = f32[] convert(i)
 b = f32[2]{0} broadcast(f), dimensions={}
 x = f32[2]{0} add(p, b)
 ROOT r = f32[2]{0} all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add
}
"""


@needs_jax
def test_partitions_run_as_replicas() -> None:
    """Each in its place, and they meet in their groups."""
    ran = execution.run(hlo.parse(PARTS), [np.zeros(2, np.float32)])
    assert ran.devices == 4
    assert ran.results[0].tolist() == [[1, 1], [1, 1], [5, 5], [5, 5]]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('ROOT r = f32[4] custom-call(p), custom_call_target="secret"', "custom call 'secret'"),
        ("ROOT r = f32[4] constant({...})", "xla_dump_large_constants"),
        (
            "a = f32[] constant(0)  b = f32[] constant(1)  ROOT r = f32[4] rng(a, b), distribution=rng_uniform",
            "does not run",
        ),
        ("ROOT r = f32[<=4] parameter(1)", "dynamic size"),
    ],
)
def test_what_cannot_run_says_why(line: str, why: str) -> None:
    """By the name of the instruction, without asking jaxlib."""
    with pytest.raises(NotExecutable, match=f"r: .*{why}|{why}"):
        plain(hlo.parse(f"ENTRY e {{ p = f32[4] parameter(0)  {line} }}"))


def test_wide_floats_have_other_bits() -> None:
    text = "ENTRY e { p = bf16[4] parameter(0)  ROOT b = u16[4] bitcast-convert(p) }"
    plain(hlo.parse(text))
    with pytest.raises(NotExecutable, match="widened"):
        plain(hlo.parse(text), wide=True)


@needs_jax
def test_a_text_that_ends_the_process_harms_nobody() -> None:
    """It is said, and the next text runs."""
    good = plain(hlo.parse("ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"))
    bad = "HloModule m\nENTRY e { p = f32[4] parameter(0)  ROOT r = f32[3] reshape(p) }"
    values = [[np.arange(4, dtype=np.float32)]]
    with execution.Runner() as runner:
        ran = runner.run(attrs.evolve(good, text=bad), values)
        assert ran.error
        assert runner.run(good, values).results[0][0].tolist() == [0, -1, -2, -3]


def test_differences() -> None:
    """Relative to the element, those near nothing to the largest; other kinds exactly."""
    a = np.array([1.0, 100.0], np.float32)
    assert difference(a, a.copy()) == 0
    assert difference(a, a * np.float32(1.01)) == pytest.approx(0.0099, rel=0.01)
    assert difference(a, a + np.array([1e-9, 0], np.float32)) == 0
    assert difference(np.array([1]), np.array([2])) == float("inf")
    assert difference(np.array([np.nan, 1.0]), np.array([np.nan, 1.0])) == 0
    assert difference(np.array([np.inf, 1.0]), np.array([-np.inf, 1.0])) == float("inf")


def test_parts_of_arrays() -> None:
    """Cut by a sharding, and put together again; the last part may be smaller."""
    module = hlo.parse(
        "ENTRY e { ROOT p = f32[5,4] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate} }"
    )
    root = module.entry.root
    assert root.shape is not None
    array = np.arange(20, dtype=np.float32).reshape(5, 4)
    parts = cut(array, root.shape, root.sharding, (3, 4), 4)
    assert parts.shape == (4, 3, 4)
    assert parts[0].tolist() == parts[1].tolist() == array[:3].tolist()
    assert parts[2, 2].tolist() == [0, 0, 0, 0]
    assert joined(parts, root.shape, root.sharding).tolist() == array.tolist()
    with pytest.raises(NotExecutable, match="does not show how"):
        cut(array, root.shape, None, (3, 4), 4)


@pytest.mark.slow
@needs_jax
def test_the_command(tmp_path: Path) -> None:
    """Results, another module beside it, a computation of its own, and an input from a file."""
    one, other = tmp_path / "one.hlo", tmp_path / "other.hlo"
    one.write_text(FUSED)
    other.write_text(FUSED.replace("negate(w)", "abs(w)"))
    assert run("run", one).exit_code == 0
    assert run("run", one, "--against", one).exit_code == 0
    assert run("run", one, "--against", other).exit_code == 1
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    result = run("run", one, "-c", "wrapped", "--input", tmp_path / "x.npy", "--format", "json")
    assert json.loads(result.stdout)["results"][0]["max"] == -1
    assert run("run", one, "-c", "nowhere").exit_code == 1
    assert run("run", one, "--input", tmp_path / "none.npy").exit_code == 2


PLAIN = """HloModule m

ENTRY e {
  s = u64[2] parameter(0)
  a = c128[3] parameter(1)
  x = f32[4] parameter(2)
  bits = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_three_fry
  size = f64[3] abs(a)
  is_less = pred[4] compare(x, x), direction=LT, order=TOTAL
  ROOT all = ((u64[2], u32[4]), f64[3], pred[4]) tuple(bits, size, is_less)
}
"""


@pytest.mark.parametrize(("release", "order"), [("0.10.2", "type=TOTALORDER"), ("0.12.0.1", "order=TOTAL")])
def test_plain_text_is_in_the_words_of_the_jaxlib_that_reads_it(
    release: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hlotext.execution.plain_text.metadata.version", lambda _: release)
    text = execution.plain(hlo.parse(PLAIN)).text
    assert order in text
    assert "algorithm=rng_three_fry" in text
    assert " f64[3] abs(" in text
