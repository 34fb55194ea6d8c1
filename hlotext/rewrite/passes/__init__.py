"""The built-in passes, one per file."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import attrs

from hlotext.ir.spelling import did_you_mean, slip_of, suggestion, unknown
from hlotext.rewrite.passes.base import Age, Pass, PassResult, Property

_CLASSES = {
    "algsimp": "simplify.algsimp:AlgebraicSimplifier",
    "anonymize": "cleanup.anonymize:Anonymize",
    "bitcast-simplifier": "layout.layout_normalization:BitcastSimplifier",
    "call-inliner": "calls.call_inliner:CallInliner",
    "canonical-names": "cleanup.strip:CanonicalNames",
    "combine-collectives": "devices.combine_collectives:CombineCollectives",
    "cse": "cleanup.cse:CommonSubexpressionElimination",
    "constant-folding": "simplify.constant_folding:ConstantFolding",
    "dce": "cleanup.dce:DeadCodeElimination",
    "flatten-call-graph": "calls.flatten_call_graph:FlattenCallGraph",
    "layout-normalization": "layout.layout_normalization:LayoutNormalization",
    "remove-shardings": "cleanup.strip:RemoveShardings",
    "reshape-decomposer": "expand.reshape_decomposer:ReshapeDecomposer",
    "reshape-mover": "simplify.reshape_mover:ReshapeMover",
    "single-device": "devices.single_device:SingleDevice",
    "strip-metadata": "cleanup.strip:StripMetadata",
    "tuple-simplifier": "simplify.tuple_simplifier:TupleSimplifier",
    "unroll-loops": "loops.unroll_loops:UnrollLoops",
    "while-to-one-trip": "loops.control_flow:WhileToOneTrip",
    "computation-deduplicator": "cleanup.computation_deduplicator:ComputationDeduplicator",
    "dot-decomposer": "expand.dot_decomposer:DotDecomposer",
    "dynamic-dimension-simplifier": "simplify.dynamic_dimension_simplifier:DynamicDimensionSimplifier",
    "transpose-folding": "simplify.transpose_folding:TransposeFolding",
    "simplify-while-loops": "loops.while_loop_simplifier:WhileLoopSimplifier",
    "batched-gather-scatter-normalizer": "expand.batched_gather_scatter_normalizer:BatchedGatherScatterNormalizer",
    "gather-simplifier": "simplify.gather_simplifier:GatherSimplifier",
    "scatter-simplifier": "simplify.scatter_simplifier:ScatterSimplifier",
    "while-loop-invariant-code-motion": "loops.while_loop_invariant_code_motion:WhileLoopInvariantCodeMotion",
    "while-loop-constant-sinking": "loops.while_loop_constant_sinking:WhileLoopConstantSinking",
    "hlo-module-dce": "cleanup.hlo_module_dce:HloModuleDCE",
    "comparison-expander": "expand.comparison_expander:ComparisonExpander",
    "conditional-canonicalizer": "simplify.conditional_canonicalizer:ConditionalCanonicalizer",
    "stable-sort-expander": "expand.stable_sort_expander:StableSortExpander",
    "zero-sized-hlo-elimination": "simplify.zero_sized_hlo_elimination:ZeroSizedHloElimination",
    "sort-simplifier": "simplify.sort_simplifier:SortSimplifier",
    "convert-mover": "simplify.convert_mover:ConvertMover",
    "cse-barrier-expander": "expand.cse_barrier_expander:CseBarrierExpander",
    "map-inline": "calls.map_inline:MapInline",
    "simplify-fp-conversions": "precision.simplify_fp_conversions:SimplifyFPConversions",
    "all-to-all-decomposer": "expand.all_to_all_decomposer:AllToAllDecomposer",
    "hlo-constant-splitter": "cleanup.hlo_constant_splitter:HloConstantSplitter",
    "sharding-remover": "devices.sharding_remover:ShardingRemover",
    "root-instruction-sinker": "calls.root_instruction_sinker:RootInstructionSinker",
    "rename-fusions": "calls.rename_fusions:RenameFusions",
    "rename-instructions": "calls.rename_fusions:RenameInstructions",
    "float-normalization": "precision.float_normalization:FloatNormalization",
    "topk-decomposer": "expand.topk_decomposer:TopkDecomposer",
    "tree-reduction-rewriter": "expand.tree_reduction_rewriter:TreeReductionRewriter",
    "select-and-scatter-expander": "expand.select_and_scatter_expander:SelectAndScatterExpander",
    "sort-iota-fusion": "simplify.sort_iota_fusion:SortIotaFusion",
    "all-reduce-promotion": "precision.all_reduce_promotion:AllReducePromotion",
}
"""Every pass of this package by its name: module and class, imported on access."""


class _Passes(Mapping[str, type[Pass]]):
    """Each pass is imported when it is asked for: all of them take longer than a run of one on a small module."""

    def __getitem__(self, name: str) -> type[Pass]:
        if name not in _CLASSES:
            raise unknown("pass", name, lambda: _CLASSES)
        module, kind = _CLASSES[name].split(":")
        found: type[Pass] = getattr(importlib.import_module(f"{__name__}.{module}"), kind)
        return found

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        meant = name.replace("_", "-") if name.replace("_", "-") in _CLASSES else "NAME"
        raise AttributeError(f"passes are items, not properties: PASSES[{meant!r}]", name=None, obj=None)


PASSES: Mapping[str, type[Pass]] = _Passes()
"""Every pass of this package by its name."""

MODELS: dict[str, str] = {
    "async-collective-creator": "hlotext.compiler.async_collectives:AsyncCollectiveCreator",
    "copy-insertion": "hlotext.compiler.copies:CopyInsertion",
    "copy-insertion-adding": "hlotext.compiler.resolve_interference:ResolveInterference",
    "copy-insertion-removing": "hlotext.compiler.remove_unnecessary_copies:RemovingCopies",
    "copy-insertion-special": "hlotext.compiler.special_case_copies:SpecialCopies",
    "fusion-wrapper": "hlotext.compiler.wrapping:FusionWrapper",
    "gpu-convert-async-collectives-to-sync": "hlotext.compiler.async_collectives:ConvertAsyncCollectivesToSync",
    "cpu-fusion": "hlotext.compiler.cpu_instruction_fusion:CpuFusion",
    "memory-scheduler": "hlotext.compiler.scheduling:MemoryScheduler",
    "cpu-layout-assignment": "hlotext.compiler.layout_models:CpuLayoutAssignment",
    "post-scheduling-copies": "hlotext.compiler.copies:PostSchedulingCopies",
}
"""Models of XLA's passes in higher layers, by name: module and class, imported on access."""


