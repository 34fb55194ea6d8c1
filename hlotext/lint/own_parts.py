"""Parts of a result that each device takes for itself, and the operation of the program that asks for them."""

from __future__ import annotations

from hlotext.analysis import responsible_frame
from hlotext.dumps.collectives.places import is_by_hand
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import depends_on_device
from hlotext.lint.rule import Context
from hlotext.lint.values import VIEWS, Value, consumers

_PASSING = ELEMENTWISE | VIEWS | traits.REARRANGES_ELEMENTS | {"broadcast"}
_CONSTRAINT = "sharding_constraint"


def own_part(value: Value, context: Context) -> Instruction | None:
    """Returns the dynamic slice that takes a device's own shard of a result, looking through elementwise work; else
    None.
    """
    for user, number in consumers(value, _PASSING):
        one = user.instruction
        is_cut = one.opcode == "dynamic-slice" and number == 0
        if is_cut and any(depends_on_device(place, context) for place in one.operands[1:]):
            return one
    return None


def remedy(cut: Instruction) -> str:
    """Returns advice for a matmul that each device computes as a whole and of which it keeps the part that `cut` takes."""
    if is_by_hand(cut):
        return "slice out the device's own part of the operands first, and multiply only that part"
    asked = cut.metadata.op_name.rpartition("/")[2] if cut.metadata is not None else ""
    frame = responsible_frame(cut)
    place = f" at {frame.file}:{frame.line}" if frame is not None else ""
    wanted = f"{asked}{place} uses it" if asked else "its users are sharded"
    if asked == _CONSTRAINT:
        wanted = f"the with_sharding_constraint{place} requires"
    return (
        f"shard the matmul result as {wanted}: an earlier constraint, or the sharding of its operands, makes each device "
        "compute all of it"
    )
