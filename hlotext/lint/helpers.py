"""Helpers that several rules share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from hlotext.analysis import (
    Communication,
    arrays_of,
    devices_of,
    invariant_instructions,
    responsible_frame,
    total_of,
)
from hlotext.analysis.entries import aliases_of, donors_of
from hlotext.analysis.sizes import VIEWS
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import COLLECTIVES
from hlotext.ir.values.aliasing import ShapeIndex
from hlotext.ir.values.shape import Shape
from hlotext.lint.rule import Context
from hlotext.lint.values import Value, consumers

MOVES = frozenset({"bitcast", "broadcast", "copy", "reshape", "slice", "transpose"})
"""Opcodes that change no element's value."""
RESULT_VIEWS = frozenset({"bitcast", "copy", "reshape"})
"""Opcodes whose result has exactly the operand's elements, in an order that slices do not care about."""

COLLECTIVE_KINDS = frozenset(
    {
        "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "ragged-all-to-all",
        "reduce-scatter",
    }
)  # fmt: skip
"""Communications in which several devices take part at once."""


DEEPEST = 50
"""Loops and calls inside one another that are followed."""


def add_outwards(
    found: dict[Instruction, float],
    inside: Mapping[Computation, float],
    outer: Callable[[Computation | None], Instruction | None],
) -> None:
    """Adds the value of each computation to all instructions around it; `outer` returns the next one, such as a caller."""
    for computation, value in inside.items():
        around = outer(computation)
        for _ in range(DEEPEST):
            if around is None:
                break
            found[around] = found.get(around, 0.0) + value
            around = outer(around.computation)


def size_of(shape: Shape | None) -> int:
    """Returns the allocated bytes of all arrays of a shape, as far as known."""
    return total_of(shape).allocated_bytes


def senders(one: Communication) -> str:
    """Returns `each device sends`, or for source-target pairs without some devices `a device sends up to`."""
    sources = {pair[0] for pair in one.pairs or ()}
    home = one.start.computation
    total = devices_of(home.module).total if home is not None and home.module is not None else None
    return "each device sends" if not one.pairs or len(sources) == total else "a device sends up to"


_AGAIN = re.compile(r"\d+|/checkpoint|/rematted_computation|/closed_call|transpose\((jvp\([^()]*\))\)")
"""Parts of an op_name that differ where the backward pass recomputes an operation, and numbers."""


def operation(instruction: Instruction) -> str:
    """Returns the op_name of an instruction, the same for the backward pass; empty if there is none."""
    return _AGAIN.sub(r"\1", instruction.metadata.op_name) if instruction.metadata is not None else ""


def times(runs: int) -> str:
    """Returns ` 24 times`; empty for once."""
    return f" {runs:,} times" if runs > 1 else ""


def counted(count: int, one: str, more: str) -> str:
    """Returns a number of instructions with the right verb form: `1 instruction has`, `2,000 instructions have`."""
    return f"1 instruction {one}" if count == 1 else f"{count:,} instructions {more}"


def passed_bytes(instruction: Instruction, context: Context) -> int:
    """Returns the bytes of all operands and results in all runs: what an unknown operation may access."""
    shapes = (instruction.shape, *(operand.shape for operand in instruction.operands))
    return sum(total_of(shape).allocated_bytes for shape in shapes) * context.runs(instruction)


def origin(instruction: Instruction) -> Instruction:
    """Returns the producer of an instruction's values, looking through data movement."""
    while instruction.opcode in MOVES and instruction.operands:
        instruction = instruction.operands[0]
    return instruction


def order_of(shape: Shape) -> tuple[int, ...] | None:
    """Returns the dimensions from minor to major without those of size 1; None without layout."""
    if shape.layout is None:
        return None
    return tuple(d for d in shape.layout.minor_to_major if d < shape.rank and shape.dimensions[d] != 1)


def changes_layout(instruction: Instruction) -> bool:
    """True if an instruction writes its operand in another dimension order, with the same dimensions."""
    if not instruction.operands or instruction.shape is None:
        return False
    old, new = instruction.operands[0].shape, instruction.shape
    if new.is_tuple and new.tuple_shapes:
        new = new.tuple_shapes[0]
    if old is None or not (old.is_array and new.is_array) or old.dimensions != new.dimensions:
        return False
    return order_of(old) != order_of(new)


