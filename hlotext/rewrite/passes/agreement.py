"""Measured agreement of passes with XLA's; made by `python -m tests.pass_pairs`, do not edit."""

from __future__ import annotations

import attrs


@attrs.frozen
class Agreement:
    """Number of recorded steps of an XLA pass for which our pass produces the same module."""

    xla: str
    """XLA's names of the pass."""
    changed: int
    """Steps that XLA's pass changed."""
    changed_equal: int
    unchanged: int
    """Steps that it left unchanged."""
    unchanged_equal: int

    @property
    def keeps_up(self) -> bool:
        """True if enough results are equal: 97% of the steps with changes (below 34 steps, all but one), and all
        others.
        """
        missed = self.changed - self.changed_equal
        return self.unchanged_equal == self.unchanged and (
            self.changed_equal >= 0.97 * self.changed or (self.changed < 34 and missed <= 1)
        )


DATE = "2026-11-22"
"""When that was measured, on the programs of JAX 0.10 that the corpus is made of, for CPU, GPU and TPU."""

AGREEMENT = {
    "algsimp": Agreement("algsimp", 267, 228, 60, 60),
    "all-reduce-promotion": Agreement("all-reduce-promotion", 2, 2, 0, 0),
    "all-to-all-decomposer": Agreement("all_to_all_decomposer", 2, 2, 0, 0),
    "async-collective-creator": Agreement("async-collective-creator", 7, 7, 19, 19),
    "batched-gather-scatter-normalizer": Agreement("batched_gather_scatter_normalizer", 9, 9, 0, 0),
    "call-inliner": Agreement("CallInliner, call-inliner", 51, 51, 25, 25),
    "comparison-expander": Agreement("comparison-expander", 6, 6, 0, 0),
    "computation-deduplicator": Agreement("computation-deduplicator", 11, 11, 0, 0),
    "conditional-canonicalizer": Agreement("conditional-canonicalizer", 6, 6, 0, 0),
    "constant-folding": Agreement("constant_folding", 61, 61, 40, 40),
    "convert-mover": Agreement("convert-mover", 3, 3, 0, 0),
    "copy-insertion-adding": Agreement("adding_copies_to_resolve_interference", 44, 44, 0, 0),
    "copy-insertion-removing": Agreement("removing_unnecessary_copies", 41, 41, 0, 0),
    "copy-insertion-special": Agreement("adding_special-case_copies", 19, 19, 0, 0),
    "cpu-fusion": Agreement("fusion", 25, 25, 0, 0),
    "cpu-layout-assignment": Agreement("layout-assignment", 16, 16, 0, 0),
    "cse": Agreement("cse", 181, 180, 42, 42),
    "cse-barrier-expander": Agreement("cse_barrier_expander", 3, 3, 0, 0),
    "dce": Agreement("dce", 175, 175, 60, 60),
    "dot-decomposer": Agreement("dot_decomposer", 6, 6, 20, 20),
    "dynamic-dimension-simplifier": Agreement("dynamic-dimension-simplifier", 11, 11, 0, 0),
    "flatten-call-graph": Agreement("flatten-call-graph", 30, 30, 55, 55),
    "float-normalization": Agreement("float-normalization-bf16", 9, 9, 0, 0),
    "fusion-wrapper": Agreement("fusion-wrapper", 32, 32, 25, 25),
    "gather-simplifier": Agreement("gather_simplifier", 8, 8, 0, 0),
    "gpu-convert-async-collectives-to-sync": Agreement("gpu-convert-async-collectives-to-sync", 7, 7, 19, 19),
    "hlo-constant-splitter": Agreement("hlo-constant-splitter", 2, 2, 0, 0),
    "hlo-module-dce": Agreement("hlo-module-dce", 6, 6, 4, 4),
    "layout-normalization": Agreement("layout_normalization", 19, 19, 0, 0),
    "map-inline": Agreement("map-inline", 2, 2, 0, 0),
    "post-scheduling-copies": Agreement("post-scheduling-copies", 9, 9, 0, 0),
    "rename-fusions": Agreement("rename_fusions", 25, 25, 0, 0),
    "rename-instructions": Agreement("rename-instructions", 26, 26, 0, 0),
    "reshape-decomposer": Agreement("reshape-decomposer", 29, 29, 23, 23),
    "reshape-mover": Agreement("reshape-mover", 127, 123, 20, 20),
    "root-instruction-sinker": Agreement("root-instruction-sinker", 1, 1, 0, 0),
    "scatter-simplifier": Agreement("scatter_simplifier", 12, 12, 0, 0),
    "select-and-scatter-expander": Agreement("select_and_scatter_expander", 4, 4, 0, 0),
    "sharding-remover": Agreement("sharding-remover", 0, 0, 24, 24),
    "simplify-fp-conversions": Agreement("simplify-fp-conversions", 3, 3, 0, 0),
    "simplify-while-loops": Agreement("simplify-while-loops", 36, 36, 20, 20),
    "sort-iota-fusion": Agreement("sort-iota-fusion", 3, 3, 0, 0),
    "stable-sort-expander": Agreement("stable-sort-expander", 6, 6, 0, 0),
    "topk-decomposer": Agreement("topk-decomposer", 4, 4, 0, 0),
    "transpose-folding": Agreement("transpose-folding", 15, 15, 7, 7),
    "tree-reduction-rewriter": Agreement("tree_reduction_rewriter", 5, 5, 0, 0),
    "tuple-simplifier": Agreement("tuple-simplifier", 32, 32, 41, 41),
    "while-loop-constant-sinking": Agreement("while-loop-constant-sinking", 8, 8, 0, 0),
    "while-loop-invariant-code-motion": Agreement("while-loop-invariant-code-motion", 15, 15, 0, 0),
}
"""By the name of the pass; others have no counterpart in XLA."""