def __getattr__(name: str) -> Any:
    """The class of a pass, imported when it is asked for: `passes.DeadCodeElimination`."""
    for place in _CLASSES.values():
        module, kind = place.split(":")
        if kind == name:
            return getattr(importlib.import_module(f"{__name__}.{module}"), kind)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def find_pass(name: str) -> type[Pass] | None:
    """Returns the class of the pass or model with this name, or None if there is none."""
    if name not in MODELS:
        return PASSES.get(name)
    module, kind = MODELS[name].split(":")
    found: type[Pass] = getattr(importlib.import_module(module), kind)
    return found


def all_passes() -> dict[str, type[Pass]]:
    """Returns the classes of all passes, then those of all models, by the name that `parse_passes` takes."""
    found = {name: find_pass(name) for name in MODELS}
    return {**PASSES, **{name: kind for name, kind in found.items() if kind is not None}}


_PASS = re.compile(r"\s*([\w.\-]+)\s*(?:\{([^{}]*)\})?\s*(?:,|$)")


class PassOptionError(ValueError):
    """Raised if a pass or one of its options is unknown, or a value is invalid."""


def parse_passes(text: str, platform: str = "", age: Age = "") -> list[Pass]:
    """Parses a list of passes such as `dce,cse,algsimp{max_iterations=10}`.

    Args:
        text: The passes, with their options in braces.
        platform: Value of the option `platform` (`cpu`, `gpu`, `tpu`) for passes that have it, unless `text` sets it.
        age: The same for the option `age`.

    Raises:
        PassOptionError: A pass or option is unknown, or a value is invalid.

    >>> [str(p) for p in parse_passes("dce{computations=false},cse,algsimp", platform="gpu")]
    ['dce{computations=false}', 'cse', 'algsimp{platform=gpu}']
    """
    found, position = [], 0
    while position < len(text):
        match = _PASS.match(text, position)
        if match is None:
            raise PassOptionError(_unreadable(text, position))
        found.append(make_pass(match[1], match[2] or ""))
        position = match.end()
    try:
        return [pass_.following(platform, age) for pass_ in found]
    except ValueError as error:
        raise PassOptionError(str(error)) from None


