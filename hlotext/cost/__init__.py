"""Cost of a module: operations and bytes as XLA counts them, scaled by loops, and a lower bound on run time."""

from hlotext.cost.analysis import KEYS, Analysis, Cost, Key, RunCost, Share, analyze
from hlotext.cost.estimate import (
    CompilerEstimate,
    Estimate,
    InstructionTime,
    PathStep,
    TransferTime,
    estimate,
)
from hlotext.cost.products import MatrixProduct, matrix_products, product_sizes
from hlotext.cost.roofline import OVERHEAD, Bound, Least
from hlotext.cost.target_costs import Formula, TargetCost, TargetCosts, read_costs, target_costs
from hlotext.cost.tpu import TpuCost
from hlotext.cost.traffic import Copy, Flow, Sum, Traffic, traffic
from hlotext.cost.tree import Node, scope_tree

__all__ = [
    "KEYS",
    "OVERHEAD",
    "Analysis",
    "Bound",
    "CompilerEstimate",
    "Copy",
    "Cost",
    "Estimate",
    "Flow",
    "Formula",
    "InstructionTime",
    "Key",
    "Least",
    "MatrixProduct",
    "Node",
    "PathStep",
    "RunCost",
    "Share",
    "Sum",
    "TargetCost",
    "TargetCosts",
    "TpuCost",
    "Traffic",
    "TransferTime",
    "analyze",
    "estimate",
    "matrix_products",
    "product_sizes",
    "read_costs",
    "scope_tree",
    "target_costs",
    "traffic",
]
