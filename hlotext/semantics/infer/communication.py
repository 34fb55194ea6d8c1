"""Shape rules of collectives, of transfers between devices, and of the host's queues."""

from __future__ import annotations

from hlotext.ir.tables import traits
from hlotext.ir.values.replica_groups import ReplicaGroupList, ReplicaGroups
from hlotext.ir.values.shape import Shape
from hlotext.semantics.infer.errors import CannotInfer, ShapeInferenceError
from hlotext.semantics.infer.op import Op
from hlotext.semantics.infer.rules import Open, rule
from hlotext.semantics.infer.shapes import (
    S32,
    TOKEN_SHAPE,
    U32,
    array,
    dimensions,
    is_unbounded,
    one_or_tuple,
    scalar,
)

_PARTITIONS_TOO = traits.MAY_COUNT_DEVICES - {"collective-reduce"}


def group_size(op: Op) -> int | None:
    """Returns the number of devices in a group of a collective (`GetSubgroupSize`), or None if unknown.

    Without a channel a group lists replicas, with one partitions; `use_global_device_ids` makes them flattened ids, and
    its absence on all-gather, all-reduce and reduce-scatter adds all partitions of each replica. Omitted groups mean
    one group of all. As in XLA, a size of 1 counts as unknown, since the module may run on more devices than its text
    says.
    """
    listed = op.get("replica_groups", ReplicaGroups, ReplicaGroupList()).group_size
    channel = any(name == "channel_id" for name, _ in op.attributes)
    partitions_too = channel and op.opcode in _PARTITIONS_TOO
    if op.get("use_global_device_ids", bool, False):
        size = listed if listed is not None else 1
    elif partitions_too:
        size = (listed if listed is not None else op.replica_count) * op.num_partitions
    elif channel:
        size = listed if listed is not None else op.num_partitions
    else:
        size = listed if listed is not None else op.replica_count
    return size if size > 1 else None


def _resized(op: Op, shapes: tuple[Shape, ...], shards: int, *, gather: bool) -> tuple[Shape, ...]:
    """Each array with the attribute's one dimension multiplied or divided by the number of shards."""
    results = []
    for number, shape in enumerate(shapes):
        along = op.dimension(shape.rank)
        sizes = dimensions(shape)
        size, dynamic = sizes[along]
        if is_unbounded(size):
            pass
        elif gather:
            sizes[along] = size * shards, False
        elif size % shards:
            raise ShapeInferenceError(
                f"dimension {along} of {shape} is not divisible by {shards}", operand=number
            )
        else:
            sizes[along] = size // shards, dynamic
        results.append(array(shape.element_type, sizes))
    return tuple(results)


