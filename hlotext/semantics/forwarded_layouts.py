"""Layouts in final HLO: values are passed on in the layout that they have, and only some opcodes change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from hlotext.ir.caches import weighted_cache
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Layout, Shape
from hlotext.layout import (
    LayoutError,
    allocated_bytes,
    compatible,
    layouts_equal,
    shapes_equal,
    unpadded_bytes,
)
from hlotext.layout.errors import shorten
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.problems import Callee, Part, Problem, Where

TILES, SPACE, TAIL, SPLITS, SIZE = (
    "tiles", "memory_space", "tail_padding_alignment_in_elements", "split_configs", "element_size_in_bits",
)  # fmt: skip
"""Parts of a layout that some comparisons leave out."""

_ORDER_ONLY = frozenset({TILES, SPACE, TAIL, SIZE})
"""Parts that XLA ignores where it compares the order of dimensions alone (`MinorToMajorOnlyInLayout`)."""


@attrs.frozen
class Pair:
    """Two shapes that must be equal, since they are of the same value."""

    mine: Shape | None
    """Part of the instruction's own shape, or of an operand's."""
    other: Shape | None
    what: str
    """Description of the other one."""
    where: Where = Part.SHAPE
    related: tuple[int | Callee, ...] = ()
    ignored: frozenset[str] = frozenset()
    """Parts of the layouts that need not be equal."""


def check_forwarded(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that opcodes that forward values do not change their layouts (`ShapeVerifier::CheckShape`, `ShapesSame`)."""
    pairs = _PAIRS.get(instruction.opcode)
    if pairs is None or not facts.layout_sensitive:
        return
    for pair in pairs(instruction, facts):
        mine, other = pair.mine, pair.other
        if mine is None or other is None or not compatible(mine, other):
            continue  # another shape is a matter of inference
        if not equal_but_for(mine, other, pair.ignored):
            message = (
                f"{pair.what} is {shorten(str(other))}, but {_subject(pair.where)} is {shorten(str(mine))}"
            )
            help = "only copy, and operations that compute a new value, may change a layout"
            yield Problem("V205", message, pair.where, help, pair.related)


def _subject(where: Where) -> str:
    if isinstance(where, int):
        return f"operand {where}"
    return where if isinstance(where, str) else "the result"


def equal_but_for(a: Shape, b: Shape, ignored: frozenset[str]) -> bool:
    """Returns True if two shapes are equal (XLA's `Shape::Equal`), ignoring these fields of layouts."""
    return a is b or shapes_equal(_without(a, ignored), _without(b, ignored))


@weighted_cache(1 << 12)
def _without(shape: Shape, ignored: frozenset[str]) -> Shape:
    """The shape with these parts of its layouts as they are in a plain layout."""
    if shape.tuple_shapes:
        return attrs.evolve(shape, tuple_shapes=tuple(_without(s, ignored) for s in shape.tuple_shapes))
    if shape.layout is None:
        return shape
    plain = Layout()
    return shape.with_layout(attrs.evolve(shape.layout, **{name: getattr(plain, name) for name in ignored}))


def _element(shape: Shape | None, *index: int) -> Shape | None:
    """An element of a tuple; None if there is none, which is a matter of shapes and not of layouts."""
    for i in index:
        if shape is None or i >= len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[i]
    return shape


def _shape(instruction: Instruction, number: int) -> Shape | None:
    return instruction.operands[number].shape if number < len(instruction.operands) else None


# ---- which shapes are equal, by opcode


