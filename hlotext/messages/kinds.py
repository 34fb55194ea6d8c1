"""The kinds of messages: how each begins, and what it says. A row for each form that a compiler prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from hlotext.messages.message import Memory
from hlotext.messages.quoted import (
    SIZE,
    braced,
    duration,
    frame,
    location,
    metadata,
    named_line,
    op_line,
    size,
)
from hlotext.messages.runtime_rows import ROWS
from hlotext.messages.tables import allocations

Fields = dict[str, Any]
"""Fields of a message by name."""


_BODY = 3_000
"""Characters of an exception's text."""
_BODY_END = re.compile(
    r"^(?:-{10,}|Traceback \(most|The above exception was|During handling of)", re.MULTILINE
)


@attrs.frozen
class Found:
    """A message found in a log."""

    text: str
    match: re.Match[str]
    after_last: int
    """Where the message before it ends."""
    end: int
    """Where the next one begins."""

    @property
    def rest(self) -> int:
        return self.match.end()

    def bytes(self, group: int) -> float | None:
        """Returns the size that a group of the pattern matched, in bytes; None if it matched none."""
        return size(self.match[group]) if self.match[group] else None

    def body_end(self) -> int:
        """Returns the offset at which an exception's text ends, which may have several paragraphs."""
        end = _BODY_END.search(self.text, self.rest, min(self.end, self.rest + _BODY))
        return min(self.end, self.rest + _BODY) if end is None else end.start()

    def paragraph_end(self) -> int:
        """Returns the offset at which the paragraph ends or the next message begins."""
        end = self.text.find("\n\n", self.rest, self.end)
        return self.end if end < 0 else end


@attrs.frozen
class Kind:
    """A form of message: its pattern, and the function that reads its fields."""

    name: str
    pattern: re.Pattern[str]
    read: Callable[[Found], Fields]
    remedy: str | None = None
    """Remedy of this form, if not that of its kind."""


def _sentence(text: str) -> re.Pattern[str]:
    """A sentence that a log may have wrapped at any blank."""
    return re.compile(text.replace(" ", r"\s+"))


def _hlo(found: Found, start: int, end: int) -> Fields:
    """Name, shape and origin of the op line that a message quotes."""
    line = op_line(found.text, start, end)
    if line is None:
        return {}
    facts = metadata(found.text, start, end)
    fields: Fields = {"instruction": line[0], "shape": line[1]}
    for ours, theirs in (
        ("op_name", "op_name"),
        ("stack_frame_id", "stack_frame_id"),
        ("file", "source_file"),
        ("line", "source_line"),
    ):
        if theirs in facts:
            fields[ours] = facts[theirs]
    if "file" in fields:
        fields["is_call"] = False
    return fields


_COMPILES = re.compile(r"/jax/_src/compiler\.py\"")
"""A frame of a traceback that leads into a compiler."""


def _frame(found: Found, *, is_compiler: bool = False) -> Fields:
    """The line of the program in the traceback in front of a message; of a compiler's that of the call that compiled."""
    start, end = found.after_last, found.match.start()
    fields = _of(frame(found.text, start, end))
    if fields and (is_compiler or _COMPILES.search(found.text, start, end)):
        fields["is_call"] = True
    return fields


def _of(place: tuple[str, int] | None) -> Fields:
    return {"file": place[0], "line": place[1]} if place is not None else {}


def program_line(found: Found) -> Fields:
    """Returns the program's source line that a message names, else that of the traceback before it."""
    return _of(named_line(found.text, found.match.start(), found.body_end())) or _frame(found)


def _named(found: Found) -> Fields:
    """Named groups: those that messages have are fields, others facts."""
    fields = {name: value for name, value in found.match.groupdict().items() if value is not None}
    where = _of((fields["file"], int(fields["line"]))) if "file" in fields else program_line(found)
    known = {name: value for name, value in fields.items() if name in ("module", "instruction", "shape")}
    facts = {
        name: int(value) if value.isdigit() else value
        for name, value in fields.items()
        if name not in known and name not in ("file", "line")
    }
    return {**known, **where, "facts": facts}


def _callback(found: Found) -> Fields:
    """The exception that a callback raised, with its line."""
    end = min(len(found.text), found.rest + _BODY)
    raised = EXCEPTION.search(found.text, found.rest, end)
    end = raised.end() if raised is not None else found.body_end()
    facts = {"exception": f"{raised['name']}: {raised['text']}"} if raised is not None else {}
    return {"facts": facts, **(_of(frame(found.text, found.rest, end)) or _frame(found))}


EXCEPTION = re.compile(
    r"^(?:[\w.]*JaxStackTraceBeforeTransformation:\s)?(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w*(?:Error|Exception))"
    r"(?::[ \t]+(?P<text>\S.*))?$",
    re.MULTILINE,
)
"""The last line of a traceback."""


def _main_memory(found: Found) -> Fields:
    space = found.match[1].lower()
    rows, is_cut = allocations(found.text[found.rest : found.end])
    memory = Memory(space, found.bytes(2), found.bytes(3), found.bytes(4), rows, is_cut, *_totals(found))
    return {"kind": space, "memory": memory, **_frame(found, is_compiler=True)}


