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
from pathlib import Path

from lsprotocol import types

from tests.lsp_client import Client, at, connected
from tests.support import ROOT

SMALL = ROOT / "corpus/tpu/transformer_decode.v5e_2x2x1.after_optimizations.txt"
URI = "file:///bench/module.txt"


def row(what: str, value: float, unit: str, bar: float) -> None:
    """One line of the table."""
    print(f"{what:58}{value:9.1f} {unit:3} bar {bar:7.1f}  {'holds' if value < bar else 'FAILS'}", flush=True)


def peak_megabytes(process: int, key: str = "VmHWM") -> float:
    """The peak of a process's resident memory."""
    status = Path(f"/proc/{process}/status").read_text("ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(key)) / 1024


async def opened(text: str) -> float:
    """Seconds from sending a document to its first diagnostics."""
    async with connected() as client:
        start = time.perf_counter()
        client.open(URI, text)
        await client.diagnostics(1)
        return time.perf_counter() - start


async def asked(client: Client, text: str, count: int, method: str) -> list[float]:
    """Milliseconds of one request at random instruction lines."""
    lines = text.split("\n")
    places = [n for n, line in enumerate(lines) if " = " in line and "(" in line and len(line) < 5_000]
    generator, found = random.Random(48), []
    for number in generator.choices(places, k=count):
        line = lines[number]
        column = line.rfind("%", 0, line.find(")") if ")" in line else None) + 2
        start = time.perf_counter()
        if method == "hover":
            await client.text_document_hover_async(types.HoverParams(**at(URI, number, column)))
        else:
            await client.text_document_definition_async(types.DefinitionParams(**at(URI, number, column)))
        found.append((time.perf_counter() - start) * 1000)
    return found


async def edited(client: Client, text: str, version: int, count: int, wait: bool = True) -> list[float]:
    """Milliseconds from an edit that breaks a line, and one that mends it, to the diagnostics of each."""
    lines = text.split("\n")
    places = [n for n, line in enumerate(lines) if " = " in line and "(" in line]
    generator, found = random.Random(4), []
    for number in generator.choices(places, k=count // 2):
        place = lines[number].index(" = ") + 1
        for start, end, new in (
            ((number, place), (number, place + 1), "?"),
            ((number, place), (number, place + 1), "="),
        ):
            version += 1
            begin = time.perf_counter()
            client.edit(URI, version, start, end, new)
            if wait:
                await client.diagnostics(version)
            found.append((time.perf_counter() - begin) * 1000)
    return found


async def main(path: Path, edits: int) -> None:
    text = path.read_text("utf-8")
    print(f"{path.name}: {len(text) / 1e6:.1f} MB")
    row("open to diagnostics of reading, good", min([await opened(text) for _ in range(5)]), "s", 1.0)
    middle = text.index(" = ", len(text) // 2)
    damaged = f"{text[:middle]} ? {text[middle + 3 :]}"
    row("open to diagnostics of reading, damaged", min([await opened(damaged) for _ in range(5)]), "s", 1.5)
    async with connected() as client:
        client.open(URI, text)
        await client.diagnostics(1)
        await asyncio.sleep(15)
        for method in ("hover", "definition"):
            times = await asked(client, text, 200, method)
            row(
                f"{method}, once read (median of 200, max {max(times):.0f})",
                statistics.median(times),
                "ms",
                20,
            )
        during: list[float] = []
        version = 1
        while len(during) < 200:
            version += 1
            client.edit(URI, version, (0, 0), (0, 0), "\n")
            await asyncio.sleep(0.06)
            during += await asked(client, "\n" * (version - 1) + text, 10, "hover")
        row(
            f"hover while a text is read (median of 200, max {max(during):.0f})",
            statistics.median(during),
            "ms",
            20,
        )
        times = await edited(client, "\n" * (version - 1) + text, version, edits)
        row(f"edit to diagnostics (median of {edits})", statistics.median(times), "ms", 1500)
        row(f"peak memory after {edits} edits", peak_megabytes(client.process_id), "MB", 500)
        print(f"{'resident memory now':58}{peak_megabytes(client.process_id, 'VmRSS'):9.1f} MB")
    small = SMALL.read_text("utf-8")
    async with connected() as client:
        client.open(URI, small)
        await client.diagnostics(1)
        times = await edited(client, small, 1, 200)
        row(
            f"edit to diagnostics, {len(small) // 1000} kB (median of 200)",
            statistics.median(times),
            "ms",
            150,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--edits", type=int, default=200)
    given = parser.parse_args()
    asyncio.run(main(given.file, given.edits))
