"""The graph of a module as one HTML file: neighbourhoods, search, fusions opened, drawn by a script of our own."""

from __future__ import annotations

from collections.abc import Mapping

import hlotext as hlo
from hlotext.analysis.meant import names_meant
from hlotext.cost import traffic
from hlotext.findings import escape
from hlotext.ir import gc_control
from hlotext.view.carried import carried
from hlotext.view.graph.columns import columns
from hlotext.view.graph.origins import Facts
from hlotext.view.page.colours import PALETTE, TOP_LEVEL
from hlotext.view.page.packing import asset, policy
from hlotext.view.page.packing import script as joined


def graph_page(
    module: hlo.Module,
    around: str | None = None,
    hops: int = 3,
    why: Mapping[hlo.Instruction, Facts] | None = None,
) -> str:
    """Creates an interactive HTML page of a module's graph, starting at one operation, or at the scopes.

    The page is self-contained and works offline; a fragment `#name` in its URL links to an operation. Output is
    deterministic.

    Args:
        module: The module.
        around: Name of the operation to start at; None starts at the scopes.
        hops: Maximum distance of the operations shown initially.
        why: Facts on the origin of operations, see `origins`.

    Raises:
        LookupError: The module has no operation with this name.
        ValueError: The module has no instructions.
    """
    first = ""
    if around is not None:
        wanted = around.removeprefix("%")
        if not any(one.name == wanted for one in module.instructions()):
            raise LookupError(
                f"no instruction or computation {wanted} in {module.name}{names_meant(module, wanted)}"
            )
        first = wanted
    if not any(len(computation) for computation in module.computations):
        raise ValueError(f"module {module.name} has no instructions")
    with gc_control.gc_paused(collect_first=False):  # who uses what stays, and columns are no cycles
        data = columns(module, _told(module, why or {}))
    script = joined("common.js", "graph.js")
    blobs = "\n".join(
        f'<script type="application/octet-stream" data-part="{name}">{blob}</script>'
        for name, blob in data.items()
    )
    values = {
        "POLICY": escape.html(policy([script])),
        "TITLE": escape.html(module.name),
        "VERSION": escape.html(hlo.__version__),
        "STYLE": asset("page.css") + asset("graph.css"),
        "AROUND": escape.html(first),
        "HOPS": str(hops),
        "PALETTE": " ".join((*PALETTE, TOP_LEVEL)),
        "BLOBS": blobs,
        "SCRIPT": script,
    }
    page = asset("graph.html")
    parts = page.split(
        "@@"
    )  # words between @@ and @@ are replaced, in one pass, so that no value is looked into
    return "".join(part if n % 2 == 0 else values[part] for n, part in enumerate(parts))


def _told(module: hlo.Module, why: Mapping[hlo.Instruction, Facts]) -> Mapping[hlo.Instruction, Facts]:
    """Facts of operations, with the collectives that they carry, which the opcode of a fusion does not say."""
    texts: dict[tuple[int, str, int], str] = {}  # a collective is in several operations
    sent: dict[hlo.Instruction, Facts] = {}
    for one, found in carried(module, traffic(module)).items():
        key = id(found.flow), found.role, found.more
        text = texts.get(key) or texts.setdefault(key, escape.line(found.text))
        sent[one] = [("collective", text), *why.get(one, ())]
    return {**why, **sent}
