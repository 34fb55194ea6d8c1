"""What the test suites of JAX, MaxText, Transformer Engine and torch_xla ask of compiled programs, in a line each.

Run by pytest in a process of its own, on 8 CPU devices, since jax takes the number of devices only once for each process.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from hlotext.testing import Hlo

MESH = Mesh(np.array(jax.devices()).reshape(2, 4), ("dp", "tp"))


def on(*axes: Any) -> NamedSharding:
    """A sharding over the mesh."""
    return NamedSharding(MESH, P(*axes))


def compiled(f: Any, *arguments: Any, **options: Any) -> Any:
    """The program that XLA makes of a function."""
    return jax.jit(f, **options).lower(*arguments).compile()


def array(*sizes: int, dtype: Any = jnp.float32, sharding: Any = None) -> Any:
    """The type of an argument."""
    return jax.ShapeDtypeStruct(sizes, dtype, sharding=sharding)


@pytest.fixture(scope="module")
def matmul() -> Any:
    """Contracts a sharded dimension, so that it ends in an all-reduce over tp."""
    f = lambda x, w: x @ w  # noqa: E731
    x, w = array(16, 64, sharding=on("dp", "tp")), array(64, 32, sharding=on("tp", None))
    return compiled(f, x, w, out_shardings=on("dp", None))


def test_presence_and_count_of_collectives(hlo: Any, matmul: Any) -> None:
    """JAX ffi_test, array_test, pjit_test; MaxText hlo_test_utils: plain or asynchronous alike."""
    assert hlo(matmul).count("all-gather") == 0
    assert hlo(matmul).count("all-reduce") == 1
    assert hlo(matmul).collectives().kinds == {"all-reduce": 1}


def test_bytes_by_axis(hlo: Any, matmul: Any) -> None:
    """Transformer Engine distributed_test_base: bytes for each collective, whatever the spelling of the groups."""
    assert hlo(matmul, mesh=MESH).collectives("all-reduce", axis="tp").bytes == 8 * 32 * 4
    assert hlo(matmul, mesh=MESH).collectives(axis="dp").bytes == 0
    assert hlo(matmul).collectives().dtypes == {"f32"}


def test_asynchronous_pairs(hlo: Any, matmul: Any) -> None:
    """JAX overlap_test: how many run beside other work; the CPU compiler makes none."""
    assert len(hlo(matmul).collectives(is_async=True)) == 0


def test_all_gather_of_a_resharding(hlo: Any) -> None:
    """JAX pjit_test collective_name: the one that replication needs."""
    made = compiled(lambda x: x * 2, array(8, 8, sharding=on("dp", None)), out_shardings=on(None, None))
    assert hlo(made, mesh=MESH).collectives("all-gather", axis="dp").kinds == {"all-gather": 1}


def test_no_full_size_array(hlo: Any, matmul: Any) -> None:
    """JAX array_test: the program is fully partitioned."""
    assert not hlo(matmul).has_array(16, 64)
    assert hlo(matmul).has_array(8, 16)


def test_aliases(hlo: Any) -> None:
    """JAX memories_test, torch_xla: donation is there, or is not."""
    f = lambda x: x + 1  # noqa: E731
    assert hlo(compiled(f, array(8), donate_argnums=0)).aliases == {(): (0, ())}
    assert hlo(compiled(f, array(8))).aliases == {}


def test_layouts_and_memory_spaces(hlo: Any, matmul: Any) -> None:
    """JAX layout_test and memories_test: the layout of a result, and whether anything lies on the host."""
    assert hlo(matmul).result_layouts == ("f32[8,32]{1,0}",)
    assert 5 not in hlo(matmul).memory_spaces


def test_custom_calls(hlo: Any) -> None:
    """JAX, AXLearn: a target is called so many times."""
    made = compiled(lambda x: jax.pure_callback(lambda v: v, array(4), x), array(4))
    assert sum("callback" in target for target in hlo(made).custom_calls) == 1
    assert not hlo(compiled(jnp.sin, array(4))).custom_calls


def test_shardings(hlo: Any) -> None:
    """JAX, AXLearn: the sharding of an argument, before the partitioner has used it up."""
    lowered = jax.jit(lambda x: x * 2).lower(array(16, 8, sharding=on("dp", "tp")))
    assert any("devices=[2,4]<=[8]" in sharding for sharding in hlo(lowered).shardings)


def test_scopes(hlo: Any) -> None:
    """JAX name_stack_test: the names of operations."""

    def f(x: Any) -> Any:
        with jax.named_scope("attention"):
            return jnp.sin(x)

    assert any("/attention/" in name for name in hlo(compiled(f, array(4))).op_names)


def test_operand_types_of_dots(hlo: Any) -> None:
    """torch_xla: what a matrix product is computed in."""
    lowered = jax.jit(lambda x, w: x @ w).lower(array(8, 8, dtype=jnp.int8), array(8, 8, dtype=jnp.int8))
    (dot,) = hlo(lowered).instructions("dot")
    assert [str(operand.shape.element_type) for operand in dot.operands] == ["s8", "s8"]
    assert hlo(lowered).dtypes >= {"s8"}


def test_loops_barriers_threads(hlo: Any) -> None:
    """torch_xla: while and opt-barrier; JAX: execution threads and annotations."""

    def f(x: Any) -> Any:
        return jax.lax.optimization_barrier(
            jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=5)[0]
        )

    lowered = jax.jit(f).lower(array(4))
    assert hlo(lowered).count("while") == 1
    assert hlo(lowered).count("opt-barrier") == 1
    assert hlo(lowered).threads == {"main"}
    assert not hlo(lowered).frontend_attributes("_xla_stream_annotation")


def test_folded_constants(hlo: Any) -> None:
    """AXLearn: a pattern is there or is not."""
    made = compiled(lambda x: x + jnp.float32(2) * jnp.float32(3), array(4))
    assert {str(constant.literal) for constant in hlo(made).instructions("constant")} == {"6"}
    assert hlo(made).matches("f32[4] add(_, _)")
    assert not hlo(made).matches("multiply(_, _)")


def test_same_program(hlo: Any, matmul: Any) -> None:
    """MaxText aot_identical_test and hlo_diff_test: equal but for names and metadata; a golden text."""

    def renamed(a: Any, b: Any) -> Any:
        with jax.named_scope("other"):
            return a @ b

    x, w = array(16, 64, sharding=on("dp", "tp")), array(64, 32, sharding=on("tp", None))
    again = compiled(renamed, x, w, out_shardings=on("dp", None))
    assert hlo(again).canonical_text() == hlo(matmul).canonical_text()


def test_order_of_lines(hlo: Any, matmul: Any) -> None:
    """XLA's own tests: FileCheck."""
    pytest.importorskip("filecheck")
    hlo(matmul).check("CHECK: ENTRY\nCHECK: all-reduce\nCHECK-NOT: all-gather")


def test_findings(hlo: Any, matmul: Any) -> None:
    """And what nobody asks yet."""
    inspected: Hlo = hlo(matmul)
    assert inspected.lint(select="C").codes == []
    assert inspected.padding_ratio == 1.0
