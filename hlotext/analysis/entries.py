"""The arguments and results of a module, array by array: name, layout, and aliasing."""

from __future__ import annotations

import attrs

from hlotext.analysis.shards import Shard, argument_shards, shards_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.aliasing import BufferDonor, InputOutputAlias


@attrs.frozen
class EntryArray:
    """An array among the arguments or results of a module."""

    number: int
    """For an argument, the parameter number; for a result, its position among the arrays."""
    index: tuple[int, ...]
    """Shape index of the array in the parameter or result."""
    label: str
    """Name in the program (`op_name` of a parameter: JAX's parameter path), else the instruction's name."""
    shape: str
    """Shape without layout; of one device if the module is partitioned."""
    layout: str
    """Layout; empty if the text has none."""
    sharding: str
    """Sharding; empty if the text has none."""
    device_bytes: int | None
    """Bytes on one device; None if unknown."""
    global_bytes: int | None
    """Bytes of the whole array; None if unknown, or if the module is already partitioned."""
    is_donated: bool
    """True for a donated argument: aliased, or listed in `buffer_donor`."""
    aliased_with: tuple[int, ...] | None
    """For an argument, the index of the result in its buffer; for a result, the parameter number and the index in it."""


def program_name(instruction: Instruction) -> str:
    """Returns the name of an argument in the program, such as `p[0]['w']` for `param.2`; empty for others or if
    unknown.
    """
    home, metadata = instruction.computation, instruction.metadata
    is_argument = instruction.opcode == "parameter" and home is not None and home.is_entry
    return metadata.op_name if is_argument and metadata is not None else ""


def arguments(module: Module) -> tuple[EntryArray, ...]:
    """Returns the arrays of the arguments, in order, with donations from the header (`input_output_alias`,
    `buffer_donor`).
    """
    aliases = {(one.parameter_number, one.parameter_index): one.output_index for one in aliases_of(module)}
    given = {(one.param_number, one.param_index) for one in donors_of(module)}
    found = []
    for shard in argument_shards(module):
        number = shard.instruction.parameter_number or 0
        place = (number, shard.index)
        label = (program_name(shard.instruction) or shard.instruction.name) + "".join(
            f"[{part}]" for part in shard.index
        )
        found.append(
            _entry(shard, number, shard.index, label, place in aliases or place in given, aliases.get(place))
        )
    return tuple(found)


def only_counts_differ(old: object, new: object) -> bool:
    """Returns True if two header lists with an entry per argument differ only in length."""
    if not (isinstance(old, tuple) and isinstance(new, tuple)) or len(old) == len(new):
        return False
    return set(map(str, old)) == set(map(str, new))


def results(module: Module) -> tuple[EntryArray, ...]:
    """Returns the arrays of the result, in order."""
    aliases = {one.output_index: (one.parameter_number, *one.parameter_index) for one in aliases_of(module)}
    root = module.entry.root
    if root.sharding is None and root.opcode == "tuple":
        parts = [
            ((n, *s.index), s) for n, operand in enumerate(root.operands) for s in shards_of(module, operand)
        ]
    else:
        parts = [(shard.index, shard) for shard in shards_of(module, root)]
    return tuple(
        _entry(shard, number, index, shard.instruction.name, False, aliases.get(index))
        for number, (index, shard) in enumerate(parts)
    )


def _entry(
    shard: Shard,
    number: int,
    index: tuple[int, ...],
    label: str,
    is_donated: bool,
    aliased: tuple[int, ...] | None,
) -> EntryArray:
    shape = shard.shard_shape if shard.shape is None else shard.shape
    plain = shape.text_without_layout()
    return EntryArray(
        number,
        index,
        label,
        plain,
        str(shape).removeprefix(plain),
        "" if shard.sharding is None else str(shard.sharding),
        shard.device_bytes,
        shard.global_bytes,
        is_donated,
        aliased,
    )


def aliases_of(module: Module) -> tuple[InputOutputAlias, ...]:
    """Returns the aliases of results to arguments (`input_output_alias` in the header)."""
    config = module.attributes.get("input_output_alias")
    return tuple(config.entries) if config is not None else ()


def donors_of(module: Module) -> tuple[BufferDonor, ...]:
    """Returns the arguments whose buffers any result may reuse (`buffer_donor` in the header)."""
    config = module.attributes.get("buffer_donor")
    return tuple(config.entries) if config is not None else ()
