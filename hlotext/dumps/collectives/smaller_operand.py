"""Products for which the larger operand is gathered, though the smaller one could be moved: experts, and their tokens."""

from __future__ import annotations

from collections.abc import Iterator

import hlotext as hlo
from hlotext.analysis import total_of
from hlotext.dumps.collectives import wording
from hlotext.dumps.collectives.partitioner import Partitioner, Written
from hlotext.dumps.collectives.places import Places
from hlotext.dumps.collectives.records import RESHARD
from hlotext.dumps.collectives.specs import Spec, whole
from hlotext.dumps.collectives.walking import MOVES

_MOST = 64
"""Maximum number of operations between a lookup and the product of what it finds."""


def instead_of(part: Written, partitioner: Partitioner, places: Places) -> str:
    """Describes how to move the smaller operand of a product in place of a gathered one; empty if that is not possible.

    The gathered dimension must be a batch dimension of the product, or one that is looked up to give factors of
    products, such as the experts of tokens. Each device then has what it needs of the array, and its factors can be
    moved there.
    """
    tensor, user = part.tensor, part.users[0] if part.users else None
    if part.cause != RESHARD or part.communication.kind != "all-gather" or part.side != "operand":
        return ""
    if tensor is None or user is None or part.have is None:
        return ""
    axes = whole(part.axes)
    held = {d for d, cut in enumerate(part.have.axes) for a in cut if a in axes}
    if user.opcode == "dot":
        return _of_batch(tensor, user, held, axes, partitioner, places)
    looked_up = user.attributes.get("start_index_map") or ()
    if user.opcode != "gather" or user.operands[0] is not tensor or not held or not held <= set(looked_up):
        return ""
    others = [other for other in factors_of(user) if _bytes(other) < _bytes(tensor)]
    if not others:
        return ""
    other = max(others, key=_bytes)
    return wording.of_experts(
        places.of(tensor), _bytes(tensor), places.of(other), _bytes(other), axes, part.have.rank
    )


def _of_batch(
    tensor: hlo.Instruction,
    user: hlo.Instruction,
    held: set[int],
    axes: tuple[str, ...],
    partitioner: Partitioner,
    places: Places,
) -> str:
    """Of a product whose batch the array is cut along: the sharding for the other operand, along the same batch."""
    if tensor not in user.operands:
        return ""
    own = user.operands.index(tensor)
    mine, theirs = (user.attributes.get(f"{side}_batch_dims") or () for side in _SIDES[own])
    other = user.operands[1 - own]
    spec = partitioner.spec(other)
    if spec is None or not held or not held <= set(mine) or _bytes(other) >= _bytes(tensor):
        return ""
    cut = list(spec.without(axes).axes)
    have = partitioner.spec(tensor)
    assert have is not None
    for dimension in held:
        place = theirs[mine.index(dimension)]
        cut[place] = tuple(dict.fromkeys((*have.axes[dimension], *cut[place])))
    return wording.of_batch(places.of(other), _bytes(other), _bytes(tensor), str(Spec(tuple(cut))))


_SIDES = (("lhs", "rhs"), ("rhs", "lhs"))


def factors_of(lookup: hlo.Instruction) -> Iterator[hlo.Instruction]:
    """Yields the arrays that looked-up entries are multiplied with: the other operands of batched products."""
    seen, queue = {lookup}, [lookup]
    for node in queue:
        for user in node.user_view:
            if user.opcode == "dot" and user.attributes.get("lhs_batch_dims"):
                yield from (one for one in user.operands if one is not node)
            elif user.opcode == "multiply":
                yield from (one.operands[0] for one in user.operands if _is_factor(one, user))
            elif user.opcode in MOVES and user not in seen and len(seen) < _MOST:
                seen.add(user)
                queue.append(user)


def _is_factor(spread: hlo.Instruction, product: hlo.Instruction) -> bool:
    """True for a factor of a batch of products of matrices with vectors, as the TPU compiler writes them: multiplied, summed.

    It has the batch and what is summed, but not the other dimension of the matrices.
    """
    along = set(spread.attributes.get("dimensions") or ()) if spread.opcode == "broadcast" else set()
    sums = [one for one in product.user_view if one.opcode == "reduce"]
    summed = {d for one in sums for d in one.attributes.get("dimensions") or ()}
    rank = len(product.shape.dimensions) if product.shape is not None else 0
    return bool(summed) and summed < along and len(along) < rank


def _bytes(node: hlo.Instruction) -> int:
    return total_of(node.shape).unpadded_bytes if node.shape is not None else 0
