"""Header attributes that a smaller module can do without."""

from __future__ import annotations

from hlotext.ir.nodes.module import Module
from hlotext.rewrite.extraction import drop_header_attributes


def free_result(module: Module) -> None:
    """Removes the header attributes that constrain the entry's result, so that it can change."""
    drop_header_attributes(
        module, lambda name: name in ("input_output_alias", "buffer_donor") or name.startswith("allow_spmd")
    )


def removable(module: Module) -> list[str]:
    """Returns the names of header attributes, with `frontend_attributes KEY` for each frontend attribute."""
    notes = [f"frontend_attributes {key}" for key in module.attributes.get("frontend_attributes", ())]
    return [*module.attributes, *notes]


def remove(module: Module, name: str) -> None:
    """Removes an attribute, named as by `removable`, from the header."""
    name, _, key = name.partition(" ")
    value = module.attributes.get(name)
    if value is None:
        return
    kept = {k: v for k, v in value.items() if k != key} if key else {}
    if kept:
        module.attributes[name] = type(value)(kept)
    else:
        del module.attributes[name]
