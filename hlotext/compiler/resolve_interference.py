"""Step 1 of copy insertion: copies wherever values that must share memory might live at the same time.

After `CopyInsertion::AddCopiesToResolveInterference` (`xla/service/copy_insertion.cc`). It is generous; step 2 takes out
again what turns out not to be needed. Values of type buffer (`b(f32[8])`), which few programs have, are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs

from hlotext.analysis import Backend
from hlotext.analysis.age import age_for
from hlotext.compiler.decision import Decision
from hlotext.compiler.deep_copy import Copier, add_control, replace_operands, replace_root, replace_use
from hlotext.compiler.platforms import platform_of
from hlotext.ir.nodes.computation import Computation, instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.age import XlaAge
from hlotext.memory.dataflow import Dataflow, aliased_outputs, analyse
from hlotext.memory.in_place import GPU_NO_OPS, NO_OPS, WRITES_IN_PLACE, InPlacePairs, Pair
from hlotext.memory.subshapes import ShapeIndex
from hlotext.rewrite.passes.base import Age, Pass, PassResult, is_age, nonfusion_computations
from hlotext.rewrite.passes.cleanup.dce import DeadCodeElimination
from hlotext.rewrite.passes.simplify.tuple_simplifier import TupleSimplifier

SOURCE = "CopyInsertion::AddCopiesToResolveInterference"
_DISJOINT = "xla_disjoint_read_write_regions"
"""Frontend attribute of an operation in place that reads and writes different regions (`HasDisjointReadWriteRegionsAttr`)."""
_NOT_COPIED = (traits.TRANSFERS & traits.STARTS) | {"copy-start"}
"""Operations whose results are no values to be copied (`IsImplicitNonCopyable`)."""


@attrs.frozen
class ResolveInterference(Pass):
    """Step 1 of copy insertion: adds copies around loops, conditionals, in-place operations and donated arguments.

    `copy-insertion-removing` removes most of them again. `platform` determines which operations are in place; if empty,
    it is detected from the text.
    """

    name: ClassVar[str] = "copy-insertion-adding"
    summary: ClassVar[str] = (
        "Inserts copies where values that share a buffer may be live at the same time (step 1)."
    )

    platform: str = ""
    """`cpu`, `gpu` or `tpu`; empty: as the text tells."""
    age: Age = attrs.field(default="", validator=is_age)
    """XLA age to follow; empty: from the text, else the newest, which adds none that nothing reads."""

    def run(self, module: Module) -> PassResult:
        """Runs the pass on a module, which is modified in place."""
        age = age_for(module, self.age or None)
        return PassResult.of({"copies": len(add_copies(module, platform_of(module, self.platform), age))})


def in_place_pairs(platform: Backend) -> InPlacePairs:
    """Returns the in-place operands of a platform's operations (`AliasInfo`)."""
    return InPlacePairs(GPU_NO_OPS if platform is Backend.GPU else NO_OPS)


def add_copies(module: Module, platform: Backend, age: XlaAge) -> list[Decision]:
    """Adds the copies in place, and returns a decision for each. Raises MemoryModelError if buffers cannot be
    determined.
    """
    adder = _Adder(module, analyse(module, with_uses=False), in_place_pairs(platform))
    for computation in nonfusion_computations(module):
        if not any(caller.opcode == "async-start" for caller in computation.callers):
            for instruction in instruction_post_order(computation):
                adder.visit(instruction)
    adder.copier.put()
    adder.aliased_outputs()
    tidy(module, age)
    return [decision for copy, decision in adder.decisions if copy.computation is not None]


def tidy(module: Module, age: XlaAge) -> None:
    """Removes the tuples that copying tuples leaves behind, as XLA does after each step that adds copies."""
    TupleSimplifier(age=age).run(module)
    DeadCodeElimination().run(module)


