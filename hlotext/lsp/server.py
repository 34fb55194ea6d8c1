"""The server: dispatches each request to a file of this package."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

import hlotext as hlo
from hlotext.findings import escape
from hlotext.ir.errors import EditError
from hlotext.lsp import dump_folder, navigation
from hlotext.lsp.diagnostics import diagnostics
from hlotext.lsp.documents import Document
from hlotext.lsp.hints import inlay_hints
from hlotext.lsp.hover import hover
from hlotext.lsp.open_file import OpenFile
from hlotext.lsp.protocol import Protocol
from hlotext.lsp.reading import Target, View
from hlotext.rewrite.extraction import extract

WHY = "hlotext.whyIsItHere"
"""Command: the pass that added an instruction, as text. Arguments: address of the document, name."""
PART = "hlotext.openPart"
"""Command: the module that `hlotext extract` makes around an instruction, as text. Arguments: address, name, depth."""
_DEPTH = 3
_FIRST = "HloModule m, entry_computation_layout={()->f32[]}\n\nENTRY %e () -> f32[] {\n  ROOT %c = f32[] constant(0)\n}\n"
_MALLOC = ((-3, 1 << 20), (-8, 1))
"""glibc's M_MMAP_THRESHOLD and M_ARENA_MAX: texts get pages of their own, and all threads one heap. By default the threshold
rises to the size of texts that were freed, and later texts fragment the heaps."""
_SWITCH_SECONDS = 0.0005
"""Seconds for which one thread keeps the interpreter: a hover crosses threads several times while a text is read."""


class Server(LanguageServer):  # type: ignore[misc]
    """The language server. Documents are read and checked in two threads."""

    def __init__(self) -> None:
        super().__init__("hlotext", hlo.__version__, protocol_cls=Protocol)
        self.files: dict[str, OpenFile] = {}
        self._readers = ThreadPoolExecutor(1, "read")
        self._checkers = ThreadPoolExecutor(1, "check")
        self._dumps = ThreadPoolExecutor(1, "dump")
        # The reader's tables are loaded with the first text; let that be ours and not the user's.
        self._readers.submit(hlo.parse, _FIRST)
        for method, handler, options in _FEATURES:
            self.feature(method, options)(handler)
        self.command(WHY)(why_is_it_here)
        self.command(PART)(open_part)

    def open_file(self, uri: str) -> None:
        """Starts reading a document and keeps its diagnostics up to date."""
        self.close_file(uri)
        document: Document = self.workspace.get_text_document(uri)
        self.files[uri] = OpenFile(document, self._readers, self._checkers, self._publish)

    def close_file(self, uri: str) -> None:
        """Stops work on a document and removes its diagnostics."""
        file = self.files.pop(uri, None)
        if file is not None:
            file.close()
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def _publish(self, file: OpenFile) -> None:
        view = file.view
        if view is None or view.is_lost:
            return
        found = [finding for stage in file.findings.values() for finding in stage]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                file.document.uri, diagnostics(view, found, file.left_out), version=view.reading.version
            )
        )

    async def view(self, uri: str) -> View | None:
        """Returns the last reading of a document; None if it is not open."""
        file = self.files.get(uri)
        if file is None:
            return None
        view = await file.read_view()
        return None if view is None or view.is_lost else view

    async def in_dump_folder(self, work: Callable[[], Any]) -> Any:
        """Runs work that reads files of a dump folder in another thread, and returns its result."""
        return await asyncio.get_running_loop().run_in_executor(self._dumps, work)

    @property
    def shows_markdown(self) -> bool:
        """True if the client renders Markdown in hovers."""
        text = self.client_capabilities.text_document
        formats = text.hover.content_format if text is not None and text.hover is not None else None
        return types.MarkupKind.Markdown in (formats or ())


# ---- documents


def did_open(ls: Server, params: Any) -> None:
    ls.open_file(params.text_document.uri)


def did_change(ls: Server, params: Any) -> None:
    if (file := ls.files.get(params.text_document.uri)) is not None:
        file.changed()


def did_close(ls: Server, params: Any) -> None:
    ls.close_file(params.text_document.uri)


# ---- questions about a position


def _about_document(work: Callable[[View, Any], Any], nothing: Any = ()) -> Callable[..., Any]:
    """A handler that answers from the last reading of the document."""

    async def handler(ls: Server, params: Any) -> Any:
        view = await ls.view(params.text_document.uri)
        return nothing if view is None else work(view, params)

    return handler


def _about_word(work: Callable[[View, Target, Any], Any], nothing: Any = ()) -> Callable[..., Any]:
    """A handler that answers a question about the word at a position."""

    def answer(view: View, params: Any) -> Any:
        target = view.target(params.position)
        return nothing if target is None else work(view, target, params)

    return _about_document(answer, nothing)


async def on_hover(ls: Server, params: Any) -> types.Hover | None:
    view = await ls.view(params.text_document.uri)
    return hover(view, params.position, ls.shows_markdown) if view is not None else None


async def on_implementation(ls: Server, params: Any) -> list[types.Location]:
    """Returns the locations of the instruction in each step of its dump folder."""
    found = await _instruction_at(ls, params.text_document.uri, params.position)
    if found is None:
        return []
    view, instruction = found
    path, name = view.document.path, instruction.name

    def steps() -> list[types.Location]:
        compilation = dump_folder.compilation_of(path)
        return [] if compilation is None else list(dump_folder.steps_of(compilation, name))

    result: list[types.Location] = await ls.in_dump_folder(steps)
    return result


async def _instruction_at(ls: Server, uri: str, position: Any) -> tuple[View, hlo.Instruction] | None:
    view = await ls.view(uri)
    if view is None:
        return None
    target = view.target(position)
    node = target.node if target is not None else None
    if not isinstance(node, hlo.Instruction):
        node = view.reading.instruction_at(view.before(view.document.offset(position)))
    return (view, node) if node is not None else None


def _about_computation(work: Callable[[View, hlo.Computation], Any]) -> Callable[..., Any]:
    """A handler that answers a question about a computation in the hierarchy of calls."""

    async def handler(ls: Server, params: Any) -> Any:
        name, view = str(params.item.data or params.item.name), await ls.view(params.item.uri)
        for module in view.reading.modules if view is not None else ():
            if view is not None and (found := view.reading.computation_named(name, module)) is not None:
                return work(view, found)
        return []

    return handler


# ---- questions about documents


async def on_workspace_symbols(ls: Server, params: Any) -> list[types.WorkspaceSymbol]:
    found: list[types.WorkspaceSymbol] = []
    for uri in list(ls.files):
        view = await ls.view(uri)
        for symbol in navigation.workspace_symbols(view, params.query) if view is not None else ():
            found.append(symbol)
            if len(found) >= navigation.MOST_SYMBOLS:
                return found
    return found


# ---- actions


async def on_actions(ls: Server, params: Any) -> list[types.CodeAction]:
    """Actions for the instruction of the line: why it is here, and the part around it."""
    found = await _instruction_at(ls, params.text_document.uri, params.range.start)
    if found is None:
        return []
    view, instruction = found
    uri, path, name = view.document.uri, view.document.path, instruction.name
    actions = []
    if await ls.in_dump_folder(lambda: dump_folder.compilation_of(path)) is not None:
        actions.append(_action(f"Why is {escape.line(name)} here?", WHY, [uri, name]))
    actions.append(_action(f"Open the part around {escape.line(name)}", PART, [uri, name, _DEPTH]))
    return actions


def _action(title: str, command: str, arguments: list[Any]) -> types.CodeAction:
    return types.CodeAction(
        title, kind=types.CodeActionKind.Empty, command=types.Command(title, command, arguments=arguments)
    )


async def why_is_it_here(ls: Server, uri: str, name: str) -> str:
    """Returns the pass that added an instruction and its cause as text, which is also shown as a message to clients
    that show no results.
    """
    path = to_fs_path(uri)

    def answer() -> str:
        compilation = dump_folder.compilation_of(path)
        return (
            f"{path} is not in a dump folder" if compilation is None else dump_folder.why(compilation, name)
        )

    text = escape.lines(await ls.in_dump_folder(answer))
    ls.window_show_message(types.ShowMessageParams(types.MessageType.Info, "\n".join(text.splitlines()[:4])))
    return text


async def open_part(ls: Server, uri: str, name: str, depth: int = _DEPTH) -> str:
    """Returns the module around an instruction as text for a new buffer; nothing is written."""
    view = await ls.view(uri)
    instruction = view.reading.named(name) if view is not None else None
    if instruction is None:
        return ""
    try:
        text = await ls.in_dump_folder(lambda: str(extract(instruction, max(1, depth))))
    except EditError as error:
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Warning, escape.line(str(error))))
        return ""
    file = to_fs_path(uri) or uri
    said = f"{len(text):,} characters around {name}; also: hlotext extract {file} -i {name} --depth {depth}"
    ls.window_show_message(types.ShowMessageParams(types.MessageType.Info, escape.line(said)))
    return str(text)


_FEATURES: tuple[tuple[str, Callable[..., Any], Any], ...] = (
    (types.TEXT_DOCUMENT_DID_OPEN, did_open, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, did_change, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, did_close, None),
    (types.TEXT_DOCUMENT_HOVER, on_hover, None),
    (
        types.TEXT_DOCUMENT_DEFINITION,
        _about_word(lambda view, target, _: navigation.definition(view, target), None),
        None,
    ),
    (types.TEXT_DOCUMENT_REFERENCES, _about_word(navigation.references), None),
    (types.TEXT_DOCUMENT_IMPLEMENTATION, on_implementation, None),
    (types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY, _about_document(navigation.prepared_calls), None),
    (types.CALL_HIERARCHY_INCOMING_CALLS, _about_computation(navigation.incoming), None),
    (types.CALL_HIERARCHY_OUTGOING_CALLS, _about_computation(navigation.outgoing), None),
    (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, _about_document(navigation.document_symbols), None),
    (types.WORKSPACE_SYMBOL, on_workspace_symbols, None),
    (types.TEXT_DOCUMENT_FOLDING_RANGE, _about_document(navigation.folding_ranges), None),
    (types.TEXT_DOCUMENT_INLAY_HINT, _about_document(inlay_hints), None),
    (
        types.TEXT_DOCUMENT_CODE_ACTION,
        on_actions,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.Empty]),
    ),
)


def serve() -> None:
    """Serves one client over stdin and stdout until it sends `exit`. Nothing else is written to stdout."""
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR)
    sys.setswitchinterval(_SWITCH_SECONDS)
    with contextlib.suppress(AttributeError, OSError, TypeError):  # other C libraries
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in _MALLOC:
            mallopt(option, value)
    # What a library prints must not become a part of the protocol, also if it writes to the descriptor.
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)
        Server().start_io(sys.stdin.buffer, output)
