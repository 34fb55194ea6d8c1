"""Readers of what XLA writes about thunks: `thunk_sequence*.txt`, `thunk_metadata.txt`, a serialized CPU executable."""

from __future__ import annotations

import os
import re
from typing import Any

from hlotext import textproto
from hlotext.syntax.source.inputs import unpack
from hlotext.textproto import TextMessage, TextProtoError
from hlotext.thunks.executable import read_executable
from hlotext.thunks.sequence import Thunks
from hlotext.thunks.thunk import NESTED, Launch, Thunk, ThunkError, ThunkNote, sequences

_THUNK = re.compile(
    r"(?P<number>\d{3,19}): (?P<kind>\S+) *"
    r"(?:\[(?:source|prev=(?P<previous>\d{1,19}) \(\d+\)) *\| *(?:sink|next=(?P<next>\d{1,19}) \(\d+\)) *\] ?"
    r"|\t)(?P<rest>.*)"
)
"""A thunk of the present form, with its neighbours in brackets, or of those until 2026-03, with a tab."""
_UNNUMBERED = re.compile(r"(?P<kind>k[A-Z]\w*) *\t(?P<rest>.*)")
"""A thunk of the forms until 2025-09, without a number; in 2023 the text behind it was its annotation."""
_LABEL = re.compile(r" *(?P<label>condition|body|true_branch|false_branch|branch_\d{1,9}):[ \t]*")
_LAUNCH = re.compile(
    r"(?P<kernel>\S+) grid: \[(?P<grid>[\d, ]+)\] threads: \[(?P<threads>[\d, ]+)\] +"
    r"(?:cluster: \[(?P<cluster>[\d, ]+)\] *)?(?:shared_memory: (?P<shared>\d+) bytes)?"
)
_OLD_LAUNCH = re.compile(
    r", kernel = (?P<kernel>\S+?)(?:, profile_annotation = (?P<annotation>\S+?))?, launch dimensions = "
    r"blocks: \{(?P<grid>[\d, ]+)\}, threads/block: \{(?P<threads>[\d, ]+)\}"
    r"(?:, cluster_dim = (?:nullopt|\{(?P<cluster>[\d, ]+)\}))?"
)
"""Form of a kernel launch until 2026-03."""
_EXECUTION = re.compile(r"async_id=(\d{1,19})")
_STREAM = re.compile(r"stream=(\S+?),")
_METADATA = re.compile(r"\s*(?:#[^\n]*\n\s*)*thunk_metadata\s*[{:]")
_NO_THUNKS = re.compile(r" *No thunks\.(?P<rest>.*)")
"""An empty sequence. The label of the next one stands behind it, on the same line."""
_BOOLEAN = {"true_branch": "branch_1", "false_branch": "branch_0"}
"""XLA's labels of a boolean conditional are the wrong way round: `false_branch` lists HLO's true computation, which is its
branch 0."""
_STEP = 4
"""Columns by which nested thunks stand further in."""


