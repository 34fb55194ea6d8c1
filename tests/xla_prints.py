"""What XLA prints of texts, with every option that its Python interface has; in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import attrs
import pytest

_SERVER = r"""
import json, os, sys
from jaxlib import _hlo

def answer(text, styles):
    full = _hlo.HloPrintOptions()
    full.print_large_constants = True
    module = _hlo.hlo_module_from_text(text)
    if styles is None:
        return {"default": module.to_string(), "full": module.to_string(full)}
    text = module.to_string(full)
    if len(text) > 2_000_000:
        return {"input": None}
    module = _hlo.hlo_module_from_text(text)
    out = {"input": module.to_string(full)}
    for name, (preset, fields) in styles.items():
        options = _hlo.HloPrintOptions() if preset == "default" else getattr(_hlo.HloPrintOptions, preset)()
        for field, value in fields.items():
            setattr(options, field, value)
        out[name] = module.to_string(options)
    return out

for line in sys.stdin:
    text, styles = json.loads(line)
    reading, writing = os.pipe()
    if not os.fork():
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(json.dumps(answer(text, styles)).encode("utf-8", "surrogateescape"))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.wait()
    print(data.decode("utf-8", "surrogateescape") or "null", flush=True)
"""


_PRESETS = {"canonical", "fingerprint", "short_parsable"}


@attrs.frozen
class Style:
    """A preset with some of its options changed."""

    preset: str = "default"
    fields: dict[str, Any] = attrs.field(factory=dict)


def xla_prints(texts: list[str], styles: dict[str, Style]) -> list[dict[str, str | None] | None]:
    """How XLA prints each text in each style; None where it refuses or aborts.

    XLA changes a module when it reads it (names, order, tables), so `input` is the text that it prints of a module that it
    has read from its own text, and the styles are printed from that. `input` is None where XLA made the text too large by
    filling constants that were left out.
    """
    return _ask(texts, {name: (style.preset, style.fields) for name, style in styles.items()})


def xla_rereads(texts: list[str]) -> list[dict[str, str] | None]:
    """What XLA prints of each text after reading it, `default` and with constants in `full`; None where it refuses."""
    return _ask(texts, None)


def _ask(texts: list[str], wanted: dict[str, Any] | None) -> list[Any]:
    pytest.importorskip("jaxlib")
    run = subprocess.run(
        [sys.executable, "-c", _SERVER],
        input="".join(json.dumps((text, wanted)) + "\n" for text in texts),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def option_names() -> set[str]:
    """The options that XLA's Python interface has."""
    pytest.importorskip("jaxlib")
    code = "from jaxlib import _hlo; print(*dir(_hlo.HloPrintOptions))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name for name in run.stdout.split() if not name.startswith("_")} - _PRESETS
