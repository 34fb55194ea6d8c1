"""Makes `docs/explain/stages.md`: one program on its way through the compilers for CPU, GPU and TPU, in XLA's own texts.

    python docs/stages.py            # writes the page
    python docs/stages.py --check    # exit status 1 if the page is not what it would write

The dumps are those of the tests (`tests/data/dumps/*.mlp_train.tar.xz`): a training step of a small network.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from hlotext import compiler, dumps

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explain" / "stages.md"
PLATFORMS = {"cpu": "CPU", "gpu": "GPU (H100)", "tpu": "TPU (v5e)"}
OP_NAME = 'op_name="jit(train_step)/jvp(layer_1)/dot_general"'
"""The operation whose lines are shown: the matrix product of the second layer."""
_WIDTH = 150
_LINES = 3
_PASSES = 12
_SHOWN = re.compile(r", (metadata|backend_config|frontend_attributes|origin)=\{.*$")
HEAD = """# The stages of a compilation

<!-- made by docs/stages.py: do not edit -->

Between the program from a framework and the code on a device, XLA goes through the stages below. They are those of
XLA's own page "From HLO to thunks"; which pass belongs to which is hlotext's reading of what the passes do
(`hlotext.compiler.stages`). The program is one training step of a network with three layers, compiled three times; every text
here is in its dump folder, and `hlotext dump timeline` shows such a folder in the same way.

The page follows one operation: the matrix product of the second layer, `jvp(layer_1)/dot_general` in JAX's names.
Each stage lists the passes that changed the program (with the number of operations added and removed), and the lines of that
operation after the last of these passes. Stages interleave, so others may have run in between.

"""


def page() -> str:
    """The text of the page."""
    out = [HEAD]
    opened = {platform: next(iter(_open(platform))) for platform in PLATFORMS}
    rows = {platform: list(c.timeline()) for platform, c in opened.items()}
    for stage in compiler.stages:
        out.append(f"## {stage.title}\n\n{stage.what}\n\n")
        for platform, title in PLATFORMS.items():
            text = "".join(_of_stage(opened[platform], rows[platform], stage.name))
            if text:
                out.append(f"### {title}\n\n{text}")
    return "".join(out).rstrip() + "\n"


def _open(platform: str) -> dumps.DumpFolder:
    return dumps.open(ROOT / "tests" / "data" / "dumps" / f"{platform}.mlp_train.tar.xz")


def _of_stage(c: dumps.Compilation, rows: list[dumps.TimelineEntry], stage: str) -> Iterator[str]:
    """What one platform did in one stage."""
    own = [row for row in rows if row.step.stage == stage]
    active = [row for row in own if row.changes is not None and len(row.changes)]
    if active:
        yield "| pass | added | removed | changed | renamed |\n|---|---:|---:|---:|---:|\n"
        for row in active[:_PASSES]:
            found = row.changes
            assert found is not None
            numbers = (len(found.added), len(found.removed), len(found.changed), len(found.renamed))
            name = f"{row.step.pipeline} / {row.step.name}" if row.step.pipeline else row.step.name
            yield f"| `{name}` | {' | '.join(str(n or '') for n in numbers)} |\n"
        if len(active) > _PASSES:
            yield f"| and {len(active) - _PASSES} more | | | | |\n"
        yield "\n"
    elif own and own[-1].step.index:
        yield (
            f"{len(own)} steps, none of which changed anything.\n\n"
            if len(own) > 1
            else "1 step, which changed nothing.\n\n"
        )
    shown = own[-1] if active else own[0] if own and not own[0].step.index else None
    if shown is not None and (lines := list(_lines(shown.step))):
        yield from _block(lines)
    for file in c.files_of(*compiler.stages[stage].kinds):
        yield from _excerpt(file)


def _lines(step: dumps.Step) -> Iterator[str]:
    """The lines of the operation in a step."""
    for line in step.file.text().split("\n"):
        if OP_NAME in line:
            yield _SHOWN.sub("", line.strip())


def _block(lines: list[str]) -> Iterator[str]:
    yield "```text\n"
    for line in lines[:_LINES]:
        yield (line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}...") + "\n"
    if len(lines) > _LINES:
        yield f"... and {len(lines) - _LINES} more lines of this operation\n"
    yield "```\n\n"


_EXCERPTS = {
    "buffer-assignment": r"^ *(?:allocation \d+: .*|.*dot_general.*)$",
    "memory-usage": r"^.+$",
    "thunk-sequence": r"^.+$",
    "thunk-sequence-after": r"^.+$",
    "priority-fusion": r"^.+$",
    "compiler-metadata": r"^.+$",
    "shardy": r"^.*func.func.*$",
    "input-module": r"^.*stablehlo.dot_general.*$",
}
"""The first lines of which kinds of files are shown."""
_FROM_FILE = 5


def _excerpt(file: dumps.DumpFile) -> Iterator[str]:
    """The first lines of a file that tell something."""
    expression = _EXCERPTS.get(file.kind)
    if expression is None:
        return
    found = re.findall(expression, file.text(), re.MULTILINE)
    if found:
        yield f"In `{file.name.suffix}`:\n\n```text\n"
        for line in found[:_FROM_FILE]:
            short = " ".join(line.split()) if file.kind == "input-module" else line.rstrip()
            yield (short if len(short) <= _WIDTH else f"{short[: _WIDTH - 3]}...") + "\n"
        yield "```\n\n" if len(found) <= _FROM_FILE else "...\n```\n\n"


def main(arguments: list[str]) -> int:
    """Writes the page, or compares it."""
    text = page()
    if "--check" in arguments:
        return 0 if PAGE.exists() and PAGE.read_text("utf-8") == text else 1
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
