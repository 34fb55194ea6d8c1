"""CPU fusion's queries of instructions: tables and short functions after XLA's."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext import layout as layouts
from hlotext.compiler.fusion_graph import Member, Node
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.memory.elementwise import Elementwise
from hlotext.memory.in_place import InPlacePairs
from hlotext.memory.value_sets import shape_of

ENTERED = traits.RUNS_CALLEE
"""Callers whose computations run like the entry; all others' run element by element (`GetInstructionCallContext`)."""

MOVES = frozenset(
    {
        "bitcast", "broadcast", "concatenate", "dynamic-slice", "dynamic-update-slice", "gather", "iota", "pad", "reduce",
        "reshape", "reverse", "slice", "transpose",
    }
)  # fmt: skip
"""Opcodes allowed in a loop fusion besides elementwise operations (`CanBeLoopFused`)."""

_CHEAP = frozenset(
    {
        "add", "and", "bitcast", "bitcast-convert", "broadcast", "ceil", "clamp", "count-leading-zeros", "compare",
        "complex", "concatenate", "constant", "copy", "copy-done", "copy-start", "dynamic-reshape", "dynamic-slice",
        "dynamic-update-slice", "floor", "get-tuple-element", "imag", "infeed", "iota", "is-finite", "maximum", "minimum",
        "multiply", "mulhi", "negate", "not", "opt-barrier", "or", "outfeed", "pad", "partition-id",
        "popcnt", "real", "reduce-precision", "replica-id", "reshape", "reverse", "round-nearest-afz",
        "round-nearest-even", "select", "shift-left", "shift-right-arithmetic", "shift-right-logical", "slice",
        "stochastic-convert", "subtract", "transpose", "tuple", "xor",
    }
)  # fmt: skip
"""Opcodes that are always cheap (`CpuInstructionFusion::IsExpensive`); what no row names is expensive."""

_CHEAP_IF_REAL = frozenset({"abs", "sign", "cosine", "sine", "tan"})
"""Opcodes that are cheap but for complex numbers."""

UNSUPPORTED_INSIDE = frozenset(
    {
        "add-dependency", "after-all", "all-gather", "all-gather-done", "all-gather-start", "all-reduce",
        "all-reduce-done", "all-reduce-start", "all-to-all", "async-done", "async-start", "async-update",
        "batch-norm-grad", "batch-norm-inference", "batch-norm-training", "cholesky", "collective-permute",
        "collective-permute-done", "collective-permute-start", "copy-done", "copy-start", "custom-call", "domain",
        "dynamic-reshape", "fft", "fusion", "get-dimension-size", "opt-barrier", "infeed", "outfeed", "partition-id",
        "recv", "recv-done", "reduce-scatter", "replica-id", "rng", "rng-bit-generator", "rng-get-and-update-state",
        "select-and-scatter", "send", "send-done", "set-dimension-size", "sort", "topk", "triangular-solve", "while",
        "conditional", "stochastic-convert", "call",
    }
)  # fmt: skip
"""Opcodes that the emitter cannot write into a fusion, so that what they call may hold fusions of its own
(`IsSupportedElementalOp`); scatter is none of them, see `BlockSubcomputationFusion`."""


def is_effective_scalar(shape: Shape) -> bool:
    """Returns True if an array has a single element (`ShapeUtil::IsEffectiveScalar`)."""
    return shape.is_array and all(size == 1 for size in shape.dimensions)


def is_expensive(i: Instruction) -> bool:
    """Returns True if an instruction is too expensive to compute twice (`CpuInstructionFusion::IsExpensive`)."""
    opcode, shape = i.opcode, shape_of(i)
    if opcode in _CHEAP:
        return False
    if opcode in _CHEAP_IF_REAL:
        return shape.is_array and shape.element_type.is_complex
    if opcode == "convert" and i.operands:
        source = shape_of(i.operands[0])
        return str(shape.element_type) == "bf16" and str(source.element_type) == "f32"
    if opcode in ("divide", "remainder"):
        return not (shape.is_array and shape.element_type.is_integral) or not _is_one_constant(i.operands[0])
    return True


