"""Asks XLA itself, through jaxlib, in a process of its own: bad text makes XLA abort."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata

import pytest

from hlotext.ir.tables import xla_changes
from hlotext.ir.values.age import XlaAge, as_age


def installed_age() -> XlaAge:
    """The age of the jaxlib that is installed, as `age=` takes it; skips the test where there is none."""
    pytest.importorskip("jaxlib")
    age = as_age(metadata.version("jaxlib"))
    assert age is not None
    return age


def is_newest() -> bool:
    """Whether the installed jaxlib prints the words of 0.12 (from 0.11.2 on) and not those of 0.10.2.

    Expectations are recorded for these two, and tests run with both.
    """
    return installed_age().has(xla_changes.COMPARISON_ORDER)


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
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


_COMPILER = """
import json, os, sys, tempfile
from jaxlib import _hlo, _jax, xla_client

def compile(text):
    module = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    program = _jax.mlir.xla_computation_to_mlir_module(computation)
    client = xla_client.make_cpu_client()
    devices = _jax.DeviceList(tuple(client.devices()[:1]))
    client.compile_and_load(program, devices, xla_client.CompileOptions())

for line in sys.stdin:
    with tempfile.TemporaryFile() as log:
        if not (child := os.fork()):
            os.dup2(log.fileno(), 2)
            try:
                compile(json.loads(line))
                os._exit(0)
            except BaseException as error:
                os.write(2, f"\\n{error}".encode("utf-8", "replace"))
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        log.seek(0)
        said = log.read().decode("utf-8", "replace").strip()
        print(json.dumps("" if status == 0 else said or f"status {status}"), flush=True)
"""


def compile_with_xla(texts: list[str]) -> list[str]:
    """What XLA says against each text when it compiles it for one CPU; empty where it compiles.

    It reads the text, turns it into StableHLO as every program of JAX starts, and runs all of its passes, whose first one
    verifies. Where it aborts its last words count.
    """
    pytest.importorskip("jaxlib")
    run = subprocess.run(
        [sys.executable, "-c", _COMPILER],
        input="".join(json.dumps(text) + "\n" for text in texts),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]
