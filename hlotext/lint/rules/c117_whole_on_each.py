"""Products that each device of a group computes in full."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Communication
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.alike_arguments import alike_arguments
from hlotext.lint.equal import EQUALISING, Equal, EqualPurity, groups_of
from hlotext.lint.helpers import size_of
from hlotext.lint.loop_state import members
from hlotext.lint.products import Product, products
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, consumers
from hlotext.lint.wording import described

_MOST_GROUPS = 3
"""Kinds of groups that are looked at, those that most is sent over first."""
_MOST_STEPS = 400
_MUCH = 16
"""Minimum ratio of a product's size to that of what is made of all of it."""
_PASSING = ELEMENTWISE | VIEWS | traits.REPEATS_ELEMENTS | {"get-tuple-element"}
_SUMMING = traits.CONTRACTIONS | traits.REDUCTIONS | {"gather", "scatter"}


class WholeOnEach(Rule):
    code = "C117"
    name = "whole-on-each"
    title = "a matmul that each device of a group computes in full"
    waste = "again"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        told: set[Instruction] = set()
        groups = _groups(context)
        found = products(context) if groups else ()
        for one in groups if found else ():
            replicas = groups_of(one)
            alike = alike_arguments(context, members(one.groups))
            if replicas is None or not alike:
                continue
            equal = Equal(context, replicas, members(one.groups), EqualPurity(), alike).found
            for product in found:
                if product.whole in equal and product.whole not in told:
                    told.add(product.whole)
                    yield _report(product, len(replicas[0]), equal, context)


def _groups(context: Context) -> list[Communication]:
    """A collective for each kind of groups, the largest groups first, of those that most is sent over."""
    first: dict[str, Communication] = {}
    sent: dict[str, int] = {}
    for one in context.communications:
        if one.kind in EQUALISING and (one.participants or 0) > 1:
            name = members(one.groups)
            first.setdefault(name, one)
            sent[name] = sent.get(name, 0) + one.sent_bytes * context.runs(one.start)
    names = sorted(first, key=lambda name: -sent[name])[:_MOST_GROUPS]
    return sorted((first[name] for name in names), key=lambda one: -(one.participants or 0))


def _report(product: Product, count: int, equal: set[Instruction], context: Context) -> Report:
    part = 1 - 1 / count
    beside = [one for one in _works_on(product) if one in equal]
    return Report(
        product.whole,
        f"{described(product.whole)} is computed in full on each of {count} devices, from identical operands",
        "shard an operand over these devices along a non-contracting dimension (by its sharding, or with_sharding_constraint "
        "on the result): each device then computes a part, and reductions of the result become all-reduces of small arrays",
        flops=context.flops(product.dot),
        seconds=part * context.prices.together([product.whole, *beside]),
        spares=dict.fromkeys([product.whole, *beside], part),
        is_proved=_is_summed(product),
    )


def _works_on(product: Product) -> list[Instruction]:
    """The operations that go on with a whole product, element by element."""
    found: list[Instruction] = []
    least = size_of(product.dot.shape) // 2
    pending, seen = [product.whole], {product.whole}
    while pending and len(seen) < _MOST_STEPS:
        for user in pending.pop().users:
            if user not in seen and size_of(user.shape) >= least and user.opcode in _PASSING | {"fusion"}:
                seen.add(user)
                pending.append(user)
                found.append(user)
    return found


def _is_summed(product: Product) -> bool:
    """True if something much smaller is made of all of a matmul, by sums over one of its dimensions."""
    pending, seen, is_reduced = [product.value], {product.value}, False
    while pending:
        if len(seen) > _MOST_STEPS:
            return False
        value = pending.pop()
        if value.instruction.is_root and not value.fusions:
            return False
        for user, _ in consumers(value):
            opcode = user.instruction.opcode
            if opcode in _SUMMING or _MUCH * _result(user.instruction) <= _result(product.dot):
                is_reduced = is_reduced or opcode == "reduce"
            elif opcode not in _PASSING:
                return False
            elif user not in seen:
                seen.add(user)
                pending.append(user)
    return is_reduced


def _result(one: Instruction) -> int:
    """Bytes of a result, of an asynchronous operation when it is done."""
    return size_of((one.async_chain or (one,))[-1].shape)
