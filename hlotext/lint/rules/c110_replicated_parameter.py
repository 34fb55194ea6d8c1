"""C110: a large parameter that is replicated on every device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import arrays_of, byte_text
from hlotext.analysis.entries import aliases_of
from hlotext.analysis.updates import tree_of
from hlotext.dumps.collectives.steps import read
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.sharding import OpSharding
from hlotext.lint.equal import replicated_state
from hlotext.lint.held import at_peak
from hlotext.lint.helpers import is_product_call, results, size_of
from hlotext.lint.products import feeds_product
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.training import aliased, state_of
from hlotext.lint.values import VIEWS, Value, is_looked_up, source


class ReplicatedParameter(Rule):
    code = "C110"
    name = "replicated-parameter"
    title = "a large parameter that is replicated on every device"
    needs_partitions = True
    waste = "held"
    min_bytes: ClassVar[int] = 128 << 20
    """Bytes of one parameter from which on it may be a fault of its own."""
    min_percent: ClassVar[float] = 10
    """Percent of the peak of memory that they are, likewise beside caches that are spread, as requests are."""

    def check_module(self, context: Context) -> Iterator[Report]:
        devices = int(context.module.attributes.get("num_partitions", 1))
        sizes = {p: size_of(p.shape) for p in context.arguments if _is_replicated(p)}
        if devices < 2:  # the module runs on one device
            return
        if _is_data_parallel(context):  # all the state that it updates is replicated, as in data parallelism
            yield from _of_optimizer(devices, context)
            return
        spread = _spread_state(context)
        large = [parameter for parameter, size in sizes.items() if size >= self.min_bytes]
        moments = _moments(list(sizes), spread)
        large = list(dict.fromkeys((*large, *moments)))
        meant, kept = _held_on_purpose(context), set(moments)
        large = [
            parameter
            for parameter in large
            if parameter in kept
            or (
                spread[_dimensions(parameter)] < 2
                and _dimensions(parameter) not in meant
                and not is_looked_up(parameter, only_in_loops=True)
            )
        ]
        if not large:  # no large argument is replicated
            return
        if _is_spread_by_batch(context, large):  # only the batch is sharded
            return
        first = max(large, key=lambda parameter: sizes[parameter])
        total = sum(sizes[parameter] for parameter in large)
        peak = at_peak(context) if _is_beside_caches(large, context) else None
        if (
            peak is not None and 100 * total < self.min_percent * peak.bytes
        ):  # the replicated arguments are too small a part of the peak
            return
        what = (
            f"a parameter of {byte_text(total)} is"
            if len(large) == 1
            else f"{len(large):,} parameters, {byte_text(total)} in total, are"
        )
        made = _made_for(large, context)
        yield Report(
            first,
            f"{what} replicated on each of {devices} devices",
            f"shard {'it' if len(large) == 1 else 'them'} over a mesh axis, as FSDP does",
            total - total // devices,
            is_held=True,
            seconds=_spent_on(made, devices, context) if kept else None,
            peak_bytes=context.saved_peak(dict.fromkeys([*large, *made], 1 - 1 / devices))
            if kept
            else total - total // devices,
            cause="replicated",
        )

    def nearest(self, context: Context) -> tuple[str, str] | None:
        """Returns the largest replicated argument; from the program before partitioning if the final HLO lost its
        shardings.
        """
        module, devices = context.module, int(context.module.attributes.get("num_partitions", 1))
        program = module
        if (
            not any(p.sharding is not None for p in module.entry.parameters)
            and context.compilation is not None
        ):
            program = read(context.compilation.first) or module
        held = [p for p in program.entry.parameters if _is_replicated(p)]
        if devices < 2 or not held:
            return None
        first = max(held, key=lambda one: size_of(one.shape))
        size, total = size_of(first.shape), sum(size_of(one.shape) for one in held)
        if size >= self.min_bytes:
            return None
        name = first.metadata.op_name if first.metadata is not None else ""
        condition = (
            f"it takes {byte_text(size)}, below the minimum of {byte_text(self.min_bytes)} (replicated arguments total "
            f"{byte_text(total)})"
        )
        if program is not module:
            condition += "; only the program before optimization shows that it is replicated"
        return name or first.name, condition


def _of_optimizer(devices: int, context: Context) -> Iterator[Report]:
    """State that only the update of the parameters reads: data parallelism can spread it without other traffic."""
    written = {
        alias.parameter_number: _result(alias.output_index, context) for alias in aliases_of(context.module)
    }
    own = {
        parameter: made
        for parameter in aliased(context)
        if len(_dimensions(parameter)) > 1
        and _is_of_update(parameter)
        and (made := written.get(parameter.parameter_number or 0)) is not None
    }
    if not own or not any(one.kind in ("all-reduce", "reduce-scatter") for one in context.communications):
        return
    total, part = sum(size_of(one.shape) for one in own), 1 - 1 / devices
    if not context.is_scarce(round(total * part)):  # the chip has plenty of memory for the optimizer's state
        return
    first = max(own, key=lambda one: size_of(one.shape))
    yield Report(
        first,
        f"{byte_text(total)} of state that only the update reads (such as optimizer moments) is stored and updated "
        f"identically on each of {devices} devices",
        "shard it over the devices (ZeRO-1): constrain the gradients and moments to be sharded, and the new parameters "
        "to be replicated; a reduce-scatter and an all-gather then replace the all-reduce",
        round(total * part),
        is_held=True,
        seconds=part * context.prices.together(own.values()),
        spares=dict.fromkeys(own, part),
        is_proved=False,  # data parallelism is a choice
        cause="replicated",
    )


def _is_of_update(parameter: Instruction) -> bool:
    """True if no matmul or loop reads a parameter, or what is made of it: copies in another type are of the same values."""
    pending, seen = [parameter], {parameter}
    while pending and len(seen) < _MOST_STEPS:
        for user in pending.pop().users:
            if user in seen or (user.opcode == "tuple" and user.is_root):
                continue
            opcodes = {one.opcode for one in parts_of(user)}
            if (
                opcodes & (traits.CONTRACTIONS | traits.CONTROL_FLOW)
                or user.opcode == "tuple"
                or is_product_call(user)
            ):
                return False
            seen.add(user)
            pending.append(user)
    return len(seen) < _MOST_STEPS


def _result(index: tuple[int, ...], context: Context) -> Instruction | None:
    """The operation that writes a result of the module."""
    root = context.module.entry.root
    if len(index) != 1 or root.opcode != "tuple" or index[0] >= len(root.operands):
        return None
    return source(Value(root.operands[index[0]]), VIEWS).writer


def _is_replicated(parameter: Instruction) -> bool:
    if parameter.sharding is not None:
        return parameter.sharding.is_replicated
    home = parameter.computation
    return home is not None and home.module is not None and parameter in replicated_state(home.module)


def _spread_state(context: Context) -> Counter[tuple[int, ...]]:
    """Counts sharded arrays that the step updates in place, by their global shape.

    Two for one that is not are the moments of an optimizer, spread on purpose beside parameters that are not (ZeRO stage 1).
    """
    devices = int(context.module.attributes.get("num_partitions", 1))
    return Counter(
        whole
        for p in state_of(context)
        if not _is_replicated(p)
        for whole in ([_dimensions(p)] if p.sharding is not None else _possible(_dimensions(p), devices))
    )


def _possible(local: tuple[int, ...], devices: int) -> list[tuple[int, ...]]:
    """Possible shapes of the whole array if the text has no sharding: one dimension over all devices."""
    return [(*local[:d], local[d] * devices, *local[d + 1 :]) for d in range(len(local))]


def _moments(replicated: list[Instruction], spread: Counter[tuple[int, ...]]) -> list[Instruction]:
    """Those in the shape of one that is spread, and that no product reads: the moments of an optimizer, or averages, whose
    parameters are spread (FSDP). Of parameters in full beside moments that are spread, ZeRO stage 1, products read."""
    return [
        parameter
        for parameter in replicated
        if len(found := _dimensions(parameter)) > 1 and spread[found] and not feeds_product(parameter)
    ]


_MOST_STEPS = 300


def _made_for(large: list[Instruction], context: Context) -> set[Instruction]:
    """Instructions that write full-size values for these arrays alone, such as parameters gathered for an average; no
    product reads them. Sums over the devices stay: not every compiler makes one that gives each device its part."""
    sums = [one for one in context.communications if one.kind in ("all-reduce", "reduce-scatter")]
    summed = {value for one in sums for value in (one.start, *results(one))}
    sizes = {p.shape.element_count for p in large if p.shape is not None and p.shape.is_array}
    return {
        written
        for one in context.module.entry
        if one.opcode not in ("parameter", "bitcast", "tuple", "get-tuple-element", "while")
        and any(array.element_count in sizes for _, array in arrays_of(one.shape))
        and one not in summed
        and not is_product_call(one)
        and not any(part.opcode in ("dot", "convolution") for part in parts_of(one))
        and not feeds_product(one)
        for written in (one, one.async_wrapped_instruction or one)
    }


def _spent_on(made: set[Instruction], devices: int, context: Context) -> float:
    """Seconds of gathering such values, and of computing in full what each device would compute of its own part alone."""
    prices = context.prices
    gathers = [one for one in context.communications if one.kind == "all-gather"]
    sent = {one.start for one in gathers if not made.isdisjoint(results(one))}
    gathered = {value for one in gathers for value in results(one)}
    return prices.together(sent) + (1 - 1 / devices) * prices.together(made - sent - gathered)


def _held_on_purpose(context: Context) -> set[tuple[int, ...]]:
    """The whole shapes of weights that every device has on purpose: of their argument, which has several, none is spread.

    What other arguments have of such a shape, as moments, belongs to the first of that shape.
    """
    weights = [p for p in context.arguments if len(_dimensions(p)) > 1]
    trees: dict[str, list[Instruction]] = {}
    first: dict[tuple[int, ...], Instruction] = {}
    for parameter in weights:
        trees.setdefault(tree_of(parameter), []).append(parameter)
        first.setdefault(_dimensions(parameter), parameter)
    meant = {tree for tree, held in trees.items() if len(held) > 1 and all(map(_is_replicated, held))}
    return {whole for whole, parameter in first.items() if tree_of(parameter) in meant}


def _is_beside_caches(weights: list[Instruction], context: Context) -> bool:
    """True if a step updates arrays that are spread over the devices, and not these: each has its own requests' caches."""
    state = state_of(context)
    return state.isdisjoint(weights) and not all(map(_is_replicated, state))


