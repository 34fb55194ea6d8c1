"""Protos as XLA writes and prints them: jaxlib in a process of its own, where a fork answers for each module."""

from __future__ import annotations

import base64
import json
import subprocess
import sys

import pytest

_SERVER = """
import base64, json, os, sys
from jaxlib import _hlo

def answer(request):
    options = _hlo.HloPrintOptions()
    options.print_large_constants = request["large"]
    if "text" in request:
        proto = _hlo.hlo_module_from_text(request["text"]).as_serialized_hlo_module_proto()
    else:
        proto = base64.b64decode(request["proto"])
    text = _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options)
    return json.dumps([base64.b64encode(proto).decode(), text])

for line in sys.stdin:
    reading, writing = os.pipe()
    if not os.fork():
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(answer(json.loads(line)).encode("utf-8", "surrogateescape"))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode("utf-8", "surrogateescape")
    os.wait()
    print(text or "null", flush=True)
"""


def ask(requests: list[dict[str, object]]) -> list[tuple[bytes, str] | None]:
    """For each request, a text or a proto: XLA's proto, and how XLA prints that; None where it refuses or aborts."""
    pytest.importorskip("jaxlib")
    run = subprocess.run(
        [sys.executable, "-c", _SERVER],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=True,
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return [None if found is None else (base64.b64decode(found[0]), found[1]) for found in answers]


def of_texts(texts: list[str], *, large: bool = False) -> list[tuple[bytes, str] | None]:
    """XLA's proto of each text, and how it prints the proto."""
    return ask([{"text": text, "large": large} for text in texts])


def of_protos(protos: list[bytes], *, large: bool = False) -> list[str | None]:
    """How XLA prints each proto."""
    requests: list[dict[str, object]] = [
        {"proto": base64.b64encode(proto).decode(), "large": large} for proto in protos
    ]
    return [None if found is None else found[1] for found in ask(requests)]
