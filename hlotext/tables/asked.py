"""Parameters of a ready query, and inputs without any data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hlotext.ir.caches import lazy_regex
from hlotext.ir.spelling import did_you_mean
from hlotext.ir.tables import opcodes
from hlotext.tables import sql
from hlotext.tables.dataset import Dataset
from hlotext.tables.errors import QueryError
from hlotext.tables.queries import Query

_BUILDS = ("build", "old")
_OF_A_BUILD = """select build, path from modules
where status <> 'ok' and build in (coalesce($build, newest()), coalesce($old, before(coalesce($build, newest()))))
order by all"""


def check_parameters(query: Query, dataset: Dataset, parameters: Mapping[str, Any]) -> None:
    """Raises QueryError for a build that the dataset lacks, and an opcode known neither to it nor to XLA."""
    for one in query.parameters:
        value = parameters.get(one.name)
        if value is None:
            continue
        if one.name in _BUILDS:
            known = _column(dataset, "select distinct build from modules where build is not null")
            if value not in known:
                raise QueryError(_unknown(f"no build is named {value}", str(value), known))
        elif one.name == "opcode" and value not in opcodes.OPCODES:
            found = _column(dataset, "select distinct unnest([opcode, label]) from instructions")
            if value not in found:
                raise QueryError(
                    _unknown(f"no opcode is named {value}", str(value), {*opcodes.OPCODES, *found})
                )


def unread(query: Query, dataset: Dataset, parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns build and path of the inputs that could not be read, of the builds that a query reads.

    Empty for a query over all builds.
    """
    if not any(one.name == "build" for one in query.parameters):
        return []
    has_old = any(one.name == "old" for one in query.parameters)
    build = parameters.get("build")
    given = {"build": build, "old": parameters.get("old") if has_old else build}
    if not has_old and build is None:
        given["old"] = _column(dataset, "select newest()").pop()
    return [(str(build), str(path)) for build, path in sql.run(_OF_A_BUILD, dataset, given).rows()]


def builds(
    query: Query, dataset: Dataset, parameters: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the builds that a query reads, newest first, and the others; both are empty for a query over all builds."""
    if not _OF_NEWEST().search(query.sql):
        return (), ()
    known = sorted(_column(dataset, "select distinct build from modules"), reverse=True)
    build = parameters.get("build") or next(iter(known), None)
    read = [build]
    if any(one.name == "old" for one in query.parameters):
        read.append(parameters.get("old") or next((one for one in known if build and one < build), None))
    return tuple(one for one in read if one), tuple(one for one in known if one not in read)


_OF_NEWEST = lazy_regex(r"coalesce\(\$build, newest\(\)\)|\bcompared\(\$build\b")


def _column(dataset: Dataset, query: str) -> set[str]:
    return {row[0] for row in sql.run(query, dataset).rows() if row[0] is not None}


def _unknown(message: str, word: str, known: Collection[str]) -> str:
    meant = did_you_mean(word, sorted(known))
    return f"{message}: {meant}" if meant else f"{message}; there are {', '.join(sorted(known)[-5:])}"
