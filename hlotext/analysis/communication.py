"""Communication of a module: collectives and transfers, plain, asynchronous, sugared, or inside a fusion."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

import attrs

from hlotext.analysis.call_graph import CallEdge, CallGraph, call_graph
from hlotext.analysis.census import census
from hlotext.analysis.devices import CollectiveGroupMode, devices_of, group_mode, participant_count
from hlotext.analysis.facts import fact
from hlotext.analysis.sizes import arrays_of, total_of
from hlotext.analysis.slices import TARGET, Slices, dcn_bytes, transfer_type
from hlotext.analysis.wire import ALGORITHMS, Algorithm, slice_shapes, wire_bytes
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.replica_groups import ReplicaGroupList, ReplicaGroups
from hlotext.ir.values.shape import Shape

KINDS = {name: one.kind for name, one in traits.COMMUNICATION.items() if name not in traits.DONES}
"""Opcodes that begin a communication, and its kind: `all-gather-start` begins an all-gather."""


class Interconnect(enum.Enum):
    """The link that carries a communication."""

    DEVICE = "device links"
    """Between devices of one slice or node: ICI on TPU, NVLink on GPU."""
    DCN = "data center network"
    """Between slices, by the Megascale runtime."""
    HOST = "host link"
    """Between device and host."""


@attrs.frozen(eq=False, repr=False)
class Communication:
    """A collective or point-to-point transfer, with its participants and bytes. Found by `communications`."""

    instruction: Instruction
    """The collective or transfer itself, possibly in the body of an `async-start` or of a fusion."""
    start: Instruction
    """The instruction to report: the `async-start` of a wrapped operation, otherwise `instruction`."""
    kind: str
    """Opcode without `-start`, such as `all-gather`. Prefixed with `host` for host transfers, `dcn` between slices."""
    link: Interconnect
    is_async: bool
    """True if other work can overlap; False for a pair that the GPU compiler marks as `is_sync`."""
    is_pair: bool
    """True for a start/done pair, even if `is_sync` makes it execute synchronously."""
    fusion_call: CallEdge | None
    """The call edge of the fusion that contains the communication; None if it is not fused."""
    loop_call: CallEdge | None
    """The call edge of the innermost while around the communication; None outside loops."""
    groups: ReplicaGroups | None
    pairs: tuple[tuple[int, ...], ...] | None
    """Source and target of each transfer of a collective-permute, or None for other kinds."""
    group_count: int | None
    """Number of groups or pairs, or None if omitted, which means a single group for collectives."""
    group_size: int | None
    """Number of devices per group, or None if there are no groups or their sizes differ."""
    participants: int | None
    """Number of devices in each group, even if the groups are omitted; number of slices for a transfer between slices.

    None if group sizes differ or are unknown, and for point-to-point transfers.
    """
    largest_group: int | None
    """Number of devices in the largest group, or None if unknown."""
    operand_bytes: int
    """Input bytes per device, excluding padding, output buffers, offsets and contexts."""
    result_bytes: int
    """Bytes that each device receives, excluding padding."""
    target: str | None
    """Peers of a transfer between slices, verbatim, or None for other kinds."""
    runs: int | None
    """Execution count in one run of the module, or None if data-dependent."""
    most_runs: int | None
    """Upper bound on `runs`, assuming that enclosing branches are always taken, or None if a trip count is unknown."""
    counted_runs: int | None
    """As `most_runs`, counting loops of unknown trip count once per execution; None only above 2^63."""

    def __repr__(self) -> str:
        return str(self.start)

    @property
    def computation(self) -> Computation | None:
        """The computation that contains `start`, or None if `start` was removed from the module."""
        return self.start.computation

    @property
    def fusion(self) -> Instruction | None:
        """The fusion that contains the communication, or None if it is not fused."""
        return self.fusion_call.caller if self.fusion_call is not None else None

    @property
    def loop(self) -> Instruction | None:
        """The innermost while that contains the communication, or None outside loops."""
        return self.loop_call.caller if self.loop_call is not None else None

    @property
    def sent_shapes(self) -> tuple[Shape, ...]:
        """Input arrays counted by `operand_bytes`, without layouts; tokens and unknown shapes are omitted."""
        shapes = _sent_shapes(self.instruction)
        return tuple(array.without_layout() for shape in shapes for _, array in arrays_of(shape))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Names of the element types of `sent_shapes`, such as `bf16`, without duplicates."""
        return tuple(dict.fromkeys(shape.element_type.name for shape in self.sent_shapes))

    @property
    def wire_bytes(self) -> int | None:
        """Bytes that each device sends per execution with the ring algorithm, the count behind NCCL's bus bandwidth.

        With n devices in a group: (n-1)/n of the result for all-gather, (n-1)/n of the operands for reduce-scatter and
        all-to-all, twice that for all-reduce; all of the operands for permutes, broadcasts and sends, on a device that
        sends; 0 for receives. Of groups of different sizes the largest counts, and for ragged-all-to-all this is an upper
        bound. Between slices of TPUs (`Interconnect.DCN`) n is the number of slices. None if the formula needs n and n is
        unknown.
        """
        return self.wire_bytes_by("ring")

    def wire_bytes_by(self, algorithm: Algorithm) -> int | None:
        """Returns the bytes that each device sends per execution, or None if unknown (see `wire_bytes`).

        Args:
            algorithm: `ring` or `tree`.

        Raises:
            ValueError: The algorithm has another name.
        """
        if algorithm not in ALGORITHMS:
            raise ValueError(f"unknown algorithm {algorithm!r}; known: {', '.join(ALGORITHMS)}")
        if self.pairs is not None and all(len(set(pair)) == 1 for pair in self.pairs):
            return 0
        kind = self.kind.removeprefix("host ")
        if self.link is Interconnect.DCN:
            return dcn_bytes(kind.removeprefix("dcn "), self.operand_bytes, self.participants)
        return wire_bytes(kind, self.operand_bytes, self.result_bytes, self.largest_group, algorithm)

    @property
    def is_host_transfer(self) -> bool:
        """True for a transfer between a device and its host only, such as a callback."""
        return self.link is Interconnect.HOST

    @property
    def sent_bytes(self) -> int:
        """Bytes that each device sends per execution (`wire_bytes`), or 0 if unknown."""
        return self.wire_bytes or 0

    @property
    def is_at_most(self) -> bool:
        """True if `wire_bytes` is an upper bound, because the amount sent is known only at run time."""
        return self.kind == "ragged-all-to-all"


