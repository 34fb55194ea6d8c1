"""Step 3 of copy insertion: copies that memory needs for other reasons than lives that meet.

After `CopyInsertion::AddSpecialCaseCopies` (`xla/service/copy_insertion.cc`): arguments and constants are never written
over, and each result of the program has memory of its own.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.analysis import Backend
from hlotext.compiler.decision import Decision
from hlotext.compiler.deep_copy import Copier, replace_root, replace_use
from hlotext.compiler.platforms import platform_of
from hlotext.compiler.remove_unnecessary_copies import rules_of, sharing_of
from hlotext.compiler.resolve_interference import element, in_place_pairs
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.memory.aliases import find_buffers
from hlotext.memory.dataflow import Dataflow, analyse
from hlotext.memory.elementwise import parameter_of
from hlotext.memory.in_place import InPlacePairs
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.values import Value
from hlotext.rewrite.passes.base import Pass, PassResult

SOURCE = "CopyInsertion::AddSpecialCaseCopies"


@attrs.frozen
class SpecialCopies(Pass):
    """Step 3 of copy insertion: copies read-only values that would be overwritten, and results that share memory."""

    name: ClassVar[str] = "copy-insertion-special"
    summary: ClassVar[str] = (
        "Inserts copies of read-only values that would be overwritten, and of results that alias (step 3)."
    )

    platform: str = ""
    """`cpu`, `gpu` or `tpu`; empty: as the text tells."""

    def run(self, module: Module) -> PassResult:
        """Runs the pass on a module, which is modified in place."""
        return PassResult.of({"copies": len(add_special_copies(module, platform_of(module, self.platform)))})


def add_special_copies(
    module: Module, platform: Backend, pairs: InPlacePairs | None = None
) -> list[Decision]:
    """Adds the copies in place, and returns a decision for each. Raises MemoryModelError if buffers cannot be
    determined.

    `pairs` are the in-place pairs of the module, if known.
    """
    return _Finder(module, platform, pairs or in_place_pairs(platform)).run()


def _slices(fusion: Instruction) -> bool:
    return any(i._head.opcode == "slice" for body in fusion.called_computations for i in body._instructions)


_Why = tuple[str, str, tuple[str, ...]]
"""Rule, reason and the names of others."""


class _Finder:
    def __init__(self, module: Module, platform: Backend, pairs: InPlacePairs) -> None:
        self.module = module
        self.flow: Dataflow = analyse(module)
        self.platform, self.pairs = platform, pairs
        self.sharing = sharing_of(self.flow, platform, pairs)
        self.buffers = find_buffers(self.flow, self.pairs)
        self.buffer_of = {value: number for number, buffer in enumerate(self.buffers) for value in buffer}
        self.given = frozenset(self.flow.aliases.values())
        self.wanted: dict[Instruction, dict[ShapeIndex, _Why]] = {}

    def run(self) -> list[Decision]:
        """Finds what is to be copied, and copies it."""
        self._values()
        if self.platform is Backend.TPU:
            self._sliced()
        self._roots()
        decisions = []
        copier = Copier(self.module)
        for i, chosen in self.wanted.items():
            users, was_root, home = i.users, i.is_root, i.computation
            assert home is not None
            new, copies = copier.deep_copy(i, chosen)
            for user in users:
                replace_use(user, i, new)
            if was_root:
                replace_root(home, new)
            for index, copy in copies.items():
                rule, because, others = chosen[index]
                decisions.append(Decision(copy.name, rule, because, (i.name, *others), SOURCE))
        return decisions

    def _want(self, i: Instruction, index: ShapeIndex, why: _Why) -> None:
        """Notes an array to be copied where it stands; not in what runs asynchronously."""
        home = i.computation
        if home is not None and any(caller.opcode == "async-start" for caller in home.callers):
            return
        self.wanted.setdefault(i, {}).setdefault(index, why)

    def _is_read_only(self, value: Value) -> bool:
        """Constants, and arguments in which no result lies (`ValueIsReadOnly`)."""
        i = value.instruction
        assert i is not None
        if i.opcode == "constant":
            return True
        return (
            i.opcode == "parameter"
            and i.computation is self.module.entry
            and (i.parameter_number, value.index) not in self.given
        )

    # ---- values that share memory

    def _values(self) -> None:
        shared = [
            (number, value)
            for value in self.flow.values
            if value.instruction is not None and len(self.buffers[number := self.buffer_of[value]]) > 1
        ]
        by_writer: dict[tuple[int, Instruction], list[Value]] = {}
        for number, value in shared:
            by_writer.setdefault((number, value.instruction), []).append(value)  # type: ignore[arg-type]
        for number, value in shared:
            i = value.instruction
            assert i is not None
            if self._is_read_only(value):
                what = "a constant" if i.opcode == "constant" else "an argument that is not donated"
                because = f"{i.name} is {what}, and a value in the same buffer would overwrite it"
                self._want(i, value.index, ("read-only", because, ()))
            if not any((number, user) in by_writer for user in value.flat_uses()[::3]):
                continue
            for use in value.uses:
                reader = use.instruction
                if reader is None or (
                    reader.opcode in ("async-update", "async-done") and use.operand_number == 0
                ):
                    continue
                operand = reader.operands[use.operand_number]
                for other in by_writer.get((number, reader), ()):
                    if other is not value and not self.sharing.may_share(
                        operand, use.operand_index, reader, other.index
                    ):
                        because = f"{reader.name} would overwrite {operand.name}, which it cannot do in place"
                        self._want(operand, use.operand_index, ("not in place", because, (reader.name,)))

    def _sliced(self) -> None:
        """Operands that a fusion slices and writes in place. Inferred: 6 of 6, with dynamic slices 0 of 11."""
        for computation in self.module.computations:
            if computation.is_fusion_body:
                continue
            for i in computation._instructions:
                if i._head.opcode != "fusion" or not _slices(i):
                    continue
                for pair in self.pairs.of(i):
                    parameter = parameter_of(i, pair.operand_number)
                    if parameter is not None and any(user.opcode == "slice" for user in parameter.user_view):
                        operand = i.operands[pair.operand_number]
                        because = f"{i.name} also slices {operand.name}, which it writes in place"
                        self._want(operand, pair.operand_index, ("sliced in place", because, (i.name,)))

    # ---- results

    def _roots(self) -> None:
        for computation in self.module.computations:
            root = computation.root if len(computation) else None
            if root is None or root not in self.flow.at or computation in self.flow.embedded:
                continue
            is_entry = computation is self.module.entry
            must_differ = is_entry or any(caller.opcode == "conditional" for caller in computation.callers)
            self._root(root, is_entry, must_differ)

    def _root(self, root: Instruction, is_entry: bool, must_differ: bool) -> None:
        seen: dict[int, ShapeIndex] = {}
        assert root.shape is not None
        for index, _ in root.shape.subshapes():
            value = self.flow.value_at(root, index)
            if value is None:
                continue
            number = self.buffer_of[value]
            first = seen.setdefault(number, index)
            if first != index and must_differ:
                copied = first if is_entry and index in self.flow.aliases else index
                because = f"{element(first)} and {element(index)} of the result are one array, and each needs its own buffer"
                self._want(root, copied, ("result twice", because, ()))
        if is_entry:
            for index, _ in root.shape.subshapes():
                value = self.flow.value_at(root, index)
                if value is not None and value.instruction is not None and self._is_read_only(value):
                    i = value.instruction
                    what = "a constant" if i.opcode == "constant" else "an argument"
                    which = element(index, "the whole")
                    because = f"{which} of the result is {what}, {i.name}, whose buffer cannot be handed out"
                    self._want(root, index, ("read-only result", because, (i.name,)))
                elif value is not None and (inner := self._stays_inside(value)) is not None:
                    which = element(index, "the whole")
                    because = (
                        f"{which} of the result is written by {inner.name}, which the compiler does not let write to result "
                        "buffers"
                    )
                    self._want(root, index, ("written from outside", because, (inner.name,)))

    def _stays_inside(self, value: Value) -> Instruction | None:
        """Returns the writer of the first value in the same buffer that must not outlive the program; None without one."""
        cannot_live_out = rules_of(self.platform).cannot_live_out
        buffer = self.buffers[self.buffer_of[value]]
        return next((each.instruction for each in buffer if cannot_live_out(each)), None)
