"""The adapter for Model Explorer that the documentation shows, where that package is installed."""

from __future__ import annotations

import re
from typing import Any

import pytest

import hlotext as hlo
from tests import support

pytest.importorskip("model_explorer", reason="Model Explorer is not installed: 661 MB, no extra of hlotext")


def test_the_adapter_of_the_documentation() -> None:
    """Every instruction is a node with its operands, scope and shapes; bodies are graphs that callers lead to."""
    page = (support.ROOT / "docs" / "tutorials" / "pages.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "main.py", "exec"), names)
    path = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
    module = hlo.load(path)
    graphs = {graph.id: graph for graph in names["HloAdapter"]().convert(str(path), {})["graphs"]}
    assert set(graphs) == {computation.name for computation in module.computations}
    for computation in module.computations:
        nodes = {node.id: node for node in graphs[computation.name].nodes}
        assert set(nodes) == {one.name for one in computation}
        for one in computation:
            node = nodes[one.name]
            assert [edge.sourceNodeId for edge in node.incomingEdges] == [o.name for o in one.operands]
            assert set(node.subgraphIds) == {body.name for body in one.called_computations}
    fusion = next(node for node in graphs[module.entry.name].nodes if node.id == "fusion.19")
    assert fusion.namespace == "layer_0"