def _is_one_constant(i: Instruction) -> bool:
    """An effective scalar constant, or a broadcast of one. XLA looks at the dividend here, not at the divisor."""
    if i.opcode == "broadcast":
        i = i.operands[0]
    return i.opcode == "constant" and is_effective_scalar(shape_of(i))


def is_loop_fusible(node: Node, elementwise: Elementwise) -> bool:
    """Returns True if a node may be in a loop fusion (`CanBeLoopFused`)."""
    if node.body is not None:
        return all(elementwise.everywhere(member.origin) for member in node.body.members)
    return node.opcode in MOVES or elementwise.everywhere(node.origin)


def is_vector_dot(node: Node) -> bool:
    """Returns True for a real dot without batch whose result has rank 0 or 1 (`IsNonComplexNonBatchedMatrixVectorDot`)."""
    if node.opcode != "dot" or node.body is not None:
        return False
    shape = node.shape
    batch = node.origin.attributes.get("lhs_batch_dims", ())
    return not shape.element_type.is_complex and shape.rank <= 1 and not batch


def is_minor_concatenate(i: Instruction) -> bool:
    """Returns True for a concatenate along a long minor dimension, which would branch in the innermost loop."""
    shape = shape_of(i)
    if shape.rank <= 1:
        return False
    along = i.attributes["dimensions"][0]
    order = shape.layout.minor_to_major if shape.layout is not None else tuple(reversed(range(shape.rank)))
    return bool(along == order[0] and shape.dimensions[along] >= 128)


def element_bytes(shape: Shape) -> int:
    """Returns the bytes of an array's elements without padding (`ShapeUtil::ByteSizeOfElements`)."""
    return layouts.unpadded_bytes(shape)


# ---- what reads an element more than once


def reused_operands(i: Instruction, elementwise: Elementwise) -> set[Instruction]:
    """Returns the operands whose elements an instruction reads more than once
    (`HloInstruction::ReusesOperandElements`).
    """
    return {operand for number, operand in enumerate(i.operands) if _reuses(i, number, elementwise)}


def _reuses(i: Instruction, number: int, elementwise: Elementwise) -> bool:
    match i.opcode:
        case "bitcast" | "concatenate" | "reshape" | "reverse" | "slice" | "transpose" | "gather":
            return False
        case "pad":
            return number > 0
        case "reduce":
            return number >= len(i.operands) // 2
        case "dot":
            other = i.operands[1 - number] if number < 2 else None
            is_vector = shape_of(i).rank <= 1 and other is not None and shape_of(other).rank <= 1
            return not is_vector
        case "dynamic-update-slice":
            return number > 1
    return not elementwise.everywhere(i)


# ---- operations in place


def in_place_conflict(producer: Node, consumer: Node, elementwise: Elementwise) -> str | None:
    """Returns why a producer that reads what a consumer overwrites cannot be fused, or None (`ShouldFuseInPlaceOp`)."""
    body = consumer.body
    root: Node | Member = body.root if body is not None else consumer
    for target in _overwritten(consumer):
        if body is None and consumer.own.count(target) > 1:
            return f"{consumer.name} overwrites {target.name} and reads it again"
        if target is not producer and target not in producer.own:
            continue
        other = _other_than_elementwise(producer, elementwise)
        if not other:
            if body is None or not _read_out_of_order(consumer, producer, root, elementwise):
                return None
            return f"{consumer.name} reads {producer.name} out of order while it overwrites {target.name}"
        updates = _updates(consumer)
        if not updates:
            return None
        if len(updates) > 1:
            return f"{consumer.name} contains several in-place updates"
        return _index_conflict(producer, consumer, other[0], updates[0], elementwise)
    return None