def _tuple(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    for number, operand in enumerate(instruction.operands):
        yield Pair(_element(instruction.shape, number), operand.shape, f"operand {number}", related=(number,))


def _get_tuple_element(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    index = instruction.attributes.get("index", 0)
    yield Pair(
        instruction.shape,
        _element(_shape(instruction, 0), index),
        f"element {index} of operand 0",
        related=(0,),
    )


def _same(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    yield Pair(instruction.shape, _shape(instruction, 0), "operand 0", related=(0,))


def _update(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    # Inside fusions memory spaces and tiles mean nothing, since nothing there lies in memory.
    ignored = frozenset({TILES, SPACE}) if facts.in_fusion else frozenset[str]()
    yield Pair(instruction.shape, _shape(instruction, 0), "operand 0", related=(0,), ignored=ignored)


def _into(
    instruction: Instruction,
    called: tuple[Computation, ...],
    number: int,
    name: str,
    operands: tuple[int, ...],
) -> Iterator[Pair]:
    """Operands against the parameters of a called computation."""
    if number >= len(called) or not len(called[number]):
        return
    for parameter, operand in zip(called[number].parameters, operands, strict=False):
        index = parameter.parameter_number
        yield Pair(
            _shape(instruction, operand), parameter.shape, f"parameter {index} of {name}", operand,
            (operand, Callee(number, index)),
        )  # fmt: skip


def _out_of(called: tuple[Computation, ...], number: int, name: str, shape: Shape | None) -> Iterator[Pair]:
    """A result against the root of a called computation."""
    if number < len(called) and len(called[number]):
        yield Pair(shape, called[number].root.shape, f"the root of {name}", Part.SHAPE, (Callee(number),))


def _call(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    name, called = "the called computation", instruction.called_computations
    yield from _into(instruction, called, 0, name, tuple(range(len(instruction.operands))))
    yield from _out_of(called, 0, name, instruction.shape)


def _fusion(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    """As of a call; but where values lie in host memory is marked outside of fusions alone (`HostOffloader`)."""
    for pair in _call(instruction, facts):
        is_host = _space(pair.mine) == _HOST or _space(pair.other) == _HOST
        yield (
            attrs.evolve(pair, ignored=frozenset({SPACE}))
            if is_host and pair.where is not Part.SHAPE
            else pair
        )


_HOST = 5
"""The memory space of the host (`Layout::kHostMemorySpace`)."""


def _space(shape: Shape | None) -> int | None:
    return shape.layout.memory_space if shape is not None and shape.layout is not None else None


def _while(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    called = instruction.called_computations
    yield from _same(instruction, facts)
    yield from _into(instruction, called, 0, "body", (0,))
    yield from _into(instruction, called, 1, "condition", (0,))
    yield from _out_of(called, 0, "body", instruction.shape)


def _conditional(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    called = instruction.called_computations
    for number in range(len(called)):
        yield from _into(instruction, called, number, f"branch {number}", (number + 1,))
        yield from _out_of(called, number, f"branch {number}", instruction.shape)


def _async_start(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    name, called = "the wrapped computation", instruction.called_computations
    for number in range(len(instruction.operands)):
        taken = _element(instruction.shape, 0, number)
        yield Pair(taken, _shape(instruction, number), f"operand {number}", related=(number,))
    yield from _into(instruction, called, 0, name, tuple(range(len(instruction.operands))))
    yield from _out_of(called, 0, name, _element(instruction.shape, 1))


def _started(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    yield Pair(
        instruction.shape, _element(_shape(instruction, 0), 1), "the result of the start", related=(0,)
    )


def _async_update(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    for number in range(min(2, len(instruction.shape.tuple_shapes)) if instruction.shape is not None else 0):
        if number or len(instruction.operands) == 1:
            started = _element(_shape(instruction, 0), number)
            yield Pair(
                _element(instruction.shape, number), started, f"element {number} of operand 0", related=(0,)
            )


def _copy_start(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    for number in (0, 1):
        part = _element(instruction.shape, number)
        yield Pair(part, _shape(instruction, 0), "operand 0", related=(0,), ignored=_ORDER_ONLY)


def _copy_done(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    copy, source = (_element(_shape(instruction, 0), number) for number in (0, 1))
    yield Pair(instruction.shape, copy, "the copy in operand 0", related=(0,))
    yield Pair(copy, source, "what is copied", 0, (0,), frozenset({SPACE, SPLITS}))


def _send(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    data = _element(instruction.shape, 0)
    yield Pair(data, _shape(instruction, 0), "operand 0", related=(0,), ignored=_ORDER_ONLY)


def _recv_done(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    data, started = _element(instruction.shape, 0), _element(_shape(instruction, 0), 0)
    yield Pair(data, started, "the data in operand 0", related=(0,))


def _outfeed(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    stated = instruction.attributes.get("outfeed_shape")
    if isinstance(stated, Shape):
        yield Pair(stated, _shape(instruction, 0), "operand 0", "outfeed_shape", (0,))


def _constant(instruction: Instruction, facts: VerifierOptions) -> Iterator[Pair]:
    if instruction.literal is not None:
        yield Pair(instruction.shape, instruction.literal.shape, "the literal", ignored=_ORDER_ONLY)


_PAIRS: dict[str, Callable[[Instruction, VerifierOptions], Iterator[Pair]]] = {
    "all-gather-done": _started,
    "all-reduce-done": _same,
    "async-done": _started,
    "async-start": _async_start,
    "async-update": _async_update,
    "call": _call,
    "collective-permute-done": _started,
    "conditional": _conditional,
    "constant": _constant,
    "copy-done": _copy_done,
    "copy-start": _copy_start,
    "dynamic-update-slice": _update,
    "fusion": _fusion,
    "get-tuple-element": _get_tuple_element,
    "opt-barrier": _same,
    "outfeed": _outfeed,
    "recv-done": _recv_done,
    "send": _send,
    "tuple": _tuple,
    "while": _while,
}


# ---- opcodes that compute and keep the layout

KEEP_LAYOUT = traits.KEEPS_LAYOUT - traits.STARTS - traits.DONES - {"opt-barrier", "while"}
"""Opcodes whose arrays of one rank all have one layout (not `LayoutAssignment::InstructionCanChangeLayout`)."""

_OTHER_WIDTH = frozenset({"compare", "convert", "is-finite", "scatter"})
"""Of these, the opcodes whose operands may have elements of another width than the result."""


def check_same_layout(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that operands and result have one dimension order, ignoring tiles and memory spaces
    (`InstructionVerifier::Postprocess`).
    """
    shape = instruction.shape
    if not facts.layout_sensitive or shape is None:
        return
    operands = instruction.operands
    if instruction.opcode == "scatter":
        operands = operands[
            : len(operands) // 2
        ]  # the TPU compiler leaves updates in the layout that they have
    for number, operand in enumerate(operands):
        # An operation with several results has as many operands first, one for each.
        mine = _element(shape, number) if shape.is_tuple else shape
        theirs = operand.shape
        if (
            mine is None
            or theirs is None
            or not (mine.is_array and theirs.is_array)
            or mine.rank != theirs.rank
        ):
            continue
        if mine.layout is None or theirs.layout is None:
            continue
        ignored = {TILES, SPACE}
        if instruction.opcode in _OTHER_WIDTH or (
            instruction.opcode == "select" and str(theirs.element_type) == "pred"
        ):
            ignored.add(SIZE)
        if not _equal(mine.layout, theirs.layout, frozenset(ignored)):
            given = shorten(str(theirs))
            yield Problem(
                "V206", f"{instruction.opcode} produces {shorten(str(mine))}, but operand {number} is {given}", number,
                "copy the operand into the result's layout first", (number,),
            )  # fmt: skip


def _equal(a: Layout, b: Layout, ignored: frozenset[str]) -> bool:
    plain = {name: getattr(Layout(), name) for name in ignored}
    return layouts_equal(attrs.evolve(a, **plain), attrs.evolve(b, **plain))


# ---- bitcasts and custom calls


def check_bitcast(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that a bitcast preserves the number of bytes, with or without padding (`ShapeVerifier::HandleBitcast`)."""
    shape, operand = instruction.shape, _shape(instruction, 0)
    if not facts.layout_sensitive or shape is None or operand is None:
        return
    if not (shape.is_array and operand.is_array):
        if shape.is_array != operand.is_array:
            yield Problem("V102", f"a bitcast cannot turn {operand} into {shape}", 0, related=(0,))
        return
    try:
        sizes = allocated_bytes(operand), allocated_bytes(shape)
        values = unpadded_bytes(operand), unpadded_bytes(shape)
    except LayoutError:
        return  # has a finding of its own
    if sizes[0] != sizes[1] and (values[0] != values[1] or not (shape.is_static and operand.is_static)):
        yield Problem(
            "V207",
            f"{operand} takes {sizes[0]} bytes, but {shape} takes {sizes[1]}",
            Part.SHAPE,
            related=(0,),
        )


def check_constraints(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that operands have the layouts of `operand_layout_constraints=`, ignoring tiles and memory spaces."""
    constraints = instruction.attributes.get("operand_layout_constraints")
    if not facts.layout_sensitive or not isinstance(constraints, tuple):
        return
    for number, (demanded, operand) in enumerate(zip(constraints, instruction.operands, strict=False)):
        if operand.shape is None or not isinstance(demanded, Shape):
            continue
        if not equal_but_for(operand.shape, demanded, frozenset({TILES, SPACE, TAIL})):
            yield Problem(
                "V210", f"operand {number} is {shorten(str(operand.shape))}, not {shorten(str(demanded))}", number,
                related=(number,),
            )  # fmt: skip
