"""SQL over tables, by DuckDB, which reads nothing but these tables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

import attrs

from hlotext.ir.caches import lazy_regex
from hlotext.tables.errors import MissingArrow, MissingDuckDB, QueryError
from hlotext.tables.figures import FIGURES
from hlotext.tables.programs import Row, Text, programs, signed_names
from hlotext.tables.schema import TABLES
from hlotext.tables.sql_errors import explained, read_tables

try:
    from hlotext.tables.dataset import MODULES, OK, Dataset
    from hlotext.tables.parquet import pa
except MissingArrow:
    raise MissingDuckDB from None  # the extra for queries brings Arrow too

_CLOSED = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
"""A query may come with a text, from a page or a model: it sees the tables and neither files, network nor variables, and what
does not fit into memory is no file either."""
_MACROS = (
    "create macro newest() as (select max(build) from modules)",
    "create macro before(one) as (select max(build) from modules where build < one)",
)
"""Functions that queries may call besides DuckDB's: builds are ordered by their names."""
_VIEWS = (
    """create view readable as
    select n.program, n.name, b.build, max(case when u.program is null then b.build end)
        over (partition by n.program order by b.build) as as_of
    from (select distinct program, name from programs) n
    cross join (select distinct build from modules) b
    left join (select program, build from programs where status <> 'ok') u on u.program = n.program and u.build = b.build""",
    """create macro compared(this, other) as table
    select n.program, n.name, n.as_of as new, o.as_of as old
    from readable n left join readable o
        on o.program = n.program and o.build = coalesce(other, before(coalesce(this, newest())))
    where n.build = coalesce(this, newest()) and n.as_of is not null and (o.program is null or o.as_of is not null)""",
)
"""Views besides the tables and `programs`: for each program and build the last build, up to that, in which its inputs could
be read; and two builds of each program to be compared, so that what could not be read is not taken for gone."""
_OPERATIONS = "operations"
_OPERATION_PARTS = ("modules", "instructions", "costs", "times")
_OPERATION_VIEW = """create view operations as
with recursive known as (
    select c.module, c.id, c.home, i.computation, c.flops, c.transcendentals, c.bytes_accessed, c.bytes_written
    from costs c
    join instructions i using (module, id)
), bodies as (
    select distinct module, home, computation from known where computation <> home
), callers as (
    select module, computation as "at", id, unnest(calls) as body from instructions
), owners as (
    -- What is in a fusion belongs to the fusion; of several that run one body each has the same.
    select b.module, b.home, k.id as owner, k.body
    from callers k join bodies b on b.module = k.module and b.home = k."at" and b.computation = k.body
    union all
    select o.module, o.home, o.owner, k.body
    from owners o join callers k on k.module = o.module and k."at" = o.body
    join bodies b on b.module = k.module and b.home = o.home and b.computation = k.body
), counted as (
    select module, home, body as computation, list(owner) as owners from owners group by all
), owned as (
    select
        k.module,
        unnest(coalesce(c.owners, [k.id])) as id,
        k.flops / coalesce(len(c.owners), 1) as flops,
        k.transcendentals / coalesce(len(c.owners), 1) as transcendentals,
        k.bytes_accessed / coalesce(len(c.owners), 1) as bytes_accessed,
        k.bytes_written / coalesce(len(c.owners), 1) as bytes_written
    from known k
    left join counted c using (module, home, computation)
), summed as (
    select
        module,
        id,
        sum(flops) as flops,
        sum(transcendentals) as transcendentals,
        sum(bytes_accessed) as bytes_accessed,
        sum(bytes_written) as bytes_written
    from owned
    group by module, id
), timed as (
    select module, id, any_value(chip) as chip, sum(seconds) as seconds -- of what runs on the core and on links
    from times
    group by module, id
)
select
    s.module, i.build, s.id, i.name, i.opcode, i.label, i.computation, i.runs, s.flops, s.transcendentals,
    s.bytes_accessed, s.bytes_written, t.seconds, t.chip, i.op_name, i.scope, i.direction, i.file, i.line
from summed s
join instructions i using (module, id)
left join timed t using (module, id)"""
"""`operations`: the costs of one run with the name, the time and the Python line of each operation, which `costs` and `times`
have by id and for what is inside a fusion."""
_WRITING = frozenset(
    ("ALTER", "ATTACH", "COPY", "COPY_DATABASE", "CREATE", "DELETE", "DETACH", "DROP", "EXPORT", "INSERT")
) | frozenset(("MERGE_INTO", "UPDATE", "VACUUM"))
"""DuckDB's types of statements that write."""
_PROGRAMS = "programs"
_OF_PROGRAMS = frozenset({_PROGRAMS, "readable", "compared"})
"""Relations that `hlotext.tables.programs` makes."""
_TEXTS = """select module, name, build, path, status, coalesce(num_partitions, 1) || ' x ' || coalesce(replica_count, 1)
from modules order by all"""
_ARGUMENTS = """select m.module, string_agg(coalesce(i.dtype || cast(i.dims as varchar), i.shape, '?'), ' '
    order by coalesce(i.dtype || cast(i.dims as varchar), i.shape, '?'))
from modules m join instructions i on i.module = m.module and i.computation = m.entry
where i.opcode = 'parameter' and list_contains($names, m.name)
group by m.module"""


