"""Ranking of many modules by time, memory and traffic, with the most valuable repairs.

>>> from hlotext import triage
>>> found = triage.run(["dumps/"])  # doctest: +SKIP
>>> found.modules[0].name, found.actions[0].message  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.triage.actions import Action
    from hlotext.triage.contents import Content, Layer, Role
    from hlotext.triage.examined import Examined, Settings, Stall, Unexamined, examine
    from hlotext.triage.modules import Triage, run

__getattr__ = lazy_submodules(
    __name__,
    actions=("Action",),
    contents=("Content", "Layer", "Role"),
    examined=("Examined", "Settings", "Stall", "Unexamined", "examine"),
    modules=("Triage", "run"),
)

__all__ = [
    "Action",
    "Content",
    "Examined",
    "Layer",
    "Role",
    "Settings",
    "Stall",
    "Triage",
    "Unexamined",
    "examine",
    "run",
]