def is_argument(instruction: Instruction, context: Context) -> bool:
    """True if a value is a parameter of the entry computation, possibly through views."""
    while instruction.opcode in ("bitcast", "get-tuple-element") and instruction.operands:
        instruction = instruction.operands[0]
    return instruction.opcode == "parameter" and instruction.computation is context.module.entry


def only_does(instruction: Instruction, opcode: str, context: Context) -> bool:
    """True if an instruction has this opcode, or is a fusion that does nothing else."""
    return instruction.opcode == opcode or context.fused_work.get(instruction) == opcode


def fusions_around(instruction: Instruction, context: Context) -> tuple[Instruction, ...]:
    """The fusion that an instruction stands in, alone; empty if it stands in none."""
    caller = context.graph.caller(instruction.computation)
    return (caller,) if caller is not None and caller.opcode == "fusion" else ()


def pieces(instruction: Instruction) -> list[Instruction]:
    """Returns the instruction, or the instructions of a fusion's body."""
    if instruction.opcode == "fusion":
        return [i for body in instruction.called_computations for i in body]
    return [instruction]


def results(one: Communication) -> Iterator[Instruction]:
    """Yields the results of a collective: itself or its done, or the elements if that is a tuple."""
    last = one.start
    chain = one.start.async_chain
    if chain and ROLES.get(chain[-1].opcode) == "done":
        last = chain[-1]
    if last.shape is not None and last.shape.is_tuple:
        yield from (user for user in last.users if user.opcode == "get-tuple-element")
    else:
        yield last


def takers(
    values: Iterable[Instruction], through: Collection[str]
) -> Iterator[tuple[Instruction, Instruction]]:
    """Yields users of values, each with the value used, looking through operations (fused or not) of these opcodes."""
    pending = list(values)
    seen = set(pending)
    while pending and len(seen) < _MOST_TAKERS:
        value = pending.pop()
        for user in value.users:
            if user in seen:
                continue
            seen.add(user)
            inside = pieces(user)
            if inside and all(i.opcode in through for i in inside):
                pending.append(user)
            else:
                yield user, value


_MOST_TAKERS = 200
"""Bound on instructions visited downstream of values."""


def slices_of(value: Instruction) -> list[Instruction] | None:
    """Returns the dynamic slices of a value, converted or not, if it has no other uses; else None."""
    found: list[Instruction] = []
    pending = [Value(value)]
    while pending:
        current = pending.pop()
        if current.instruction.is_root and current.writer.is_root:
            return None
        for user, number in consumers(current):
            if user.instruction.opcode == "dynamic-slice" and number == 0:
                found.append(user.instruction)
            elif user.instruction.opcode in _IN_ANY_TYPE:
                pending.append(user)
            else:
                return None
    return found or None


_IN_ANY_TYPE = RESULT_VIEWS | {"convert"}


def depends_on_device(value: Instruction, context: Context) -> bool:
    """True if a value is computed from the device's number, as is the offset of a shard."""
    return any(one.opcode in traits.DEVICE_IDS for one in _upstream(value, context))


def is_known_by_device(value: Instruction, context: Context) -> bool:
    """True if a value is determined by the device's number alone, and so known before the run."""
    seen = list(_upstream(value, context))
    return len(seen) < _FARTHEST and all(
        one.opcode in _KNOWN or (sources(one, context) and not _is_loop_state(one)) for one in seen
    )


_KNOWN = traits.KNOWN_VALUES | traits.DEVICE_IDS


def _is_loop_state(value: Instruction) -> bool:
    """True for what a round of a loop may leave otherwise than it was at first."""
    return value.opcode == "get-tuple-element" and value.operands[0].opcode == "parameter"


def _upstream(value: Instruction, context: Context) -> Iterator[Instruction]:
    """A value and what it is computed from, the nearest `_FARTHEST`."""
    seen: set[Instruction] = set()
    pending = [value]
    while pending and len(seen) < _FARTHEST:
        current = pending.pop()
        if current not in seen:
            seen.add(current)
            yield current
            pending += sources(current, context)


_FARTHEST = 500
"""Bound on instructions visited upstream of a value."""


def sources(value: Instruction, context: Context) -> list[Instruction]:
    """Returns the sources of a value: its operands; the fusion's operand for a parameter; the initial value for loop
    state.
    """
    caller = context.graph.caller(value.computation)
    if value.opcode == "parameter" and caller is not None and caller.opcode == "fusion":
        number = value.parameter_number or 0
        return [caller.operands[number]] if number < len(caller.operands) else []
    if value.opcode == "get-tuple-element" and caller is not None and caller.opcode == "while":
        first, index = caller.operands[0], value.attributes.get("index")
        if value.operands[0].opcode == "parameter" and first.opcode == "tuple" and isinstance(index, int):
            return [first.operands[index]]
    return list(value.operands)


