# ruff: noqa: E501 - a question is a row
"""Twenty questions of performance engineers, each as calls of `hlotext mcp`, as command lines of the skill, and as grep.

The figures come from the library when a test runs. `python -m tests.agent_questions` prints the table of docs/agents.md: the
characters that are read until the answer stands there.
"""

from __future__ import annotations

import asyncio
import io
import re
import shlex
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
from click.testing import CliRunner

import hlotext as hlo
from hlotext import cost, diff, dumps, lint, memory, proto
from hlotext.analysis import byte_text
from hlotext.analysis.formatting import format_count
from hlotext.cli import main
from hlotext.memory.usage import live_arrays, space_usage
from tests.dump_cases import DUMPS
from tests.support import ROOT

MODULE = "tpu/transformer_decode.v5e_2x2x1.after_optimizations.txt"
GPU = "gpu/resnet_train.h100_1x1x1.after_optimizations.txt"
SENDS = "gpu/gspmd_kinds.h100_1x1x8.after_optimizations.txt"
OTHER = "cpu/gspmd_kinds.cpu_8.after_optimizations.txt"
LOOP = "cpu/ring_attention.cpu_4.after_optimizations.txt"
DUMP = "tpu.transformer_decode.tagged"
TRACE = "two_programs.xplane.pb"

Call = tuple[str, dict[str, Any]]


@attrs.frozen
class Question:
    """One question. `figures` are what the library says, in the answer of the last call and in the output of the commands."""

    text: str
    calls: tuple[Call, ...]
    """`$module` stands for the identifier that the first call returned."""
    look: Callable[[Mapping[str, Any]], list[Any]]
    """The figures in the last answer."""
    figures: Callable[[], list[Any]]
    """The figures of the library."""
    lines: tuple[str, ...]
    """Command lines; `$corpus`, `$dump` and `$trace` are paths."""
    shown: Callable[[], list[str]]
    """The figures as commands print them."""
    grep: tuple[str, str] | None
    """A search in the text after which one who knows HLO has the answer, and the file; None where the text does not hold
    it."""


def module(name: str) -> hlo.Module:
    """A module of the corpus."""
    return hlo.load(ROOT / "corpus" / name)


def dump() -> dumps.Compilation:
    """The compilation of the dump folder."""
    return dumps.open(DUMPS / f"{DUMP}.tar.xz").compilations[0]


def trace() -> proto.TracedModule:
    """The longest module of the trace."""
    read = proto.read_trace((ROOT / "tests/data/proto" / TRACE).read_bytes())
    return max(read.modules, key=lambda one: sum(time.total_seconds for time in one.times.values()))


def opened(name: str, *then: Call) -> tuple[Call, ...]:
    return (("open", {"path": name}), *then)


def on(tool: str, **arguments: Any) -> Call:
    return tool, {"module": "$module", **arguments}


def facts(*names: str) -> Callable[[Mapping[str, Any]], list[Any]]:
    return lambda answer: [answer["facts"][name] for name in names]


def first(*names: str) -> Callable[[Mapping[str, Any]], list[Any]]:
    return lambda answer: [answer["rows"][0][name] for name in names]


def usage() -> Any:
    return space_usage(memory.assign(module(MODULE)), 0)


def largest() -> Any:
    found = memory.assign(module(MODULE))
    return live_arrays(found, 0, usage().peak_time)[0]


def slowest() -> cost.InstructionTime:
    return cost.estimate(module(GPU), "h100").instructions[0]


def flow() -> cost.CollectiveTraffic:
    return max(cost.traffic(module(SENDS)).flows, key=lambda one: one.total or 0)


def by_opcode() -> tuple[str, cost.Cost]:
    return max(
        cost.analyze(module(GPU)).by("opcode").items(),
        key=lambda item: (item[1].bytes_accessed, item[1].flops),
    )


def by_line() -> tuple[str, cost.Cost]:
    return max(
        cost.analyze(module(GPU)).by("line").items(), key=lambda item: (item[1].bytes_accessed, item[1].flops)
    )


