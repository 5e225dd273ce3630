"""A stored run for Python and notebooks: cells, findings and samples as tables that become pandas data frames."""

from __future__ import annotations

import os
from dataclasses import asdict, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from strakes.base.errors import EnvironmentLacksError
from strakes.base.foreign_text import for_terminal
from strakes.base.units import counted
from strakes.model.answers import Answer
from strakes.model.portrait import CellEstimate, Finding, Portrait, RunWarning
from strakes.runs.published import PublishedRun
from strakes.runs.run import told_as_damage
from strakes.runs.store import Store

if TYPE_CHECKING:
    import pandas

Row = TypeVar("Row")


class Table(tuple[Row, ...]):
    """A sequence of rows, which :meth:`to_pandas` converts to a data frame."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'row')}; to_pandas() makes a data frame of them>"

    def to_dicts(self) -> list[dict[str, object]]:
        """Return each row as a dictionary. Each part of an interval and each setting becomes a separate entry."""
        return [_columns(row) for row in self]

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a data frame. Raises EnvironmentLacksError without pandas."""
        try:
            import pandas
        except ModuleNotFoundError as error:
            remedy = "Install it: pip install pandas. Or call to_dicts(), which needs no package."
            raise EnvironmentLacksError("data frames need pandas", why=str(error), remedy=remedy) from error
        return pandas.DataFrame(self.to_dicts())


class OpenedRun:
    """A stored run and its results, as :func:`strakes.open` returns it. Nothing in the store changes."""

    def __init__(self, run: str, store: str | Path | None) -> None:
        # As in the commands, a file named "latest" in the current directory, which another user may own, is no run.
        published = store is None and {os.sep, "."} & set(os.fspath(run)) and os.path.isfile(run)
        self._run = PublishedRun(Path(run)) if published else Store(Path(store) if store else None).open(run)

    def __repr__(self) -> str:
        return for_terminal(f"<strakes run {self.id}: {self._run.manifest['kind']} of {self._run.manifest['target']}>")

    @property
    def id(self) -> str:
        """Return the id of the run, as ``strakes runs`` lists it."""
        return self._run.id

    @cached_property
    def portrait(self) -> Portrait:
        """Return the contents of the report as a Portrait object."""
        from strakes.tuning.portraits import build_portrait

        return build_portrait(self._run)

    @property
    def cells(self) -> Table[CellEstimate]:
        """Return each measured cell (combination of settings): median, interval (low, high), unit and settings."""
        return Table(self.portrait.cells)

    @property
    def findings(self) -> Table[Finding]:
        """Return the findings of the run, each with its verdict and interval."""
        return Table(self.portrait.findings)

    @property
    def answers(self) -> Table[Answer]:
        """Return the answer to each question of the run, with its grade."""
        return Table(self.portrait.answers)

    @property
    def warnings(self) -> Table[RunWarning]:
        """Return the warnings on the results, such as reads from a cache."""
        return Table(self.portrait.warnings)

    @property
    def samples(self) -> Table[dict[str, object]]:
        """Return each measured value as in ``strakes export --format csv``: times in seconds, sizes in bytes."""
        from strakes.interop.export_rows import rows

        with told_as_damage(self._run):
            return Table(rows(self._run))


def _columns(row: object) -> dict[str, object]:
    if isinstance(row, dict):
        return row
    assert is_dataclass(row) and not isinstance(row, type)
    columns = asdict(row)
    interval = columns.pop("interval", None) or {}
    columns |= {name: value for name, value in interval.items() if name != "unit"}
    settings = columns.pop("settings", {})
    return columns | {name: value for name, value in settings.items() if name not in columns}
