"""hlotext inside JAX: passes during compilation, programs as modules, and modules executed. Extra: `hlotext[jax]`.

jaxlib reads and prints HLO in this process, and ends the process on text that breaks its invariants; `hlotext.verify` finds
what it would refuse, so whatever goes to jaxlib is verified first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hlotext import layout, parse
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Layout, Shape, default_layout
from hlotext.ir.values.types import TypeKind
from hlotext.rewrite.builder import Builder
from hlotext.rewrite.pipeline import Pipeline
from hlotext.verify import verify

ModulePass = Callable[[Module], "object"]
"""Changes a module in place."""

_log = logging.getLogger(__name__)


class NotExecutable(ValueError):  # noqa: N818 - says what the module is
    """A module that jaxlib cannot be given."""


# ---- text and protos


def module_of_proto(proto: bytes) -> Module:
    """The module of a serialized `HloModuleProto`, constants in full."""
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return parse(_hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options))


def proto_of_module(module: Module, like: bytes = b"") -> bytes:
    """The serialized `HloModuleProto` of a module. Raises NotExecutable for what `verify` refuses.

    Text says nothing of some fields (cross-program prefetches, parameters' and results' shardings after partitioning, the
    device assignment ...): they are taken from `like`, the proto that the module was made of.
    """
    from jaxlib import _hlo

    _check(module)
    new: bytes = _hlo.hlo_module_from_text(str(module)).as_serialized_hlo_module_proto()
    given = {number for number, _ in _fields(new)}
    return new + b"".join(raw for number, raw in _fields(like) if number in _NOT_IN_TEXT - given)


_NOT_IN_TEXT = frozenset({10, 11, 12, 13, 14, 15, 16})
"""Fields of HloModuleProto that HLO text leaves out (hlo.proto): cross_program_prefetches, is_dynamic,
spmd_output_sharding, profile_info, spmd_parameters_shardings, device_assignment, use_auto_spmd_partitioning."""


def _fields(proto: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes, tag included, of each field of a serialized message."""
    position = 0
    while position < len(proto):
        start = position
        tag, position = _varint(proto, position)
        kind = tag & 7
        if kind == 0:
            _, position = _varint(proto, position)
        elif kind == 2:
            size, position = _varint(proto, position)
            position += size
        else:
            position += {1: 8, 5: 4}[kind]
        yield tag >> 3, proto[start:position]


def _varint(proto: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = proto[position]
        value |= (byte & 127) << shift
        position += 1
        shift += 7
        if byte < 128:
            return value, position


def _check(module: Module) -> None:
    errors = [d for d in verify(module) if d.severity is Severity.ERROR]
    if errors:
        raise NotExecutable(f"{module.name}: {errors[0].code}: {errors[0].message}")


# ---- passes in JAX's compiler


def register_pass(
    function: ModulePass | Pipeline,
    *,
    name: str | None = None,
    stage: str = "pre_scheduler",
    platforms: Sequence[str] | str | None = None,
) -> Callable[[], bool]:
    """Runs a function or a pipeline on every module that JAX compiles; returns what takes it off again.

    `stage` is `pre_scheduler` or `post_scheduler` (JAX's `PipelineStage`), `platforms` as in JAX (None: all). Header
    attributes such as donation and aliasing, the schedule and frontend attributes go with the text; fields that text
    does not have are kept from JAX's module. A module that the function leaves as it is is not handed back, so it keeps
    all that it has; of one that is handed back, be it byte for byte the same, the compiler of jaxlib 0.10.2 forgets
    donation. What the function raises, JAX raises from the compilation, with the name of the pass. Raises
    NotImplementedError for a JAX without `jax.extend.xla`.
    """
    try:
        from jax.extend import xla
    except ImportError:
        raise NotImplementedError("this JAX has no jax.extend.xla: passes need JAX 0.10.2 or later") from None
    label = name or (
        function.name if isinstance(function, Pipeline) else getattr(function, "__name__", "hlotext")
    )
    place = xla.PipelineStage[stage.upper()]

    def transform(proto: bytes) -> bytes | None:
        try:
            module = module_of_proto(proto)
            before = module.revision
            function.run(module) if isinstance(function, Pipeline) else function(module)
            return None if module.revision == before else proto_of_module(module, proto)
        except Exception as error:
            _log.exception("the pass %s failed", label)
            raise RuntimeError(f"hlotext pass {label}: {type(error).__name__}: {error}") from error

    xla.register_hlo_module_transformation(transform, name=label, stage=place, platforms=platforms)
    return lambda: bool(xla.clear_hlo_module_transformation(label, stage=place, platforms=platforms))


def from_jax(jitted: Any, *args: Any, stage: str = "before", **kwargs: Any) -> Module:
    """The module of a jitted function for these arguments, before or after XLA's optimizations.

    >>> import jax
    >>> from_jax(jax.jit(lambda x: x + 1), 1.0).entry.root.opcode  # doctest: +SKIP
    'add'
    """
    lowered = jitted.lower(*args, **kwargs)
    if stage == "before":
        return module_of_proto(lowered.compiler_ir(dialect="hlo").as_serialized_hlo_module_proto())
    if stage == "after":
        (module,) = lowered.compile().runtime_executable().hlo_modules()
        return module_of_proto(module.as_serialized_hlo_module_proto())
    raise ValueError(f"stage is before or after, not {stage}")


# ---- execution


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
    buffers = [jax.device_put(array, jax.devices("cpu")[0]) for array in arrays]
    return [np.asarray(result) for result in executable.execute(buffers)]


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
    generator = np.random.default_rng(seed)
    return [_random(parameter.shape, generator) for parameter in module.entry.parameters]


def _random(shape: Shape | None, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    if shape is None or not shape.is_array or not shape.is_static:
        raise NotExecutable(f"a parameter is {shape}, which is no array")
    type_, sizes = shape.element_type, shape.dimensions
    if type_.kind is TypeKind.PREDICATE:
        return generator.integers(0, 2, sizes).astype(bool)
    if type_.is_integral:
        return generator.integers(0, min(8, 2 ** (type_.bits - 1)), sizes).astype(type_.dtype)
    if type_.is_complex:
        return (generator.normal(size=sizes) + 1j * generator.normal(size=sizes)).astype(type_.dtype)
    return generator.normal(size=sizes).astype(type_.dtype)


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
