"""A run as it is read back from its directory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from strakes.errors import BadInputError
from strakes.findings.cell import Cell
from strakes.findings.record import from_record
from strakes.store.files import read_json, read_json_lines, write_json
from strakes.store.records import FactsFound, RunEvent, Visit, event_from_record

T = TypeVar("T")
E = TypeVar("E", bound=RunEvent)

FinishedStatus = Literal["complete", "interrupted", "failed", "partial"]
Status = Literal["running", "complete", "interrupted", "failed", "partial", "damaged"]


@dataclass(frozen=True)
class RunSummary:
    """One line of the list of runs. ``created`` is ISO 8601 in UTC; ``status`` damaged: its run.json cannot be read."""

    id: str
    kind: str
    name: str
    target: str
    file_system: str
    status: Status
    created: str
    path: Path


@dataclass(frozen=True)
class Run:
    """One run: its directory, read when asked and then kept (a run that grows is opened again to see more)."""

    path: Path

    @property
    def id(self) -> str:
        """The name of its directory."""
        return self.path.name

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """id, kind, name, target, options, created, status, command, strakes_version."""
        return read_json(self.path / "run.json")

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Where it is measured."""
        return read_json(self.path / "environment.json")

    @cached_property
    def cells(self) -> list[Cell]:
        """What is measured, in the order of the plan."""
        return _each(self.path, partial(from_record, Cell), self._rows("cells"))

    @cached_property
    def visits(self) -> list[Visit]:
        """What was measured, in order."""
        return _each(self.path, partial(from_record, Visit), self._rows("visits"))

    @cached_property
    def events(self) -> list[RunEvent]:
        """What else happened, in order."""
        return _each(self.path, event_from_record, self._rows("events"))

    def events_of(self, kind: type[E]) -> list[E]:
        """Return the events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def facts(self) -> Mapping[str, Any]:
        """What was found out of the target before anything was measured; empty where nothing was."""
        return next((event.facts for event in self.events_of(FactsFound)), {})

    def _rows(self, name: str) -> list[dict[str, Any]]:
        return read_json_lines(self.path / f"{name}.jsonl")

    @cached_property
    def findings(self) -> dict[str, Any] | None:
        """What it found; None before that was written."""
        path = self.path / "findings.json"
        return read_json(path) if path.exists() else None

    def write_findings(self, findings: Mapping[str, object]) -> None:
        """Keep what the run found, also long after it ended; replaces an earlier document."""
        write_json(self.path / "findings.json", findings)

    def is_being_written(self) -> bool:
        """Whether a living process writes it: writers lock the run's visits."""
        try:
            descriptor = os.open(self.path / "visits.jsonl", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks: nobody can tell
            return False
        finally:
            os.close(descriptor)
        return False


def _each(path: Path, parse: Callable[[dict[str, Any]], T], rows: Sequence[dict[str, Any]]) -> list[T]:
    """Parse every row. Raises BadInputError for one that is no record of its kind."""
    try:
        return [parse(row) for row in rows]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why, remedy = (
            f"a record is not as strakes writes it ({error!r})",
            "Restore the run from a backup, or remove it.",
        )
        raise BadInputError("a file of the store is damaged", where=str(path), why=why, remedy=remedy) from error
