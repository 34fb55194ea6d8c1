"""Hooks for packages above: to read text, and to verify a whole module. They are set when hlotext is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.values.literal import Literal
    from hlotext.ir.values.shape import Shape


class Reader(Protocol):
    """Reader of texts."""

    def value(self, rule: str, text: str) -> Any:
        """The value of a text by a rule of the grammar. Raises ValueError."""

    def literal(self, text: str, shape: Shape) -> Literal:
        """The value of a constant of that shape. Raises ValueError."""

    def is_name(self, text: str) -> bool:
        """True if a text without `%` is read as the name of a node, wherever one may occur."""

    def attribute(self, text: str, *, is_header: bool) -> tuple[str, Any]:
        """Name and value of `name=value`. Raises ValueError."""


class Verifier(Protocol):
    """Verifier of a whole module."""

    def __call__(self, module: Module) -> Iterable[tuple[str, str]]:
        """The code of each error, and a sentence."""


_readers: list[Reader] = []
_verifiers: list[Verifier] = []


def install_reader(reader: Reader) -> None:
    """Makes this what edits read texts with; `hlotext.syntax` does so."""
    _readers[:] = [reader]


def install_verifier(verifier: Verifier) -> None:
    """Makes this what judges modules; `hlotext` does so."""
    _verifiers[:] = [verifier]


def reader() -> Reader:
    """The installed reader. Raises RuntimeError before one is installed."""
    if not _readers:
        raise RuntimeError("nodes cannot be edited: import hlotext (or hlotext.syntax) first")
    return _readers[0]


def verifier() -> Verifier:
    """The installed verifier; one that finds nothing before one is installed."""
    return _verifiers[0] if _verifiers else lambda module: ()
