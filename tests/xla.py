"""Asks XLA itself, through jaxlib, in a process of its own: bad text makes XLA abort."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_SERVER = """
import json, os, sys
from jaxlib import _hlo

def answer(text):
    options = _hlo.HloPrintOptions()
    options.include_layout_in_shapes = False
    return _hlo.hlo_module_from_text(text).to_string(options)

for line in sys.stdin:
    reading, writing = os.pipe()
    if not os.fork():
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            os.write(writing, answer(json.loads(line)).encode("utf-8", "surrogateescape"))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode("utf-8", "surrogateescape")
    os.wait()
    print(json.dumps(text or None), flush=True)
"""


def ask_xla(texts: list[str]) -> list[str | None]:
    """How XLA prints each text (a module or an op line) without layouts; None where it refuses or aborts."""
    pytest.importorskip("jaxlib")
    run = subprocess.run(
        [sys.executable, "-c", _SERVER],
        input="".join(json.dumps(text) + "\n" for text in texts),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]
