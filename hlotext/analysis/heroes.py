"""Hero of a GPU fusion, by the rules with which the compiler chooses an emitter."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable

from hlotext import layout as layouts
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.tables.traits import KNOWN_VALUES, REVERSES_OR_PERMUTES, SLICES, TUPLES
from hlotext.layout.permutations import compose, descending, inverse

MIN_TILED = 16
MIN_TILED_BOTH = 8
MIN_TILED_TOTAL = 64 * 128
MAX_MINOR_BITS = 8 * 8
BANKS = 32
BANK_BITS = 32
"""When a transpose goes through shared memory (`kMinDimensionToTransposeTiled` and what stands by it)."""


MOVES = frozenset({"copy", "transpose"})
"""Opcodes that write all elements of their operand anew."""
_FUSED_WITH_MOVES = frozenset({"bitcast", "convert", "copy", "parameter", "reshape", "transpose"})
"""Opcodes of a fusion that computes nothing: a change of type is no computation of its own."""
_FUSED_WITH_PARTS = (
    _FUSED_WITH_MOVES | SLICES | REVERSES_OR_PERMUTES | KNOWN_VALUES | TUPLES | {"concatenate", "pad"}
)
"""The same of a fusion that may also move a part of its operand, or several parts, and fill up the rest."""


def fused_moves(fusion: Instruction, *, may_cut: bool = False) -> tuple[Instruction, ...]:
    """Returns the copies and transposes in a fusion that only moves elements; empty for a fusion that computes.

    With `may_cut`, also accepts fusions that move parts of their operands rather than all elements.
    """
    if len(fusion.called_computations) != 1:
        return ()
    body = fusion.called_computations[0]
    allowed = _FUSED_WITH_PARTS if may_cut else _FUSED_WITH_MOVES
    is_pure = all(i.opcode in allowed for i in body)
    return tuple(i for i in body if i.opcode in MOVES) if is_pure else ()


def roots_of(body: Computation) -> list[Instruction]:
    """Returns the results of a fusion: its root, or the elements of a root tuple, recursively
    (`HloFusionAdaptor::GetRoots`).
    """
    found: list[Instruction] = []
    pending = [body.root]
    while pending:
        i = pending.pop()
        if i.opcode == "tuple":
            pending += reversed(i.operands)
        elif i not in found:
            found.append(i)
    return found


def hero_of(root: Instruction) -> Instruction:
    """Returns the operation that determines how a fusion is emitted, for one of its results (`FindNonTrivialHero`)."""
    hero = root
    while is_intermediate(hero, 1) and hero.operands[0].opcode != "parameter":
        hero = hero.operands[0]
    found = _find(hero, is_tiled_transpose) or _find(hero, lambda i: i.opcode == "concatenate")
    if found is not None:
        return found
    return hero if hero.opcode == "reduce" else root


def is_intermediate(i: Instruction, most_operands: int) -> bool:
    """Returns True if an operation may lie between a fusion's hero and its root (`IsIntermediate`)."""
    if not 0 < len(i.operands) <= most_operands:
        return False
    source, shape = i.operands[0].shape, i.shape
    if source is None or shape is None:
        return False
    if i.opcode == "copy":
        return source == shape
    if i.opcode in ELEMENTWISE or i.opcode == "bitcast":
        return True
    if not _has_layout(i) or not _has_layout(i.operands[0]):
        return False
    if i.opcode == "reshape":
        return layouts.reshape_is_bitcast(source, shape)
    return i.opcode == "transpose" and layouts.transpose_is_bitcast(source, shape, i.attributes["dimensions"])


def _has_layout(i: Instruction) -> bool:
    return i.shape is not None and (i.shape.layout is not None or not i.shape.dimensions)


def _find(root: Instruction, wanted: Callable[[Instruction], bool]) -> Instruction | None:
    """The one operation of a kind on the way to a result, if nothing but simple ones uses it (`FindHero`)."""
    hero: Instruction | None = None
    seen = {root}
    pending = deque([root])
    while pending:
        i = pending.popleft()
        if wanted(i):
            if hero is not None:
                return None
            hero = i
        elif is_intermediate(i, 3):
            for o in i.operands:
                if o not in seen and o.opcode != "parameter":
                    seen.add(o)
                    pending.append(o)
    if hero is None:
        return None
    users = deque(hero.users)
    seen = set(users)
    while users:
        i = users.popleft()
        if i.opcode not in ("tuple", "parameter") and not is_intermediate(i, 3):
            return None
        for user in i.users:
            if user not in seen:
                seen.add(user)
                users.append(user)
    return hero


