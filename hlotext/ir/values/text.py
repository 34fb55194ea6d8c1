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
    """The text in double quotes, escaped as XLA does (`absl::CEscape`): octal for all but printable ASCII.

    Bytes that are not UTF-8 are surrogates in the text (error handler `surrogateescape`).
    Raises UnicodeEncodeError for other surrogates.
    """
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return f'"{"".join([_ESCAPES[byte] for byte in text.encode("utf-8", "surrogateescape")])}"'


@text_cache(1 << 12)
def is_json_dict(text: str) -> bool:
    """True where XLA prints the text raw instead of quoted (`LexesAsJsonDict`): braces that balance.

    Braces inside double quotes do not count. It need not be JSON: `{a = 1 : i64}` is fine.
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
    """The text verbatim if it lexes as a dict, else quoted, as XLA writes configs."""
    return text if is_json_dict(text) else quote(text)


def braced(values: Iterable[object]) -> str:
    """A list without blanks: `{1,2}`."""
    return f"{{{','.join(map(str, values))}}}"


def short_float(value: float) -> str:
    """A float with six significant digits, as C's `%g`: `1e-05`."""
    return f"{value:g}"
