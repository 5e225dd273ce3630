"""Export of a table as Parquet by DuckDB, an optional package that is imported when needed."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from strakes.errors import EnvironmentLacksError, MeasurementError
from strakes.files import write_kept, write_whole


def write_parquet(table: str, columns: Mapping[str, str], path: Path) -> None:
    """Write a CSV table to ``path`` as Parquet. ``columns``: the SQL type of each column.

    Raises EnvironmentLacksError without DuckDB, MeasurementError if the file cannot be written.
    """
    try:
        import duckdb
    except ModuleNotFoundError as error:
        remedy = (
            "Install it: pip install 'strakes[parquet]' (or pip install duckdb). Or use --format csv, which "
            "needs nothing."
        )
        raise EnvironmentLacksError("Parquet needs DuckDB", why=str(error), remedy=remedy) from error
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    try:
        with tempfile.TemporaryDirectory(prefix="strakes-") as place:
            source, fresh = Path(place) / "rows.csv", Path(place) / "rows.parquet"
            write_kept(source, table)
            reading = "header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"'"
            reader = f"read_csv({_quoted(source)}, {reading}, columns = {{{types}}})"
            with duckdb.connect() as connection:
                connection.execute(
                    f"COPY (SELECT * FROM {reader}) TO {_quoted(fresh)} (FORMAT parquet, COMPRESSION zstd)"
                )
            write_whole(path, fresh.read_bytes())
    except (OSError, duckdb.Error) as error:
        raise MeasurementError("the export cannot be written", where=str(path), why=str(error)) from error


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
