"""Messages found in a text: one pass for each form, then what each says, in the order of the text."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from hlotext.messages.kinds import EXCEPTION, KINDS, TOOK, Found, Kind, program_line, seconds
from hlotext.messages.message import Message, Messages
from hlotext.messages.quoted import last_frame
from hlotext.messages.unwrapping import FATAL, plain_texts

_STATUS = re.compile(
    r"\b(CANCELLED|UNKNOWN|INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED|RESOURCE_EXHAUSTED"
    r"|FAILED_PRECONDITION|ABORTED|OUT_OF_RANGE|UNIMPLEMENTED|INTERNAL|UNAVAILABLE|DATA_LOSS|UNAUTHENTICATED):\s"
)
"""absl's status codes, as they stand in front of a message."""
_CODE = re.compile(r"\b(E\d{4}):\s")
_BEFORE = 400
"""Characters in front of a message in which its status is looked for."""
_SENTENCE_END = re.compile(r"[.?!](?=\s)|\n")
_PARAGRAPH = 4_000
"""Characters of a paragraph behind a status in which its message begins."""
_EXCEPTION = 1_200
"""Of an exception."""
_HARMLESS = ("unexpected worker hostname",)
"""Words of reports that libtpu writes at each start without a TPU."""
_SENTENCE_START = 40
_SAME_START = 120
"""Characters without blanks by which messages are one: a log may fold them differently."""
_LONGEST = 300
"""Characters of `Message.text`."""
_KEY_PART = re.compile(r"hash\s+of\s+serialized\s+([\w ]+?):\s+([0-9a-f]{16,})")
_KEY_END = re.compile(r"PERSISTENT\s+COMPILATION\s+CACHE\s+(?:MISS|HIT)\s+for\s+'([^']+)'")


def read(text: str) -> Messages:
    """Finds messages of XLA's compilers and of JAX in a log, with or without prefixes, a traceback, or JSON lines.

    Duplicates from several processes or chained exceptions are merged. Colors are removed, and hard line wraps are
    undone in logs of up to 8 MiB. If a log can be unwrapped in several ways, the result with the most information is
    used.
    """
    readings = [_read(plain) for plain in plain_texts(text)]
    return Messages(tuple(map(_on_one_line, max(readings, key=_facts))))


def _on_one_line(message: Message) -> Message:
    facts = {
        key: " ".join(value.split()) if isinstance(value, str) else value
        for key, value in message.facts.items()
    }
    return attrs.evolve(message, facts=facts)


_OF_EXCEPTIONS = {"exception", "raised_in"}
_IN_ONE_PIECE = ("op_name", "file", "shape", "instruction", "module")


def _facts(found: Iterable[Message]) -> int:
    """Number of known fields, once for each sentence; a name or shape with a blank in it was not put together rightly."""
    best: dict[tuple[str, str], int] = {}
    for message in found:
        if (
            message.kind in ("exception", _kind_of(message.status))
            and not message.facts.keys() - _OF_EXCEPTIONS
        ):
            continue  # what a known message becomes where it was not put together rightly
        key = message.kind, "".join(message.text.split())[:_SENTENCE_START]
        best[key] = max(best.get(key, 0), _facts_of(message))
    return sum(best.values())


def _facts_of(message: Message) -> int:
    rows: list[Any] = [message]
    if message.memory is not None:
        rows += [message.memory, *message.memory.allocations]
    total = sum(len(value) if isinstance(value, list | dict) else 1 for value in message.facts.values())
    for row in (*(attrs.asdict(row, recurse=False) for row in rows), message.facts):
        if row is not message.facts:
            total += sum(value is not None and value != () for value in row.values())
        total -= 2 * sum(" " in str(row.get(name) or "") for name in _IN_ONE_PIECE)
        total -= 2 * sum("\n" in value for value in row.values() if isinstance(value, str))
    return total


def _read(plain: str) -> Messages:
    places = _places(plain)
    found: list[tuple[int, Message]] = []
    last = 0
    for number, (match, kind) in enumerate(places):
        end = places[number + 1][0].start() if number + 1 < len(places) else len(plain)
        message = _message(Found(plain, match, last, end), kind)
        last = match.end()
        if message is not None:
            found.append((match.start(), message))
    found += _cache_keys(plain)
    found.sort(key=lambda row: row[0])
    return Messages(tuple(_without_quoted(_without_cut(list(_merged(_timed(plain, found)))))))