@attrs.frozen
class Result:
    """Result of a query."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """DuckDB's names of their types."""
    arrow: Any
    """A `pyarrow.Table`."""
    lacking: tuple[str, ...] = ()
    """Tables that the query names and that nobody asked for when a module of the dataset was read."""

    @property
    def is_number(self) -> tuple[bool, ...]:
        """For each column, True if it holds numbers."""
        return tuple(kind.startswith(_NUMBERS) and not kind.endswith("]") for kind in self.types)

    def rows(self) -> list[tuple[Any, ...]]:
        """Returns the rows as Python values; sums that may exceed 64 bits are integers."""
        columns = [column.to_pylist() for column in self.arrow.columns]
        for number, kind in enumerate(self.types):
            if kind in ("HUGEINT", "UHUGEINT", "BIGNUM"):
                columns[number] = [None if one is None else int(one) for one in columns[number]]
        return list(zip(*columns, strict=True))


_NUMBERS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("UHUGEINT", "BIGNUM", "FLOAT", "DOUBLE", "DECIMAL"),
)


def used_tables(query: str) -> tuple[str, ...]:
    """Returns the tables that a query needs, perhaps with further ones; `modules` is always included."""
    words = _words(query)
    needed = {*words, MODULES, *([_INSTRUCTIONS] if words & _OF_PROGRAMS else ()), *_tables_of_columns(query)}
    needed.update(_OPERATION_PARTS if _OPERATIONS in words else ())
    return tuple(name for name in TABLES if name in needed)


def _tables_of_columns(query: str) -> set[str]:
    """The tables with which the named columns of `modules` are computed: without them these are blank."""
    words = set(_ANY_WORD().findall(query))
    columns = words.intersection(one.name for one in TABLES[MODULES].columns)
    return {FIGURES[column][2] for column in columns & FIGURES.keys()}


def _words(query: str) -> set[str]:
    return {word.lower() for word in _WORD().findall(query)}


_INSTRUCTIONS = "instructions"


_ANY_WORD = lazy_regex(r"\w+")
_WORD = lazy_regex(r"(?<![.\w])\w+")


def run(
    query: str,
    dataset: Dataset,
    parameters: Mapping[str, Any] | None = None,
    *,
    timeout: float | None = None,
    memory: str | None = None,
) -> Result:
    """Executes one SQL statement over the tables of a dataset; `$name` in it is a parameter.

    Raises QueryError for a query that DuckDB rejects, or that exceeds `timeout` seconds or `memory` (such as `4GB`; by
    default, DuckDB uses up to 80 % of RAM); InputError if the dataset cannot be read; MissingDuckDB without DuckDB.
    """
    state = dataset.state()
    tables = {name: dataset.scan(state, name) for name in TABLES}
    read = [one.tables for one in state.done.values() if one.status == OK]
    lacking = [name for name in TABLES if not all(name in one for one in read)]
    found = over(tables, query, parameters, timeout=timeout, memory=memory, lacking=lacking)
    named = read_tables(query) | _tables_of_columns(query)
    named.update(_OPERATION_PARTS if _OPERATIONS in named else ())
    return attrs.evolve(found, lacking=tuple(sorted(named.intersection(lacking))))