@fact
def communications(module: Module) -> tuple[Communication, ...]:
    """Finds all collectives and transfers of a module, in text order.

    A collective implemented by several fusions counts once, and so does a send/recv pair that implements a collective
    between slices (Megascale).
    """
    graph = call_graph(module)
    found: dict[tuple[str, str] | Instruction, Instruction] = {}
    begun, started = census(module).of(*KINDS), started_collectives(module)
    joined = Slices([i for i in begun if i.opcode in ("send", "recv")])
    for instruction in begun:
        if instruction in joined.received:
            continue
        key = chain_of(instruction) or instruction
        if key not in found or instruction in started:
            found[key] = instruction
    return tuple(_communication(graph, joined, instruction) for instruction in found.values())


def chain_of(instruction: Instruction) -> tuple[str, str] | None:
    """Returns the key shared by the parts of a collective that the TPU compiler split over fusions, or None for others.

    The compiler repeats the collective in the fusions that start, continue and finish it.
    """
    chain = instruction.frontend_attributes.get("chain_id")
    return (instruction.opcode, chain) if chain is not None else None


def largest_operand(instruction: Instruction) -> Instruction | None:
    """Returns the largest operand of a combined collective, or None if that is the first, whose metadata it has.

    Also returns None for other instructions, and for an all-to-all, which may have an operand per device.
    """
    operands = instruction._operands
    if len(operands) < 2 or KINDS.get(instruction._head.opcode) in (None, "all-to-all"):
        return None  # an all-to-all may have an operand for each device
    sizes = {
        node: node.shape.element_type.byte_width * (node.shape.element_count or 0)
        for node in operands
        if node.shape is not None and node.shape.is_array
    }
    largest = max(sizes, key=lambda node: sizes[node], default=None)
    return largest if largest is not None and sizes[largest] > next(iter(sizes.values())) else None


def is_started(instruction: Instruction) -> bool:
    """Returns True if an asynchronous collective fusion starts this collective. Reports name this part of a chain."""
    targets = (user.attributes.get("custom_call_target") for user in instruction.users)
    return "AsyncCollectiveStart" in targets


@fact
def started_collectives(module: Module) -> frozenset[Instruction]:
    """Returns the instructions for which `is_started` is True, found from the starts."""
    return frozenset(
        operand for call in _calls_of(module, "AsyncCollectiveStart") for operand in call.operands
    )


