"""The table of a run as Parquet, written by DuckDB: an optional part, imported when it is asked for."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from strakes.errors import EnvironmentLacksError, MeasurementError
from strakes.interop.exports.rows import COLUMNS, to_csv
from strakes.store import Run


def write_parquet(run: Run, path: Path) -> None:
    """Replace ``path`` by the run's table.

    Raises EnvironmentLacksError without DuckDB, MeasurementError when it cannot be written.
    """
    try:
        import duckdb
    except ModuleNotFoundError as error:
        remedy = (
            "Install it: pip install 'strakes[parquet]' (or pip install duckdb). Or use --format csv, which "
            "needs nothing."
        )
        raise EnvironmentLacksError("Parquet needs DuckDB", why=str(error), remedy=remedy) from error
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
    try:
        with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".strakes-") as place:
            source, fresh = Path(place) / "rows.csv", Path(place) / "rows.parquet"
            source.write_text(to_csv(run), encoding="utf-8")
            reading = "header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"'"
            table = f"read_csv({_quoted(source)}, {reading}, columns = {{{columns}}})"
            with duckdb.connect() as connection:
                connection.execute(
                    f"COPY (SELECT * FROM {table}) TO {_quoted(fresh)} (FORMAT parquet, COMPRESSION zstd)"
                )
            os.replace(fresh, path)
    except (OSError, duckdb.Error) as error:
        raise MeasurementError("the export cannot be written", where=str(path), why=str(error)) from error


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
