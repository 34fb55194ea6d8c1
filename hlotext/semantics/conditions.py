"""XLA's conditions on one instruction that its reader enforces: operand counts, attributes, a few shapes.

The readers, the verifier and edits ask them; nothing here judges what instructions compute.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hlotext.ir.caches import text_cache
from hlotext.ir.nodes.async_ops import async_starts
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.tables import opcodes, traits
from hlotext.ir.tables.opcode import Arity, Count, Opcode
from hlotext.ir.tables.other_names import attribute_meant, opcode_meant
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.shape import UNBOUNDED_SIZE, Shape
from hlotext.semantics.message_text import shown

if TYPE_CHECKING:
    from hlotext.semantics.problems import Other, Problem, Where

MAX_UPDATES = 100
"""Updates between the start and the end of an asynchronous operation."""


ONCE_READ = {
    row.name: found
    for row in opcodes.OPCODES.values()
    if (found := [use.name for use in row.attributes if use.old or use.name == "replica_groups"])
}
"""Opcodes with attributes that XLA no longer reads, or no longer in every form."""


@text_cache(1 << 14)
def attributes_fit(opcode: str, names: tuple[str, ...]) -> bool:
    """Returns True if an opcode accepts these attributes, and they include all required ones. Cached."""
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


def _problem(code: str, message: str, where: Where | None = None, help: str = "", **more: Any) -> Problem:
    from hlotext.semantics.problems import Part, Problem  # most instructions are right

    return Problem(code, message, Part.OPCODE if where is None else where, help, **more)


def of_opcode(instruction: Instruction) -> Iterator[Problem]:
    """Checks opcode, attribute names and number of operands."""
    name = instruction.opcode
    row = opcodes.opcode(name)
    if row is None:
        if opcodes.async_wrapped(name) is None:
            message = f"opcode {name} is unknown to this release"
            other = opcode_meant(name)
            yield _problem("X201", message, help=other, word=name, known=None if other else opcodes.OPCODES)
        return
    count = wrong_count(row, len(instruction.operands))
    if count is not None:
        yield _problem("X108", count, help=f"for example: {row.example}")
    if not attributes_fit(name, tuple(instruction._attributes)):
        yield from _attributes(instruction, row)


def wrong_count(row: Opcode, operands: int) -> str | None:
    """Returns a message if an opcode does not accept this number of operands, otherwise None."""
    if row.arity.accepts(operands):
        return None
    return f"{row.name} takes {_wanted(row.arity)}, but has {operands}"


def _wanted(arity: Arity) -> str:
    """The operands that an opcode takes, in words."""
    least, most = arity.minimum, arity.maximum
    if arity.count in (Count.EVEN, Count.ODD):
        return f"{arity.count.value} of operands, at least {least}"
    return _plural(least) if least == most else f"at least {_plural(least)}"


def _plural(number: int) -> str:
    words = {0: "no operands", 1: "one operand", 2: "two operands", 3: "three operands"}
    return words.get(number, f"{number} operands")


def _attributes(instruction: Instruction, row: Opcode) -> Iterator[Problem]:
    """Says which attribute is wrong."""
    allowed = opcodes.allowed_attributes(row)
    given = instruction._attributes
    for name in given:
        if name in allowed or isinstance(given[name], RawValue):
            continue
        listed = ", ".join(sorted(name for name, use in allowed.items() if not use.old))
        message = f"{row.name} has no attribute {name}"
        yield _problem("X109", message, name, f"it takes {listed}", word=name, known=allowed)
    example = f"for example: {row.example}"
    is_scalar = bool(instruction.operands) and _is_scalar(instruction.operands[0].shape)
    needed = {
        name for name, use in allowed.items() if use.required or any(name in one for one in row.alternatives)
    }
    for missing in missing_attributes(row, given, is_scalar=is_scalar):
        yield _problem("X110", missing, help=_misnamed(given, allowed, needed - given.keys()) or example)
    # XLA demands the channel only where the group's meaning depends on it; an all-gather goes without.
    is_global = given.get("use_global_device_ids") is True
    if is_global and "channel_id" not in given and not row.name.startswith("all-gather"):
        yield _problem("X112", "use_global_device_ids=true needs a channel_id", "use_global_device_ids")


def _misnamed(given: Mapping[str, object], allowed: Container[str], needed: Collection[str]) -> str:
    """A sentence about an attribute by an unknown name, which may be a needed one; empty if there is none."""
    for name in given:
        if name not in allowed and (found := attribute_meant(name, needed)):
            return f"`{name}` is unknown here: {found}"
    return ""


def missing_attributes(row: Opcode, given: Container[str], *, is_scalar: bool) -> Iterator[str]:
    """Yields a message for each missing required attribute; `is_scalar` says whether operand 0 is a scalar."""
    missing = sorted(
        use.name
        for use in opcodes.allowed_attributes(row).values()
        if use.required and use.name not in given and not (use.optional_for_scalar and is_scalar)
    )
    if missing:
        what = "the attribute" if len(missing) == 1 else "the attributes"
        yield f"{row.name} needs {what} {_and(missing)}"
    if row.alternatives and not any(all(name in given for name in names) for names in row.alternatives):
        yield f"{row.name} needs {', or '.join(' and '.join(names) for names in row.alternatives)}"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def of_values(instruction: Instruction) -> Iterator[Problem]:
    """Checks opcode-specific conditions on shapes, counts and attribute values."""
    check = BY_OPCODE.get(instruction.opcode)
    if check is not None:
        yield from check(instruction)
    for name in ONCE_READ.get(instruction.opcode, ()):
        value = instruction._attributes.get(name)
        if getattr(value, "has_comma", False):
            yield _problem(
                "X208", "a comma before the axes of replica groups is accepted only by older XLA", name
            )
        elif value is not None and name != "replica_groups":
            yield _problem("X208", f"{instruction.opcode} with {name} is accepted only by older XLA", name)
    replication = instruction._attributes.get("parameter_replication")
    if replication is not None and instruction.shape is not None:
        leaves = sum(1 for _ in instruction.shape.leaves())
        if len(replication) != leaves:
            message = (
                f"parameter_replication needs {leaves} entries, one per array, but has {len(replication)}"
            )
            yield _problem("X112", message, "parameter_replication")


def _special_count(instruction: Instruction) -> Iterator[Problem]:
    """The operand counts that depend on more than the opcode."""
    row = opcodes.OPCODES[instruction.opcode]
    have = len(instruction.operands)
    want = _EXPECTED_COUNT[row.arity.count](instruction)
    if want is not None and have not in want:
        why = _COUNT_WORDS[row.arity.count].format(less=want[0] - 1, wanted=_plural(want[0]), other=want[-1])
        yield _problem("X108", f"{row.name} {why}, but has {have}")


_COUNT_WORDS = {
    Count.BRANCHES: "with {less} branches takes {wanted}",
    Count.RESULT_DIMENSIONS: "to {less} dimensions takes {wanted}",
    Count.INDICES: "takes {wanted} here, or {other} with one vector of indices",
    Count.CALLED_PARAMETERS: "takes {wanted}, as many as the called computation has parameters",
    Count.TUPLE_ELEMENTS: "takes {wanted}, as many as the result has elements",
    Count.FOUR_WITH_SLICES: "with slice_sizes takes {wanted}",
}


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


def _tuple(instruction: Instruction) -> Iterator[Problem]:
    if instruction.shape is not None and not instruction.shape.is_tuple:
        message = f"the result of tuple must be a tuple, but is {shown(instruction.shape)}"
        yield _problem("X112", message)
    yield from _special_count(instruction)


def _compare(instruction: Instruction) -> Iterator[Problem]:
    """`type=` is the old word for `order=`, so one of them is given."""
    if instruction._attributes.keys() >= {"type", "order"}:
        yield _problem("X112", "a compare may have type= or order=, not both", "order")


def _reshape(instruction: Instruction) -> Iterator[Problem]:
    """XLA's reader aborts on a reshape that changes the number of elements, so that is an error here too."""
    before = instruction.operands[0].shape if instruction.operands else None
    after = instruction.shape
    if before is None or after is None or not (before.is_array and after.is_array):
        return
    if UNBOUNDED_SIZE in before.dimensions + after.dimensions or before.element_count == after.element_count:
        return
    if before.is_static and after.is_static:
        sizes = f"{shown(before)} has {before.element_count} and {shown(after)} has {after.element_count}"
        message = f"reshape must preserve the number of elements, but {sizes}"
        yield _problem("X112", message)


