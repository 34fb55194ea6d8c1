"""Model Context Protocol server over stdio: `hlotext mcp`, with the extra `mcp`."""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.mcp.server import make_server, serve

__all__ = ["make_server", "serve"]

__getattr__ = lazy_submodules(__name__, server=("make_server", "serve"))
