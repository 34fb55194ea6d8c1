"""The language server: positions of its documents, and what editors see through the protocol over stdio."""

from __future__ import annotations

import ast
import asyncio
import gc
import json
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

import hlotext as hlo
from hlotext.lsp import open_file
from hlotext.lsp.diagnostics import page_address
from hlotext.lsp.documents import Document, after, before
from hlotext.lsp.facts import Facts
from hlotext.lsp.hover import hover
from hlotext.lsp.open_file import OpenFile
from hlotext.lsp.reading import Reading, View
from tests.dump_cases import unpacked
from tests.lsp_client import START, at, connected
from tests.support import DATA, ROOT

URI = "file:///work/dumps/module.hlo"
LOOP = """HloModule m, is_scheduled=true

%body (p: (s32[], f32[1000])) -> (s32[], f32[1000]) {
  %p = (s32[], f32[1000]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %x = f32[1000]{0} get-tuple-element(%p), index=1
  %double = f32[1000]{0} add(%x, %x), metadata={op_name="jit(f)/mul" source_file="/home/me/train.py" source_line=7}
  ROOT %t = (s32[], f32[1000]{0}) tuple(%next, %double)
}

%cond (p.1: (s32[], f32[1000])) -> pred[] {
  %p.1 = (s32[], f32[1000]{0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%p.1), index=0
  %n = s32[] constant(12)
  ROOT %less = pred[] compare(%i.1, %n), direction=LT
}

ENTRY %main (a: f32[1000]) -> f32[1000] {
  %a = f32[1000]{0} parameter(0)
  %zero = s32[] constant(0)
  %init = (s32[], f32[1000]{0}) tuple(%zero, %a)
  %loop = (s32[], f32[1000]{0}) while(%init), condition=%cond, body=%body
  ROOT %result = f32[1000]{0} get-tuple-element(%loop), index=1
}
"""
ODD = '\x0c\x0b\u2028\u2029\x85\x1c😀é"\\\n\r\t x'
"""Characters that end lines for Python and not for the protocol, characters of two units, and line ends."""


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs a session with the server."""
    asyncio.run(asyncio.wait_for(work(), 120))


def place(text: str, mark: str, ahead: int = 0) -> tuple[int, int]:
    """Line and column of the first place of a piece of text."""
    before_it = text[: text.index(mark) + ahead]
    return before_it.count("\n"), len(before_it) - before_it.rfind("\n") - 1


# ---- documents


def lines_of(text: str) -> list[str]:
    """Lines as the protocol has them."""
    return re.split(r"\r\n|\r|\n", text)


def units(text: str, encoding: str) -> int:
    """Units of a text."""
    size = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    return len(text.encode({"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(encoding, encoding))) // size


@given(st.text(ODD, max_size=40), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_positions(text: str, encoding: str) -> None:
    """Every offset has the position that the protocol defines, and comes back from it."""
    document = Document(URI, text, 1, encoding)
    lines = lines_of(text)
    assert document.line_bounds(len(lines) - 1)[1] == document.line_bounds(len(lines))[0] == len(text)
    for offset in range(len(text) + 1):
        if text[offset - 1 : offset + 1] == "\r\n":
            continue  # between the two there is no position
        head = lines_of(text[:offset])
        found = document.position(offset)
        assert (found.line, found.character) == (len(head) - 1, units(head[-1], encoding))
        assert document.offset(found) == offset
    for number, line in enumerate(lines):
        start, end = document.line_bounds(number)
        assert text[start:end] == line
        assert document.offset(types.Position(number, 10_000)) == end


@given(
    st.text(ODD, max_size=30),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.text(ODD, max_size=6)), max_size=6),
)
def test_edits(text: str, edits: list[tuple[int, int, str]]) -> None:
    """After any edits the lines are those of the text, and offsets outside the edits are found again both ways."""
    document = Document(URI, text, 1)
    count, original = document.edit_count, text
    kept = [True] * len(text)
    for number, (start, length, new) in enumerate(edits):
        start = min(start, len(document.text))
        end = min(start + length, len(document.text))
        if document.text[start - 1 : start + 1] == "\r\n" or document.text[end - 1 : end + 1] == "\r\n":
            continue
        where = document.range(start, end)
        document.apply([types.TextDocumentContentChangePartial(range=where, text=new)], number)
        fresh = Document(URI, document.text, 1)
        assert list(document._starts) == list(fresh._starts)
    done = document.edits_since(count)
    assert done is not None
    for start, end, _ in done:
        kept[start:end] = [False] * len(kept[start:end])
    if len(done) == 1:
        for offset in (n for n, is_kept in enumerate(kept) if is_kept):
            moved = after(offset, done)
            assert document.text[moved] == original[offset]
            assert before(moved, done) == offset
    document.apply([types.TextDocumentContentChangeWholeDocument(text="y")], 9)
    assert (document.text, document.edits_since(count)) == ("y", None)
    assert document.edits_since(document.edit_count) == []


def test_edit_counts() -> None:
    """Edits that no reading needs are let go, and later ones keep their numbers."""
    document = Document(URI, "abc", 1)
    for number in range(3):
        document.apply([types.TextDocumentContentChangePartial(range=document.range(0, 0), text="x")], number)
    document.forget_edits(2)
    assert document.edit_count == 3
    assert document.edits_since(2) == [(0, 0, 1)]


# ---- one reading


def view_of(text: str, encoding: str = "utf-16") -> View:
    """A document that has been read."""
    document = Document(URI, text, 1, encoding)
    return View(document, Reading(text, "m", document.edit_count, 1))


def hover_text(view: View, line: int, column: int) -> str:
    """A hover as plain text."""
    found = hover(view, types.Position(line, column), is_markdown=False)
    assert found is not None
    assert isinstance(found.contents, types.MarkupContent)
    return str(found.contents.value)


def test_hover_of_an_instruction() -> None:
    """Shape, bytes, layout, loop, cost, memory and the Python line, as the library computes them."""
    view = view_of(LOOP)
    line, column = place(LOOP, "%double =", 2)
    assert "cost and memory: not computed yet" in hover_text(view, line, column)
    view.reading.facts = Facts(view.reading.modules[0])
    text = hover_text(view, line, column)
    for piece in (
        "shape: f32[1000]{0}",
        "bytes: 3.91 KiB",
        "body (loop body, runs 12 times)",
        "cost: 1,000 FLOPs",
        "Python: /home/me/train.py:7",
        "op_name: jit(f)/mul",
        "memory: ",
        "live from step",
        "users: 1: t",
    ):
        assert piece in text


def test_hover_of_a_shape_and_a_computation() -> None:
    """The layout in words; uses of a computation."""
    view = view_of(LOOP)
    assert "32-bit float" in hover_text(view, *place(LOOP, "f32[1000]{0} add(%x"))
    assert "loop body, runs 12 times" in hover_text(view, *place(LOOP, "body=%body", 7))
    assert hover(view, types.Position(1, 0), True) is None


def test_hostile_names_are_quoted() -> None:
    """Markup and terminal codes in names are shown, not obeyed."""
    text = LOOP.replace("jit(f)/mul", "[x](command:evil) <b> `c` \x1b[31m").replace("/home/me", "http://evil")
    view = view_of(text)
    found = hover(view, types.Position(*place(text, "%double =", 2)), is_markdown=True)
    assert found is not None
    assert isinstance(found.contents, types.MarkupContent)
    shown = found.contents.value
    assert "\\[x\\](command:evil) \\<b\\>" in shown
    assert "\x1b" not in shown
    assert "http\\://" in shown


@pytest.mark.parametrize(
    "path", sorted((ROOT / "corpus").glob("*/*after_opt*.txt"))[:20], ids=lambda p: p.stem
)
def test_every_line_of_the_corpus(path: Path) -> None:
    """Every instruction is found at its line, and its name leads to it."""
    text = path.read_text("utf-8")
    view = view_of(text)
    for computation in view.reading.computations:
        for instruction in computation:
            start, end = instruction.bounds
            if start < 0:
                continue
            assert view.reading.instruction_at(start) is instruction
            assert view.reading.instruction_at(end - 1) is instruction
            where = view.name_range(instruction)
            target = view.target(where.start)
            assert target is not None
            assert target.node is instruction
            assert (
                view.document.text[target.word.start : target.word.end].removeprefix("%") == instruction.name
            )


def test_pages_of_codes() -> None:
    """Codes of readers, verifier and linter have a page; others have none."""
    for code in ("X101", "V101", "C101"):
        assert page_address(code).startswith("file://")
    assert page_address("Q999") == ""


# ---- over stdio


def test_session() -> None:
    """Hover, definition, references, calls, symbols, folding, hints and diagnostics of a document that is edited."""

    async def work() -> None:
        async with connected() as client:
            client.open(URI, LOOP)
            assert await client.diagnostics(1) == []
            line, column = place(LOOP, "add(%x, %x)", 5)
            shown = await client.text_document_hover_async(types.HoverParams(**at(URI, line, column)))
            assert "**x**" in shown.contents.value
            found = await client.text_document_definition_async(
                types.DefinitionParams(**at(URI, line, column))
            )
            assert (found.range.start.line, found.range.start.character) == place(LOOP, "%x =", 1)
            context = types.ReferenceContext(include_declaration=True)
            uses = await client.text_document_references_async(
                types.ReferenceParams(context=context, **at(URI, *place(LOOP, "%p =", 1)))
            )
            assert [use.range.start.line for use in uses] == [3, 4, 7]
            items = await client.text_document_prepare_call_hierarchy_async(
                types.CallHierarchyPrepareParams(**at(URI, *place(LOOP, "body=%body", 7)))
            )
            assert [item.name for item in items] == ["body"]
            calls = await client.call_hierarchy_incoming_calls_async(
                types.CallHierarchyIncomingCallsParams(items[0])
            )
            assert [call.from_.name for call in calls] == ["main"]
            out = await client.call_hierarchy_outgoing_calls_async(
                types.CallHierarchyOutgoingCallsParams(calls[0].from_)
            )
            assert [call.to.name for call in out] == ["body", "cond"]
            identifier = types.TextDocumentIdentifier(URI)
            symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(identifier))
            assert [symbol.name for symbol in symbols] == ["body", "cond", "main"]
            for query, names in (("doub", ["double"]), ("compare(_, constant)", ["less"]), ("((", [])):
                listed = await client.workspace_symbol_async(types.WorkspaceSymbolParams(query))
                assert [symbol.name for symbol in listed] == names
            folds = await client.text_document_folding_range_async(types.FoldingRangeParams(identifier))
            assert [(fold.start_line, fold.end_line) for fold in folds] == [(2, 10), (12, 17), (19, 25)]
            whole = types.Range(types.Position(8, 0), types.Position(8, 1))
            hints = await client.text_document_inlay_hint_async(types.InlayHintParams(identifier, whole))
            assert [hint.label.strip() for hint in hints] == [
                "f32[1000]",
                "f32[1000]",
                "3.91 KiB, train.py:7",
            ]
            # An edit above; names are found where they are now, also before the text is read again.
            client.edit(URI, 2, (1, 0), (1, 0), "\n\n")
            found = await client.text_document_definition_async(
                types.DefinitionParams(**at(URI, line + 2, column))
            )
            assert found.range.start.line == place(LOOP, "%x =", 1)[0] + 2
            assert await client.diagnostics(2) == []
            client.edit(URI, 3, (line + 2, column), (line + 2, column + 1), "y")
            [finding] = await client.diagnostics(3)
            assert (finding.code, finding.range.start.line) == ("X102", line + 2)
            assert finding.code_description.href.endswith("pages/X102.md")
            client.edit(URI, 4, (line + 2, column), (line + 2, column + 1), "x")
            assert await client.diagnostics(4) == []
            # A result type that the verifier refuses.
            column = place(LOOP, "f32[1000]{0} add(%x")[1]
            client.edit(URI, 5, (line + 2, column + 4), (line + 2, column + 8), "10")
            found_codes = await client.diagnostics(5, "V")
            assert {one.code for one in found_codes} >= {"V101"}
            client.edit(URI, 6, (0, 0), (0, 9), "HloModul")
            [finding] = await client.diagnostics(6)
            assert "must start with `HloModule`" in finding.message
            assert finding.range.end.line == 0

    run(work)


def test_findings_of_lint() -> None:
    """Lint comes after a silence, with its page."""
    text = (DATA / "lint/C101.txt").read_text("utf-8")
    text = text[text.index("HloModule") :]
    module = re.split(r"\n(?=HloModule|//|#|---)", text)[0]

    async def work() -> None:
        async with connected() as client:
            client.open(URI, module)
            codes = {one.code for one in await client.diagnostics(1, "C")}
            assert codes == {f.code for f in hlo.lint.run(hlo.parse(module))}

    run(work)


def test_edits_of_a_large_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one module is read, answers come from the former one without its facts; it goes when the reading ends."""
    monkeypatch.setattr(open_file, "_LARGE", 0)
    readers, checkers = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    async def work() -> None:
        document = Document(URI, LOOP, 1)
        published: asyncio.Queue[int | None] = asyncio.Queue()
        file = OpenFile(document, readers, checkers, lambda one: published.put_nowait(one.document.version))
        modules = []
        for version in range(2, 8):
            await published.get()
            view = await file.read_view()
            assert view is not None
            assert view.reading.version == version - 1
            modules.append(weakref.ref(view.reading.modules[0]))
            view.reading.facts = Facts(view.reading.modules[0])
            go = threading.Event()
            readers.submit(go.wait, 60)
            change = types.TextDocumentContentChangePartial(range=document.range(0, 0), text="\n")
            document.apply([change], version)
            file.changed()
            during = await asyncio.wait_for(file.read_view(), 60)
            assert during is not None
            assert during.reading is view.reading
            where = types.Position(*place(document.text, "%double =", 2))
            assert hover(during, where, is_markdown=False) is not None
            while view.reading.facts is not None:
                await asyncio.sleep(0.01)
            go.set()
        await published.get()
        file.close()
        del view, during
        await asyncio.get_running_loop().run_in_executor(readers, gc.collect)
        assert [module() for module in modules] == [None] * len(modules)

    run(work)
    readers.shutdown()
    checkers.shutdown()


