"""Identity of operations across passes: pairs the operations of consecutive steps, and attributes new ones."""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.dumps.identity.answers import Birth, Event, Identity, Link
    from hlotext.dumps.identity.graph import paired
    from hlotext.dumps.identity.owners import Owner, owner
    from hlotext.dumps.identity.states import State

__getattr__ = lazy_submodules(
    __name__,
    answers=("Birth", "Event", "Identity", "Link"),
    graph=("paired",),
    owners=("Owner", "owner"),
    states=("State",),
)

__all__ = ["Birth", "Event", "Identity", "Link", "Owner", "State", "owner", "paired"]
