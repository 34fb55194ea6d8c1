"""The worklist: what a rule has edited, and what is beside that, is visited next, until nothing changes any more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from hlotext.edit.journal import Edit
from hlotext.edit.uses import hand_over
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.matchers.pattern import Match
from hlotext.rewrite.effects import is_dead
from hlotext.rewrite.kit.drivers import Driver, RewriteError, check_result
from hlotext.rewrite.kit.rules import Result, RewriteRule


class Worklist(Driver):
    """Applies rules until none matches. See `apply_rules`."""

    enters_fusions: ClassVar[bool] = True

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.pending: dict[Instruction, None] = {}
        """Instructions to visit; the last one first."""
        self.made: dict[Instruction, None] = {}
        """Instructions that the running rule made, in order."""
        self.touched: dict[Instruction, bool] = {}
        """Edits of the running rule, in order; False for instructions that only lost or gained users."""

    # ---- what edits tell

    def inserted(self, node: Instruction | Computation) -> None:
        if isinstance(node, Instruction):
            self.made[node] = None
            self.touched[node] = True

    def modified(self, node: Instruction | Computation) -> None:
        if isinstance(node, Instruction):
            self.touched[node] = True

    def removed(self, node: Instruction | Computation) -> None:
        if isinstance(node, Instruction):
            self.made.pop(node, None)
            touched = self.touched
            for operand in node._operands:  # each has one user less
                touched.setdefault(operand, False)

    # ---- rounds

    def run(self) -> None:
        with self.module.listen(self):
            while True:
                before = self.total
                rules, of_any = self._by_opcode, self._of_any
                for computation in reversed(tuple(self.computations())):
                    listed = computation._instructions
                    chosen = [i for i in listed if i._head.opcode in rules] if not of_any else listed
                    self.pending.update(dict.fromkeys(reversed(chosen)))
                while self.pending:
                    i = self.pending.popitem()[0]
                    if i.computation is not None and self.visit(i, self.rules_for(i.opcode)):
                        self._visit_near()
                if self.total == before:
                    return

    def _visit_near(self) -> None:
        """Puts what was edited, and what uses it, on the list."""
        rules_of, of_any = self._by_opcode, self._of_any
        near: dict[Instruction, None] = {}
        home, is_chosen = None, False
        for i, is_edited in self.touched.items():
            computation = i._computation
            if computation is not home:
                home, is_chosen = computation, self.is_chosen(computation)
            if not is_chosen:
                continue
            if rules_of.get(i._head.opcode, of_any):
                near[i] = None
            # That one of many others is gone or new says little to a user: the next round is soon enough.
            users = i.user_view
            if is_edited or len(users) <= _MANY:
                for user in users:
                    if rules_of.get(user._head.opcode, of_any):
                        near[user] = None
        pending = self.pending
        for i in reversed(near):
            pending.pop(i, None)
            pending[i] = None

    # ---- one rule on one instruction

    def rewrite(self, rule: RewriteRule, i: Instruction, match: Match) -> bool:
        """Applies a rule to its match in one transaction. Returns True if anything changed."""
        self.touched, self.made = {}, {}
        self.context.at(i, match)
        try:
            with Edit(self.module, is_transaction=True) as edit:
                revision = self.module.revision
                found = rule.function(self.context)
                check_result(rule, found, i)
                if (found is True or found is i) and self.module.revision == revision:
                    raise RewriteError(
                        f"the rule {rule.name} says that it changed {i.name}, but edited nothing"
                    )
                if (found is None and i.computation is not None) or found is False:
                    edit.journal.roll_back(edit.savepoint)
                    return False
                self._put(rule, i, found)
        except Exception as error:
            if isinstance(error, EditError) and not self.is_strict:
                # Tried once in each round; said once.
                said = f"{i.name}: {error}"
                reasons = self.refused.setdefault(rule.name, [])
                if said not in reasons:
                    reasons.append(said)
                if self.profile is not None:
                    self.profile[rule.name].refused += 1
                return False
            error.add_note(f"in the rule {rule.name}, applied to {i.name}")
            raise
        return True

    def _put(self, rule: RewriteRule, old: Instruction, found: Result) -> None:
        """Puts the result of a rule in the place of an instruction, and takes out what is dead then."""
        made = list(self.made)
        if not isinstance(found, Instruction) or found is old:
            self.touched[old] = True
            remove_dead_operands(made)
            return
        for listener in self.listeners:
            listener.replaced(rule, old, found)
        gone = [old] if hand_over(old, found) else _unused_chain(old)
        remove_dead_operands([*(() if gone else old.operands), *made], gone)
        # One that was there has more users, which were edited, and others, which were not.
        self.touched.setdefault(found, False)


def _unused_chain(done: Instruction) -> list[Instruction]:
    """The asynchronous operation that an instruction finishes, if nothing else uses it or waits for it; a rule that matched
    it would match it again and again.
    """
    chain = done.async_chain
    followed = {user for part in chain for user in (*part.users, *part.control_successors)}
    return list(chain) if chain and chain[-1] is done and followed <= set(chain) else []


_MANY = 64
"""Users from which on they are not visited at once when another comes or goes: with thousands, that was all there was to
do."""


def remove_dead_operands(candidates: Iterable[Instruction], removed: Iterable[Instruction] = ()) -> int:
    """Removes unused instructions without side effects, then their unused operands. Returns the number removed.

    Instructions in `removed` are removed too, whatever their side effects.
    """
    gone = dict.fromkeys(removed)
    pending = [*candidates]
    for i in gone:
        pending.extend(i._operands)
    while pending:
        i = pending.pop()
        if i not in gone and i._computation is not None and is_dead(i, gone):
            gone[i] = None
            pending.extend(i._operands)
    by_home: dict[Computation, list[Instruction]] = {}
    for i in gone:
        if i._computation is not None:
            by_home.setdefault(i._computation, []).append(i)
    for home, dead in by_home.items():
        home.remove_all(dead)
    return len(gone)
