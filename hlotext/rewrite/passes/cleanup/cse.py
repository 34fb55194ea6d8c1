"""Common subexpression elimination."""

from __future__ import annotations

import functools
import operator
import re
from typing import Any, ClassVar

import attrs

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation, instruction_post_order, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.effects import fixed
from hlotext.rewrite.kit.edits import deduplicate_fusion_operands
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.compilation_stage import has_been_fused, is_tpu


@attrs.frozen
class CommonSubexpressionElimination(Pass):
    """Keeps the first of several instructions that compute the same value (`HloCSE`).

    First merges constants that are bitwise equal; an elided value equals no other. Then, operands before users, merges
    instructions with equal opcode, shape, operands (in any order if commutative), attributes other than metadata, and
    compatible sharding. Called computations are equal if they compute the same. Equal iotas count as one operand but are
    kept, as are other instructions without operands (except partition and replica ids), with side effects or control
    dependencies, or marked for fusion. Uncalled computations are not changed.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  a = f32[] sine(x)  b = f32[] sine(x)  ROOT r = f32[] add(a, b) }")
    >>> CommonSubexpressionElimination().run(m).statistics
    {'instructions': 1}
    >>> print(m.entry.root)
    ROOT r = f32[] add(a, a)
    """

    name: ClassVar[str] = "cse"
    summary: ClassVar[str] = "Merges identical instructions (common-subexpression elimination)."

    is_layout_sensitive: bool = True
    """True to distinguish instructions by layout (`HloCSE`'s option of that name)."""
    only_fusion_computations: str = attrs.field(
        default="auto", validator=attrs.validators.in_(("true", "false", "auto"))
    )
    """`true` to look into fusions alone, as the TPU compiler does once it has fused; `auto`: on such a module."""

    def run(self, module: Module) -> PassResult:
        merger = _Merger(module, self.is_layout_sensitive)
        if self.only_fusion_computations == "auto":
            only_fusions = is_tpu(module) and has_been_fused(module)
        else:
            only_fusions = self.only_fusion_computations == "true"
        for computation in module.computations:
            if (
                not computation.is_sugared
                and (computation.is_fusion_body or not only_fusions)
                and len(computation)
                and (computation.is_entry or module.calls_of(computation))
            ):
                merger.constants(computation)
                if merger.may_repeat(computation):
                    merger.instructions(computation)
                merger.outputs(computation)
        return PassResult.of({"instructions": merger.count})