def body() -> hlo.Instruction:
    graph = hlo.analysis.call_graph(module(LOOP))
    loop = next(c for c, _ in ((c, r) for c, r in graph.runs.items()) if graph.use(c) == "loop body")
    return loop.root


def runs(instruction: hlo.Instruction) -> int | None:
    home = instruction.computation
    assert home is not None
    assert home.module is not None
    return hlo.analysis.call_graph(home.module).runs.get(home)


def size(name: str) -> hlo.analysis.Total:
    found = module(MODULE).find(name)
    assert isinstance(found, hlo.Instruction)
    return hlo.analysis.total_of(found.shape)


def timed() -> tuple[str, Any]:
    return max(trace().times.items(), key=lambda item: item[1].total_seconds)


def most_added() -> dumps.TimelineEntry:
    return max(dump().timeline(), key=lambda row: len(row.changes.added) if row.changes is not None else 0)


def totals() -> Any:
    return diff.compare(module(OTHER), module(SENDS)).totals


PADDED = "fusion.21"
LAST = f"{DUMP}/module_0000.jit_step.cl_1014260217.after_optimizations.txt"

QUESTIONS = (
    Question("How high is the peak of the main memory?", opened(MODULE, on("memory")), facts("peak_bytes"),
             lambda: [usage().peak], (f"memory $corpus/{MODULE} --limit 3",), lambda: [byte_text(usage().peak)], None),
    Question("When is it reached?", opened(MODULE, on("memory")), facts("peak_at"),
             lambda: [usage().peak_instruction], (f"memory $corpus/{MODULE} --limit 3",), lambda: [usage().peak_instruction], None),
    Question("How many bytes of it are padding?", opened(MODULE, on("memory")), facts("padding_bytes"),
             lambda: [usage().padding], (f"memory $corpus/{MODULE} --limit 3",), lambda: [byte_text(usage().padding)], None),
    Question("Which array at the peak is the largest?", opened(MODULE, on("memory", limit=3)), first("name", "bytes"),
             lambda: [largest().label, largest().bytes], (f"memory $corpus/{MODULE} --limit 3",),
             lambda: [largest().op_name, byte_text(largest().bytes)], None),
    Question("How many FLOPs does a step take?", opened(GPU, on("cost")), facts("flops"),
             lambda: [cost.analyze(module(GPU)).run.flops], (f"cost $corpus/{GPU} --limit 3",),
             lambda: [format_count(cost.analyze(module(GPU)).run.flops)], None),
    Question("How many bytes does it move?", opened(GPU, on("cost")), facts("bytes_accessed"),
             lambda: [cost.analyze(module(GPU)).run.bytes_accessed], (f"cost $corpus/{GPU} --limit 3",),
             lambda: [byte_text(int(cost.analyze(module(GPU)).run.bytes_accessed))], None),
    Question("Which opcode moves the most bytes?", opened(GPU, on("cost", by="opcode", limit=5)), first("name", "bytes_accessed"),
             lambda: [by_opcode()[0], by_opcode()[1].bytes_accessed], (f"cost $corpus/{GPU} --by opcode --limit 0",),
             lambda: [by_opcode()[0], byte_text(int(by_opcode()[1].bytes_accessed))], None),
    Question("Which Python line moves the most bytes?", opened(GPU, on("cost", by="line", limit=5)), first("name", "bytes_accessed"),
             lambda: [by_line()[0], by_line()[1].bytes_accessed], (f"cost $corpus/{GPU} --by line --limit 5",),
             lambda: [by_line()[0].rpartition("/")[2], byte_text(int(by_line()[1].bytes_accessed))], None),
    Question("Which kernel has the longest minimum time on an H100?", opened(GPU, on("cost", by="instruction", chip="h100", limit=5)),
             first("name", "seconds_all_runs"), lambda: [slowest().name, slowest().seconds],
             (f"cost $corpus/{GPU} --chip h100 --limit 3",), lambda: [slowest().name], None),
    Question("How many copies are there?", opened(MODULE, on("find", pattern="copy(...)", limit=3)), facts("matches"),
             lambda: [sum(i.opcode == "copy" for i in module(MODULE).instructions())], (f"grep -c 'copy(...)' $corpus/{MODULE}",),
             lambda: [f":{sum(i.opcode == 'copy' for i in module(MODULE).instructions())}"], (r" copy\(", MODULE)),
    Question("How many bytes does each device send in a step?", opened(SENDS, on("communication")), facts("sent_bytes_all_runs"),
             lambda: [sum(one.total or 0 for one in cost.traffic(module(SENDS)).flows)], (f"comm $corpus/{SENDS} --limit 3",),
             lambda: [byte_text(sum(one.total or 0 for one in cost.traffic(module(SENDS)).flows))], None),
    Question("Which collective sends the most, and for which line?", opened(SENDS, on("communication", limit=3)),
             first("name", "sent_bytes_all_runs", "python_line"),
             lambda: [flow().communication.start.name, flow().total, f"{flow().place.file}:{flow().place.line}"],  # type: ignore[union-attr]
             (f"comm $corpus/{SENDS} --limit 3",), lambda: [flow().communication.start.name, f":{flow().place.line}"],  # type: ignore[union-attr]
             (r"(all-|permute|scatter).*replica_groups|source_line|StackFrames|^[0-9]+ \{", SENDS)),
    Question("How often does the body of the loop run?", opened(LOOP, on("instruction", name="$body")), facts("runs"),
             lambda: [runs(body())], (f"show $corpus/{LOOP} -i $body --limit 3",), lambda: [f"runs {runs(body()):,} times"],
             ("known_trip_count", LOOP)),
    Question("How many bytes does an array take, including padding?", opened(MODULE, on("instruction", name=PADDED)),
             facts("bytes", "padding_bytes"), lambda: [size(PADDED).allocated_bytes, size(PADDED).allocated_bytes - size(PADDED).unpadded_bytes],
             (f"show $corpus/{MODULE} -i {PADDED} --limit 3",), lambda: [byte_text(size(PADDED).allocated_bytes)], None),
    Question("Why is this copy here?", opened(LAST, ("origin", {"dump": "$module", "name": "copy-start"})), facts("cause", "because"),
             lambda: [dump().why("copy-start").cause, dump().why("copy-start").because], ("dump why $dump -i copy-start",),
             lambda: [dump().why("copy-start").cause, dump().why("copy-start").because], None),
    Question("Which pass added the most operations?", (("passes", {"dump": DUMP, "limit": 100}),),
             lambda answer: [max((r["added"] or 0, r["pass"]) for r in answer["rows"])[1]],
             lambda: [most_added().step.name], ("dump timeline $dump",), lambda: [most_added().step.name], None),
    Question("What did the pass cse do?", (("passes", {"dump": DUMP, "pass_name": "cse"}),), facts("counts"),
             lambda: [{"changed": 10, "removed": 19}], ("dump pass $dump --pass cse",), lambda: ["19 removed, 10 changed"], None),
    Question("How do two builds differ in bytes moved?", (("compare", {"old": OTHER, "new": SENDS, "limit": 5}),),
             lambda answer: [answer["facts"]["bytes"]["difference"], answer["facts"]["peak_memory"]["difference"]],
             lambda: [totals().bytes.difference, totals().peak_memory.difference], (f"diff $corpus/{OTHER} $corpus/{SENDS} --limit 5",),
             lambda: [f"{totals().bytes.difference:+,}", f"{totals().peak_memory.difference:+,}"], None),
    Question("Which operation took the longest in the measurement?", (("measured", {"trace": TRACE, "limit": 3}),),
             first("name", "total_seconds"), lambda: [timed()[0], timed()[1].total_seconds], ("show $trace --limit 3",),
             lambda: [timed()[0], f"{timed()[1].total_seconds * 1e6:.3g} µs"], None),
    Question("Which lint findings are worth fixing?", opened("tpu/conversions.v5e_2x2x1.after_optimizations.txt", on("findings")),
             lambda answer: [answer["total"], answer["facts"]["by_code"]],
             lambda: [len(found()), {f.code: sum(g.code == f.code for g in found()) for f in found()}],
             ("lint $corpus/tpu/conversions.v5e_2x2x1.after_optimizations.txt",), lambda: [f.code for f in found()], None),
)  # fmt: skip


