"""The script of bokeh that a report carries with it."""

from __future__ import annotations

import functools
from pathlib import Path

import bokeh.resources


@functools.cache
def script() -> str:
    """BokehJS without its backend for GPUs, widgets and tables, as the installed package has it.

    It may stand in a `<script>`: nothing in it ends one.
    """
    found = bokeh.resources.Resources(mode="inline", components=["bokeh"], minified=True)
    text = "\n".join(found.js_raw)
    if not text:
        path = Path(bokeh.resources.__file__).parent / "server" / "static" / "js" / "bokeh.min.js"
        text = path.read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script")
