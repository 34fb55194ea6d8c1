"""A Dask cluster and a store of objects on this machine: a worker is killed, two texts are broken, nothing else is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.test_farm import TEXT

for package in ("distributed", "moto", "flask", "s3fs", "pyarrow", "duckdb"):
    pytest.importorskip(package)

pytestmark = pytest.mark.slow
OBJECTS, BROKEN = 300, {"n100": "HloModule x\n\nENTRY e {\n  ROOT a = f32[2] add(b, c)\n}\n", "n200": ""}


@pytest.fixture
def processes() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that end with the test."""
    with ExitStack() as stack:

        def start(*arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                [sys.executable, *arguments], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait, 20)
            stack.callback(process.kill)
            return process

        yield start


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def wait_for(what: Callable[[], bool]) -> None:
    """Waits until something holds, as long as that takes."""
    while not what():
        time.sleep(0.3)  # the store is slow at lists


class Bucket:
    """A bucket of the store, without a library: the test should not need what it tests."""

    def __init__(self, url: str) -> None:
        self._url = url

    def _request(self, path: str, method: str, data: bytes | None = None) -> bytes:
        kind = {"Content-Type": "text/plain"}  # what is a form to the store is not kept
        request = urllib.request.Request(f"{self._url}/farm{path}", data, kind, method=method)
        with urllib.request.urlopen(request) as answer:
            read: bytes = answer.read()
            return read

    def is_there(self) -> bool:
        """Whether the store answers; it then has the bucket."""
        try:
            self._request("", "PUT")
        except OSError:
            return False
        return True

    def put(self, path: str, text: str) -> None:
        """Makes an object."""
        self._request(f"/{path}", "PUT", text.encode())

    def count(self, prefix: str) -> int:
        """How many objects there are, of the first thousand."""
        return self._request(f"?list-type=2&prefix={prefix}", "GET").count(b"<Key>")


@pytest.mark.nightly
def test_a_killed_worker_and_broken_texts(
    tmp_path: Path, processes: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """298 of 300 are there once, two are reported with their diagnostic; the second run does nothing."""
    port = free_port()
    store = f"http://127.0.0.1:{port}"
    env = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": store,
    }
    processes("-m", "moto.server", "-H", "127.0.0.1", "-p", str(port), env=env)
    known = tmp_path / "scheduler.json"
    arguments = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(known)]
    processes("-m", "distributed.cli.dask_scheduler", *arguments, env=env)
    wait_for(lambda: known.exists() and bool(known.read_text()))
    address = json.loads(known.read_text())["address"]
    arguments = [
        address,
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
        "--local-directory",
        str(tmp_path),
    ]
    workers = [processes("-m", "distributed.cli.dask_worker", *arguments, env=env) for _ in range(2)]
    bucket = Bucket(store)
    wait_for(bucket.is_there)
    for number in range(OBJECTS):
        name = f"n{number:03}"
        text = BROKEN.get(name, TEXT.format(name=f"jit_{name}", size=1 + number))
        bucket.put(f"dumps/b{number % 3}/{name}.after_optimizations.txt", text)

    table = ["table", "s3://farm/dumps", "-o", "s3://farm/tables", "--scheduler", address]
    table += ["--tables", "instructions", "--format", "json"]
    log = tmp_path / "said"
    with open(log, "w") as said:
        running = subprocess.Popen(
            [sys.executable, "-m", "hlotext", *table], env=env, stdout=subprocess.PIPE, stderr=said
        )
        try:
            wait_for(lambda: bucket.count("tables/modules/") >= 60 or running.poll() is not None)
            assert running.poll() is None, log.read_text()
            workers[0].send_signal(signal.SIGKILL)
            answer, _ = running.communicate()
        finally:
            running.kill()
    assert running.returncode == 2, log.read_text()
    found = json.loads(answer)
    assert (found["converted"], found["done_before"]) == (298, 0), found["refused"][:3]
    assert sorted((one["status"], one["message"].partition(".txt:")[2]) for one in found["refused"]) == [
        ("unreadable", "1:1: error[X123]: the text is empty"),
        ("unreadable", "4:23: error[X102]: operand b is not defined"),
    ]

    def hlotext(*arguments: str) -> tuple[int, dict[str, object]]:
        command = [sys.executable, "-m", "hlotext", *arguments, "--format", "json"]
        result = subprocess.run(command, env=env, capture_output=True)
        assert b"internal error" not in result.stderr, result.stderr
        return result.returncode, json.loads(result.stdout)

    query = (
        "select count(*), count(distinct module), count(distinct path), count(*) filter (status = 'ok'), "
        "(select count(*) from instructions), (select count(distinct (module, id)) from instructions) from modules"
    )
    status, answered = hlotext("sql", query, "s3://farm/tables")
    assert (status, answered["rows"]) == (0, [[300, 300, 300, 298, 596, 596]])
    before = bucket.count("tables/")
    status, again = hlotext(*table[:-2])
    assert (status, again["converted"], again["done_before"], again["written_bytes"]) == (2, 0, 298, 0)
    assert bucket.count("tables/") == before


def test_no_scheduler(tmp_path: Path) -> None:
    """One line, after ten seconds."""
    file = tmp_path / "m.txt"
    file.write_text(TEXT.format(name="m", size=1), "utf-8")
    command = ["table", str(file), "-o", str(tmp_path / "out"), "--scheduler", "tcp://127.0.0.1:1"]
    result = subprocess.run([sys.executable, "-m", "hlotext", *command], capture_output=True, text=True)
    assert result.returncode == 2
    assert "no Dask scheduler at tcp://127.0.0.1:1" in result.stderr.splitlines()[-1]
