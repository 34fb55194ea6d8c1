"""XLA's conditions on text that its reader enforces: names, counts, attributes, signatures, aliases.

Nothing here judges what instructions compute; that is the verifier's task.
"""

from __future__ import annotations

from typing import Any

from hlotext.ir import opcodes
from hlotext.ir.aliasing import InputOutputAliasConfig
from hlotext.ir.async_ops import ROLES
from hlotext.ir.attributes import RawValue
from hlotext.ir.bad_instruction import BadInstruction
from hlotext.ir.computation import Computation
from hlotext.ir.instruction import Form, Instruction
from hlotext.ir.memo import memoised
from hlotext.ir.module import Module
from hlotext.ir.opcode import Count
from hlotext.ir.shape import UNBOUNDED_SIZE, Shape
from hlotext.ir.types import ELEMENT_TYPES
from hlotext.syntax.attribute_rules import attribute_rule
from hlotext.syntax.limits import MAX_UPDATES
from hlotext.syntax.reporter import Reporter, shown

# ---- one instruction


@memoised(1 << 14)
def attributes_fit(opcode: str, names: tuple[str, ...]) -> bool:
    """Whether an opcode takes exactly such attributes: all allowed and the required ones there. Memoised."""
    row = opcodes.opcode(opcode)
    if row is None:
        return False
    allowed = opcodes.allowed_attributes(row)
    return (
        all(name in allowed for name in names)
        and all(
            name in names for name, use in allowed.items() if use.required and not use.optional_for_scalar
        )
        and (
            not row.alternatives or any(all(name in names for name in names_) for names_ in row.alternatives)
        )
        and ("use_global_device_ids" not in names or "channel_id" in names)
    )


def opcode(reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]) -> None:
    """Is the opcode known, are its attributes allowed and complete, is the number of operands right?"""
    name = instruction.opcode
    row = opcodes.opcode(name)
    end = position + len(name)
    if row is None:
        if opcodes.async_wrapped(name) is None:
            reporter.note(
                "X201",
                f"opcode {name} is unknown to this release",
                position,
                end,
                reporter.did_you_mean(name, opcodes.OPCODES),
            )
        return
    if not row.arity.accepts(len(instruction.operands)):
        reporter.error(
            "X108", f"{name} takes {row.arity} operands, but has {len(instruction.operands)}", position, end
        )  # fmt: skip
    if not attributes_fit(name, tuple(instruction._attributes)):
        _attributes(reporter, instruction, row, position, places)


def _attributes(
    reporter: Reporter, instruction: Instruction, row: Any, position: int, places: dict[str, int]
) -> None:
    """Says which attribute is wrong."""
    allowed = opcodes.allowed_attributes(row)
    given = instruction._attributes
    end = position + len(row.name)
    for name in given:
        if name in allowed or isinstance(given[name], RawValue):
            continue
        place = places.get(name, position)
        if attribute_rule(name) is None:
            continue
        reporter.error(
            "X109", f"{row.name} has no attribute {name}", place, place + len(name),
            help=reporter.did_you_mean(name, allowed) or f"it takes {', '.join(sorted(allowed))}",
        )  # fmt: skip
    for name, use in sorted(allowed.items()):
        scalar = bool(instruction.operands) and _is_scalar(instruction.operands[0].shape)
        if use.required and name not in given and not (use.optional_for_scalar and scalar):
            reporter.error("X110", f"{row.name} needs the attribute {name}", position, end)
    if row.alternatives and not any(all(name in given for name in names) for names in row.alternatives):
        choice = " or ".join(" and ".join(names) for names in row.alternatives)
        reporter.error("X110", f"{row.name} needs {choice}", position, end)
    # XLA demands the channel only where the group's meaning depends on it; an all-gather goes without.
    if (
        given.get("use_global_device_ids") is True
        and "channel_id" not in given
        and not row.name.startswith("all-gather")
    ):
        reporter.error(
            "X112", "use_global_device_ids=true needs a channel_id", places.get("use_global_device_ids", position)
        )  # fmt: skip


def raw_value(reporter: Reporter, instruction: Instruction, name: str, value: RawValue) -> None:
    """Notes a value that was kept verbatim."""
    row = opcodes.opcode(instruction.opcode)
    start = instruction._start
    if attribute_rule(name) is not None:
        reporter.note("X204", f"{name}={value} is unknown to this release", start)
    else:
        known = opcodes.allowed_attributes(row) if row is not None else ()
        reporter.note(
            "X203",
            f"attribute {name} is unknown to this release",
            start,
            help=reporter.did_you_mean(name, known),
        )


