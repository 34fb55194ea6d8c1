"""Pages that are made from hlotext's tables: opcodes, attributes, codes, columns, passes, commands. Sphinx extension.

They come from what the commands print as JSON, so that a page and a command never differ, and are written below
`docs/tables/` when a build begins.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from sphinx.application import Sphinx

from hlotext.cli import COMMANDS, main
from hlotext.ir.tables.attributes import ATTRIBUTES, HEADER_ATTRIBUTES
from hlotext.tables import SCHEMA_VERSION, TABLES
from hlotext.view import accuracy

FOLDER = Path(__file__).parents[1] / "tables"
_GROUPS = {
    "X": "Reading",
    "V": "Verifier",
    "C": "Communication",
    "D": "Types and precision",
    "G": "General",
    "K": "Constants",
    "L": "Layouts",
    "M": "Memory",
    "S": "Schedule",
    "T": "Time",
}


def output(*arguments: str) -> str:
    """What a command prints."""
    result = CliRunner().invoke(main, list(arguments), prog_name="hlotext", terminal_width=88)
    if result.exit_code:
        raise RuntimeError(f"hlotext {' '.join(arguments)} failed: {result.stderr or result.exception}")
    return result.stdout


def data(*arguments: str) -> Any:
    """What a command prints as JSON."""
    return json.loads(output(*arguments, "--format", "json"))


def cell(text: object) -> str:
    """Text for a cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    names = list(head)
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return "\n".join(lines)


def tree(entries: Iterable[str]) -> str:
    """A table of contents."""
    return "```{toctree}\n:hidden:\n\n" + "\n".join(entries) + "\n```\n"


def write(name: str, text: str) -> None:
    """One page, rewritten only if it has changed, so that a second build is short."""
    path = FOLDER / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def opcode_pages() -> None:
    """One page for each opcode, and the list by family."""
    rows = data("help", "opcode")["opcodes"]
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        families.setdefault(row["family"], []).append(row)
        write(f"opcodes/{row['name']}", _opcode(row))
    parts = ["# Opcodes\n", f"The {len(rows)} opcodes of HLO, as listed by `hlotext help opcode`.\n"]
    for family, members in families.items():
        parts.append(f"## {family.capitalize()}\n")
        parts.append(
            table(["opcode", ""], [[f"[{r['name']}]({r['name']}.md)", r["doc"]] for r in members]) + "\n"
        )
    parts.append(tree(row["name"] for row in rows))
    write("opcodes/index", "\n".join(parts))


def _opcode(row: dict[str, Any]) -> str:
    parts = [f"# {row['name']}\n", row["doc"] + "\n", f"```hlo\n{row['example']}\n```\n"]
    operands = row["operands"]
    count = operands["count"] if isinstance(operands, dict) else operands
    parts.append(f"Family: {row['family']}. Operands: {count}. Shape rule: `{row['shape_rule']}`.\n")
    if row["attributes"]:
        parts.append("## Attributes\n")
        parts.append(
            table(
                ["attribute", "", "printed", "default", "meaning"],
                [
                    [
                        f"[`{a['name']}`](../attributes.md)",
                        "required" if a["required"] else "",
                        a["printed"].replace("_", " "),
                        f"`{a['default']}`" if a["default"] is not None else "",
                        ATTRIBUTES[a["name"]].doc if a["name"] in ATTRIBUTES else "",
                    ]
                    for a in row["attributes"]
                ],
            )
            + "\n"
        )
    common = ", ".join(f"`{a['name']}`" for a in row["common_attributes"])
    parts.append(f"In addition, as for every instruction: {common}.\n")
    return "\n".join(parts)


def attribute_page() -> None:
    """The attributes of instructions and of the header."""
    parts = ["# Attributes\n"]
    for title, rows in (("Of instructions", ATTRIBUTES), ("Of the module's header", HEADER_ATTRIBUTES)):
        parts.append(f"## {title}\n")
        cells = [[f"`{row.name}`", row.value, row.doc] for row in rows.values()]
        parts.append(table(["attribute", "value", "meaning"], cells) + "\n")
    write("attributes", "\n".join(parts))


def code_pages() -> None:
    """One page for each code of a finding."""
    rules = data("help", "rule")["codes"]
    groups: dict[str, list[dict[str, Any]]] = {}
    for rule in rules:
        groups.setdefault(rule["code"][0], []).append(rule)
        write(f"codes/{rule['code']}", _hlo_blocks(rule["page"]))
    parts = [
        "# Codes of findings\n",
        "Codes of the findings of `hlotext check`, `verify` and `lint`; `hlotext help rule CODE` shows these pages.\n",
    ]
    for letter, members in groups.items():
        parts.append(f"## {_GROUPS.get(letter, letter)}\n")
        parts.append(
            table(
                ["code", "severity", ""],
                [[f"[{r['code']}]({r['code']}.md)", r["severity"], r["title"]] for r in members],
            )
            + "\n"
        )
    parts.append(tree(rule["code"] for rule in rules))
    write("codes/index", "\n".join(parts))


def _hlo_blocks(page: str) -> str:
    """A page whose blocks of op lines are coloured: those without a language that look like HLO."""

    def language(match: re.Match[str]) -> str:
        is_hlo = re.search(r" = .*\[|^HloModule|^ENTRY|^%?[\w.\-]+ = ", match[1], re.MULTILINE)
        return f"```{'hlo' if is_hlo else 'text'}\n{match[1]}```"

    return re.sub(r"^```\n(.*?)^```", language, page, flags=re.DOTALL | re.MULTILINE)


