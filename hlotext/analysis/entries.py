"""The arguments and results of a module, array by array: name, layout, and aliasing."""

from __future__ import annotations

import attrs

from hlotext.analysis.shards import Shard, argument_shards, shards_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.aliasing import BufferDonor, InputOutputAlias


@attrs.frozen
class EntryArray:
    """One array that goes into a module or comes out of it."""

    number: int
    """Of an argument the parameter's number; of a result its place among the arrays."""
    index: tuple[int, ...]
    """Shape index of the array in the parameter or result."""
    label: str
    """Name in the program (`op_name` of a parameter: JAX's parameter path), else the instruction's name."""
    shape: str
    """As one device has it where the module is partitioned, without the layout."""
    layout: str
    """Empty where the text has none."""
    sharding: str
    """Empty where the text has none."""
    device_bytes: int | None
    global_bytes: int | None
    """None if shapes are those of one device, or what a device holds is not known."""
    is_donated: bool
    """True for a donated argument: aliased, or listed in `buffer_donor`."""
    aliased_with: tuple[int, ...] | None
    """Of an argument the index of the result in its memory, of a result the parameter's number and the index there."""


def program_name(instruction: Instruction) -> str:
    """The program's name of an argument of a module, `p[0]['w']` for `param.2`; "" of other operations, and without one."""
    home, metadata = instruction.computation, instruction.metadata
    is_argument = instruction.opcode == "parameter" and home is not None and home.is_entry
    return metadata.op_name if is_argument and metadata is not None else ""


def arguments(module: Module) -> tuple[EntryArray, ...]:
    """The arrays of the arguments, in order. `input_output_alias` and `buffer_donor` of the header list the donated ones."""
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
    """True if two lists of a header, with an entry per argument, differ only because there are more or fewer arguments."""
    if not (isinstance(old, tuple) and isinstance(new, tuple)) or len(old) == len(new):
        return False
    return set(map(str, old)) == set(map(str, new))


def results(module: Module) -> tuple[EntryArray, ...]:
    """The arrays of the result, in order."""
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
    """The results that are written over arguments (`input_output_alias` of the header)."""
    config = module.attributes.get("input_output_alias")
    return tuple(config.entries) if config is not None else ()


def donors_of(module: Module) -> tuple[BufferDonor, ...]:
    """The arguments that any result may be written over (`buffer_donor` of the header)."""
    config = module.attributes.get("buffer_donor")
    return tuple(config.entries) if config is not None else ()
