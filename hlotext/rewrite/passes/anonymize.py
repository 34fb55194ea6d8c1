"""A module that says nothing of who wrote it, and of what."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from hlotext.edit.entry_lists import OF_ARGUMENTS, OF_RESULTS
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.configs import FrontendAttributes
from hlotext.ir.values.literal import Literal
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.strip import METADATA, CanonicalNames, StripMetadata

_HEADER = ("origin_recovery_table", "debug_attributes")
_COMPOSITE = {"composite.attributes": "{}", "composite.name": "composite", "composite.version": "1"}
"""Attributes that XLA requires of a composite call and that are meaningless here."""
_CONFIGS = ("infeed_config", "outfeed_config")
MAX_KEPT_ELEMENTS = 16
"""Constants of more elements are data; smaller ones are numbers that the program needs."""


@attrs.frozen
class Anonymize(Pass):
    """Removes everything that identifies a module's origin, so that it can be shared.

    Names become opcodes and numbers; metadata, source files, original values, notes of the front end (but for those that say
    how arguments lie), and the settings of custom calls, infeeds and outfeeds go, as does the metadata inside of shardings.
    Constants of more than 16 elements become zeros, so that weights and tables do not go along. Shapes, shardings, targets of
    custom calls (see `targets`) and the names of mesh axes stay, and so do the notes of XLA's own custom calls.

    >>> import hlotext as hlo
    >>> m = hlo.parse('ENTRY mine { ROOT x = f32[] parameter(0), metadata={op_name="plan"} }')
    >>> Anonymize().run(m).changed, str(m.entry.root)
    (True, 'ROOT parameter.0 = f32[] parameter(0)')
    """

    name: ClassVar[str] = "anonymize"
    summary: ClassVar[str] = "Takes out names, sources, notes and data, for showing a module to others."
    preserves_results: ClassVar[bool] = False

    constants: bool = True
    """Makes large constants zeros."""
    targets: bool = False
    """Names targets of custom calls by number, too; then the module can only be looked at."""
    module_name: str = "module"

    def run(self, module: Module) -> PassResult:
        counts = {
            "metadata": StripMetadata().run(module).statistics.get("instructions", 0),
            "notes": sum(map(_without_notes, tuple(module.instructions()))) + _without_header_notes(module),
            "constants": sum(map(_zeroed, tuple(module.instructions()))) if self.constants else 0,
            "targets": _numbered_targets(module) if self.targets else 0,
            "names": CanonicalNames().run(module).statistics.get("names", 0),
        }
        if module.name != self.module_name:
            module.name = self.module_name
            counts["names"] += 1
        return PassResult.of(counts)


def _without_notes(i: Instruction) -> int:
    """Takes out notes and configurations that only their author reads; whether there were any."""
    gone = {*METADATA, "frontend_attributes"}
    if str(i.attributes.get("custom_call_target", "")).startswith("xla.sdy."):
        gone.discard("frontend_attributes")  # XLA insists on the notes of its own calls
    if i.opcode == "custom-call":
        gone.add("backend_config")
    kept = {k: v for k, v in i.attributes.items() if k not in gone and k not in _CONFIGS}
    if i.attributes.get("is_composite"):
        kept["frontend_attributes"] = FrontendAttributes(_COMPOSITE)
    sharding = i.sharding
    if sharding is not None:
        kept["sharding"] = sharding.without_metadata()
    if kept == dict(i.attributes):
        return 0
    i.change(attributes=kept)
    return 1


def _without_header_notes(module: Module) -> int:
    count = 0
    for name in _HEADER:
        if name in module.attributes:
            del module.attributes[name]
            count += 1
    notes = module.attributes.get("frontend_attributes")
    if isinstance(notes, FrontendAttributes):
        kept = {k: v for k, v in notes.items() if k in OF_ARGUMENTS or k in OF_RESULTS}
        if len(kept) == len(notes):
            return count
        if kept:
            module.attributes["frontend_attributes"] = FrontendAttributes(kept)
        else:
            del module.attributes["frontend_attributes"]
        count += 1
    return count


def _zeroed(i: Instruction) -> int:
    """Makes a large constant zeros; whether it was one."""
    literal = i.literal
    array = literal.known_array if literal is not None else None
    if literal is None or array is None or array.size <= MAX_KEPT_ELEMENTS or not array.any():
        return 0
    i.literal = Literal.from_array(np.zeros_like(array), literal.shape)
    return 1


def _numbered_targets(module: Module) -> int:
    """Names targets by number, in the order of the text; how many calls changed."""
    numbers: dict[str, int] = {}
    count = 0
    for i in tuple(module.instructions()):
        target = i.attributes.get("custom_call_target")
        if isinstance(target, str):
            name = f"target.{numbers.setdefault(target, len(numbers))}"
            if name != target:
                i.attributes["custom_call_target"] = name
                count += 1
    return count
