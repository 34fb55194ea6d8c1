"""Buffer sharing allowed by the GPU back end (`NVPTXAliasInfo`, `GpuAliasInfo`, `FusionCanShareBufferHint`)."""

from __future__ import annotations

from hlotext.analysis import reductions
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.layout import is_effective_scalar, shapes_equal
from hlotext.memory.elementwise import Elementwise, parameter_of, roots_of
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.value_sets import shape_of

_MATMUL = "__cublas$lt$matmul"
_OWN_ELEMENT = frozenset({"all-reduce", "collective-broadcast"})
_OTHER_EMITTERS = ("__custom_fusion", "__triton", "__cudnn")
"""Prefixes of fusion kinds that none of XLA's own emitters generates; they have no hero."""
_ROW_BOUND, _COLUMN_BOUND, _BATCH_BOUND = 1024 * 16, 32 * 128, 8
"""The largest reductions that need no second pass (`ReductionIsRaceFree`)."""


def gpu_hint(
    elementwise: Elementwise, operand: Instruction, user: Instruction, index: ShapeIndex
) -> bool | None:
    """Returns whether the GPU backend lets `user` overwrite `operand`, or None to apply the general rules."""
    if user.opcode in _OWN_ELEMENT:
        operands = user.operands
        return len(operands) == 1 or (
            len(index) == 1 and index[0] < len(operands) and operands[index[0]] is operand
        )
    if user.opcode == "custom-call":
        return _adds_in_place(operand, user, index)
    if user.opcode == "fusion":
        return _fusion_hint(elementwise, operand, user, index)
    return None


def _adds_in_place(operand: Instruction, call: Instruction, index: ShapeIndex) -> bool:
    """True if a custom call is a matrix product that adds to its third operand (cuBLASLt with a beta other than 0)."""
    if call.attributes.get("custom_call_target") != _MATMUL or len(call.operands) < 3:
        return False
    return (
        _beta(call) != 0
        and operand is call.operands[2]
        and sum(other is operand for other in call.operands) == 1
        and index == (0,)
    )


def _beta(call: Instruction) -> float:
    config = call.backend_config
    try:
        settings = config.json() if config is not None else {}
    except ValueError:
        return 0.0
    gemm = settings.get("gemm_backend_config", {}) if isinstance(settings, dict) else {}
    beta = gemm.get("beta", 0) if isinstance(gemm, dict) else 0
    return float(beta) if isinstance(beta, int | float) else 0.0


def _fusion_hint(
    elementwise: Elementwise, operand: Instruction, fusion: Instruction, index: ShapeIndex
) -> bool:
    """True if a fusion reads its operand in the very order in which it writes the output.

    On the way from the parameter there may be nothing but elementwise operations and bitcasts, and a few special cases.
    """
    callees = fusion.called_computations
    made = shape_of(fusion)
    for place in index:
        made = made.tuple_shapes[place]
    given = shape_of(operand)
    if not shapes_equal(given, made) and not _same_iteration(given, made):
        return False
    number = next((n for n, other in enumerate(fusion.operands) if other is operand), None)
    parameter = parameter_of(fusion, number) if number is not None else None
    if parameter is None or not callees:
        return False
    body = callees[0]
    output = body.root
    for place in index:
        if output.opcode != "tuple":
            break
        output = output.operands[place]
    target = output.operands[0] if output.opcode == "bitcast" else output
    hero = _reduction_hero(elementwise, fusion, body)
    reached = _reached(elementwise, body, parameter, target, hero, index)
    if reached is None or output not in reached:
        return False
    roots = roots_of(body)
    if len(roots) > 1:
        met = [root for root in roots if root in reached]
        if any(root is not output for root in met):
            heroes = elementwise.heroes(body)
            transposed = any(heroes[root].opcode in ("copy", "transpose") for root in met)
            if transposed or not elementwise.everywhere(target):
                return False
    return True


