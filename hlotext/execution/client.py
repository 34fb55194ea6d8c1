"""Plain texts run one after another in a child process, which is restarted after a text that kills it."""

from __future__ import annotations

import importlib.util
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import ml_dtypes
import numpy as np

from hlotext import messages
from hlotext.execution.errors import NotExecutable
from hlotext.execution.plain_text import PlainModule
from hlotext.ir.files import write_text

Arrays = list[np.ndarray[Any, Any]]
_CHILD = Path(__file__).with_name("child.py")
_FLAGS = "--xla_allow_excess_precision=false --xla_backend_optimization_level=1"
"""Options of XLA's CPU compiler: what the text says, compiled fast."""
NEEDS_JAX = "running modules needs an extra: pip install 'hlotext[jax]'"


@attrs.frozen(eq=False)  # arrays have no truth
class Ran:
    """Outcome of executing a module: its results and times, or the reason why it was not executed."""

    results: tuple[Arrays, ...] = ()
    """Result arrays for each set of arguments; with several devices, stacked along the first dimension."""
    error: str | None = None
    """Reason why the module was not executed, or None if it was executed."""
    has_died: bool = False
    """True if the process crashed or timed out."""
    seconds: tuple[float, ...] = ()
    """Seconds of each run, without compilation."""


def expect_jax() -> None:
    """Raises NotExecutable if jax or jaxlib is not installed."""
    if importlib.util.find_spec("jaxlib") is None or importlib.util.find_spec("jax") is None:
        raise NotExecutable(NEEDS_JAX)


class Runner:
    """Executes modules with the same sets of arguments, in a child process. A context manager.

    >>> with Runner(devices=1) as runner:                                     # doctest: +SKIP
    ...     ran = runner.run(plain(module), [[numpy.zeros(4, "f4")]])
    """

    def __reduce__(self) -> tuple[object, ...]:
        """Raises TypeError, since a child process cannot be copied."""
        raise TypeError("a runner owns a child process and its files; create one where it is needed")

    def __init__(self, devices: int = 1, timeout: float = 120.0) -> None:
        expect_jax()
        self.devices = devices
        self.timeout = timeout
        self._folder = tempfile.TemporaryDirectory(prefix="hlotext-")
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0
        self._given: dict[int, list[str]] = {}

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._folder.cleanup()

    def run(self, module: PlainModule, inputs: Sequence[Arrays]) -> Ran:
        """Compiles a module and executes it with each set of arguments. If that fails, `Ran.error` is the reason.

        Args:
            module: The module, from `plain`.
            inputs: For each execution, an array per parameter (`PlainModule.taken`).
        """
        self._count += 1
        text = Path(self._folder.name, f"{self._count}.hlo")
        write_text(text, module.text)
        job = {
            "number": self._count,
            "text": str(text),
            "inputs": self._files(inputs),
            "devices": module.devices,
        }
        return self._answer(job)

    def _files(self, inputs: Sequence[Arrays]) -> list[str]:
        """The arguments as files; the same ones are written once."""
        key = id(inputs)
        if key not in self._given:
            self._given.clear()
            self._given[key] = []
            self._kept = inputs  # so that nothing else gets its id
            for arrays in inputs:
                path = os.path.join(self._folder.name, f"{self._count}.{len(self._given[key])}.in")
                write_arrays(path, arrays)
                self._given[key].append(path)
        return self._given[key]

    def _answer(self, job: dict[str, Any]) -> Ran:
        process = self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            self._end()
            return Ran(error="the process ended", has_died=True)
        line = b""
        while b'"number"' not in line:
            found = self._line(process)
            if found is None:
                self._end()
                return Ran(error=f"it did not finish within {self.timeout:g} seconds", has_died=True)
            if not found:
                process.wait()
                why = self._last_words(process.returncode)
                self._end()
                return Ran(error=why, has_died=True)
            line = found
        answer = json.loads(line)
        if "error" in answer:
            return Ran(error=_one_line(answer["error"]))
        results = tuple(read_arrays(path) for path in answer["outputs"])
        for path in answer["outputs"]:
            os.unlink(path)
        return Ran(results, seconds=tuple(answer["seconds"]))

    def _line(self, process: subprocess.Popen[bytes]) -> bytes | None:
        """The next line of the child; b"" where it has ended, None if it says nothing in time."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(self.timeout):
                return None
        return process.stdout.readline()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            known = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "LIBTPU"))}
            flags = f"{_FLAGS} --xla_force_host_platform_device_count={self.devices}"
            self._log = open(os.path.join(self._folder.name, "log"), "w+b")  # noqa: SIM115 - closed in `_end`
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                bufsize=0,
                env={**known, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "TF_CPP_MIN_LOG_LEVEL": "2"},
            )
        return self._process

    def _last_words(self, status: int) -> str:
        """Last output of the child before it died."""
        self._log.seek(0)
        text = self._log.read().decode("utf-8", "replace")
        found = messages.read(text).of("abort")
        if found:
            return f"XLA aborts the process: {_one_line(found[-1].text)}"
        lines = [line for line in text.splitlines() if line.strip()]
        return f"XLA exits the process with status {status}" + (f": {_one_line(lines[-1])}" if lines else "")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, self._log):
            if pipe is not None:
                pipe.close()


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 300 else f"{words[:300]}..."


def read_arrays(path: str) -> Arrays:
    """Returns the arrays of a file that the child process wrote."""
    with open(path, "rb") as file:
        head = json.loads(file.readline())
        return [_read(file.read, name, sizes) for name, sizes in head]


def _read(read: Any, name: str, sizes: Sequence[int]) -> np.ndarray[Any, Any]:
    type_ = np.dtype(getattr(ml_dtypes, name, name))
    count = int(np.prod(sizes, dtype=np.int64))
    return np.frombuffer(read(count * type_.itemsize), type_).reshape(sizes)


def write_arrays(path: str, arrays: Iterable[np.ndarray[Any, Any]]) -> None:
    """Writes arrays for the child process: a line of JSON with types and sizes, then their bytes."""
    known = [np.asarray(array) for array in arrays]
    head = [[array.dtype.name, list(array.shape)] for array in known]
    with open(path, "wb") as file:
        file.write(json.dumps(head).encode() + b"\n")
        for array in known:
            file.write(np.ascontiguousarray(array).tobytes())
