"""A language server for reading HLO text in editors: `hlotext lsp`, with the extra `lsp`."""

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.lsp.server import serve

__all__ = ["serve"]

__getattr__ = door(__name__, server=("serve",))