def is_tiled_transpose(i: Instruction) -> bool:
    """Returns True if a transpose is tiled through shared memory (`GetDescriptionForTiledTransposeEmitter`)."""
    if i.opcode != "transpose" or i.shape is None or i.operands[0].shape is None:
        return False
    source, shape = i.operands[0].shape, i.shape
    if any(s.layout is not None and s.layout.minor_to_major != descending(s.rank) for s in (source, shape)):
        return False
    dimensions = tuple(i.attributes["dimensions"])
    if sorted(dimensions) != list(range(shape.rank)):
        return False  # ill-formed: `verify` says so
    sizes, order = normalized_transpose(shape.dimensions, dimensions)
    if len(order) < 2:
        return False
    bits = shape.element_type.bits if shape.element_type.bits > 1 else 8
    given = compose(sizes, inverse(order))
    if _is_packed(sizes, order, bits):
        return True
    if order[-1] == len(sizes) - 1:
        other = min(given[-2], sizes[-2])
        return bits * sizes[-1] <= MAX_MINOR_BITS and bits * sizes[-1] * other >= 8 * MIN_TILED
    smaller = min(given[-1], sizes[-1])
    large = smaller >= MIN_TILED or (smaller >= MIN_TILED_BOTH and given[-1] * sizes[-1] >= MIN_TILED_TOTAL)
    return large and bits != 4


def normalized_transpose(
    sizes: tuple[int, ...], order: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns result sizes and permutation of a transpose, with adjacent dimensions merged and those of size 1 dropped
    (`GetNormalizedLogicalTransposeShape`).

    >>> normalized_transpose((4, 2, 3, 1), (2, 0, 1, 3))
    ((4, 6), (1, 0))
    """
    kept = [(size, d) for size, d in zip(sizes, order, strict=True) if size != 1]
    if not kept:
        return (1,), (0,)
    places = {d: n for n, d in enumerate(sorted(d for _, d in kept))}
    groups: list[list[tuple[int, int]]] = []
    for size, d in kept:
        if groups and places[d] == groups[-1][-1][1] + 1:
            groups[-1].append((size, places[d]))
        else:
            groups.append([(size, places[d])])
    joined = [_product(group) for group in groups]
    ranks = {first: n for n, first in enumerate(sorted(group[0][1] for group in groups))}
    return tuple(joined), tuple(ranks[group[0][1]] for group in groups)


def _product(group: list[tuple[int, int]]) -> int:
    *_, total = itertools.accumulate((size for size, _ in group), int.__mul__)
    return total


def _is_packed(sizes: tuple[int, ...], order: tuple[int, ...], bits: int) -> bool:
    """True if several elements of a transpose go into one bank at once (`CanEmitPackedTranspose`)."""
    if bits >= BANK_BITS or order == tuple(range(len(order))):
        return False
    shape, turns = list(sizes), list(order)
    if turns[-1] != len(shape) - 1:
        turns.append(len(shape))
        shape.append(1)
    rank = len(shape)
    if rank < 3 or turns[rank - 3] != rank - 3:
        shape.insert(rank - 2, 1)
        turns = [d + 1 if d > rank - 3 else d for d in turns]
        turns.insert(rank - 2, rank - 2)
    rank = len(shape)
    given = compose(shape, inverse(turns))
    t1, t2 = given[rank - 2], given[turns[rank - 2]]
    vector = BANK_BITS // bits
    side = BANKS * vector
    tile1 = min(t1, side)
    tile_a = min(given[rank - 3], side // tile1) if tile1 else 0
    rows = min(t2, side)
    columns = tile_a * tile1
    if columns < 10 * vector or rows < 10 * vector:
        return False
    return given[-1] == 1 and not (rows % vector or columns % vector or t2 % rows % vector)
