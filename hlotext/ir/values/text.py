"""XLA's spelling of strings, numbers and lists, for every value that prints itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlotext.ir.caches import lazy_regex, text_cache

_PLAIN = re.compile(r"[ !#-&(-\[\]-~]*")
_ESCAPES = [
    chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}" for byte in range(256)
]  # fmt: skip
for _char, _escape in {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "'": "\\'", "\\": "\\\\"}.items():
    _ESCAPES[ord(_char)] = _escape

# Blanks and comments around a dict. Possessive, so that it never backtracks.
_BLANK = lazy_regex(r"(?:[ \t\r\n]|//[^\r\n]*|/\*[\s\S]*?\*/)*+")
# An unclosed quote comes out as a lone `"`, which is found out once and ends the search.
_DICT_TOKEN = lazy_regex(r'[{}]|"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"|"')


def quote(text: str) -> str:
    """Returns text in double quotes, escaped as in XLA (`absl::CEscape`): octal escapes for all but printable ASCII.

    Surrogates stand for bytes that are not UTF-8 (error handler `surrogateescape`). Raises UnicodeEncodeError for any
    others.
    """
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return f'"{"".join([_ESCAPES[byte] for byte in text.encode("utf-8", "surrogateescape")])}"'


@text_cache(1 << 12)
def is_json_dict(text: str) -> bool:
    """Returns True if XLA prints text unquoted (`LexesAsJsonDict`): it has balanced braces.

    Braces inside double quotes do not count. The text need not be JSON: `{a = 1 : i64}` qualifies.
    """
    start = _BLANK().match(text).end()  # type: ignore[union-attr]
    if not text.startswith("{", start):
        return False
    depth = 0
    for match in _DICT_TOKEN().finditer(text, start):
        token = match[0]
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if not depth:
                return _BLANK().fullmatch(text, match.end()) is not None
        elif token == '"':
            return False
    return False


def quote_unless_dict(text: str) -> str:
    """Returns text verbatim if it lexes as a dict, and quoted otherwise, as XLA prints configs."""
    return text if is_json_dict(text) else quote(text)


def braced(values: Iterable[object]) -> str:
    """Returns values as a list without blanks: `{1,2}`."""
    return f"{{{','.join(map(str, values))}}}"


def short_float(value: float) -> str:
    """Formats a float with six significant digits, as C's `%g` does: `1e-05`."""
    return f"{value:g}"
