"""Traits of opcodes: sets made once from the columns of the opcode table.

Where attributes decide, a function does: `hlotext.ir.nodes.effects`.

An opcode that the table does not have is in none of these sets.
"""

from __future__ import annotations

from hlotext.ir.tables.opcode import (
    AsyncRole,
    CallContext,
    Calls,
    CommunicationKind,
    Effect,
    Elements,
    Family,
    Role,
    WireRule,
)
from hlotext.ir.tables.opcode_attributes import COMMON_ATTRIBUTES
from hlotext.ir.tables.opcodes import COLLECTIVES as COLLECTIVES
from hlotext.ir.tables.opcodes import ELEMENTWISE as ELEMENTWISE
from hlotext.ir.tables.opcodes import NATIVE_ASYNC, OPCODES

_ROWS = tuple(OPCODES.values())


_BY_ELEMENTS: dict[Elements, list[str]] = {value: [] for value in Elements}
for _row in _ROWS:
    _BY_ELEMENTS[_row.elements].append(_row.name)


def _with_elements(*values: Elements) -> frozenset[str]:
    return frozenset(name for value in values for name in _BY_ELEMENTS[value])


# ---- where elements come from
CONVERSIONS = _with_elements(Elements.CONVERT)
SLICES = _with_elements(Elements.SLICE)
ASSEMBLES = _with_elements(Elements.ASSEMBLE)
TUPLES = _with_elements(Elements.PACK, Elements.UNPACK)
CONTRACTIONS = _with_elements(Elements.CONTRACT)
DOTS = frozenset(row.name for row in _ROWS if row.attribute("lhs_contracting_dims") is not None)
DEVICE_IDS = _with_elements(Elements.DEVICE_ID)
SOURCES = _with_elements(Elements.GIVEN, Elements.GENERATED, Elements.DEVICE_ID)
"""Opcodes without operands whose value is the same whenever it is asked for."""
GIVEN = _with_elements(Elements.GIVEN)
"""Values that are there before a computation runs."""
KNOWN_VALUES = (GIVEN - {"parameter"}) | _with_elements(Elements.GENERATED)
"""Values that the text states."""
FORWARDS_OPERAND = _with_elements(Elements.FORWARD)
"""Opcodes whose result is operand 0."""
FORWARDS_BUFFER = FORWARDS_OPERAND | _with_elements(Elements.VIEW)
"""Opcodes whose result is the buffer of operand 0."""
NAMES_VALUE = _with_elements(Elements.GIVEN, Elements.VIEW, Elements.PACK, Elements.UNPACK)
"""Opcodes for which no compiler emits code, because they only name values."""
IS_FREE = NAMES_VALUE | _with_elements(Elements.FORWARD, Elements.TOKEN)
"""Opcodes that take no time, those that only order others included."""
KEEPS_ELEMENTS = _with_elements(Elements.VIEW, Elements.COPY, Elements.RESHAPE)
"""Opcodes whose result has the elements of operand 0 in the same row-major order, or the same bytes."""
REARRANGES_ELEMENTS = KEEPS_ELEMENTS | _with_elements(Elements.PERMUTE)
"""Opcodes whose result has the elements of operand 0, each once."""
REPEATS_ELEMENTS = REARRANGES_ELEMENTS | _with_elements(Elements.REPEAT)
"""Opcodes whose result has no elements but those of operand 0, and all of them."""
REVERSES_OR_PERMUTES = _with_elements(Elements.REVERSE, Elements.PERMUTE) - {"shuffle"}
LINEAR_ALGEBRA = frozenset(row.name for row in _ROWS if row.family is Family.LINEAR_ALGEBRA)
TRANSCENDENTAL = frozenset(row.name for row in _ROWS if row.cost_rule == "transcendental")
UPDATES_ELEMENTS = _with_elements(Elements.UPDATE)
REDUCTIONS = _with_elements(Elements.REDUCE)

# ---- computations that are called
CONTROL_FLOW = frozenset(
    row.name for row in _ROWS if row.call_context is CallContext.CONTROL_FLOW and row.async_role is None
)
"""Calls, branches and loops."""
RUNS_CALLEE = CONTROL_FLOW | frozenset(
    row.name for row in _ROWS if row.call_context is CallContext.CONTROL_FLOW and row.async_role == "start"
)
"""Opcodes that run computations as a part of the schedule."""
BINDS_OPERANDS = frozenset(row.name for row in _ROWS if row.binds_operands)
"""Opcodes whose operand n is parameter n of the computation that they call."""
CALLEE_ON_SAME_THREAD = frozenset(
    row.name
    for row in _ROWS
    if row.family is Family.CONTROL_FLOW and row.name != "call" and row.elements is Elements.CALL
)
"""Opcodes that call computations of their own execution thread only."""

