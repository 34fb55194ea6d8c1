"""Checks of the module header against the entry computation: shapes, aliases, donations."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.aliasing import (
    BufferDonorConfig,
    InputOutputAlias,
    InputOutputAliasConfig,
    ShapeIndex,
)
from hlotext.ir.values.enums import AliasKind
from hlotext.ir.values.shape import ComputationLayout, Shape
from hlotext.layout import LayoutError, allocated_bytes, shapes_equal
from hlotext.layout.errors import shorten
from hlotext.semantics.aliasing import part_of
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.forwarded_layouts import SPACE, TAIL, TILES, equal_but_for
from hlotext.semantics.infer.shapes import compatible
from hlotext.semantics.message_text import index_text, plural
from hlotext.semantics.problems import Problem

# ---- the module's header


Found = tuple[Instruction | None, Problem]
"""A problem, and the instruction that it is about; None: the header, and `Problem.where` its attribute."""


def header_problems(module: Module, facts: VerifierOptions, *, for_compiler: bool = False) -> Iterator[Found]:
    """Checks `entry_computation_layout=`, `input_output_alias=` and `buffer_donor=` against the entry computation.

    Before layout assignment, XLA's verifier accepts a `may-alias` of arrays of different sizes, which no compiler does.
    It is only reported with `for_compiler`.
    """
    if not module._computations or not len(module.entry):
        return
    entry = module.entry
    parameters, result = tuple(p.shape for p in entry.parameters), entry.root.shape
    stated = module.attributes.get("entry_computation_layout")
    if isinstance(stated, ComputationLayout):
        yield from _entry_layout(module, stated, facts)
        parameters, result = stated.parameter_shapes, stated.result_shape
    aliases = module.attributes.get("input_output_alias")
    aliased: set[tuple[int, ShapeIndex]] = set()
    if isinstance(aliases, InputOutputAliasConfig):
        aliased = {(alias.parameter_number, alias.parameter_index) for alias in aliases.entries}
        yield from _aliases(aliases, parameters, result, facts, for_compiler)
    donors = module.attributes.get("buffer_donor")
    if isinstance(donors, BufferDonorConfig):
        yield from _donors(donors, parameters, aliased)


def _entry_layout(module: Module, stated: ComputationLayout, facts: VerifierOptions) -> Iterator[Found]:
    """`ShapeVerifier::VerifyEntryComputationLayout`."""
    parameters = module.entry.parameters
    if len(stated.parameter_shapes) != len(parameters):
        count = plural(len(stated.parameter_shapes), "parameter")
        message = f"entry_computation_layout has {count}, but {module.entry.name} takes {len(parameters)}"
        yield None, Problem("V607", message, "entry_computation_layout")
        return
    nodes = [*parameters, module.entry.root]
    for number, (node, shape) in enumerate(
        zip(nodes, (*stated.parameter_shapes, stated.result_shape), strict=True)
    ):
        if node.shape is None or _same_value(shape, node.shape, facts):
            continue
        what = f"parameter {number}" if number < len(parameters) else "the result"
        message = (
            f"{what} is {shorten(str(node.shape))}, but {shorten(str(shape))} in entry_computation_layout"
        )
        yield node, Problem("V607", message)


def _same_value(stated: Shape, shape: Shape, facts: VerifierOptions) -> bool:
    """Equal but for tiles, padding and memory space, which the header of TPU text may lack; else compatible."""
    if not facts.layout_sensitive:
        return compatible(stated, shape)
    return equal_but_for(stated, shape, frozenset({TILES, SPACE, TAIL}))


def _aliases(
    config: InputOutputAliasConfig,
    parameters: tuple[Shape | None, ...],
    result: Shape | None,
    facts: VerifierOptions,
    for_compiler: bool,
) -> Iterator[Found]:
    """`HloInputOutputAliasConfig::Verify`."""
    aliased: set[tuple[int, ShapeIndex]] = set()
    for alias in config.entries:
        for code, message in _alias_problems(alias, parameters, result, facts, for_compiler):
            yield None, Problem(code, message, "input_output_alias")
        place = alias.parameter_number, alias.parameter_index
        if place in aliased:
            message = f"parameter {place[0]} at {index_text(place[1])} is aliased by more than one output"
            yield None, Problem("V604", message, "input_output_alias")
        aliased.add(place)


def _alias_problems(
    alias: InputOutputAlias,
    parameters: tuple[Shape | None, ...],
    result: Shape | None,
    facts: VerifierOptions,
    for_compiler: bool,
) -> Iterator[tuple[str, str]]:
    number = alias.parameter_number
    if not 0 <= number < len(parameters):
        yield (
            "V601",
            f"{alias}: no parameter {number}: the entry computation has {plural(len(parameters), 'parameter')}",
        )
        return
    whole = parameters[number]
    source, target = part_of(whole, alias.parameter_index), part_of(result, alias.output_index)
    if source is None and whole is not None:
        index = index_text(alias.parameter_index)
        yield "V601", f"{alias}: parameter {number}, {shorten(str(whole))}, has no element {index}"
    if target is None and result is not None:
        yield (
            "V601",
            f"{alias}: the result, {shorten(str(result))}, has no element {index_text(alias.output_index)}",
        )
    if source is None or target is None:
        return
    for shape in (source, target):
        if not shape.is_array:
            yield "V602", f"{alias}: {shorten(str(shape))} is not an array"
            return
    same = shapes_equal if facts.layout_sensitive else compatible
    if alias.kind is AliasKind.MUST and not same(source, target):
        yield "V603", f"{alias}: parameter {number} is {source}, but the result is {target}"
    elif (facts.layout_sensitive or for_compiler) and not _same_bytes(source, target):
        yield "V603", f"{alias}: {source} and {target} differ in size"


def _same_bytes(a: Shape, b: Shape) -> bool:
    try:
        return shapes_equal(a, b) or allocated_bytes(a) == allocated_bytes(b)
    except LayoutError:
        return True  # has a finding of its own


def _donors(
    config: BufferDonorConfig, parameters: tuple[Shape | None, ...], aliased: set[tuple[int, ShapeIndex]]
) -> Iterator[Found]:
    """`HloBufferDonorConfig::Verify`."""
    for donor in config.entries:
        number, index = donor.param_number, donor.param_index
        if not 0 <= number < len(parameters):
            message = f"{donor}: no parameter {number}: the entry computation has {plural(len(parameters), 'parameter')}"
            yield None, Problem("V605", message, "buffer_donor")
            continue
        whole = parameters[number]
        part = part_of(whole, index)
        if whole is not None and (part is None or not part.is_array):
            message = (
                f"{donor}: {index_text(index)} is not an array in parameter {number}, {shorten(str(whole))}"
            )
            yield None, Problem("V605", message, "buffer_donor")
        if (number, index) in aliased:
            message = f"parameter {number} at {index_text(index)} is both donated and aliased by an output"
            yield None, Problem("V606", message, "buffer_donor")


# ---- output_to_operand_aliasing
