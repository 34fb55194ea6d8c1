"""The programs from which XLA makes the modules of the corpus."""

from __future__ import annotations

from corpus.programs import control, linear, memories, models, parallel, types, wasteful
from corpus.programs.registry import PLATFORMS, REGISTRY, Place, Program

__all__ = [
    "PLATFORMS",
    "REGISTRY",
    "Place",
    "Program",
    "control",
    "linear",
    "memories",
    "models",
    "parallel",
    "types",
    "wasteful",
]
