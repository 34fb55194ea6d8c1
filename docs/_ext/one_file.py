"""`llms.txt` and `hlotext.md`: the documentation's contents with a sentence for each page, and all pages as one file.

Sphinx extension; both are written beside the pages when a build ends, in the order of the contents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_DIRECTIVE = re.compile(r"^```\{[^}]*\}.*?^```\n?", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def in_order(start: str, children: Mapping[str, Sequence[str]]) -> list[str]:
    """Pages as the contents list them, each once, from the first page on."""
    found: dict[str, None] = {}
    waiting = [start]
    while waiting:
        page = waiting.pop()
        if page not in found:
            found[page] = None
            waiting += reversed(children.get(page, ()))
    return list(found)


def title_of(text: str, page: str) -> str:
    """The heading of a page."""
    found = _TITLE.search(text)
    return found[1].strip() if found is not None else page


def summary_of(text: str) -> str:
    """The first sentence of a page that is prose; empty if there is none."""
    body = _DIRECTIVE.sub("", text)
    for paragraph in re.split(r"\n\s*\n", body):
        line = " ".join(paragraph.split()).removeprefix("**").removesuffix("**")
        if line and line[0] not in "#|`-<*:[" and not line.startswith("("):
            return re.split(r"(?<=[.:])\s", line, maxsplit=1)[0].rstrip(":")
    return ""


def llms_text(pages: Sequence[str], read: Callable[[str], str], address: Callable[[str], str]) -> str:
    """The contents by https://llmstxt.org: a title, a summary, and a link to each page."""
    first = read(pages[0])
    lines = [f"# {title_of(first, pages[0])}", "", f"> {summary_of(first)}", "", "## Documentation", ""]
    lines.append("- [All pages in one file](hlotext.md)")
    for page in pages[1:]:
        text = read(page)
        summary = summary_of(text)
        lines.append(f"- [{title_of(text, page)}]({address(page)})" + (f": {summary}" if summary else ""))
    return "\n".join(lines) + "\n"


def one_file(pages: Sequence[str], read: Callable[[str], str]) -> str:
    """All pages, one behind the other, without tables of contents."""
    return "\n".join(f"<!-- {page} -->\n\n{_DIRECTIVE.sub('', read(page)).strip()}\n" for page in pages)


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    env = app.env
    pages = in_order(str(app.config.root_doc), env.toctree_includes)
    pages = [page for page in pages if str(env.doc2path(page)).endswith(".md")]

    def read(page: str) -> str:
        return Path(env.doc2path(page)).read_text("utf-8")

    folder = Path(app.outdir)
    (folder / "llms.txt").write_text(llms_text(pages, read, app.builder.get_target_uri), "utf-8")
    (folder / "hlotext.md").write_text(one_file(pages, read), "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
