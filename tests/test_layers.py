"""The layers that ARCHITECTURE.md lists: packages import only from layers below, late imports included."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.syntax.source import limits
from tests.support import DATA, ROOT

PACKAGE = ROOT / "hlotext"
FLOORS = (
    *(
        "ir",
        "layout",
        "findings",
        "messages",
        "semantics",
        "edit",
        "textproto",
        "syntax",
        "proto",
        "verify",
        "analysis",
        "schemas",
    ),
    *(
        "memory",
        "cost",
        "thunks",
        "matchers",
        "rewrite",
        "execution",
        "reports",
        "dumps",
        "bugreport",
        "diff",
        "lint",
        "triage",
        "tables",
    ),
)
"""Rooms from the ground up; every other room stands above all of these."""
INNER_FLOORS = {
    "ir": (
        "errors",
        "spelling",
        "foreign_name_tables",
        "short_names",
        "foreign_names",
        "missing_names",
        "misfits",
        "arguments",
        "lazy_imports",
        "gc_control",
        "caches",
        "values",
        "tables",
        "nodes",
    ),
    "syntax": (
        *("source", "language", "hints", "literals", "reading", "checks", "module_checks"),
        *("linking", "fast", "recovery", "lazy"),
    ),
}
"""Inner rooms of a room from the ground up; its other files, which are its doors, stand above all of these."""
PRIVATE = {
    "rewrite/passes": {
        "_attributes",
        "_computation_names",
        "_computations",
        "_instruction_names",
        "_instructions",
    }
}
"""Private attributes of nodes that a room still uses."""
SHORT = {
    "lint.table",  # of the documentation
    "__main__",  # `python -m hlotext`
    "dumps.notes",  # what every reader of a folder gives
    "edit.names",  # asked by the gate and by every pass that makes names
    "execution.errors",  # raised in every file of the room
    "findings.codes",  # what every table of codes is made of
    "ir.lazy_imports",  # used by every room
    "ir.nodes.expected",  # asked by the functions of most rooms
    "ir.files",
    "ir.errors",
    "ir.tables.opcode_rows.examples",
    "ir.values.left_out",  # made by readers, kept by the gate
    "ir.values.value",  # what every value is
    "layout.permutations",  # plain numbers, without shapes
    "memory.errors",  # raised in every file of the room
    "reports.report",  # what every writer gets
    "rewrite.kit.limits",  # asked by passes that take nothing else of the kit
    "rewrite.kit.opcode_methods",  # beside its generated stub
    "semantics.infer.errors",  # raised in every file of the room
    "semantics.message_text",  # said in the messages of every file
    "tables.encodings",  # what Parquet is told, apart from what tells it
    "tables.figures",  # names that commands and reports show without reading a dataset
    "tables.errors",  # raised in every file of the room
    "tables.rows.costs",  # one table
    "testing.filecheck",  # needs a package of its own
}
"""Files of fewer than thirty lines, and why they are files."""
LINES = (
    "add.936 = bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)} add(exponential.183, broadcast.3115)",
    "%fusion.3 = bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)} "
    "fusion(bf16[32,32,8192]{2,1,0:T(8,128)(2,1)S(1)} %fusion.32), kind=kCustom, calls=%all-reduce-scatter.3",
)


def imported(path: Path, prefix: str = "hlotext.") -> Iterator[str]:
    """The rooms of hlotext, or of one of its rooms, that a file imports from, wherever in the file it does so."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name.removeprefix(prefix).split(".")[0] for name in names if name.startswith(prefix))


@pytest.mark.parametrize("room", FLOORS)
def test_a_room_imports_only_from_below(room: str) -> None:
    """One-way arrows between the rooms."""
    above = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - set(FLOORS[: FLOORS.index(room) + 1])
    for path in sorted((PACKAGE / room).rglob("*.py")):
        assert not above.intersection(imported(path)), path


@pytest.mark.parametrize(
    ("room", "inner"), [(room, inner) for room in INNER_FLOORS for inner in INNER_FLOORS[room]]
)
def test_an_inner_room_imports_only_from_below(room: str, inner: str) -> None:
    """One-way arrows between the inner rooms of a room, and none to the files that are its doors."""
    floors = INNER_FLOORS[room]
    allowed = floors[: floors.index(inner) + 1]
    place = PACKAGE / room / inner
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
        assert not set(imported(path, f"hlotext.{room}.")).difference(allowed), path


def test_printing_does_not_know_the_readers() -> None:
    """It takes limits from them, and nothing else; nor does what XLA makes of a text."""
    for path in sorted((PACKAGE / "syntax" / "printing").rglob("*.py")):
        assert set(imported(path, "hlotext.syntax.")) <= {"printing", "source"}, path
    for path in sorted((PACKAGE / "syntax" / "reread").rglob("*.py")):
        assert set(imported(path, "hlotext.syntax.")) <= {"reread"}, path


