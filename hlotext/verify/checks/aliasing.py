"""Shared buffers: parameters and outputs of the module, operands and results of an instruction."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.aliasing import (
    BufferDonorConfig,
    InputOutputAlias,
    InputOutputAliasConfig,
    OutputOperandAlias,
    OutputToOperandAliasing,
    ShapeIndex,
)
from hlotext.ir.values.enums import AliasKind
from hlotext.ir.values.shape import ComputationLayout, Shape
from hlotext.layout import LayoutError, allocated_bytes, shapes_equal
from hlotext.layout.errors import shorten
from hlotext.semantics.infer.shapes import compatible
from hlotext.verify.checks.passing import SPACE, TAIL, TILES, equal_but_for
from hlotext.verify.facts import Facts
from hlotext.verify.findings import Findings
from hlotext.verify.problems import Problem
from hlotext.verify.words import index_text, plural

_SKIPPED = "xla_skip_custom_call_alias_shape_check"
"""Frontend attribute of a custom call whose aliased shapes XLA does not compare."""


# ---- the module's header


def check_header(module: Module, facts: Facts, findings: Findings) -> None:
    """`entry_computation_layout=`, `input_output_alias=` and `buffer_donor=` against the entry computation."""
    if not module._computations or not len(module.entry):
        return
    entry = module.entry
    parameters, result = tuple(p.shape for p in entry.parameters), entry.root.shape
    stated = module.attributes.get("entry_computation_layout")
    if isinstance(stated, ComputationLayout):
        _check_entry_layout(module, stated, facts, findings)
        parameters, result = stated.parameter_shapes, stated.result_shape
    aliases = module.attributes.get("input_output_alias")
    aliased: set[tuple[int, ShapeIndex]] = set()
    if isinstance(aliases, InputOutputAliasConfig):
        aliased = _check_aliases(aliases, parameters, result, facts, findings)
    donors = module.attributes.get("buffer_donor")
    if isinstance(donors, BufferDonorConfig):
        _check_donors(donors, parameters, aliased, findings)


def _check_entry_layout(module: Module, stated: ComputationLayout, facts: Facts, findings: Findings) -> None:
    """`ShapeVerifier::VerifyEntryComputationLayout`."""
    parameters = module.entry.parameters
    if len(stated.parameter_shapes) != len(parameters):
        findings.in_header(
            "entry_computation_layout", "V607",
            f"entry_computation_layout has {plural(len(stated.parameter_shapes), 'parameter')}, "
            f"but {module.entry.name} takes {len(parameters)}",
        )  # fmt: skip
        return
    nodes = [*parameters, module.entry.root]
    for number, (node, shape) in enumerate(
        zip(nodes, (*stated.parameter_shapes, stated.result_shape), strict=True)
    ):
        if node.shape is None or _same_value(shape, node.shape, facts):
            continue
        what = f"parameter {number}" if number < len(parameters) else "the result"
        findings.at(
            node, "V607",
            f"{what} is {shorten(str(node.shape))}, but {shorten(str(shape))} in entry_computation_layout",
        )  # fmt: skip


def _same_value(stated: Shape, shape: Shape, facts: Facts) -> bool:
    """Equal but for tiles, padding and memory space, which the header of TPU text may lack; else compatible."""
    if not facts.layout_sensitive:
        return compatible(stated, shape)
    return equal_but_for(stated, shape, frozenset({TILES, SPACE, TAIL}))


def _part(shape: Shape | None, index: ShapeIndex) -> Shape | None:
    """A part of a shape; None where there is none."""
    try:
        return None if shape is None else shape.subshape(index)
    except IndexError:
        return None


def _check_aliases(
    config: InputOutputAliasConfig,
    parameters: tuple[Shape | None, ...],
    result: Shape | None,
    facts: Facts,
    findings: Findings,
) -> set[tuple[int, ShapeIndex]]:
    """`HloInputOutputAliasConfig::Verify`; gives the parameters, or parts of them, that are aliased."""
    aliased: set[tuple[int, ShapeIndex]] = set()
    for alias in config.entries:
        for code, message in _alias_problems(alias, parameters, result, facts):
            findings.in_header("input_output_alias", code, message)
        place = alias.parameter_number, alias.parameter_index
        if place in aliased:
            findings.in_header(
                "input_output_alias", "V604",
                f"parameter {place[0]} at {index_text(place[1])} is aliased by more than one output",
            )  # fmt: skip
        aliased.add(place)
    return aliased


def _alias_problems(
    alias: InputOutputAlias, parameters: tuple[Shape | None, ...], result: Shape | None, facts: Facts
) -> Iterator[tuple[str, str]]:
    number = alias.parameter_number
    if not 0 <= number < len(parameters):
        yield (
            "V601",
            f"{alias}: the entry computation has {plural(len(parameters), 'parameter')}, so not number {number}",
        )
        return
    whole = parameters[number]
    source, target = _part(whole, alias.parameter_index), _part(result, alias.output_index)
    if source is None and whole is not None:
        index = index_text(alias.parameter_index)
        yield "V601", f"{alias}: parameter {number}, {shorten(str(whole))}, has no part {index}"
    if target is None and result is not None:
        yield (
            "V601",
            f"{alias}: the result, {shorten(str(result))}, has no part {index_text(alias.output_index)}",
        )
    if source is None or target is None:
        return
    for shape in (source, target):
        if not shape.is_array:
            yield "V602", f"{alias}: {shorten(str(shape))} is no array"
            return
    same = shapes_equal if facts.layout_sensitive else compatible
    if alias.kind is AliasKind.MUST and not same(source, target):
        yield "V603", f"{alias}: parameter {number} is {source}, but the result {target}"
    elif facts.layout_sensitive and not _same_bytes(source, target):
        yield "V603", f"{alias}: {source} and {target} do not take the same number of bytes"


def _same_bytes(a: Shape, b: Shape) -> bool:
    try:
        return shapes_equal(a, b) or allocated_bytes(a) == allocated_bytes(b)
    except LayoutError:
        return True  # has a finding of its own


def _check_donors(
    config: BufferDonorConfig,
    parameters: tuple[Shape | None, ...],
    aliased: set[tuple[int, ShapeIndex]],
    findings: Findings,
) -> None:
    """`HloBufferDonorConfig::Verify`."""
    for donor in config.entries:
        number, index = donor.param_number, donor.param_index
        if not 0 <= number < len(parameters):
            message = f"{donor}: the entry computation has {plural(len(parameters), 'parameter')}, so not number {number}"
            findings.in_header("buffer_donor", "V605", message)
            continue
        whole = parameters[number]
        part = _part(whole, index)
        if whole is not None and (part is None or not part.is_array):
            message = f"{donor}: {index_text(index)} is no array in parameter {number}, {shorten(str(whole))}"
            findings.in_header("buffer_donor", "V605", message)
        if (number, index) in aliased:
            message = f"parameter {number} at {index_text(index)} is donated, and aliased by an output"
            findings.in_header("buffer_donor", "V606", message)


# ---- output_to_operand_aliasing


def check_operands(instruction: Instruction, facts: Facts) -> Iterator[Problem]:
    """`output_to_operand_aliasing=`: operand and parts exist, and are the same shape.

    `ShapeVerifier::HandleFusion`, `HandleCustomCall`, `CheckAsyncOpAliasConfig`.
    """
    config = instruction.attributes.get("output_to_operand_aliasing")
    if not isinstance(config, OutputToOperandAliasing) or instruction.shape is None:
        return
    name = "output_to_operand_aliasing"
    for alias in config.aliases:
        number = alias.operand_index
        if not 0 <= number < len(instruction.operands):
            count = plural(len(instruction.operands), "operand")
            message = f"{alias}: {instruction.opcode} has {count}, so not number {number}"
            yield Problem("V608", message, name)
            continue
        whole = instruction.operands[number].shape
        if whole is None:
            continue
        source, target = (
            _part(whole, alias.operand_shape_index),
            _part(instruction.shape, alias.output_shape_index),
        )
        if source is None:
            index = index_text(alias.operand_shape_index)
            yield Problem("V608", f"{alias}: operand {number} has no part {index}", name, related=(number,))
        if target is None:
            yield Problem(
                "V608", f"{alias}: the result has no part {index_text(alias.output_shape_index)}", name
            )
        if source is not None and target is not None and _SKIPPED not in instruction.frontend_attributes:
            yield from _shared(instruction, alias, source, target, facts)


def _shared(
    instruction: Instruction, alias: OutputOperandAlias, source: Shape, target: Shape, facts: Facts
) -> Iterator[Problem]:
    """Both sides of one shared buffer. A buffer `b(x)` and its array `x` count as the same."""
    source, target = (s.tuple_shapes[0] if s.is_buffer else s for s in (source, target))
    ignored: set[str] = set()
    if facts.in_fusion and instruction.opcode == "fusion":
        ignored = {TILES, SPACE}
    elif instruction.opcode == "custom-call" and source.is_array and set(source.dimensions) <= {1}:
        ignored = {SPACE}
    same = (
        equal_but_for(source, target, frozenset(ignored))
        if facts.layout_sensitive
        else compatible(source, target)
    )
    if not same:
        yield Problem(
            "V609", f"{alias}: operand {alias.operand_index} is {shorten(str(source))}, "
            f"but the result is {shorten(str(target))}",
            "output_to_operand_aliasing", related=(alias.operand_index,),
        )  # fmt: skip