def test_odd_characters() -> None:
    """Positions are right behind form feeds, U+2028 and astral characters, in UTF-16 and UTF-8."""
    odd = "a\x0cb\u2028c😀d"
    text = LOOP.replace("jit(f)/mul", odd).replace(
        "ROOT %t = (s32[], f32[1000]{0}) tuple(%next, %double)",
        "ROOT %t = (s32[], f32[1000]{0}) tuple(%next, %double), "
        f'metadata={{op_name="{odd}"}}, frontend_attributes={{a="b"}}',
    )

    async def work(encoding: str, factor: Callable[[str], int]) -> None:
        async with connected(encodings=(encoding,)) as client:
            client.open(URI, text)
            assert await client.diagnostics(1) == []
            line, column = place(text, "body=%body", 6)
            found = await client.text_document_definition_async(
                types.DefinitionParams(**at(URI, line, column))
            )
            assert found.range.start.line == place(text, "%body (")[0]
            # An edit behind the odd characters of a line.
            lines = lines_of(text)
            number = next(n for n, one in enumerate(lines) if "ROOT %t" in one)
            column = factor(lines[number][: lines[number].index("frontend")])
            client.edit(
                URI, 2, (number, column), (number, column + len("frontend_attributes")), "frontend_attribute"
            )
            [finding] = await client.diagnostics(2)
            assert (finding.range.start.line, finding.range.start.character) == (number, column)

    run(lambda: work("utf-16", lambda piece: units(piece, "utf-16")))
    run(lambda: work("utf-8", lambda piece: units(piece, "utf-8")))


