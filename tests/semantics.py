"""Executes programs before and after passes with XLA, a line of JSON each.

    python -m tests.semantics all|pipeline|unroll|cases FILE...

A process of its own, since XLA ends the process that gives it a module it does not like.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import hlotext as hlo
from hlotext.rewrite.outlining import inline
from hlotext.rewrite.passes import PASSES, Pass, parse_passes
from hlotext.rewrite.pipeline import Pipeline

PIPELINE = (
    "flatten-call-graph,call-inliner,conditional-canonicalizer,map-inline,batched-gather-scatter-normalizer,gather-simplifier,"
    "scatter-simplifier,topk-decomposer,select-and-scatter-expander,sort-simplifier,stable-sort-expander,comparison-expander,"
    "tuple-simplifier,while-loop-invariant-code-motion,while-loop-constant-sinking,hlo-module-dce,simplify-while-loops,"
    "dynamic-dimension-simplifier,zero-sized-hlo-elimination,dot-decomposer,convert-mover,hlo-constant-splitter,"
    "algsimp,constant-folding,transpose-folding,computation-deduplicator,reshape-mover,reshape-decomposer,"
    "layout-normalization,bitcast-simplifier,cse,dce,cse-barrier-expander,remove-shardings,strip-metadata,canonical-names"
)
UNROLL = "unroll-loops{max_trips=8}"
EXACT = frozenset(
    {
        "reshape-mover",
        "layout-normalization",
        "reshape-decomposer",
        "bitcast-simplifier",
        "canonical-names",
        "strip-metadata",
    }
)
"""Passes after which even floats must be the same to the bit."""


SUMMED_IN_BF16 = frozenset({"automatic_layouts"})
"""Programs with a dot of bf16 that is no product of matrices: the CPU compiler of jaxlib 0.12.0.1 sums it in bf16 (3.3 off in
71.5), and in f32 the product of matrices that passes make of it (0.24 off, as in both cases with jaxlib 0.10.2). Of -1, 0 and
1 every sum is exact."""


LAYOUT_PASSES = ("layout-normalization", "reshape-decomposer", "bitcast-simplifier")
"""Passes that do more where layouts are not the descending ones that programs have before optimization."""


def candidates(which: str, module: hlo.Module) -> Iterator[tuple[str, hlo.Module, list[Pass]]]:
    """Names, modules that compute what the given one does, and passes to try on them."""
    if which == "unroll":
        yield "unroll-loops", module.clone(), parse_passes(UNROLL)
        yield (
            "unroll-loops, and on",
            module.clone(),
            parse_passes(f"{UNROLL},tuple-simplifier,constant-folding,cse,dce"),
        )
        return
    yield "pipeline", module.clone(), parse_passes(PIPELINE)
    if which == "all":
        for name, kind in PASSES.items():
            if kind.preserves_results:
                yield name, module.clone(), [kind()]
        for name in LAYOUT_PASSES:
            yield f"{name}, ascending layouts", with_ascending_layouts(module), [PASSES[name]()]


def with_ascending_layouts(module: hlo.Module) -> hlo.Module:
    """A copy in which the entry's values, but for parameters and the root, lie with their first dimension the fastest."""
    copy = module.clone()
    for i in copy.entry:
        shape = i.shape
        if (
            i.opcode not in ("parameter", "bitcast")
            and not i.is_root
            and shape is not None
            and shape.is_array
        ):
            i.change(shape=shape.with_layout(hlo.Layout(tuple(range(shape.rank)))), typed=False)
    return copy


def inputs_of(path: Path, module: hlo.Module) -> Sequence[Any]:
    """Random arguments, or small whole ones for the programs in SUMMED_IN_BF16."""
    from hlotext.interop import jax as interop

    arrays = interop.random_inputs(module, seed=7)
    if path.name.partition(".")[0] in SUMMED_IN_BF16:
        return [(array > 0).astype(array.dtype) - (array < 0).astype(array.dtype) for array in arrays]
    return arrays


def passes_of(case: Path) -> list[Pass]:
    """The passes that the first line of a case names."""
    return parse_passes(case.read_text(encoding="utf-8").splitlines()[0].removeprefix("// passes: "))


def run_case(case: Path) -> None:
    """Executes one file of tests/data/passes before, or its counterpart for one device, and after."""
    from hlotext.interop import jax as interop

    after, alone = hlo.load(case), case.parent / "alone" / case.name
    Pipeline(passes_of(case)).run(after)
    before = hlo.load(alone if alone.exists() else case)
    for module in (before, after):  # XLA's CPU client is given programs as they are before fusion
        for fusion in [i for i in module.instructions() if i.opcode == "fusion"]:
            inline(fusion)
    interop.assert_equivalent(before, after, rtol=0)


def main(which: str, *files: str) -> None:
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    from hlotext.interop import jax as interop

    jax.config.update("jax_enable_x64", True)
    for file in files:
        if which == "cases":
            run_case(Path(file))
            print(json.dumps({"file": Path(file).name}), flush=True)
            continue
        before = hlo.load(Path(file))
        inputs = inputs_of(Path(file), before)
        for name, after, passes in candidates(which, before):
            steps = Pipeline(passes).run(after)
            changed = any(step.result.changed for step in steps)
            if changed:
                interop.assert_equivalent(before, after, inputs, rtol=0 if name in EXACT else 1e-5)
            print(json.dumps({"file": Path(file).name, "pass": name, "changed": changed}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