def _same_iteration(given: Shape, made: Shape) -> bool:
    return (
        given.is_array
        and made.is_array
        and given.element_count == made.element_count
        and given.element_type.bits == made.element_type.bits
    )


def _reached(
    elementwise: Elementwise,
    body: Computation,
    parameter: Instruction,
    target: Instruction,
    hero: Instruction | None,
    index: ShapeIndex,
) -> set[Instruction] | None:
    """Instructions reached from the parameter; None if one of them forbids sharing."""
    reached = {parameter}
    for user in body:
        touched = False
        for operand in dict.fromkeys(user.operands):
            if operand not in reached or operand is hero:
                continue
            touched = True
            if not _allowed(elementwise, user, operand, target, hero, index):
                return None
        if touched:
            reached.add(user)
    return reached


def _allowed(
    elementwise: Elementwise,
    user: Instruction,
    operand: Instruction,
    target: Instruction,
    hero: Instruction | None,
    index: ShapeIndex,
) -> bool:
    """True if one step on the way keeps the order of elements."""
    number = user.operands.index(operand)
    is_only = sum(other is operand for other in user.operands) == 1
    if user is target and user.opcode == "scatter":
        inputs = len(shape_of(user).tuple_shapes) if shape_of(user).is_tuple else 1
        if number < inputs and is_only:
            return True
    if user is target and user.opcode == "sort" and is_only:
        return index == (number,)
    if (
        target.opcode == "dynamic-update-slice"
        and user.opcode == "dynamic-slice"
        and target.operands[0] is user.operands[0]
        and user.shape == target.operands[1].shape
    ):
        # The slice that is read is the one that is written, or both are single elements.
        if is_effective_scalar(shape_of(user)) and is_effective_scalar(shape_of(target.operands[1])):
            return True
        return user.operands[1:] == target.operands[2:]
    is_in_order = elementwise.on(user, number) and user.opcode != "copy"
    if is_in_order or user.opcode in ("bitcast", "tuple") or user is hero:
        return True
    return user is target and user.opcode == "dynamic-update-slice" and number == 1


# ---- reductions


def _reduction_hero(elementwise: Elementwise, fusion: Instruction, body: Computation) -> Instruction | None:
    """The reduction that is computed before anything else is written; None if no such emitter is used."""
    if _kind(fusion).startswith(_OTHER_EMITTERS):
        return None
    hero_of = elementwise.heroes(body)
    roots = list(hero_of)
    heroes = list(hero_of.values())
    real = [_is_real_reduction(root, hero) for root, hero in zip(roots, heroes, strict=True)]
    if True not in real:
        return None
    first = heroes[real.index(True)]
    elements = shape_of(first.operands[0]).element_count
    kind = _kind_of(first)
    for root, hero, is_real in zip(roots, heroes, real, strict=True):
        if root is first:
            continue
        if is_real:
            if _kind_of(hero) != kind:
                return None
        elif not shape_of(root).is_array or shape_of(root).element_count != elements:
            return None
    return first


def _kind(fusion: Instruction) -> str:
    config = fusion.backend_config
    try:
        settings = config.json() if config is not None else {}
    except ValueError:
        return ""
    inner = settings.get("fusion_backend_config", {}) if isinstance(settings, dict) else {}
    return str(inner.get("kind", "")) if isinstance(inner, dict) else ""


def _is_real_reduction(root: Instruction, hero: Instruction) -> bool:
    """True if the reduction emitter is used for it (`IsRealReductionHero`)."""
    if hero.opcode != "reduce" or not hero.operands or hero.operands[0].shape is None:
        return False
    kind = _kind_of(hero)
    if kind is None or not reductions.is_faster(*kind):
        return False
    is_row, (major, middle, minor) = kind
    if root is hero:
        return True
    return minor <= _ROW_BOUND and major <= _BATCH_BOUND if is_row else middle <= _COLUMN_BOUND


def _kind_of(reduce: Instruction) -> reductions.Kind | None:
    return reductions.kind_of(shape_of(reduce.operands[0]), tuple(reduce.attributes.get("dimensions", ())))