def test_dump_folder(tmp_path: Path) -> None:
    """Why an instruction is here, its steps, and the part around it."""
    folder = unpacked("cpu.mlp_train", tmp_path)
    [path] = folder.glob("*.cpu_after_optimizations.txt")
    compilation = hlo.dumps.open(folder).compilations[0]
    text, uri = path.read_text("utf-8"), path.resolve().as_uri()
    module = hlo.parse(text)
    instruction = next(i for i in module.entry if i.opcode not in ("parameter", "constant"))
    cause = compilation.why(instruction.name)

    async def work() -> None:
        async with connected(path.parent) as client:
            client.open(uri, text)
            await client.diagnostics(1)
            span = instruction.span
            assert span is not None
            where = at(uri, span.line - 1, span.column)
            steps = await client.text_document_implementation_async(types.ImplementationParams(**where))
            assert 2 <= len(steps) <= len(compilation.steps)
            assert steps[-1].uri == uri
            for step in steps:
                lines = lines_of(Path(step.uri.removeprefix("file://")).read_text("utf-8"))
                assert " = " in lines[step.range.start.line]
            actions = await client.text_document_code_action_async(
                types.CodeActionParams(
                    where["text_document"],
                    types.Range(where["position"], where["position"]),
                    types.CodeActionContext([]),
                )
            )
            # The client's library reads an action that has a command as a bare command, and that as text.
            commands = [ast.literal_eval(action.command) for action in actions]
            assert [one["command"] for one in commands] == ["hlotext.whyIsItHere", "hlotext.openPart"]
            answers = [
                await client.workspace_execute_command_async(
                    types.ExecuteCommandParams(one["command"], one["arguments"])
                )
                for one in commands
            ]
            assert answers[0].startswith(f"{instruction.name}: {cause.cause}")
            assert hlo.parse(answers[1]).entry.root.opcode == instruction.opcode
            assert len(client.messages) == 2

    run(work)


