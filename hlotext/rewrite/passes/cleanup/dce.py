"""Dead code elimination."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from typing import ClassVar

import attrs

from hlotext.edit.asynchronous import is_finished_by
from hlotext.edit.parameters import remove_parameter, remove_unused_parameters
from hlotext.edit.structure import set_root
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation, without_users
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.enums import FusionKind
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.effects import fixed, has_effect
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class DeadCodeElimination(Pass):
    """Removes unused instructions without side effects, and uncalled computations (`HloDCE`).

    Parameters and instructions with control dependencies are kept, and so is an asynchronous operation with a side effect, up
    to its done. Unused parameters and outputs of fusions are removed. Each computation is traversed once from its end, so the
    time is linear in the module.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  y = f32[] negate(x)  z = f32[] sine(y)  ROOT r = f32[] cosine(x) }")
    >>> DeadCodeElimination().run(m).statistics
    {'instructions': 2}
    """

    name: ClassVar[str] = "dce"
    summary: ClassVar[str] = "Removes unused instructions and computations."

    computations: bool = True
    """Also takes out computations that the entry does not reach."""

    def run(self, module: Module) -> PassResult:
        sweep = _Sweep(module)
        sweep.all()
        while sweep.narrow_fusions():  # what they no longer take or give may have been all that needed more
            sweep.all()
        counts = sweep.counts
        if self.computations:
            counts["computations"] = remove_unreached(module)
        return PassResult.of(counts)


class _Sweep:
    """One run over a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.counts = Counter[str]()
        self.with_unused_parameters: list[Computation] = []

    @functools.cached_property
    def kept(self) -> frozenset[Instruction]:
        """The instructions that stay although nothing uses them; looked for once something is unused."""
        return fixed(self.module)

    def all(self) -> None:
        """Takes the dead instructions of all computations out, and notes whose parameters nothing uses."""
        self.with_unused_parameters = []
        for computation in self.module.computations:
            if computation.is_sugared or not computation._instructions:
                continue
            unused = without_users(computation)
            if not unused:
                continue
            if any(i.opcode != "parameter" and i not in self.kept for i in unused):
                self.counts["instructions"] += self.one(computation)
                unused = without_users(computation)
            if any(i.opcode == "parameter" for i in unused):
                self.with_unused_parameters.append(computation)

    def one(self, computation: Computation) -> int:
        """Takes the dead instructions of a computation out at once; how many."""
        needed: set[Instruction] = {computation.root}
        dead: list[Instruction] = []

        def stays(i: Instruction) -> bool:
            while i not in needed and i not in self.kept and i.opcode != "parameter":
                if not i.operands or not is_finished_by(i.operands[0], i):
                    return False
                i = i.operands[0]
            return True

        for i in reversed(computation._instructions):
            if i in needed or stays(i):
                needed.update(i.operands)
            else:
                dead.append(i)
        computation.remove_all(dead)
        return len(dead)

    def narrow_fusions(self) -> bool:
        """Takes away what fusions are given and what they give that nothing uses; whether there was any."""
        found: Counter[str] = Counter()
        for body in self.module.computations:
            if body._instructions and body.root.opcode == "tuple" and body.is_fusion_body:
                found["outputs"] += _drop_outputs(body)
        for body in self.with_unused_parameters:
            if body.is_fusion_body:
                found["parameters"] += _drop_parameters(body)
        self.counts += found
        return found.total() > 0


def _drop_parameters(body: Computation) -> int:
    """Takes the parameters of a fusion's computation away that nothing uses, and what the fusion passes for them."""
    unused = [i for i in without_users(body) if i.opcode == "parameter" and not i.control_successors]
    if len(unused) > 1:
        with contextlib.suppress(EditError):
            remove_unused_parameters(body, unused)
            return len(unused)
    count = 0
    for parameter in sorted(unused, key=lambda i: i.parameter_number or 0, reverse=True):
        with contextlib.suppress(EditError):  # a fusion that aliases operands by number, or another caller
            remove_parameter(body, parameter.parameter_number or 0)
            count += 1
    return count


def _drop_outputs(body: Computation) -> int:
    """Takes the results of a fusion away that nobody takes out of its tuple; a single one that stays needs no tuple.

    As in XLA only of fusions that are not custom, that nothing but get-tuple-elements uses, that alias no operand, and
    about whose tuple neither a sharding nor the header says anything.
    """
    fusion, root = body.callers[0], body.root
    if root.opcode != "tuple" or not _may_give_less(fusion) or root.sharding is not None:
        return 0
    used = {user.attributes["index"] for user in fusion.users}
    used |= {n for n, operand in enumerate(root.operands) if has_effect(operand)}
    left = sorted(used)
    count = len(root.operands) - len(left)
    if not count:
        return 0
    shapes = fusion.shape.tuple_shapes if fusion.shape is not None else ()
    operands = [root.operands[n] for n in left]
    if len(left) == 1:
        set_root(body, operands[0], typed=False)
        body.remove(root)
        fusion.change(shape=shapes[left[0]], typed=False)
        for user in fusion.users:
            user.replace_with(fusion)
        return count
    inside = root.shape.tuple_shapes if root.shape is not None else ()
    root.change(operands=operands, shape=Shape.tuple(tuple(inside[n] for n in left)), typed=False)
    fusion.change(shape=Shape.tuple(tuple(shapes[n] for n in left)), typed=False)
    for user in fusion.users:
        index = left.index(user.attributes["index"])
        user.change(attributes={**user.attributes, "index": index}, typed=False)
    return count


def _may_give_less(fusion: Instruction) -> bool:
    says = ("output_to_operand_aliasing", "sharding", "origin")
    return (
        bool(fusion.user_view)
        and not fusion.is_root
        and fusion.attributes.get("kind") is not FusionKind.CUSTOM
        and not any(name in fusion.attributes for name in says)
        and not (fusion.control_predecessors or fusion.control_successors)
        and all(user.opcode == "get-tuple-element" for user in fusion.users)
    )


def remove_unreached(module: Module) -> int:
    """Removes the computations that are unreachable from the entry. Returns their number."""
    calls_of = module.calls_of
    if not any(not calls_of(c) and not c.is_entry for c in module.computations):
        return 0  # as nearly always: the first to go is one that nothing calls
    dead: dict[Computation, None] = {}
    before = -1
    while len(dead) > before:  # once and once more, but for texts in which callers stand before callees
        before = len(dead)
        for computation in reversed(module.computations):
            callers = module.calls_of(computation)
            if not computation.is_entry and all(caller.computation in dead for caller in callers):
                dead[computation] = None
    if dead:
        module.remove_all(dead)
    return len(dead)
