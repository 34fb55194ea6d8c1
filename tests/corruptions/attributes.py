"""Corruptions of attributes and of what is called."""

from __future__ import annotations

import random
from typing import Any

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.window import SliceDimensions, Window
from tests.corruptions.base import Corruption, candidates, choose, done, kind, put


def _numbers(name: str, chance: random.Random, value: tuple[int, ...]) -> tuple[int, ...]:
    """A list of dimension numbers with one out of range, or one twice."""
    which = chance.randrange(len(value))
    new = value[(which + 1) % len(value)] if len(value) > 1 and chance.random() < 0.5 else 17
    return (*value[:which], new, *value[which + 1 :])


_LISTS = (
    *("dimensions", "offset_dims", "collapsed_slice_dims", "start_index_map", "update_window_dims"),
    *("inserted_window_dims", "scatter_dims_to_operand_dims", "lhs_batch_dims", "rhs_batch_dims"),
    *("lhs_contracting_dims", "rhs_contracting_dims"),
)
"""Attributes that list dimension numbers."""


@kind
def dimension_number(module: Module, chance: random.Random) -> Corruption | None:
    """A dimension number out of range, or one twice: a broken permutation, among others."""
    chosen = choose(
        module, chance, lambda i: i.opcode != "ragged-all-to-all" and any(i.attributes.get(n) for n in _LISTS)
    )
    if chosen is None:
        return None
    name = chance.choice([n for n in _LISTS if chosen.attributes.get(n)])
    numbers: Any = chosen.attributes[name]
    new = _numbers(name, chance, numbers)
    put(chosen, **{name: new})
    return done("dimension_number", chosen, f"{name} became {new}")


@kind
def contraction(module: Module, chance: random.Random) -> Corruption | None:
    """A contracting dimension of another size."""

    def choices(i: Instruction) -> list[tuple[str, int]]:
        found = []
        for number, side in enumerate(("lhs", "rhs")):
            other = i.operands[1 - number].shape
            facing = i.attributes.get(f"{'rhs' if side == 'lhs' else 'lhs'}_contracting_dims", ())
            shape = i.operands[number].shape
            if len(facing) == 1 and shape is not None and other is not None:
                found += [
                    (side, d) for d in range(shape.rank) if shape.dimensions[d] != other.dimensions[facing[0]]
                ]
        return found

    chosen = choose(module, chance, lambda i: i.opcode == "dot" and choices(i))
    if chosen is None:
        return None
    side, dimension = chance.choice(choices(chosen))
    put(chosen, **{f"{side}_contracting_dims": (dimension,)})
    return done("contraction", chosen, f"{side} contracts {dimension}")


@kind
def tuple_index(module: Module, chance: random.Random) -> Corruption | None:
    """A tuple index out of range, or of an element of another shape."""
    chosen = choose(module, chance, lambda i: i.opcode == "get-tuple-element")
    if chosen is None:
        return None
    parts = chosen.operands[0].shape.tuple_shapes  # type: ignore[union-attr]
    others = [n for n, part in enumerate(parts) if part.without_layout() != chosen.shape.without_layout()]  # type: ignore[union-attr]
    index = chance.choice([len(parts), *others])
    put(chosen, index=index)
    return done("tuple_index", chosen, f"index {index}")


@kind
def size(module: Module, chance: random.Random) -> Corruption | None:
    """Sizes and limits of slices, paddings and windows."""
    chosen = choose(
        module,
        chance,
        lambda i: i.opcode in ("slice", "dynamic-slice", "gather", "iota") or i.attributes.get("window"),
    )
    if chosen is None:
        return None
    if chosen.opcode == "slice":
        parts = chosen.attributes["slice"].dimensions
        which = chance.randrange(len(parts)) if parts else -1
        if which < 0:
            return None
        part = attrs.evolve(parts[which], limit=parts[which].limit + 2)
        put(chosen, slice=SliceDimensions((*parts[:which], part, *parts[which + 1 :])))
    elif chosen.opcode == "iota":
        put(chosen, iota_dimension=9)
    elif isinstance(chosen.attributes.get("window"), Window):
        sides = chosen.attributes["window"].dimensions
        if not sides:
            return None
        which = chance.randrange(len(sides))
        side = attrs.evolve(sides[which], size=sides[which].size + 1)
        put(chosen, window=Window((*sides[:which], side, *sides[which + 1 :])))
    else:
        name = "slice_sizes" if chosen.opcode == "gather" else "dynamic_slice_sizes"
        sizes: Any = chosen.attributes[name]
        which = chance.randrange(len(sizes)) if sizes else -1
        if which < 0:
            return None
        put(chosen, **{name: (*sizes[:which], sizes[which] + 1, *sizes[which + 1 :])})
    return done("size", chosen, "another size")


@kind
def missing_attribute(module: Module, chance: random.Random) -> Corruption | None:
    """A required attribute is gone."""

    def required(i: Instruction) -> list[str]:
        row = OPCODES.get(i.opcode)
        return [u.name for u in row.attributes if u.required and u.name in i.attributes] if row else []

    scalars = ("broadcast",)
    chosen = choose(module, chance, lambda i: i.opcode not in scalars and required(i))
    if chosen is None:
        return None
    name = chance.choice(required(chosen))
    chosen._attributes = {key: value for key, value in chosen._attributes.items() if key != name}
    return done("missing_attribute", chosen, f"without {name}")


# ---- called computations


@kind
def other_computation(module: Module, chance: random.Random) -> Corruption | None:
    """A reducer, a body, a branch or a fusion of another signature."""

    def signature(computation: Computation) -> tuple[str, ...]:
        shapes = [*(p.shape for p in computation.parameters), computation.root.shape]
        return tuple(str(shape.without_layout()) for shape in shapes if shape is not None)

    def named(i: Instruction) -> list[str]:
        return [name for name, value in i._attributes.items() if isinstance(value, Computation)]

    chosen = choose(module, chance, lambda i: i.opcode != "custom-call" and named(i))
    if chosen is None or chosen.computation is None:
        return None
    name = chance.choice(named(chosen))
    old = chosen._attributes[name]
    usable = module.computations[: module.computations.index(chosen.computation)]
    others = [c for c in usable if not c.is_sugared and c.name and signature(c) != signature(old)]
    if not others:
        return None
    other = chance.choice(others)
    put(chosen, **{name: other})
    return done("other_computation", chosen, f"{name} became {other.name}")


@kind
def shared_fusion(module: Module, chance: random.Random) -> Corruption | None:
    """Two fusions call one computation."""
    fusions = candidates(module, lambda i: i.opcode == "fusion")
    pairs = [(a, b) for a in fusions for b in fusions[: fusions.index(a)]][:5000]
    if not pairs:
        return None
    later, first = chance.choice(pairs)
    put(later, calls=first._attributes["calls"])
    return done("shared_fusion", later, f"calls that of {first.name}")


@kind
def parameter_number(module: Module, chance: random.Random) -> Corruption | None:
    """A parameter's number twice, or out of range."""
    chosen = choose(module, chance, lambda i: i.opcode == "parameter")
    if chosen is None or chosen.computation is None:
        return None
    chosen._argument = (chosen.parameter_number or 0) + chance.choice([1, 7])
    return done("parameter_number", chosen, f"number {chosen._argument}")
