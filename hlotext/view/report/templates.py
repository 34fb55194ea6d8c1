"""Templates of pages: text of a module is escaped and cut wherever it goes in."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import jinja2
import markupsafe
from jinja2.bccache import Bucket
from markupsafe import Markup

from hlotext.findings import escape
from hlotext.findings.shape_texts import short_shape
from hlotext.view.page.packing import asset

MOST_TEXT = 300
"""Characters of a text that a page shows; of a longer one both ends. What is to be pasted is never shortened: `whole`."""

_FEW, _MANY = 20, 48
"""Characters of a cell that is not broken, and of one that is a sentence."""
_SHAPE = 36
"""Characters of a shape in a table."""


def shown(text: str) -> str:
    """Returns a module's text as a page shows it: without control characters, and shortened in the middle."""
    text = escape.lines(text)
    if len(text) <= MOST_TEXT:
        return text
    half = MOST_TEXT // 2
    return f"{text[:half]} … {text[-half:]}"


def _finalize(value: object) -> object:
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


class _Compiled(jinja2.BytecodeCache):
    """Templates as they were compiled for an earlier page: each page has filters of its own, and so an environment."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._known.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._known[bucket.key] = bucket.code


_COMPILED = _Compiled()


def environment(**filters: Any) -> jinja2.Environment:
    """Returns a jinja2 environment with the templates of this package, and these filters in addition to its own."""
    found = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        bytecode_cache=_COMPILED,
    )
    found.filters["breakable"] = breakable
    found.filters["codes"] = codes
    found.filters["direction"] = direction
    found.filters["whole"] = whole
    found.filters["address"] = address
    found.filters["short_shape"] = lambda text: short_shape(shown(text), _SHAPE)
    found.filters["short_place"] = str  # as it is where a page names none
    found.filters.update(filters)
    found.globals["length_of"] = length_of
    return found


def length_of(text: str) -> str:
    """Returns the CSS class for the length of a cell's text: `short`, `long` or empty."""
    return "short" if len(text) <= _FEW else "long" if len(text) > _MANY else ""


def direction(change: str) -> str:
    """Returns the CSS class of a change in a metric where less is better: `rise`, `fall` or empty."""
    return "rise" if change.startswith("+") or change == "new" else "fall" if change[:1] in ("−", "-") else ""


def breakable(text: str) -> Markup:
    """Returns a name as HTML that may break after `/` and `_`."""
    safe = str(markupsafe.escape(shown(text)))
    for mark in ("/", "_"):
        safe = safe.replace(mark, f"{mark}<wbr>")
    return Markup(safe)


def address(text: str) -> str:
    """Encodes a name for a URL fragment, as `encodeURIComponent` does."""
    return quote(escape.line(text), safe="!'()*", errors="replace")


_COMMAND = 60
"""Characters of a command that stands in a line of its own, with a button that copies it."""


def whole(text: str) -> Markup:
    """Returns text to be copied as HTML, not shortened."""
    return Markup(markupsafe.escape(escape.lines(text)))


def codes(text: str) -> Markup:
    """Returns our own prose as HTML, with code between backticks; code with spaces is a command and does not break."""
    return Markup("".join(_code(part) if n % 2 else _prose(part) for n, part in enumerate(text.split("`"))))


def _prose(text: str) -> str:
    return str(markupsafe.escape(shown(text)))


def _code(text: str) -> str:
    if " " not in text:
        return f"<code>{_prose(text)}</code>"
    kind = ' class="command"' if len(text) > _COMMAND else ""
    return f"<code{kind}>{whole(text)}</code>"
