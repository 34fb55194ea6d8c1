"""The constraint of the program for which a collective moves an array, where the program alone proves it."""

from __future__ import annotations

import attrs

import hlotext as hlo
from hlotext.analysis import Communication
from hlotext.dumps.collectives.places import is_annotation, is_constraint
from hlotext.dumps.collectives.specs import Dims, Spec, Specs, dimensions_of
from hlotext.ir.tables import opcodes
from hlotext.ir.values.named_sharding import NamedSharding

_MOST = 64
"""Maximum number of operations between an array and its constraint."""


@attrs.frozen
class Asking:
    """A constraint that requires another sharding of an array."""

    user: hlo.Instruction
    """The instruction that needs the array so: the constraint, or the first operation on the way to it."""
    constraint: hlo.Instruction
    want: str | None
    """The sharding; None if no PartitionSpec says it."""


def asking(
    one: Communication, node: hlo.Instruction, axes: tuple[str, ...], specs: Specs, have: Spec | None
) -> Asking | None:
    """Returns the constraint for which a collective moves an array of the program, or None if another reader may need
    it.

    It is on the array, or behind operations that compute element by element and that nothing else reads between.

    Args:
        one: The collective.
        node: The array, in the program before optimization.
        axes: The axes of the collective.
        specs: Turns shardings into specs.
        have: The array's sharding, where it is known.
    """
    dimensions = dimensions_of(node)
    if dimensions is None or not axes or any(":" in axis for axis in axes):
        return None
    current, first = node, None
    for _ in range(_MOST):
        found = [user for user in current.user_view if is_constraint(user)]
        if found:
            told = [each for each in found if _moves(one, each, dimensions, axes, specs, have)]
            if len({str(each.sharding) for each in told}) != 1:
                return None
            is_pinned = isinstance(
                told[0].sharding, NamedSharding
            )  # Shardy gives it to what the constraint takes
            if current is not node and not is_pinned and len(current.user_view) > 1:
                return None
            return Asking(first or told[0], told[0], _text(told[0], len(dimensions), specs))
        users = list(current.user_view)
        if len(users) != 1 or not (users[0].opcode in opcodes.ELEMENTWISE or is_annotation(users[0])):
            return None
        current = users[0]
        first = first or (None if is_annotation(current) else current)
        if dimensions_of(current) != dimensions:
            return None
    return None


def _moves(
    one: Communication,
    constraint: hlo.Instruction,
    dimensions: Dims,
    axes: tuple[str, ...],
    specs: Specs,
    have: Spec | None,
) -> bool:
    """True if a constraint cannot be met without what a collective does along its axes."""
    want = specs.of(constraint.sharding, len(dimensions)) if constraint.sharding is not None else None
    is_open = _open(constraint, len(dimensions))
    if want is None or is_open is None:
        return False
    places = [have.dimension_of(axis) if have is not None else None for axis in axes]
    if one.kind != "all-gather":
        # An exchange moves axes from one dimension to another; of what is open nobody asked for that.
        wanted = [want.dimension_of(axis) for axis in axes]
        return not any(is_open) and all(
            old is not None and new is not None and old != new
            for old, new in zip(places, wanted, strict=True)
        )
    if any(want.dimension_of(axis) is not None for axis in axes):
        return False
    if not any(is_open) or all(place is not None and not is_open[place] for place in places):
        return True
    gathered = _gathered(one)
    return gathered is not None and not any(
        is_open[n] and _may_be_part(gathered, size, specs.mesh.num_devices)
        for n, size in enumerate(dimensions)
    )


def _open(constraint: hlo.Instruction, rank: int) -> list[bool] | None:
    """The dimensions that a constraint leaves to the partitioner; None if that is not known."""
    sharding = constraint.sharding
    if isinstance(sharding, NamedSharding):
        each = sharding.dim_shardings
        return [not one.is_closed for one in each] if each else [False] * rank
    config = constraint.backend_config
    return None if config is not None and "unspecified_dims" in config.text else [False] * rank


def _gathered(one: Communication) -> int | None:
    """The size of the dimension that an all-gather completes, on each device."""
    at, node = one.instruction.attributes.get("dimensions"), one.instruction
    while node.shape is not None and node.shape.is_tuple:  # of a start also the operand
        node = next(iter(node.user_view), node)
        if node.opcode not in ("all-gather-done", "get-tuple-element"):
            return None
    sizes = dimensions_of(node)
    if sizes is None or not isinstance(at, tuple) or len(at) != 1 or at[0] >= len(sizes):
        return None
    return sizes[at[0]]


def _may_be_part(part: int, whole: int, devices: int) -> bool:
    """True if a dimension cut among some of the devices has parts of this size."""
    return any(not devices % count and -(-whole // count) == part for count in range(1, devices + 1))


def _text(constraint: hlo.Instruction, rank: int, specs: Specs) -> str | None:
    spec, is_open = specs.of(constraint.sharding, rank), _open(constraint, rank)
    return spec.text(is_open) if spec is not None and is_open is not None else None