def load(path: str | os.PathLike[str]) -> Thunks:
    """Loads thunks from XLA's files: `thunk_sequence*.txt`, `thunk_metadata.txt`, or a serialized CPU executable.

    The format is detected by content, also in compressed files (.gz, .xz, .zst). Thunks of unknown kinds are kept.
    Raises ThunkError for any other content, and OSError if the file cannot be read or decompressed.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        data = unpack(file.read(), name)
    if _is_text(data):
        return parse(data.decode("utf-8", "surrogateescape"), name)
    return read_executable(data, name)


def parse(text: str, name: str = "<text>") -> Thunks:
    """Parses the contents of a thunk_sequence or thunk_metadata file.

    Raises ThunkError for any other content; `name` is the name of the file in its message.
    """
    if _METADATA.match(text):
        return read_metadata(text, name)
    found = read_sequence(text)
    if found is None:
        raise ThunkError(
            f"{name} has no thunks: it is not a thunk_sequence, thunk_metadata or a CPU executable"
        )
    return found


def _is_text(data: bytes) -> bool:
    return b"\0" not in data[:4096] and all(byte >= 9 for byte in data[:512])


def read_sequence(text: str) -> Thunks | None:
    """Parses a thunk_sequence text; None if the text has no thunks.

    Nesting is given by indentation. Lines that cannot be parsed become notes.
    """
    reader = _Sequence()
    for number, line in enumerate(text.splitlines(), 1):
        reader.line(number, line)
    return reader.finish() if reader.found or reader.is_empty_sequence else None


class _Sequence:
    """State of reading one thunk_sequence: the open thunks by indentation."""

    def __init__(self) -> None:
        self.top: list[Thunk] = []
        self.found = 0
        self.is_empty_sequence = False
        self.notes: list[ThunkNote] = []
        self._open: list[tuple[int, Thunk]] = []
        self._inside: dict[Thunk, dict[str, list[Thunk]]] = {}
        self._label: dict[Thunk, str] = {}
        self._last: Thunk | None = None
        self.shows_neighbours = False

    def line(self, number: int, line: str) -> None:
        """Takes one line."""
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if not body.strip():
            return
        empty = _NO_THUNKS.fullmatch(line)
        if empty is not None:
            self.is_empty_sequence = True
            self.line(number, empty["rest"])
            return
        label = _LABEL.fullmatch(line)
        if label is not None:
            self._open_sequence(label["label"], indent)
            return
        match = _THUNK.match(body) or _UNNUMBERED.match(body)
        if match is None:
            self.notes.append(ThunkNote(message=f"line {number} is not a thunk and was ignored"))
            return
        while match is not None:
            thunk, rest = self._thunk(match)
            self._place(thunk, indent)
            # The first thunk inside a kSequential stands on its line.
            inner = rest.lstrip(" ")
            match = (_THUNK.match(inner) or _UNNUMBERED.match(inner)) if thunk.kind == "kSequential" else None
            indent += 2

    def _open_sequence(self, label: str, indent: int) -> None:
        """`condition:` stands at the margin behind its while; other labels two columns further in than their thunk."""
        if label == "condition":
            holder = self._last
        else:
            holder = next((thunk for at, thunk in reversed(self._open) if at == indent - 2), None)
        if holder is None:
            self.notes.append(ThunkNote(message=f"{label}: follows no thunk"))
            return
        name = _BOOLEAN.get(label, label)
        self._label[holder] = name
        self._inside.setdefault(holder, {}).setdefault(name, [])

    def _thunk(self, match: re.Match[str]) -> tuple[Thunk, str]:
        groups = match.groupdict()
        rest = groups["rest"] or ""
        thunk = Thunk(
            kind=groups["kind"],
            number=int(groups["number"]) if groups.get("number") else None,
            facts=_facts(groups["kind"], rest.strip()),
        )
        self.shows_neighbours |= "[" in match[0][: match.start("rest") - match.start()]
        thunk.shown_previous = int(groups["previous"]) if groups.get("previous") else None
        thunk.shown_next = int(groups["next"]) if groups.get("next") else None
        old = _OLD_LAUNCH.match(rest)
        if old is not None:
            thunk.name = old["annotation"]
        elif groups.get("number") is None and not rest.startswith(","):
            thunk.name = rest.strip() or None
        self.found += 1
        return thunk, rest

    def _place(self, thunk: Thunk, indent: int) -> None:
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        if self._open:
            holder = self._open[-1][1]
            label = self._label.get(holder, NESTED)
            self._inside.setdefault(holder, {}).setdefault(label, []).append(thunk)
        else:
            self.top.append(thunk)
        self._open.append((indent, thunk))
        self._last = thunk

    def finish(self) -> Thunks:
        """The whole tree."""
        for thunk, inner in self._inside.items():
            branches = sorted(inner.items(), key=_branch_number)
            thunk.children = tuple((label, tuple(inner)) for label, inner in branches)
        found = Thunks(
            thunks=tuple(self.top),
            platform="gpu",
            notes=tuple(self.notes),
            is_predicted=False,
            shows_neighbours=self.shows_neighbours,
        )
        _connect(found)
        return found


def _branch_number(item: tuple[str, list[Thunk]]) -> int:
    label = item[0]
    return int(label[len("branch_") :]) if label.startswith("branch_") else 0


def _facts(kind: str, description: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if kind == "kSequential":
        return facts
    launch = _LAUNCH.match(description) or _OLD_LAUNCH.match(description)
    if launch is not None:
        cluster, shared = launch["cluster"], launch.groupdict().get("shared")
        facts["launch"] = Launch(
            kernel=launch["kernel"],
            grid=_triple(launch["grid"]),
            threads=_triple(launch["threads"]),
            shared_memory=int(shared) if shared else None,
            cluster=_triple(cluster) if cluster else None,
        )
    execution = _EXECUTION.search(description)
    if execution is not None and kind == "kAsyncDone":
        facts["start"] = int(execution[1])
    stream = _STREAM.search(description)
    if stream is not None:
        facts["stream"] = stream[1]
    if description not in ("", kind, "(no description)"):
        facts["description"] = description
    return facts


def _triple(text: str) -> tuple[int, int, int]:
    numbers = [int(part) for part in text.replace(",", " ").split()[:3]]
    x, y, z = (*numbers, 1, 1, 1)[:3]
    return x, y, z


def _connect(thunks: Thunks) -> None:
    """Sets `previous` and `next` from the numbers that the text shows; numbers of thunks of passes repeat, so the nearest."""
    for _, _, sequence in sequences(thunks.thunks):
        seen: dict[int | None, Thunk] = {}
        for thunk in sequence:
            thunk.previous = seen.get(thunk.shown_previous) if thunk.shown_previous is not None else None
            seen[thunk.number] = thunk
        seen.clear()
        for thunk in reversed(sequence):
            thunk.next = seen.get(thunk.shown_next) if thunk.shown_next is not None else None
            seen[thunk.number] = thunk


def read_metadata(text: str, name: str = "<text>") -> Thunks:
    """Returns the thunks of a thunk_metadata text in pre-order, without nesting.

    A text that is malformed or truncated yields the thunks before that place and a note.
    """
    notes: list[ThunkNote] = []
    try:
        message = textproto.parse(text)
    except TextProtoError as error:
        message = error.message
        notes.append(ThunkNote(message=f"{name}: {error}"))
    thunks = []
    for entry in message.get("thunk_metadata", ()):
        if not isinstance(entry, TextMessage):
            continue
        info = next((part for part in entry.get("thunk_info", ()) if isinstance(part, TextMessage)), None)
        annotation = info.get("profile_annotation", (None,))[-1] if info is not None else None
        number = info.get("thunk_id", (0,))[-1] if info is not None else 0
        thunks.append(
            Thunk(
                kind=str(entry.get("thunk_kind", ("",))[-1]),
                number=number if isinstance(number, int) else 0,
                name=str(annotation) if annotation is not None else None,
            )
        )
    return Thunks(thunks=tuple(thunks), platform="gpu", notes=tuple(notes), is_predicted=False)
