"""C107: a collective that moves elements in a wider type than is used."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import origin, results
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class WideCollective(Rule):
    code = "C107"
    name = "wide-collective"
    title = "a collective that moves elements in a wider type than is used"
    needs_optimized = True

    min_bytes: int = 1 << 16
    """Bytes that each device sends, from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.communications:
            if one.kind not in _MOVERS or one.sent_bytes < self.min_bytes or one.participants == 1:
                continue
            for value in results(one):
                own = _bits(value)
                source = origin(one.start.operands[0]) if one.start.operands else None
                if (
                    source is not None
                    and source.opcode == "convert"
                    and _bits(source.operands[0]) < _bits(source)
                ):
                    own, needed, where = _bits(source), _bits(source.operands[0]), "converted from"
                elif (
                    value.users
                    and not value.is_root
                    and all(user.opcode == "convert" for user in value.users)
                ):
                    needed, where = max(_bits(user) for user in value.users), "converted to"
                else:
                    continue
                if 0 < needed < own:
                    yield Report(
                        one.start,
                        f"{one.kind} sends {byte_text(one.sent_bytes)} as {own}-bit elements that are {where} {needed} bits",
                        "convert to the narrower type before communicating",
                        one.sent_bytes * (own - needed) // own * context.runs(one.start),
                    )
                    break


_MOVERS = frozenset({"all-gather", "all-to-all", "collective-broadcast", "collective-permute"})


def _bits(instruction: Instruction) -> int:
    shape = instruction.shape
    return shape.element_type.bits if shape is not None and shape.is_array else 0
