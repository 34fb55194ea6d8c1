"""C110: a large parameter that every device holds in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.sharding import OpSharding
from hlotext.lint.held import at_peak
from hlotext.lint.helpers import donors, size_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.updates import tree_of, updates
from hlotext.lint.values import is_looked_up


@attrs.frozen
class ReplicatedParameter(Rule):
    code = "C110"
    name = "replicated-parameter"
    title = "a large parameter that every device holds in full"
    min_bytes: int = 128 << 20
    """Bytes of one parameter from which on it is worth a finding; of all together where others of their sizes are spread."""
    min_percent: float = 10
    """Percent of the peak of memory that they are, likewise beside caches that are spread, as requests are."""

    def check_module(self, context: Context) -> Iterator[Report]:
        devices = int(context.module.attributes.get("num_partitions", 1))
        sizes = {p: size_of(p.shape) for p in context.module.entry.parameters if _is_replicated(p)}
        if devices < 2 or sum(sizes.values()) < self.min_bytes or _is_data_parallel(context):
            return
        spread = _spread_state(context)
        large = [parameter for parameter, size in sizes.items() if size >= self.min_bytes]
        moments = _moments(list(sizes), spread)
        if sum(sizes[parameter] for parameter in moments) < self.min_bytes:
            moments = []
        else:
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
        if not large or _is_spread_by_batch(context, large):
            return
        first = max(large, key=lambda parameter: sizes[parameter])
        total = sum(sizes[parameter] for parameter in large)
        peak = at_peak(context) if _is_beside_caches(large, context) else None
        if peak is not None and 100 * total < self.min_percent * peak.bytes:
            return
        what = (
            f"a parameter of {byte_text(total)} is"
            if len(large) == 1
            else (f"{len(large):,} parameters of {byte_text(total)} are")
        )
        yield Report(
            first,
            f"{what} held in full by each of {devices} devices",
            "shard them over an axis of the mesh, as FSDP does",
            total - total // devices,
            is_held=True,
            cause="replicated",
        )


def _is_replicated(parameter: Instruction) -> bool:
    return parameter.sharding is not None and parameter.sharding.is_replicated


def _spread_state(context: Context) -> Counter[tuple[int, ...]]:
    """How many arrays of each whole shape the step updates in place that are spread over the devices.

    Two for one that is not are the moments of an optimizer, spread on purpose beside parameters that are not (ZeRO stage 1).
    """
    return Counter(_dimensions(p) for p in _aliased(context) if not _is_replicated(p))


def _moments(replicated: list[Instruction], spread: Counter[tuple[int, ...]]) -> list[Instruction]:
    """Those of which there are two for each that is spread: the moments of an optimizer, whose parameters are (FSDP)."""
    counts = Counter(map(_dimensions, replicated))
    return [
        parameter
        for parameter in replicated
        if len(found := _dimensions(parameter)) > 1 and 0 < 2 * spread[found] <= counts[found]
    ]


def _held_on_purpose(context: Context) -> set[tuple[int, ...]]:
    """The whole shapes of weights that every device has on purpose: of their argument, which has several, none is spread.

    What other arguments have of such a shape, as moments, belongs to the first of that shape.
    """
    weights = [p for p in context.module.entry.parameters if len(_dimensions(p)) > 1]
    trees: dict[str, list[Instruction]] = {}
    first: dict[tuple[int, ...], Instruction] = {}
    for parameter in weights:
        trees.setdefault(tree_of(parameter), []).append(parameter)
        first.setdefault(_dimensions(parameter), parameter)
    meant = {tree for tree, held in trees.items() if len(held) > 1 and all(map(_is_replicated, held))}
    return {whole for whole, parameter in first.items() if tree_of(parameter) in meant}


def _is_beside_caches(weights: list[Instruction], context: Context) -> bool:
    """Whether a step updates arrays that are spread over the devices, and not these: each has its own requests' caches."""
    state = _state(context)
    return state.isdisjoint(weights) and not all(map(_is_replicated, state))


def _dimensions(parameter: Instruction) -> tuple[int, ...]:
    """Those of the whole array, of which each device may hold a part."""
    local = parameter.shape.dimensions if parameter.shape is not None and parameter.shape.is_array else ()
    tiles = parameter.sharding.tile_dimensions if isinstance(parameter.sharding, OpSharding) else ()
    return tuple(size * count for size, count in zip(local, tiles or (1,) * len(local), strict=False))


def _is_data_parallel(context: Context) -> bool:
    """Whether a step gives all its state to every device, so that none was forgotten when the others were spread."""
    state = _state(context)
    return bool(state) and all(map(_is_replicated, state))


def _is_spread_by_batch(context: Context, large: list[Instruction]) -> bool:
    """Whether a program that updates nothing spreads its batch and nothing else: it has several more arrays in full, and
    what is spread are arguments of their own, all split along a dimension of one size."""
    parameters = context.module.entry.parameters
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
        and not _state(context)
    )


def _state(context: Context) -> set[Instruction]:
    """The arrays that a step updates, or is given for good."""
    state = {
        *_aliased(context),
        *(p for p, _ in donors(context)),
        *(one.parameter for one in updates(context)),
    }
    return {parameter for parameter in state if parameter.shape is not None and parameter.shape.rank}


def _aliased(context: Context) -> list[Instruction]:
    """The parameters that the header says a result is written over."""
    config = context.module.attributes.get("input_output_alias")
    numbers = {alias.parameter_number for alias in config.entries} if config is not None else set()
    return [p for p in context.module.entry.parameters if p.parameter_number in numbers]
