"""Annotations that a new instruction takes over from the one that it is made after, or whose place it takes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from hlotext import layout as layouts
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.configs import FrontendAttributes
from hlotext.ir.values.shape import Shape

NOT_COPIED = traits.PROVENANCE | traits.CONTROL | traits.SHARDING | {"frontend_attributes"}
"""Attributes that a clone has from `derived_attributes`, or not at all."""


def derived_attributes(
    like: Instruction, opcode: str, shape: Shape, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns `given` with the annotations that an instruction derived from `like` gets (`SetupDerivedInstruction`)."""
    found = dict(given)
    if like.shape is None or not layouts.compatible_kind(like.shape, shape):
        found.pop("sharding", None)
    elif like.sharding is not None:
        found["sharding"] = like.sharding
    for name in ("metadata", "result_accuracy"):
        value = like.attributes.get(name)
        if value is not None and (name == "metadata" or name in found or opcode == like.opcode):
            found[name] = value
    notes = like.attributes.get("frontend_attributes")
    if notes and "_xla_compute_type" in notes:
        notes = FrontendAttributes({k: v for k, v in notes.items() if k != "_xla_compute_type"})
    if notes:
        found["frontend_attributes"] = notes
    else:
        found.pop("frontend_attributes", None)
    if like.opcode == opcode and like.backend_config is not None and "backend_config" not in found:
        found["backend_config"] = like.backend_config
    return found


def copy_annotations(
    new: Instruction, old: Instruction, *, preserve_frontend: bool = True, preserve_sharding: bool = True
) -> None:
    """Copies annotations from a replaced instruction to its replacement, where this has none of its own."""
    found: dict[str, Any] = {}
    mine, theirs = new.metadata, old.metadata
    if theirs is not None and theirs.op_name and not (mine is not None and mine.op_name):
        found["metadata"] = theirs
    if preserve_frontend and old.frontend_attributes and not new.frontend_attributes:
        found["frontend_attributes"] = old.attributes["frontend_attributes"]
    if preserve_sharding and new.sharding is None and old.sharding is not None:
        found["sharding"] = old.sharding
    if found:
        with contextlib.suppress(EditError):
            new.change(attributes={**new.attributes, **found}, typed=False)