class _Merger:
    """One run over a module."""

    def __init__(self, module: Module, is_layout_sensitive: bool) -> None:
        self.module = module
        self.is_layout_sensitive = is_layout_sensitive
        self.count = 0
        self.contents = Contents()
        self._fusions: dict[Instruction, None] = {}
        """Fusions one of whose operands was replaced, which may have it twice now: looked at once, before anything asks."""

    @functools.cached_property
    def kept(self) -> frozenset[Instruction]:
        return fixed(self.module)

    # ---- constants

    def constants(self, computation: Computation) -> None:
        """Keeps the first of equal constants (`CombineConstants`)."""
        found = [i for i in computation.instructions if i.opcode == "constant"]
        if len(found) < 2 or any(i.opcode == "domain" for i in computation):
            return
        first: dict[Any, Instruction] = {}
        gone = []
        for i in sorted(found, key=_age):
            literal = i.literal
            if i in self.kept or literal is None or literal.is_partly_elided:
                continue
            other = first.setdefault((self._shape(i.shape), _bits(literal)), i)
            if other is not i and self._replaced(i, other):
                gone.append(i)
        self._deduplicate()
        self._remove(computation, gone)

    # ---- instructions

    def may_repeat(self, computation: Computation) -> bool:
        """False where no two instructions compute the same, which is soon seen of most computations: few instructions
        share opcode and operands with another, and those few are looked at more closely."""
        first: dict[Any, Instruction] = {}
        shared: dict[Instruction, None] = {}
        iotas: list[Any] = []
        for i in computation:
            opcode: Any = i.opcode
            if opcode in _KEPT:
                continue
            operands: Any = i.operands
            if not operands:
                if opcode == "iota":  # equal ones count as one operand
                    iotas.append(self._operand(i))
            elif opcode in traits.COMMUTATIVE:
                operands = frozenset(operands)
            elif opcode == "get-tuple-element":
                opcode = i.attributes["index"]
            other = first.setdefault((opcode, operands), i)
            if other is not i:
                shared[other] = shared[i] = None
        if len(set(iotas)) < len(iotas):
            return True
        found: dict[Any, Any] = {}
        return any(self._alike(i, found) for i in shared if self._may_go(i))

    def instructions(self, computation: Computation) -> None:
        """Keeps the first of equal instructions."""
        found: dict[Any, Any] = {}
        gone: list[Instruction] = []
        for i in instruction_post_order(computation):
            if i in self._fusions:
                del self._fusions[i]
                deduplicate_fusion_operands(i)
            if i.opcode in _KEPT or not self._may_go(i):
                continue
            alike = self._alike(i, found)
            first = next((o for o in alike if _same_sharding(o, i)), None)
            if first is None:
                alike.append(i)
            elif self._replaced(i, first):
                gone.append(i)
                continue
            if sum(o.opcode == "iota" for o in i.operands) > 1:
                gone += self._join_iotas(i)
        self._deduplicate()
        self._remove(computation, gone)

    def _may_go(self, i: Instruction) -> bool:
        """`HloCSE::ShouldEliminateInstruction`."""
        notes = i.frontend_attributes
        if (
            not i.operands
            and i.opcode not in ("partition-id", "replica-id")
            and "_xla_cse_safe_zero_operand" not in notes
        ):
            return False
        return "MUST_FUSE" not in notes and i not in self.kept

    def _alike(self, i: Instruction, found: Any) -> list[Instruction]:
        """Those found so far that compute the same as an instruction, shardings aside; `found` then knows of it.

        They are sorted by ever closer keys, each looked at only where the one before is shared: little shares opcode and
        operands, and of that little has the same shape.
        """
        keys = (self._rough_key, self._outer_key, self._key)
        for key, closer in zip(keys, (*keys[1:], None), strict=True):
            here = key(i)
            other = found.setdefault(here, i)
            if other is i:
                return []
            if isinstance(other, Instruction):
                other = found[here] = [other] if closer is None else {closer(other): other}
            found = other
        alike: list[Instruction] = found
        return alike

    def _replaced(self, i: Instruction, first: Instruction) -> bool:
        """True if all uses of one instruction could become uses of another; a user may need the very layout."""
        users = i.users
        try:
            i.replace_all_uses_with(first)
        except EditError:
            return False
        self._fusions.update(dict.fromkeys(user for user in users if user.opcode == "fusion"))
        return True

    def _deduplicate(self) -> None:
        for fusion in self._fusions:
            deduplicate_fusion_operands(fusion)
        self._fusions.clear()

    def _remove(self, computation: Computation, gone: list[Instruction]) -> None:
        """Takes merged instructions out, and iotas that they alone used."""
        if not gone:
            return
        all_gone = dict.fromkeys(gone)
        for i in gone:
            for operand in i.operands:
                if (
                    operand.opcode == "iota"
                    and not operand.is_root
                    and all(u in all_gone for u in operand.users)
                ):
                    all_gone[operand] = None
        computation.remove_all(all_gone)
        self.count += len(gone)

    def _join_iotas(self, i: Instruction) -> list[Instruction]:
        """Makes an instruction take one of several equal iotas; those that nothing uses any more."""
        first: dict[Any, Instruction] = {}
        operands = tuple(first.setdefault(self._operand(o), o) for o in i.operands)
        if operands == i.operands:
            return []
        left = [o for o in i.operands if o not in operands]
        i.change(operands=operands, typed=False)
        return [o for o in dict.fromkeys(left) if not o.users and not o.is_root]

    def _operand(self, operand: Instruction) -> Any:
        if operand.opcode != "iota":
            return operand
        return "iota", operand.attributes.get("iota_dimension"), self._shape(operand.shape)

    def _shape(self, shape: Shape | None) -> Any:
        return shape if self.is_layout_sensitive or shape is None else shape.text_without_layout()

    def _rough_key(self, i: Instruction) -> Any:
        """Coarse key: opcode and operands."""
        opcode = i.opcode
        operands = tuple(map(self._operand, i.operands))
        if opcode == "get-tuple-element":
            return operands, i.attributes["index"]
        return opcode, frozenset(operands) if opcode in traits.COMMUTATIVE else operands

    def _outer_key(self, i: Instruction) -> Any:
        """Finer key: shape, and length and opcodes of called computations."""
        return self._shape(i.shape), *(tuple(o.opcode for o in c) for c in i.called_computations)

    def _key(self, i: Instruction) -> Any:
        """Equal for instructions whose other keys are equal and that compute the same, shardings aside."""
        return self.contents.attributes(i), i.frontend_attributes.get(_SHARDING_NOTE)

    # ---- fusions with several results

    def outputs(self, computation: Computation) -> None:
        """Makes users of a fusion's repeated results take the first of these."""
        root = computation.root
        if root.opcode != "tuple" or len(set(root.operands)) == len(root.operands):
            return
        fusion = next((i for i in computation.callers if i.opcode == "fusion"), None)
        if fusion is None:
            return
        first: dict[Instruction, int] = {}
        for number, operand in enumerate(root.operands):
            first.setdefault(operand, number)
        for user in fusion.users:
            if user.opcode == "get-tuple-element":
                index = first[root.operands[user.attributes["index"]]]
                if index != user.attributes["index"]:
                    user.change(attributes={**user.attributes, "index": index}, typed=False)
                    self.count += 1


