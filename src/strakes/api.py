"""A stored run for Python and notebooks: cells, findings and samples as tables that become pandas data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from strakes.base.errors import EnvironmentLacksError
from strakes.base.units import counted
from strakes.model.answers import Answer
from strakes.model.portrait import CellEstimate, Finding, Portrait, RunWarning
from strakes.runs.published import PublishedRun
from strakes.runs.run import Run, told_as_damage
from strakes.runs.store import Store

if TYPE_CHECKING:
    import pandas

Row = TypeVar("Row")


class Table(Sequence[Row], Generic[Row]):
    """Rows in order; each becomes a line of a data frame."""

    def __init__(self, rows: Sequence[Row], to_dict: Callable[[Row], Mapping[str, object]]) -> None:
        """``to_dict`` names the columns of a row."""
        self._rows = tuple(rows)
        self._to_dict = to_dict

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, index: int | slice) -> Row | tuple[Row, ...]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'row')}; to_pandas() makes a data frame of them>"

    def to_dicts(self) -> list[dict[str, object]]:
        """Give every row as names and values; settings of cells are columns of their own."""
        return [dict(self._to_dict(row)) for row in self._rows]

    def to_pandas(self) -> pandas.DataFrame:
        """Make a data frame. Raises EnvironmentLacksError without pandas."""
        try:
            import pandas
        except ModuleNotFoundError as error:
            remedy = "Install it: pip install pandas; to_dicts() needs nothing."
            raise EnvironmentLacksError("data frames need pandas", why=str(error), remedy=remedy) from error
        return pandas.DataFrame(self.to_dicts())


class OpenedRun:
    """A run as it is stored, and what it shows. Nothing is measured, and nothing in the store changes."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __repr__(self) -> str:
        return f"<strakes run {self.id}: {self._run.manifest['kind']} of {self._run.manifest['target']}>"

    @property
    def id(self) -> str:
        """The id that ``strakes runs`` lists."""
        return self._run.id

    @cached_property
    def portrait(self) -> Portrait:
        """Everything that the report shows, as values."""
        from strakes.tuning.portraits import build_portrait

        return build_portrait(self._run)

    @property
    def cells(self) -> Table[CellEstimate]:
        """Each measured cell: median, interval (low, high), unit (B/s, op/s, s) and its settings."""
        return Table(self.portrait.cells, _columns_of_cell)

    @property
    def findings(self) -> Table[Finding]:
        """What the run found, each with its verdict and interval."""
        return Table(self.portrait.findings, _columns)

    @property
    def answers(self) -> Table[Answer]:
        """Return the answer to each question of the run, with its grade."""
        return Table(self.portrait.answers, _columns)

    @property
    def warnings(self) -> Table[RunWarning]:
        """What a reader of the figures must know."""
        return Table(self.portrait.warnings, _columns)

    @property
    def samples(self) -> Table[dict[str, object]]:
        """Each measured value, as ``strakes export --format csv`` writes them: times in seconds, sizes in bytes."""
        from strakes.interop.export_rows import rows

        with told_as_damage(self._run):
            return Table(list(rows(self._run)), lambda row: row)


def open_run(run: str, store: str | Path | None) -> OpenedRun:
    """Open a run of the store at ``store`` (None: the one of the command line), or a file of ``strakes export``.

    Raises BadInputError.
    """
    if store is None and Path(run).is_file():
        return OpenedRun(PublishedRun(Path(run)))
    return OpenedRun(Store(None if store is None else Path(store)).open(run))


def _columns(row: Answer | Finding | RunWarning) -> dict[str, object]:
    columns = asdict(row)
    interval = columns.pop("interval", None)
    if interval is not None:
        columns |= {name: interval[name] for name in ("low", "high", "confidence", "of")}
    return columns


def _columns_of_cell(cell: CellEstimate) -> dict[str, object]:
    columns = asdict(cell)
    settings = columns.pop("settings")
    return columns | {name: value for name, value in settings.items() if name not in columns}
