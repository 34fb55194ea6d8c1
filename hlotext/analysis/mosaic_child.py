"""The process that reads Mosaic kernels: a line of base64 in, a line of JSON out. It may die of a body.

Started by path, so that nothing of hlotext is imported: `python mosaic_child.py`. Kernels are MLIR of the dialects that
jaxlib brings, as bytecode in Mosaic's stable form or, of XLA's own kernels, as text.
"""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from typing import Any

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _tpu_ext

_DYNAMIC = -(2**63)
_LOOPS_OF_UNKNOWN_ROUNDS = frozenset({"scf.while", "scf.parallel", "scf.forall"})
_BRANCHES = frozenset({"scf.if", "scf.index_switch"})
_PRODUCTS = frozenset({"tpu.matmul", "vector.contract"})
_FREE = frozenset({"arith.bitcast", "arith.constant"})
_NOT_TRANSCENDENTAL = frozenset(
    f"math.{name}"
    for name in ("absf", "absi", "ceil", "copysign", "floor", "fma", "round", "roundeven", "trunc")
)
_REDUCTIONS = frozenset({"vector.multi_reduction", "vector.reduction", "tpu.all_reduce"})


class Counted:
    """Operation counts of a kernel in the units of `hlotext.cost`, with matrix products separate, by kind of type."""

    def __init__(self) -> None:
        self.products: dict[str, int] = {}
        self.flops = 0
        self.transcendentals = 0
        self.is_at_most = False
        self.open: list[str] = []

    def region(self, region: Any, times: int, in_branch: bool) -> None:
        """Adds the operations of every block of a region, executed `times` times."""
        for block in region:
            for operation in block:
                self.operation(operation.operation, times, in_branch)

    def operation(self, operation: Any, times: int, in_branch: bool) -> None:
        """Adds an operation, including its nested regions, executed `times` times."""
        name = operation.name
        if name in _BRANCHES:
            in_branch = True
        elif name == "scf.for":
            rounds = rounds_of(operation)
            if rounds is None:
                self.open.append("a loop in its kernel has an unknown trip count")
            times *= 1 if rounds is None else rounds
        elif name in _LOOPS_OF_UNKNOWN_ROUNDS:
            self.open.append("a loop in its kernel has an unknown trip count")
        elif name == "func.call":
            self.open.append("its kernel calls a function")
        for region in operation.regions:
            self.region(region, times, in_branch)
        if self._count(operation, name, times) and in_branch:
            self.is_at_most = True

    def _count(self, operation: Any, name: str, times: int) -> bool:
        if name in _PRODUCTS:
            flops = product_flops(operation)
            if flops is None:
                self.open.append(f"the size of a {name} in its kernel is unknown")
                return False
            kind = kind_of(operation)
            self.products[kind] = self.products.get(kind, 0) + times * flops
            return True
        results = operation.results
        if not len(results) or name in _FREE:
            return False
        if name.startswith("arith."):
            size = elements(results[0].type)
            self.flops += times * size
        elif name.startswith("math."):
            size = elements(results[0].type)
            if name in _NOT_TRANSCENDENTAL:
                self.flops += times * size
            else:
                self.transcendentals += times * size
        elif name in _REDUCTIONS:
            size = elements(operation.operands[0].type)
            self.flops += times * size
        else:
            return False
        return size > 0


def sizes_of(type_: Any) -> list[int] | None:
    """Returns the dimension sizes of a vector type, or None for scalars and other types."""
    try:
        return list(ir.VectorType(type_).shape)
    except (TypeError, ValueError):
        return None


def elements(type_: Any) -> int:
    """Returns the number of elements of a vector type; 0 for other types."""
    sizes = sizes_of(type_)
    return math.prod(sizes) if sizes is not None else 0


