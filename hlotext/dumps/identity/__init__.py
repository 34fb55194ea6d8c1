"""Identity of operations across passes: pairs operations of consecutive steps, and attributes new operations to passes."""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.dumps.identity.answers import Birth, Event, Identity, Link
    from hlotext.dumps.identity.graph import paired, state_of
    from hlotext.dumps.identity.owners import Owner, owner
    from hlotext.dumps.identity.states import State, usual_form

__getattr__ = lazy_submodules(
    __name__,
    answers=("Birth", "Event", "Identity", "Link"),
    graph=("paired", "state_of"),
    owners=("Owner", "owner"),
    states=("State", "usual_form"),
)

__all__ = [
    "Birth",
    "Event",
    "Identity",
    "Link",
    "Owner",
    "State",
    "owner",
    "paired",
    "state_of",
    "usual_form",
]
