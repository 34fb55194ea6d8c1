"""Makes repairs in a copy of a program's text: what findings say they save, proved by doing.

A rule that knows the edit puts a `Repair` into its report. The copy keeps the schedule, fusions and layouts of the text; a
compiler may choose others for the repaired program, so the figures remain estimates. But they are those of a whole program,
with whatever the repair costs elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch

from hlotext import memory
from hlotext.analysis.formatting import pluralize
from hlotext.findings.errors import Severity
from hlotext.findings.finding import RepairOutcome
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.lint.price import prices_of
from hlotext.lint.repairs import Donate, Hoist, Repair, Reuse, StoreInOrder, SumOnce
from hlotext.lint.rounds import rounds_of
from hlotext.lint.rule import Context
from hlotext.lint.selectors import is_zero
from hlotext.lint.values import Value
from hlotext.memory.what_if import donate
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.cleanup.dce import DeadCodeElimination
from hlotext.rewrite.passes.loops.loop_rebuilding import LoopEditor, body_of
from hlotext.rewrite.passes.loops.while_loop_invariant_code_motion import hoist
from hlotext.verify import verify


class RepairError(ValueError):
    """Raised if a repair does not fit the text. The message has the reason."""


class Copy:
    """A copy of a module in which repairs are made."""

    def __init__(self, module: Module) -> None:
        self.module = module.clone()
        pairs = zip(module.computations, self.module.computations, strict=True)
        self._copies = {old: new for a, b in pairs for old, new in zip(a, b, strict=True)}
        self.editor = LoopEditor(self.module, InstructionBudget("lint", self.module))
        self.donated: dict[int, tuple[int, ...]] = {}
        """Numbers of parameters of the entry that are donated, with the result that takes the place of each."""

    def of(self, instruction: Instruction) -> Instruction:
        """Returns the copy of an instruction. Raises RepairError if an earlier repair removed it."""
        found = self._copies.get(instruction)
        if found is None or found.computation is None:
            raise RepairError(f"{instruction.name} was changed by another part of the repair")
        return found


@singledispatch
def made(repair: Repair, copy: Copy) -> str:
    """Makes a repair in a copy and returns what was done. Raises RepairError and EditError."""
    raise NotImplementedError(type(repair).__name__)


@made.register
def _(repair: Donate, copy: Copy) -> str:
    copy.donated.update(repair.results)
    return f"{pluralize(len(repair.results), 'argument')} donated"


@made.register
def _(repair: Hoist, copy: Copy) -> str:
    loop, names = copy.of(repair.loop), {copy.of(one) for one in repair.group}
    body = body_of(loop)
    name = body.name
    condition = loop.attributes["condition"].name
    count = hoist(copy.editor, loop, names)
    if not count:
        raise RepairError(f"{repair.loop.name} cannot carry more values")
    copy.editor.place = None
    DeadCodeElimination().run(copy.module)
    for old in (name, condition):
        # Rounds that a user sets are set by these names.
        made = copy.module.find(f"{old}.clone")
        if isinstance(made, Computation) and copy.module.find(old) is None:
            copy.module.rename(made, old)
    return f"{pluralize(count, 'instruction')} moved out of {repair.loop.name}"


@made.register
def _(repair: SumOnce, copy: Copy) -> str:
    loop = copy.of(repair.loop)
    rounds = rounds_of(repair.loop)
    for slot in {slot for slots in repair.slots.values() for slot in slots}:
        first = rounds.before(slot) if rounds is not None else None
        if first is None or not is_zero(Value(first)):
            raise RepairError(f"what {repair.loop.name} adds to does not start at zero")
    for start, slots in repair.slots.items():
        _summed_behind(copy.of(start), loop, slots, copy.editor)
    DeadCodeElimination().run(copy.module)
    return f"{pluralize(len(repair.slots), 'all-reduce')} moved after {repair.loop.name}"


def _summed_behind(start: Instruction, loop: Instruction, slots: Sequence[int], editor: LoopEditor) -> None:
    """Moves one all-reduce behind the loop; of each slot the sum is an instruction of its own."""
    made = start.async_wrapped_instruction or start
    if made.opcode not in _SUMS:
        raise RepairError(f"{start.name} is not a plain all-reduce")
    last = _end(start)
    if last.shape is not None and last.shape.is_array:
        last.replace_all_uses_with(start.operands[0])
    else:
        for element in last.users:
            if element.opcode != "get-tuple-element":
                raise RepairError(f"{start.name} is used as a tuple")
            element.replace_all_uses_with(start.operands[element.attributes["index"]])
    attributes = {k: v for k, v in made.attributes.items() if k not in _NOT_KEPT}
    editor.place = None
    for element in loop.users:
        if element.opcode == "get-tuple-element" and element.attributes["index"] in slots:
            users, home, is_root = list(element.users), loop.computation, element.is_root
            assert element.shape is not None
            assert home is not None
            total = editor.create("all-reduce", element.shape, [element], computation=home, **attributes)
            for user in users:
                user.change(operands=[total if o is element else o for o in user.operands], typed=False)
            if is_root:
                home.root = total


_SUMS = frozenset({"all-reduce", "all-reduce-start"})
_NOT_KEPT = frozenset({"control-predecessors", "metadata", "backend_config", "frontend_attributes"})


@made.register
def _(repair: Reuse, copy: Copy) -> str:
    for repetition, original in repair.pairs:
        last, kept = _end(copy.of(repetition)), _end(copy.of(original))
        last.replace_all_uses_with(kept)
        copy.editor.remove_unused(last)
    DeadCodeElimination().run(copy.module)
    first, original = repair.pairs[0]
    more = f", and {len(repair.pairs) - 1} more" if len(repair.pairs) > 1 else ""
    return f"{first.name} replaced by {original.name}{more}"


def _end(one: Instruction) -> Instruction:
    """The instruction that gives the result: of an asynchronous operation its done."""
    return one.async_chain[-1] if one.async_chain else one


@made.register
def _(repair: StoreInOrder, copy: Copy) -> str:
    moved = copy.of(repair.copied)
    argument = moved.operands[0]
    if moved.opcode != "copy" or argument.opcode != "parameter" or len(argument.users) != 1:
        raise RepairError(f"{argument.name} is not only read by {moved.name}")
    if moved.shape is None or argument.computation is not copy.module.entry:
        raise RepairError(f"{argument.name} is not an argument of the program")
    argument.shape = moved.shape
    moved.replace_all_uses_with(argument)
    copy.editor.remove_unused(moved)
    return f"{argument.name} passed in as {moved.shape}"


def tried(repairs: Iterable[Repair], context: Context) -> RepairOutcome:
    """Makes repairs together in a copy of the module and returns time and peak memory before and after.

    A repair that fails gives an outcome with the reason.
    """
    before = context.prices.step, context.peak
    try:
        found = _outcome(repairs, context)
    except (RepairError, EditError, memory.MemoryModelError) as error:
        return RepairOutcome("", str(error), before[0], None, before[1], None)
    text, seconds, peak = found
    return RepairOutcome(text, "", before[0], seconds, before[1], peak)


def _joined(repairs: Iterable[Repair]) -> list[Repair]:
    found: list[Repair] = []
    for repair in repairs:
        for number, other in enumerate(found):
            if (both := other.joined(repair)) is not None:
                found[number] = both
                break
        else:
            if repair not in found:
                found.append(repair)
    return found


def applied(repairs: Iterable[Repair], module: Module) -> tuple[Copy, list[str]]:
    """Returns a copy of a module with these repairs, and what was done. Raises RepairError and EditError."""
    copy = Copy(module)
    with copy.module.transaction():
        return copy, [made(repair, copy) for repair in _joined(repairs)]


def _outcome(repairs: Iterable[Repair], context: Context) -> tuple[str, float, int | None]:
    copy, done = applied(repairs, context.module)
    module = copy.module
    if any(one.severity is Severity.ERROR for one in verify(module)) and not any(
        one.severity is Severity.ERROR for one in verify(context.module)
    ):
        raise RepairError("the repaired text would not be well-formed")
    after: memory.Assignment | None = None
    if context.peak is not None:
        after = memory.assign(module, context.backend, places_fast_memory=False)
        if copy.donated:
            # As `hlotext memory --what-if` says: without those that a compiler that copies before it schedules may copy.
            whole = donate(module, list(copy.donated), context.backend, before=after, results=copy.donated)
            after = whole.assignment
            module = after.module or module
    prices = prices_of(module, context.backend, context.chip, context.trips, context.folders_chip)
    peak = after.peak(0).bytes if after is not None else None
    text = "; ".join(done[:_SHOWN]) + (f"; {len(done) - _SHOWN} more edits" if len(done) > _SHOWN else "")
    return text, prices.step, peak


_SHOWN = 2
