"""Many modules ranked by time, memory and traffic, and the repairs that are worth most.

>>> from hlotext import triage
>>> found = triage.run(["dumps/"])  # doctest: +SKIP
>>> found.modules[0].name, found.actions[0].message  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.triage.actions import Action
    from hlotext.triage.contents import Content, Layer, Role
    from hlotext.triage.examined import Examined, Settings, Unexamined, examine
    from hlotext.triage.modules import Triage, run

__getattr__ = door(
    __name__,
    actions=("Action",),
    contents=("Content", "Layer", "Role"),
    examined=("Examined", "Settings", "Unexamined", "examine"),
    modules=("Triage", "run"),
)

__all__ = [
    "Action",
    "Content",
    "Examined",
    "Layer",
    "Role",
    "Settings",
    "Triage",
    "Unexamined",
    "examine",
    "run",
]
