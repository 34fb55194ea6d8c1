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
    "types",
    "unseen",
    "unseen_more",
    "wasteful",
]
