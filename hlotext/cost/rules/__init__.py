"""Cost rules of XLA's `HloCostAnalysis` for FLOPs and bytes, with one file per family of opcodes.

The opcode table names the rule of each opcode (`Opcode.cost_rule`). Each rule corresponds to a `Handle...` method in
XLA.
"""

from hlotext.cost.op_cost import RULES
from hlotext.cost.rules import arithmetic, asynchronous, calls, contraction, fusion, indexing, reduction

__all__ = ["RULES", "arithmetic", "asynchronous", "calls", "contraction", "fusion", "indexing", "reduction"]