def _parameters(fusion: Instruction, operand: Instruction) -> list[Instruction]:
    """The parameters of a fusion's body that an operand is."""
    numbers = {number for number, other in enumerate(fusion.operands) if other is operand}
    return [
        p for callee in fusion.called_computations for p in callee.parameters if p.parameter_number in numbers
    ]


def scheduled_between(start: Instruction, done: Instruction) -> list[Instruction]:
    """Returns the instructions between two of one computation, in text order."""
    if start.computation is None or start.computation is not done.computation:
        return []
    order = start.computation.instructions
    return list(order[order.index(start) + 1 : order.index(done)])


def is_invariant(one: Communication) -> bool:
    """True if a collective in a loop body has the same operands in every iteration."""
    begun = one.fusion if one.fusion is not None else one.start
    if (
        one.loop is None
        or one.kind not in COLLECTIVE_KINDS
        or begun.computation is not one.loop.attributes.get("body")
    ):
        return False
    fixed = invariant_instructions(one.loop)
    return bool(begun.operands) and all(operand in fixed for operand in begun.operands)


# ---- donation


def donors(context: Context) -> Iterator[tuple[Instruction, Shape]]:
    """Yields the arguments named in the header's `buffer_donor`, each with the donated array."""
    parameters = context.arguments
    for entry in donors_of(context.module):
        if entry.param_number < len(parameters):
            parameter = parameters[entry.param_number]
            for index, array in arrays_of(parameter.shape):
                if index == entry.param_index:
                    yield parameter, array


def unaliased_results(context: Context) -> dict[ShapeIndex, Shape]:
    """Returns the arrays of the entry's result that are not in an argument's buffer, by shape index."""
    aliased = {entry.output_index for entry in aliases_of(context.module)}
    return {i: array for i, array in arrays_of(context.module.entry.root.shape) if i not in aliased}


# ---- what instructions do besides their results

FLOW = frozenset({"call", "conditional", "while"})
"""Opcodes that run other computations step by step."""
_IDLE = frozenset({*VIEWS, "constant", "iota"})


def works(instruction: Instruction) -> bool:
    """True if an instruction computes: it is not a view, a constant, or half of an asynchronous operation."""
    return instruction.opcode in FLOW or not (instruction.opcode in _IDLE or instruction.opcode in ROLES)


_WITH_EFFECT = frozenset(
    {
        "add-dependency", "after-all", "call", "conditional", "custom-call", "domain", "infeed", "opt-barrier", "outfeed",
        "parameter", "rng-get-and-update-state", "rng", "while",
    }
)  # fmt: skip
_FREE = frozenset({"bitcast", "constant", "get-tuple-element", "iota", "partition-id", "replica-id", "tuple"})


def has_effect(instruction: Instruction) -> bool:
    """True if an instruction without users is not dead, or costs nothing."""
    opcode = instruction.opcode
    return opcode in _WITH_EFFECT or opcode in _FREE or opcode in ROLES or opcode in COLLECTIVES


def is_callback(instruction: Instruction) -> bool:
    """True if a custom call runs Python on the host."""
    return "callback" in str(instruction.attributes.get("custom_call_target", ""))


def is_in_branch(instruction: Instruction) -> bool:
    """True if an instruction runs only in branches of conditionals, whichever call leads to it."""
    pending = [instruction.computation]
    seen = set(pending)
    while pending and len(seen) < _FARTHEST:
        current = pending.pop()
        callers = current.callers if current is not None else ()
        if not callers:
            return False
        for caller in callers:
            if caller.opcode != "conditional" and caller.computation not in seen:
                seen.add(caller.computation)
                pending.append(caller.computation)
    return True


def is_of_package(instruction: Instruction) -> bool:
    """True if its Python line is in an installed package, which users do not change."""
    frame = responsible_frame(instruction)
    return frame is not None and any(f"{name}/" in frame.file.replace("\\", "/") for name in _INSTALLED)


_INSTALLED = ("site-packages", "dist-packages")