def pass_page() -> None:
    """The passes of `hlotext rewrite`."""
    rows = data("passes")["passes"]
    cells = [
        [f"`{row['name']}`", row["summary"], ", ".join(f"`{k}={v}`" for k, v in row["options"].items())]
        for row in rows
    ]
    text = [
        "# Passes\n",
        "Passes for `hlotext rewrite -p NAME` and `rewrite.parse_passes`; `hlotext help pass NAME` shows details.\n",
    ]
    write("passes", "\n".join([*text, table(["pass", "what it does", "options"], cells), ""]))


def command_pages() -> None:
    """The help of each command."""
    for name in COMMANDS:
        shown = output(name, "--help")
        parts = [f"# hlotext {name}\n", f"{COMMANDS[name]}\n", f"```text\n{shown.rstrip()}\n```\n"]
        parts += _subcommands(name)
        write(f"commands/{name}", "\n".join(parts))
    rows = [[f"[`hlotext {name}`]({name}.md)", doc] for name, doc in COMMANDS.items()]
    text = ["# Commands\n", table(["command", ""], rows) + "\n", tree(COMMANDS)]
    write("commands/index", "\n".join(text))


def _subcommands(name: str) -> list[str]:
    import importlib

    command = importlib.import_module(f"hlotext.cli.{name}").command
    parts = []
    for inner in getattr(command, "commands", {}):
        parts.append(f"## hlotext {name} {inner}\n")
        parts.append(f"```text\n{output(name, inner, '--help').rstrip()}\n```\n")
    return parts


def column_page() -> None:
    """The tables that `hlotext.tables` makes of modules."""
    parts = [
        "# Columns of the tables\n",
        f"Tables that [`hlotext.tables`](../tables.md) creates, version {SCHEMA_VERSION}. `word` is a string that is "
        "dictionary-encoded, `text` one that is not; a type with `?` may be null.\n",
    ]
    for schema in TABLES.values():
        parts.append(f"## {schema.name}\n\n{schema.doc}{'' if schema.is_basic else ' On demand.'}\n")
        rows = [
            [f"`{c.name}`", f"`{c.type}{'?' if c.is_nullable else ''}`", c.unit, c.doc]
            for c in schema.columns
        ]
        parts.append(table(["column", "type", "unit", ""], rows) + "\n")
    write("columns", "\n".join(parts))


_ANSWERS = {
    "texts": "texts read, printed back and verified",
    "memory": "offsets in memory",
    "thunks": "thunks",
    "cost": "XLA's cost figures",
    "passes": "recorded steps of passes",
}


def compatibility_page() -> None:
    """Releases of XLA that hlotext was compared with: `python -m tests.xla_release VERSION --record` measures a row."""
    releases = json.loads(
        (FOLDER.parents[1] / "tests" / "data" / "releases.json").read_text(encoding="utf-8")
    )
    rows = [
        [version, platform, *(_share(row["scores"].get(answer)) for answer in _ANSWERS)]
        for version, platforms in releases.items()
        for platform, row in platforms.items()
    ]
    write(
        "compatibility",
        "# Releases of XLA\n\n"
        "Programs of the corpus were compiled with each release, and hlotext's results compared with what XLA wrote "
        "next to the text: the number that are equal, and the number compared. Memory, thunks and cost count compilations; a "
        "compilation with one difference is not equal. `-`: XLA writes nothing to compare with, or hlotext models another "
        "analysis.\n\n" + table(["jaxlib", "platform", *_ANSWERS.values()], rows),
    )


def accuracy_page() -> None:
    """How often each answer was XLA's: what `python -m tests.accuracy` made of the output of the acceptance checks."""
    titles, lines = accuracy.table(accuracy.rows())
    seen: set[str] = set()
    cells = []
    for answer, *rest in lines:
        first = answer not in seen
        seen.add(answer)
        cells.append([f'<a id="{accuracy.anchor(answer)}"></a>{answer}' if first else answer, *rest])
    write(
        "accuracy",
        "# How often results equal XLA's\n\n"
        "Each result was compared with XLA's own, on programs compiled for this purpose: the number that are equal, and the "
        "number compared. `all`: all platforms together; `-`: not measured. Estimates elsewhere link to this page. Whole "
        "compilations by release are in [releases of XLA](compatibility.md).\n\n"
        + table(titles, cells)
        + "\n",
    )


def _share(score: list[int] | None) -> str:
    return "-" if score is None else f"{score[0]:,} of {score[1]:,}"


PAGES: tuple[Callable[[], None], ...] = (
    opcode_pages,
    attribute_page,
    code_pages,
    column_page,
    compatibility_page,
    accuracy_page,
    pass_page,
    command_pages,
)


def make(app: Sphinx) -> None:
    """Writes all pages. Those of a former build that are not made any more go away."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for page in PAGES:
        page()


_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def code(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings write code between single backticks, as Markdown does; for Sphinx it takes two."""
    lines[:] = _CODE.sub(r"``\1``", "\n".join(lines)).split("\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("builder-inited", make)
    app.connect("autodoc-process-docstring", code)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
