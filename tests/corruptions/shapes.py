"""Corruptions of result shapes and layouts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES
from tests.corruptions.base import Corruption, choose, done, kind, mixes_precisions, shape_of, state


def _leaf(
    module: Module, chance: random.Random, wanted: Callable[[Shape], Any]
) -> tuple[Instruction, tuple[int, ...], Shape] | None:
    """An instruction and an array in its result for which something holds."""
    chosen = choose(
        module,
        chance,
        lambda i: any(s.is_array and wanted(s) for _, s in shape_of(i).leaves()),
    )
    if chosen is None:
        return None
    index, leaf = chance.choice([(at, s) for at, s in shape_of(chosen).leaves() if s.is_array and wanted(s)])
    return chosen, index, leaf


def _replaced(shape: Shape, index: tuple[int, ...], leaf: Shape) -> Shape:
    if not index:
        return leaf
    parts = list(shape.tuple_shapes)
    parts[index[0]] = _replaced(parts[index[0]], index[1:], leaf)
    return Shape.tuple(tuple(parts))


def _put(found: tuple[Instruction, tuple[int, ...], Shape], leaf: Shape, name: str) -> Corruption:
    instruction, index, old = found
    state(instruction, _replaced(shape_of(instruction), index, leaf))
    return done(name, instruction, f"{old} became {leaf} at {index}")


@kind
def dimension(module: Module, chance: random.Random) -> Corruption | None:
    """A size of the result."""
    found = _leaf(module, chance, lambda s: s.rank)
    if found is None:
        return None
    shape = found[2]
    which = chance.randrange(shape.rank)
    size = shape.dimensions[which]
    new = chance.choice([size + 1, size * 2 or 3, *([size - 1] if size > 1 else [])])
    sizes = (*shape.dimensions[:which], new, *shape.dimensions[which + 1 :])
    return _put(found, attrs.evolve(shape, dimensions=sizes), "dimension")


@kind
def rank(module: Module, chance: random.Random) -> Corruption | None:
    """A dimension more or fewer."""
    found = _leaf(module, chance, lambda s: s.rank)
    if found is None:
        return None
    shape = found[2]
    layout = shape.layout
    if chance.random() < 0.5:
        order = (
            None
            if layout is None
            else attrs.evolve(layout, minor_to_major=(shape.rank, *layout.minor_to_major))
        )
        new = Shape(shape.element_type, (*shape.dimensions, 2), layout=order)
    else:
        numbers = () if layout is None else tuple(n for n in layout.minor_to_major if n != shape.rank - 1)
        order = (
            None if layout is None or not numbers else attrs.evolve(layout, minor_to_major=numbers, tiles=())
        )
        new = Shape(shape.element_type, shape.dimensions[:-1], layout=order)
    return _put(found, new, "rank")


@kind
def element_type(module: Module, chance: random.Random) -> Corruption | None:
    """Another type of another kind."""
    found = _leaf(module, chance, lambda s: True)
    if found is None:
        return None
    old = found[2].element_type
    others = [ELEMENT_TYPES[name] for name in ("f32", "s32", "pred", "c64", "u8", "f64")]
    new = chance.choice([t for t in others if t.kind is not old.kind])
    layout = found[2].layout
    plain = None if layout is None else attrs.evolve(layout, element_size_in_bits=0)
    return _put(found, attrs.evolve(found[2], element_type=new, layout=plain), "element_type")


@kind
def float_width(module: Module, chance: random.Random) -> Corruption | None:
    """Another float, where precisions may not mix."""
    if mixes_precisions(module):
        return None
    found = _leaf(module, chance, lambda s: s.element_type.is_floating)
    if found is None:
        return None
    names = [n for n in ("f32", "bf16", "f16", "f64") if n != str(found[2].element_type)]
    return _put(
        found, attrs.evolve(found[2], element_type=ELEMENT_TYPES[chance.choice(names)]), "float_width"
    )


@kind
def tuple_element(module: Module, chance: random.Random) -> Corruption | None:
    """An element of a result fewer, or one twice."""
    chosen = choose(module, chance, lambda i: shape_of(i).is_tuple and shape_of(i).tuple_shapes)
    if chosen is None:
        return None
    parts = list(shape_of(chosen).tuple_shapes)
    which = chance.randrange(len(parts))
    if chance.random() < 0.5 and len(parts) > 1:
        del parts[which]
    else:
        parts.insert(which, parts[which])
    state(chosen, Shape.tuple(tuple(parts)))
    return done("tuple_element", chosen, f"now {len(parts)} elements")


# ---- layouts


def _laid_out(shape: Shape) -> bool:
    return shape.rank > 1 and shape.layout is not None


@kind
def broken_layout(module: Module, chance: random.Random) -> Corruption | None:
    """A layout that names a dimension twice."""
    found = _leaf(module, chance, _laid_out)
    if found is None or found[2].layout is None:
        return None
    layout = found[2].layout
    new = attrs.evolve(layout, minor_to_major=(layout.minor_to_major[1], *layout.minor_to_major[1:]))
    return _put(found, found[2].with_layout(new), "broken_layout")


@kind
def other_layout(module: Module, chance: random.Random) -> Corruption | None:
    """A tuple, a get-tuple-element or an elementwise result in another order, in final HLO."""
    if not module.is_scheduled:
        return None
    opcodes = (
        "add",
        "multiply",
        "subtract",
        "maximum",
        "select",
        "get-tuple-element",
        "while",
        "negate",
        "compare",
    )
    chosen = choose(
        module, chance, lambda i: i.opcode in opcodes and shape_of(i).is_array and _laid_out(shape_of(i))
    )
    if chosen is None or chosen.shape is None or chosen.shape.layout is None:
        return None
    order = list(chosen.shape.layout.minor_to_major)
    order[0], order[1] = order[1], order[0]
    new = chosen.shape.with_layout(attrs.evolve(chosen.shape.layout, minor_to_major=tuple(order)))
    return _put((chosen, (), chosen.shape), new, "other_layout")


@kind
def memory_space(module: Module, chance: random.Random) -> Corruption | None:
    """A value that is passed on into another memory, in final HLO."""
    if not module.is_scheduled:
        return None
    chosen = choose(
        module,
        chance,
        lambda i: (
            i.opcode in ("get-tuple-element", "copy-done") and shape_of(i).is_array and shape_of(i).layout
        ),
    )
    if chosen is None or chosen.shape is None or chosen.shape.layout is None:
        return None
    layout = chosen.shape.layout
    new = attrs.evolve(layout, memory_space=layout.memory_space + 1)
    return _put((chosen, (), chosen.shape), chosen.shape.with_layout(new), "memory_space")


@kind
def bitcast(module: Module, chance: random.Random) -> Corruption | None:
    """A bitcast to more bytes, in final HLO."""
    if not module.is_scheduled:
        return None
    chosen = choose(
        module, chance, lambda i: i.opcode == "bitcast" and shape_of(i).is_array and shape_of(i).rank
    )
    if chosen is None or chosen.shape is None:
        return None
    sizes = (chosen.shape.dimensions[0] * 1000, *chosen.shape.dimensions[1:])
    return _put((chosen, (), chosen.shape), attrs.evolve(chosen.shape, dimensions=sizes), "bitcast")
