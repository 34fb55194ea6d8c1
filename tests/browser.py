"""A real browser for tests of pages: the distribution's headless Chromium, driven through its DevTools pipe alone.

It opens files, counts what it asks the network for and what it complains of, moves the mouse, presses keys, takes pictures.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MISSING = f"no headless browser is installed: none of {', '.join(NAMES)} is on the path"
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
    "--hide-scrollbars", "--force-color-profile=srgb", "--disable-background-networking", "about:blank",
)  # fmt: skip


def executable() -> str | None:
    """The browser's path; None where none is installed."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


HANGS = 600.0
"""Seconds after which a wait is a hang: below a test's own limit, so that the complaints of the page are printed."""


class Browser:
    """One browser with one page."""

    def __init__(self, path: str, folder: str) -> None:
        down, self._write = os.pipe()
        self._read, up = os.pipe()

        def pipes() -> None:
            # The browser reads from 3 and writes to 4.
            first, second = os.dup(down), os.dup(up)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self._process = subprocess.Popen(
            [path, f"--user-data-dir={folder}", *_FLAGS],
            close_fds=False,
            preexec_fn=pipes,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(down)
        os.close(up)
        self._numbers = itertools.count(1)
        self._rest = b""
        self.complaints: list[str] = []
        """What the console says that is a warning or worse, exceptions, and what the policy has refused."""
        self.requests: list[str] = []
        """Addresses asked for, but the page's own and `data:`."""
        self.dialogs = 0
        self._target, self._session = "", ""
        self._window: tuple[int, int, bool] = (1280, 900, False)

    # ---- the protocol

    def _call(self, method: str, params: dict[str, Any] | None = None, session: str | None = None) -> Any:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(HANGS)
            if answer is None:
                raise TimeoutError(f"the browser does not answer {method}")
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def call(self, method: str, **params: Any) -> Any:
        """A command of the protocol to the page."""
        return self._call(method, params, self._session)

    def _next(self, limit: float) -> dict[str, Any] | None:
        """The next message; None where none comes in time. Events are noted on the way."""
        end = time.monotonic() + limit
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], max(0, end - time.monotonic()))[0]:
                return None
            data = os.read(self._read, 1 << 20)
            if not data:
                raise EOFError("the browser has gone")
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(
                " ".join(str(a.get("value", a.get("description"))) for a in params["args"])
            )
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            address = params["request"]["url"]
            if not address.startswith(("data:", "blob:")) and params.get("type") != "Document":
                self.requests.append(address)
        elif method == "Page.javascriptDialogOpening":
            self.dialogs += 1

    # ---- what tests do

    def size(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """The window, and which of light and dark its user likes."""
        self._window = (width, height, dark)
        if not self._session:
            return
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path: Path, fragment: str = "") -> None:
        """Opens a file in a page of its own, in place of the last, and waits until its script says that it is ready."""
        last, self._session = self._target, ""
        self._target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self._call("Target.attachToTarget", {"targetId": self._target, "flatten": True})
        if last:
            self._call("Target.closeTarget", {"targetId": last})
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(self._window[0], self._window[1], dark=self._window[2])
        self.complaints.clear()
        self.requests.clear()
        self.call("Page.navigate", url=f"{path.resolve().as_uri()}{fragment}")
        self.wait("document.documentElement?.dataset.ready !== undefined")

    def wait(self, condition: str, limit: float = HANGS) -> None:
        """Waits until an expression is true. Raises TimeoutError."""
        end = time.monotonic() + limit
        while not self.eval(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {condition}; {self.complaints[:3]}")
            time.sleep(0.02)

    def eval(self, expression: str) -> Any:
        """What an expression of the page is, promises waited for."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return found["result"].get("value")

    def run(self, statement: str) -> None:
        """Runs a statement whose value is of no interest, or is none that can be sent."""
        self.eval(f"{statement}; 0")

    def ready(self) -> int:
        """Milliseconds from opening to ready, as the page itself counts them."""
        return int(self.eval("document.documentElement.dataset.ready"))

    def mouse(self, x: float, y: float, *, click: bool = False) -> None:
        """Moves the mouse, and clicks there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key: str) -> None:
        """Presses a key: a character, or a name such as `ArrowLeft`."""
        text = key if len(key) == 1 else {"Enter": "\r"}.get(key, "")
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def text(self, text: str) -> None:
        """Types a text."""
        self.call("Input.insertText", text=text)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Writes what the page looks like, all of it or what the window shows."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        """Ends the browser."""
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser for a while. Raises FileNotFoundError where none is installed."""
    path = executable()
    if path is None:
        raise FileNotFoundError(MISSING)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = Browser(path, folder)
        try:
            yield found
        finally:
            found.close()
