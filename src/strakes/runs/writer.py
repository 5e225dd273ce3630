"""Write a run. Each finished execution of a plan is on the disk before the next one starts."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.files import pinned
from strakes.base.foreign_text import shell_line
from strakes.base.processes import lock_file
from strakes.model.cell import Cell
from strakes.model.record import to_record
from strakes.runs.records import RunEvent, Visit, event_to_record
from strakes.runs.run import FinishedStatus, Run
from strakes.runs.store_files import AppendFile, json_lines, replace_text, store_error, store_errors, write_json

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_LOCK_PATIENCE_S = 1.0  # Maximum seconds to wait for the lock. Readers hold it for microseconds.


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class RunWriter(AbstractContextManager["RunWriter"]):
    """The writer of a run, protected by a lock against other writers. ``run``: state of the run before this writer.

    A run is resumable until :meth:`finish` is called. ``opened``: descriptor of the directory of a new run.
    """

    def __init__(self, path: Path, opened: int | None = None) -> None:
        self.path = path
        self.run = Run(path)
        self._appending = threading.Lock()
        self._closed = False
        with ExitStack() as files:
            with store_errors(path):
                self.made = os.fstat(files.enter_context(pinned(path, opened)))
            _ = Run(path).manifest  # Fail before the first write if the directory is not a run.
            self._visits = AppendFile(path / "visits.jsonl", durable=True)
            files.callback(self._visits.close)
            _lock(self._visits, self.id)
            self._events = AppendFile(path / "events.jsonl", durable=False)
            files.callback(self._events.close)
            self._visits.drop_torn_line()
            self._events.drop_torn_line()
            # Read all files now, so that ``run`` shows the state before this writer.
            _ = self.run.cells, self.run.visits, self.run.events, self.run.findings
            self._files = files.pop_all()

    @property
    def id(self) -> str:
        """Return the id of the run."""
        return self.path.name

    def write_cells(self, cells: Iterable[Cell]) -> None:
        """Write all measured combinations of settings (cells) of the run. Replace an earlier list."""
        named = (replace(cell, fingerprint=cell.fingerprint or cell.plan.fingerprint()) for cell in cells)
        replace_text(self.path / "cells.jsonl", json_lines(map(to_record, named)))

    def append_visit(self, *visits: Visit) -> None:
        """Store finished executions of plans (visits). They are on the disk when the method returns."""
        with self._appending:
            self._visits.append(*map(to_record, visits))

    def append_event(self, event: RunEvent) -> None:
        """Add an event. Thread-safe."""
        with self._appending:
            if not self._closed:
                self._events.append(event_to_record(event))

    def finish(self, status: FinishedStatus) -> None:
        """Set the final status and release the lock. Raises EnvironmentLacksError if the store was moved."""
        try:
            self._set_manifest(status=status, ended=utc_now().isoformat())
            self._require_own_path()
        finally:
            self.close()

    def mark_running(self) -> None:
        """Set the status to running, and add the present time to the list of resumptions in run.json."""
        self._set_manifest(status="running", resumed=[*self.run.manifest.get("resumed", []), utc_now().isoformat()])

    def close(self) -> None:
        """Release the lock without changing the status. A second call has no effect."""
        with self._appending:
            self._closed = True
            self._files.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_own_path(self) -> None:
        with suppress(OSError):
            if os.path.samestat(os.stat(self.path), self.made):
                return
        with pinned(self.path) as own:
            now = os.readlink(f"/proc/self/fd/{own}")
        what, why = "the store was moved or replaced during the run", f"the measurements of the run are now in {now}"
        remedy = f"Move that directory to {shell_line([str(self.path)])}; then: strakes report {self.id}"
        raise EnvironmentLacksError(what, where=str(self.path), why=why, remedy=remedy)

    def _set_manifest(self, **changes: Any) -> None:
        write_json(self.path / "run.json", {**Run(self.path).manifest, **changes})


def _lock(file: AppendFile, run: str) -> None:
    try:
        lock_file(file.fileno(), Path(run), _LOCK_PATIENCE_S)
    except EnvironmentLacksError as error:
        what = "another strakes process is writing this run"
        remedy = "Wait until it ends, or stop it. Then use --resume."
        raise BadInputError(what, where=run, why=error.why, remedy=remedy) from error
    except OSError as error:
        # Work without a lock if the network file system has no locks.
        if error.errno not in _NO_LOCKS:
            raise store_error(error, Path(run)) from error
