"""Journals of changed settings, in the store's directory ``knobs``: one file per group of changes that must be undone.

Each change is recorded on disk before it is made.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.files import closing, move_kept, open_kept, open_own, own_directory, read_whole, remove_kept
from strakes.base.finite import parse_json
from strakes.base.processes import is_locked, lock_file, process_start
from strakes.base.units import UnixTime
from strakes.control.knob_place import KnobPlace
from strakes.model.record import from_fields, from_record, to_record
from strakes.runs.store_files import AppendFile, files_in, store_errors, whole_length
from strakes.targets.marker import boot_id, pid_namespace

_FORMAT_VERSION = 1
_MOST_BYTES = 64 << 20
PATIENCE_S = 10.0  # Maximum seconds to wait for a lock, which commands hold for milliseconds.
_TEST_S = 0.2  # Longer than the lock of a process that only tests whether a journal is locked.

# Results of restoring a setting. "unchanged": it already had the old value. "changed by others": it has a value that
# strakes did not set, so it was not restored. "gone": it no longer exists. "kept": the user keeps the new value.
Outcome = Literal["restored", "unchanged", "changed by others", "gone", "kept"]
# Kinds of lines in a journal. "will" and "did": before and after a change. "settled": a change is undone. "held": keep
# the changes until ``strakes knobs restore``. "tried": some settings could not be restored.
Kind = Literal["journal", "will", "did", "settled", "tried", "held"]
# State of a process. "elsewhere": on another host or in another container, so its state is unknown.
Life = Literal["alive", "dead", "elsewhere"]


@dataclass(frozen=True)
class Owner:
    """Process that writes a journal. ``started``: clock ticks since boot (proc_pid_stat(5)).

    ``machine``: hash of the machine id (machine-id(5)), or "" if the machine has none.
    """

    host: str
    boot: str
    namespace: str
    pid: int
    started: int
    machine: str = ""

    @classmethod
    def this_process(cls) -> Self:
        """Return the record of the current process."""
        pid = os.getpid()
        return cls(socket.gethostname(), boot_id(), pid_namespace(), pid, process_start(pid) or 0, _machine())

    def life(self) -> Life:
        """Return the state of the process: "alive", "dead" or "elsewhere" (another host or container)."""
        if not self.this_boot:  # First compare boots, because a host name can change without a boot.
            return "dead" if (self.host, self.machine) == (socket.gethostname(), _machine()) else "elsewhere"
        if self.namespace != pid_namespace():
            return "elsewhere"
        return "alive" if process_start(self.pid) == self.started else "dead"

    @property
    def this_boot(self) -> bool:
        """Return whether the process was started on this machine since its last boot."""
        return self.boot == boot_id()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def _machine() -> str:
    with suppress(OSError):  # Only the hash of a machine id may leave the machine (machine-id(5)).
        if identity := Path("/etc/machine-id").read_bytes().strip():
            return hashlib.sha256(b"strakes " + identity).hexdigest()
    return ""


class DamagedJournalError(BadInputError):
    """The changes in a journal cannot be read."""


@dataclass(frozen=True)
class JournalEntry:
    """Change of one setting.

    ``known``: whether ``effective``, the value after the change, is known. ``outcome``: "" until the change is undone.
    """

    number: int
    place: KnobPlace
    before: str | None
    wanted: str | None
    known: bool = False
    effective: str | None = None
    outcome: Literal["", Outcome] = ""


@dataclass(frozen=True)
class JournalState:
    """The contents of a journal."""

    owner: Owner
    target: str
    command: tuple[str, ...]
    created_unix_s: UnixTime
    held: bool
    tried_unix_s: UnixTime
    entries: tuple[JournalEntry, ...]
    path: Path = Path()

    @classmethod
    def from_json(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """Return the contents of the lines of a journal."""
        if not rows:
            raise ValueError("the journal has no complete line")
        if rows[0]["format"] != _FORMAT_VERSION:
            raise ValueError(f"it has format {rows[0]['format']!r}; this version of strakes reads {_FORMAT_VERSION}")
        entries: dict[int, dict[str, Any]] = {}
        tried_unix_s = 0.0
        for row in rows[1:]:
            match row["is"]:
                case "will":
                    known = entries.get(row["number"], row)["place"]
                    if any(known.get(key) != row["place"].get(key) for key in ("name", "host")):
                        raise ValueError(f"two changes have the number {row['number']}")
                    entries[row["number"]] = dict(row)
                case "did":
                    entries[row["number"]] |= {"known": True, "effective": row["effective"]}
                case "settled":
                    entries[row["number"]] |= {"outcome": row["outcome"]}
                case "tried":
                    tried_unix_s = row["unix_s"]
                case kind if kind != "held":
                    raise ValueError(f"it has a line of the kind {kind!r}")
        held = any(row["is"] == "held" for row in rows)
        found = {"held": held, "tried_unix_s": tried_unix_s, "entries": list(entries.values())}
        return from_fields(cls, {**rows[0], **found})

    @property
    def id(self) -> str:
        """Return the id of the journal: the name of its file without suffix."""
        return self.path.stem

    @property
    def open_entries(self) -> tuple[JournalEntry, ...]:
        """Return the changes that are not undone yet."""
        return tuple(entry for entry in self.entries if not entry.outcome)

    def life(self) -> Life:
        """Return the state of the process that writes the journal: "alive", "dead" or "elsewhere"."""
        if self.owner.this_boot:
            return "alive" if is_locked(self.path) else "dead"
        return self.owner.life()


def directory(root: Path) -> Path:
    """Return the directory of the journals of a store."""
    return root / "knobs"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Lock all journals of a store in a ``with`` block. Raises BadInputError if other users can replace them."""
    place = directory(root)
    with store_errors(place), own_directory(place):
        descriptor = open_kept(place / "lock", os.O_RDWR | os.O_CREAT)
    with closing(descriptor):
        _lock(descriptor, place / "lock")
        yield


