"""The rules by which XLA counts operations and bytes (`HloCostAnalysis`), a file for each family of opcodes.

A rule's name is in the opcode table (`Opcode.cost_rule`). What each counts is XLA's `Handle...` method of its opcode.
"""

from hlotext.cost.op_cost import RULES
from hlotext.cost.rules import arithmetic, asynchronous, calls, contraction, fusion, indexing, reduction

__all__ = ["RULES", "arithmetic", "asynchronous", "calls", "contraction", "fusion", "indexing", "reduction"]