NEWEST = "0.12.0.1"
"""The newest release of jaxlib whose steps were recorded."""

NEWEST_DATE = "2026-11-24"
"""When passes were compared with its steps."""

NEWEST_AGREEMENT = {
    "algsimp": Agreement("algsimp", 237, 229, 78, 78),
    "all-reduce-promotion": Agreement("all-reduce-promotion", 0, 0, 1, 1),
    "all-to-all-decomposer": Agreement("all_to_all_decomposer", 1, 1, 0, 0),
    "async-collective-creator": Agreement("async-collective-creator", 6, 6, 12, 12),
    "batched-gather-scatter-normalizer": Agreement("batched_gather_scatter_normalizer", 3, 3, 23, 23),
    "call-inliner": Agreement("CallInliner, call-inliner", 58, 58, 18, 18),
    "comparison-expander": Agreement("comparison-expander", 12, 12, 1, 1),
    "computation-deduplicator": Agreement("computation-deduplicator", 12, 12, 0, 0),
    "conditional-canonicalizer": Agreement("conditional-canonicalizer", 3, 3, 15, 15),
    "constant-folding": Agreement("constant_folding", 65, 65, 26, 26),
    "convert-mover": Agreement("convert-mover", 1, 1, 37, 37),
    "copy-insertion-adding": Agreement("adding_copies_to_resolve_interference", 40, 40, 0, 0),
    "copy-insertion-removing": Agreement("removing_unnecessary_copies", 39, 39, 0, 0),
    "copy-insertion-special": Agreement("adding_special-case_copies", 23, 23, 0, 0),
    "cpu-fusion": Agreement("fusion", 18, 18, 0, 0),
    "cpu-layout-assignment": Agreement("layout-assignment", 15, 10, 0, 0),
    "cse": Agreement("cse", 145, 145, 55, 55),
    "cse-barrier-expander": Agreement("cse_barrier_expander", 6, 6, 0, 0),
    "dce": Agreement("dce", 157, 157, 105, 105),
    "dot-decomposer": Agreement("dot_decomposer", 6, 6, 18, 18),
    "dynamic-dimension-simplifier": Agreement("dynamic-dimension-simplifier", 17, 17, 2, 2),
    "flatten-call-graph": Agreement("flatten-call-graph", 36, 36, 30, 30),
    "float-normalization": Agreement("float-normalization-bf16", 2, 2, 29, 29),
    "fusion-wrapper": Agreement("fusion-wrapper", 16, 16, 7, 7),
    "gather-simplifier": Agreement("gather_simplifier", 12, 12, 0, 0),
    "gpu-convert-async-collectives-to-sync": Agreement("gpu-convert-async-collectives-to-sync", 6, 6, 12, 12),
    "hlo-module-dce": Agreement("hlo-module-dce", 8, 8, 3, 3),
    "map-inline": Agreement("map-inline", 2, 2, 0, 0),
    "rename-fusions": Agreement("rename_fusions", 18, 18, 0, 0),
    "rename-instructions": Agreement("rename-instructions", 18, 18, 0, 0),
    "reshape-decomposer": Agreement("reshape-decomposer", 32, 31, 5, 5),
    "reshape-mover": Agreement("reshape-mover", 63, 63, 16, 16),
    "root-instruction-sinker": Agreement("root-instruction-sinker", 0, 0, 18, 18),
    "scatter-simplifier": Agreement("scatter_simplifier", 12, 12, 15, 15),
    "select-and-scatter-expander": Agreement("select_and_scatter_expander", 2, 2, 21, 21),
    "sharding-remover": Agreement("sharding-remover", 0, 0, 17, 17),
    "simplify-fp-conversions": Agreement("simplify-fp-conversions", 1, 1, 8, 8),
    "simplify-while-loops": Agreement("simplify-while-loops", 47, 47, 19, 19),
    "sort-iota-fusion": Agreement("sort-iota-fusion", 5, 5, 0, 0),
    "stable-sort-expander": Agreement("stable-sort-expander", 5, 5, 0, 0),
    "topk-decomposer": Agreement("topk-decomposer", 12, 12, 1, 1),
    "transpose-folding": Agreement("transpose-folding", 0, 0, 7, 7),
    "tree-reduction-rewriter": Agreement("tree_reduction_rewriter", 5, 5, 3, 3),
    "tuple-simplifier": Agreement("tuple-simplifier", 39, 39, 52, 52),
    "while-loop-constant-sinking": Agreement("while-loop-constant-sinking", 10, 10, 3, 3),
    "while-loop-invariant-code-motion": Agreement("while-loop-invariant-code-motion", 24, 24, 10, 10),
}
"""The same for that release; without a row: no step recorded for the pass."""
