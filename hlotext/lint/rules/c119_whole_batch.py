"""C119: a sharded batch that every device processes in full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlotext.analysis import byte_text
from hlotext.analysis.entries import program_name
from hlotext.analysis.formatting import pluralize
from hlotext.analysis.meshes import is_invented
from hlotext.dumps.collectives.whole_batch import WholeBatch, whole_batches
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.replica_groups import MeshAxesReplicaGroupList
from hlotext.lint.helpers import size_of
from hlotext.lint.products import feeds_product
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.taken_apart import updates_of
from hlotext.lint.training import has_backward_pass

_TRAINING = 4
"""Times that the parts of a weight are sent in training, if each device works on its part of the batch: gathered for the
forward and for the backward pass; and its gradient is summed, which counts twice where no reduce-scatter is made of it."""


class WholeBatchOnEach(Rule):
    code = "C119"
    name = "whole-batch"
    title = "a sharded batch that every device processes in full"
    waste = "again"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for batch in whole_batches(context.module):
            of_batch = [one for one in context.communications if one.start in batch.collectives]
            sent = sum(one.sent_bytes * context.runs(one.start) for one in of_batch)
            instead = _sent_instead(batch, context)
            if sent <= instead:  # sending the weight shards would take more bytes
                continue
            alike = {one for one in batch.alike if context.is_stepped(one)} - batch.collectives
            part = 1 - 1 / batch.devices
            spared = 1 - instead / sent
            summed = {
                operand
                for one in of_batch
                if one.kind in traits.REDUCES_ACROSS_DEVICES
                for operand in one.start.operands
            }
            whole = {*alike, *batch.collectives, *summed}
            yield Report(
                _writer(batch.lookup, context),
                f"{_name(batch)} is sharded over {batch.devices} devices, but the lookup result has the sharding of the "
                f"table: each device then processes the whole batch, and {pluralize(len(of_batch), 'collective')} "
                f"{'send' if len(of_batch) > 1 else 'sends'} {byte_text(sent)} of it",
                f"keep the batch sharded: {_constraint(batch)} right after the lookup; then the looked-up rows are exchanged "
                f"and the weights gathered, which sends at most {byte_text(instead)}",
                sent - instead,
                seconds=spared * context.prices.together(batch.collectives)
                + part * context.prices.together(alike),
                spares=dict.fromkeys(_held(whole, context), part),
                covers=batch.collectives | alike,
                origin=batch.lookup,
                cause="whole batch",
            )


def _held(whole: Iterable[Instruction], context: Context) -> Iterator[tuple[Instruction, tuple[int, ...]]]:
    """The arrays of the sizes of these, wherever they are written: loops and asynchronous pairs hand them on."""
    sizes = {one.shape.dimensions for one in whole if one.shape is not None and one.shape.is_array}
    for one in context.graph.sequential_instructions():
        for index, array in one.shape.leaves() if one.shape is not None else ():
            if array.dimensions in sizes and array.rank > 1:
                yield one, index


def _sent_instead(batch: WholeBatch, context: Context) -> int:
    """The most that a device sends if it works on its own part of the batch alone: its parts of all weights, and what the
    lookup has found, to the devices whose part of the batch it is."""
    found = batch.lookup.shape
    widest = found.element_type.byte_width if found is not None else 4
    weights = {
        one: shape.element_count * min(shape.element_type.byte_width, widest)
        for one in context.arguments
        if (shape := one.shape) is not None and shape.is_array and shape.rank > 1
        if shape.element_type.is_floating and feeds_product(one)
    }
    is_training = has_backward_pass(context) or not weights.keys().isdisjoint(_trained(context))
    others = batch.devices - 1
    exchanged = (size_of(found) * others // batch.devices) if found is not None else 0
    gathered = round(sum(weights.values()) * others)
    return _TRAINING * gathered + 2 * exchanged if is_training else gathered + exchanged


def _trained(context: Context) -> Iterator[Instruction]:
    """Yields the arguments of which each element gets a new value: not a cache, which inference updates in part."""
    for one in updates_of(context, with_aliased=True):
        if not one.is_in_place:
            yield one.parameter


def _name(batch: WholeBatch) -> str:
    name = program_name(batch.argument)
    return f"the batch of {name}" if name else "the batch"


def _writer(one: Instruction, context: Context) -> Instruction:
    """The operation that runs as a whole: the fusion around an instruction, if any."""
    caller = context.graph.caller(one.computation)
    return caller if caller is not None and caller.opcode == "fusion" else one


def _constraint(batch: WholeBatch) -> str:
    """The Python that is to be written, with the axes where the groups of the gathered indices name them."""
    groups, indices = batch.gather.groups, batch.argument.shape
    axes = [one.name for one in groups.axes] if isinstance(groups, MeshAxesReplicaGroupList) else []
    if not axes or indices is None or batch.dimension is None or any(map(is_invented, axes)):
        return "with_sharding_constraint to the sharding of the indices, with None for the features,"
    spec = ["None"] * (indices.rank + 1)
    spec[batch.dimension] = repr(axes[0]) if len(axes) == 1 else f"({', '.join(map(repr, axes))})"
    return f"x = with_sharding_constraint(x, P({', '.join(spec)}))"