def found() -> list[hlo.Finding]:
    return list(lint.run(module("tpu/conversions.v5e_2x2x1.after_optimizations.txt")))


def unpack(target: Path) -> dict[str, str]:
    """Lays the dump folder out; the words of command lines and where they lead."""
    with tarfile.open(DUMPS / f"{DUMP}.tar.xz") as archive:
        archive.extractall(target / DUMP, filter="data")
    return {
        "$corpus": str(ROOT / "corpus"),
        "$dump": str(target / DUMP),
        "$trace": str(ROOT / "tests/data/proto" / TRACE),
        "$body": body().name,
    }


def filled(text: str, words: Mapping[str, str]) -> str:
    """A command line with its paths."""
    return re.sub("|".join(map(re.escape, words)), lambda match: words[match[0]], text)


async def answered(client: Any, question: Question, words: Mapping[str, str]) -> tuple[list[Any], int]:
    """The figures of the last answer, and the characters of all answers."""
    names, size, content = {"$body": words["$body"]}, 0, {}
    for tool, arguments in question.calls:
        given = {
            key: names.get(value, value) if isinstance(value, str) else value
            for key, value in arguments.items()
        }
        result = await client.call_tool(tool, given)
        size += sum(len(part.text) for part in result.content)
        assert not result.is_error, result.content
        content = result.structured_content
        names.setdefault("$module", content["facts"].get("module", ""))
    return question.look(content), size


