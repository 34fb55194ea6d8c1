"""A client for the tests of the language server: pygls' own, over stdio, with the server in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

START = ("-m", "hlotext", "lsp")
"""What Python runs as the server."""


class Client(LanguageClient):  # type: ignore[misc]
    """Collects what the server sends unasked."""

    def __init__(self) -> None:
        super().__init__("hlotext-tests", "1")
        self.published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.messages: list[str] = []
        self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(
            lambda params: self.published.put_nowait(params)
        )
        self.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self.messages.append(params.message))

    def open(self, uri: str, text: str, version: int = 1) -> None:
        """Sends a document."""
        item = types.TextDocumentItem(uri, "hlo", version, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def edit(self, uri: str, version: int, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Sends one replacement."""
        where = types.Range(types.Position(*start), types.Position(*end))
        self.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version=version, uri=uri),
                [types.TextDocumentContentChangePartial(range=where, text=text)],
            )
        )

    async def diagnostics(self, version: int, codes: str = "") -> list[types.Diagnostic]:
        """The next diagnostics of a version; with `codes` the next that have one beginning so."""
        while True:
            found = await asyncio.wait_for(self.published.get(), 120)
            if found.version == version and (
                not codes or any(str(one.code).startswith(codes) for one in found.diagnostics)
            ):
                return list(found.diagnostics)

    @property
    def process_id(self) -> int:
        """The server's process."""
        return int(self._server.pid)


@asynccontextmanager
async def connected(
    folder: Path | None = None,
    encodings: tuple[str, ...] = (),
    markdown: bool = True,
    start: tuple[str, ...] = START,
) -> AsyncIterator[Client]:
    """A client of a server that has been initialized."""
    client = Client()
    await client.start_io(sys.executable, *start)
    formats = [types.MarkupKind.Markdown] if markdown else [types.MarkupKind.PlainText]
    capabilities = types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=list(encodings)) if encodings else None,
        text_document=types.TextDocumentClientCapabilities(
            hover=types.HoverClientCapabilities(content_format=formats)
        ),
    )
    root = folder.as_uri() if folder is not None else None
    await client.initialize_async(types.InitializeParams(capabilities=capabilities, root_uri=root))
    client.initialized(types.InitializedParams())
    try:
        yield client
    finally:
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()


def at(uri: str, line: int, column: int) -> dict[str, Any]:
    """Arguments of a request about a position."""
    return {
        "text_document": types.TextDocumentIdentifier(uri),
        "position": types.Position(line, column),
    }
