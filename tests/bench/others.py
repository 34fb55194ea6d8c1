"""What `python -m tests.bench.linearity --stages` measures besides texts: folders, protos, edits, and commands without any.

Each is made ready for a size outside of the time measured.
"""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import hlotext as hlo
from hlotext import diff, proto, rewrite
from hlotext.compiler.models import MODELS
from hlotext.edit.cloning import clone_computation
from tests import cli_support
from tests.bench import edits, kinds

Ready = AbstractContextManager[Callable[[], Any]]
"""Gives the function that is measured."""


def _command(*arguments: str | Path, text: str | None = None) -> str:
    result = cli_support.run(*arguments, input=text)
    if "internal error" in result.stderr or result.exit_code not in (0, 1):
        raise AssertionError(f"{arguments}: exit status {result.exit_code}: {result.stderr.strip()[-300:]}")
    return result.stdout


@contextmanager
def _plain(run: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    yield run


# ---- folders of a compilation


def _steps(folder: Path, count: int, text: Callable[[int], str]) -> None:
    """The files of so many passes, and the texts before and after them all."""
    (folder / "module_0001.jit_f.before_optimizations.txt").write_text(text(0))
    for number in range(1, count):
        name = f"module_0001.jit_f.{number:04d}.passes.after_pass-{number}.before_pass-{number + 1}.txt"
        (folder / name).write_text(text(number))
    (folder / "module_0001.jit_f.cpu_after_optimizations.txt").write_text(text(count))


def _step(number: int) -> str:
    """A short module of which each step changes one operation."""
    lines = kinds.each(8, '  %x# = f32[4] add(%x#-, %p), metadata={op_name="jit(f)/a#"}\n', 1)
    lines = f"  %x0 = f32[4] sine(%p)\n{lines}".replace(
        f"add(%x{number % 7}, %p)", f"multiply(%x{number % 7}, %p)"
    )
    return kinds.entry(lines, "negate(%x7)", head="HloModule jit_f\n\n")


def _wide_step(n: int, number: int) -> str:
    line = '  %x# = f32[4] add(%x#-, %p), metadata={op_name="jit(f)/a#"}'
    text = kinds.chained(n, line, head="HloModule jit_f\n\n")
    return text.replace(f"%x{number + 1} = f32[4] add", f"%x{number + 1} = f32[4] multiply")


def _folder(line: str, is_wide: bool, n: int) -> Ready:
    @contextmanager
    def prepared() -> Iterator[Callable[[], Any]]:
        with tempfile.TemporaryDirectory() as place:
            _steps(Path(place), 4 if is_wide else n, functools.partial(_wide_step, n) if is_wide else _step)
            words = [place if word == "DIR" else word for word in line.split()]
            yield lambda: _command(*words)

    return prepared()


# ---- two steps


def _explained(name: str, platform: str, kind: str, n: int) -> Ready:
    @contextmanager
    def prepared() -> Iterator[Callable[[], Any]]:
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "m.txt"
            path.write_text(kinds.MODULES[kind][1](n))
            yield lambda: _command(
                "explain", path, path, "--pass", name, "--platform", platform, "--format", "json"
            )

    return prepared()


def _reduced(n: int) -> Ready:
    """The smallest module with a sine in it."""
    module = hlo.parse(kinds.MODULES["a chain"][1](n))

    def fails(smaller: hlo.Module) -> bool:
        return any(i.opcode == "add" for i in smaller.instructions())

    return _plain(lambda: rewrite.reduce(module, fails, 60))


# ---- protos


def _written(kind: str, n: int) -> Ready:
    module = hlo.parse(kinds.MODULES[kind][1](n))
    return _plain(module.to_proto)


def _read(kind: str, n: int) -> Ready:
    data = hlo.parse(kinds.MODULES[kind][1](n)).to_proto()

    def run() -> None:
        proto.read_module(data).materialize()

    return _plain(run)


def _jsoned(n: int) -> Ready:
    data = hlo.parse(kinds.MODULES["a chain"][1](n)).to_proto()
    return _plain(lambda: proto.from_json(proto.to_json(data)))


def _shown(n: int) -> Ready:
    @contextmanager
    def prepared() -> Iterator[Callable[[], Any]]:
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "m.pb"
            path.write_bytes(hlo.parse(kinds.MODULES["a chain"][1](n)).to_proto())
            yield lambda: (_command("show", path), _command("convert", path, "-o", f"{place}/m.txt"))

    return prepared()


# ---- edits


def _edited(prepare: Callable[[int], Callable[[], object]], n: int) -> Ready:
    return _plain(prepare(n))


def moves(count: int) -> Callable[[], None]:
    """Each of n constants moved behind the one in front of it."""
    instructions = hlo.parse(kinds.MODULES["constants"][1](count)).entry.instructions

    def edit() -> None:
        for number in range(2, count):
            rewrite.move_after(instructions[number - 1], instructions[number])

    return edit


def removals(count: int) -> Callable[[], None]:
    module = hlo.parse(kinds.MODULES["unused lines"][1](count))

    def edit() -> None:
        for instruction in module.entry.instructions:
            if instruction.opcode == "sine":
                module.entry.remove(instruction)

    return edit


def replaced(count: int) -> Callable[[], None]:
    """Each of n instructions replaced by a new one, which a wide tuple takes."""
    found = hlo.parse(kinds.MODULES["one user"][1](count)).entry.root.operands

    def edit() -> None:
        for instruction in found:
            instruction.replace_with(rewrite.Builder.before(instruction).sine(instruction.operands[0]))

    return edit


def inlined(count: int) -> Callable[[], None]:
    module = hlo.parse(kinds.MODULES["calls of others"][1](count))

    def edit() -> None:
        for instruction in module.entry.instructions:
            if instruction.opcode == "call":
                rewrite.inline(instruction)

    return edit


def outlined(count: int) -> Callable[[], object]:
    module = hlo.parse(kinds.MODULES["a chain"][1](count))
    return lambda: rewrite.outline(module.entry.instructions[count // 4 : count // 2], "part")


def outlined_one_by_one(count: int) -> Callable[[], None]:
    module = hlo.parse(kinds.MODULES["a chain"][1](count))

    def edit() -> None:
        for number, instruction in enumerate(module.entry.instructions[1:-1]):
            rewrite.outline([instruction], f"part.{number}")

    return edit


def shapes(count: int) -> Callable[[], object]:
    """Another shape at the head of a chain, which goes through all of it."""
    module = hlo.parse(kinds.MODULES["copies"][1](count))
    first = module.entry.instructions[0]
    return lambda: rewrite.change_shape(first, rewrite.shape_of("f32", (8,)))


def imports(count: int) -> Callable[[], None]:
    module = hlo.parse(kinds.MODULES["calls of others"][1](count))
    target = hlo.parse(kinds.MODULES["a chain"][1](8))

    def edit() -> None:
        for computation in module.computations[:-1]:
            rewrite.import_computation(target, computation)

    return edit


def copies(count: int) -> Callable[[], None]:
    module = hlo.parse(kinds.MODULES["calls of others"][1](count))

    def edit() -> None:
        for computation in module.computations[:-1]:
            clone_computation(computation)

    return edit


def undone(count: int) -> Callable[[], None]:
    """A transaction of n edits, taken back."""
    module = hlo.parse(kinds.MODULES["one user"][1](count))
    operands = module.entry.root.operands

    def edit() -> None:
        with module.transaction() as record:
            for number, instruction in enumerate(operands):
                module.entry.root.replace_operand(number, operands[number - 1])
                instruction.name = f"y.{number}"
        record.undo()

    return edit


EDITS: tuple[Callable[[int], Callable[[], object]], ...] = (
    *(prepare for prepare, _ in edits.ROWS), moves, removals, replaced, inlined, outlined, outlined_one_by_one, shapes,
    imports, copies, undone,
)  # fmt: skip


# ---- commands that take words


def _words(*line: str, word: str, n: int) -> Ready:
    return _plain(lambda: _command(*line, *[word] * n))


def _layouts(n: int) -> Ready:
    lines = "".join(f"f32[{17 + i},130]{{1,0:T(8,128)}}\n" for i in range(n))
    return _plain(lambda: _command("layout", "-", text=lines))


def _differing(kind: str, n: int) -> Ready:
    """Two modules of which one operation differs: equal texts are not looked into."""
    text = kinds.MODULES[kind][1](n)
    before, after = hlo.parse(text), hlo.parse(re.sub(r" sine\(", " cosine(", text, count=1))
    return _plain(lambda: list(diff.compare(before, after).changes))


DUMPS = (
    ("dump list DIR", 50, False),
    ("dump timeline DIR --all", 50, False),
    ("dump timeline DIR", 500, True),
    ("dump trace DIR -i x7", 50, False),
    ("dump trace DIR -i x9", 500, True),
    ("dump why DIR -i x7", 50, False),
    ("dump why DIR -i x9", 500, True),
    ("dump copies DIR", 50, False),
    ("dump copies DIR", 500, True),
)
EXPLAINED = (
    "a chain",
    "one user of equals",
    "many users of many",
    "fusions",
    "a wide loop",
    "loops",
    "tuples",
)


def _others() -> Iterator[tuple[str, str, int, Callable[[int], Ready]]]:
    for line, n, is_wide in DUMPS:
        yield line, "a wide module" if is_wide else "many steps", n, functools.partial(_folder, line, is_wide)
    for kind in (*EXPLAINED, "control"):
        if kind in kinds.MODULES:
            n = kinds.MODULES[kind][0] // 2
            yield "diff of one operation", kind, n, functools.partial(_differing, kind)
    for name, platform in MODELS:
        for kind in EXPLAINED:
            if kind in kinds.MODULES:
                n = kinds.MODULES[kind][0] // 2
                yield f"explain {name}", kind, n, functools.partial(_explained, name, platform or "gpu", kind)
    yield "reduce", "a chain", 50, _reduced
    for kind, (n, _) in kinds.MODULES.items():
        yield "proto: write", kind, n, functools.partial(_written, kind)
        yield "proto: read", kind, n, functools.partial(_read, kind)
    yield "proto: JSON and back", "a chain", 500, _jsoned
    yield "show, convert: proto", "a chain", 500, _shown
    for prepare in EDITS:
        yield f"edit: {prepare.__name__}", "", 500, functools.partial(_edited, prepare)
    yield "rule CODE ...", "", 200, lambda n: _words("rule", word="V101", n=n)
    yield "layout -", "shapes", 100, _layouts


OTHERS = tuple(_others())
"""What is done, with what, n, and what makes it ready for a size."""

FIXED = {
    "help": "prints help",
    "lsp": "tests.bench.lsp",
    "mcp": "serves an agent",
    "skill": "copies pages",
    "bisect": "its time is that of COMMAND",
    "bugreport": "its time is that of COMMAND",
    "run": "its time is jaxlib's",
}
"""Commands whose input has no size, or whose time is another program's."""
