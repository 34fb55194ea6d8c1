"""Dates of the XLA changes that hlotext distinguishes: one day for each, queried with `XlaAge.has`.

A day is that of XLA's commit if its source shows it, else the first on which the change was seen.
"""

from __future__ import annotations

from datetime import date

THUNK_KINDS = date(2026, 3, 28)
"""GPU: one kAsyncStart and kAsyncDone for whatever is asynchronous, kCustomKernel for kernels."""
PRINTED_BRANCHES = date(2025, 9, 23)
"""GPU: the branches of a kConditional are printed; thunks have numbers."""
COPY_FUSIONS = date(2026, 6, 17)
"""GPU: fusions that copy a slice are dynamic-slice fusions around a copy."""
FAST_MERGE = date(2026, 9, 10)
"""TPU: live-out allocations are reusable once their values are dead. In the sources since 2026-06-26, seen since this day."""
SMALL_TUPLE_TABLES = date(2026, 8, 23)
"""Cost on CPU: the table of a tuple counts 4 bytes an element, before 8."""
COMPARISON_ORDER = date(2026, 8, 23)
"""Comparisons print `order=TOTAL` where they printed `type=TOTALORDER`. In 0.11.2, not in 0.11.1."""
GENERIC_COLLECTIVES = date(2026, 6, 29)
"""GPU: asynchronous collectives are async-start operations around the collective."""
PLAIN_SYNCHRONOUS = date(2026, 8, 12)
"""GPU: synchronous collectives of the final HLO are plain ones with `is_sync`."""
PAGES = date(2026, 8, 10)
"""Allocations of the buffer assignment have a page."""
ASYNC_RESULTS_BEGIN_LATE = date(2026, 9, 18)
"""The result of an asynchronous body is live from its async-start. Seen since this day: in 0.12.0.1, not in 0.11.2."""
ALGSIMP_INVERSES = date(2026, 7, 27)
"""The algebraic simplifier keeps log(exp(x)) and sqrt(x * x) without fast math."""
ALGSIMP_SLICED_ANYWHERE = date(2026, 7, 30)
"""It moves slices in front of reshapes wherever they start."""
ALGSIMP_SLICED_ROWS = date(2026, 8, 5)
"""It does so where whole rows of the operand are taken."""
ALGSIMP_OVERFLOW = date(2026, 8, 6)
"""It takes squares, powers and absolute values of signed whole numbers for what may overflow."""
ALGSIMP_XOR = date(2026, 8, 6)
"""It knows xor."""
ALGSIMP_SLICED_LONG_ROWS = date(2026, 8, 23)
"""Rows are the dimensions after the first one that is longer than one. In 0.11.2, not in 0.11.1."""
ALGSIMP_EXPONENTIALS = date(2026, 8, 23)
"""It keeps products, quotients and powers of exponentials without fast math. In 0.11.2, not in 0.11.1."""
ALGSIMP_FLOATS_APART = date(2026, 9, 18)
"""It joins constants of floats no longer without fast math. In 0.12.0, not in 0.11.2."""
ALGSIMP_TPU_IDENTITIES = date(2026, 9, 18)
"""TPU: one walk leaves no transposes that move nothing. In libtpu 0.0.52, not in 0.0.42.1; the day is a guess."""
ALGSIMP_CLAMPED_STARTS = date(2026, 9, 18)
"""It clamps both starts of a slice of a slice. In 0.12.0, not in 0.11.2."""
CPU_WRAPS_TRANSPOSES = date(2026, 7, 25)
"""CPU wraps single transposes and dynamic-update-slices in fusions."""
CPU_WRAPS_FUNCTIONS = date(2026, 8, 13)
"""CPU makes fusions of the inverse trigonometric and hyperbolic functions."""
CPU_WRAPS_CONVOLUTIONS = date(2026, 8, 14)
"""CPU makes fusions of convolutions that Eigen does not compute."""
CPU_KEEPS_SOFTMAX_WHOLE = date(2026, 7, 28)
"""CPU does not compute twice what a softmax takes the maximum of."""
STABLE_TOPK = date(2026, 6, 26)
"""topk prints `is_stable=`; without it, it is stable."""
DYNAMIC_ROOT = date(2026, 7, 8)
"""collective-broadcast prints `has_dynamic_root=`."""
NAMED_UNREDUCED = date(2026, 7, 6)
"""The short `unreduced` names its axes where the mesh has others, of size 1."""
SPARSITY_OPERANDS = date(2026, 8, 17)
"""`sparsity_config` prints the operand with the kept elements: `idx=`, 0 if not given."""
ESCAPED_RECOVERY = date(2026, 7, 10)
"""`origin_recovery_table=` escapes the quotes of its modules."""
SINGLE_DEVICE = date(2026, 8, 23)
"""One device is `single_device[device_id=N]`, before `maximal_mesh[device_id=N]`. Seen since this day."""
CALL_HIERARCHY = date(2026, 8, 23)
"""`origin=` has a call hierarchy, which is empty if `[synthetic_call]` was printed before. Seen since this day."""
TILED_REDUCTIONS = date(2026, 7, 17)
"""Shardings by tiles print in their metadata how unreduced parts are to be reduced."""
CPU_MOVES_BF16 = date(2026, 8, 23)
"""CPU moves, chooses and multiplies bf16 as it is, where it made f32 of it. In 0.11.2, not in 0.11.1."""
PERMUTES_KEEP_THEIR_NAMES = date(2026, 9, 18)
"""GPU: the thunk of a permute inside an async-start has the permute's name, not the start's. Seen in 0.12.0.1."""
COMMANDS_COUNT_BRANCHES = date(2026, 9, 18)
"""GPU: thunks in branches and bodies count for the size of a command buffer; an unknown version of CUDA forbids no control
flow. Seen in 0.12.0.1, not in the source of July."""
TUPLES_GO_FROM_ORDER = date(2026, 9, 18)
"""The tuple simplifier removes a tuple that has only control successors. Seen in 0.12.0.1."""
STARTS_NUMBERED_FIRST = date(2026, 8, 12)
"""GPU: a kAsyncStart has a lower number than its nested thunks. Seen since this day: in 0.11.2, not in 0.10.2."""
COPIES_OF_ALL_BRANCHES = date(2026, 7, 29)
"""Copy insertion treats branches that forward their argument alike in every position, and removes copies within a value
list."""
