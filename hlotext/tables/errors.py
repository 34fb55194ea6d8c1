"""Errors of tables."""

from __future__ import annotations

from hlotext.ir import sending


class TableError(ValueError):
    """Raised if a table is unknown, or values do not fit its schema."""


class QueryError(TableError):
    """Raised for a query that DuckDB rejects. The message may have several lines."""


class MissingArrow(sending.Whole, ImportError):  # noqa: N818 - says what is missing
    """Raised if the package `pyarrow` (`hlotext[tables]`) is needed and not installed."""

    def __init__(self) -> None:
        super().__init__("Arrow tables need an extra: pip install 'hlotext[tables]'")


class MissingDuckDB(sending.Whole, ImportError):  # noqa: N818 - says what is missing
    """Raised if `duckdb`, or another package that queries need, is not installed."""

    def __init__(self) -> None:
        super().__init__("SQL needs an extra: pip install 'hlotext[sql]'")