class _Adder:
    """Adds copies; what stands where was found out before the first one."""

    def __init__(self, module: Module, flow: Dataflow, pairs: InPlacePairs) -> None:
        self.module, self.flow, self.pairs = module, flow, pairs
        self.copier = Copier(module)
        self.decisions: list[tuple[Instruction, Decision]] = []
        """The copies, and why each was added."""

    def _note(self, copy: Instruction, rule: str, because: str, *others: Instruction) -> None:
        names = tuple(dict.fromkeys(other.name for other in others))
        self.decisions.append((copy, Decision(copy.name, rule, because, names, SOURCE)))

    def visit(self, i: Instruction) -> None:
        """Adds the copies of one instruction."""
        if i not in self.flow.at:
            return
        match i.opcode:
            case "while":
                self._while(i)
            case "conditional":
                self._conditional(i)
            case opcode if opcode in _NOT_COPIED:
                self._transition(i)
            case opcode if opcode in WRITES_IN_PLACE:
                self._in_place(i)

    # ---- loops

    def _while(self, loop: Instruction) -> None:
        """Three copies of each element of the state that the body does not hand on as it is (`AddCopiesForWhile`)."""
        init = loop.operands[0]
        body: Computation = loop.attributes["body"]
        chosen = self._changed_state(loop, init)
        if not chosen:
            return
        self.copier.put()
        parameter, root = body.parameters[0], body.root
        new, copies = self.copier.deep_copy(init, chosen)
        replace_use(loop, init, new)
        for index, copy in copies.items():
            self._note(copy, "loop state, on entry", (
                f"{loop.name} changes {element(index)} of its state, which comes from {init.name}, so the loop needs its "
                "own buffer"
            ), loop, init)  # fmt: skip
        users = parameter.users
        first, first_copies = self.copier.deep_copy(parameter, chosen)
        last, last_copies = self.copier.deep_copy(root, chosen)
        for index, copy in first_copies.items():
            add_control(copy, last_copies[index])
            self._note(copy, "loop state, at the start of the body", f"{body.name} changes {element(index)} and may still "
                       f"read the old value in {parameter.name}", loop, parameter)  # fmt: skip
            self._note(last_copies[index], "loop state, at the end of the body", f"{body.name} changes {element(index)}: "
                       f"{root.name} puts the new value into the buffer of {parameter.name}", loop, root)  # fmt: skip
        for user in users:
            replace_use(user, parameter, first)
        replace_root(body, last if root is not parameter else first)

    def _changed_state(self, loop: Instruction, init: Instruction) -> set[ShapeIndex]:
        """The arrays of the state that the body changes (`IndicesToCopyForWhile`)."""
        assert loop.shape is not None
        found = set()
        for index, array in loop.shape.leaves():
            is_fixed = (
                bool(index)
                and index[0] < len(init.operands)
                and init.operands[index[0]].opcode in _NOT_COPIED
            )
            before, after = self.flow.value_at(init, index), self.flow.value_at(loop, index)
            if array.is_array and not is_fixed and before is not after:
                found.add(index)
        return found

    # ---- conditionals

    def _conditional(self, conditional: Instruction) -> None:
        """A copy in each branch of each array that branches give differently (`AddCopiesForConditional`)."""
        assert conditional.shape is not None
        chosen = set()
        for index, _ in conditional.shape.leaves():
            value = self.flow.value_at(conditional, index)
            if value is not None and value.is_phi and value.instruction is conditional:
                chosen.add(index)
        if not chosen:
            return
        self.copier.put()
        for branch in conditional.called_computations:
            root = branch.root
            users = root.users
            new, copies = self.copier.deep_copy(root, chosen)
            for user in users:
                if user not in copies.values() and user.opcode != "get-tuple-element":
                    replace_use(user, root, new)
            replace_root(branch, new)
            for index, copy in copies.items():
                self._note(copy, "result of a branch", (
                    f"the branches of {conditional.name} produce {element(index)} from different values, and all must write "
                    "it to one buffer"
                ), conditional, root)  # fmt: skip

    # ---- operations in place

    def _in_place(self, i: Instruction) -> None:
        """A copy of each operand that an operation overwrites (`AddCopiesForInPlaceOperation`)."""
        operands = i.operands
        numbers = dict.fromkeys(number for number in self._overwritten(i) if number < len(operands))
        if numbers and _DISJOINT in i.frontend_attributes:
            numbers = {n: None for n in numbers if any(user is not i for user in operands[n].user_view)}
        if not numbers:
            return
        copied = self.copier.copy_later(i, numbers)
        if copied is not None:
            for number, copy in copied.items():
                self._note_overwritten(i, operands[number], copy)
            return
        self.copier.put()
        copied = {}
        for number in numbers:
            copied[number], copies = self.copier.deep_copy(operands[number])
            for copy in copies.values():
                self._note_overwritten(i, operands[number], copy)
        replace_operands(i, copied)

    def _note_overwritten(self, i: Instruction, operand: Instruction, copy: Instruction) -> None:
        because = f"{i.name} overwrites {operand.name}, which others may still read"
        self._note(copy, "operand in place", because, i, operand)

    def _overwritten(self, i: Instruction) -> Iterator[int]:
        pairs: Sequence[Pair] = self.pairs.of(i)
        if i.opcode in ("async-done", "async-update"):
            return
        if i.opcode == "async-start" and not pairs:
            inner = i.async_wrapped_instruction
            pairs = self.pairs.of(inner) if inner is not None else ()
        for pair in pairs:
            yield pair.operand_number

    # ---- send, recv and copy-start in loops

    def _transition(self, start: Instruction) -> None:
        """Copies around a transfer that ends in a loop or the next iteration (`AddCopiesForNonCopyableTransitions`)."""
        users = start.users
        if len(users) != 1 or users[0].opcode.endswith("-done"):
            return
        self.copier.put()
        user, home = users[0], start.computation
        assert home is not None
        into_loop = user.opcode == "tuple" and len(user.users) == 1 and user.users[0].opcode == "while"
        if into_loop:
            if start.operands:
                self._copy_sent(start, user.users[0])
            return
        loop = next((caller for caller in home.callers if caller.opcode == "while"), None)
        end = self._end_in_next_trip(home, start, user) if loop is not None else None
        if end is None or loop is None:
            return
        if start.operands:
            add_control(end, self._copy_sent(start, loop))
        add_control(end, start)
        users = end.users
        if users:
            new, copies = self.copier.deep_copy(end)
            for copy in copies.values():
                add_control(copy, start)
                self._note(copy, "received in the next iteration", f"{start.name} of the next iteration of {loop.name} "
                           f"receives into the buffer that {end.name} returns", start, end)  # fmt: skip
            for each in users:
                replace_use(each, end, new)

    def _copy_sent(self, start: Instruction, loop: Instruction) -> Instruction:
        operand = start.operands[0]
        copy = self.copier.copy(operand)
        replace_use(start, operand, copy)
        self._note(copy, "sent across a loop", f"{start.name} is in flight in {loop.name}, where {operand.name} may change",
                   start, operand)  # fmt: skip
        return copy

    def _end_in_next_trip(
        self, body: Computation, start: Instruction, user: Instruction
    ) -> Instruction | None:
        """The done, in the next trip, of what a start begins in this one (`FindEndOpForRotatedNonCopyableChain`)."""
        if user.opcode != "tuple" or not user.is_root:
            return None
        number = user.operands.index(start)
        for part in body.parameters[0].users:
            if (
                part.opcode == "get-tuple-element"
                and part.attributes["index"] == number
                and len(part.users) == 1
            ):
                end = part.users[0]
                if end.opcode.endswith("-done"):
                    return end
        return None

    # ---- donated arguments

    def aliased_outputs(self) -> None:
        """Two copies for each result that lies in an argument (`AddCopiesForAliasedInputOutputs`)."""
        entry = self.module.entry
        aliases = aliased_outputs(self.module)
        of_parameter: dict[int | None, set[ShapeIndex]] = {}
        for taken, part in aliases.values():
            of_parameter.setdefault(taken, set()).add(part)
        first: dict[tuple[int | None, ShapeIndex], Instruction] = {}
        for parameter in entry.parameters:
            number = parameter.parameter_number
            if number not in of_parameter:
                continue
            users, was_root = parameter.users, parameter.is_root
            new, copies = self.copier.deep_copy(parameter, of_parameter[number])
            if was_root:
                replace_root(entry, new)
            for user in users:
                replace_use(user, parameter, new)
            for index, copy in copies.items():
                first[number, index] = copy
                self._note(copy, "donated argument", f"a result overwrites {parameter.name}, which may still be read",
                           parameter)  # fmt: skip
        if not first:
            return
        root, parameters = entry.root, entry.parameters
        new, last = self.copier.deep_copy(root, set(aliases))
        for output, target in aliases.items():
            waits_for = first.get(target)
            if waits_for is not None and output in last:
                add_control(waits_for, last[output])
                self._note(last[output], "result in an argument", f"{element(output, 'the result')} overwrites "
                           f"{parameters[target[0]].name}", root, waits_for)  # fmt: skip
        replace_root(entry, new)


def element(index: ShapeIndex, whole: str = "the value") -> str:
    """Formats the position of an array in a value."""
    return f"element {'.'.join(map(str, index))}" if index else whole


__all__ = ["ResolveInterference", "add_copies", "element", "in_place_pairs", "tidy"]
