"""Record of an edit: nodes inserted, modified and removed, and its undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction

Node: TypeAlias = "Instruction | Computation"


class EditRecord(Protocol):
    """Changes made so far inside `with module.transaction() as record:`.

    Each node is in one of the three; one that was inserted and removed again is in none. Nodes are in the order in which they
    were first affected.
    """

    @property
    def inserted(self) -> tuple[Node, ...]:
        """New nodes of the module."""

    @property
    def modified(self) -> tuple[Node, ...]:
        """Nodes whose line or signature, place, or operands changed."""

    @property
    def removed(self) -> tuple[Node, ...]:
        """Nodes that are no longer in the module."""

    @property
    def changed_header(self) -> bool:
        """True if the module's name, header attributes or stack frames changed."""

    def undo(self) -> None:
        """Undoes all of it. Raises EditError after any later edit."""


class Listener(Protocol):
    """Is notified of each edit of a module right after it; of an undone one by its inverse."""

    def inserted(self, node: Node) -> None: ...

    def modified(self, node: Node) -> None: ...

    def removed(self, node: Node) -> None: ...