def instruction(reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]) -> None:
    """Conditions of single opcodes on shapes, counts and attribute values."""
    check = BY_OPCODE.get(instruction.opcode)
    if check is not None:
        check(reporter, instruction, position, places)
    replication = instruction._attributes.get("parameter_replication")
    if replication is not None and instruction.shape is not None:
        leaves = sum(1 for _ in instruction.shape.leaves())
        if len(replication) != leaves:
            reporter.error(
                "X112", f"parameter_replication has {len(replication)} entries for {leaves} arrays",
                places.get("parameter_replication", position),
            )  # fmt: skip


def _special_count(
    reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]
) -> None:
    """The operand counts that depend on more than the opcode."""
    row = opcodes.OPCODES[instruction.opcode]
    have = len(instruction.operands)
    want = _EXPECTED_COUNT[row.arity.count](instruction)
    if want is not None and have not in want:
        numbers = " or ".join(map(str, want))
        reporter.error(
            "X108", f"{row.name} takes {numbers} operands here ({row.arity.count.value}), but has {have}",
            position, position + len(row.name),
        )  # fmt: skip


def _branches(instruction: Instruction) -> tuple[int, ...] | None:
    return (1 + len(instruction.called_computations),) if instruction.called_computations else None


def _result_dimensions(instruction: Instruction) -> tuple[int, ...] | None:
    return (1 + instruction.shape.rank,) if instruction.shape is not None else None


def _indices(instruction: Instruction) -> tuple[int, ...] | None:
    operands = instruction.operands
    first = 2 if instruction.opcode == "dynamic-update-slice" else 1
    shape = operands[0].shape if operands else None
    return (first + shape.rank, first + 1) if shape is not None and len(operands) >= first else None


def _called_parameters(instruction: Instruction) -> tuple[int, ...] | None:
    called = instruction.called_computations
    return (len(called[0].parameters),) if called else None


def _tuple_elements(instruction: Instruction) -> tuple[int, ...] | None:
    shape = instruction.shape
    return (len(shape.tuple_shapes),) if shape is not None and shape.is_tuple else None


def _four_with_slices(instruction: Instruction) -> tuple[int, ...] | None:
    return (4,) if instruction._attributes.get("slice_sizes") else None


_EXPECTED_COUNT: dict[Count, Any] = {
    Count.BRANCHES: _branches,
    Count.RESULT_DIMENSIONS: _result_dimensions,
    Count.INDICES: _indices,
    Count.CALLED_PARAMETERS: _called_parameters,
    Count.TUPLE_ELEMENTS: _tuple_elements,
    Count.FOUR_WITH_SLICES: _four_with_slices,
}


def _tuple(reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]) -> None:
    if instruction.shape is not None and not instruction.shape.is_tuple:
        reporter.error(
            "X112", f"the result of tuple is a tuple, not {shown(instruction.shape)}", position, position + 5
        )
    _special_count(reporter, instruction, position, places)


def _reshape(reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]) -> None:
    """XLA's reader aborts on a reshape that changes the number of elements, so that is an error here too."""
    before = instruction.operands[0].shape if instruction.operands else None
    after = instruction.shape
    if before is None or after is None or not (before.is_array and after.is_array):
        return
    if UNBOUNDED_SIZE in before.dimensions + after.dimensions or before.element_count == after.element_count:
        return
    if before.is_static and after.is_static:
        reporter.error(
            "X112", f"reshape from {before.element_count} elements to {after.element_count}", position, position + 7
        )  # fmt: skip


def _conditional(reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]) -> None:
    """Two computations for a pred, a list for an s32; the other form is refused."""
    shape = instruction.operands[0].shape if instruction.operands else None
    if shape is not None and shape.is_array and not shape.rank:
        by_list = "branch_computations" in instruction._attributes
        if str(shape.element_type) == "pred" and by_list:
            reporter.error(
                "X112", "a conditional on a pred names true_computation and false_computation", position
            )
        elif str(shape.element_type) == "s32" and not by_list:
            reporter.error("X112", "a conditional on an s32 names branch_computations", position)
    _special_count(reporter, instruction, position, places)