@pytest.mark.parametrize("room", ["lint", "reports", "verify/checks", "rewrite/passes"])
def test_private_attributes_stay_in_their_room(room: str) -> None:
    """Code that plugins and contributors take as examples uses nodes and values by their public names."""
    used: set[str] = set()
    own: set[str] = set()
    for path in (PACKAGE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AnnAssign | ast.Assign):
                targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", ())
                own |= {ast.unparse(target).removeprefix("self.") for target in targets}
                own.add(getattr(node, "name", ""))
            if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
                used.add(node.attr)
    assert used - own - PRIVATE.get(room, set()) == set()


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of hlotext with its file."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def imports(path: Path, known: Collection[str]) -> Iterator[tuple[str, bool]]:
    """The modules of hlotext that a file imports when it runs, and whether a function does; not what only types need."""
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    while waiting:
        node, is_late = waiting.pop()
        is_late = is_late or isinstance(node, ast.FunctionDef)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += [(child, is_late) for child in node.orelse]
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (whole if whole in known else node.module), is_late
        elif isinstance(node, ast.Import):
            yield from ((alias.name, is_late) for alias in node.names)
        waiting += [(child, is_late) for child in ast.iter_child_nodes(node)]


def test_no_circle_of_files() -> None:
    """Not even through imports inside functions. What a door opens is a file of its own room."""
    known = modules()
    arrows = {
        name: {target for target, _ in imports(path, known) if target in known and target != name}
        for name, path in known.items()
    }
    assert [name for name in arrows if name in reached(arrows, name)] == []


def reached(arrows: Mapping[str, set[str]], start: str) -> set[str]:
    """Nodes reachable over one arrow or more."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = arrows[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_imports_inside_functions_are_listed() -> None:
    """Each is on the list because start-up needs it; most rooms have doors instead (`hlotext.ir.lazy_imports`)."""
    known = modules()
    found = {
        f"{name.removeprefix('hlotext.')} -> {target.removeprefix('hlotext.')}"
        for name, path in known.items()
        for target, is_late in imports(path, known)
        if is_late and target in known
    }
    assert len(found) <= 25
    assert found == {
        line for line in (DATA / "imports" / "late.txt").read_text().splitlines() if line[0] != "#"
    }


def _typing_blocks(tree: ast.Module) -> Iterator[ast.AST]:
    for node in tree.body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from node.body


def _only_typed(tree: ast.Module, within: Collection[ast.AST]) -> set[str]:
    """Names that a module imports for types alone."""
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names[node in within] |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in within:
            names[False].add(node.id)
    return names[True] - names[False]


def _annotations(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from filter(None, (node.returns,))
        elif isinstance(node, ast.arg | ast.AnnAssign):
            yield from filter(None, (node.annotation,))


def test_what_is_imported_for_types_is_not_used() -> None:
    """Also under a second name, `read as read`, of which ruff thinks that others use it: a door opens for others only."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        within = {one for block in _typing_blocks(tree) for one in ast.walk(block)}
        names = _only_typed(tree, within)
        typed = within | {one for annotation in _annotations(tree) for one in ast.walk(annotation)}
        found += [
            f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.id}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id in names and node not in typed
        ]
    assert found == []


def test_folders_of_passes_are_small() -> None:
    """A family of passes is read as a list."""
    sizes = {
        str(folder.relative_to(PACKAGE)): len(list(folder.glob("*.py")))
        for folder in (PACKAGE / "rewrite").rglob("*")
        if folder.is_dir()
    }
    assert {name: size for name, size in sizes.items() if size > 25} == {}


def test_short_files_are_short_by_design() -> None:
    """A file is a chapter, of thirty lines or more, unless it is one of many alike, or what a room is."""
    short = {
        name.removeprefix("hlotext.")
        for name, path in modules().items()
        if path.name != "__init__.py" and len(path.read_text("utf-8").splitlines()) < 30
    }
    assert {name for name in short if not name.startswith(("lint.rules.", "verify.checks."))} <= SHORT


@pytest.mark.parametrize("line", LINES)
def test_a_pasted_line_answers_and_prints_back(line: str) -> None:
    """The op lines that people ask about first."""
    instruction = hlo.parse_instruction(line)
    assert str(instruction) == line
    assert instruction.shape is not None
    assert instruction.shape.layout is not None
    assert [str(tile) for tile in instruction.shape.layout.tiles] == ["(8,128)", "(2,1)"]
    assert all(operand.computation is instruction.computation for operand in instruction.operands)


def test_a_pasted_fusion_knows_what_it_calls() -> None:
    """Kind, callee, operand shape and memory space."""
    fusion = hlo.parse_instruction(LINES[1])
    assert fusion.attributes["kind"] == "kCustom"
    assert [callee.name for callee in fusion.called_computations] == ["all-reduce-scatter.3"]
    assert str(fusion.operands[0].shape) == "bf16[32,32,8192]{2,1,0:T(8,128)(2,1)S(1)}"
    assert fusion.shape is not None
    assert fusion.shape.layout is not None
    assert fusion.shape.layout.memory_space == 1


@pytest.mark.parametrize("name", [name for name in vars(limits) if name.startswith("MAX_")])
def test_every_limit_is_documented(name: str) -> None:
    """The table of limits in the README of syntax has each of them with its value."""
    text = (PACKAGE / "syntax" / "README.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{name}` \| ([0-9,]+)( GiB)?", text, re.MULTILINE)
    assert int(row[0].replace(",", "")) << (30 if row[1] else 0) == getattr(limits, name)


def test_texts_are_written_in_one_place() -> None:
    """Python would write other line ends on Windows (`Path.write_text`, `open(..., "w")`)."""
    written = re.compile(r"\.write_text\(|open\([^()]*[\"'][wax]t?\+?[\"']")
    found = [path for path in PACKAGE.rglob("*.py") if written.search(path.read_text("utf-8"))]
    assert found == []
