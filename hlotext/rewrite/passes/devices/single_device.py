"""A module for one device: collectives become what they are for a group of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import attrs

from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import NATIVE_ASYNC
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.window import SliceDimension, SliceDimensions
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.kit.limits import PassLimitError
from hlotext.rewrite.passes.base import BrokenModuleError, Pass, PassResult

_COLLECTIVES = traits.COLLECTIVE_KINDS - {"collective-reduce", "ragged-all-to-all"}


@attrs.frozen
class SingleDevice(Pass):
    """Replaces collectives with local operations of the same shapes, so that the module runs on one device.

    An all-reduce, all-to-all, permute or broadcast becomes its operand; an all-gather repeats its operand, a reduce-scatter
    takes the first slice; partition-id and replica-id become 0. Asynchronous collectives are treated alike, with opcodes of
    their own or wrapped: the value replaces the done, and control dependencies of the start are passed to the successors of
    the done. Results differ from those on many devices: this is for running one device's program alone. Send and recv are
    kept, as are permutes into part of a buffer and ragged all-to-alls.
    """

    name: ClassVar[str] = "single-device"
    summary: ClassVar[str] = (
        "Replaces collectives with local operations, so that one device's program runs alone."
    )
    preserves_results: ClassVar[bool] = False

    def run(self, module: Module) -> PassResult:
        counts: Counter[str] = Counter()
        for start in [i for i in module.instructions() if ROLES.get(i.opcode) == "start"]:
            counts[start.opcode] += _replace_pair(start)
        for instruction in tuple(module.instructions()):
            opcode = instruction.opcode
            if opcode in ("partition-id", "replica-id"):
                instruction.replace_with(Builder.before(instruction).constant(0, "u32"))
            elif _is_replaced(opcode, instruction):
                instruction.replace_with(_alone(instruction, instruction.operands))
            else:
                continue
            counts[opcode] += 1
        for name in ("replica_count", "num_partitions"):
            if module.attributes.pop(name, 1) != 1:
                counts[name] = 1
        return PassResult.of(counts)


def _is_replaced(opcode: str, i: Instruction) -> bool:
    return opcode in _COLLECTIVES and "slice_sizes" not in i.attributes


def _replace_pair(start: Instruction) -> bool:
    """Puts a value in the place of an asynchronous collective; whether it was one."""
    *begun, done = start.async_chain
    operands = [*start.operands, *(o for update in begun[1:] for o in update.operands[1:])]
    body = None
    if start.opcode == "async-start":
        (body,) = start.called_computations
        root = body.root
        if not _is_replaced(root.opcode, root) or len(body) != 1 + len(body.parameters):
            return False
        operands = [operands[parameter.parameter_number or 0] for parameter in root.operands]
    elif not _is_replaced(NATIVE_ASYNC.get(start.opcode, ""), start):
        return False
    if ROLES[done.opcode] != "done":
        return False
    done.replace_all_uses_with(_alone(done, operands))
    chain = [*begun, done]
    _hand_on_control(chain)
    computation = start.computation
    assert computation is not None and computation.module is not None  # noqa: PT018 - narrows both for mypy
    computation.remove_all(chain)
    if body is not None and not body.callers:
        computation.module.remove(body)
    return True


def _hand_on_control(chain: list[Instruction]) -> None:
    """Lets what waits for a part of a chain wait for what its parts wait for."""
    waits = [p for part in chain for p in part.control_predecessors if p not in chain]
    for successor in dict.fromkeys(s for part in chain for s in part.control_successors if s not in chain):
        own = [p for p in successor.control_predecessors if p not in chain]
        successor.attributes["control-predecessors"] = tuple(dict.fromkeys((*own, *waits)))


def _alone(i: Instruction, operands: Sequence[Instruction]) -> Instruction:
    """Result of a collective on one device, in the shape of an instruction and inserted before it."""
    b = Builder.before(i)
    assert i.shape is not None
    if i.shape.is_tuple:
        pairs = zip(operands, i.shape.tuple_shapes, strict=True)
        return b.tuple(*(_fitted(b, operand, shape) for operand, shape in pairs))
    return _fitted(b, operands[0], i.shape)


def _fitted(b: Builder, value: Instruction, shape: Shape) -> Instruction:
    """A value repeated or cut to a shape, dimension by dimension."""
    wanted = shape.dimensions
    assert value.shape is not None
    for d, size in enumerate(wanted):
        given = value.shape
        assert given is not None
        have = given.dimensions[d]
        if min(have, size) < 0:
            unknown = given if have < 0 else shape
            raise BrokenModuleError(
                f"single-device cannot adapt {value.name}: sizes of {unknown} are unknown"
            )
        if size > have:
            if size // have > _MOST_PARTS:
                raise PassLimitError(
                    f"single-device would concatenate {value.name} {size // have:,} times, more than {_MOST_PARTS:,}"
                )
            parts = [value] * (size // have)
            value = b.op("concatenate", parts, shape=_with_size(given, d, size), dimensions=(d,))
        elif size < have:
            part = _with_size(given, d, size)
            whole = SliceDimensions(tuple(SliceDimension(0, limit) for limit in part.dimensions))
            value = b.op("slice", (value,), shape=part, slice=whole)
    if value.shape is not None and str(value.shape) != str(shape):
        value = b.op("copy", (value,), shape=shape)
    return value


_MOST_PARTS = 1 << 16
"""Devices whose parts are put together: more than one compilation is for."""


def _with_size(shape: Shape, dimension: int, size: int) -> Shape:
    """The shape, layout included, with another size in one dimension."""
    sizes = shape.dimensions
    return attrs.evolve(shape, dimensions=(*sizes[:dimension], size, *sizes[dimension + 1 :]))
