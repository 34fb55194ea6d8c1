"""Modules executed on jaxlib's CPU client, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from hlotext import layout
from hlotext.execution import NotExecutable, random_arrays
from hlotext.interop.jax.protos import proto_of_module
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Layout, Shape, default_layout
from hlotext.rewrite.builder import Builder


def run(module: Module, *arrays: Any) -> list[np.ndarray[Any, Any]]:
    """The results of a module for these arguments, on jaxlib's CPU client; a tuple gives its elements.

    The module must be one before optimizations (jaxlib compiles StableHLO, which knows neither fusions nor schedules), for
    one device, with arrays as parameters and results. Bitcasts, which only mean something once layouts are final, are given
    as the transposes and reshapes that they stand for. Raises NotExecutable.
    """
    import jax
    from jaxlib import _hlo, _jax, xla_client

    client = jax.devices("cpu")[0].client
    computation = _hlo.XlaComputation(proto_of_module(_without_bitcasts(module)))
    try:
        stable = _jax.mlir.xla_computation_to_mlir_module(computation)
        devices = xla_client.DeviceList(tuple(jax.devices("cpu")[:1]))
        executable = client.compile_and_load(stable, devices, xla_client.CompileOptions())
    except Exception as error:
        raise NotExecutable(f"{module.name}: {str(error).splitlines()[0]}") from error
    with _wide_types():
        buffers = [jax.device_put(array, jax.devices("cpu")[0]) for array in arrays]
        return [np.asarray(result) for result in executable.execute(buffers)]


def _wide_types() -> AbstractContextManager[Any]:
    """JAX made to keep 64-bit arrays as they are: the module says which types its arguments have, not `JAX_ENABLE_X64`."""
    import jax

    found: AbstractContextManager[Any]
    if hasattr(jax, "enable_x64"):
        found = jax.enable_x64(True)
    else:
        from jax import experimental  # releases before jax.enable_x64

        found = experimental.enable_x64()
    return found


def _without_bitcasts(module: Module) -> Module:
    """The module, or a copy in which each bitcast is the moves that it stands for.

    The elements in the order in which they lie in memory, as the dimensions in which the result's lie, in the result's
    logical order. Raises NotExecutable for bitcasts that change the element type or involve tiles.
    """
    if all(i.opcode != "bitcast" for i in module.instructions()):
        return module
    copy = module.clone()
    for i in tuple(copy.instructions()):
        source = i.operands[0].shape if i.opcode == "bitcast" else None
        if source is None or i.shape is None:
            continue
        if source.element_type is not i.shape.element_type or not (_is_order(source) and _is_order(i.shape)):
            raise NotExecutable(f"{i.name} sees the bytes of {source} as {i.shape}")
        b = Builder.before(i)
        inward, outward = layout.major_to_minor(source), layout.major_to_minor(i.shape)
        value = i.operands[0]
        value = b.transpose(value, dimensions=inward, shape=_plain(source, inward)) if inward else value
        physical = _plain(i.shape, outward)
        value = b.op("reshape", (value,), shape=physical)
        order = tuple(sorted(range(len(outward)), key=outward.__getitem__))
        i.replace_with(b.op("transpose", (value,), shape=i.shape, dimensions=order))
    return copy


def _is_order(shape: Shape) -> bool:
    return shape.layout is None or shape.layout == Layout(shape.layout.minor_to_major)


def _plain(shape: Shape, order: tuple[int, ...]) -> Shape:
    """The sizes in that order, with the descending layout."""
    sizes = tuple(shape.dimensions[d] for d in order)
    return Shape(shape.element_type, sizes, layout=default_layout(len(sizes)))


def random_inputs(module: Module, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Random arguments for a module's entry: small whole numbers, normal floats, either truth value.

    Raises NotExecutable for parameters that are no arrays.
    """
    shapes = [parameter.shape for parameter in module.entry.parameters]
    if None in shapes:
        raise NotExecutable("the shape of a parameter is not known")
    return random_arrays([shape for shape in shapes if shape is not None], seed)


def assert_equivalent(
    before: Module,
    after: Module,
    inputs: str | Sequence[Any] = "random",
    *,
    rtol: float = 1e-5,
    seed: int = 0,
) -> None:
    """Executes two modules on the same arguments. Raises AssertionError where results differ.

    Whole numbers and truth values must be equal, floats within `rtol` of the largest value (or of what the type resolves),
    with 0 to the bit.
    """
    arrays = random_inputs(before, seed) if isinstance(inputs, str) else inputs
    wanted, found = run(before, *arrays), run(after, *arrays)
    assert len(wanted) == len(found), f"{len(wanted)} results became {len(found)}"
    for number, (a, b) in enumerate(zip(wanted, found, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"result {number} is {b.dtype}{b.shape}"
        assert _agree(a, b, rtol), (
            f"result {number} of {before.name} differs: {a.ravel()[:5]} and {b.ravel()[:5]}"
        )


def _agree(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], rtol: float) -> bool:
    import ml_dtypes

    if a.tobytes() == b.tobytes():
        return True
    if not rtol or a.dtype.kind in "biu" or "int" in a.dtype.name:
        return False
    wide: Any = np.complex128 if a.dtype.kind == "c" else np.float64
    resolution = 0.0 if a.dtype.kind == "c" else float(ml_dtypes.finfo(a.dtype).eps)  # type: ignore[no-untyped-call]
    x, y = a.astype(wide), b.astype(wide)
    finite = np.abs(x[np.isfinite(x)])
    scale = float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(x, y, rtol=0, atol=scale * max(rtol, 4 * resolution), equal_nan=True))
