"""The module's header line and its stack-frame tables, as XLA writes them."""

from __future__ import annotations

import re

import attrs

from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.attributes import HEADER_ATTRIBUTES
from hlotext.ir.values.frames import StackFrameIndex
from hlotext.ir.values.print_options import PrintOptions
from hlotext.ir.values.raw_value import RawValue, value_text
from hlotext.ir.values.shape import ComputationLayout, Shape
from hlotext.ir.values.text import quote

_ENTRY_LINE = re.compile(r"(?m)^(?=[^\n{}])")
"""The lines of a recovery table that are indented with the module: all but the blank ones and its braces."""


def header_text(module: Module, options: PrintOptions) -> str:
    """Returns the line `HloModule NAME, ...`, without line end."""
    values = dict(module._attributes)
    if "entry_computation_layout" not in values and module.computations:
        values["entry_computation_layout"] = inferred_layout(module)
    out = [f"HloModule {module.name if options.print_ids else ''}"]
    for name in dict.fromkeys((*HEADER_ATTRIBUTES, *values)):
        value = values.get(name)
        if value is None or (name in HEADER_ATTRIBUTES and value == HEADER_ATTRIBUTES[name].default):
            continue
        if isinstance(value, RawValue):
            out.append(f"{name}={value}")
            continue
        if hasattr(value, "canonical"):
            value = value.canonical()
        text = value_text(value)
        if name == "origin_recovery_table" and options.indent_amount:
            text = _ENTRY_LINE.sub("  " * options.indent_amount, text)
        if name == "origin_recovery_table" and "debug_attributes" not in values:
            text += "\n"
        if text.rstrip() not in ("{}", "{  }", "{\n}"):
            separator = ",\n" if name == "debug_attributes" else ", "
            out.append(f"{separator}{name}={text}"[2:] if separator == ", " else f"\n{name}={text}")
    return ", ".join(out).replace(", \n", ",\n")


def inferred_layout(module: Module) -> ComputationLayout:
    """Returns the entry's layout as XLA infers it from the parameters and the root if the header has none.

    Layouts are descending if the header has one of the attributes for which XLA's parser creates a configuration of its
    own (`HloParserImpl::ParseHloModule`) before layouts are assigned.
    """
    entry, header = module.entry, module._attributes
    is_own = header.get("alias_passthrough_params") is True or any(
        header.get(name, default) != default
        for name, default in (
            ("num_partitions", 1),
            ("replica_count", 1),
            ("allow_spmd_sharding_propagation_to_parameters", ()),
            ("allow_spmd_sharding_propagation_to_output", ()),
        )
    )
    filled = _descending if is_own else Shape.with_default_layout
    parameters = tuple(filled(p.shape) for p in entry.parameters if p.shape is not None)
    return ComputationLayout(parameters, filled(entry.shape or Shape.tuple(())))


def _descending(shape: Shape) -> Shape:
    """The shape with its dimensions in descending order, and what else its layouts say."""
    if shape.tuple_shapes:
        return attrs.evolve(shape, tuple_shapes=tuple(map(_descending, shape.tuple_shapes)))
    if shape.layout is None:
        return shape.with_default_layout()
    order = tuple(range(len(shape.layout.minor_to_major) - 1, -1, -1))
    return shape.with_layout(attrs.evolve(shape.layout, minor_to_major=order))


def stack_frame_tables(index: StackFrameIndex) -> str:
    """Returns the text of the four stack-frame tables, with the blank line after the last one."""
    sections = (
        ("FileNames", [quote(name) for name in index.file_names]),
        ("FunctionNames", [quote(name) for name in index.function_names]),
        ("FileLocations", [str(row) for row in index.file_locations]),
        ("StackFrames", [str(row) for row in index.stack_frames]),
    )
    out = []
    for name, rows in sections:
        lines = "".join(f"{number} {row}\n" for number, row in enumerate(rows, 1))
        out.append(f"{name}\n{lines}")
    out += [f"{table}\n" for table in index.other_tables]
    return "\n".join(out)
