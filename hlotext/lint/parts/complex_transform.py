"""Fourier transforms of real data in complex numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import fusions_around, only_does, size_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.selectors import is_zero
from hlotext.lint.values import VIEWS, Value, behind_views, consumers, source
from hlotext.lint.wording import sizes

_HALF = 0.5
"""Part of the work and the bytes that a transform of real data takes."""
_MOST_STEPS = 32
_PLANE = 2


class ComplexTransform(Rule):
    needs_optimized = True
    needs_any = frozenset({"fft"})

    def check_module(self, context: Context) -> Iterator[Report]:
        counted: set[Instruction] = set()
        for instruction in context.census.by_opcode.get("fft", ()):
            kind = str(instruction.attributes.get("fft_type"))
            value = Value(instruction, fusions_around(instruction, context))
            if kind == "FFT" and _was_real(value):
                does, around = "transforms real data", _before(instruction, context)
            elif kind == "IFFT" and _is_then_real(value):
                does = "transforms the spectrum of real data, and only its real part is used, but it runs"
                around = _around_inverse(instruction, context)
            else:  # it is not a complex transform of real values
                continue
            fewer = {one: seconds for one, seconds in around if one not in counted}
            counted.update(fewer)
            loop = context.loop_around(instruction.computation)
            yield Report(
                instruction,
                f"an {kind} of {sizes(instruction.shape)} {does} in complex arithmetic",
                f"use jnp.fft.{_real_transforms(instruction)}: half the work and half the bytes, since one half of the "
                "spectrum mirrors the other",
                seconds=context.prices.seconds(instruction) * _HALF + math.fsum(fewer.values()),
                cause=f"transforms of {loop.name if loop is not None else 'the program'}",  # one edit changes them all
            )


def _real_transforms(transform: Instruction) -> str:
    """The functions of JAX for real data, of as many axes as are transformed; the others are a batch."""
    axes = len(transform.attributes.get("fft_length", ()))
    if axes == 1:
        return "rfft and irfft along the same axis"
    return "rfft2 and irfft2" if axes == _PLANE else "rfftn and irfftn over the same axes"


def _before(transform: Instruction, context: Context) -> Iterator[tuple[Instruction, float]]:
    """The operation that writes real data as complex numbers, with the seconds that it takes longer for them."""
    made = behind_views(transform.operands[0])
    if only_does(made, "convert", context) or only_does(made, "complex", context):
        yield made, context.prices.seconds(made)
    elif made.opcode == "fusion":
        yield made, _half_of(made, made, context)


def _around_inverse(transform: Instruction, context: Context) -> Iterator[tuple[Instruction, float]]:
    """Operations on whole spectra before a transform back, and those that take the real part behind it, likewise."""
    one = behind_views(transform.operands[0])
    for _ in range(_MOST_STEPS):
        if one.opcode not in ELEMENTWISE | {"fusion"} or one.shape is None or not one.shape.is_array:
            break
        yield one, context.prices.seconds(one) * _HALF
        inner = [
            behind_views(operand) for operand in one.operands if size_of(operand.shape) == size_of(one.shape)
        ]
        one = next((each for each in inner if each.opcode != "fft"), one)
        if one not in inner:
            break
    for user in transform.users:
        if only_does(user, "real", context):
            yield user, context.prices.seconds(user)
        elif user.opcode == "fusion":
            yield user, _half_of(transform, user, context)


def _half_of(array: Instruction, user: Instruction, context: Context) -> float:
    """Seconds that an operation takes for half of an array."""
    seconds = context.prices.reading(size_of(array.shape) * _HALF * context.runs(user))
    return min(seconds, context.prices.seconds(user) * _HALF)


def _was_real(transform: Value) -> bool:
    """True if all imaginary parts are zero before a transform."""
    pending = [transform.operands()[0]]
    for _ in range(_MOST_STEPS):
        if not pending:
            return True
        made = source(pending.pop(), _PLACES)
        one, operands = made.instruction, made.operands()
        if not any(_is_complex(operand.instruction) for operand in operands):
            if not _begins_real(one, operands):
                return False
        elif one.opcode in _JOINS:
            pending += operands
        elif one.opcode in _ARITHMETIC:
            pending += [operand for operand in operands if _is_complex(operand.instruction)]
        else:
            return False
    return False


def _begins_real(one: Instruction, operands: list[Value]) -> bool:
    """True if an operation makes complex numbers of real ones, or is a constant without imaginary parts."""
    if one.opcode == "complex":
        return is_zero(operands[1])
    if one.opcode == "constant":
        return str(one.literal).replace(" ", "").endswith((",0)", ",-0)"))
    return one.opcode == "convert"


def _is_complex(one: Instruction) -> bool:
    return one.shape is None or not one.shape.is_array or one.shape.element_type.is_complex


def _is_then_real(transform: Value) -> bool:
    """True if only real parts of the result are used, possibly scaled, and its spectrum is that of real data."""
    if transform.instruction.is_root and not transform.fusions:
        return False
    users = {user.instruction.opcode for user, _ in consumers(transform, _PLACES | {"slice"})}
    if users != {"real"}:
        return False
    pending, seen = [transform.operands()[0]], set[Instruction]()
    for _ in range(_MOST_STEPS):
        if not pending:
            break
        made = source(pending.pop(0), _PLACES)
        one = made.instruction
        if one in seen:
            continue
        seen.add(one)
        if one.opcode == "fft":
            return str(one.attributes.get("fft_type")) == "FFT" and _was_real(made)
        if one.opcode in _ARITHMETIC and (one.opcode != "convert" or _is_complex(one.operands[0])):
            pending += made.operands()
    return False


_PLACES = VIEWS | {"transpose"}
_ARITHMETIC = (ELEMENTWISE - traits.TRANSCENDENTAL) | traits.SLICES | traits.REPEATS_ELEMENTS
"""Opcodes that make real numbers of real ones, and spectra of real data of such spectra."""
_JOINS = frozenset({"concatenate", "pad"})
"""Opcodes that put real data beside other values."""
