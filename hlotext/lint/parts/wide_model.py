"""Neural networks computed in f32 throughout: weights, activations and matmuls."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend, arrays_of, byte_text, fact, memory_space
from hlotext.analysis.census import census
from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.lint.helpers import is_of_factors, is_solvers, size_of
from hlotext.lint.parts.upcast_dot import FETCHING, argument_behind
from hlotext.lint.products import Multiplication, multiplications
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.training import has_backward_pass
from hlotext.lint.values import behind_views, elements_of

_LEAST_WEIGHTS = 2
"""Weights from which on matmuls with nonlinear functions between them are layers."""
_MOSTLY = 0.8
"""Part of all FLOPs that matmuls compute in a network: a simulation that contains one does most of its work elsewhere."""
_SAME_WEIGHT = FETCHING | {"convert"}
"""Opcodes behind which a weight is itself: the TPU compiler converts what a matmul reads."""
_NARROW = 16
_WIDE = 32
_MUCH = 0.05
"""Part of the step that takes less, from which on it is worth digits."""
_MATRIX = 2
_ROOTS = frozenset({"rsqrt", "sqrt"})
"""Opcodes of normalizations and optimizers."""
_NONLINEAR = (traits.TRANSCENDENTAL - _ROOTS) | {"maximum"}
"""Opcodes of activation functions."""
_NESTED = "jvp(jvp("
"""Part of an op_name in derivatives of derivatives, as of networks that solve differential equations."""


@attrs.frozen(eq=False)
class _Network:
    """The matmuls of a network, with the arguments that are its weights."""

    products: tuple[Multiplication, ...]
    weights: frozenset[Instruction]
    is_trained: bool


class WideModel(Rule):
    is_proved = False  # whether the digits are needed is for the author to say
    needs_optimized = True
    # The CPU compiler computes with 16-bit elements in 32 bits.
    backends = frozenset({Backend.GPU, Backend.TPU})

    def check_module(self, context: Context) -> Iterator[Report]:
        network = _network(context)
        if network is None:  # the module is not a network that computes in f32 throughout
            return
        halved = _Halved(network, context)
        saved = {
            time.instruction: halved.seconds(time.instruction)
            for time in context.prices.estimate.instructions
        }
        total = sum(saved.values())
        first = max(
            network.products,
            key=lambda one: (context.flops(one.dot), saved.get(one.whole, 0.0)),
        )
        if total < _MUCH * context.prices.step:  # the step would hardly be faster
            return
        weights = pluralize(len(network.weights), "argument")
        size = byte_text(sum(size_of(weight.shape) for weight in network.weights))
        is_faster = context.prices.chip.rates.peak("tf32") is not None
        cast = "in the loss" if network.is_trained else "once, outside of the step,"
        kept = "; the master weights, the optimizer and the loss stay in f32" if network.is_trained else ""
        yield Report(
            first.dot,
            # Not every weight is followed through loops that keep it in fast memory.
            f"a network computes in f32 throughout: its weights, at least {size} in {weights}, and "
            f"the operands and results of all its {len(network.products):,} matmuls and convolutions",
            f"cast weights and inputs {cast} to bf16 (w.astype(jnp.bfloat16)), and accumulate in f32{kept}: half the "
            f"bytes{' and twice the matmul rate' if is_faster else ''}, with values rounded to 8 bits of mantissa",
            seconds=total,
            # Between a matmul and the softmax of its result the TPU compiler keeps f32, as in attention.
            is_at_most=context.backend is Backend.TPU,
            spares=halved.shares(),
            cause="network",
            covers=frozenset() if network.is_trained else network.weights,
        )


def _network(context: Context) -> _Network | None:
    """The network that a module is; None for modules that are none, or whose author chose types."""
    every = multiplications(context)
    if len(every) < _LEAST_WEIGHTS or not _is_f32_throughout(context.module) or is_numerical(context.module):
        return None
    if any(map(_is_precise, context.census.instructions)):
        return None
    times = context.prices.estimate.instructions
    if _MOSTLY * sum(time.least.flops * time.runs for time in times) > sum(
        context.flops(one.dot) for one in every
    ):
        return None
    is_trained = has_backward_pass(context)
    found = dict.fromkeys(weight for one in every for weight in _weights_of(one, is_trained))
    weights = frozenset(w for w in found if (w in _changed(context)) is is_trained)
    return _Network(every, weights, is_trained) if len(weights) >= _LEAST_WEIGHTS else None


def _weights_of(product: Multiplication, is_trained: bool) -> Iterator[Instruction]:
    """The f32 arguments among a matmul's operands. Data may be an argument too: a training step does not change it, and in
    other programs weights are what is multiplied by computed values."""
    arguments = [argument_behind(operand, _SAME_WEIGHT) for operand in product.operands]
    if is_trained or not all(arguments):
        yield from (one for one in arguments if one is not None and _is_f32(one.shape))


def _changed(context: Context) -> frozenset[Instruction]:
    """The arguments of which a result may be the new value, or the gradient, as those of a training step's weights are."""
    return _changed_arguments(context.module)