def over(
    tables: Mapping[str, Any],
    query: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    timeout: float | None = None,
    memory: str | None = None,
    lacking: Collection[str] = (),
) -> Result:
    """Executes one SQL statement over tables that DuckDB can read: those of Arrow, or `hlotext.tables.Table`. See
    `run`.

    `lacking` are tables that were not built for all modules, for which `is_built` is false.
    """
    duckdb = _duckdb()
    config = _CLOSED if memory is None else _CLOSED | {"memory_limit": memory}
    try:
        connection = duckdb.connect(config=config)
    except duckdb.Error as error:
        raise QueryError(_refused(error, memory)) from None
    with connection:
        for name, table in tables.items():
            connection.register(name, table)
        built = [name for name in tables if name not in lacking]
        return _waited(
            lambda: _asked(connection, query, parameters, tables.keys(), built), connection, timeout
        )


def _refused(error: Exception, memory: str | None) -> str:
    """The message about a connection that could not be made: of what can be set, the memory."""
    is_size = memory is not None and "memory" in str(error).lower()
    return f"{memory!r} is not a memory limit; write 4GB or 512MiB" if is_size else explained(error, "")


def check_syntax(query: str) -> None:
    """Raises QueryError for text that is not a single SQL statement, without reading a dataset."""
    duckdb = _duckdb()
    try:
        with duckdb.connect(config=_CLOSED) as connection:
            _check_one(connection, query)
    except duckdb.Error as error:
        raise QueryError(explained(error, query)) from None


def _check_one(connection: Any, query: str) -> None:
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise QueryError(f"one statement at a time, not {len(statements)}")
    kind = str(getattr(statements[0].type, "name", ""))
    if kind in _WRITING:
        raise QueryError(
            f"the tables are read-only: {kind} is not allowed; a query starts with SELECT, FROM or WITH"
        )


def _asked(
    connection: Any,
    query: str,
    parameters: Mapping[str, Any] | None,
    tables: Collection[str],
    built: Collection[str],
) -> Result:
    duckdb = _duckdb()
    try:
        names = ", ".join(f"'{name}'" for name in built)
        connection.execute(f"create macro is_built(name) as list_contains([{names}]::varchar[], name)")
        for statement in _MACROS if MODULES in tables else ():
            connection.execute(statement)
        if MODULES in tables and _words(query) & _OF_PROGRAMS:
            connection.register(_PROGRAMS, _programs(connection, _INSTRUCTIONS in tables))
            for statement in _VIEWS:
                connection.execute(statement)
        if {*_OPERATION_PARTS}.issubset(tables):
            connection.execute(_OPERATION_VIEW)
        connection.execute("set lock_configuration = true")
        _check_one(connection, query)
        found = connection.sql(query, params=dict(parameters or {}))
        if found is None:
            raise QueryError("this statement has no result; a query starts with SELECT, FROM or WITH")
        return Result(tuple(found.columns), tuple(map(str, found.types)), found.to_arrow_table())
    except duckdb.Error as error:
        raise QueryError(explained(error, query, connection)) from None


def _programs(connection: Any, has_instructions: bool) -> Any:
    """The table `programs` of `modules`."""
    rows = connection.sql(_TEXTS).fetchall()
    texts = [
        Text(module, name if status == OK else None, build or "", path)
        for module, name, build, path, status, *_ in rows
    ]
    names = sorted(signed_names(texts)) if has_instructions else []
    arguments = dict(connection.sql(_ARGUMENTS, params={"names": names}).fetchall()) if names else {}
    signed = set(names)
    found = programs(
        attrs.evolve(text, arguments=f"{devices} {arguments.get(text.module, '')}")
        if text.name in signed
        else text
        for text, (*_, devices) in zip(texts, rows, strict=True)
    )
    columns = {one.name: [getattr(row, one.name) for row in found] for one in attrs.fields(Row)}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def _waited(ask: Callable[[], Result], connection: Any, timeout: float | None) -> Result:
    """Result of a query run in a thread, so that signals and a timeout are handled."""
    found: list[Result] = []
    failed: list[BaseException] = []
    done = (
        threading.Event()
    )  # and not the thread's end: a signal while that is waited for makes it look ended

    def work() -> None:
        try:
            found.append(ask())
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        is_late = not done.wait(timeout)
    finally:
        while not done.is_set():
            connection.interrupt()  # again, as it may not have begun what is to be interrupted
            done.wait(0.1)
    if is_late and failed:
        raise QueryError(f"it took longer than {timeout:g} s") from None
    if failed:
        raise failed[0]
    return found[0]


def check_installed() -> None:
    """Raises MissingDuckDB if a package that queries need is missing."""
    _duckdb()


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingDuckDB from None
    return duckdb
