"""What the tables hold: one row for each column, with its type, its unit and what it says.

The version goes up when a column goes, changes its type or its meaning; columns that come do not change it. It stands in the
metadata of every Arrow schema (`hlotext.schema_version`) and in the table `modules`.
"""

from __future__ import annotations

from typing import Literal, get_args

import attrs

from hlotext.tables.errors import TableError

SCHEMA_VERSION = 1

Type = Literal[
    "word",
    "text",
    "bool",
    "int16",
    "int32",
    "int64",
    "float64",
    "timestamp",
    "list<int32>",
    "list<int64>",
    "list<text>",
]
"""Arrow's types: `word` is a string that is dictionary-encoded (int32 indices), `text` one that is not, `timestamp` counts
microseconds in UTC."""
TYPES: tuple[str, ...] = get_args(Type)


@attrs.frozen
class Column:
    """One column of a table."""

    name: str
    type: Type
    doc: str
    unit: str = ""
    """`bytes`, `operations`, ...; empty for what is no quantity."""
    is_nullable: bool = False


@attrs.frozen
class TableSchema:
    """One table."""

    name: str
    doc: str
    """What a row stands for."""
    columns: tuple[Column, ...]
    is_basic: bool = False
    """Whether it is made unless others are asked for: it costs about as much as reading the text."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)


def _column(name: str, kind: Type, doc: str, unit: str = "") -> Column:
    """A column; a type with `?` may be null."""
    return Column(name, kind, doc, unit)


def _nullable(name: str, kind: Type, doc: str, unit: str = "") -> Column:
    return Column(name, kind, doc, unit, is_nullable=True)


_MODULE = _column("module", "word", "The key of the module; the same in all tables.")
_ID = _column("id", "int64", "The instruction: its row in `instructions` among those of its module, from 0.")
_SOME_ID = _nullable(
    "id", "int64", "The instruction: its row in `instructions`; null where the text has none of that name."
)

TABLES: dict[str, TableSchema] = {
    table.name: table
    for table in (
        TableSchema(
            "modules",
            "One text that was read, or could not be.",
            (
                _MODULE,
                _nullable(
                    "name", "text", "The module's name in its header; null where it could not be read."
                ),
                _column(
                    "path",
                    "text",
                    "The file that it was read from; empty for a module that was built or parsed.",
                ),
                _nullable(
                    "sha256", "text", "SHA-256 of the text, in hexadecimal digits; null for what is no text."
                ),
                _nullable(
                    "text_bytes", "int64", "Size of the text, unpacked; null for what is no text.", "bytes"
                ),
                _nullable(
                    "modified", "timestamp", "When the file was last changed; null where that is not known."
                ),
                _nullable(
                    "build", "word", "The build that the dump is of, as it was given; null where none was."
                ),
                _nullable(
                    "version",
                    "text",
                    "What changes when the file does: its tag, or size and time; null where unknown.",
                ),
                _column(
                    "status",
                    "word",
                    "`ok`; `unreadable` where the text is at fault, `failed` where anything else is: then nothing else is known.",
                ),
                _nullable("error", "text", "Why it could not be read; null where it could."),
                _nullable(
                    "backend", "word", "`cpu`, `gpu` or `tpu`, as the text tells; null where nothing tells."
                ),
                _nullable(
                    "stage", "word", "Of a dump folder's text its stage, as in `hlotext dump timeline`."
                ),
                _nullable("step", "int32", "Of a dump folder's text its place among the steps, from 0."),
                _nullable("pipeline", "word", "The pipeline of the pass that had just run."),
                _nullable(
                    "pass", "word", "The pass that had just run; at both ends what the file is called."
                ),
                _nullable(
                    "is_scheduled", "bool", "Whether instructions stand in the order in which they run."
                ),
                _nullable("num_partitions", "int64", "Devices that the program is partitioned over (SPMD)."),
                _nullable("replica_count", "int64", "Replicas of the program."),
                _nullable("computations", "int64", "Computations in the module."),
                _nullable("instructions", "int64", "Instructions in all of them."),
                _nullable("entry", "text", "The name of the entry computation."),
                _column("hlotext_version", "word", "The release that made the row."),
                _column("schema_version", "int32", "The version of the tables."),
            ),
            is_basic=True,
        ),
        TableSchema(
            "instructions",
            "One instruction, in the order of the text.",
            (
                _MODULE,
                _ID,
                _column("computation", "word", "The computation that holds it."),
                _column("ordinal", "int32", "Its place there, from 0."),
                _column("name", "text", "Its name, without `%`."),
                _column("opcode", "word", "XLA's opcode."),
                _column(
                    "label",
                    "word",
                    "The opcode with the kind of a fusion, the target of a custom call, or what an `async-start` runs.",
                ),
                _nullable(
                    "shape", "word", "The result's shape with layouts; null where the text leaves it out."
                ),
                _nullable(
                    "dtype",
                    "word",
                    "The element type, such as `bf16`; `tuple` and `token` for what is no array.",
                ),
                _nullable(
                    "dims",
                    "list<int64>",
                    "Sizes of an array's dimensions; null for what is no array.",
                    "elements",
                ),
                _nullable(
                    "layout",
                    "word",
                    "An array's layout, such as `{1,0:T(8,128)}`; null where the text gives none.",
                ),
                _nullable(
                    "memory_space",
                    "int16",
                    "An array's memory space, 0 for the main memory; null for tuples.",
                ),
                _nullable(
                    "bytes", "int64", "The result without padding; null where a size is not known.", "bytes"
                ),
                _nullable(
                    "padded_bytes",
                    "int64",
                    "What its layouts ask for, padding included; null where a size is not known.",
                    "bytes",
                ),
                _column(
                    "written_bytes",
                    "int64",
                    "What it writes to memory of its own when it runs once, padding included: 0 for views, for the later "
                    "halves of asynchronous operations, and inside fusions and reducers.",
                    "bytes",
                ),
                _nullable(
                    "runs", "int64", "How often it runs in one run of the module; null where values decide."
                ),
                _column(
                    "operands",
                    "list<int64>",
                    "The ids of its operands; null for one that the text does not define.",
                ),
                _column("calls", "list<text>", "The computations that it calls, in XLA's order."),
                _column("is_root", "bool", "Whether its result is the computation's."),
                _column(
                    "op_name",
                    "word",
                    "The program's name of the operation, with scopes (metadata); empty for none.",
                ),
                _column("scope", "word", "Its scope, its own or inherited, as in `hlotext cost --by scope`."),
                _nullable(
                    "direction",
                    "word",
                    "`forward`, `backward` or `recomputed`; null for what is not differentiated.",
                ),
                _nullable(
                    "file",
                    "word",
                    "The file of its Python line, its own or inherited; null where none is near.",
                ),
                _nullable("line", "int32", "The line there, from 1."),
                _nullable("function", "word", "The function there; empty where the text does not tell."),
                _nullable(
                    "line_source",
                    "word",
                    "Where the line comes from: `own`, or what it is inherited from: `body`, `caller`, `user`, `producer`.",
                ),
                _nullable(
                    "text_line",
                    "int32",
                    "The line of the text where it stands, from 1; null for what no text has.",
                ),
            ),
            is_basic=True,
        ),
        TableSchema(
            "operands",
            "One operand of one instruction.",
            (
                _MODULE,
                _ID,
                _column("number", "int32", "Which operand, from 0."),
                _nullable(
                    "operand", "int64", "The id of what it takes; null where the text does not define it."
                ),
            ),
            is_basic=True,
        ),
        TableSchema(
            "attributes",
            "One attribute of one instruction, whatever its name: new attributes need no new column.",
            (
                _MODULE,
                _ID,
                _column("key", "word", "The attribute's name."),
                _column("value", "word", "Its value as XLA prints it."),
            ),
            is_basic=True,
        ),
    )
}
"""Every table by its name."""

BASIC: tuple[str, ...] = tuple(name for name, table in TABLES.items() if table.is_basic)
"""The tables that are made unless others are asked for."""


def chosen(names: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    """The names of the tables that are wanted, in the schema's order: of a list, `a,b`, `all`, or None for the basic ones.

    `basic` among them stands for all of these. Raises TableError for a name that is none.
    """
    if names is None:
        return BASIC
    given = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    wanted: set[str] = set()
    for one in given:
        if one == "all":
            wanted.update(TABLES)
        elif one == "basic":
            wanted.update(BASIC)
        elif one in TABLES:
            wanted.add(one)
        else:
            raise TableError(f"there is no table {one!r}: there are {', '.join(TABLES)}; all, basic")
    return tuple(name for name in TABLES if name in wanted)