def _without_cut(messages: list[Message]) -> list[Message]:
    """Without repetitions of which a fold of the log left the beginning alone."""
    texts = sorted(("".join(one.text.split()), number) for number, one in enumerate(messages))
    cut: set[int] = set()
    for (text, number), (longer, other) in itertools.pairwise(texts):
        one, whole = messages[number], messages[other]
        if one.kind == whole.kind and longer.startswith(text) and not text.endswith((".", "?", "!")):
            pairs = (
                (getattr(one, name), getattr(whole, name)) for name in (*_IN_ONE_PIECE, "line", "memory")
            )
            if all(ours is None or ours == theirs for ours, theirs in pairs) and all(
                whole.facts.get(key) == value for key, value in one.facts.items()
            ):
                cut.add(number)
    return [one for number, one in enumerate(messages) if number not in cut]


def _without_quoted(messages: list[Message]) -> Iterator[Message]:
    """Without statuses and exceptions that another message quotes as its reason."""
    said = "\n".join(
        str(value)
        for message in messages
        if message.remedy is not None or message.kind == "callback"
        for value in (message.text, *message.facts.values())
    )
    for message in messages:
        is_known = message.remedy is not None or message.kind not in ("exception", _kind_of(message.status))
        if is_known or message.text.rstrip(".") not in said:
            yield message


def _kind_of(status: str | None) -> str | None:
    if status is None:
        return None
    return "internal" if status == "INTERNAL" else status.lower().replace("_", "-")


def _places(text: str) -> list[tuple[re.Match[str], Kind | None]]:
    """Where messages begin, with their kinds; None for a status or an exception of which no more is known."""
    rows: list[tuple[re.Match[str], Kind | None]] = [
        (match, kind) for kind in KINDS for match in kind.pattern.finditer(text)
    ]
    rows.sort(key=lambda row: row[0].start())
    known: list[tuple[re.Match[str], Kind | None]] = []
    for row in rows:
        if not known or row[0].start() >= known[-1][0].end():
            known.append(row)
    # A status or an exception whose paragraph has a known message belongs to that.
    starts = [match.start() for match, _ in known]
    alone: list[tuple[re.Match[str], Kind | None]] = []
    for match in sorted(
        (*_STATUS.finditer(text), *EXCEPTION.finditer(text)), key=lambda match: match.start()
    ):
        is_status = match.re is _STATUS
        if not is_status and _STATUS.search(match[0]):
            continue
        end = text.find("\n\n" if is_status else "\nTraceback (", match.end(), match.end() + _PARAGRAPH)
        end = match.end() + (_PARAGRAPH if is_status else _EXCEPTION) if end < 0 else end
        place = bisect.bisect_left(starts, match.start())
        if (place == len(starts) or starts[place] > end) and not _is_inside(match, known):
            alone.append((match, None))
    return sorted([*known, *alone], key=lambda row: row[0].start())


def _is_inside(match: re.Match[str], known: list[tuple[re.Match[str], Kind | None]]) -> bool:
    place = bisect.bisect_right(known, match.start(), key=lambda row: row[0].start()) - 1
    return place >= 0 and match.start() < known[place][0].end()


def _message(found: Found, kind: Kind | None) -> Message | None:
    if kind is None and found.match.re is EXCEPTION:
        return _exception(found)
    if kind is None:
        text, status = _headline(found), found.match[1]
        if any(words in text for words in _HARMLESS):
            return None
        return Message(str(_kind_of(status)), text, status, **program_line(found))
    fields = kind.read(found)
    if not fields and kind.name == "remat":
        return None  # the log ends before it says anything
    status, code = _status(found)
    fields = {"kind": kind.name, "status": status, "code": code, "remedy": kind.remedy, **fields}
    return Message(text=_headline(found), **fields)


def _exception(found: Found) -> Message:
    """An exception that no row knows: its text, the program's line, and which part of JAX raised it."""
    name, text = found.match["name"], found.match["text"] or ""
    if text.endswith(":"):
        text = f"{text} {found.text[found.rest : found.body_end()]}"
    raised = last_frame(found.text, found.after_last, found.match.start())
    facts = {"exception": name, **({"raised_in": raised} if raised is not None else {})}
    text = " ".join(text[:_LONGEST].split()) or name
    return Message("exception", text, **program_line(found), facts=facts)


