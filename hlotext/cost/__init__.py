"""Cost of a module: FLOPs and bytes as XLA counts them, scaled by trip counts, and a lower bound on run time."""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.cost.analysis import KEYS, Analysis, Cost, InstructionCost, Key, RunCost, analyze
    from hlotext.cost.counting import product_flops
    from hlotext.cost.estimate import (
        CompilerEstimate,
        Estimate,
        InstructionTime,
        PathStep,
        TransferTime,
        estimate,
    )
    from hlotext.cost.products import (
        ConvolutionDimensions,
        MatrixProduct,
        convolution_dimensions,
        matrix_products,
        product_sizes,
    )
    from hlotext.cost.roofline import OVERHEAD, Bound, LowerBound
    from hlotext.cost.target_costs import Formula, TargetCost, TargetCosts, read_costs, target_costs
    from hlotext.cost.tpu import TpuCost
    from hlotext.cost.traffic import CollectiveTraffic, HostCopy, Traffic, TrafficTotal, traffic
    from hlotext.cost.tree import ScopeCost, scope_tree
else:
    __getattr__ = lazy_submodules(
        __name__,
        analysis=(
            "KEYS",
            "Analysis",
            "Cost",
            "InstructionCost",
            "Key",
            "RunCost",
            "analyze",
        ),
        counting=("product_flops",),
        estimate=(
            "CompilerEstimate",
            "Estimate",
            "InstructionTime",
            "PathStep",
            "TransferTime",
            "estimate",
        ),
        products=(
            "ConvolutionDimensions",
            "MatrixProduct",
            "convolution_dimensions",
            "matrix_products",
            "product_sizes",
        ),
        roofline=(
            "OVERHEAD",
            "Bound",
            "LowerBound",
        ),
        target_costs=(
            "Formula",
            "TargetCost",
            "TargetCosts",
            "read_costs",
            "target_costs",
        ),
        tpu=("TpuCost",),
        traffic=(
            "CollectiveTraffic",
            "HostCopy",
            "Traffic",
            "TrafficTotal",
            "traffic",
        ),
        tree=(
            "ScopeCost",
            "scope_tree",
        ),
    )

__all__ = [
    "KEYS",
    "OVERHEAD",
    "Analysis",
    "Bound",
    "CollectiveTraffic",
    "CompilerEstimate",
    "ConvolutionDimensions",
    "Cost",
    "Estimate",
    "Formula",
    "HostCopy",
    "InstructionCost",
    "InstructionTime",
    "Key",
    "LowerBound",
    "MatrixProduct",
    "PathStep",
    "RunCost",
    "ScopeCost",
    "TargetCost",
    "TargetCosts",
    "TpuCost",
    "Traffic",
    "TrafficTotal",
    "TransferTime",
    "analyze",
    "convolution_dimensions",
    "estimate",
    "matrix_products",
    "product_flops",
    "product_sizes",
    "read_costs",
    "scope_tree",
    "target_costs",
    "traffic",
]
