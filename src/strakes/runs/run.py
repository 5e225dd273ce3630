"""Read a stored run from its directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import MAXYEAR, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from strakes.base.errors import BadInputError, PerhapsDamagedError, StrakesError
from strakes.base.files import pinned
from strakes.base.processes import is_locked
from strakes.model.cell import Cell
from strakes.model.record import from_record
from strakes.runs.records import FactsFound, RunEvent, Visit, event_from_record
from strakes.runs.store_files import read_json, read_json_lines, replace_text, store_errors, write_json

T = TypeVar("T")
E = TypeVar("E", bound=RunEvent)

FinishedStatus = Literal["complete", "interrupted", "failed", "partial"]
Status = Literal["running", "complete", "interrupted", "failed", "partial", "damaged"]

# Required fields of run.json and environment.json.
_MANIFEST = {"id": str, "kind": str, "name": str, "target": str, "options": dict, "created": str, "status": str}
_ENVIRONMENT = {"mount": dict, "engine": dict, "load_average": list, "cpus": int, "memory_bytes": int}
# Maximum number of records. Each takes about 1,000 bytes of memory, so all take 1 GB. The longest known run has 312.
_MOST_RECORDS = 1_000_000
# Maximum size and number of values of run.json and environment.json, and maximum length of a text in the list of runs.
# A run on 10,000 nodes has 0.5 MB and 10,000 values. At these limits, listing the runs takes 0.1 s per run.
_MOST_DOCUMENT_BYTES, _MOST_VALUES, _MOST_TEXT_BYTES = 4 << 20, 200_000, 1 << 16
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True)
class RunSummary:
    """A line of the list of runs. ``created``: ISO 8601 in UTC. ``status`` "damaged": run.json cannot be read."""

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
    """A stored run. Files are read once, on first use. To see new data of a growing run, open it again."""

    path: Path

    @property
    def id(self) -> str:
        """Return the id of the run, which is the name of its directory."""
        return self.path.name

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Return run.json: id, kind, name, target, options, created, status, command, strakes_version.

        Raises BadInputError if a required field is missing or has the wrong type.
        """
        manifest = self._read_document("run.json")
        for key, kind in _MANIFEST.items():
            if key not in manifest:
                raise self.damaged(f"{key!r} is missing", "run.json")
            if not isinstance(manifest[key], kind):
                raise self.damaged(f"{key!r} has the wrong type", "run.json")
        try:
            if not 1 < datetime.fromisoformat(manifest["created"]).year < MAXYEAR:
                raise ValueError(f"'created' cannot be converted to other time zones: {manifest['created']}")
            for texts in (manifest["options"].get("beside", []), manifest.get("resumed", [])):
                from_record(tuple[str, ...], texts)
        except (TypeError, ValueError) as error:
            raise self.damaged(str(error), "run.json") from error
        return manifest

    @property
    def directories(self) -> str:
        """Return the measured directory as text. If the ranks used several directories, return all of them."""
        return ", ".join([str(self.manifest.get("target", "")), *self.manifest.get("options", {}).get("beside", ())])

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Return environment.json: the mount, engine and machine of the measurement."""
        environment = self._read_document("environment.json")
        for key, kind in _ENVIRONMENT.items():
            if not isinstance(environment.get(key, kind()), kind):
                raise self.damaged(f"{key!r} has the wrong type", "environment.json")
        if not all(isinstance(load, int | float) for load in environment.get("load_average", ())):
            raise self.damaged(f"{'load_average'!r} has the wrong type", "environment.json")
        return environment

    @cached_property
    def cells(self) -> list[Cell]:
        """Return the measured combinations of settings (cells), in the planned order."""
        return self._each(partial(from_record, Cell), "cells")

    @cached_property
    def visits(self) -> list[Visit]:
        """Return the executions of plans in chronological order."""
        # Require the key "cell": a small damaged file may have millions of empty records, so stop at the first one.
        return self._each(lambda row: from_record(Visit, row | {"cell": row["cell"]}), "visits")

    @cached_property
    def events(self) -> list[RunEvent]:
        """Return the events in chronological order."""
        return self._each(event_from_record, "events")

    def damaged(self, why: str, name: str = "") -> BadInputError:
        """Return the exception for a file in the wrong format. ``name``: name of the file, if known."""
        where = str(self.path / name) if name else f"{self.path} (run {self.id})"
        remedy = "Read the run with the version of strakes that wrote it, or restore the file from a backup."
        return BadInputError("a file of the store is damaged", where=where, why=why, remedy=remedy)

    def require_whole(self) -> None:
        """Raise BadInputError if the files of the run contradict each other."""
        known = {cell.key for cell in self.cells}
        strange = next((seen.cell for seen in self.visits if seen.is_measurement and seen.cell not in known), None)
        if strange is not None:
            raise self.damaged(f"the cell {strange!r} was measured, but is not in this file", "cells.jsonl")
        if known and self.manifest["status"] == "complete":
            if not any(visit.is_measurement for visit in self.visits):
                raise self.damaged("the run is complete, but this file has no measurement", "visits.jsonl")
            if not self.events_of(FactsFound):
                raise self.damaged("the run is complete, but this file describes no file system", "events.jsonl")

    def events_of(self, kind: type[E]) -> list[E]:
        """Return the events of one kind in chronological order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return the facts about the file system, as found before the measurement. Empty if none are stored."""
        return next((event.facts for event in self.events_of(FactsFound)), {})

    def _each(self, parse: Callable[[dict[str, Any]], T], name: str) -> list[T]:
        rows = []
        for number, row in enumerate(self._rows(name), start=1):
            if number > _MOST_RECORDS:
                raise self.damaged(f"it has more than {_MOST_RECORDS:,} records", f"{name}.jsonl")
            try:
                rows.append(parse(row))
            except (*_FAULTS, BadInputError) as error:
                why = f"record {number} does not have the format of strakes ({error!r})"
                raise self.damaged(why, f"{name}.jsonl") from error
        return rows

    def _rows(self, name: str) -> Iterable[dict[str, Any]]:
        # Accept an incomplete last line only if the writer of the run may have been killed.
        whole = name == "cells" or self.manifest["status"] == "complete"
        return read_json_lines(self.path / f"{name}.jsonl", whole=whole)

    def _read_document(self, name: str) -> dict[str, Any]:
        try:
            return read_json(self.path / name, _MOST_DOCUMENT_BYTES, _MOST_VALUES)
        except FileNotFoundError as error:
            raise self.damaged("it is missing", name) from error

    @cached_property
    def findings(self) -> dict[str, Any] | None:
        """Return the findings, or None if they have not been written yet."""
        path = self.path / "findings.json"
        return read_json(path) if path.exists() else None

    @property
    def answers(self) -> dict[str, Any] | None:
        """Return the verdicts of ``strakes accept``, or None for other runs."""
        path = self.path / "answers.json"
        return read_json(path) if path.exists() else None

    def write(self, name: str, content: str | Mapping[str, object]) -> None:
        """Replace the file ``name`` of the run, even after the end of the run. Raises StrakesError if that fails."""
        with store_errors(self.path), pinned(self.path):
            # Compare the ids, because the owner of the store can have moved another run to this path.
            if Run(self.path).manifest["id"] != self.manifest["id"]:
                raise self.damaged("another run has taken the name of this run", "run.json")
            if isinstance(content, str):
                replace_text(self.path / name, content)
            else:
                write_json(self.path / name, content)


def summary_of(path: Path) -> RunSummary | None:
    """Return the summary of a run for the list of runs ("interrupted" if its writer was killed), None if it is none."""
    run, damaged = Run(path), RunSummary(path.name, "", "", "", "", "damaged", "", path)
    try:
        manifest = run.manifest
    except (StrakesError, OSError) as error:
        absent = type(error.__cause__ or error) in (FileNotFoundError, NotADirectoryError, PermissionError)
        return None if absent else damaged
    file_system = ""
    with suppress(StrakesError, OSError):
        file_system = str(run.environment.get("mount", {}).get("file_system", ""))
    status = cast("Status", manifest["status"])
    # Writers hold a lock on visits.jsonl. On a file system without locks, assume that no process writes.
    if status == "running" and not is_locked(path / "visits.jsonl"):
        status = "interrupted"
    texts = manifest["kind"], manifest["name"], run.directories, file_system
    if max(map(len, texts)) > _MOST_TEXT_BYTES:
        return damaged
    return RunSummary(run.id, *texts, status, manifest["created"], path)


@contextmanager
def told_as_damage(*runs: Run, where: str = "") -> Iterator[None]:
    """Raise BadInputError for an inconsistent run, and PerhapsDamagedError if the data cause an error in ``with``."""
    for run in runs:
        run.require_whole()
    try:
        yield
    except (*_FAULTS, StopIteration) as error:
        if str(error) == "can't start new thread":  # a limit of the machine
            raise
        what, remedy = "strakes cannot use a stored run", "If files of the run are damaged, restore them from a backup."
        where = where or ", ".join(f"{run.path} (run {run.id})" for run in runs)
        why = f"{type(error).__name__}: {error}"
        raise PerhapsDamagedError(what, where=where, why=why, remedy=remedy) from error