def product_flops(operation: Any) -> int | None:
    """Returns the FLOPs, `2 * M * N * K`, of a vector matrix product, or None if unknown."""
    lhs, rhs = (sizes_of(operation.operands[number].type) for number in (0, 1))
    result = sizes_of(operation.results[0].type)
    if lhs is None or rhs is None or not result:
        return None
    attributes = operation.attributes
    if "dimension_numbers" in attributes:
        contracted = re.search(r"<\[([\d, ]*)\]", str(attributes["dimension_numbers"]))
        if contracted is not None:
            summed = math.prod(lhs[int(one)] for one in contracted[1].split(",") if one.strip())
            return 2 * math.prod(result) * summed
    if len(result) != 2:
        return None
    # (M * K) * (K * N) / (M * N)
    return 2 * math.prod(result) * math.isqrt(math.prod(lhs) * math.prod(rhs) // math.prod(result))


def kind_of(operation: Any) -> str:
    """Returns the kind of type of a matrix product, for f32 by its precision: a key of
    `hlotext.analysis.chips.Rates.peaks`.
    """
    types = [str(ir.VectorType(operation.operands[number].type).element_type) for number in (0, 1)]
    if "f32" in types:
        attributes = operation.attributes
        precision = str(attributes["precision"]) if "precision" in attributes else ""
        return "f32" if "fp32" in precision else "tf32"
    if all(re.fullmatch(r"[su]?i[1248]", one) for one in types):
        return "int8"
    return "fp8" if all(one.startswith("f8") for one in types) else "bf16"


def rounds_of(loop: Any) -> int | None:
    """Returns the trip count of a loop with constant bounds, or None for other loops."""
    bounds = [constant(loop.operands[number]) for number in range(3)]
    if None in bounds:
        return None
    first, end, step = (int(one) for one in bounds if one is not None)
    return max(0, -(-(end - first) // step)) if step > 0 else None


def constant(value: Any) -> int | None:
    """Returns the value of a constant, or None if it is not constant."""
    owner = value.owner
    operation = getattr(owner, "operation", owner)
    if getattr(operation, "name", None) != "arith.constant":
        return None
    try:
        return int(ir.IntegerAttr(operation.attributes["value"]).value)
    except (TypeError, ValueError):
        return None


def module_of(body: bytes) -> Any:
    """Parses a kernel, in Mosaic's stable dialects if this jaxlib does not support its version."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    _tpu_ext.register_dialect(context)
    context.load_all_available_dialects()
    with context:
        module = ir.Module.parse(body)
        if any(name.startswith("stable_mosaic") for name in attribute_names(module.operation)):
            passmanager.PassManager.parse("builtin.module(mosaic-serde{serialize=false})").run(
                module.operation
            )
    return module


def attribute_names(operation: Any) -> list[str]:
    """Returns the names of an operation's attributes, for all releases of the MLIR bindings."""
    attributes = operation.attributes
    found = (attributes[number] for number in range(len(attributes)))
    return [getattr(one, "name", "") for one in found]


def read(body: bytes) -> dict[str, Any]:
    """Returns the text of a kernel and the operation counts of one call, as JSON-serializable values.

    Raises ValueError for an empty body.
    """
    if not body:
        raise ValueError("it is empty")
    module = module_of(body)
    counted = Counted()
    for operation in module.body:
        operation = operation.operation
        attributes = operation.attributes
        if operation.name != "func.func":
            continue
        times = 1
        if "iteration_bounds" in attributes:
            bounds = list(ir.DenseI64ArrayAttr(attributes["iteration_bounds"]))
            if _DYNAMIC in bounds:
                counted.open.append("the number of its kernel's iterations is known only at run time")
            times = math.prod(max(0, one) for one in bounds if one != _DYNAMIC)
        for region in operation.regions:
            counted.region(region, times, False)
    return {
        "text": str(module),
        "products": counted.products,
        "flops": counted.flops,
        "transcendentals": counted.transcendentals,
        "is_at_most": counted.is_at_most,
        "open": counted.open[0] if counted.open else "",
    }


def main() -> None:
    """Reads encoded kernels from standard input, one per line, and prints one line of JSON for each."""
    for line in sys.stdin:
        try:
            answer = read(base64.b64decode(line, validate=False))
        except Exception as error:
            answer = {"error": str(error).strip() or type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