class Contents:
    """Assigns equal numbers to computations that compute the same (`HloComputation::operator==`)."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._of: dict[Computation, int] = {}

    def number(self, computation: Computation) -> int:
        """Returns the number of a computation, after numbering its callees."""
        if computation not in self._of:
            for inner in post_order([computation], self._of):
                self._of[inner] = self._number(inner)
        return self._of[computation]

    def _number(self, computation: Computation) -> int:
        if not len(computation):
            return self._intern(computation)
        done: dict[Any, int] = {}
        for i in computation:  # operands come first; one of a broken text that does not is like no other
            argument: Any = i.parameter_number
            if i.literal is not None:
                argument = i if i.literal.is_partly_elided else i.literal
            unlike = i if i.opcode in _UNLIKE else None
            operands = tuple([done.get(o, o) for o in i.operands])
            done[i] = self._intern((i.opcode, i.shape, argument, self.attributes(i), unlike, operands))
        count = len(computation.parameters)
        return self._intern((done[computation.root], count, computation.execution_thread))

    def _intern(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def attributes(self, i: Instruction) -> Any:
        """Returns the attributes that count for equality, with called computations replaced by their numbers."""
        found = [item for item in i.attributes.items() if item[0] not in _NOTES]
        if len(found) > 1:
            found.sort(key=_name)
        return tuple([(name, self._value(value)) for name, value in found])

    def _value(self, value: Any) -> Any:
        if isinstance(value, Computation):
            return "computes", self.number(value)
        if isinstance(value, tuple) and any(isinstance(item, Computation) for item in value):
            return tuple(map(self._value, value))
        return value


def _age(i: Instruction) -> int:
    """Smaller for what was made earlier: names are numbered as instructions are made, and XLA keeps the oldest."""
    number = _NUMBER.search(i.name)
    return int(number[0][1:18]) if number else 0


def _bits(literal: Literal) -> Any:
    """Key of a literal's values, whatever its layout."""
    array = literal.known_array
    return array.tobytes() if array is not None else literal.to_text()


def _same_sharding(a: Instruction, b: Instruction) -> bool:
    return a.sharding is None or b.sharding is None or a.sharding == b.sharding


_name = operator.itemgetter(0)
_NUMBER = re.compile(r"\.[0-9]+")
_NOTES = traits.PROVENANCE | traits.CONTROL | traits.SHARDING | {"frontend_attributes", "original_value"}
_SHARDING_NOTE = "xla.sdy.sharding"
_UNLIKE = frozenset({"after-all", "add-dependency"})
_KEPT = frozenset({"parameter", "constant", "rng", "after-all", "add-dependency"})
"""Opcodes that are never deduplicated."""
