"""Times of the language server through pygls' own client over stdio: `python -m tests.bench.lsp FILE [--edits N]`.

FILE is a large module (26 MB: `python -m tests.bench.load --make`); a small part of it stands for what people write. The
bars are those of the issue that asked for the server: open to diagnostics 1 s (1.5 s damaged), hover and definition 20 ms
(also while a text is read), edit to diagnostics of 100 kB 150 ms, memory 500 MB after 200 edits.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from lsprotocol import types

from tests.lsp_client import Client, at, connected
from tests.support import ROOT

SMALL = ROOT / "corpus/tpu/transformer_decode.v5e_2x2x1.after_optimizations.txt"
Times = tuple[float, float]
"""Wall and CPU seconds."""
URI = "file:///bench/module.txt"


class Clock:
    """Wall seconds, and CPU seconds of client and server: what a quiet machine would take at most."""

    def __init__(self, client: Client) -> None:
        self._process = client.process_id
        self._wall, self._cpu = time.perf_counter(), self._spent()

    def _spent(self) -> float:
        # In nanoseconds, of the threads that there are now; those of the server stay.
        tasks = Path(f"/proc/{self._process}/task").iterdir()
        spent = [int((task / "schedstat").read_text("ascii").split()[0]) for task in tasks]
        return time.process_time() + sum(spent) / 1e9

    def read(self) -> Times:
        """Wall and CPU seconds since the start."""
        return time.perf_counter() - self._wall, self._spent() - self._cpu


def row(
    what: str, times: list[Times], unit: str, bar: float | None, pick: Callable[[list[float]], float]
) -> None:
    """One line of the table: wall and CPU time; the bar holds where either does, as the machine may do other work."""
    factor = {"s": 1, "ms": 1_000}[unit]
    wall, cpu = (pick([time[n] * factor for time in times]) for n in (0, 1))
    verdict = (
        ""
        if bar is None
        else f"bar {bar:6.1f}  {'holds' if wall < bar else 'by CPU time' if cpu < bar else 'FAILS'}"
    )
    print(f"{what:54} wall {wall:8.1f}  CPU {cpu:8.1f} {unit:3} {verdict}", flush=True)


def megabytes(client: Client, key: str) -> float:
    """A field of the server's memory: VmHWM, its peak, or VmRSS."""
    status = Path(f"/proc/{client.process_id}/status").read_text("ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(key)) / 1024


async def opened(text: str) -> Times:
    """From sending a document to its first diagnostics."""
    async with connected() as client:
        await asyncio.sleep(1)  # it reads a small text when it starts
        clock = Clock(client)
        client.open(URI, text)
        await client.diagnostics(1)
        return clock.read()


async def asked(client: Client, text: str, count: int, method: str) -> list[Times]:
    """Times of one request at random instruction lines."""
    lines = text.split("\n")
    places = [n for n, line in enumerate(lines) if " = " in line and "(" in line and len(line) < 5_000]
    generator, found = random.Random(48), list[Times]()
    for number in generator.choices(places, k=count):
        line = lines[number]
        column = line.rfind("%", 0, line.find(")") if ")" in line else None) + 2
        clock = Clock(client)
        if method == "hover":
            await client.text_document_hover_async(types.HoverParams(**at(URI, number, column)))
        else:
            await client.text_document_definition_async(types.DefinitionParams(**at(URI, number, column)))
        found.append(clock.read())
    return found


async def edited(client: Client, text: str, version: int, count: int) -> list[Times]:
    """Times from an edit that breaks a line, and one that mends it, to the diagnostics of each."""
    lines = text.split("\n")
    places = [n for n, line in enumerate(lines) if " = " in line and "(" in line]
    generator, found = random.Random(4), list[Times]()
    for number in generator.choices(places, k=count // 2):
        place = lines[number].index(" = ") + 1
        for start, end, new in (
            ((number, place), (number, place + 1), "?"),
            ((number, place), (number, place + 1), "="),
        ):
            version += 1
            clock = Clock(client)
            client.edit(URI, version, start, end, new)
            await client.diagnostics(version)
            found.append(clock.read())
    return found


async def main(path: Path, edits: int) -> None:
    text = path.read_text("utf-8")
    print(f"{path.name}: {len(text) / 1e6:.1f} MB")
    middle = text.index(" = ", len(text) // 2)
    damaged = f"{text[:middle]} ? {text[middle + 3 :]}"
    for what, one, bar in (("good", text, 1.0), ("damaged", damaged, 1.5)):
        row(f"open to diagnostics, {what} (least of 5)", [await opened(one) for _ in range(5)], "s", bar, min)
    async with connected() as client:
        client.open(URI, text)
        await client.diagnostics(1)
        await settled(client)
        print(f"resident with cost, memory and lint: {megabytes(client, 'VmRSS'):.0f} MB")
        for method in ("hover", "definition"):
            times = await asked(client, text, 200, method)
            row(f"{method}, once read (median of 200)", times, "ms", 20, statistics.median)
        during = list[Times]()
        version = 1
        while len(during) < 200:
            version += 1
            client.edit(URI, version, (0, 0), (0, 0), "\n")
            await asyncio.sleep(0.06)
            during += await asked(client, "\n" * (version - 1) + text, 10, "hover")
        # The CPU time is that of the reading too, so that of the wall alone counts.
        waits = [(wall, wall) for wall, _ in during]
        row("hover while a text is read (median of 200)", waits, "ms", 20, statistics.median)
        times = await edited(client, "\n" * (version - 1) + text, version, edits)
        row(f"edit to diagnostics (median of {edits})", times, "ms", None, statistics.median)
        peak = megabytes(client, "VmHWM")
        print(
            f"peak memory after {edits} edits: {peak:.0f} MB, bar 500  {'holds' if peak < 500 else 'FAILS'}"
        )
        print(f"resident memory then: {megabytes(client, 'VmRSS'):.0f} MB")
    small = SMALL.read_text("utf-8")
    async with connected() as client:
        client.open(URI, small)
        await client.diagnostics(1)
        times = await edited(client, small, 1, 200)
        row(
            f"edit to diagnostics, {len(small) // 1000} kB (median of 200)",
            times,
            "ms",
            150,
            statistics.median,
        )


async def settled(client: Client) -> None:
    """Waits until the server does nothing: verify, cost, memory and lint are done."""
    while True:
        clock = Clock(client)
        await asyncio.sleep(4)
        if clock.read()[1] < 0.1:
            return


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--edits", type=int, default=200)
    given = parser.parse_args()
    asyncio.run(main(given.file, given.edits))
