"""Cost of fusions: FLOPs of the body, and bytes read and written depending on how the body uses its parameters."""

from __future__ import annotations

from hlotext.analysis.communication import KINDS, chain_of, is_started
from hlotext.cost.op_cost import CalleeCost, CannotCountError, OpCost, rule
from hlotext.cost.rules.indexing import gather, scatter
from hlotext.cost.rules.touched import SELECTIVE, touched
from hlotext.cost.sizes import ShapeSizes, elements
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.aliasing import OutputToOperandAliasing
from hlotext.ir.values.shape import Shape


@rule("fusion")
def _fusion(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    callees = instruction.called_computations
    if not callees or not len(callees[0]):
        raise CannotCountError("its computation is not in the text")
    body = callees[0]
    constants = 0
    chained = []
    is_selective = False
    for inner in body:
        opcode = inner.opcode
        if opcode == "constant":
            if elements(inner.shape) > 1:
                constants += sizes.constant(inner.shape)
        elif opcode in KINDS and chain_of(inner) is not None:
            chained.append(inner)
        elif opcode in SELECTIVE:
            is_selective = True
    written = _written(instruction.shape, body.root, sizes)
    read = tuple([_read(parameter, sizes) for parameter in body.parameters])
    own: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    if not sizes.counts_touched:
        chained = []
    elif is_selective or _has_more(read, body.parameters, sizes):
        own = touched(instruction, body, sizes)
    if chained:
        own = _once(instruction, body, chained, *(own or (written, read)))
    if instruction.attributes.get("kind") == "kCustom":
        for inner in body:
            if inner.opcode in ("gather", "scatter"):
                alone = gather(inner, sizes) if inner.opcode == "gather" else scatter(inner, sizes)
                return alone._replace(touched=own)
    return OpCost(
        written=written,
        read=read,
        constants=constants,
        bodies=(body,),
        taken=CalleeCost.OPERATIONS,
        touched=own,
    )


def _has_more(read: tuple[int, ...], parameters: tuple[Instruction, ...], sizes: ShapeSizes) -> bool:
    """True if more is read of a parameter than there is of it: XLA counts some of its users apart."""
    return any(size > sizes.of(parameter.shape) for size, parameter in zip(read, parameters, strict=True))


def without_handed_on(instruction: Instruction, work: OpCost) -> OpCost:
    """Returns the cost of a fusion without data that it only passes on for a collective split over several fusions.

    The cost of other fusions is returned unchanged.
    """
    body = instruction.called_computations[0]
    chained = [inner for inner in body if inner.opcode in KINDS and chain_of(inner) is not None]
    if not chained:
        return work
    written, read = _once(instruction, body, chained, work.written, work.read)
    return work._replace(written=written, read=read)


def _once(
    instruction: Instruction,
    body: Computation,
    chained: list[Instruction],
    written: tuple[float, ...],
    read: tuple[float, ...],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Bytes of a fusion that carries out a part of collectives, each counted where it is begun.

    The TPU compiler hands a collective's operand, result and semaphores through the fusions that begin it, go on with it
    and end it: what a result shares with an operand is not written again, and what only the collective uses is read once.
    """
    going_on = {one for one in chained if not is_started(one)}
    root = body.root
    is_end = root.attributes.get("custom_call_target") in ("AsyncCollectiveStart", "AsyncCollectiveDone")
    sources = root.operands if root.opcode == "tuple" else (root,)
    config = instruction.attributes.get("output_to_operand_aliasing")
    aliases = config.aliases if isinstance(config, OutputToOperandAliasing) else ()
    shared = {alias.output_shape_index for alias in aliases}
    leaves = [index for index, _ in instruction.shape.leaves()] if instruction.shape is not None else []
    new = list(written)
    for place, index in enumerate(leaves[: len(new)]):
        source = root if is_end else sources[index[0]] if index and index[0] < len(sources) else sources[0]
        is_handed_on = index in shared and (is_end or source.opcode == "parameter")
        if is_handed_on or source in going_on:
            new[place] = 0
    carriers = {*going_on, root} if is_end or root.opcode == "tuple" else going_on
    fresh = [
        0 if all(user in carriers for user in parameter.users) else size
        for parameter, size in zip(body.parameters, read, strict=True)
    ]
    return tuple(new), tuple(fresh)


def _written(shape: Shape | None, root: Instruction, sizes: ShapeSizes) -> tuple[int, ...]:
    """Bytes of each array of the result; what is updated in place counts by its update."""
    if shape is None:
        return (sizes.of(None),)
    if root.opcode != "tuple":
        whole = sizes.leaves(shape)
        if root.opcode != "dynamic-update-slice":
            return whole
        return (sizes.operand(root.operands[1]), *whole[1:])
    found = list(sizes.leaves(shape))
    if len(found) == len(root.operands) == len(shape.tuple_shapes):
        for place, source in enumerate(root.operands):
            if source.opcode == "dynamic-update-slice":
                found[place] = sizes.operand(source.operands[1])
        return tuple(found)
    for place, (index, _) in enumerate(shape.leaves()):
        source = root.operands[index[0]] if len(index) == 1 and index[0] < len(root.operands) else root
        if source.opcode == "dynamic-update-slice":
            found[place] = sizes.operand(source.operands[1])
    return tuple(found)


def _read(parameter: Instruction, sizes: ShapeSizes) -> int:
    """Bytes that the body reads of a parameter, of a tuple by its elements (`FusionProcessOperandBytesRead`)."""
    shape = parameter.shape
    if shape is None or not shape.is_tuple:
        return _read_directly(parameter, sizes)
    _read_directly(parameter, sizes)
    return sum(_read_directly(_element(parameter, index), sizes) for index, _ in shape.leaves())


def _element(parameter: Instruction, index: tuple[int, ...]) -> Instruction:
    """The get-tuple-element of a leaf, or as near to it as there is one."""
    found = parameter
    for number in index:
        for user in found.users:
            if user.opcode == "get-tuple-element" and user.attributes.get("index") == number:
                found = user
                break
    return found


def _read_directly(value: Instruction, sizes: ShapeSizes) -> int:
    """Bytes read of a parameter or an element of one (`FusionParameterReadBytes`).

    Slices by what they take, broadcasts and reshapes the whole each, all others together the whole once.
    """
    total, is_shared_read = 0, False
    for user in value.users:
        opcode = user.opcode
        if opcode == "fusion":
            total += _read_by_nested(value, user, sizes)
        elif opcode == "slice" or (opcode == "dynamic-slice" and user.operands[0] is value):
            total += sizes.of(user.shape)
        elif opcode == "dynamic-update-slice" and user.operands[0] is value:
            continue
        elif opcode in ("broadcast", "reshape"):
            total += sizes.of(value.shape)
        elif not is_shared_read:
            is_shared_read = True
            total += sizes.of(value.shape)
    sizes.parameter_reads[value] = total
    return total


def _read_by_nested(value: Instruction, fusion: Instruction, sizes: ShapeSizes) -> int:
    """Bytes that a nested fusion reads, for each place where the value is an operand and each of its own users."""
    callees = fusion.called_computations
    if not callees or not len(callees[0]):
        return 0
    body: Computation = sizes.counted(callees[0])
    root, parameters = body.root, body.parameters
    total = 0
    for place, operand in enumerate(fusion.operands):
        if operand is not value or place >= len(parameters):
            continue
        is_simple = not root.operands or root.operands[0] is parameters[place]
        is_shared_read = False
        for user in fusion.users:
            opcode = user.opcode
            if is_simple and (
                opcode == "slice" or (opcode == "dynamic-slice" and user.operands[0] is fusion)
            ):
                total += sizes.of(user.shape)
            elif is_simple and opcode == "dynamic-update-slice" and user.operands[0] is fusion:
                continue
            elif not is_shared_read:
                is_shared_read = True
                as_index = is_simple and opcode in ("dynamic-slice", "dynamic-update-slice")
                total += (
                    sizes.of(fusion.shape) if as_index else sizes.parameter_reads.get(parameters[place], 0)
                )
    return total
