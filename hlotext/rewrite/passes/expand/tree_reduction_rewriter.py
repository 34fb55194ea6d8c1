"""Long reductions in two steps."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.window import Window, WindowDimension
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.facts import dims, shape_of, sizes, type_of
from hlotext.rewrite.kit.rules import Result, Rewrite, pattern
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.properties import is_descending, is_tiled


@attrs.frozen
class TreeReductionRewriter(Pass):
    """Splits long reductions into a reduce-window and a reduction of its results (XLA's `TreeReductionRewriter`).

    This makes sums of many floats more precise. Not rewritten are reductions of several values, of dimensions that fit into
    one window, and those that the CPU compiler passes to a library (YNNPACK), and tiled arrays.

    >>> import hlotext as hlo
    >>> m = hlo.parse("s { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
    ...     "  ENTRY e { x = f32[100] parameter(0)  z = f32[] constant(0)"
    ...     "  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=s }")
    >>> TreeReductionRewriter().run(m).statistics
    {'reductions': 1}
    >>> print(m.entry.root.operands[0])
    reduce-window = f32[4] reduce-window(x, z), window={size=32 stride=32 pad=14_14}, to_apply=s
    """

    name: ClassVar[str] = "tree-reduction-rewriter"
    summary: ClassVar[str] = "Splits long reductions into a reduce-window and a reduction of its results."
    is_one_round: ClassVar[bool] = True

    window: int = 32
    """The size of a window in each reduced dimension."""
    leaves_library: bool = True
    """Leaves what a library reduces."""

    def run(self, module: Module) -> PassResult:
        return PassResult.of(apply_rules(module, [split], driver="once", options=self))


@pattern("reduce", name="reductions")
def split(r: Rewrite) -> Result:
    """`ExpandInstruction`"""
    i = r.instruction
    if not _matches(r):
        return None
    x, start = i.operands
    parts, counts = [], []
    for d, size in enumerate(sizes(x)):
        width = min(size, r.options.window) if d in dims(i) else 1
        count = -(-size // width) if width else 0
        pad = max((count - 1) * width + width - size, 0)
        parts.append(WindowDimension(width, stride=width, padding_low=pad // 2, padding_high=pad - pad // 2))
        counts.append(count)
    callee = i.called_computations[0]
    shape = r.shape(type_of(x), counts)
    inner = r.create_like(i, "reduce-window", shape, (x, start), window=Window(tuple(parts)), to_apply=callee)
    return r.create("reduce", shape_of(i), (inner, start), dimensions=dims(i), to_apply=callee)


def _matches(r: Rewrite) -> bool:
    i = r.instruction
    if len(i.operands) != 2 or not shape_of(i).is_array or r.options.window < 1:
        return False
    if len(i.called_computations) != 1 or (r.options.leaves_library and is_library_reduction(i)):
        return False
    if is_tiled(i.operands[0].shape):
        return False
    return any(sizes(i.operands[0])[d] > r.options.window for d in dims(i))


LIBRARY_ELEMENTS = 4096
"""Elements of an operand or a result from which on the library is preferred (`IsInstructionPreferredByYnn`)."""
LIBRARY_RANK = 6
"""The highest rank that the library takes (`YNN_MAX_TENSOR_RANK`; inferred, its header is not part of XLA)."""
LIBRARY_SUMS = frozenset(
    {("f64", "f64"), ("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("s8", "s32"), ("u8", "s32")}
)
LIBRARY_EXTREMA = frozenset({"u8", "s8", "bf16", "f16", "f32", "f64"})


def is_library_reduction(i: Instruction) -> bool:
    """Returns True if the CPU compiler calls a library for a reduction (`IsReduceLikeOpSupportedByYnn`)."""
    x, start = i.operands
    shapes = (shape_of(x), shape_of(i))
    if not any(shape_of(o).element_count >= LIBRARY_ELEMENTS for o in (i, x, start)):
        return False
    if any(
        s.rank > LIBRARY_RANK or (s.layout is not None and s.rank and not is_descending(s)) for s in shapes
    ):
        return False
    if not dims(i) or type_of(start) is not type_of(i):
        return False
    callee = i.called_computations[0]
    root = callee.root
    if set(root.operands) != set(callee.parameters) or len(root.operands) != 2:
        return False
    names = type_of(x).name, type_of(i).name
    if root.opcode == "add":
        return names in LIBRARY_SUMS
    return root.opcode in ("maximum", "minimum") and names[0] == names[1] and names[0] in LIBRARY_EXTREMA
