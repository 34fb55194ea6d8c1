"""The programs from which XLA makes the modules of the corpus."""

from __future__ import annotations

from corpus.programs import (
    control,
    faults,
    linear,
    memories,
    models,
    ordinary,
    parallel,
    third_acting,
    third_by_hand,
    third_estimates,
    third_models,
    third_parallel,
    third_science,
    third_serving,
    third_training,
    types,
    unseen,
    unseen_more,
    wasteful,
)
from corpus.programs.registry import PLATFORMS, REGISTRY, Place, Program

__all__ = [
    "PLATFORMS",
    "REGISTRY",
    "Place",
    "Program",
    "control",
    "faults",
    "linear",
    "memories",
    "models",
    "ordinary",
    "parallel",
    "third_acting",
    "third_by_hand",
    "third_estimates",
    "third_models",
    "third_parallel",
    "third_science",
    "third_serving",
    "third_training",
    "types",
    "unseen",
    "unseen_more",
    "wasteful",
]
