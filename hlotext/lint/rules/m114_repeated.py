"""Arrays that are written several times over, for operations that could read them once."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text, memory_space, written_bytes
from hlotext.cost import product_sizes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.alike_fusions import alike
from hlotext.lint.computed_ahead import Ahead, computed_ahead
from hlotext.lint.helpers import changes_layout, size_of, times
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import written_at
from hlotext.lint.values import Value, elements_of, is_spread, source
from hlotext.lint.windows import gathered_windows

_TIMES = 4
"""Minimum ratio of a broadcast's size to its operand's for a repetition that costs something."""
_LEAST = 2
"""The same where its users mostly read it, as those of a decode step do: then all of it costs."""
_SAME = frozenset({"bitcast", "copy", "convert", "reshape", "transpose"})
_REPEATING = _SAME | {"broadcast", "parameter"}
_VIEWS = frozenset({"bitcast", "reshape", "get-tuple-element"})
_MOST_USERS = 50


class MaterializedBroadcast(Rule):
    code = "M114"
    name = "repeated"
    title = "a materialized broadcast"
    waste = "copied"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        bodies = alike(context.module)
        for one in context.graph.sequential_instructions():
            if (
                one.opcode not in ("broadcast", "fusion")
                or not {"broadcast"} <= bodies.opcodes(one) <= _REPEATING
            ):  # it repeats no array
                continue
            original = _repeated(one)
            factor = (
                elements_of(one.shape) // max(1, elements_of(original.shape)) if original is not None else 0
            )
            if original is None or factor < _LEAST:  # it repeats no array often enough
                continue
            readers = _readers(one)
            if not readers:  # no user of the repeated array could read the original instead
                continue
            if factor < _TIMES and not _is_bound_by(
                one, readers, context
            ):  # reading it takes none of its users' time
                continue
            yield _report(one, original, factor, readers, context)
        for ahead in computed_ahead(context):
            yield _of_loop(ahead, context)
        yield from gathered_windows(context)


def _report(
    one: Instruction, original: Instruction, factor: int, readers: list[Instruction], context: Context
) -> Report:
    prices, runs = context.prices, context.runs(one)
    size, whole = size_of(original.shape), size_of(one.shape)
    # An array that is turned as well is still written then, and read as often.
    is_turned = any(part.opcode == "transpose" or changes_layout(part) for part in parts_of(one))
    left = 1 / factor if is_turned else min(1.0, size / whole)
    again = prices.reading(whole * len(readers) * runs)
    reading = min(again, prices.together(readers)) - again * left
    return Report(
        one,
        f"a broadcast writes {factor} copies of an array, {byte_text(written_bytes(one))}{times(runs)}, although its "
        "users could read the array itself",
        _help(one),
        written_bytes(one) * runs,
        is_proved=False
        if _primitive(one) in _SCALES
        else None,  # scaling later is another order of operations
        seconds=max(0.0, prices.seconds(one) * (1 - left if is_turned else 1) + reading),
        spares={one: 1 - left if is_turned else 1.0},  # what it repeats is there already
    )


def _of_loop(ahead: Ahead, context: Context) -> Report:
    """An array of which each iteration of a loop reads a slice, which it could compute itself."""
    prices, array = context.prices, ahead.array
    count, size = prices.trips(ahead.rounds.loop), size_of(array.shape)
    runs = prices.runs(array.computation)
    made = {one.instruction: size_of(one.instruction.shape) for one in ahead.made_of if not one.fusions}
    # Of an array without a dimension of iterations each one reads all.
    again = sum(
        each * (1 if one.shape is not None and count in one.shape.dimensions else count)
        for one, each in made.items()
    )
    writing = min(prices.writing(array, ahead.writer), prices.reading(size * runs))
    reading = min(prices.reading(size * runs), prices.together(ahead.readers))
    return Report(
        ahead.writer,
        f"{byte_text(size)} are computed before a loop that reads a slice in each of {count:,} iterations{times(runs)}, "
        f"although they are computed from arrays of {byte_text(sum(made.values()))}",
        "pass the smaller arrays to the loop, and compute the slice in its body, where it is fused into its consumer",
        2 * size * runs,
        seconds=max(0.0, writing + reading + prices.together(ahead.copies) - prices.reading(again * runs)),
        spares=dict.fromkeys([*written_at(array), *ahead.copies], 1.0),
        covers=frozenset(ahead.copies),
        origin=ahead.array,
    )


def _is_bound_by(one: Instruction, readers: list[Instruction], context: Context) -> bool:
    """True if the users of an array take at least half of their time to read it."""
    again = context.prices.reading(size_of(one.shape) * len(readers) * context.runs(one))
    return 2 * again >= context.prices.together(readers)


_SCALES = frozenset({"div", "mul"})
_BROADCASTS = frozenset({"broadcast_in_dim", "repeat", "broadcast_to", "reshape"})
"""Primitives of JAX that scale by what is broadcast, and of functions that broadcast and do nothing else."""


def _primitive(one: Instruction) -> str:
    return one.metadata.op_name.rpartition("/")[2] if one.metadata is not None else ""


def _help(one: Instruction) -> str:
    """Advice by the primitive that the broadcast is part of."""
    primitive = _primitive(one)
    if primitive in _SCALES:
        return (
            f"{primitive} broadcasts it to scale a matmul operand: where it is constant along the contracted dimension, "
            "scale the matmul result instead (a softmax can divide after its second matmul)"
        )
    instead = " instead of jnp.repeat or broadcast_to" if primitive in _BROADCASTS else ""
    groups = "split its dimensions into groups (einsum over one more dimension)"
    return f"let the operation that uses it broadcast: {groups}{instead}"


def _repeated(one: Instruction) -> Instruction | None:
    """The array that a written one repeats; None if it repeats none."""
    broadcasts = [part for part in parts_of(one) if part.opcode == "broadcast"]
    shape = one.shape
    if shape is None or not shape.is_array or memory_space(shape) != 0:
        return None
    large = max(broadcasts, key=lambda part: size_of(part.shape))
    made = large.operands[0].shape if large.operands else None
    if made is None or not made.is_array or made.rank < 2 or is_spread(large.operands[0]):
        return None
    fusions = (one,) if one.opcode == "fusion" else ()
    origin = source(Value(large.operands[0], fusions), _SAME).instruction
    if origin.opcode in ("constant", "iota"):
        return None
    return origin if elements_of(origin.shape) == (made.element_count or 0) else large.operands[0]


def _readers(one: Instruction) -> list[Instruction]:
    """Batched products that read a written array, whose batch can be split into groups; empty if anything else does."""
    found: list[Instruction] = []
    pending = [one]
    while pending and len(found) < _MOST_USERS:
        current = pending.pop()
        if current.is_root:
            return []
        for user in current.users:
            if user.opcode in _VIEWS:
                pending.append(user)
            elif any(map(_is_batched, parts_of(user))):
                found.append(user)
            else:
                return []
    return found


def _is_batched(one: Instruction) -> bool:
    """True for a batched product; of one with vectors compilers make a multiplication and a sum."""
    if one.opcode == "reduce":
        return one.metadata is not None and one.metadata.op_name.endswith("/dot_general")
    sizes = product_sizes(one)
    return sizes is not None and sizes[0] > 1
