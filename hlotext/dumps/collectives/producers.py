"""From an array of the final HLO back to what computed it, and on to what reads it: through views, fusions and slices."""

from __future__ import annotations

import hlotext as hlo
from hlotext.analysis import Communication
from hlotext.dumps.collectives.following import element_of, passed_to
from hlotext.dumps.collectives.keys import Key, Text
from hlotext.dumps.collectives.places import op_name_of
from hlotext.dumps.collectives.walking import MOVES
from hlotext.ir.tables import traits

VIEWS = traits.REARRANGES_ELEMENTS | traits.COPY_HALVES | {"convert"}
_SLICES = VIEWS | {"slice", "dynamic-slice"}
TAKES = frozenset({"squeeze", "dynamic_slice", "slice", "reshape"})
"""JAX's operations that take a slice of a stacked argument, or rearrange what they take: they need no sharding themselves."""
HANDS_ON = TAKES | {
    "convert_element_type",
    "copy",
    "expand_dims",
    "transpose",
    "remat2",
    "optimization_barrier",
}
"""Operations behind which the one that needs a sharding is looked for."""
MOST = 64
_MOST_SLICED = 400
"""Instructions that are visited on the way to the argument which an array is a slice of."""


def behind_views(node: hlo.Instruction) -> hlo.Instruction:
    while node.opcode in VIEWS and node.operands:
        node = node.operands[0]
    return node


def joined(node: hlo.Instruction) -> list[hlo.Instruction]:
    """Returns the arrays that a pass combined into one; empty for other instructions."""
    for _ in range(MOST):
        if node.opcode == "fusion" and node.called_computations and len(node.called_computations[0]):
            node = node.called_computations[0].root
        elif node.opcode == "concatenate":
            return list(node.operands)
        elif node.opcode in VIEWS and node.operands:
            node = node.operands[0]
        else:
            break
    return []


def maker(node: hlo.Instruction, text: Text | None = None, stop: Key | None = None) -> hlo.Instruction:
    """Returns the producer of a value, looking through views and fusion roots, up to a view with the key `stop` in
    `text`.
    """
    for _ in range(MOST):
        if stop is not None and text is not None and node.opcode in VIEWS and text.key_of(node) == stop:
            break
        if node.opcode == "fusion" and node.called_computations and len(node.called_computations[0]):
            node = node.called_computations[0].root
        elif node.opcode == "get-tuple-element" and node.operands[0].opcode == "fusion":
            body, index = node.operands[0].called_computations, node.attributes.get("index")
            if not body or not isinstance(index, int) or index >= len(body[0].root.operands):
                break
            node = body[0].root.operands[index]
        elif node.opcode in VIEWS and node.operands:
            node = node.operands[0]
        elif node.opcode == "parameter" and node.computation is not None:
            caller = next(iter(node.computation.callers), None)
            number = node.parameter_number
            if caller is None or caller.opcode not in ("fusion", "async-start"):
                break
            if number is None or number >= len(caller.operands):
                break
            node = caller.operands[number]
        else:
            break
    return node


def argument_of(node: hlo.Instruction) -> hlo.Instruction | None:
    """Returns the argument that an array is a slice of, such as a layer's weights; None if it may be of another array."""
    seen: set[hlo.Instruction] = set()
    ends: set[hlo.Instruction] = set()
    stack = [node]
    while stack and len(seen) < _MOST_SLICED:
        one = stack.pop()
        if one in seen:
            continue
        seen.add(one)
        bodies = one.called_computations if one.opcode == "fusion" else ()
        if bodies and len(bodies[0]):
            origins = [bodies[0].root]
        elif one.opcode in _SLICES and one.operands:
            origins = list(one.operands[:1])
        elif one.opcode == "get-tuple-element":
            origins = element_of(one)
        else:
            origins = passed_to(one) if one.opcode == "parameter" else []
        stack += origins
        if not origins:
            ends.add(one)
    found = ends.pop() if len(ends) == 1 and not stack else None
    is_argument = found is not None and found.opcode == "parameter" and op_name_of(found)
    return found if is_argument else None


def reader_of(one: Communication, text: Text, key: Key | None) -> hlo.Instruction | None:
    """Returns the first operation that computes with a collective's result and has other metadata; None if there is
    none.

    Looks into fusions, and through operations that only forward the result.
    """
    queue = list(one.start.user_view) or list(one.instruction.user_view)
    seen: set[hlo.Instruction] = set()
    for node in queue:
        if node in seen or len(seen) > MOST:
            continue
        seen.add(node)
        if node.opcode == "fusion" and node.called_computations:
            inside = node.called_computations[0].parameters
            for number, operand in enumerate(node.operands):
                if (operand in seen or operand in (one.start, one.instruction)) and number < len(inside):
                    queue.extend(inside[number].user_view)
            continue
        found = text.key_of(node)
        label = op_name_of(node).rpartition("/")[2]
        if found is not None and found != key and label not in HANDS_ON:
            return node
        home = node.computation
        if node.is_root and home is not None and home.is_fusion_body:
            for caller in home.callers:
                seen.add(caller)
                queue.extend(caller.user_view)
        queue.extend(node.user_view)
    return None


def is_returned(one: Communication) -> bool:
    """Returns True if a collective's result reaches the program's results through views alone, without other readers."""
    queue = [one.start]
    for node in queue:
        if len(queue) > MOST:
            return False
        if node.is_root and not _is_of_entry(node):
            return False
        for user in node.user_view:
            is_result = user.opcode == "tuple" and user.is_root and _is_of_entry(user)
            if not is_result and not _is_view(user):
                return False
            if not is_result and user not in queue:
                queue.append(user)
    return True


def _is_view(node: hlo.Instruction) -> bool:
    if node.opcode == "fusion" and node.called_computations:
        return all(inside.opcode in VIEWS | {"parameter"} for inside in node.called_computations[0])
    return node.opcode in VIEWS | traits.DONES | {"get-tuple-element"}


def _is_of_entry(node: hlo.Instruction) -> bool:
    return node.computation is not None and node.computation.is_entry


def is_read_so(one: Communication, text: Text, key: Key) -> bool:
    """Returns True if a computing operation with the collective's own metadata reads its result."""
    for user in one.start.user_view:
        bodies = user.called_computations if user.opcode == "fusion" else ()
        inside = [node for body in bodies for node in body.instructions] or [user]
        if any(text.key_of(n) == key and n.opcode not in (*MOVES, *VIEWS) for n in inside):
            return not user.opcode.endswith("-done")
    return False
