"""Evaluates an instruction on known values with numpy, as XLA's `HloEvaluator` does.

Integers wrap, and division by zero has XLA's results. Floats narrower than f64 are computed as XLA computes them: types of
16 bits and fewer in f32, f32 in f32 where IEEE rounds exactly, and in f64 with one rounding where a library function is
called. What numpy may round otherwise than the C library is right to one unit in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hlotext.ir.nodes.computation import Computation, instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.comparison import default_order, order_of
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ElementType, TypeKind

Array = np.ndarray[Any, Any]
Values = Mapping[Instruction, Array]

MAX_STEPS = 100_000
"""Steps of a reduction that are computed one after the other."""


def evaluate(i: Instruction, values: Sequence[Array]) -> Array | None:
    """Evaluates an instruction, given the values of its operands; None if the opcode is not supported."""
    shape = i.shape
    if shape is None or not shape.is_array or not shape.is_static:
        return None
    function = FUNCTIONS.get(i.opcode)
    if function is None or not all(known_type(s) for s in (shape, *(o.shape for o in i.operands))):
        return None
    with np.errstate(all="ignore"):
        result = function(i, list(values))
    if result is None or tuple(result.shape) != shape.dimensions:
        return None
    return np.ascontiguousarray(result).astype(shape.element_type.dtype, copy=False).reshape(shape.dimensions)


def run(computation: Computation, arguments: Sequence[Array]) -> Array | None:
    """Evaluates a computation, given its arguments; None if an opcode is not supported.

    Arguments may have extra leading dimensions for a scalar computation, which is then evaluated for each element.
    """
    values: dict[Instruction, Array] = {}
    shape = np.shape(arguments[0]) if arguments else ()
    for i in instruction_post_order(computation):
        if i.opcode == "parameter":
            values[i] = arguments[i.parameter_number or 0]
            continue
        literal = i.literal.known_array if i.literal is not None else None
        if literal is not None:
            values[i] = literal if literal.shape else np.broadcast_to(literal, shape)
            continue
        function = FUNCTIONS.get(i.opcode)
        if function is None or i.opcode not in ELEMENT_FUNCTIONS or i.shape is None or i.shape.dimensions:
            return None
        if not all(known_type(s) for s in (i.shape, *(o.shape for o in i.operands))):
            return None
        result = function(i, [values[o] for o in i.operands])
        if result is None:
            return None
        values[i] = result.astype(i.shape.element_type.dtype, copy=False)
    return values.get(computation.root)


def known_type(shape: Shape | None) -> bool:
    """Returns True if numpy supports the element type of an array shape."""
    if shape is None or not shape.is_array:
        return False
    return shape.element_type.kind is not TypeKind.UNKNOWN and bool(shape.element_type.dtype_name)


# ---- numbers


def _type(i: Instruction) -> ElementType:
    assert i.shape is not None
    return i.shape.element_type


def _is_whole(a: Array) -> bool:
    return a.dtype.kind in "iu"


def _wide(a: Array) -> Array:
    """Elements in the type in which XLA computes."""
    if a.dtype.kind in "iubcf" and a.dtype.itemsize >= 4:
        return a
    if a.dtype.kind in "iub":
        return a
    name = a.dtype.name
    if "int" in name:
        return a.astype(np.int8 if name.startswith("int") else np.uint8)
    return a.astype(np.float32)


def _library(function: Callable[[Array], Array]) -> Callable[[Instruction, list[Array]], Array | None]:
    """A function of the C library: in f64 with one rounding for narrower floats."""

    def compute(_: Instruction, a: list[Array]) -> Array | None:
        x = a[0]
        if x.dtype.kind == "c":
            return None
        wide = _wide(x)
        if wide.dtype.kind != "f":
            return None
        result: Array = function(wide.astype(np.float64)).astype(wide.dtype)
        return result.astype(x.dtype)

    return compute


def _exactly(function: Callable[..., Array]) -> Callable[[Instruction, list[Array]], Array | None]:
    """A function that IEEE rounds exactly, or of integers."""

    def compute(_: Instruction, a: list[Array]) -> Array | None:
        result = function(*map(_wide, a))
        return result.astype(a[0].dtype, copy=False)

    return compute


def _logic(
    whole: Callable[..., Array], truth: Callable[..., Array]
) -> Callable[[Instruction, list[Array]], Array | None]:
    """A function of numbers and its counterpart of truth values."""

    def compute(_: Instruction, a: list[Array]) -> Array | None:
        if a[0].dtype == bool:
            return truth(*a)
        result: Array = whole(*map(_wide, a)).astype(a[0].dtype, copy=False)
        return result

    return compute


def _divide(_: Instruction, a: list[Array]) -> Array | None:
    x, y = map(_wide, a)
    if not _is_whole(x):
        return None if x.dtype == bool else np.divide(x, y).astype(a[0].dtype)
    safe = np.where(y == 0, np.ones_like(y), y)
    if x.dtype.kind == "u":
        return np.where(y == 0, np.array(-1).astype(x.dtype), x // safe).astype(a[0].dtype)
    quotient = np.where(
        safe == -1, np.negative(x), _truncated(x, np.where(safe == -1, np.ones_like(y), safe))
    )
    return np.where(y == 0, np.array(-1, x.dtype), quotient).astype(a[0].dtype)


def _truncated(x: Array, y: Array) -> Array:
    """The quotient of integers, towards zero."""
    quotient: Array = x // y + ((x % y != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return quotient


def _remainder(_: Instruction, a: list[Array]) -> Array | None:
    x, y = map(_wide, a)
    if not _is_whole(x):
        return None if x.dtype.kind in "bc" else np.fmod(x, y).astype(a[0].dtype)
    safe = np.where((y == 0) | (y == -1 if x.dtype.kind == "i" else False), np.ones_like(y), y)
    rest = np.fmod(x, safe)
    return np.where(y == 0, x, rest).astype(a[0].dtype)


def _power(_: Instruction, a: list[Array]) -> Array | None:
    x, y = map(_wide, a)
    if x.dtype.kind == "f":
        return np.power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype).astype(a[0].dtype)
    if not _is_whole(x):
        return None
    result, base, rest = np.ones_like(x), x.copy(), y.copy()
    negative = rest < 0
    rest = np.where(negative, 0, rest)
    while rest.any():
        result = np.where(rest & 1, result * base, result)
        base, rest = base * base, rest >> 1
    if negative.any():
        inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
        inverse = np.where(x == 0, -1, inverse)
        result = np.where(negative, inverse, result)
    return result.astype(a[0].dtype)


def _shift(
    function: Callable[[Array, Array], Array], arithmetic: bool
) -> Callable[[Instruction, list[Array]], Array | None]:
    def compute(_: Instruction, a: list[Array]) -> Array | None:
        if not (_is_whole(a[0]) and a[0].dtype.itemsize * 8 >= 8 and _type_bits(a[0])):
            return None
        bits = a[0].dtype.itemsize * 8
        unsigned = np.dtype(f"u{a[0].dtype.itemsize}")
        amount = a[1].astype(unsigned)
        too_far = amount >= bits
        amount = np.where(too_far, 0, amount).astype(unsigned)
        if arithmetic:
            signed = a[0].astype(np.dtype(f"i{a[0].dtype.itemsize}"))
            moved = signed >> amount.astype(signed.dtype)
            return np.where(too_far, np.where(signed < 0, -1, 0), moved).astype(a[0].dtype)
        return np.where(too_far, 0, function(a[0].astype(unsigned), amount)).astype(a[0].dtype)

    return compute


def _type_bits(a: Array) -> bool:
    return a.dtype.name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _compare(i: Instruction, a: list[Array]) -> Array | None:
    order = order_of(i.attributes, _type(i.operands[0]))
    if order is not default_order(_type(i.operands[0])) and a[0].dtype.kind not in "iub":
        return None
    functions: dict[str, Callable[[Array, Array], Array]] = {
        "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
    }  # fmt: skip
    return functions[str(i.attributes["direction"])](_wide(a[0]), _wide(a[1]))


def _convert(i: Instruction, a: list[Array]) -> Array | None:
    target, x = _type(i), _wide(a[0])
    if x.dtype.kind == "c":
        return x.astype(target.dtype) if target.is_complex else None
    if target.kind is TypeKind.PREDICATE:
        truth: Array = x != 0
        return truth
    if x.dtype.kind == "f" and target.is_integral:
        low, high = _range(target)
        clipped = np.clip(np.where(np.isnan(x), 0, x).astype(np.float64), float(low), float(high))
        whole = np.where(clipped >= float(high), high, clipped.astype(np.int64 if low < 0 else np.uint64))
        return whole.astype(target.dtype)
    if target.is_floating and target.bits < 32 and _is_whole(x):
        x = x.astype(np.float64)
        return x.astype(np.float32).astype(target.dtype) if target.bits == 16 else x.astype(target.dtype)
    return x.astype(target.dtype)


def _range(type_: ElementType) -> tuple[int, int]:
    if type_.kind is TypeKind.SIGNED:
        return -(1 << (type_.bits - 1)), (1 << (type_.bits - 1)) - 1
    return 0, (1 << type_.bits) - 1


def _sign(_: Instruction, a: list[Array]) -> Array | None:
    x = _wide(a[0])
    if x.dtype.kind == "f":
        return np.where(np.isnan(x), x, np.copysign((x != 0).astype(x.dtype), x)).astype(a[0].dtype)
    return np.sign(x).astype(a[0].dtype) if _is_whole(x) else None


def _select(_: Instruction, a: list[Array]) -> Array | None:
    return np.where(a[0], a[1], a[2])


def _clamp(_: Instruction, a: list[Array]) -> Array | None:
    low, x, high = map(_wide, a)
    return np.minimum(np.maximum(x, low), high).astype(a[1].dtype)


def _bits(i: Instruction, a: list[Array]) -> Array | None:
    target = _type(i)
    if target.bits < 8 or a[0].dtype == bool or np.dtype(target.dtype).itemsize != a[0].dtype.itemsize:
        return None
    return np.ascontiguousarray(a[0]).view(target.dtype).reshape(a[0].shape)


def _count_bits(_: Instruction, a: list[Array]) -> Array | None:
    if not _type_bits(a[0]):
        return None
    x = a[0].astype(np.dtype(f"u{a[0].dtype.itemsize}"))
    count = np.zeros_like(x)
    for n in range(a[0].dtype.itemsize * 8):
        count += (x >> x.dtype.type(n)) & x.dtype.type(1)
    return count.astype(a[0].dtype)


def _leading_zeros(_: Instruction, a: list[Array]) -> Array | None:
    if not _type_bits(a[0]):
        return None
    x = a[0].astype(np.dtype(f"u{a[0].dtype.itemsize}"))
    count = np.zeros_like(x)
    for n in range(a[0].dtype.itemsize * 8):
        count += (x >> x.dtype.type(n)) == 0
    return count.astype(a[0].dtype)


_erf = np.vectorize(math.erf, otypes=[np.float64])


# ---- moves


def _broadcast(i: Instruction, a: list[Array]) -> Array | None:
    assert i.shape is not None
    sizes = [1] * i.shape.rank
    for source, target in enumerate(i.attributes.get("dimensions", ())):
        sizes[target] = a[0].shape[source]
    return np.broadcast_to(a[0].reshape(sizes), i.shape.dimensions)


def _iota(i: Instruction, _: list[Array]) -> Array | None:
    assert i.shape is not None
    d = i.attributes.get("iota_dimension", 0)
    sizes = [1] * i.shape.rank
    sizes[d] = i.shape.dimensions[d]
    numbers = np.arange(sizes[d])
    return np.broadcast_to(numbers.astype(i.shape.element_type.dtype).reshape(sizes), i.shape.dimensions)


def _slice(i: Instruction, a: list[Array]) -> Array | None:
    ranges = i.attributes["slice"].dimensions
    part: Array = a[0][tuple(slice(r.start, r.limit, r.stride) for r in ranges)]
    return part


def _pad(i: Instruction, a: list[Array]) -> Array | None:
    assert i.shape is not None
    result = np.full(i.shape.dimensions, a[1], a[0].dtype)
    target: list[slice] = []
    source: list[slice] = []
    for d, size in zip(i.attributes["padding"].dimensions, a[0].shape, strict=True):
        step = d.interior_padding + 1
        first = max(0, -(d.edge_padding_low // step)) if d.edge_padding_low < 0 else 0
        place = d.edge_padding_low + first * step
        length = result.shape[len(target)]
        count = max(0, min(size - first, (length - place + step - 1) // step))
        target.append(slice(place, place + (count - 1) * step + 1 if count else place, step))
        source.append(slice(first, first + count))
    result[tuple(target)] = a[0][tuple(source)]
    return result


def _dynamic_slice(i: Instruction, a: list[Array]) -> Array | None:
    assert i.shape is not None
    starts = _starts(a[1:], a[0].shape, i.shape.dimensions)
    part: Array = a[0][tuple(slice(s, s + n) for s, n in zip(starts, i.shape.dimensions, strict=True))]
    return part


def _dynamic_update_slice(_: Instruction, a: list[Array]) -> Array | None:
    starts = _starts(a[2:], a[0].shape, a[1].shape)
    result = a[0].copy()
    result[tuple(slice(s, s + n) for s, n in zip(starts, a[1].shape, strict=True))] = a[1]
    return result


def _starts(given: list[Array], whole: Sequence[int], part: Sequence[int]) -> list[int]:
    numbers = [int(x) for x in given] if len(given) != 1 or given[0].ndim == 0 else [int(x) for x in given[0]]
    return [min(max(s, 0), n - m) for s, n, m in zip(numbers, whole, part, strict=True)]


def _reduce(i: Instruction, a: list[Array]) -> Array | None:
    callees = i.called_computations
    if len(a) != 2 or len(callees) != 1:
        return None
    dimensions = tuple(i.attributes["dimensions"])
    kept = [d for d in range(a[0].ndim) if d not in dimensions]
    x = a[0].transpose((*sorted(dimensions), *kept)).reshape((-1, *(a[0].shape[d] for d in kept)))
    root = callees[0].root
    if (
        root.opcode == "add"
        and a[0].dtype.kind not in "iubc"
        and all(o.opcode == "parameter" for o in root.operands)
    ):
        total: Array = x.astype(np.float64).sum(axis=0) + a[1].astype(np.float64)
        return np.asarray(total.astype(a[0].dtype))
    if len(x) > MAX_STEPS:
        return None
    result: Array | None = np.broadcast_to(a[1], x.shape[1:])
    for part in x:
        assert result is not None
        result = run(callees[0], [result, part])
        if result is None:
            return None
    return result


def _dot(i: Instruction, a: list[Array]) -> Array | None:
    b = i.attributes
    lb, rb = tuple(b.get("lhs_batch_dims", ())), tuple(b.get("rhs_batch_dims", ()))
    lc, rc = tuple(b.get("lhs_contracting_dims", ())), tuple(b.get("rhs_contracting_dims", ()))
    x, y = map(_wide, a)
    if x.ndim + y.ndim > 40 or x.dtype == bool or x.dtype.kind == "c":
        return None
    names_x, names_y, free = list(range(x.ndim)), [-1] * y.ndim, x.ndim
    for left, right in zip((*lb, *lc), (*rb, *rc), strict=True):
        names_y[right] = names_x[left]
    for d in range(y.ndim):
        if names_y[d] < 0:
            names_y[d], free = free, free + 1
    out = [names_x[d] for d in lb]
    out += [names_x[d] for d in range(x.ndim) if d not in (*lb, *lc)]
    out += [names_y[d] for d in range(y.ndim) if d not in (*rb, *rc)]
    if x.dtype.kind == "f":
        x, y = x.astype(np.float64), y.astype(np.float64)
    result: Array = np.einsum(x, names_x, y, names_y, out)
    return result.astype(_type(i).dtype)


def _shaped(i: Instruction, a: list[Array]) -> Array | None:
    return a[0].reshape(i.shape.dimensions) if i.shape is not None else None


Function = Callable[[Instruction, list[Array]], "Array | None"]

ELEMENT_FUNCTIONS: dict[str, Function] = {
    "add": _logic(np.add, np.logical_or), "subtract": _logic(np.subtract, np.logical_xor),
    "multiply": _logic(np.multiply, np.logical_and), "divide": _divide, "remainder": _remainder, "power": _power,
    "negate": _exactly(np.negative), "abs": _exactly(np.abs), "sign": _sign,
    "and": _exactly(np.bitwise_and), "or": _exactly(np.bitwise_or), "xor": _exactly(np.bitwise_xor),
    "not": _logic(np.invert, np.logical_not),
    "maximum": _exactly(np.maximum), "minimum": _exactly(np.minimum),
    "shift-left": _shift(np.left_shift, False), "shift-right-logical": _shift(np.right_shift, False),
    "shift-right-arithmetic": _shift(np.right_shift, True),
    "floor": _exactly(np.floor), "ceil": _exactly(np.ceil), "round-nearest-even": _exactly(np.rint),
    "round-nearest-afz": _exactly(lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
    "sqrt": _exactly(np.sqrt), "rsqrt": _exactly(lambda x: x.dtype.type(1) / np.sqrt(x)),
    "cbrt": _library(np.cbrt), "exponential": _library(np.exp), "exponential-minus-one": _library(np.expm1),
    "log": _library(np.log), "log-plus-one": _library(np.log1p), "sine": _library(np.sin), "cosine": _library(np.cos),
    "tan": _library(np.tan), "tanh": _library(np.tanh), "erf": _library(_erf),
    "logistic": _library(lambda x: 1 / (1 + np.exp(-x))),
    "is-finite": lambda _, a: np.isfinite(_wide(a[0])) if _wide(a[0]).dtype.kind == "f" else None,
    "popcnt": _count_bits, "count-leading-zeros": _leading_zeros,
    "compare": _compare, "select": _select, "clamp": _clamp, "convert": _convert, "bitcast-convert": _bits,
    "copy": lambda _, a: a[0],
}  # fmt: skip
"""Elementwise opcodes; they also take arguments with more dimensions."""

FUNCTIONS: dict[str, Function] = {
    **ELEMENT_FUNCTIONS, "broadcast": _broadcast, "iota": _iota, "reshape": _shaped, "bitcast": lambda i, a: None,
    "transpose": lambda i, a: a[0].transpose(i.attributes["dimensions"]), "slice": _slice, "pad": _pad,
    "concatenate": lambda i, a: np.concatenate(a, i.attributes["dimensions"][0]),
    "reverse": lambda i, a: np.flip(a[0], i.attributes["dimensions"]),
    "dynamic-slice": _dynamic_slice, "dynamic-update-slice": _dynamic_update_slice, "reduce": _reduce, "dot": _dot,
}  # fmt: skip
"""Every opcode whose value can be computed."""
