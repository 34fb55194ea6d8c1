"""Passes inside JAX's compiler, each case in a process of its own: `python -m tests.jax_programs CASE`."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"


def sine_to_cosine() -> None:
    import jax
    import numpy as np

    from hlotext import matchers as m
    from hlotext import rewrite
    from hlotext.interop.jax import from_jax, register_pass

    @rewrite.pattern(m.sine(m.op("x")))
    def rule(r: rewrite.Rewrite) -> Any:
        return r.b.cosine(r["x"])

    def change(module: Any) -> None:
        for computation in module.computations:  # the CPU compiler has fused by now
            rewrite.apply_rules(module, [rule], computations=[computation])

    x = np.linspace(0, 1, 8, dtype=np.float32)
    undo = register_pass(change, name="sine-to-cosine")
    y = jax.jit(lambda v: jax.numpy.sin(v) * 2)(x)
    assert np.allclose(y, 2 * np.cos(x)), y
    assert undo.remove()
    assert not undo.remove()
    z = jax.jit(lambda v: jax.numpy.sin(v) * 3)(x)
    assert np.allclose(z, 3 * np.sin(x)), z
    assert any(i.opcode == "sine" for i in from_jax(jax.jit(jax.numpy.sin), x).instructions())
    from_jax(jax.jit(jax.numpy.sin), x, stage="after").entry.root  # noqa: B018 - reads it


def registrations() -> None:
    """Passes of one name are taken off one by one, in any order and as often as anybody likes."""
    import jax
    import numpy as np

    from hlotext.interop.jax import probes, register_pass
    from hlotext.interop.jax.cache import _entries

    ran: list[str] = []
    first = register_pass(lambda module: ran.append("first"), cache_key="1")
    second = register_pass(lambda module: ran.append("second"), cache_key="1")
    keys = [entry.identity for entry in _entries]
    assert len(set(keys)) == 2, keys  # told apart in the cache, although name and version are the same

    def compiled(number: int) -> list[str]:
        ran.clear()
        jax.jit(lambda v: v * number)(np.float32(1))
        return sorted(set(ran))

    assert compiled(2) == ["first", "second"]
    assert second.remove()
    assert [entry.identity for entry in _entries] == keys[:1]
    assert compiled(3) == ["first"]
    assert not second.remove()  # and takes off no other
    assert compiled(4) == ["first"]
    with register_pass(lambda module: ran.append("third"), cache_key="1") as third:
        assert first.remove()
        assert not first.remove()
        assert compiled(5) == ["third"]
        assert third.is_active
    assert not third.is_active
    assert compiled(6) == []
    assert not _entries
    with pytest.warns(DeprecationWarning, match="use its remove"):
        assert not third()
    # A compiler that takes passes and never runs them is found out by asking it.
    probes._hearing["rocm", jax.extend.xla.PipelineStage.PRE_SCHEDULER] = False
    with pytest.raises(NotImplementedError, match="compiler of rocm in this JAX runs no registered passes"):
        register_pass(lambda module: None, platforms=["cpu", "rocm"])
    assert probes._hears("cpu", jax.extend.xla.PipelineStage.POST_SCHEDULER)
    assert not _entries


def donation() -> None:
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from hlotext.interop.jax import register_pass

    seen = []

    def identity(module: Any) -> None:
        seen.append(str(module.attributes.get("input_output_alias")))

    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("d",)), PartitionSpec("d"))
    step = jax.jit(lambda v: v * 2 + v.sum(), donate_argnums=0, out_shardings=sharding)
    x = np.arange(16, dtype=np.float32)
    plain = step.lower(jax.device_put(x, sharding)).compile()
    jax.clear_caches()
    register_pass(identity)
    given = jax.device_put(x, sharding)
    compiled = step.lower(given).compile()
    result = compiled(given)
    assert any("may-alias" in alias for alias in seen), seen
    assert given.is_deleted()
    assert np.allclose(result, x * 2 + x.sum())
    assert len(result.sharding.device_set) == 8
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in compiled.as_text()
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in plain.as_text()


def transformer() -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from hlotext.interop.jax import register_pass
    from hlotext.rewrite import Pipeline, parse_passes

    def loss(p: Any, x: Any) -> Any:
        for w in p:
            q, k, v = x @ w["q"], x @ w["k"], x @ w["v"]
            a = jax.nn.softmax(q @ k.T / 4.0) @ v
            x = x + jax.nn.relu(a @ w["o"]) * 1.0
        return (x**2).mean()

    def step(p: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(p, x)
        return value, jax.tree.map(lambda a, b: a - 0.1 * b, p, gradient)

    rng = np.random.default_rng(0)
    p = [{n: rng.normal(size=(16, 16)).astype(np.float32) / 4 for n in "qkvo"} for _ in range(2)]
    x = rng.normal(size=(8, 16)).astype(np.float32)
    before, _ = jax.jit(step)(p, x)
    jax.clear_caches()
    runs = []

    def tracked(module: Any) -> None:
        runs.append(Pipeline(parse_passes("algsimp,dce")).run(module))

    register_pass(tracked, stage="pre_scheduler")
    after, _ = jax.jit(lambda a, b: step(a, b))(p, x)
    assert runs
    assert jnp.allclose(before, after, rtol=1e-6), (before, after)


def error() -> None:
    import jax

    import hlotext as hlo
    from hlotext.interop.jax import register_pass

    def broken(module: Any) -> None:
        raise KeyError("no such thing")

    def refused(module: hlo.Module) -> None:
        module.entry.root.replace_operand(0, module.entry.root)

    undo = register_pass(broken, name="broken-pass")
    with pytest.raises(Exception, match="hlotext pass broken-pass: KeyError: 'no such thing'") as caught:
        jax.jit(lambda v: v + 1)(1.0)
    line = broken.__code__.co_firstlineno + 1
    assert f'jax_programs.py:{line} in broken: raise KeyError("no such thing")' in str(caught.value)
    undo.remove()
    register_pass(refused)
    with pytest.raises(Exception, match="hlotext pass refused: EditError") as caught:
        jax.jit(lambda v: v + 2)(1.0)
    assert f"jax_programs.py:{refused.__code__.co_firstlineno + 1} in refused: module" in str(caught.value)


def executed() -> None:
    import hlotext as hlo
    from hlotext.interop.jax import assert_equivalent
    from hlotext.rewrite import Pipeline, parse_passes

    text = (
        "HloModule m, entry_computation_layout={(f32[10,20,30]{2,0,1})->f32[10,20,30]{2,0,1}}\n"
        "ENTRY e { x = f32[10,20,30]{2,0,1} parameter(0)  s = f32[10,20,30]{2,0,1} abs(x)\n"
        "ROOT a = f32[10,20,30]{2,0,1} negate(s) }"
    )
    module = hlo.parse(text)
    Pipeline(parse_passes("layout-normalization")).run(module)
    assert "f32[20,10,30]{2,1,0} negate" in str(module)
    assert_equivalent(hlo.parse(text), module, rtol=0)
    module.entry.root.operands[0].opcode = "abs"
    with pytest.raises(AssertionError, match="result 0 of m differs"):
        assert_equivalent(hlo.parse(text), module)


def kept_fields() -> None:
    """What text does not say, and donation, is in the proto that is handed back, too."""
    import jax
    import numpy as np
    from jax.extend import xla
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from hlotext.interop import jax as interop
    from hlotext.interop.jax.protos import proto_fields

    protos: list[bytes] = []
    xla.register_hlo_module_transformation(protos.append, name="recorded", platforms="cpu")
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("d",)), PartitionSpec("d"))
    step = jax.jit(lambda v: v * 2, donate_argnums=0, out_shardings=sharding)
    step.lower(jax.device_put(np.arange(16, dtype=np.float32), sharding)).compile()
    proto = protos[0]
    again = interop.proto_of_module(interop.module_of_proto(proto), proto)
    numbers = {number for number, _ in proto_fields(proto)}
    assert numbers <= {number for number, _ in proto_fields(again)}, numbers
    for number in (8, 12, 14, 15):
        kept = [[raw for n, raw in proto_fields(p) if n == number] for p in (proto, again)]
        assert kept[0] == kept[1], number


def sines_to_cosines(module: Any) -> None:
    """A pass of a user."""
    from hlotext import matchers as m
    from hlotext import rewrite

    @rewrite.pattern(m.sine(m.op("x")))
    def rule(r: rewrite.Rewrite) -> Any:
        return r.b.cosine(r["x"])

    rewrite.apply_rules(module, [rule])


def lost_donation() -> None:
    """The compiler forgets donation in what a pass changes, and a warning says so once."""
    import warnings

    import jax
    import numpy as np

    from hlotext.interop.jax import register_pass

    register_pass(sines_to_cosines)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for factor in (2, 3):
            step = jax.jit(lambda v, factor=factor: jax.numpy.sin(v) * factor, donate_argnums=0)
            compiled = step.lower(np.arange(65536, dtype=np.float32)).compile()
    stats = compiled.memory_analysis()
    messages = [str(w.message) for w in caught if "donation" in str(w.message)]
    assert len(messages) == (stats.alias_size_in_bytes == 0), (messages, stats)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is lost where nothing is donated, or nothing was changed
        register_pass(lambda module: None, name="nothing")
        jax.jit(lambda v: jax.numpy.sin(v) * 4)(1.0)
        jax.jit(lambda v: v * 4, donate_argnums=0)(np.arange(8, dtype=np.float32))


def compile_cached(registered: str, folder: str, wanted: str) -> None:
    """One process with a compilation cache: what the program computes, with or without a pass."""
    import warnings

    import jax
    import numpy as np

    from hlotext.interop.jax import register_pass
    from hlotext.rewrite import Pipeline, parse_passes

    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    hits: list[str] = []
    jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        undo = None
        if registered != "nothing":
            undo = register_pass(
                Pipeline(parse_passes("dce,cse")) if registered == "pipeline" else sines_to_cosines,
                cache_key="1" if registered == "version" else None,
            )
    x = np.linspace(0, 1, 8, dtype=np.float32)
    y = jax.jit(lambda v: jax.numpy.sin(v) * 2)(x)
    expected = np.cos if registered in ("function", "version") else np.sin
    assert np.allclose(y, 2 * expected(x)), y
    cached = hits.count("/jax/compilation_cache/cache_hits")
    assert {"hit": cached > 0, "miss": cached == 0}[wanted], hits
    warned = [str(w.message) for w in caught if "compilation cache is off" in str(w.message)]
    assert len(warned) == (registered == "function"), warned
    assert undo is None or undo.remove()
    assert jax.config.jax_enable_compilation_cache
    z = jax.jit(lambda v: jax.numpy.sin(v) * 3)(x)  # the pass is gone, the cache is back
    assert np.allclose(z, 3 * np.sin(x)), z


def negative_zero() -> None:
    """Constants keep the sign of zero through a pass, `run` and `assert_equivalent`."""
    import jax
    import numpy as np

    import hlotext as hlo
    from hlotext.interop.jax import assert_equivalent, register_pass, run

    values = np.array([-0.0, 1, 2, -0.0], np.float32)
    register_pass(sines_to_cosines)
    compiled = jax.jit(lambda v: (values, np.float64(-0.0) * v, jax.numpy.sin(v)))(np.float32(1))
    assert compiled[0].tobytes() == values.tobytes(), compiled
    assert np.signbit(compiled[1])
    assert compiled[2] == np.cos(np.float32(1))
    text = (
        'ENTRY e { a = f32[4]{0} constant({-0, 1, 2, -0}), metadata={op_name="f32[] constant(-0)"}\n'
        "b = c64[2]{0} constant({(-0, 1), (1e-05, -0)})  i = s32[2]{0} constant({-1, 0})  "
        "h = bf16[] constant(-0)  ROOT t = (f32[4]{0}, c64[2]{0}, s32[2]{0}, bf16[]) tuple(a, b, i, h) }"
    )
    a, b, i, h = run(hlo.parse(text))
    assert np.signbit(a).tolist() == [True, False, False, True]
    assert np.signbit(b.real).tolist() == [True, False]
    assert np.signbit(b.imag).tolist() == [False, True]
    assert i.tolist() == [-1, 0]
    assert np.signbit(h.astype(np.float32))
    assert_equivalent(hlo.parse(text), hlo.parse(text), rtol=0)
    with pytest.raises(AssertionError):
        assert_equivalent(hlo.parse(text), hlo.parse(text.replace("{-0, 1, 2, -0}", "{0, 1, 2, 0}")), rtol=0)


def wide_arguments() -> None:
    """64-bit arguments and results are executed as what the module says they are, without JAX_ENABLE_X64."""
    import jax
    import numpy as np

    import hlotext as hlo
    from hlotext.interop.jax import assert_equivalent, run

    assert not jax.config.jax_enable_x64
    text = "HloModule m\n\nENTRY e {\n  a = s64[4]{0} parameter(0)\n  ROOT b = s64[4]{0} add(a, a)\n}\n"
    [result] = run(hlo.parse(text), np.array([1, 2, 2**40, -1]))
    assert (result.dtype, result.tolist()) == (np.int64, [2, 4, 2**41, -2])
    assert_equivalent(hlo.parse(text), hlo.parse(text), rtol=0)
    floats = text.replace("s64", "f64")
    assert_equivalent(hlo.parse(floats), hlo.parse(floats), rtol=0)
    assert not jax.config.jax_enable_x64


def grad_of_scan() -> None:
    """A pipeline of passes inside the compilation of a gradient through a loop."""
    import jax
    import numpy as np

    from hlotext import rewrite
    from hlotext.interop.jax import register_pass
    from hlotext.rewrite import Pipeline, parse_passes

    def loss(w: Any, x: Any) -> Any:
        return jax.lax.scan(lambda c, t: (jax.numpy.tanh(c @ w + t), c.sum()), x[0], x)[0].sum()

    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(8, 8)).astype(np.float32) / 8, rng.normal(size=(5, 8)).astype(np.float32)
    before = jax.jit(jax.grad(loss))(w, x)
    jax.clear_caches()
    changed: list[str] = []

    def change(module: Any) -> None:
        for i in tuple(module.instructions()):
            if i.opcode == "tanh":  # in the body of the loop: a round trip that changes nothing
                with module.transaction():  # nothing of a fusion may be unused in between
                    b = rewrite.Builder.before(i)
                    i.replace_with(b.negate(b.negate(b.tanh(*i.operands))))
                changed.append(i.name)
        Pipeline(parse_passes("dce")).run(module)

    undo = register_pass(change)
    after = jax.jit(jax.grad(loss))(w, x)
    assert changed
    assert np.allclose(before, after, rtol=1e-5), (before, after)
    undo.remove()
    jax.clear_caches()


def equal_states() -> None:
    """What keeps elements of a loop's state apart stays: three arrays that are zero when the loop begins."""
    import jax
    import numpy as np

    from hlotext.interop.jax import register_pass
    from hlotext.rewrite import Pipeline, parse_passes

    def loop(x: Any) -> Any:
        def body(i: Any, state: Any) -> Any:
            a, b, c = state
            return a.at[i].add(x[i]), b.at[i].add(2 * x[i]), c.at[i].set(a[i] - b[i])

        return jax.lax.fori_loop(0, 5, body, (jax.numpy.zeros_like(x),) * 3)

    x = np.ones((5, 8), np.float32)
    plain = jax.jit(loop)(x)
    jax.clear_caches()
    with register_pass(Pipeline(parse_passes("algsimp,cse,dce"))) as registration:
        found = jax.jit(loop)(x)
    assert any(outcome.what == "changed" for outcome in registration.outcomes)
    assert all(np.array_equal(a, b) for a, b in zip(plain, found, strict=True)), found