def _conditional(instruction: Instruction) -> Iterator[Problem]:
    """Two computations for a pred, a list for an s32; the other form is refused."""
    shape = instruction.operands[0].shape if instruction.operands else None
    if shape is not None and shape.is_array and not shape.rank:
        by_list = "branch_computations" in instruction._attributes
        if str(shape.element_type) == "pred" and by_list:
            message = "a conditional on a pred must have true_computation and false_computation"
            yield _problem("X112", message, "branch_computations")
        elif str(shape.element_type) == "s32" and not by_list:
            message = "a conditional on an s32 must have branch_computations"
            yield _problem("X112", message, "true_computation")
    yield from _special_count(instruction)


def _async(instruction: Instruction) -> Iterator[Problem]:
    """The rules of async-start, async-update and async-done."""
    shape = instruction.shape
    if instruction.opcode != "async-done" and (
        shape is not None
        and not (shape.is_tuple and len(shape.tuple_shapes) >= 2 and shape.tuple_shapes[0].is_tuple)
    ):
        what = f"the result of {instruction.opcode} must be a tuple of two or more elements, the first of them a tuple"
        yield _problem("X120", what)
        return
    if instruction.opcode == "async-start":
        return
    operand = instruction.operands[0] if instruction.operands else None
    if operand is not None and (operand.form is Form.IMPLICIT or isinstance(operand, BadInstruction)):
        return  # a line pasted from a dump, or a broken one: what began the operation is not there to be judged
    if operand is None or operand.opcode == "async-done":
        # That other operands trace back to an async-start is for the verifier to see, as in XLA.
        found = f"but {operand.name} is an async-done" if operand is not None else "but is missing"
        message = f"the operand of {instruction.opcode} must be an async-start or async-update, {found}"
        yield _problem("X120", message, related=_definition(operand))
        return
    start, length = instruction, 0
    while start.opcode in ("async-update", "async-done") and start.operands:
        start, length = start.operands[0], length + 1
        if length > MAX_UPDATES:
            yield _problem("X124", f"more than {MAX_UPDATES} updates of one asynchronous operation")
            return
    if start.opcode != "async-start":
        starts = async_starts(instruction)
        if len(starts) != 1:
            return
        start = starts[0]
    for name, default in (("calls", None), ("async_execution_thread", "main")):
        if name in instruction._attributes:
            mine, theirs = instruction._attributes[name], start._attributes.get(name, default)
            if mine != theirs and (
                name != "calls" or getattr(mine, "name", mine) != getattr(theirs, "name", theirs)
            ):
                message = f"{name} differs from that of {start.name}"
                yield _problem("X120", message, name, related=_definition(start))