_TOTALS = tuple(
    _sentence(text)
    for text in (
        rf"\bprogram ({SIZE})(?=\s)",
        rf"\barguments ({SIZE})(?=\s)",
        rf"Output size ({SIZE});",
        rf"; shares ({SIZE}) with arguments",
    )
)


def _totals(found: Found) -> Iterator[float | None]:
    """Sizes of program, arguments and output, and what of the output is shared with arguments."""
    for pattern in _TOTALS:
        match = pattern.search(found.text, found.rest, found.end)
        yield size(match[1]) if match is not None else None


def _temporaries(found: Found) -> Fields:
    memory = Memory("hbm", found.bytes(2), found.bytes(3))
    return {
        "memory": memory,
        "module": found.match[4],
        "facts": {"what": found.match[1]},
        **_frame(found, is_compiler=True),
    }


def _scoped(found: Found) -> Fields:
    end = found.paragraph_end()
    sizes = _SCOPED_SIZES.search(found.text, found.rest, end)
    space = found.match[1].lower()
    used, capacity, excess = map(size, sizes.groups("")) if sizes is not None else (None, None, None)
    memory = Memory(space, used, capacity, excess)
    # The traceback leads to the call of the compiler; the line of the kernel is that of its frame in the module.
    return {
        "kind": space,
        "memory": memory,
        **_frame(found, is_compiler=True),
        **_hlo(found, found.rest, end),
    }


_SCOPED_SIZES = _sentence(
    rf"allocation with size ({SIZE}) and limit ({SIZE})(?: exceeded scoped \w+ limit by ({SIZE}))?"
)


def _operand(found: Found) -> Fields:
    text, end = found.text, found.paragraph_end()
    details = re.compile(r"\[shape = '([^']*)', space=(\w+)").search(text, found.rest, end)
    name = re.compile(r"\]\s+::\s+([\w.\-]+)").search(text, found.rest, end)
    space = details[2] if details is not None else None
    return {
        "kind": space or "allocation",
        "memory": Memory(space, found.bytes(1), found.bytes(2)),
        "shape": details[1] if details is not None else None,
        "instruction": name[1] if name is not None else None,
        **_frame(found, is_compiler=True),
    }


def _allocation(found: Found) -> Fields:
    return {"memory": Memory(None, found.bytes(1)), **_frame(found)}


def _device_buffer(found: Found) -> Fields:
    return {"memory": Memory(None, found.bytes(1), found.bytes(2)), **_frame(found)}


def _over_limit(found: Found) -> Fields:
    """The limit is a part of the device's memory, so that a program beyond it may still run."""
    before = {"before": found.match[3]} if found.match[3] else {}
    return {"memory": Memory(None, found.bytes(2), found.bytes(1)), "facts": before, **_frame(found)}


def _rematerialization(found: Found) -> Fields:
    text, at = found.text, found.rest
    sides = []
    for _ in range(2):
        start = text.find("{", at, found.end)
        side = braced(text, start, found.end) if start >= 0 else None
        if side is None:
            return {}
        sides.append(side)
        at = start + len(side)
    return {"facts": dict(zip(("from", "to"), sides, strict=True)), **_hlo(found, at, found.paragraph_end())}


def _kernel(found: Found) -> Fields:
    text = found.text
    involved = re.compile(r"The\s+MLIR\s+operation\s+involved:\s+(?:%\S+\s+=\s+)?(\"[\w.]+\"|[\w.]+)")
    operation = involved.search(text, found.rest, found.end)
    place = location(text, found.rest, found.end)
    where = {"file": place[0], "line": place[1]} if place is not None else _frame(found)
    facts = {"mlir": operation[1]} if operation is not None else {}
    return {"instruction": found.match[1], "facts": facts, **where}


def _slow_folding(found: Found) -> Fields:
    line = found.text.find("=", found.rest, found.end)
    end = found.text.find("\n\n", line, found.end) if line >= 0 else found.end
    return _hlo(found, found.rest, found.end if end < 0 else end)


def _slow_compile(found: Found) -> Fields:
    return {"module": found.match[1]}


_TYPES = (
    (r"float8_", "f8"),
    (r"float4_", "f4"),
    (r"bfloat", "bf"),
    (r"float", "f"),
    (r"complex", "c"),
    (r"uint", "u"),
    (r"int", "s"),
    (r"bool", "pred"),
)


def _hlo_type(name: str) -> str:
    """HLO's name of a NumPy type: `float32` is f32."""
    for theirs, ours in _TYPES:
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return name


def _donation(found: Found) -> Fields:
    shapes = re.findall(r"([a-z]\w*)\[([\d,]*)\]", found.match[1])
    return {"facts": {"shapes": [f"{_hlo_type(name)}[{dimensions}]" for name, dimensions in shapes]}}


