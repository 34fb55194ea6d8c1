"""Names that say what is in fusions, and which instructions were fused late."""

from __future__ import annotations

import re
from typing import ClassVar

import attrs

from hlotext.analysis.heroes import hero_of, roots_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.enums import FusionKind
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations


@attrs.frozen
class RenameFusions(Pass):
    """Names fusions after their main operation, `loop_add_fusion` with `fused_add` (XLA's `RenameFusions`, for GPU).

    Custom fusions keep their names. Numbers that make names unique are assigned in text order; XLA uses the order of its
    vectors, which the text does not show.

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { p = f32[4] parameter(0)  ROOT s = f32[4] sine(p) }"
    ...     "  ENTRY e { x = f32[4] parameter(0)  ROOT r = f32[4] fusion(x), kind=kLoop, calls=f }")
    >>> RenameFusions().run(m).statistics
    {'fusions': 1}
    >>> print(m.entry.root)
    ROOT loop_sine_fusion = f32[4] fusion(x), kind=kLoop, calls=fused_sine
    """

    name: ClassVar[str] = "rename-fusions"
    summary: ClassVar[str] = "Renames fusions after their main operations."
    is_one_round: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        count = 0
        names: dict[Computation, str] = {}
        for computation in nonfusion_computations(module):
            for i in computation.instructions:
                kind = i.attributes.get("kind")
                if i.opcode != "fusion" or not isinstance(kind, FusionKind) or kind is FusionKind.CUSTOM:
                    continue
                callees = i.called_computations
                if len(callees) != 1 or not len(callees[0]):
                    continue
                heroes = sorted({hero_of(root).opcode for root in roots_of(callees[0])})
                words = "_".join(heroes).replace("-", "_")
                word = str(kind).removeprefix("k").lower()
                i.name = module.instruction_names.unique(f"{word}_{words}_fusion")
                names[callees[0]] = module.computation_names.unique(f"fused_{words}")
                count += 1
        for computation, name in names.items():  # once, also where several fusions run one
            computation.name = name
        return PassResult.of({"fusions": count})


@attrs.frozen
class RenameInstructions(Pass):
    """Appends `.0` to the names of fusible instructions (XLA's `AddTrackingSuffixToInstructionNames`, for GPU).

    The name then shows whether an instruction is unchanged since before fusion. If that name is taken, the next free number
    visible in the text is used; names of removed instructions are unknown. A name that ends in a number and `.0` already has
    its suffix.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[4] parameter(0)  sin.1 = f32[4] sine(x)  ROOT cos = f32[4] cosine(sin.1) }")
    >>> RenameInstructions().run(m).statistics
    {'names': 2}
    >>> [i.name for i in m.entry]
    ['x', 'sin.1.0', 'cos.1']
    """

    name: ClassVar[str] = "rename-instructions"
    summary: ClassVar[str] = "Appends a number to the names of fusible instructions."
    is_one_round: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        count = 0
        for computation in nonfusion_computations(module):
            for i in computation.instructions:
                if _may_be_fused(editor, i) and not _TRACKED.search(i.name):
                    i.name = module.instruction_names.unique(f"{i.name}.0")
                    count += 1
        return PassResult.of({"names": count})


_TRACKED = re.compile(r"\.[0-9]+\.0$")
_ALWAYS_FUSED = traits.REDUCTIONS | {"map"}


def _may_be_fused(editor: Editor, i: Instruction) -> bool:
    """`HloInstruction::IsFusible`, but for fusions and custom calls."""
    if i.opcode in ("parameter", "custom-call", "fusion", "domain", "while", "conditional", "call"):
        return False
    if i.opcode in _ALWAYS_FUSED:
        return True
    return len(i.users) <= 1 if i.opcode == "rng" else not editor.has_effect(i)
