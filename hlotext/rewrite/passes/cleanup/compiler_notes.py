"""The compiler's own notes in a module that is shown to others: kept where their values are its words, axes by number."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import attrs

from hlotext.ir.nodes.module import Module
from hlotext.ir.values.configs import FrontendAttributes
from hlotext.ir.values.mesh import AxisRef, MeshAxis

SHARDY = "xla.sdy."
_WITH_AXES = ("frontend_attributes", "replica_groups", "sharding")
_PLAIN = re.compile(r"-?[0-9]{1,10}|true|false|host|device|arg|default|xla_late|xla_early")
_XLA = re.compile(r"_xla_\w+|_scheduling_group_id|inlineable|xla_\w+")
_QUOTED = re.compile(r'(\\?")([^"\\]*)\1')
_MESH = re.compile(r"@(\w+)|(?<![\w.])(\w+)(?= = #sdy\.mesh)")
_OWN_MESH = re.compile(r"(?:empty|maximal)_mesh\w*")

T = TypeVar("T")


def is_compilers(key: str, value: str) -> bool:
    """Returns True for a frontend attribute of Shardy, or one that XLA interprets and whose value discloses nothing."""
    if key.startswith(SHARDY):
        return True
    return _XLA.fullmatch(key) is not None and _PLAIN.fullmatch(value) is not None


class AxisNames:
    """Renames mesh axes and meshes to numbers, in order of occurrence."""

    def __init__(self) -> None:
        self._axes: dict[str, str] = {}
        self._meshes: dict[str, str] = {}

    def number(self, module: Module) -> int:
        """Renames the axes in shardings, replica groups and Shardy's attributes. Returns the number of changed
        instructions.
        """
        notes = module.attributes.get("frontend_attributes")
        if isinstance(notes, FrontendAttributes) and (changed := self._notes(notes)) != notes:
            module.attributes["frontend_attributes"] = changed
        count = 0
        for instruction in tuple(module.instructions()):
            old = dict(instruction.attributes)
            new = {key: self._value(old[key]) if key in _WITH_AXES else old[key] for key in old}
            if new != old:
                instruction.change(attributes=new)
                count += 1
        return count

    def _value(self, value: Any) -> Any:
        if isinstance(value, FrontendAttributes):
            return self._notes(value)
        if isinstance(value, MeshAxis | AxisRef):
            return attrs.evolve(value, name=self._axis(value.name))
        if isinstance(value, tuple):
            return tuple(map(self._value, value))
        return self._parts(value) if attrs.has(type(value)) else value

    def _parts(self, value: T) -> T:
        """A value of several parts, each with its axes renamed."""
        found = {}
        for part in attrs.fields(type(value)):  # type: ignore[arg-type]
            old = getattr(value, part.name)
            new = self._value(old)
            if new is not old and new != old:
                found[part.alias or part.name] = new
        return attrs.evolve(value, **found) if found else value  # type: ignore[misc]

    def _notes(self, notes: FrontendAttributes) -> FrontendAttributes:
        found = {key: self._text(value) if key.startswith(SHARDY) else value for key, value in notes.items()}
        return FrontendAttributes(found) if found != dict(notes) else notes

    def _text(self, text: str) -> str:
        """A note of Shardy's, in which only axes are quoted."""
        text = _QUOTED.sub(lambda match: f"{match[1]}{self._axis(match[2])}{match[1]}", text)
        return _MESH.sub(
            lambda match: match[0].replace(match[1] or match[2], self._mesh(match[1] or match[2])), text
        )

    def _axis(self, name: str) -> str:
        return self._axes.setdefault(name, f"axis_{len(self._axes)}")

    def _mesh(self, name: str) -> str:
        if _OWN_MESH.fullmatch(name):
            return name
        return self._meshes.setdefault(name, f"mesh_{len(self._meshes)}" if self._meshes else "mesh")


def says_nothing(module: Module) -> bool:
    """Returns True if the meshes in Shardy's attributes have no axes, as for a single device."""
    notes = module.attributes.get("frontend_attributes")
    meshes = notes.get(f"{SHARDY}meshes", "") if isinstance(notes, FrontendAttributes) else ""
    return '"' not in meshes and "device_ids" not in meshes
