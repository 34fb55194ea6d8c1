"""`hlotext shape`: the layout of an array in memory, and its shards."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import click

from hlotext.cli import shape_layout, shape_shard
from hlotext.cli.common import FORMAT, Unreadable, limit_option
from hlotext.ir.values.tile_assignment import MOST_DEVICES
from hlotext.ir.values.types import ELEMENT_TYPES, shape_meant

_LIMIT = 16
_MODULE = re.compile(rb"\bHloModule\b|^\s*ENTRY\b|^\s*(ROOT )?%?[\w.-]+ = |^.*\{\s*$|\0", re.MULTILINE)
"""Standard input that is a module, not a list of shapes."""

_BEGINS_SHAPE = re.compile(r"\s*(?:\(|[A-Za-z]\w*\s*[\[(]?[\d<?\])]|-\Z)")
_SHAPE = re.compile(r"[\[(-]")


@click.command()
@click.argument("what", nargs=-1, required=True, metavar="SHAPE...|SHAPE SHARDING|FILE")
@click.option(
    "--index",
    "indices",
    type=shape_layout.index_of,
    multiple=True,
    metavar="I,J,...",
    help="Byte offset of the element at this index.",
)
@click.option(
    "--offset",
    "offsets",
    type=shape_layout.offset_of,
    multiple=True,
    metavar="N",
    help="Index of the element at this byte offset, or padding.",
)
@click.option(
    "--slice",
    "slices",
    type=shape_layout.slice_of,
    multiple=True,
    metavar="[A:B],...",
    help="Contiguous runs of bytes of a slice: [0:8],[128:256].",
)
@click.option("--text", is_flag=True, help="Draw the layout as text.")
@click.option("--svg", metavar="FILE", help="Draw the layout, or the shards, as SVG; - for standard output.")
@click.option("--device", type=click.IntRange(min=0), metavar="N", help="The shard of device N.")
@click.option("--element", metavar="I,J,...", help="The devices that hold this element.")
@click.option(
    "--devices",
    "num_devices",
    type=click.IntRange(1, MOST_DEVICES),
    metavar="N",
    help="Number of devices, if the sharding does not determine it.",
)
@limit_option(_LIMIT)
@FORMAT
def command(
    what: tuple[str, ...],
    svg: str | None,
    device: int | None,
    element: str | None,
    num_devices: int | None,
    limit: int,
    output_format: str,
    **asked: Any,
) -> None:
    """Layout of each SHAPE in memory: tiles, bytes, padding, a layout with less padding, and byte offsets of
    elements.

    With a SHARDING: the shard of each device. With a FILE: the shards of a module's arguments, results and largest
    values; a partitioned module already has the shapes of one device. Devices are numbered by their position in the
    device assignment. Uneven shards are rounded up, as XLA allocates them. If SHAPE is -, shapes are read from
    standard input, one per line.

    \b
    Examples:
      hlotext shape 'bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}'
      hlotext shape 'f32[3,5]{1,0:T(2,2)}' --index 2,3 --offset 0x24
      hlotext shape 'f32[17,130]{1,0:T(8,128)}' --slice '[0:8],[128:130]'
      hlotext shape 'f32[3,5]{1,0:T(2,2)}' --text --svg tiles.svg
      hlotext shape 'f32[1024,512]' '{devices=[4,2]<=[8]}' --device 3
      hlotext shape module_0001.jit_step.before_optimizations.txt
      hlotext shape --format json - < shapes.txt | jq '.shapes[].padding_ratio'

    Exit status: 0 success, 1 a shape has no valid layout, or an index, offset or slice is out of range, 2 usage error
    or invalid shape.
    """
    questions = shape_layout.Questions(svg=svg, **asked)
    if len(what) == 1 and _is_module(what[0]):
        shape_shard.show_modules(what[0], limit, output_format)
    elif (
        len(what) == 2
        and not _is_sharding(what[1])
        and not _BEGINS_SHAPE.match(what[1])
        and _SHAPE.search(what[0])
    ):
        raise Unreadable(
            f"{what[1]} is neither a shape such as f32[8,128] nor a sharding such as {{devices=[4,2]<=[8]}}"
        )
    elif len(what) == 2 and _is_sharding(what[1]):
        wanted = shape_shard.Wanted(device, element, num_devices, svg)
        shape_shard.show_array(what[0], what[1], wanted, limit, output_format)
    elif device is not None or element is not None or num_devices is not None:
        raise click.UsageError("--device, --element and --devices need a SHAPE and its SHARDING")
    elif what[0] in ELEMENT_TYPES and all(word.isdecimal() for word in what[1:]):
        raise click.UsageError(f"the sizes go in brackets: {what[0]}[{','.join(what[1:])}]")
    elif len(what) == 1 and not _SHAPE.search(what[0]):
        meant = shape_meant(what[0])
        raise Unreadable(
            f"{what[0]} is neither a file nor a shape{'; ' + meant if meant else ' such as f32[8,128]'}"
        )
    else:
        shape_layout.show(what, questions, output_format)


def _is_sharding(text: str) -> bool:
    return text.lstrip().startswith("{")


def _is_module(text: str) -> bool:
    if text != "-":
        return os.path.exists(text)
    stream = sys.stdin.buffer
    if hasattr(stream, "peek"):
        head = stream.peek(4_096)
    else:
        head = stream.read(4_096)
        stream.seek(0)
    return _MODULE.search(head) is not None