@fact
def _changed_arguments(module: Module) -> frozenset[Instruction]:
    results = {(array.dimensions, array.element_type) for _, array in arrays_of(module.entry.root.shape)}
    arrays = (
        (one, one.shape) for one in module.entry.parameters if one.shape is not None and one.shape.is_array
    )
    return frozenset(one for one, shape in arrays if (shape.dimensions, shape.element_type) in results)


@fact
def _is_f32_throughout(module: Module) -> bool:
    """True if the program has no floating-point type but f32: the TPU compiler itself narrows operands of matmuls."""
    is_jax = False
    for one in census(module).instructions:
        name = one.metadata.op_name if one.metadata is not None else ""
        is_jax = is_jax or name.startswith(("jit(", "pjit("))
        kinds = {array.element_type for _, array in arrays_of(one.shape)}
        if any(kind.is_complex or (kind.is_floating and kind.bits > _WIDE) for kind in kinds):
            return False
        is_chosen = one.opcode == "parameter" and one.computation is module.entry
        is_chosen = is_chosen or (one.is_root and one.computation is module.entry)
        is_chosen = is_chosen or name.endswith("convert_element_type")
        if is_chosen and any(kind.is_floating and kind.bits <= _NARROW for kind in kinds):
            return False
    return is_jax


@fact
def is_numerical(module: Module) -> bool:
    """True if a program solves equations or transforms, differentiates twice, or has no activation functions."""
    found, is_nonlinear = census(module), False
    if any(found.by_opcode.get(opcode) for opcode in traits.LINEAR_ALGEBRA):
        return True
    for one in found.instructions:
        is_matrix = one.shape is not None and one.shape.is_array and one.shape.rank >= _MATRIX
        is_nonlinear = is_nonlinear or (is_matrix and one.opcode in _NONLINEAR)
        name = one.metadata.op_name if one.metadata is not None else ""
        if _NESTED in name or is_of_factors(one) or is_solvers(one):
            return True
    return not is_nonlinear


def _is_precise(one: Instruction) -> bool:
    """True for a matmul of which the program asks for precision."""
    return any(str(each) != "default" for each in one.attributes.get("operand_precision", ()))


def _is_f32(shape: Shape | None) -> bool:
    return shape is not None and shape.is_array and shape.element_type.name == "f32"


class _Halved:
    """The f32 arrays that would be bf16: of a training step all but those as large as an array that it updates, which are its
    gradient, its moments and itself."""

    def __init__(self, network: _Network, context: Context) -> None:
        self._network = network
        self._context = context
        self._arguments = frozenset(context.arguments)
        # Tables whose rows are looked up, and moments, are updated as weights are, though no matmul reads them.
        state = _changed(context) if network.is_trained else frozenset()
        self._sizes = {elements_of(one.shape) for one in state | network.weights}

    def _is_halved(self, one: Instruction, array: Shape) -> bool:
        if not _is_f32(array) or array.rank < _MATRIX or memory_space(array) != 0:
            return False
        if one in self._arguments:
            return not self._network.is_trained and one in self._network.weights
        return not self._network.is_trained or elements_of(array) not in self._sizes

    def _bytes(self, one: Instruction) -> tuple[float, float]:
        """Bytes of the arrays that an instruction reads and writes, and those that would be gone."""
        whole = less = 0.0
        for made in {behind_views(operand) for operand in one.operands} | {one}:
            for _, array in arrays_of(made.shape):
                if memory_space(array) == 0:
                    size = size_of(array)
                    whole += size
                    less += size / 2 if self._is_halved(made, array) else 0.0
        return whole, less

    def seconds(self, one: Instruction) -> float:
        """Seconds of all runs that an instruction takes less."""
        prices = self._context.prices
        least = prices.own_least[one]
        whole, less = self._bytes(one)
        moves = (least.memory or 0.0) * (1 - less / whole if whole else 1.0)
        compute = least.compute or 0.0
        wide, narrow = (prices.chip.rates.peak(kind) for kind in ("tf32", "bf16"))
        if wide is not None and narrow is not None:
            compute -= least.products.get("tf32", 0.0) * max(0.0, 1 / wide.value - 1 / narrow.value)
        after = max(compute, moves, least.host or 0.0)
        return (
            prices.seconds(one) * max(0.0, 1 - (after + least.launch) / least.seconds)
            if least.seconds
            else 0.0
        )

    def shares(self) -> dict[object, float]:
        """Half of each of them, for `Context.saved_peak`."""
        return {
            (one, index): 0.5
            for step in self._context.graph.sequential_instructions()
            for one in (step, step.async_wrapped_instruction)
            if one is not None
            for index, array in arrays_of(one.shape)
            if self._is_halved(one, array)
        }
