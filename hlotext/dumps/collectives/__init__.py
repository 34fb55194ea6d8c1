"""Causes of the collectives of a compilation, and annotations that would avoid them."""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.dumps.collectives.answers import collectives, of_module
    from hlotext.dumps.collectives.records import CollectiveCause, Place, Reason, Suggestion
    from hlotext.dumps.collectives.steps import mesh_note, named_mesh
    from hlotext.dumps.collectives.warnings import warned

__getattr__ = lazy_submodules(
    __name__,
    answers=("collectives", "of_module"),
    records=("CollectiveCause", "Place", "Reason", "Suggestion"),
    steps=("mesh_note", "named_mesh"),
    warnings=("warned",),
)

__all__ = [
    "CollectiveCause",
    "Place",
    "Reason",
    "Suggestion",
    "collectives",
    "mesh_note",
    "named_mesh",
    "of_module",
    "warned",
]
