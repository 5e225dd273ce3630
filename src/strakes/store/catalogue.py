"""The catalogue: a SQLite file that remembers what the run directories say, so that listing thousands of runs is quick.

It holds nothing of its own. Each entry carries the stamp of the run.json it was read from; an entry that is missing,
old or of a run that is gone is mended when the list is asked for, and a catalogue that is broken is made again.
Rollback journal, no WAL: home directories are often on network file systems.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from strakes.errors import StrakesError
from strakes.store.files import of_another_user, store_error
from strakes.store.run import Run, RunSummary, Status

if TYPE_CHECKING:
    import sqlite3

_LAYOUT = 3
_BUSY_TIMEOUT_S = 5.0
# SQLITE_ERROR: a table or column is not there.
_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_CONSTRAINT")
_COLUMNS = "id, kind, name, target, file_system, status, created"
_CREATE = (
    "CREATE TABLE IF NOT EXISTS runs (id BLOB PRIMARY KEY, kind BLOB NOT NULL, name BLOB NOT NULL,"
    " target BLOB NOT NULL, file_system BLOB NOT NULL, status BLOB NOT NULL, created BLOB NOT NULL,"
    " stamp TEXT NOT NULL)"
)


class Catalogue:
    """The list of the runs below ``root``."""

    def __init__(self, root: Path) -> None:
        self._runs = root / "runs"
        self._path = root / "catalogue.sqlite"

    def summaries(self) -> list[RunSummary]:
        """All runs, oldest first; a run whose writer was killed is listed as interrupted."""
        stamps = self._stamps()
        if not stamps:
            return []
        summaries = sorted(self._remembered(stamps), key=lambda summary: (summary.created, summary.id))
        return [_as_it_is_now(summary) for summary in summaries]

    def remember(self, run: Path) -> None:
        """Take in one run that has just changed."""
        import sqlite3

        stamps = {run.name: _stamp(run)}
        # A catalogue that is busy, broken or not writable is mended when the list is asked for.
        with suppress(sqlite3.Error), self._connection() as connection:
            _store(connection, [_read_summary(run)], stamps)

    def rebuild(self) -> int:
        """Make the catalogue again from the run directories; returns how many runs it holds."""
        try:
            self._remove()
        except OSError as error:
            raise store_error(error, self._path) from error
        return len(self.summaries())

    def _remembered(self, stamps: dict[str, str]) -> list[RunSummary]:
        """Return the catalogue's entries, mended; read from the directories where the catalogue is of no use."""
        import sqlite3

        try:
            return self._mended(stamps)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "") in _BROKEN:
                with suppress(OSError, sqlite3.DatabaseError):
                    self._remove()
                    return self._mended(stamps)
        return [_read_summary(self._runs / run) for run in stamps]

    def _mended(self, stamps: dict[str, str]) -> list[RunSummary]:
        with self._connection() as connection:
            known = {_to_text(run): stamp for run, stamp in connection.execute("SELECT id, stamp FROM runs")}
            gone = [(_to_bytes(run),) for run in known if run not in stamps]
            changed = [_read_summary(self._runs / run) for run, stamp in stamps.items() if known.get(run) != stamp]
            if gone:
                connection.executemany("DELETE FROM runs WHERE id = ?", gone)
            if changed:
                _store(connection, changed, stamps)
            return [
                RunSummary(run, kind, name, target, file_system, cast("Status", status), created, self._runs / run)
                for row in connection.execute(f"SELECT {_COLUMNS} FROM runs")
                for run, kind, name, target, file_system, status, created in [map(_to_text, row)]
            ]

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        import sqlite3

        with suppress(OSError):  # else SQLite makes it as the umask says
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S)) as connection, connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] != _LAYOUT:
                connection.execute("DROP TABLE IF EXISTS runs")
                connection.execute(_CREATE)
                connection.execute(f"PRAGMA user_version = {_LAYOUT}")
            yield connection

    def _remove(self) -> None:
        # First the journal: left alone, it would be played back into the next catalogue.
        self._path.with_name(self._path.name + "-journal").unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)

    def _stamps(self) -> dict[str, str]:
        """Return the id of every run there is, with the stamp of its run.json."""
        try:
            names = os.listdir(self._runs)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except PermissionError as error:
            raise of_another_user(error, self._runs) from error
        return {name: stamp for name in names if not name.startswith(".") and (stamp := _stamp(self._runs / name))}


def _stamp(run: Path) -> str:
    """Give a text that changes whenever run.json is replaced; empty for what is no run (yet)."""
    try:
        status = (run / "run.json").stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{status.st_mtime_ns}:{status.st_ino}:{status.st_size}"


def _store(connection: sqlite3.Connection, summaries: list[RunSummary], stamps: dict[str, str]) -> None:
    connection.executemany(
        f"INSERT OR REPLACE INTO runs ({_COLUMNS}, stamp) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (*map(_to_bytes, (s.id, s.kind, s.name, s.target, s.file_system, s.status, s.created)), stamps[s.id])
            for s in summaries
        ],
    )


def _to_bytes(text: str) -> bytes:
    """Names of files need not be UTF-8, which SQLite wants of text."""
    return text.encode("utf-8", "surrogatepass")


def _to_text(value: object) -> str:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else str(value)


def _read_summary(path: Path) -> RunSummary:
    run = Run(path)
    try:
        manifest = run.manifest
    except (StrakesError, OSError):
        return RunSummary(path.name, "", "", "", "", "damaged", _begun(path.name), path)
    try:
        mount = run.environment.get("mount", {})
    except (StrakesError, OSError):
        mount = {}
    return RunSummary(
        id=run.id,
        kind=str(manifest.get("kind", "")),
        name=str(manifest.get("name", "")),
        target=run.directories,
        file_system=str(mount.get("file_system", "")),
        status=cast("Status", str(manifest.get("status", "damaged"))),
        created=str(manifest.get("created", "")),
        path=path,
    )


def _begun(run: str) -> str:
    """Return when a run began, as its id has it; empty where it has not.

    >>> _begun("20261121-031339-survey-1f2a"), _begun("mine")
    ('2026-11-21T03:13:39+00:00', '')
    """
    try:
        return datetime.strptime(run[: len("20261121-031339")], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).isoformat()
    except ValueError:
        return ""


def _as_it_is_now(summary: RunSummary) -> RunSummary:
    if summary.status == "running" and not Run(summary.path).is_being_written():
        return replace(summary, status="interrupted")
    return summary
