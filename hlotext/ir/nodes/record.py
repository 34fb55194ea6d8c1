"""Record of an edit: nodes inserted, modified and removed, and its undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction

Node: TypeAlias = "Instruction | Computation"


class EditRecord(Protocol):
    """Changes made so far in a transaction, `with module.transaction() as record:`.

    Each node is in one of `inserted`, `modified` and `removed`; a node that was inserted and removed again is in none.
    Nodes are in the order in which they were first affected.
    """

    @property
    def inserted(self) -> tuple[Node, ...]:
        """Nodes added to the module."""

    @property
    def modified(self) -> tuple[Node, ...]:
        """Nodes whose line or signature, position, or operands changed."""

    @property
    def removed(self) -> tuple[Node, ...]:
        """Nodes removed from the module."""

    @property
    def changed_header(self) -> bool:
        """True if the module's name, header attributes or stack frames changed."""

    def undo(self) -> None:
        """Undoes all changes of the transaction. Raises EditError if the module was edited since."""


class Listener(Protocol):
    """Interface of listeners that are notified after each edit of a module, and of the inverse edit when one is undone."""

    def inserted(self, node: Node) -> None: ...

    def modified(self, node: Node) -> None: ...

    def removed(self, node: Node) -> None: ...