def _article(opcode: str) -> str:
    return f"an {opcode}" if opcode[:1] in "aeio" else f"a {opcode}"


def _definition(operand: Instruction | None) -> tuple[Other, ...]:
    """Another instruction, for a message about both."""
    return () if operand is None else ((f"{operand.name} is defined here", operand),)


def _done(instruction: Instruction) -> Iterator[Problem]:
    """send-done and recv-done repeat the channel of what they finish."""
    operand = instruction.operands[0] if instruction.operands else None
    if operand is None or operand.opcode != instruction.opcode.removesuffix("-done"):
        return
    mine, theirs = instruction._attributes.get("channel_id"), operand._attributes.get("channel_id")
    if mine != theirs:
        message = f"channel_id is {_number(mine)}, but that of {operand.name} is {_number(theirs)}"
        yield _problem("X120", message, "channel_id", related=_definition(operand))


def _native_done(instruction: Instruction) -> Iterator[Problem]:
    """The end of an async-start is written `async-done`, or in the short spelling, which the reader turns into that."""
    operand = instruction.operands[0] if instruction.operands else None
    if operand is not None and operand.opcode in ("async-start", "async-update"):
        message = f"{instruction.opcode} does not complete a {operand.opcode}, but {operand.name} is one"
        yield _problem("X120", message, related=_definition(operand))


def _number(channel: int | None) -> str:
    return "not given" if channel is None else str(channel)


def _one_dimension(instruction: Instruction) -> Iterator[Problem]:
    """Opcodes whose `dimensions` is one number in braces."""
    dimensions = instruction._attributes.get("dimensions")
    if isinstance(dimensions, tuple) and len(dimensions) != 1:
        message = f"{instruction.opcode} takes one entry in dimensions, but has {len(dimensions)}"
        yield _problem("X112", message, "dimensions")
    if opcodes.OPCODES[instruction.opcode].arity.count in _EXPECTED_COUNT:
        yield from _special_count(instruction)


def _custom_call(instruction: Instruction) -> Iterator[Problem]:
    constraints = instruction._attributes.get("operand_layout_constraints")
    if constraints is None:
        return
    if len(constraints) != len(instruction.operands):
        wanted = f"{len(instruction.operands)} shapes, one per operand"
        message = f"operand_layout_constraints needs {wanted}, but has {len(constraints)}"
        yield _problem("X112", message, "operand_layout_constraints")
        return
    for shape, operand in zip(constraints, instruction.operands, strict=True):
        if operand.shape is not None and not compatible(shape, operand.shape):
            message = f"layout constraint {shown(shape)} does not match operand {operand.name}, {shown(operand.shape)}"
            yield _problem("X112", message, "operand_layout_constraints")


BY_OPCODE: dict[str, Any] = {
    row.name: _special_count for row in opcodes.OPCODES.values() if row.arity.count in _EXPECTED_COUNT
} | {
    "compare": _compare,
    "tuple": _tuple,
    "reshape": _reshape,
    "conditional": _conditional,
    **dict.fromkeys(traits.GENERIC_ASYNC, _async),
    "send-done": _done,
    "recv-done": _done,
    **dict.fromkeys(traits.NATIVE_PAIRS.values(), _native_done),
    "concatenate": _one_dimension,
    "sort": _one_dimension,
    "all-to-all": _one_dimension,
    "get-dimension-size": _one_dimension,
    "set-dimension-size": _one_dimension,
    "scan": _one_dimension,
    "custom-call": _custom_call,
}  # fmt: skip


LOOK_FURTHER = frozenset(
    {row.name for row in opcodes.OPCODES.values() if row.arity.count is Count.CALLED_PARAMETERS}
    | {"conditional"}
    | traits.GENERIC_ASYNC
    | traits.DONES
)
"""Opcodes whose conditions depend on more than shape, attributes, and the shapes of the operands."""


def _is_scalar(shape: Shape | None) -> bool:
    return shape is not None and shape.is_array and not shape.rank


def compatible(a: Shape, b: Shape) -> bool:
    """Returns True if two shapes are equal, ignoring layouts and dynamic flags (`ShapeUtil::Compatible`); `?` matches
    any size.
    """
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
