"""One open document and its background work: reading at each pause, then verify and facts, then lint."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import hlotext as hlo
from hlotext import lint
from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.lsp.documents import Document
from hlotext.lsp.facts import Facts
from hlotext.lsp.reading import Reading, View

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

READ_PAUSE = 0.05
"""Seconds without an edit before a text is read."""
VERIFY_PAUSE = 0.3
LINT_PAUSE = 2.0
_LARGE = 4_000_000
"""Length of text of which two modules should not be in memory longer than needed."""


class OpenFile:
    """An open document, its last reading, and the task that updates it."""

    def __init__(
        self,
        document: Document,
        readers: ThreadPoolExecutor,
        checkers: ThreadPoolExecutor,
        publish: Callable[[OpenFile], None],
    ) -> None:
        self.document = document
        self.view: View | None = None
        self.findings: dict[str, list[Finding]] = {}
        """Findings of the last reading, by stage: `read`, `verify`, `lint`."""
        self.left_out = 0
        self._readers, self._checkers, self._publish = readers, checkers, publish
        self._changed = asyncio.Event()
        self._changed.set()
        self._is_read = asyncio.Event()
        self._check: asyncio.Future[Any] | None = None
        self._task = asyncio.ensure_future(self._run())

    def changed(self) -> None:
        """Must be called after each edit."""
        if self.view is not None:
            self.view = View(self.document, self.view.reading)
        self._changed.set()

    def close(self) -> None:
        """Stops the task; unfinished results are dropped."""
        self._task.cancel()
        self._is_read.set()

    async def read_view(self) -> View | None:
        """Waits for the first reading if necessary and returns the last one; None if the document was closed before."""
        await self._is_read.wait()
        return self.view

    async def _run(self) -> None:
        is_first = True
        while True:
            await self._changed.wait()
            self._changed.clear()
            if not is_first and await self._edited_within(READ_PAUSE):
                continue
            is_first = False
            try:
                await self._read()
                if not self._changed.is_set():
                    await self._check_all()
            except Exception:  # a fault of a check: what is known stays, and the next edit is read
                _LOG.exception("checking %s failed", self.document.uri)

    async def _edited_within(self, seconds: float) -> bool:
        """Waits for a pause; True if the document was edited before its end."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _read(self) -> None:
        document = self.document
        text, count, version = document.text, document.edit_count, document.version
        name = document.path or document.uri
        loop = asyncio.get_running_loop()
        is_large = self.view is not None and len(text) > _LARGE
        if is_large:  # two modules are held while one is read; their facts and findings are not
            assert self.view is not None
            self.view.reading.facts = None
            if self._check is not None and self._check.done():
                self._check = None
        reading = await loop.run_in_executor(self._readers, lambda: Reading(text, name, count, version))
        self.view = View(document, reading)
        document.forget_edits(count)
        self.findings = {"read": list(reading.result.diagnostics)}
        self.left_out = reading.result.left_out
        self._is_read.set()
        self._publish(self)
        if is_large:
            # Nodes refer to each other: the former module stays until the collector runs, which may be long after.
            await loop.run_in_executor(self._readers, gc.collect)

    async def _check_all(self) -> None:
        if await self._edited_within(VERIFY_PAUSE):
            return
        assert self.view is not None
        reading = self.view.reading
        if any(finding.severity is Severity.ERROR for finding in self.findings["read"]):
            return  # an operand that is missing makes more findings than it is worth
        found = await self._checked(lambda: [f for m in reading.modules for f in hlo.verify(m)])
        if found is None:
            return
        self.findings["verify"] = found
        self._publish(self)
        reading.facts = await self._checked(lambda: Facts(reading.modules[0]))
        if reading.facts is None or await self._edited_within(LINT_PAUSE - VERIFY_PAUSE):
            return
        found = await self._checked(lambda: [f for m in reading.modules for f in lint.run(m)])
        if found is not None:
            self.findings["lint"] = found
            self._publish(self)

    async def _checked(self, work: Callable[[], T]) -> T | None:
        """The result of work in the thread of checks; None if the document was edited before it came."""
        if self._check is not None and not self._check.done():
            await asyncio.wait({self._check})
        if self._changed.is_set():
            return None
        check = self._check = asyncio.get_running_loop().run_in_executor(self._checkers, work)
        edited = asyncio.ensure_future(self._changed.wait())
        waiting: set[Awaitable[Any]] = {check, edited}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)  # type: ignore[type-var]
        edited.cancel()
        if self._changed.is_set() or not check.done():
            check.add_done_callback(_ignore)
            return None
        result: T = check.result()
        return result


def _ignore(future: asyncio.Future[Any]) -> None:
    """Results that nobody wants any more are not an error either."""
    if not future.cancelled():
        future.exception()
