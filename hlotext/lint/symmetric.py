"""Symmetric matrices: those whose formula stays the same when rows and columns are exchanged."""

from __future__ import annotations

from typing import Any

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.rounds import places_of
from hlotext.lint.sums import adds
from hlotext.lint.values import Value, entered

_MOST_OPERATIONS = 200

_Labels = tuple[Any, ...]
"""A name for each dimension of an array: equal names are equal indices."""
_Form = tuple[int, Any]
"""A sign, and the rest of a formula."""


def is_symmetric(matrix: Value) -> bool:
    """True if a square matrix equals its transpose for all arguments; False if that is unknown.

    Such as pairwise distances of rows, `a.T @ a`, elementwise functions of these, and added diagonals.
    """
    shape = entered(matrix).instruction.shape
    if shape is None or not shape.is_array or shape.rank != 2 or shape.dimensions[0] != shape.dimensions[1]:
        return False
    left = [_MOST_OPERATIONS]
    there, back = (_form(matrix, labels, left) for labels in (("i", "j"), ("j", "i")))
    return left[0] > 0 and there == back


def _form(value: Value, labels: _Labels, left: list[int]) -> _Form:
    """The formula of the element with these indices; factors and terms are sorted, signs are in front."""
    value = entered(value)
    one, operands = value.instruction, value.operands()
    left[0] -= 1
    leaf = 1, ("leaf", id(one), labels)
    if left[0] <= 0:
        return leaf
    if one.opcode == "constant":
        return 1, ("constant", str(one.literal))
    if one.opcode == "iota":
        return 1, ("iota", labels[one.attributes.get("iota_dimension", 0)])
    if one.opcode == "broadcast":
        return _form(operands[0], tuple(labels[d] for d in one.attributes.get("dimensions", ())), left)
    if one.opcode == "reduce" and len(operands) == 2:
        return _reduced(value, labels, left)
    if one.opcode == "dot":
        inner = _summed(one, labels)
        factors = [_form(operand, own, left) for operand, own in zip(operands, inner, strict=True)]
        return _joined("dot", factors)
    if one.opcode == "convert" or one.opcode in traits.REARRANGES_ELEMENTS:
        own = _moved(one, labels)
        return _form(operands[0], own, left) if own is not None else leaf
    if one.opcode not in ELEMENTWISE:
        return leaf
    forms = [_form(operand, labels, left) for operand in operands]
    if one.opcode == "subtract":
        return _joined("add", [forms[0], (-forms[1][0], forms[1][1])])
    if one.opcode == "negate":
        return -forms[0][0], forms[0][1]
    if one.opcode in traits.COMMUTATIVE or (
        one.opcode == "compare" and str(one.attributes.get("direction")) == "EQ"
    ):
        return _joined(one.opcode, forms)
    if one.opcode == "divide":
        return forms[0][0] * forms[1][0], ("divide", forms[0][1], forms[1][1])
    return 1, (one.opcode, str(one.attributes.get("direction", "")), *forms)


def _joined(opcode: str, forms: list[_Form]) -> _Form:
    forms = sorted(forms, key=repr if opcode != "add" else lambda form: repr(form[1]))
    sign = 1
    if opcode in ("dot", "multiply"):
        for factor, _ in forms:
            sign *= factor
        forms = sorted(((1, rest) for _, rest in forms), key=repr)
    elif opcode == "add":
        sign = forms[0][0]
        forms = [(sign * own, rest) for own, rest in forms]
    return sign, (opcode, *forms)


def _reduced(value: Value, labels: _Labels, left: list[int]) -> _Form:
    one = value.instruction
    before = one.operands[0].shape
    reduced = tuple(one.attributes.get("dimensions", ()))
    rest = iter(labels)
    own = tuple(
        ("summed", d) if d in reduced else next(rest) for d in range(before.rank if before is not None else 0)
    )
    sign, form = _form(value.operands()[0], own, left)
    by = one.attributes.get("to_apply")
    is_sum = adds(by)
    whole = ("reduce", "add" if is_sum else id(by), (1 if is_sum else sign, form))
    return (sign if is_sum else 1), whole


def _summed(dot: Instruction, labels: _Labels) -> tuple[_Labels, _Labels]:
    """The labels of both operands of a product."""
    batch = len(dot.attributes.get("lhs_batch_dims", ()))
    place, found = batch, []
    for operand, name in zip(dot.operands, ("lhs", "rhs"), strict=True):
        batched = tuple(dot.attributes.get(f"{name}_batch_dims", ()))
        summed = tuple(dot.attributes.get(f"{name}_contracting_dims", ()))
        own: list[Any] = []
        for d in range(operand.shape.rank if operand.shape is not None else 0):
            if d in batched:
                own.append(labels[batched.index(d)])
            elif d in summed:
                own.append(("summed", summed.index(d)))
            else:
                own.append(labels[place])
                place += 1
        found.append(tuple(own))
    return found[0], found[1]


def _moved(one: Instruction, labels: _Labels) -> _Labels | None:
    """The labels of the operand; None if sizes are joined or split."""
    source, shape = one.operands[0].shape, one.shape
    if source is None or shape is None or not source.is_array:
        return None
    if (places := places_of(one)) is not None:
        return tuple(labels[place] for place in places)
    kept = [d for d in range(shape.rank) if shape.dimensions[d] != 1]
    before = [d for d in range(source.rank) if source.dimensions[d] != 1]
    if [shape.dimensions[d] for d in kept] != [source.dimensions[d] for d in before]:
        return None
    if one.opcode == "bitcast" and not (_is_plain(one) and _is_plain(one.operands[0])):
        return None
    own: list[Any] = [None] * source.rank
    for d, there in zip(before, kept, strict=True):
        own[d] = labels[there]
    return tuple(own)


def _is_plain(one: Instruction) -> bool:
    layout = one.shape.layout if one.shape is not None else None
    return layout is None or list(layout.minor_to_major) == sorted(layout.minor_to_major, reverse=True)