class KnobJournal:
    """Journal that this process writes. The file is locked until :meth:`release` or :meth:`close`."""

    def __init__(self, root: Path, path: Path, file: AppendFile) -> None:
        self.root = root
        self.path = path
        self._file = file
        self._last = 0
        self._released = False
        self._rows: list[dict[str, Any]] | None = None  # all lines of the journal, if this process created it

    @classmethod
    def begin(cls, root: Path, target: str, command: Sequence[str]) -> Self:
        """Create a journal of this process. Raises StrakesError if the store cannot be written."""
        now = time.time()
        sweep(root)
        with locked(root):
            # The number in the file name keeps the journals in order even if the clock is set back.
            numbers = [int(path.name[:6]) for path in files_in(directory(root), ".jsonl") if path.name[:6].isdecimal()]
            stem = f"{max(numbers, default=0) + 1:06d}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}"
            path, fresh = (directory(root) / name for name in (f"{stem}.jsonl", f".new-{stem}"))
            journal = cls(root, path, AppendFile(fresh, durable=True))
            owner = to_record(Owner.this_process())
            head = {"owner": owner, "target": target, "command": list(command), "created_unix_s": now}
            journal._rows = []
            with store_errors(path), ExitStack() as failed:
                failed.callback(journal.release)
                journal.note("journal", format=_FORMAT_VERSION, **head)
                _lock(journal._file.fileno(), path)
                move_kept(fresh, path)
                failed.pop_all()
        return journal

    @classmethod
    def claim(cls, root: Path, state: JournalState) -> Self | None:
        """Take over the journal of another process. Return None if it was closed or is locked."""
        with locked(root):
            if not state.path.exists():
                return None
            journal = cls(root, state.path, AppendFile(state.path, durable=True))
            try:
                lock_file(journal._file.fileno(), state.path, _TEST_S)
            except EnvironmentLacksError:
                journal.release()
                return None
            journal._last = max((entry.number for entry in state.entries), default=0)
            journal._file.drop_torn_line()
        return journal

    def will(self, place: KnobPlace, before: str | None, wanted: str | None) -> int:
        """Record a planned change, and return its number. Raises BadInputError if another process uses the setting."""
        with locked(self.root):
            self._refuse_conflict(place)
            self._last += 1
            self.note("will", number=self._last, place=to_record(place), before=before, wanted=wanted)
        return self._last

    def note(self, kind: Kind, **fields: object) -> None:
        """Append a line to the journal and flush it to disk. Raises StrakesError if that fails."""
        self._file.append({"is": kind, **fields})
        if self._rows is not None:
            self._rows.append({"is": kind, **fields})

    def state(self) -> JournalState | None:
        """Return the contents of the journal, even if its file was moved or removed. Return None if it is closed."""
        if self._rows and not self._released:
            return replace(JournalState.from_json(self._rows), path=self.path)
        return next((state for state in open_journals(self.root)[0] if state.path == self.path), None)

    def close(self) -> None:
        """Remove the journal. Call this after all of its changes are undone."""
        with locked(self.root), store_errors(self.path):
            remove_kept(self.path)
        self.release()

    def release(self) -> None:
        """Unlock and close the file. Changes that are not undone remain in the file."""
        if not self._released:
            self._released = True
            self._file.close()

    def _refuse_conflict(self, place: KnobPlace) -> None:
        states, errors = open_journals(self.root, without=self.path)
        for error in (each for each in errors if isinstance(each, DamagedJournalError)):
            raise error
        for state in states:
            # A setting changed by ``strakes knobs set`` may be changed again, unless a process is restoring it.
            is_free = state.held and not is_locked(state.path)
            if not is_free and any(entry.place.key == place.key for entry in state.open_entries):
                alive = state.life() == "alive"
                what = f"{place.knob} is already changed by another strakes process"
                why = f"{state.owner}: {' '.join(state.command)}"
                why += "" if alive else " (that process has ended, but its change remains)"
                remedy = "Wait until that process ends." if alive else "First run: strakes knobs restore"
                raise BadInputError(what, where=place.name, why=why, remedy=remedy)


