"""Header attributes that a smaller module can do without."""

from __future__ import annotations

from hlotext.ir.nodes.module import Module
from hlotext.rewrite.extraction import drop_header_attributes


def free_result(module: Module) -> None:
    """Lets the entry's result change: nothing in the header speaks of it any more."""
    drop_header_attributes(
        module, lambda name: name in ("input_output_alias", "buffer_donor") or name.startswith("allow_spmd")
    )


def removable(module: Module) -> list[str]:
    """The attributes of the header, and `frontend_attributes KEY` for each of its notes."""
    notes = [f"frontend_attributes {key}" for key in module.attributes.get("frontend_attributes", ())]
    return [*module.attributes, *notes]


def remove(module: Module, name: str) -> None:
    """Takes one of these out of the header."""
    name, _, key = name.partition(" ")
    value = module.attributes.get(name)
    if value is None:
        return
    kept = {k: v for k, v in value.items() if k != key} if key else {}
    if kept:
        module.attributes[name] = type(value)(kept)
    else:
        del module.attributes[name]
