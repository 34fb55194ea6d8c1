"""Adds the row of a collective that hlotext does not have, and prints what packages know of it (run by test_traits.py)."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import sys
from types import ModuleType

ROWS = "hlotext.ir.tables.opcode_rows.communication"
ROW = """
ROWS += (
    Opcode(
        "mesh-reduce",
        Family.COLLECTIVE,
        Arity(),
        "An all-reduce of next year.",
        f"f32[4] mesh-reduce(f32[4] x), replica_groups={{{{0,1}}}}, to_apply={ADD}",
        attributes=a.ALL_REDUCE,
        shape_rule="all_reduce",
        cost_rule="all_reduce",
        elements=Elements.SEND,
        effect=Effect.CHANNEL_OR_LAYOUT,
        call_context=CallContext.EMBEDDED,
        communication=CommunicationKind(
            "mesh-reduce", WireRule(is_shared=True, rounds=2, steps="chain"), is_reduction=True
        ),
        keeps_layout=True,
        mixes_precision=True,
    ),
)
"""
TEXT = """HloModule m, replica_count=4

sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }

ENTRY e {
  x = f32[100] parameter(0)
  unused = f32[100] mesh-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, to_apply=sum
  dead = f32[100] mesh-reduce(x), replica_groups={{0,1,2,3}}, to_apply=sum
  ROOT y = f32[100] mesh-reduce(x), replica_groups={{0,1,2,3}}, to_apply=sum
}
"""


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        exec(ROW, vars(module))


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != ROWS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def main() -> None:
    """Prints the answers as JSON."""
    sys.meta_path.insert(0, _Finder())
    import hlotext as hlo
    from hlotext import analysis
    from hlotext.analysis.wire import latency_steps
    from hlotext.compiler.async_collectives import async_collective_creator
    from hlotext.ir.nodes.effects import has_side_effect
    from hlotext.rewrite import passes
    from hlotext.verify import verify

    module = hlo.parse(TEXT)
    wrong = hlo.parse(TEXT.replace("ROOT c = f32[] add(a, b)", "ROOT c = f32[2] broadcast(a), dimensions={}"))
    asynchronous = async_collective_creator(module)
    answers = {
        "effects": [has_side_effect(i) for i in module.entry if i.opcode == "mesh-reduce"],
        "wire_bytes": [row.wire_bytes for row in analysis.communications(module)],
        "latency_steps": latency_steps("mesh-reduce", 4),
        "verify": [finding.code for finding in verify(module)],
        "verify wrong": sorted({finding.code for finding in verify(wrong)}),
        "asynchronous": sorted({i.opcode for i in asynchronous.module.entry}),
    }
    passes.DeadCodeElimination().run(module)
    answers["after dce"] = [i.name for i in module.entry]
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
