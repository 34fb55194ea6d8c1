"""Gradients of a table that are dense though few of its rows were used."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Backend, byte_text
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape
from hlotext.lint.helpers import fusions_around, is_argument, is_product_call, size_of
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.training import is_backward
from hlotext.lint.values import Value, elements_of, is_spread, source

_FEW = 8
"""Minimum ratio of the table's size to the updates added to it."""
_SAME = traits.KEEPS_ELEMENTS | {"convert"}
_MOST_STEPS = 60

_MAIN = 0.1
"""Part of the step from which on a dense gradient is worth a change of the optimizer on TPU, too."""


class DenseGradient(Rule):
    code = "G117"
    name = "dense-gradient"
    title = "a dense gradient of an embedding table with few used rows"
    waste = "dense"
    needs_optimized = True
    opcodes = frozenset({"scatter"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        shape = instruction.shape
        if (
            shape is None or not shape.is_array or len(instruction.operands) != 3
        ):  # it is not a scatter of one array
            return
        reducer = instruction.attributes.get("to_apply")
        if (
            not isinstance(reducer, Computation) or reducer.root.opcode != "add"
        ):  # its reducer is not an addition
            return
        updates = instruction.operands[2].shape
        if updates is None or shape.is_unbounded or updates.is_unbounded:
            return
        if _FEW * (updates.element_count or 0) > (
            shape.element_count or 0
        ):  # it updates a large part of the array
            return
        fusions = fusions_around(instruction, context)
        whole = (*fusions, instruction)[0]
        elements = shape.element_count or 0
        added_to = Value(instruction.operands[0], fusions)
        is_zero = source(added_to, _SAME | {"broadcast"}).instruction.opcode == "constant"
        decayed = _decayed(added_to, elements, context) if not is_zero and is_backward(instruction) else set()
        if not is_zero and not decayed:  # it adds neither to zeros nor to decaying moments
            return
        table = _table(shape.dimensions, context)
        if table is None:  # its result is not added to a table
            return
        filler = _filler(added_to)
        chain, sent, changed = _dense(whole, elements, context)
        if any(
            _adds_product(user, whole, elements) for user in (*chain, *sent)
        ):  # results of matmuls are also added to it
            return  # a matmul also reads the table, as with tied embeddings, so its gradient is dense anyway
        if decayed and (not changed or (context.backend is Backend.TPU and not _has_rows_together(shape))):
            return  # nothing else updates the table, or its rows would have to be combined first
        moments = len(changed | decayed) - 1
        runs = context.runs(whole)
        rows = size_of(instruction.operands[2].shape)
        kept = context.prices.reading(3 * rows * runs * (1 + 2 * moments))
        seconds = context.prices.seconds(whole) + sum(chain.values()) + sum(map(context.prices.seconds, sent))
        seconds += context.prices.seconds(filler) if filler is not None else 0.0
        held = dict.fromkeys([whole, *([filler] if filler is not None else [])], 1.0) if is_zero else {}
        if decayed:
            message = (
                f"a table of {byte_text(size_of(shape))} and its moments are read and written in full, although only "
                f"{byte_text(rows)} of its rows were looked up"
            )
        else:
            message = (
                f"the gradient of a table of {byte_text(size_of(shape))} is written{', all-reduced' if sent else ''} and "
                f"read in full{', as are its moments' if moments > 0 else ''}, although only {byte_text(rows)} of its rows "
                "were looked up"
            )
        yield Report(
            instruction,
            message,
            "differentiate with respect to the looked-up rows (jax.grad at rows = table[ids]) and add their gradient to "
            "the table (table.at[ids].add)"
            + (
                "; use a lazy optimizer, which changes only the moments of these rows"
                if moments > 0
                else "; optimizers with moments need a lazy variant"
            ),
            2 * size_of(shape) * runs,
            seconds=max(0.0, seconds - kept),
            spares=held,
            covers=frozenset(sent),
            # A TPU adds scattered rows one after the other, as often with zeros under them; moments take more of that.
            is_proved=not decayed
            and (
                context.backend is not Backend.TPU
                or _FEW * _FEW * rows < size_of(shape)
                or seconds - kept >= _MAIN * context.prices.step
            ),
        )


def _decayed(value: Value, elements: int, context: Context) -> set[Instruction]:
    """Arguments that an array of as many elements is computed from, element by element; empty if it is itself an argument, or
    computed from other values as well."""
    found: set[Instruction] = set()
    is_computed, pending, seen = False, [value], {value}
    while pending:
        one = source(pending.pop(), _SAME)
        made = one.instruction
        if is_argument(made, context):
            found.add(made)
        elif made.opcode in ELEMENTWISE and len(seen) < _MOST_STEPS:
            is_computed = True
            new = [operand for operand in one.operands() if operand not in seen]
            seen.update(new)
            pending += [operand for operand in new if elements_of(operand.instruction.shape) == elements]
        elif not is_spread(made):
            return set()
    return found if is_computed else set()


def _has_rows_together(shape: Shape) -> bool:
    """True if a table's rows are contiguous."""
    return shape.layout is None or shape.layout.minor_to_major[:1] == (shape.rank - 1,)


def _adds_product(user: Instruction, gradient: Instruction, elements: int) -> bool:
    """True if a user of the gradient also reads a matmul of its size."""
    for operand in user.operands:
        shape = operand.shape
        if operand is gradient or shape is None or not shape.is_array or shape.element_count != elements:
            continue
        made = source(Value(operand), _SAME | _SENT)
        opcodes = {one.opcode for one in parts_of(made.instruction)}
        if opcodes & {"dot", "convolution"} or is_product_call(made.instruction):
            return True
    return False


_SENT = frozenset(
    {"all-reduce", "all-reduce-done", "all-reduce-start", "async-done", "get-tuple-element", "reduce-scatter"}
)


def _table(dimensions: tuple[int, ...], context: Context) -> Instruction | None:
    """An argument of these sizes that rows are gathered from."""
    given = [
        p
        for p in context.arguments
        if p.shape is not None and p.shape.is_array and p.shape.dimensions == dimensions
    ]
    if not given:
        return None
    for gather in context.census.by_opcode.get("gather", ()):
        operand = gather.operands[0]
        if operand.shape is not None and operand.shape.is_array and operand.shape.dimensions == dimensions:
            return given[0]
    for opcode in ("dynamic-slice",):
        for cut in context.census.by_opcode.get(opcode, ()):
            if cut.operands[0].shape is not None and cut.operands[0].shape.dimensions == dimensions:
                return given[0]
    return None


def _filler(zeros: Value) -> Instruction | None:
    """The instruction that writes the zeros, where it is separate."""
    value = zeros
    while value.fusions and value.instruction.opcode == "parameter":
        value = Value(value.fusions[-1].operands[value.instruction.parameter_number or 0], value.fusions[:-1])
    one = value.instruction
    while one.opcode in ("bitcast", "get-tuple-element", "copy") and one.operands and not value.fusions:
        value = Value(one.operands[0])
        one = value.instruction
    return one if not value.fusions and one.opcode in ("broadcast", "fusion") else None


def _dense(
    whole: Instruction, elements: int, context: Context
) -> tuple[dict[Instruction, float], list[Instruction], set[Instruction]]:
    """Instructions over the whole dense gradient with their seconds, collectives that send it, and the arguments of its size
    that are changed with it."""
    chain: dict[Instruction, float] = {}
    sent: list[Instruction] = []
    changed: set[Instruction] = set()
    pending, seen = [whole], {whole}
    while pending and len(seen) < _MOST_STEPS:
        current = pending.pop()
        for user in current.users:
            if user in seen:
                continue
            seen.add(user)
            if user.opcode in (
                "bitcast",
                "copy",
                "convert",
                "get-tuple-element",
                "reshape",
                "all-reduce-done",
            ):
                chain[user] = context.prices.seconds(user)
                pending.append(user)
            elif user in context.communication_of:
                sent.append(user)
                pending.append(user)
            elif user.opcode in ("fusion", "add", "multiply", "subtract") and user.shape is not None:
                tables = [o for o in user.operands if elements_of(o.shape) == elements]
                if tables and not any(part.opcode in ("dot", "scatter") for part in parts_of(user)):
                    chain[user] = context.prices.seconds(user)
                    made = (source(Value(one), _SAME).instruction for one in tables)
                    changed.update(one for one in made if is_argument(one, context))
    return chain, sent, changed