def _status(found: Found) -> tuple[str | None, str | None]:
    """The status and the code in front of a message, of the same paragraph."""
    start = found.match.start()
    window = found.text[max(found.after_last, start - _BEFORE) : start].rpartition("\n\n")[2]
    statuses = list(_STATUS.finditer(window))
    if not statuses:
        return None, None
    code = _CODE.search(window, statuses[-1].end() - 1)
    return statuses[-1][1], code[1] if code is not None else None


def _headline(found: Found) -> str:
    """The message up to the end of its sentence, on one line, behind what the exception around it says before."""
    start, end = found.match.start(), found.match.end()
    sentence = _SENTENCE_END.search(found.text, end - 1, min(found.end, start + _LONGEST))
    end = sentence.end() if sentence is not None else min(found.end, start + _LONGEST)
    line = found.text.rfind("\n", 0, start) + 1
    around = [*EXCEPTION.finditer(found.text, max(found.after_last, start - _EXCEPTION, 0), end)]
    raised = around[-1] if around else None
    before = ""
    if raised is not None and raised["text"] and raised.start() < start and not _STATUS.match(raised["text"]):
        if raised.start() == line:
            start = raised.start("text")
        elif "Traceback (" not in found.text[raised.end() : start]:
            before = f"{raised['text']} "
    text = " ".join((before + found.text[start:end]).split()).removeprefix(FATAL)
    return text if len(text) <= 2 * _LONGEST else text[:_LONGEST]


def _cache_keys(text: str) -> Iterator[tuple[int, Message]]:
    """The parts of each key of JAX's compilation cache; a part that comes again begins another key."""
    parts: dict[str, str] = {}
    start = 0
    rows = [*_KEY_PART.finditer(text), *_KEY_END.finditer(text)]
    for match in sorted(rows, key=lambda match: match.start()):
        module = match[1] if match.re is _KEY_END else None
        if parts and (module is not None or match[1] in parts):
            yield start, _key(parts, module)
            parts = {}
        if module is None:
            start = start if parts else match.start()
            parts[match[1]] = match[2]
    if parts:
        yield start, _key(parts, None)


def _key(parts: dict[str, str], module: str | None) -> Message:
    return Message("cache-key", "the parts of a compilation cache key", module=module, facts={"parts": parts})


def _timed(text: str, found: list[tuple[int, Message]]) -> Iterator[Message]:
    """Slow operations with how long they took: the line that says so stands between the first report and its repetition."""
    took = [(match.start(), seconds(match)) for match in TOOK.finditer(text)]
    for number, (start, message) in enumerate(found):
        if message.kind.startswith("slow-"):
            end = found[number + 1][0] if number + 1 < len(found) else len(text)
            place = bisect.bisect_right(took, start, key=lambda row: row[0])
            if place < len(took) and took[place][0] < end and took[place][1] is not None:
                message = attrs.evolve(message, facts={**message.facts, "seconds": took[place][1]})
        yield message


def _merged(messages: Iterator[Message]) -> Iterator[Message]:
    """Each message once, with what any of its repetitions says."""
    known: dict[tuple[object, ...], Message] = {}
    for message in messages:
        parts = tuple(sorted(message.facts.get("parts", {}).items())) if message.kind == "cache-key" else ()
        start = "".join(message.text.split())[:_SAME_START]
        key = message.kind, start, message.instruction, message.module, parts
        other = known.get(key)
        if other is not None:
            more = {
                field.name: getattr(message, field.name)
                for field in attrs.fields(Message)
                if getattr(other, field.name) is None
            }
            message = attrs.evolve(other, **more, facts={**message.facts, **other.facts})
        known[key] = message
    yield from _without_wrapped(known.values())


def _without_wrapped(messages: Iterable[Message]) -> Iterator[Message]:
    """Without those whose sentence the next exception of a chain repeats inside its own; it has the line then."""
    every = list(messages)
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, message in enumerate(every):
        key = message.kind, message.instruction, str(sorted(message.facts.items()))
        groups.setdefault(key, []).append(number)
    wrapped = {
        inner
        for group in groups.values()
        for inner, outer in itertools.pairwise(group)
        if every[inner].remedy is not None
        and every[inner].text != every[outer].text
        and every[inner].text.rstrip(".") in every[outer].text
    }
    return (message for number, message in enumerate(every) if number not in wrapped)