def _dimensions(parameter: Instruction) -> tuple[int, ...]:
    """Those of the whole array, of which each device may hold a part."""
    local = parameter.shape.dimensions if parameter.shape is not None and parameter.shape.is_array else ()
    tiles = parameter.sharding.tile_dimensions if isinstance(parameter.sharding, OpSharding) else ()
    return tuple(size * count for size, count in zip(local, tiles or (1,) * len(local), strict=False))


def _is_data_parallel(context: Context) -> bool:
    """True if a step replicates all its state on every device, so that no array was forgotten when others were
    sharded.
    """
    state = state_of(context)
    return bool(state) and all(map(_is_replicated, state))


def _is_spread_by_batch(context: Context, large: list[Instruction]) -> bool:
    """True if a program that updates nothing shards only its batch: it keeps several more arrays replicated, and the
    sharded ones are separate arguments, all sharded along a dimension of one size.
    """
    parameters = context.arguments
    held = [p for p in parameters if _is_replicated(p) and len(_dimensions(p)) > 1]
    spread = [p for p in parameters if not _is_replicated(p) and p.shape is not None]
    sizes = {
        whole
        for p in spread
        for whole, local in zip(
            _dimensions(p), p.shape.dimensions if p.shape is not None else (), strict=False
        )
        if whole != local
    }
    return (
        len(held) > len(large) + 1
        and len(sizes) == 1
        and {*map(tree_of, held)}.isdisjoint(map(tree_of, spread))
        and not state_of(context)
    )
