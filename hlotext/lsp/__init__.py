"""Language server for viewing HLO text in editors: `hlotext lsp`, with the extra `lsp`."""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.lsp.server import serve

__all__ = ["serve"]

__getattr__ = lazy_submodules(__name__, server=("serve",))