def _shards(op: Op, whole: Shape | None, part: Shape | None, along: int) -> int:
    """The group's size, or where that is unknown the ratio of the stated sizes.

    Raises CannotInfer if neither is known.
    """
    known = group_size(op)
    if known is not None:
        return known
    if whole is not None and part is not None and whole.rank != part.rank:
        raise ShapeInferenceError(
            f"{op.opcode} must preserve its operand's rank, but {part} and {whole} differ"
        )
    if whole is None or part is None or part.rank <= along:
        if op.get("replica_groups", ReplicaGroups, ReplicaGroupList()).group_size == 1:
            return 1
        raise CannotInfer(f"the group size of {op.opcode} is unknown")
    sizes = whole.dimensions[along], part.dimensions[along]
    if any(map(is_unbounded, sizes)) or not sizes[1]:
        return 1
    return -(-sizes[0] // sizes[1])


def _first(shape: Shape | None) -> Shape | None:
    """The first array of a result, which is an array or a tuple of them."""
    while shape is not None and shape.is_tuple:
        shape = shape.tuple_shapes[0] if shape.tuple_shapes else None
    return shape


# ---- collectives


@rule("all_gather", Open.DEVICES)
def infer_all_gather(op: Op) -> Shape:
    """Infers the shape of an all-gather: the dimension times the group size (`ShapeInference::InferAllGatherShape`)."""
    operands = op.arrays()
    shards = _shards(op, _first(op.stated), operands[0], op.dimension(operands[0].rank))
    return one_or_tuple(_resized(op, operands, shards, gather=True))


@rule("all_gather_start", Open.DEVICES)
def infer_all_gather_start(op: Op) -> Shape:
    """Infers the shape of an all-gather-start: the operands and the gathered arrays (`InferAllGatherStartShape`)."""
    operands = op.arrays()
    stated = op.stated.tuple_shapes[1] if op.stated is not None and len(op.stated.tuple_shapes) == 2 else None
    shards = _shards(op, _first(stated), operands[0], op.dimension(operands[0].rank))
    return Shape.tuple((one_or_tuple(operands), one_or_tuple(_resized(op, operands, shards, gather=True))))


@rule("started_result")
def infer_started_result(op: Op) -> Shape:
    """Infers the shape of an all-gather-done or collective-permute-done: element 1 of the start.

    Corresponds to `InferAllGatherDoneShape` and `InferCollectivePermuteDoneShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    start = op.operand(0)
    if not start.is_tuple or len(start.tuple_shapes) < 2:
        raise ShapeInferenceError(
            f"operand 0 of {op.opcode} must be the result of its start, not {start}", operand=0
        )
    return start.tuple_shapes[1]


@rule("all_reduce")
def infer_all_reduce(op: Op) -> Shape:
    """Infers the shape of an all-reduce: the operands' shapes (`ShapeInference::InferAllReduceShape`)."""
    return one_or_tuple(op.arrays())


@rule("reduce_scatter", Open.DEVICES)
def infer_reduce_scatter(op: Op) -> Shape:
    """Infers the shape of a reduce-scatter: the dimension divided by the group size (`InferReduceScatterShape`).

    Raises ShapeInferenceError if it is not divisible.
    """
    operands = op.arrays()
    shards = _shards(op, operands[0], _first(op.stated), op.dimension(operands[0].rank))
    return one_or_tuple(_resized(op, operands, shards, gather=False))


@rule("all_to_all")
def infer_all_to_all(op: Op) -> Shape:
    """Infers the shape of an all-to-all: the operands' shapes (`InferAllToAllShape`, `InferAllToAllTupleShape`).

    With `dimensions`, a single array is split into as many pieces as the group has devices, and concatenated along the
    same dimension. Without, there is an operand for each device, and the result is a tuple.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operands = op.arrays()
    if any(name == "dimensions" for name, _ in op.attributes):
        along, size = op.dimension(operands[0].rank), group_size(op) or 1
        if len(operands) != 1:
            raise ShapeInferenceError(
                "all-to-all along a dimension takes only one operand", attribute="dimensions"
            )
        whole = operands[0].dimensions[along]
        if not is_unbounded(whole) and whole % size:
            raise ShapeInferenceError(
                f"dimension {along} of {operands[0]} is not divisible by {size}", operand=0
            )
        return operands[0]
    known = group_size(op)
    if known is not None and known != len(operands):
        raise ShapeInferenceError(
            f"all-to-all of {known} devices needs {known} operands, not {len(operands)}"
        )
    for number, operand in enumerate(operands):
        if operand != operands[0]:
            raise ShapeInferenceError(
                f"all-to-all of different shapes: {operands[0]} and {operand}", operand=number
            )
    return Shape.tuple(operands)


@rule("ragged_all_to_all")
def infer_ragged_all_to_all(op: Op) -> Shape:
    """Infers the shape of a ragged-all-to-all: that of the output buffer, operand 1 (`HandleRaggedAllToAll`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    for number in range(2, 6):
        found = op.array(number)
        if found.rank not in (1, 2) or found != op.operands[2]:
            raise ShapeInferenceError(
                f"offsets and sizes must have one shape of rank 1 or 2, not {op.operands[2]} and {found}",
                operand=number,
            )
    return op.array(1)


@rule("collective_broadcast")
def infer_collective_broadcast(op: Op) -> Shape:
    """Infers the shape of a collective-broadcast: that of operand 0 (`ShapeVerifier::HandleCollectiveBroadcast`)."""
    return op.array(0)


@rule("collective_reduce")
def infer_collective_reduce(op: Op) -> Shape:
    """Infers the shape of a collective-reduce: the operands' shapes, except for an operand with dynamic roots.

    Corresponds to `ShapeInference::InferCollectiveReduceShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operands = op.arrays()
    if not op.get("has_dynamic_root", bool, False):
        return one_or_tuple(operands)
    *data, roots = operands
    if not data or roots != Shape(S32, (len(data),)):
        raise ShapeInferenceError(
            f"the last operand must be s32[{len(data)}], one root per operand, not {roots}", operand=len(data)
        )
    return one_or_tuple(tuple(data))


def _permuted(op: Op) -> Shape:
    """Result of a collective-permute: the operands' shapes, or with slices the shape of the buffer it writes."""
    if not op.get("slice_sizes", tuple, ()):
        return one_or_tuple(op.arrays())
    if len(op.operands) != 4:
        raise ShapeInferenceError(f"{op.opcode} of slices takes four operands, not {len(op.operands)}")
    return op.operands[1]


@rule("collective_permute")
def infer_collective_permute(op: Op) -> Shape:
    """Infers the shape of a collective-permute: the operands' shapes, or that of the output buffer.

    Corresponds to `ShapeInference::InferCollectivePermuteShape`.
    """
    return _permuted(op)


@rule("collective_permute_start", Open.CONTEXTS)
def infer_collective_permute_start(op: Op) -> Shape:
    """Infers the shape of a collective-permute-start: operands, result, and the stated contexts.

    Corresponds to `ShapeInference::InferCollectivePermuteStartShape`.
    """
    result = _permuted(op)
    source = op.operands[0] if op.get("slice_sizes", tuple, ()) else one_or_tuple(op.operands)
    contexts = op.stated.tuple_shapes[2:] if op.stated is not None else ()
    return Shape.tuple((source, result, *contexts))


# ---- transfers


def _check_token(op: Op, number: int) -> None:
    if not op.operand(number).is_token:
        raise ShapeInferenceError(
            f"operand {number} of {op.opcode} must be a token, not {op.operands[number]}", operand=number
        )


def _started_data(op: Op) -> Shape:
    """The data that a send or recv holds: element 0 of operand 0."""
    start = op.operand(0)
    if not start.is_tuple or len(start.tuple_shapes) != 3:
        raise ShapeInferenceError(
            f"operand 0 of {op.opcode} must be (data, context, token), not {start}", operand=0
        )
    return start.tuple_shapes[0]


def _stated_data(op: Op) -> Shape:
    """The data that only the stated result names: its element 0."""
    stated = op.open_shape("shape of the data")
    if not stated.is_tuple or not stated.tuple_shapes:
        raise ShapeInferenceError(f"{op.opcode} must return a tuple that starts with the data, not {stated}")
    return stated.tuple_shapes[0]


@rule("send")
def infer_send(op: Op) -> Shape:
    """Infers the shape of a send: data, context and token (`ShapeVerifier::HandleSend`)."""
    _check_token(op, 1)
    return Shape.tuple((op.operands[0], scalar(U32), TOKEN_SHAPE))


@rule("recv", Open.PART)
def infer_recv(op: Op) -> Shape:
    """Infers the shape of a recv: the stated data, context and token (`ShapeVerifier::HandleRecv`)."""
    _check_token(op, 0)
    return Shape.tuple((_stated_data(op), scalar(U32), TOKEN_SHAPE))


@rule("recv_done")
def infer_recv_done(op: Op) -> Shape:
    """Infers the shape of a recv-done: data and token (`ShapeVerifier::HandleRecvDone`)."""
    return Shape.tuple((_started_data(op), TOKEN_SHAPE))


@rule("send_done")
def infer_send_done(op: Op) -> Shape:
    """Infers the shape of a send-done: a token (`ShapeVerifier::HandleSendDone`)."""
    _started_data(op)
    return TOKEN_SHAPE


@rule("infeed", Open.PART)
def infer_infeed(op: Op) -> Shape:
    """Infers the shape of an infeed: the stated data and a token (`ShapeVerifier::HandleInfeed`)."""
    _check_token(op, 0)
    return Shape.tuple((_stated_data(op), TOKEN_SHAPE))


@rule("outfeed")
def infer_outfeed(op: Op) -> Shape:
    """Infers the shape of an outfeed: a token (`ShapeVerifier::HandleOutfeed`)."""
    _check_token(op, 1)
    return TOKEN_SHAPE