def skipped() -> None:
    """A pass that fails is left out with one warning for a module, or ends the compilation, as was asked for."""
    import warnings

    import jax
    import numpy as np

    from hlotext.interop.jax import register_pass

    def changes_then_fails(module: Any) -> None:
        sines_to_cosines(module)
        raise KeyError("no such thing")

    def f(x: Any) -> Any:
        return jax.numpy.sin(x) * 2

    x = np.linspace(0, 1, 8, dtype=np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with register_pass(changes_then_fails, on_error="skip", cache_key="1") as registration:
            assert np.allclose(jax.jit(f)(x), 2 * np.sin(x))
    said = [str(w.message) for w in caught if "jit_f" in str(w.message)]
    assert len(said) == 1, said
    assert said[0].startswith(
        "hlotext pass changes_then_fails: jit_f was compiled without it: KeyError: 'no such thing'"
    )
    assert [o.what for o in registration.outcomes if o.module == "jit_f"] == ["skipped"]
    with warnings.catch_warnings():  # nor does a warning end it that is an error
        warnings.simplefilter("error")
        with register_pass(changes_then_fails, on_error="skip", cache_key="1"):
            assert np.allclose(jax.jit(lambda v: f(v) + 1)(x), 2 * np.sin(x) + 1)


def chosen_wrongly() -> None:
    """Choices that do not exist, and passes that belong to an earlier stage, are refused before anything is compiled."""
    from hlotext.interop.jax import register_pass
    from hlotext.interop.jax.cache import _entries
    from hlotext.rewrite import Pipeline, parse_passes

    for settings, said in (
        ({"platforms": "cpuu"}, "there is no platform cpuu; known: .*cpu.*; did you mean `cpu`"),
        ({"stage": "pre_schedule"}, "there is no stage pre_schedule; known: post_scheduler, pre_scheduler"),
        ({"on_error": "ignore"}, "there is no on_error ignore; known: raise, skip"),
    ):
        with pytest.raises(ValueError, match=said):
            register_pass(lambda module: None, **settings)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cpu-fusion makes decisions that XLA has already made"):
        register_pass(Pipeline(parse_passes("cpu-fusion")))
    assert not _entries


def outcomes() -> None:
    """A dry run compiles everything as it was, and tells what would have been changed."""
    import jax
    import numpy as np

    from hlotext import rewrite
    from hlotext.interop.jax import dry_run, from_jax, register_pass

    def f(x: Any) -> Any:
        return jax.numpy.sin(x) * 2

    def g(x: Any) -> Any:
        return x * 3

    x = np.linspace(0, 1, 8, dtype=np.float32)
    with register_pass(sines_to_cosines, dry_run=True, cache_key="1") as registration:
        assert np.allclose(jax.jit(f)(x), 2 * np.sin(x))
        assert np.allclose(jax.jit(g)(x), 3 * x)
    assert {(o.module, o.what) for o in registration.outcomes} >= {
        ("jit_f", "changed"),
        ("jit_g", "unchanged"),
    }
    rules = rewrite.ApplyRules((rewrite.rule("sine($x) => cosine($x)"),))
    with register_pass(rules, dry_run=True) as registration:  # a pass alone
        jax.clear_caches()
        jax.jit(f)(x)
    assert ("jit_f", "changed") in {(o.module, o.what) for o in registration.outcomes}
    module = from_jax(jax.jit(f), x)
    text = str(module)
    assert str(dry_run(sines_to_cosines, [module, jax.jit(g).lower(x)])) == "would change 1 of 2 modules"
    assert str(module) == text


def lowered() -> None:
    """A program is changed before XLA's optimizations; donation, shardings and structure of results stay."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from hlotext.interop.jax import change_lowered
    from hlotext.rewrite import Pipeline, parse_passes

    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("d",)), PartitionSpec("d"))
    x = np.arange(16, dtype=np.float32)
    step = jax.jit(lambda v: {"s": jax.numpy.sin(v) * 2}, donate_argnums=0, out_shardings=sharding)
    given = jax.device_put(x, sharding)
    seen: list[str] = []

    def change(module: Any) -> None:
        seen.extend(i.opcode for i in module.instructions())
        sines_to_cosines(module)

    compiled = change_lowered(step.lower(given), change).compile()
    assert "fusion" not in seen
    assert "multiply" in seen
    assert compiled.memory_analysis().alias_size_in_bytes
    found = compiled(given)["s"]
    assert np.allclose(found, 2 * np.cos(x))
    assert given.is_deleted()
    assert len(found.sharding.device_set) == 8
    with pytest.raises(ValueError, match="parameters or results are no longer"):
        change_lowered(
            jax.jit(lambda v: v.sum()).lower(x), lambda m: setattr(m.entry, "root", m.entry.root.operands[0])
        )
    lowered = jax.jit(lambda v: v + 1).lower(x)
    assert change_lowered(lowered, Pipeline(parse_passes("dce"))) is lowered


def lowered_apart(cache: str) -> None:
    """What is changed is what compiles, and the function keeps its own program, whichever of them ran first."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, PartitionSpec

    from hlotext.interop.jax import change_lowered

    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    mesh, d = Mesh(np.array(jax.devices()), ("d",)), PartitionSpec("d")
    sin, cos = jax.numpy.sin, jax.numpy.cos
    x = np.arange(16, dtype=np.float32)
    kinds: dict[str, Any] = {
        "jit": (lambda: jax.jit(sin), np.sin(x), np.cos(x)),
        "grad": (lambda: jax.jit(jax.grad(lambda v: -cos(v).sum())), np.sin(x), np.cos(x)),
        "shard_map": (
            lambda: jax.jit(jax.shard_map(sin, mesh=mesh, in_specs=d, out_specs=d)), np.sin(x), np.cos(x),
        ),
        "scan": (
            lambda: jax.jit(lambda v: jax.lax.scan(lambda c, _: (sin(c), None), v, length=2)[0]),
            np.sin(np.sin(x)), np.cos(np.cos(x)),
        ),
    }  # fmt: skip
    for kind, (make, own, other) in kinds.items():
        for order in ("called before", "compiled before", "called after", "fresh after another's cache"):
            f = make()
            if order == "called before":
                assert np.allclose(f(x), own, atol=1e-5), (kind, order)
            given = f.lower(x)
            if order == "compiled before":
                given.compile()
            text = given.as_text()
            compiled = change_lowered(given, sines_to_cosines).compile()
            assert np.allclose(compiled(x), other, atol=1e-5), (kind, order)
            assert np.allclose(f(x), own, atol=1e-5), (kind, order)
            assert np.allclose(given.compile()(x), own, atol=1e-5), (kind, order)
            assert given.as_text() == f.lower(x).as_text() == text, (kind, order)
            assert np.allclose(compiled(x), other, atol=1e-5), (kind, order)
            jax.clear_caches()


def lowered_for_shardy() -> None:
    """Of collectives and shardings, what would not compile is refused, and what has no effect warned of."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from hlotext import rewrite
    from hlotext.execution.errors import NotExecutable
    from hlotext.interop.jax import change_lowered

    mesh, d = Mesh(np.array(jax.devices()), ("d",)), PartitionSpec("d")
    x, w = np.ones((16, 8), np.float32), np.ones((8, 8), np.float32)

    def sums(a: Any, b: Any) -> Any:
        return jax.lax.psum(a, "d"), jax.lax.psum(b * 2, "d")

    def combined(module: Any) -> None:
        old = [i for i in module.instructions() if i.opcode == "all-reduce"]
        b = rewrite.Builder.before(old[-1])
        own = {k: v for k, v in old[0].attributes.items() if k not in ("metadata", "sharding")}
        both = b.all_reduce(*[i.operands[0] for i in old], **own)
        for number, i in enumerate(old):
            i.replace_with(b.get_tuple_element(both, number))

    f = jax.jit(jax.shard_map(sums, mesh=mesh, in_specs=(d, d), out_specs=PartitionSpec()))
    with pytest.raises(NotExecutable, match="all-reduce of 2 arrays within shard_map"):
        change_lowered(f.lower(x, w), combined)

    whole = NamedSharding(mesh, d)
    step: Any = jax.jit(
        lambda a, b: jax.numpy.tanh(a @ b),
        in_shardings=(whole, NamedSharding(mesh, PartitionSpec())),
        out_shardings=whole,
    )

    def dot(module: Any) -> Any:
        return next(i for i in module.instructions() if i.opcode == "dot")

    def sharded(module: Any) -> None:
        dot(module).attributes["sharding"] = "{devices=[1,8]<=[8]}"

    def constrained(module: Any) -> None:
        rewrite.insert_after(
            dot(module),
            lambda b, value: b.custom_call(
                value, shape="f32[16,8]{1,0}", custom_call_target="Sharding", sharding="{devices=[1,8]<=[8]}",
                frontend_attributes={"xla.sdy.sharding": '#sdy.sharding_per_value<[<@mesh, [{}, {"d"}]>]>'},
            ),
        )  # fmt: skip

    with pytest.warns(UserWarning, match="has no effect: Shardy"):
        assert "all-to-all" not in change_lowered(step.lower(x, w), sharded).compile().as_text()
    compiled = change_lowered(step.lower(x, w), constrained).compile()
    assert "all-to-all" in compiled.as_text()
    assert np.allclose(compiled(x, w), step(x, w))


def donation_kept() -> None:
    """Where the compiler forgets donation in what a pass hands back, modules that donate can be left alone."""
    import warnings

    import jax
    import numpy as np

    from hlotext.interop.jax import register_pass

    def donating() -> Any:
        return jax.jit(lambda v: jax.numpy.sin(v) * 5, donate_argnums=0).lower(
            np.arange(65536, dtype=np.float32)
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with register_pass(sines_to_cosines, keep_donation=True, on_error="skip") as registration:
            assert donating().compile().memory_analysis().alias_size_in_bytes
        forgets = any("DonationError" in outcome.reason for outcome in registration.outcomes)
        with register_pass(sines_to_cosines):
            assert bool(donating().compile().memory_analysis().alias_size_in_bytes) != forgets


def four_devices() -> None:
    """A pass on a program that is partitioned over four devices."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from hlotext.interop.jax import register_pass

    mesh = Mesh(np.array(jax.devices()[:4]), ("d",))
    sharding = NamedSharding(mesh, PartitionSpec("d"))
    x = jax.device_put(np.arange(16, dtype=np.float32).reshape(4, 4), sharding)
    seen: list[str] = []

    def change(module: Any) -> None:
        seen.append(str(module.entry.parameters[0].shape))
        sines_to_cosines(module)

    register_pass(change)
    result = jax.jit(lambda v: jax.numpy.sin(v) @ v.T + v.sum(), out_shardings=sharding)(x)
    plain = np.asarray(x)
    assert np.allclose(result, np.cos(plain) @ plain.T + plain.sum(), rtol=1e-5), result
    assert "f32[1,4]{1,0}" in seen, seen
    assert len(result.sharding.device_set) == 4


def combined_collectives() -> None:
    """Collectives of four devices made fewer, some of which need others, compute what they did."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, PartitionSpec

    from hlotext.interop.jax import register_pass
    from hlotext.rewrite import Pipeline, parse_passes

    mesh = Mesh(np.array(jax.devices()[:4]), ("d",))
    spec = PartitionSpec("d")

    def f(x: Any, y: Any, z: Any) -> Any:
        a, b = jax.lax.psum(x, "d"), jax.lax.psum(jnp.sin(y), "d")
        c = jax.lax.psum(x * b.sum(), "d")  # needs b, and so may not be joined with it
        d, e = jax.lax.pmax(z, "d"), jax.lax.psum(z + 1, "d")
        g, h = jax.lax.all_gather(x, "d"), jax.lax.all_gather(jnp.cos(x), "d")
        i = jax.lax.psum_scatter(jnp.tile(x, 4), "d", scatter_dimension=0, tiled=True)
        j = jax.lax.psum_scatter(jnp.tile(y, 4), "d", scatter_dimension=0, tiled=True)
        return a, b, c + d.sum(), d, e, g.sum() + h, i, j

    def jitted() -> Any:
        return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=(spec,) * 3, out_specs=spec, check_vma=False))

    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(8,)).astype(np.float32) for _ in range(2))
    z = rng.integers(0, 9, size=(8,)).astype(np.int32)
    before = jitted()(x, y, z)
    jax.clear_caches()
    counts: list[tuple[int, int]] = []
    made: list[int] = []

    def change(module: Any) -> None:
        kinds = ("all-reduce", "all-gather", "reduce-scatter")
        old = sum(i.opcode in kinds for i in module.instructions())
        steps = Pipeline(parse_passes("combine-collectives")).run(module)
        made.append(steps[0].result.statistics.get("made", 0))
        counts.append((old, sum(i.opcode in kinds for i in module.instructions())))

    register_pass(change)
    after = jitted()(x, y, z)
    assert max(made) >= 2, counts
    assert any(new < old for old, new in counts), counts
    for one, other in zip(before, after, strict=True):
        assert np.allclose(one, other, rtol=1e-6), (one, other)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