def _async(reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]) -> None:
    """The rules of async-start, async-update and async-done."""
    end = position + len(instruction.opcode)
    shape = instruction.shape
    if instruction.opcode == "async-start":
        if shape is not None and not (
            shape.is_tuple and len(shape.tuple_shapes) >= 2 and shape.tuple_shapes[0].is_tuple
        ):
            reporter.error(
                "X120", "the result of async-start is a tuple of two or more, the first of them a tuple", position, end
            )  # fmt: skip
        return
    operand = instruction.operands[0] if instruction.operands else None
    if operand is not None and (operand.form is Form.IMPLICIT or isinstance(operand, BadInstruction)):
        return  # a line pasted from a dump, or a broken one: what began the operation is not there to be judged
    role = ROLES.get(operand.opcode) if operand is not None else None
    if operand is None or not operand.opcode.startswith("async-") or role == "done":
        reporter.error(
            "X120", f"the operand of {instruction.opcode} is an async-start or async-update", position, end
        )
        return
    if instruction.opcode == "async-update" and shape is not None and operand.shape is not None:
        _same_shape(reporter, operand.shape, shape, position, end)
    start, length = instruction, 0
    while start.opcode != "async-start" and start.operands:
        start, length = start.operands[0], length + 1
        if length > MAX_UPDATES:
            reporter.error(
                "X124", f"more than {MAX_UPDATES} updates of one asynchronous operation", position, end
            )
            return
    for name, default in (("calls", None), ("async_execution_thread", "main")):
        if name in instruction._attributes:
            mine, theirs = instruction._attributes[name], start._attributes.get(name, default)
            if mine != theirs and (
                name != "calls" or getattr(mine, "name", mine) != getattr(theirs, "name", theirs)
            ):
                reporter.error(
                    "X120", f"{name} differs from that of {start.name}", places.get(name, position)
                )


def _same_shape(reporter: Reporter, before: Shape, after: Shape, position: int, end: int) -> None:
    if before.text_without_layout() != after.text_without_layout():
        reporter.error("X120", f"async-update changes {shown(before)} to {shown(after)}", position, end)


def _done(reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]) -> None:
    """send-done and recv-done repeat the channel of what they finish."""
    operand = instruction.operands[0] if instruction.operands else None
    if operand is None or operand.opcode != instruction.opcode.removesuffix("-done"):
        return
    mine, theirs = instruction._attributes.get("channel_id"), operand._attributes.get("channel_id")
    if mine != theirs:
        place = places.get("channel_id", position)
        reporter.error("X120", f"channel_id is {mine}, but that of {operand.name} is {theirs}", place)


def _one_dimension(
    reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]
) -> None:
    """Opcodes whose `dimensions` is one number in braces."""
    dimensions = instruction._attributes.get("dimensions")
    if isinstance(dimensions, tuple) and len(dimensions) != 1:
        place = places.get("dimensions", position)
        reporter.error(
            "X112", f"{instruction.opcode} takes one number in dimensions, but has {len(dimensions)}", place, place + 10
        )  # fmt: skip
    if opcodes.OPCODES[instruction.opcode].arity.count in _EXPECTED_COUNT:
        _special_count(reporter, instruction, position, places)


def _custom_call(reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]) -> None:
    constraints = instruction._attributes.get("operand_layout_constraints")
    if constraints is None:
        return
    place = places.get("operand_layout_constraints", position)
    if len(constraints) != len(instruction.operands):
        message = f"operand_layout_constraints has {len(constraints)} shapes for {len(instruction.operands)} operands"
        reporter.error("X112", message, place)
        return
    for shape, operand in zip(constraints, instruction.operands, strict=True):
        if operand.shape is not None and not compatible(shape, operand.shape):
            reporter.error(
                "X112",
                f"layout constraint {shown(shape)} does not fit operand {shown(operand.name)}, {shown(operand.shape)}",
                place,
            )


BY_OPCODE: dict[str, Any] = {
    row.name: _special_count for row in opcodes.OPCODES.values() if row.arity.count in _EXPECTED_COUNT
} | {
    "tuple": _tuple,
    "reshape": _reshape,
    "conditional": _conditional,
    "async-start": _async,
    "async-update": _async,
    "async-done": _async,
    "send-done": _done,
    "recv-done": _done,
    "concatenate": _one_dimension,
    "sort": _one_dimension,
    "all-to-all": _one_dimension,
    "get-dimension-size": _one_dimension,
    "set-dimension-size": _one_dimension,
    "scan": _one_dimension,
    "custom-call": _custom_call,
}  # fmt: skip


def operand_shape(reporter: Reporter, operand: Instruction, declared: Shape, position: int) -> None:
    """A shape written before an operand must fit the operand's definition; layouts do not matter."""
    if operand.shape is not None and declared != operand.shape and not compatible(declared, operand.shape):
        reporter.error(
            "X114", f"operand {shown(operand.name)} is declared {shown(declared)}, but is {shown(operand.shape)}", position,
            position + len(str(declared)),
        )  # fmt: skip


def compatible(a: Shape, b: Shape) -> bool:
    """XLA's `ShapeUtil::Compatible`: equal but for layouts and dynamic marks; `?` fits any size."""
    stack = [(a, b)]
    while stack:
        a, b = stack.pop()
        if a.element_type is not b.element_type or len(a.tuple_shapes) != len(b.tuple_shapes):
            return False
        if len(a.dimensions) != len(b.dimensions):
            return False
        if any(
            x != y and UNBOUNDED_SIZE not in (x, y) for x, y in zip(a.dimensions, b.dimensions, strict=True)
        ):
            return False
        stack.extend(zip(a.tuple_shapes, b.tuple_shapes, strict=True))
    return True