def _calls_of(module: Module, target: str) -> Iterator[Instruction]:
    for call in census(module).by_opcode.get("custom-call", ()):
        if call.attributes.get("custom_call_target") == target:
            yield call


@fact
def results_of_chains(module: Module) -> dict[tuple[str, str], Instruction]:
    """Returns the fusions that return the results of collectives split over several fusions, by `chain_of`."""
    found: dict[tuple[str, str], Instruction] = {}
    for end in _calls_of(module, "AsyncCollectiveDone"):
        if end.computation is None or not end.is_root:
            continue
        for part in end.operands:
            if part.opcode in KINDS and (chain := chain_of(part)) is not None:
                found.update((chain, caller) for caller in end.computation.callers[:1])
    return found


def is_further_part(instruction: Instruction) -> bool:
    """Returns True for a repetition of a collective in the fusions that continue and finish it."""
    return chain_of(instruction) is not None and not is_started(instruction)


@attrs.frozen
class Exchange:
    """Properties of a communication in its own instruction. See `Communication`."""

    kind: str
    is_pair: bool
    is_sync: bool
    groups: ReplicaGroups | None
    pairs: tuple[tuple[int, ...], ...] | None
    group_count: int | None
    group_size: int | None
    operand_bytes: int
    result_bytes: int


def exchange(instruction: Instruction) -> Exchange:
    """Returns the properties of an instruction that starts a communication (one of `KINDS`)."""
    attributes = instruction.attributes
    groups, pairs = attributes.get("replica_groups"), attributes.get("source_target_pairs")
    count, size = _counted(groups, pairs)
    received = total_of(received_shape(instruction)).unpadded_bytes
    sent = sum(total_of(shape).unpadded_bytes for shape in _sent_shapes(instruction))
    return Exchange(
        kind=kind_of(instruction),
        is_pair=chain_of(instruction) is not None or ROLES.get(instruction.opcode) == "start",
        is_sync=is_sync(instruction),
        groups=groups if isinstance(groups, ReplicaGroups) else None,
        pairs=pairs if isinstance(pairs, tuple) else None,
        group_count=count,
        group_size=size,
        operand_bytes=sent,
        result_bytes=received if slice_shapes(instruction) is None else sent,
    )


def kind_of(instruction: Instruction) -> str:
    """Returns the kind of communication that an instruction starts. See `Communication.kind`."""
    transfer = transfer_type(instruction)
    if transfer is not None:
        return f"dcn {transfer}"
    kind = KINDS[instruction.opcode]
    return f"host {kind}" if instruction.attributes.get("is_host_transfer") is True else kind


def link_of(kind: str) -> Interconnect:
    """Returns the link that carries a kind of communication."""
    if kind.startswith("dcn "):
        return Interconnect.DCN
    return (
        Interconnect.HOST
        if kind.startswith("host ") or kind in ("infeed", "outfeed")
        else Interconnect.DEVICE
    )


def _sent_shapes(instruction: Instruction) -> Sequence[Shape | None]:
    """Shapes of the operands that are data: of a ragged-all-to-all the first, the others being output, offsets and sizes; of
    an in-place collective-permute the slices."""
    slices = slice_shapes(instruction)
    if slices is not None:
        return slices
    data = instruction.operands[:1] if instruction.opcode == "ragged-all-to-all" else instruction.operands
    return [operand.shape for operand in data]


@attrs.frozen
class Surroundings:
    """Context of a communication in the call graph. See `Communication`."""

    wrapping: CallEdge | None
    """The call by the `async-start` whose body it is, which then names it."""
    is_wrapped: bool
    """True if it runs inside an `async-start`; in a computation that an asynchronous `call` runs it keeps its own name."""
    computation: Computation | None
    """The computation of the instruction that names it."""
    fusion_call: CallEdge | None
    loop_call: CallEdge | None
    runs: int | None
    most_runs: int | None
    counted_runs: int | None

    def is_pair(self, found: Exchange) -> bool:
        """Returns True if the communication is a start/done pair."""
        return found.is_pair or self.is_wrapped

    def is_async(self, found: Exchange, is_sync: bool) -> bool:
        """Returns True if other work can overlap; `is_sync` is the GPU compiler's mark on the start."""
        return self.is_pair(found) and not (found.is_sync or is_sync)