# ---- communication
COMMUNICATION: dict[str, CommunicationKind] = {
    row.name: row.communication for row in _ROWS if row.communication is not None
}
"""Opcodes that exchange elements with other devices or the host, and how."""
WIRE_RULES: dict[str, WireRule] = {one.kind: one.wire for one in COMMUNICATION.values()}
"""Bytes that a device sends, by kind of communication."""
COLLECTIVE_KINDS = frozenset(
    row.name for row in _ROWS if row.family is Family.COLLECTIVE and row.async_role is None
)
"""Collectives, their halves left out."""
_BEGUN = tuple(
    (row.name, row.communication) for row in _ROWS if row.communication and row.async_role != "done"
)
REDUCES_ACROSS_DEVICES = frozenset(name for name, one in _BEGUN if one.is_reduction)
"""Collectives that combine elements of several devices; what only waits for them is left out here and below."""
HAS_UNEVEN_GROUPS = frozenset(name for name, one in _BEGUN if one.has_uneven_groups)
"""Collectives whose groups may differ in size."""
HAS_PARTIAL_GROUPS = frozenset(name for name, one in _BEGUN if one.has_partial_groups)
"""Collectives that some devices may stay out of."""
COUNTS_PARTITIONS = frozenset(name for name, one in _BEGUN if one.counts_partitions)
"""Collectives whose groups count partitions once they have a channel."""
MAY_COUNT_DEVICES = frozenset(
    name for name, _ in _BEGUN if OPCODES[name].attribute("use_global_device_ids") is not None
)
"""Collectives whose groups may count devices (`use_global_device_ids`)."""


def of_kind(*kinds: str) -> frozenset[str]:
    """Returns the opcodes of these kinds of communication: synchronous, start and done."""
    return frozenset(name for name, one in COMMUNICATION.items() if one.kind in kinds)


HOST_QUEUES = frozenset(
    row.name for row in _ROWS if row.family is Family.POINT_TO_POINT and row.async_role is None
)
"""Opcodes that use the queues of the host: infeed and outfeed."""
TRANSFERS = frozenset(row.name for row in _ROWS if row.family is Family.POINT_TO_POINT) - HOST_QUEUES
"""Sends, receives, and what waits for them."""

# ---- asynchronous operations
ASYNC_ROLES: dict[str, AsyncRole] = {row.name: row.async_role for row in _ROWS if row.async_role is not None}
"""Every opcode that is a part of an asynchronous operation, and its position in it."""
STARTS = frozenset(name for name, role in ASYNC_ROLES.items() if role == "start")
DONES = frozenset(name for name, role in ASYNC_ROLES.items() if role == "done")
GENERIC_ASYNC = frozenset(
    row.name for row in _ROWS if row.async_role and row.call_context is CallContext.CONTROL_FLOW
)
"""async-start, async-update and async-done, which run a computation."""
NATIVE_PAIRS: dict[str, str] = {
    name: f"{stem}-done" for name, stem in NATIVE_ASYNC.items() if name in STARTS and f"{stem}-done" in DONES
}
"""Starts that are opcodes of their own, each with the opcode that waits for it; sends and receives left out."""
COPIES = _with_elements(Elements.COPY) | {name for name in NATIVE_PAIRS if name.startswith("copy")}
"""Opcodes that copy, or begin to."""
COPY_HALVES = frozenset(name for name, stem in NATIVE_ASYNC.items() if stem == "copy")
COLLECTIVE_STARTS = frozenset(STARTS & COLLECTIVES)
COLLECTIVE_DONES = frozenset(DONES & COLLECTIVES)

# ---- effects
STATEFUL = frozenset(row.name for row in _ROWS if row.effect is Effect.ALWAYS)
"""Opcodes that always have a side effect."""
NO_EFFECT = frozenset(row.name for row in _ROWS if row.effect is Effect.NONE)
"""Opcodes that never have a side effect of their own."""
LAYOUT_CONSTRAINED = frozenset(row.name for row in _ROWS if row.effect is Effect.CHANNEL_OR_LAYOUT)
CHANNELLED = frozenset(row.name for row in _ROWS if row.effect is Effect.CHANNEL) | LAYOUT_CONSTRAINED
HOST_EFFECTS = STATEFUL - COLLECTIVES
"""Opcodes that change the state of the device, or exchange data outside of collectives."""

# ---- types, layouts, algebra
KEEPS_LAYOUT = frozenset(row.name for row in _ROWS if row.keeps_layout)
"""Opcodes whose arrays of one rank all have one layout."""
MIXES_PRECISION = frozenset(row.name for row in _ROWS if row.mixes_precision)
"""Opcodes whose operands may be floats of different precision in any case."""
KEEPS_TYPES = frozenset(row.name for row in _ROWS if row.keeps_types)
"""Opcodes whose element types are exactly the inferred ones."""
COMMUTATIVE = frozenset(row.name for row in _ROWS if row.commutes)
"""Opcodes of two operands that may be exchanged."""

# ---- attributes
_USES = (*COMMON_ATTRIBUTES, *(use for row in _ROWS for use in row.attributes))


_BY_ROLE: dict[Role, set[str]] = {role: set() for role in Role}
for _use in _USES:
    _BY_ROLE[Role.REFERENCE if _use.calls is not Calls.NONE else _use.role].add(_use.name)


def _with_role(role: Role) -> frozenset[str]:
    return frozenset(_BY_ROLE[role])


PROVENANCE = _with_role(Role.PROVENANCE)
"""Attributes that say where an operation comes from, and that no compiler acts on."""
ANNOTATIONS = _with_role(Role.ANNOTATION)
"""Attributes that front ends and compilers write for compilers."""
IDENTIFIERS = _with_role(Role.IDENTIFIER)
SHARDING = _with_role(Role.SHARDING)
CONTROL = _with_role(Role.CONTROL)
REFERENCES = _with_role(Role.REFERENCE)
"""Attributes that name computations."""