def _overwritten(consumer: Node) -> Iterator[Node]:
    """The operands that an instruction writes over (`AliasInfo::GetInPlaceInputOutputPairs`)."""
    if consumer.body is None:
        for pair in InPlacePairs().of(consumer.origin):
            yield consumer.own[pair.operand_number]
        return
    for leaf in _leaves(consumer.body.root):
        source: Member | Node = leaf
        while isinstance(source, Member) and source.opcode == "bitcast":
            source = source.operands[0]
        if isinstance(source, Member) and source.opcode != "fusion":
            for pair in InPlacePairs().of(source.origin):
                target = source.operands[pair.operand_number]
                while isinstance(target, Member) and target.opcode == "bitcast":
                    target = target.operands[0]
                if isinstance(target, Node):
                    yield target


def _leaves(root: Member) -> Iterator[Member]:
    if root.opcode != "tuple":
        yield root
    else:
        yield from (o for o in root.operands if isinstance(o, Member))


def _is_other(opcode: str, origin: Instruction, elementwise: Elementwise) -> bool:
    return opcode not in ("fusion", "bitcast", "parameter") and not elementwise.everywhere(origin)


def _other_than_elementwise(producer: Node, elementwise: Elementwise) -> list[Instruction]:
    """The producer, unless it is elementwise. Fusions are never producers here."""
    return [producer.origin] if _is_other(producer.opcode, producer.origin, elementwise) else []


def _updates(consumer: Node) -> list[Node | Member]:
    if consumer.body is None:
        return [consumer] if consumer.opcode == "dynamic-update-slice" else []
    return [member for member in consumer.body.members if member.opcode == "dynamic-update-slice"]


def _read_out_of_order(consumer: Node, producer: Node, root: Node | Member, elementwise: Elementwise) -> bool:
    """True if anything but the root that is not elementwise depends on what a producer gives."""
    return any(
        member is not root and _is_other(member.opcode, member.origin, elementwise)
        for member in _reached(consumer, producer)
    )


def _reached(consumer: Node, producer: Node) -> Iterator[Member]:
    """The members that depend on an operand."""
    assert consumer.body is not None
    pending = list(consumer.body.readers.get(producer, ()))
    seen = set(pending)
    while pending:
        member = pending.pop()
        yield member
        for user in member.users:
            if user not in seen:
                seen.add(user)
                pending.append(user)


def _index_conflict(
    producer: Node, consumer: Node, read: Instruction, update: Node | Member, elementwise: Elementwise
) -> str | None:
    """Reason why a slice and an update of the same memory may refer to different positions; None if they agree."""
    if read.opcode not in ("slice", "dynamic-slice"):
        return f"{producer.name} reads, out of order, what {consumer.name} overwrites"
    operands = update.operands
    if shape_of(read) != operands[1].shape:
        return f"{producer.name} reads a different shape from what {consumer.name} overwrites"
    for number in range(shape_of(update.origin).rank):
        start = operands[2 + number]
        if not _same_start(read, number, start):
            return f"{producer.name} does not read the location that {consumer.name} overwrites"
    if consumer.body is not None and any(
        member is not update and not elementwise.everywhere(member.origin)
        for member in _reached(consumer, producer)
    ):
        return f"{consumer.name} reads, out of order, what {producer.name} takes from the buffer that it overwrites"
    return None


def _same_start(read: Instruction, number: int, start: Node | Member) -> bool:
    known = _integer(start.origin)
    if read.opcode == "slice":
        dimension = read.attributes["slice"].dimensions[number]
        return known is not None and known == dimension.start and dimension.stride == 1
    other = read.operands[1 + number]
    value = _integer(other)
    if known is not None or value is not None:
        return known == value
    return isinstance(start, Node) and start.origin is other


def _integer(i: Instruction) -> int | None:
    if i.opcode != "constant" or i.literal is None or i.literal.is_elided:
        return None
    values = i.literal.array.reshape(-1)
    return int(values[0]) if values.size and values.dtype.kind in "iub" else None


def is_output_fusible(producer: Node, consumer: Node) -> bool:
    """Returns True if an add may be fused into the dot that is its operand (`CanBeOutputFused`)."""
    return (
        consumer.opcode == "add"
        and is_vector_dot(producer)
        and len(producer.users) == 1
        and next(iter(producer.users)).count(producer) == 1
    )
