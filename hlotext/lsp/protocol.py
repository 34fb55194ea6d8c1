"""The protocol's side of the server: documents of our own, and an answer to every message, also to one that is not valid."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification
from pygls.workspace import Workspace

from hlotext.lsp.documents import Document


class Documents(Workspace):  # type: ignore[misc]
    """The open documents by URI."""

    def put_text_document(self, text_document: Any, notebook_uri: str | None = None) -> None:
        encoding = str(getattr(self.position_encoding, "value", self.position_encoding))
        self._text_documents[text_document.uri] = Document(
            text_document.uri, text_document.text, text_document.version, encoding
        )

    def get_text_document(self, doc_uri: str) -> Any:
        return self._text_documents.get(doc_uri)

    def remove_text_document(self, doc_uri: str) -> None:
        self._text_documents.pop(doc_uri, None)

    def update_text_document(self, text_doc: Any, change: Any) -> None:
        if (document := self._text_documents.get(text_doc.uri)) is not None:
            document.apply([change], text_doc.version)


class Protocol(LanguageServerProtocol):  # type: ignore[misc]
    """The protocol of pygls with hlotext's documents. Every request is answered."""

    @lsp_method(types.INITIALIZE)  # type: ignore[untyped-decorator]
    def lsp_initialize(self, params: types.InitializeParams) -> Any:
        # pygls names its workspace class in this method, so it is exchanged after the method has run.
        result = yield from super().lsp_initialize(params)
        own = Documents(
            self.workspace._root_uri,
            None,
            list(self.workspace.folders.values()),
            self.workspace.position_encoding,
        )
        self._workspace = own
        return result

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Returns a message as an object. An invalid request is answered with an error.

        If a client's capabilities are invalid, it is served as one without capabilities.
        """
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if data.get("method") == types.INITIALIZE and (params := data.get("params")):
                process = params.get("processId")
                folders = params.get("workspaceFolders")
                plain = {
                    "processId": process if isinstance(process, int) else None,
                    "rootUri": params.get("rootUri"),
                    "workspaceFolders": folders if isinstance(folders, list) else None,
                    "capabilities": {"general": _encodings(params)},
                }
                try:
                    return super().structure_message({**data, "params": plain})
                except JsonRpcException:
                    pass
            if "id" in data and "method" in data:
                self._send_response(data["id"], None, error.to_response_error())
            return JsonRPCNotification(method="$/ignored", jsonrpc=self.VERSION, params=None)


def _encodings(params: dict[str, Any]) -> dict[str, Any]:
    """The position encodings of a client whose other capabilities cannot be read."""
    general = params.get("capabilities")
    general = general.get("general") if isinstance(general, dict) else None
    found = general.get("positionEncodings") if isinstance(general, dict) else None
    if isinstance(found, list) and all(isinstance(one, str) for one in found):
        return {"positionEncodings": found}
    return {}