def _indivisible(found: Found) -> Fields:
    axis, parts, length = map(int, found.match.groups())
    source = re.compile(r"error\s+occurs\s+at\s+source:\s+(\S+?):(\d+)").search(
        found.text, found.rest, found.end
    )
    where = {"file": source[1], "line": int(source[2])} if source is not None else _frame(found)
    return {"facts": {"axis": axis, "parts": parts, "size": length}, **where}


def _target(found: Found) -> Fields:
    return {"facts": {"target": found.match[1], "platform": found.match[2]}, **_frame(found)}


def _abort(found: Found) -> Fields:
    return {"facts": {"condition": found.match[1]}}


def _failed_check(found: Found) -> Fields:
    source, condition = found.match.groups()
    return {"status": "INTERNAL", "facts": {"source": source, "condition": condition}, **_frame(found)}


KINDS = (
    Kind(
        "hbm",
        _sentence(
            rf"Ran out of memory in memory space (\w+)\.? Used ({SIZE}) of ({SIZE}) \w+\."
            rf"(?: Exceeded \w+ capacity by ({SIZE}))?"
        ),
        _main_memory,
    ),
    Kind(
        "hbm",
        _sentence(
            rf"Ran out of memory on HBM, the total memory required for ([^()]{{1,80}}) \(({SIZE})\)"
            rf" exceeds available HBM \(({SIZE})\)"
            r"(?:\. HLO module: ([\w.\-]+?)\.?(?=\s|$))?"
        ),
        _temporaries,
    ),
    Kind(
        "vmem", _sentence(r"Ran out of memory in memory space (\w+) while allocating on stack for "), _scoped
    ),
    Kind("smem", _sentence(rf"Allocation \(size=({SIZE})\) would exceed memory \(size=({SIZE})\)"), _operand),
    Kind(
        "allocation",
        _sentence(rf"Out of memory (?:while trying to allocate|allocating) ({SIZE})(?: bytes)?"),
        _allocation,
    ),
    Kind("allocation", _sentence(rf"Failed to allocate request for \S+ \(({SIZE})\)"), _allocation),
    Kind(
        "allocation",
        _sentence(rf"Attempting to allocate ({SIZE})\. That was not possible\. There are ({SIZE}) free"),
        _device_buffer,
    ),
    Kind(
        "remat",
        _sentence(
            r"Involuntary full rematerialization\. The compiler (?:cannot|was not able to) go from sharding "
        ),
        _rematerialization,
    ),
    Kind(
        "over-limit",
        _sentence(
            rf"Can't reduce memory use below ({SIZE})(?: \(\d+ bytes\))? by rematerialization;"
            rf" only reduced to ({SIZE})(?: \(\d+ bytes\))?(?:, down from ({SIZE})(?: \(\d+ bytes\))? originally)?"
        ),
        _over_limit,
    ),
    Kind(
        "kernel",
        _sentence(
            r"Mosaic failed to compile \w+ kernel(?: with MLIR module name `[^`]*`)?(?: HLO name `([^`]*)`)?"
        ),
        _kernel,
    ),
    Kind("slow-folding", _sentence(r"Constant folding an instruction is taking > \d+\w+:"), _slow_folding),
    Kind(
        "slow-compile", _sentence(r"\[Compiling module ([\w.\-]+)[^\]]*\] Very slow compile\?"), _slow_compile
    ),
    Kind(
        "donation",
        _sentence(r"Some donated buffers were not usable: ((?:ShapedArray\()?[a-z]\w*\[[\w\[\],{}()\s]*)"),
        _donation,
    ),
    Kind(
        "sharding",
        _sentence(
            r"implies that (?:the global size of its|array axis|the array axis)?(?: dimension| axis)? ?(\d+)"
            r"(?: is partitioned| should be divisible by)? (\d+)(?: times)?,"
            r" but (?:the dimension size is|it is equal to) (\d+)"
        ),
        _indivisible,
    ),
    Kind("custom-call", _sentence(r"No FFI handler registered for (\S+) on a platform (\w+)"), _target),
    Kind(
        "custom-call",
        _sentence(
            r"No registered implementation for (?:untyped )?custom call to \"?([^\s\"]+)\"? for platform (\w+)"
        ),
        _target,
    ),
    Kind("abort", re.compile(r"FATAL\s+Check\s+failed:\s+(.+)"), _abort),
    Kind("internal", _sentence(r"RET_CHECK failure \(([^\s()]+)\) (.+)"), _failed_check),
    Kind("callback", _sentence(r"\w*Callback error calling callback:"), _callback),
    # One behind a quotation mark is a line of source in a traceback.
    *(Kind(name, _sentence(rf"(?<![\"'])(?:{text})"), _named, remedy or None) for name, text, remedy in ROWS),
)
"""In each text a place is the first row's that fits."""

TOOK = _sentence(r"The operation took ([\dhmnus.]+)")
"""Total time of a slow operation, reported in a line of its own."""


def seconds(match: re.Match[str]) -> float | None:
    """Returns the seconds that a line with a duration states; None if they cannot be parsed."""
    return duration(match[1].rstrip("."))