# ---- clients


NOISE = "import os; from hlotext import cli, lsp; from hlotext.lsp import server; old = server.hover; " + (
    "server.hover = lambda *given: (print('noise'), os.write(1, b'noise'), old(*given))[2]; cli.main(['lsp'])"
)
"""A server whose hovers print."""


def exchange(*messages: bytes) -> bytes:
    """The output of a server that is sent these bytes, then shutdown and exit."""
    end = [
        json.dumps({"jsonrpc": "2.0", "id": 99, "method": "shutdown"}).encode(),
        json.dumps({"jsonrpc": "2.0", "method": "exit"}).encode(),
    ]
    sent = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(one), one) for one in (*messages, *end))
    done = subprocess.run([sys.executable, *START], input=sent, capture_output=True, timeout=120, check=False)
    return done.stdout


def answers_in(output: bytes) -> list[dict[str, Any]]:
    """The messages of an output, which holds nothing else."""
    found = []
    while output:
        head, _, rest = output.partition(b"\r\n\r\n")
        length = int(re.fullmatch(rb"Content-Length: (\d+)(?:\r\nContent-Type: .*)?", head)[1])  # type: ignore[index]
        found.append(json.loads(rest[:length]))
        output = rest[length:]
    return found


@pytest.mark.parametrize("editor", ["vscode", "neovim", "helix", "emacs"])
def test_initialize(editor: str) -> None:
    """Each editor's own message is answered with the server's capabilities, and stdout holds messages alone."""
    message = (DATA / f"lsp/{editor}.json").read_bytes().strip()
    answer = answers_in(exchange(message))[0]
    offered = answer["result"]["capabilities"]
    assert offered["hoverProvider"]
    assert offered["executeCommandProvider"]["commands"] == ["hlotext.whyIsItHere", "hlotext.openPart"]
    wanted = json.loads(message)["params"]["capabilities"].get("general", {}).get("positionEncodings")
    assert offered["positionEncoding"] == (wanted[0] if wanted else "utf-16")


