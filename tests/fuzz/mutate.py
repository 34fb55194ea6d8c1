"""Damages texts: bytes, tokens and lines. Every case follows from a seed and a number, so it can be made again."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hlotext.ir.tables.attributes import ATTRIBUTES, HEADER_ATTRIBUTES
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.types import ELEMENT_TYPES
from tests import mutation

MOST_DAMAGES = 4
LONGEST_NEST = 3_000
"""How often a bracket is repeated."""

_BYTES = b"\0\t\n\r\x0b \"'\\{}()[]<>=,:;#%*+-./0189AZaz_~\x7f\x80\xc3\xa9\xed\xff"
_BRACKETS = (
    b"{",
    b"}",
    b"(",
    b")",
    b"[",
    b"]",
    b"{{",
    b"((",
    b"{}",
    b"()",
    b"({[",
    b"a={",
    b"negate(",
    b"/*",
    b'"',
)
_NUMBERS = (
    b"-1", b"0", b"1", b"7", b"2147483648", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615",
    b"18446744073709551616", b"-9223372036854775809", b"1e400", b"-0", b"nan(0x1)", b"9" * 50, b"1.5", b"?", b"<=3",
)  # fmt: skip
_WORDS = tuple(
    word.encode()
    for word in (
        *OPCODES, *ELEMENT_TYPES, *(f", {name}=" for name in (*ATTRIBUTES, *HEADER_ATTRIBUTES)),
        *(f"{opcode}-{part}" for opcode in OPCODES for part in ("start", "update", "done")),
        "ENTRY ", "ROOT ", "HloModule ", "%", " = ", "->", "{...}", "/*index=5*/", "//", "f32[2]{0:T(8,128)}",
        "(f32[], s32[])", "[2,4]<=[8]", "{{0,1}}", "mesh['a'=2]", "to_apply={ ROOT c = f32[] constant(0) }", "#0",
        "FileNames\n1 \"a\"\n",
    )
)  # fmt: skip
JUNK = (
    b"I0000 00:00:1760000000.000000   12345 service.cc:152] XLA service initialized for platform CUDA",
    b"W1120 21:31:55.123456 42 gpu_compiler.cc:1] (this) {is} a = log line, x=1",
    b"}", b"{", b"", b"HloModule n", b"ENTRY %main () -> f32[] {", b"%f (p: f32[]) -> f32[] {", b"/*", b"*/",
    b"  %x = f32[] constant(0)", b"FileNames", b"1 \"a.py\"", b"Traceback (most recent call last):", b"\xff\xfe\0",
)  # fmt: skip

Damage = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def _place(r: random.Random, data: bytes) -> int:
    return r.randrange(len(data) + 1)


def _slice(r: random.Random, data: bytes, longest: int = 64) -> tuple[int, int]:
    start = _place(r, data)
    return start, min(len(data), start + r.randint(0, longest))


def change_byte(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place = _place(r, data)
    return data[:place] + bytes([r.choice(_BYTES)]) + data[place + 1 :]


def insert_byte(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place = _place(r, data)
    return data[:place] + bytes([r.choice(_BYTES)]) * r.choice((1, 1, 1, 2, 5, 100)) + data[place:]


def flip_bit(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    if not data:
        return data
    place = r.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << r.randrange(8))]) + data[place + 1 :]


def delete_bytes(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _slice(r, data)
    return data[:start] + data[end:]


def copy_bytes(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _slice(r, data)
    place = _place(r, data)
    return data[:place] + data[start:end] * r.choice((1, 1, 2, 30)) + data[place:]


def cut(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place = _place(r, data)
    return data[:place] if r.random() < 0.8 else data[place:]


def nest(r: random.Random, data: bytes, _: Sequence[bytes], longest: int = LONGEST_NEST) -> bytes:
    """Repeats a bracket, perhaps with as many closing ones."""
    place, bracket, times = _place(r, data), r.choice(_BRACKETS), r.choice((3, 60, longest))
    closing = bracket[::-1].translate(bytes.maketrans(b"{([", b"})]")) if r.random() < 0.5 else b""
    return data[:place] + bracket * times + closing * times + data[place:]


def put_word(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _slice(r, data, 12)
    return data[:start] + r.choice(_WORDS) + data[end if r.random() < 0.5 else start :]


def put_number(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Another number in place of one."""
    places = [i for i in range(len(data)) if 48 <= data[i] < 58]
    if not places:
        return data
    start = end = r.choice(places)
    while end < len(data) and 48 <= data[end] < 58:
        end += 1
    return data[:start] + r.choice(_NUMBERS) + data[end:]


def damage_tokens(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """What `tests.mutation` does to an op line, done to any line."""
    lines = data.split(b"\n")
    number = r.randrange(len(lines))
    kind = r.choice(sorted(mutation.DAMAGES))
    text = lines[number][:4000].decode("utf-8", "surrogateescape")
    damaged = mutation.damaged(text, [(kind, r.randrange(400), r.randrange(400))])
    lines[number] = damaged.encode("utf-8", "surrogateescape") + lines[number][4000:]
    return b"\n".join(lines)


def change_lines(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Deletes, doubles, moves, joins or splits lines, or puts one in that does not belong there."""
    lines = data.split(b"\n")
    i, j = r.randrange(len(lines)), r.randrange(len(lines))
    kind = r.randrange(7)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(j, lines[i])
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 3:
        lines[i : i + 2] = [b"".join(lines[i : i + 2])]
    elif kind == 4:
        place = _place(r, lines[i])
        lines[i : i + 1] = [lines[i][:place], lines[i][place:]]
    elif kind == 5:
        lines.insert(i, r.choice(JUNK))
    else:
        place = _place(r, lines[i])
        lines[i] = lines[i][:place] + r.choice(JUNK) + lines[i][place:]
    return b"\n".join(lines)


def line_ends(r: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data.replace(b"\n", r.choice((b"\r\n", b"\r", b" ", b"\n\n", b"\x0b\n")))


def splice(r: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A piece of another text in place of a piece of this one."""
    other = r.choice(others)
    start, end = _slice(r, other, 400)
    place, behind = _slice(r, data, 200)
    return data[:place] + other[start:end] + data[behind:]


DAMAGES: tuple[Damage, ...] = (
    change_byte, insert_byte, flip_bit, delete_bytes, copy_bytes, cut, nest, put_word, put_word, put_number, put_number,
    damage_tokens, damage_tokens, damage_tokens, change_lines, change_lines, line_ends, splice,
)  # fmt: skip
"""What can be done to a text; what stands here twice is done more often."""


def case(seeds: Sequence[bytes], seed: int, number: int, longest_nest: int = LONGEST_NEST) -> bytes:
    """The damaged text of that number; always the same for the same seeds. Brackets are repeated at most so often."""
    r = random.Random(f"{seed}/{number}")
    data = r.choice(seeds)
    for _ in range(r.randint(1, MOST_DAMAGES)):
        damage = r.choice(DAMAGES)
        data = nest(r, data, seeds, longest_nest) if damage is nest else damage(r, data, seeds)
    return data
