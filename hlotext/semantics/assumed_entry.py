"""Modules without ENTRY: which computation is taken for it, and whether the header contradicts.

A text that ends before its ENTRY reads as a whole module, whose last helper then answers for the program. It loads little,
since every command asks for it.
"""

from __future__ import annotations

from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import ComputationLayout
from hlotext.semantics.message_text import plural


def assumed_entry(module: Module, *, is_checked: bool = False) -> str:
    """Returns a note on a module without ENTRY, whose last computation is assumed to be the entry; empty if not needed.

    XLA assumes the same. But in truncated text the entry is missing, which the header then contradicts. Of a module with
    one computation only, this is said where the text itself `is_checked`.
    """
    if missing := missing_entry(module):
        return f"warning: {missing}; results do not cover the whole program"
    is_alone = len(module._computations) == 1
    if not _is_assumed(module) or (is_alone and not (is_checked and module._header_start >= 0)):
        return ""
    name = module.entry.name
    said = f"note: no ENTRY; assuming the {'only' if is_alone else 'last'} computation, {name}"
    return f"{said}, as XLA does: write `ENTRY {name}`" if is_checked else said


def missing_entry(module: Module) -> str:
    """Returns the reason why the computation assumed to be the entry cannot be it; empty if it can.

    Totals of such a module are not those of the program.
    """
    if not _is_assumed(module):
        return ""
    name, taken = module.entry.name, len(module.entry.parameters)
    stated = module.attributes.get("entry_computation_layout")
    if not isinstance(stated, ComputationLayout) or len(stated.parameter_shapes) == taken:
        return ""
    count = plural(len(stated.parameter_shapes), "parameter")
    return (
        f"no ENTRY; assuming the last computation, {name}, but the header's entry has {count} and {name} {taken}; "
        "the text is probably truncated before ENTRY"
    )


def _is_assumed(module: Module) -> bool:
    return module._entry is None and bool(module._computations) and len(module.entry) > 0