def printed(question: Question, words: Mapping[str, str]) -> str:
    """What the command lines print."""
    out = ""
    for line in question.lines:
        result = CliRunner().invoke(main, shlex.split(filled(line, words)))
        assert result.exit_code in (0, 1), result.output
        out += result.stdout
    return out


def grepped(question: Question) -> int | None:
    """Characters that grep prints; None where the text does not hold the answer."""
    if question.grep is None:
        return None
    pattern, name = question.grep
    text = (ROOT / "corpus" / name).read_text("utf-8")
    return sum(len(line) + 1 for line in text.split("\n") if re.search(pattern, line))


async def table() -> list[tuple[str, int, int, int, int | None]]:
    """Question, calls, characters of the answers, of the commands, of grep."""
    from mcp import Client

    from hlotext.mcp import make_server

    rows = []
    with tempfile.TemporaryDirectory() as name:
        words = unpack(Path(name).resolve())
        server = make_server([ROOT / "corpus", Path(name), ROOT / "tests/data/proto"])
        async with Client(server) as client:
            for question in QUESTIONS:
                _, size = await answered(client, question, words)
                rows.append(
                    (
                        question.text,
                        len(question.calls),
                        size,
                        len(printed(question, words)),
                        grepped(question),
                    )
                )
    return rows


def as_markdown(rows: list[tuple[str, int, int, int, int | None]]) -> str:
    """The table of the documentation."""
    out = io.StringIO()
    print(
        "| question | calls | characters, `hlotext mcp` | characters, commands | characters, grep |", file=out
    )
    print("|---|---|---|---|---|", file=out)
    for text, calls, size, shown, searched in rows:
        print(
            f"| {text} | {calls} | {size:,} | {shown:,} | {'not in the text' if searched is None else f'{searched:,}'} |",
            file=out,
        )
    return out.getvalue()


if __name__ == "__main__":
    sys.stdout.write(as_markdown(asyncio.run(table())))