def _is_scalar(shape: Shape | None) -> bool:
    return shape is not None and shape.is_array and not shape.rank


# ---- one computation


def parameters(reporter: Reporter, computation: Computation) -> None:
    """Parameter numbers are 0, 1, 2, ... each once."""
    numbers: list[Any] = [i._argument for i in computation._instructions if i._opcode == "parameter"]
    if sorted(numbers) == list(range(len(numbers))):
        return
    found: dict[int, Instruction] = {}
    for instruction in computation._instructions:
        if instruction._opcode == "parameter":
            number = instruction.parameter_number or 0
            if number < 0:
                reporter.error(
                    "X115", f"a parameter's number must not be negative, but is {number}", instruction._start
                )
            elif number in found:
                reporter.error(
                    "X115", f"two parameters have the number {number}", instruction._start, instruction._end,
                    related=[("first one here", found[number]._start, found[number]._end)],
                )  # fmt: skip
            found[number] = instruction
    for number in range(len(found)):
        if number not in found:
            last = found[max(found)]
            reporter.error("X115", f"parameter({number}) is missing", last._start, last._end)
            return


def names(reporter: Reporter, computation: Computation, defined: dict[str, Instruction]) -> None:
    """No instruction may be called like an element type, nor start with `__` (except `__xla_`)."""
    # One join instead of a look at each name: this runs for every computation.
    if ELEMENT_TYPES.keys().isdisjoint(defined) and "\n__" not in "\n" + "\n".join(defined):
        return
    for name, instruction in defined.items():
        bad = name in ELEMENT_TYPES or (name.startswith("__") and not name.startswith("__xla_"))
        if bad and instruction._start >= 0:
            better = f"{name}_" if name in ELEMENT_TYPES else f"a{name[1:]}"
            reporter.error(
                "X116", f"an instruction may not be named {name}", instruction._start,
                instruction._start + len(name) + 1, help=f"rename it to {better}",
            )  # fmt: skip


def duplicates(reporter: Reporter, computation: Computation) -> None:
    """Every name is defined once."""
    found: dict[str, Instruction] = {}
    for instruction in computation._instructions:
        if isinstance(instruction, BadInstruction):
            continue
        first = found.setdefault(instruction.name, instruction)
        if first is not instruction:
            duplicate(reporter, instruction, first)


def duplicate(reporter: Reporter, instruction: Instruction, first: Instruction) -> None:
    """Says that a name is defined twice."""
    reporter.error(
        "X103", f"instruction {instruction.name} is defined twice in this computation",
        instruction._start, instruction._start + len(instruction.name) + 1,
        related=[("first defined here", first._start, first._start + len(first.name) + 1)],
    )  # fmt: skip


def signature(reporter: Reporter, computation: Computation, result: Shape, start: int, end: int) -> None:
    """The result in a computation's header must fit its root."""
    if not computation._instructions:
        return
    shape = computation.root.shape
    if shape is not None and shape != result and not compatible(shape, result):
        root = computation.root
        reporter.error(
            "X113",
            f"computation {computation.name} is said to return {shown(result)}, but its root {root.name} is {shown(shape)}",
            start, end, related=[("the root", root._start, root._end)],
        )  # fmt: skip


# ---- the module


def module(reporter: Reporter, module: Module) -> None:
    """The header against the entry computation; which computations async instructions may share."""
    if not module._computations:
        reporter.error("X122", "a module needs at least one computation", module._header_end)
        return
    _aliases(reporter, module)
    used: dict[Computation, Instruction] = {}
    for instruction in module.instructions():
        if instruction._opcode == "async-start":
            for callee in instruction.called_computations:
                if callee in used:
                    reporter.error(
                        "X120", f"computation {callee.name} is called by more than one async-start", instruction._start,
                        instruction._end, related=[("first called here", used[callee]._start, used[callee]._end)],
                    )  # fmt: skip
                used[callee] = instruction


def _aliases(reporter: Reporter, module: Module) -> None:
    aliases = module.attributes.get("input_output_alias")
    if (
        not isinstance(aliases, InputOutputAliasConfig)
        or not module.entry._instructions
        or module.entry.root.shape is None
    ):
        return
    result = module.entry.root.shape
    for alias in aliases.entries:
        try:
            result.subshape(alias.output_index)
        except IndexError as error:
            place = (
                module.source.text.find("input_output_alias=", module._start)
                if module.source is not None
                else 0
            )
            reporter.error("X119", f"input_output_alias: {error}", place, place + len("input_output_alias"))