def is_librarys(instruction: Instruction) -> bool:
    """True if a loop or branch is part of a JAX function, such as a sampler or solver, that users cannot change.

    `.../jit(_uniform)/while` is directly in such a function, `.../jit(_gamma)/while/body/while` deeper in one.
    """
    metadata = instruction.metadata
    scopes = metadata.op_name.split("/") if metadata is not None else []
    if len(scopes) > 2 and scopes[-2].startswith("jit("):
        return True
    return is_of_own_function(instruction)


def is_of_own_function(instruction: Instruction) -> bool:
    """True if an instruction is part of a private JAX function, whose name starts with an underscore."""
    metadata = instruction.metadata
    scopes = metadata.op_name.split("/") if metadata is not None else []
    return any("jit(_" in scope for scope in scopes[1:])


def is_of_expansion(instruction: Instruction) -> bool:
    """True if a pass created an instruction by expanding an operation: its op_name has no scopes."""
    metadata = instruction.metadata
    return metadata is not None and bool(metadata.op_name) and "/" not in metadata.op_name


def is_of_convolution(instruction: Instruction) -> bool:
    """True if an instruction belongs to a convolution of the program, whose operands compilers slice and transpose."""
    return instruction.metadata is not None and "conv_general_dilated" in instruction.metadata.op_name


def is_of_fourier_transform(instruction: Instruction) -> bool:
    """True if a compiler made an instruction from a Fourier transform, as matmuls with tables of its own."""
    metadata = instruction.metadata
    scope = metadata.op_name.rpartition("/")[2] if metadata is not None else ""
    return instruction.opcode != "fft" and scope in ("fft", "jit(fft)")


_SOLVERS = frozenset(
    {"cholesky", "det", "eigh", "expm", "inv", "lstsq", "lu", "pinv", "qr", "slogdet", "solve", "svd"}
)
"""Functions of `jax.numpy.linalg` and `jax.scipy.linalg` that are programs of their own."""
_OF_FACTORS = frozenset({"cho_solve", "lu_solve"})
"""Functions of `jax.scipy.linalg` that are given a factorization, and prepare it in every call."""
_CALLED = re.compile(r"\bjit\((\w+)\)")


def is_solvers(instruction: Instruction) -> bool:
    """True if it is part of JAX's linear algebra, whose implementation users cannot change."""
    metadata = instruction.metadata
    scopes = metadata.op_name.split("/")[1:] if metadata is not None else []
    return any(name in _SOLVERS for scope in scopes for name in _CALLED.findall(scope))


def is_of_factors(instruction: Instruction) -> bool:
    """True if an instruction prepares a factorization for a solve, which users cannot do earlier."""
    metadata = instruction.metadata
    return metadata is not None and not _OF_FACTORS.isdisjoint(_CALLED.findall(metadata.op_name))


# ---- what is computed again


_MARK = "rematted_computation"
"""Marker of `jax.checkpoint` in the op_name of rematerialized operations."""


def is_computed_again(instruction: Instruction) -> bool:
    """True if `jax.checkpoint` recomputes it."""
    metadata = instruction.metadata
    return metadata is not None and _MARK in metadata.op_name


def is_product_call(call: Instruction) -> bool:
    """True if a custom call is a matmul or convolution of NVIDIA's libraries."""
    return str(call.attributes.get("custom_call_target", "")).startswith(("__cublas$", _CONVOLUTIONS))


def is_convolution_call(call: Instruction) -> bool:
    """True if a custom call is a convolution of NVIDIA's library."""
    return str(call.attributes.get("custom_call_target", "")).startswith(_CONVOLUTIONS)


_CONVOLUTIONS = "__cudnn$conv"


# ---- what belongs together


_PASSED_ON = frozenset({"bitcast", "copy", "get-tuple-element", "reshape", "tuple"})


def connected(found: Mapping[Instruction, float]) -> list[set[Instruction]]:
    """Groups instructions that are connected by operands, looking through views."""
    groups: dict[Instruction, set[Instruction]] = {one: {one} for one in found}
    for one in found:
        pending, seen = list(one.operands), set(one.operands)
        while pending:
            operand = pending.pop()
            if operand in groups:
                if groups[operand] is not groups[one]:
                    small, large = sorted((groups[operand], groups[one]), key=len)
                    large |= small
                    groups.update((member, large) for member in small)
            elif operand.opcode in _PASSED_ON:
                more = [other for other in operand.operands if other not in seen]
                pending += more
                seen.update(more)
    return list({id(group): group for group in groups.values()}.values())
