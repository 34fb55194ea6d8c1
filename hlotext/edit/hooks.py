"""Hooks for packages above: to read text, and to verify a whole module. They are set when hlotext is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.values.literal import Literal
    from hlotext.ir.values.shape import Shape


class Reader(Protocol):
    """Interface of the parser that edits use."""

    def value(self, rule: str, text: str) -> Any:
        """Parses a text by a rule of the grammar. Raises ValueError if it is invalid."""

    def literal(self, text: str, shape: Shape) -> Literal:
        """Parses the value of a constant of a shape. Raises ValueError if it is invalid."""

    def is_name(self, text: str) -> bool:
        """Returns True if a text without `%` is parsed as the name of a node wherever one may occur."""

    def attribute(self, text: str, *, is_header: bool) -> tuple[str, Any]:
        """Parses `name=value`. Raises ValueError if it is invalid."""


class Verifier(Protocol):
    """Interface of the verifier of whole modules."""

    def __call__(self, module: Module) -> Iterable[tuple[str, str]]:
        """The code of each error, and a sentence."""


_readers: list[Reader] = []
_verifiers: list[Verifier] = []


def install_reader(reader: Reader) -> None:
    """Installs the parser that edits use. Called when `hlotext.syntax` is imported."""
    _readers[:] = [reader]


def install_verifier(verifier: Verifier) -> None:
    """Installs the verifier that edits use. Called when `hlotext` is imported."""
    _verifiers[:] = [verifier]


def reader() -> Reader:
    """Returns the installed parser. Raises RuntimeError if none is installed."""
    if not _readers:
        raise RuntimeError("nodes cannot be edited: import hlotext (or hlotext.syntax) first")
    return _readers[0]


def verifier() -> Verifier:
    """Returns the installed verifier, or one that reports nothing if none is installed."""
    return _verifiers[0] if _verifiers else lambda module: ()