def open_journals(root: Path, without: Path = Path()) -> tuple[tuple[JournalState, ...], tuple[StrakesError, ...]]:
    """Return the readable journals but ``without``, oldest first, and an error for each unreadable one."""
    states, errors = [], []
    for path in (each for each in files_in(directory(root), ".jsonl") if each != without):
        try:
            states.append(read_journal(path))
        except FileNotFoundError:
            continue
        except StrakesError as error:
            errors.append(error)
    return tuple(states), tuple(errors)


def read_journal(path: Path) -> JournalState:
    """Return the contents of a journal.

    Raises BadInputError if it is damaged or belongs to another user, FileNotFoundError if it is missing.
    """
    remedy = "Ask that user to run strakes knobs restore, or put the settings back by hand."
    with store_errors(path, FileNotFoundError), open_own(path, "a journal of knobs", remedy) as file:
        data = read_whole(file, path, _MOST_BYTES)
    try:
        rows = [parse_json(line) for line in data[: whole_length(data)].split(b"\n")[:-1]]
        return replace(from_record(JournalState, rows), path=path)
    except ValueError as error:
        what = "a journal of changed settings is damaged"
        remedy = "Run the strakes that wrote it, or find the old values in it, set them by hand, then remove it."
        raise DamagedJournalError(what, where=str(path), why=str(error), remedy=remedy) from error


def sweep(root: Path) -> None:
    """Remove incomplete journals, and journals of killed processes that contain nothing to undo."""
    with locked(root):
        for torn in directory(root).glob(".new-*"):
            remove_kept(torn)
        for path in files_in(directory(root), ".jsonl"):
            with suppress(BadInputError, FileNotFoundError), store_errors(path, FileNotFoundError):
                if not read_journal(path).open_entries and not is_locked(path):
                    remove_kept(path)


def _lock(descriptor: int, path: Path) -> None:
    try:
        lock_file(descriptor, path, PATIENCE_S)
    except OSError as error:
        what, remedy = "the file system of the store has no locks", "Set STRAKES_STORE to a directory on a local disk."
        raise EnvironmentLacksError(what, where=str(path), why=os.strerror(error.errno or 0), remedy=remedy) from error