def surroundings(graph: CallGraph, computation: Computation | None) -> Surroundings:
    """Returns the context, in the call graph, of a communication that starts in a computation."""
    call = graph.call(computation)
    wrapping = call if call is not None and call.opcode == "async-start" else None
    outer = graph.call(call.computation) if call is not None and call.opcode == "call" else None
    home = wrapping.computation if wrapping is not None else computation
    around = graph.call(home)
    return Surroundings(
        wrapping=wrapping,
        is_wrapped=wrapping is not None or (outer is not None and outer.opcode == "async-start"),
        computation=home,
        fusion_call=around if around is not None and around.opcode == "fusion" else None,
        loop_call=graph.loop_call(home) if home is not None else None,
        runs=graph.runs.get(home, 0) if home is not None else 0,
        most_runs=graph.most_runs.get(home, 0) if home is not None else 0,
        counted_runs=graph.counted_runs.get(home, 0) if home is not None else 0,
    )


def _communication(graph: CallGraph, joined: Slices, instruction: Instruction) -> Communication:
    found, around = exchange(instruction), surroundings(graph, instruction.computation)
    link = link_of(found.kind)
    participants = participant_count(graph.module, instruction)
    kind, result_bytes = found.kind, found.result_bytes
    cut = scattered(instruction)
    if cut is not None:
        kind, result_bytes = "reduce-scatter", total_of(cut.shape).unpadded_bytes
    if link is Interconnect.DCN:
        participants, result_bytes = joined.count(instruction), joined.result_bytes(instruction)
    start = around.wrapping.caller if around.wrapping is not None else instruction
    return Communication(
        instruction=instruction,
        start=start,
        kind=kind,
        link=link,
        is_async=around.is_async(found, is_sync(start)),
        is_pair=around.is_pair(found),
        fusion_call=around.fusion_call,
        loop_call=around.loop_call,
        groups=found.groups,
        pairs=found.pairs,
        group_count=found.group_count,
        group_size=found.group_size,
        participants=participants,
        largest_group=_largest_group(graph.module, instruction, participants),
        operand_bytes=found.operand_bytes,
        result_bytes=result_bytes,
        target=instruction.frontend_attributes.get(TARGET) if link is Interconnect.DCN else None,
        runs=around.runs,
        most_runs=around.most_runs,
        counted_runs=around.counted_runs,
    )


def scattered(instruction: Instruction) -> Instruction | None:
    """Returns the slice of an all-reduce that its fusion keeps, or None: the TPU compiler writes reduce-scatter in this
    way.
    """
    home = instruction.computation
    if instruction.opcode != "all-reduce" or home is None:
        return None
    root = home.root
    is_kept = root.opcode == "dynamic-slice" and root.operands[0] is instruction
    return root if is_kept and home.is_fusion_body else None


def is_sync(instruction: Instruction) -> bool:
    """Returns True if the GPU compiler marks an asynchronous operation as executed synchronously (`is_sync`)."""
    config = instruction.backend_config
    if config is None or '"is_sync":true' not in config.text:
        return False
    try:
        return config.json()["collective_backend_config"]["is_sync"] is True
    except (ValueError, KeyError, TypeError):
        return False


def _counted(groups: object, pairs: object) -> tuple[int | None, int | None]:
    """Number and size of the groups, or number of the pairs."""
    if isinstance(groups, ReplicaGroups):
        return groups.group_count or None, groups.group_size
    return (len(pairs), None) if isinstance(pairs, tuple) else (None, None)


def _largest_group(module: Module, instruction: Instruction, participants: int | None) -> int | None:
    groups = instruction.attributes.get("replica_groups")
    if participants is not None or not isinstance(groups, ReplicaGroupList) or not groups.replica_groups:
        return participants
    if groups.group_size is not None:
        return None
    largest = max(map(len, groups.replica_groups))
    if group_mode(instruction) is not CollectiveGroupMode.BOTH:
        return largest
    partitions = devices_of(module).partitions
    return largest * partitions if partitions is not None else None


_RESULT_ELEMENT = {"all-gather-start": 1, "collective-permute-start": 1, "recv": 0, "infeed": 0}
"""Result element that receives the data; the others are operands, contexts and tokens."""
_SENDS_ONLY = frozenset({"send", "outfeed"})


def received_shape(instruction: Instruction) -> Shape | None:
    """Returns the part of the result that holds the received data, or None if nothing is received."""
    shape, element = instruction.shape, _RESULT_ELEMENT.get(instruction.opcode)
    if shape is None or instruction.opcode in _SENDS_ONLY:
        return None
    if element is not None and shape.is_tuple and element < len(shape.tuple_shapes):
        return shape.tuple_shapes[element]
    return shape