def test_a_damaged_initialize_is_answered() -> None:
    """Capabilities that are not valid cost the client these, and no answer is missing; nor of other requests."""
    message = json.loads((DATA / "lsp/helix.json").read_bytes())
    message["params"]["capabilities"]["textDocument"]["hover"] = {"contentFormat": 7}
    wrong = {"jsonrpc": "2.0", "id": 2, "method": "textDocument/hover", "params": {"position": 1}}
    unknown = {"jsonrpc": "2.0", "id": 3, "method": "hlotext/unknown", "params": {}}
    found = answers_in(exchange(*(json.dumps(one).encode() for one in (message, wrong, unknown))))
    by_id = {one["id"]: one for one in found if "id" in one}
    assert by_id[1]["result"]["capabilities"]["positionEncoding"] == "utf-8"
    assert "error" in by_id[2]
    assert "error" in by_id[3]


def test_stdout_is_clean() -> None:
    """What is printed while a request is answered does not reach the client, by Python or by the descriptor."""

    async def work() -> None:
        async with connected(start=("-c", NOISE)) as client:
            client.open(URI, LOOP)
            where = at(URI, *place(LOOP, "%double =", 2))
            for _ in range(3):
                shown = await client.text_document_hover_async(types.HoverParams(**where))
                assert "double" in shown.contents.value

    run(work)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install."""
    from click.testing import CliRunner

    from hlotext.cli import main

    monkeypatch.setitem(sys.modules, "pygls", None)
    for name in [name for name in sys.modules if name.startswith(("hlotext.lsp", "pygls."))]:
        monkeypatch.delitem(sys.modules, name)
    found = CliRunner().invoke(main, ["lsp"])
    assert found.exit_code == 2
    assert found.stderr == "hlotext: the language server needs an extra: pip install 'hlotext[lsp]'\n"
