"""Origins of operations, for a page: what passes did to them, and the annotation that would avoid a collective."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import hlotext as hlo
from hlotext import dumps
from hlotext.dumps.collectives import wording
from hlotext.findings import escape
from hlotext.ir.tables import traits

Facts = Sequence[tuple[str, str]]
_MOST = 20_000
"""Maximum number of operations whose origin is determined."""


def origins(
    module: hlo.Module,
    compilation: dumps.Compilation | None = None,
    mesh: hlo.analysis.DeviceMesh | None = None,
    *,
    is_whole: bool = False,
    among: Iterable[hlo.Instruction] | None = None,
) -> Mapping[hlo.Instruction, Facts]:
    """Explains why operations of a module exist. Returns labeled sentences by operation.

    Args:
        module: The module shown on the page.
        compilation: The compilation whose final HLO the module is.
        mesh: See `Compilation.collectives`.
        is_whole: Read all steps of the compilation, to name the pass that introduced each operation.
        among: Operations for which to determine the pass, or None for all.

    Raises:
        InputError: A file of the compilation cannot be read.
        HloSyntaxError: A file of the compilation is not valid HLO.
    """
    found: dict[hlo.Instruction, list[tuple[str, str]]] = {}
    if is_whole and compilation is not None and compilation.after is module:
        nodes = [
            one
            for one in (module.instructions() if among is None else among)
            if one.opcode not in traits.IS_FREE
        ][:_MOST]
        if compilation.identity.shows_passes:
            for cause in dumps.causes.origins(compilation, nodes):
                if cause.chain:
                    found[cause.instruction] = [("why", f"{cause.chain} ({cause.confidence})")]
    for one in dumps.collectives.of_module(module, compilation, mesh):
        if wording.is_told(one):
            facts = wording.facts(one)
            for node in dict.fromkeys((one.communication.start, one.instruction)):
                found[node] = [*found.get(node, ()), *facts]
    return {
        node: [(name, escape.line(text)) for name, text in dict.fromkeys(facts)]
        for node, facts in found.items()
    }
