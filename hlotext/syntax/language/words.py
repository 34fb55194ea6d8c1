"""Values of names, strings and numbers in the text; shared by both readers."""

from __future__ import annotations

import functools
import re

from hlotext.findings.errors import TermError
from hlotext.syntax.source.limits import MAX_DIGITS


@functools.cache
def _escape() -> re.Pattern[bytes]:
    """An escape. Groups: by an octal, hexadecimal, short or long number, by a letter, and one that C does not know."""
    return re.compile(
        rb"""\\(?:([0-7]{1,3})|x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([ntr"'\\abfv?]))|(\\.)""",
        re.DOTALL,
    )


_SIMPLE = {
    b"n": b"\n", b"t": b"\t", b"r": b"\r", b'"': b'"', b"'": b"'", b"\\": b"\\",
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v", b"?": b"?",
}  # fmt: skip


def plain(inner: str) -> str | None:
    """Returns the content of a quoted string without escapes other than `\'`; None if there are others.

    XLA also escapes single quotes, which are frequent in JAX's argument names.
    """
    text = inner.replace("\\'", "'")
    return None if "\\" in text else text


def unquote(quoted: str) -> str:
    """Returns the text of a quoted string, with C escapes replaced; bytes that are not UTF-8 become surrogates.

    Raises TermError for an invalid escape.
    """
    inner = quoted[1:-1]
    if (text := plain(inner)) is not None:
        return text

    def one(match: re.Match[bytes]) -> bytes:
        octal, hexadecimal, short, long, simple, _bad = match.groups()
        if simple:
            return _SIMPLE[simple]
        if octal and int(octal, 8) < 256:
            return bytes([int(octal, 8)])
        if hexadecimal and int(hexadecimal, 16) < 256:
            return bytes([int(hexadecimal, 16)])
        if (short or long) and int(short or long, 16) < 0x110000:
            return chr(int(short or long, 16)).encode("utf-8", "surrogatepass")
        place = 1 + len(
            inner.encode("utf-8", "surrogateescape")[: match.start()].decode("utf-8", "surrogateescape")
        )
        shown = match[0].decode("utf-8", "replace")
        raise TermError(
            f"`{shown}` is not a valid string escape", place, r"a backslash itself is written `\\`"
        )

    return _escape().sub(one, inner.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def integer(token: str) -> int:
    """Returns the value of an INT token as XLA stores it: a signed 64-bit number; larger unsigned ones wrap around.

    Raises TermError outside of -2^63 ... 2^64-1.
    """
    # A limit on the digits first: Python's int() is quadratic in them, and refuses more than 4,300 with a ValueError.
    if len(token) > MAX_DIGITS or not -(2**63) <= (value := int(token)) < 2**64:
        raise TermError(f"{token[:40]} does not fit into 64 bits", getattr(token, "start_pos", 0))
    return value if value < 2**63 else value - 2**64


def bare(name: str) -> str:
    """Returns a name without `%` and without a trailing colon."""
    return name.removeprefix("%").removesuffix(":")