def _unreadable(text: str, position: int) -> str:
    """The message about a list of passes that cannot be read from a position on."""
    rest = text[position:]
    if rest.count("{") != rest.count("}"):
        return f"in {text!r} a brace is not closed; options are written as algsimp{{max_iterations=10}}"
    words = text.split()
    if len(words) > 1 and "," not in text and "{" not in text:
        return f"passes are joined with commas: {','.join(words)}"
    if re.search(r"[\w}][\s;:|/+&]+\w", rest):
        return f"expected passes separated by commas at {rest!r}"
    return (
        f"in {text!r} a pass is missing before {rest!r}"
        if rest.startswith(",")
        else f"expected a pass at {rest!r}"
    )


def pass_meant(name: str) -> str:
    """Returns a suggestion for an unknown pass name: the pass with that XLA class name, the nearest name, or where to
    find all.
    """
    plain = _plain(name)
    same = [own for own, kind in all_passes().items() if plain in (_plain(own), _plain(kind.__name__))]
    known = (*PASSES, *MODELS)
    by_class = {_plain(kind.__name__): own for own, kind in all_passes().items()}
    same = (
        same
        or _passes_doing(name)
        or slip_of(name, known)
        or [by_class[one] for one in slip_of(plain, by_class)]
    )
    return suggestion(same) or did_you_mean(name, known) or "`hlotext help pass` lists all"


def _passes_doing(word: str) -> list[str]:
    """The passes that do what a word says, such as `simplify` or `inline`, those that XLA runs most often first."""
    stem = _ENDING.sub("", word.lower())
    if len(stem) < _SHORTEST_STEM:
        return []
    words = {
        own: f"{own} {_WORD.sub(' ', kind.__name__)} {(kind.__doc__ or '').partition('.')[0]}"
        for own, kind in all_passes().items()
    }
    named = [own for own, text in words.items() if re.search(rf"\b{re.escape(stem)}", text, re.IGNORECASE)]
    return named[:_MOST_NAMED]


_ENDING = re.compile(r"(?:y|ies|ier|ying|ing|ers?|e?s|e|ion|ization|ize|izer)\Z")
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Between the words of a class's name."""
_SHORTEST_STEM = 4
_MOST_NAMED = 3


def _plain(name: str) -> str:
    """A pass's name without what XLA's names of classes, options and steps differ in: `HloDCE`, `hlo_dce`, `dce`."""
    return re.sub(r"[\W_]", "", name).lower().removeprefix("hlo").removesuffix("pass")


def make_pass(name: str, options: str = "") -> Pass:
    """Creates a pass by name, with options as `name=value` separated by commas or blanks.

    Raises PassOptionError for an unknown pass or option, and for an invalid value.
    """
    kind = find_pass(name)
    if kind is None:
        raise PassOptionError(f"no pass {name}; {pass_meant(name)}")
    fields = {field.name: field for field in attrs.fields(kind)}
    values: dict[str, object] = {}
    for option in options.replace(",", " ").split():
        key, _, value = option.partition("=")
        if key not in fields:
            near = did_you_mean(key, fields) or f"it has {', '.join(fields) or 'none'}"
            raise PassOptionError(f"{name} has no option {key}; {near}")
        values[key] = _value(fields[key].default, value, option)
    try:
        return kind(**values)
    except ValueError as error:
        raise PassOptionError(str(error)) from None


def _value(default: object, text: str, option: str) -> object:
    """An option's value, of the type of its default."""
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise PassOptionError(f"{option} must be true or false")
        return text == "true"
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise PassOptionError(f"{option} must be an integer") from None
    return text


__all__ = [
    "MODELS",
    "PASSES",
    "Pass",
    "PassOptionError",
    "PassResult",
    "Property",
    "all_passes",
    "find_pass",
    "make_pass",
    "parse_passes",
]
