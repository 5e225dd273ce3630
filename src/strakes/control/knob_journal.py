"""The journal of changed knobs: a file for each set of changes.

Every line is on the disk before the change that it announces. The file is in ``knobs/open`` of the store until all
its changes are settled, then in ``knobs/closed``.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.files import make_directory, move_kept, open_kept, open_own, read_whole, remove_kept
from strakes.control.knob_owner import Life, Owner
from strakes.control.knob_place import KnobPlace
from strakes.runs.store_files import AppendFile, store_error, whole_length

_FORMAT_VERSION = 1
_MOST_CLOSED_FILES = 200
_MOST_BYTES = 64 << 20

# unchanged: it had the old value already. changed by others: it has neither our value nor the old one, and stays.
# gone: the setting does not exist any more. kept: the user asked to leave it.
Outcome = Literal["restored", "unchanged", "changed by others", "gone", "kept"]


class DamagedJournalError(BadInputError):
    """A journal whose changes cannot be read."""


@dataclass(frozen=True)
class JournalEntry:
    """One change.

    ``known``: the value after the change was recorded (``effective``); ``outcome`` is "" until it is settled.
    """

    number: int
    place: KnobPlace
    before: str | None
    wanted: str | None
    known: bool = False
    effective: str | None = None
    outcome: str = ""
    found: str | None = None


@dataclass(frozen=True)
class JournalState:
    """The contents of a journal.

    ``held``: left open on purpose; ``given_up``: its process could not restore everything, and went on.
    """

    id: str
    path: Path
    owner: Owner
    target: str
    command: tuple[str, ...]
    created_unix_s: float
    held: bool
    given_up: bool
    tried_unix_s: float
    closed: str
    entries: tuple[JournalEntry, ...]

    @property
    def open_entries(self) -> tuple[JournalEntry, ...]:
        """Return the changes that are not settled yet."""
        return tuple(entry for entry in self.entries if not entry.outcome)

    def life(self) -> Life:
        """Return the life of its process; the file's lock shows a process in another container of this machine."""
        if self.given_up:
            return "dead"
        life = self.owner.life()
        if life == "elsewhere" and self.owner.this_boot:
            return "alive" if _is_locked(self.path) else "dead"
        return life


def directory(root: Path, which: Literal["open", "closed"]) -> Path:
    """Return the directory of a store's open or closed journals."""
    return root / "knobs" / which


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Let one process at a time create, close and compare journals."""
    place = root / "knobs"
    try:
        for each in ("open", "closed"):
            make_directory(place / each)
        descriptor = open_kept(place / "lock", os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise store_error(error, place) from error
    try:
        _lock(descriptor, place, wait=True)
        yield
    finally:
        os.close(descriptor)


class KnobJournal:
    """An open journal that this process writes: it holds the file's lock until :meth:`release` or :meth:`close`."""

    def __init__(self, root: Path, path: Path, file: AppendFile) -> None:
        self.root = root
        self.path = path
        self._file = file
        self._last = 0
        self._released = False

    @property
    def id(self) -> str:
        """Its name."""
        return self.path.stem

    @classmethod
    def begin(cls, root: Path, target: str, command: Sequence[str]) -> Self:
        """Create a journal of this process. Raises StrakesError if the store cannot be written."""
        now = time.time()
        with locked(root):
            _sweep(root)
            place = directory(root, "open")
            path = place / f"{_next_number(root):06d}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}.jsonl"
            fresh = place / f".new-{path.stem}"
            journal = cls(root, path, AppendFile(fresh, durable=True))
            try:
                journal._append(
                    {
                        "is": "journal",
                        "format": _FORMAT_VERSION,
                        "owner": asdict(Owner.this_process()),
                        "target": target,
                        "command": list(command),
                        "created_unix_s": now,
                    }
                )
                _lock(journal._file.fileno(), path, wait=True)
                move_kept(fresh, path)
            except OSError as error:
                journal.release()
                raise store_error(error, path) from error
            except BaseException:
                journal.release()
                raise
        return journal

    @classmethod
    def claim(cls, root: Path, state: JournalState) -> Self | None:
        """Take over a journal of another process; return None if it is closed or another process writes it."""
        with locked(root):
            if not state.path.exists():
                return None
            journal = cls(root, state.path, AppendFile(state.path, durable=True))
            if not _lock(journal._file.fileno(), state.path, wait=False):
                journal.release()
                return None
            journal._last = max((entry.number for entry in state.entries), default=0)
            journal._file.drop_torn_line()
        return journal

    def will(self, place: KnobPlace, before: str | None, wanted: str | None) -> int:
        """Announce a change. Raises BadInputError if another journal has an open change of the place."""
        with locked(self.root):
            self._refuse_conflict(place)
            self._last += 1
            document = {
                "is": "will",
                "number": self._last,
                "place": place.to_json(),
                "before": before,
                "wanted": wanted,
            }
            self._append(document)
        return self._last

    def did(self, number: int, effective: str | None) -> None:
        """Record the value after the change."""
        self._append({"is": "did", "number": number, "effective": effective})

    def settled(self, number: int, outcome: Outcome, found: str | None) -> None:
        """Record the outcome of a change."""
        self._append({"is": "settled", "number": number, "outcome": outcome, "found": found})

    def tried(self) -> None:
        """Record an attempt that could not restore everything."""
        self._append({"is": "tried", "unix_s": time.time()})

    def hold(self) -> None:
        """Leave it open on purpose, until ``strakes knobs restore``."""
        self._append({"is": "held"})

    def give_up(self) -> None:
        """Leave the remaining changes to later commands."""
        self._append({"is": "given up"})

    def close(self, how: str) -> None:
        """Move the journal to the closed ones: all its changes are settled."""
        # The directory decides; the line is for readers.
        with suppress(StrakesError):
            self._append({"is": "closed", "how": how, "unix_s": time.time()})
        with locked(self.root):
            _move_to_closed(self.root, self.path)
        self.release()

    def release(self) -> None:
        """Stop writing; open changes stay open."""
        if not self._released:
            self._released = True
            self._file.close()

    def _append(self, row: Mapping[str, object]) -> None:
        self._file.append(row)

    def _refuse_conflict(self, place: KnobPlace) -> None:
        states, errors = open_journals(self.root)
        for error in errors:
            if isinstance(error, DamagedJournalError):
                raise error  # it may have an open change of this place
        for state in states:
            # Changes may be stacked on a held journal; they are restored in reverse order.
            if state.path == self.path or state.held:
                continue
            if any(entry.place.key == place.key for entry in state.open_entries):
                alive = state.life() == "alive"
                raise BadInputError(
                    f"{place.knob} is being changed by another strakes process",
                    where=place.name,
                    why=f"{state.owner}: {' '.join(state.command)}"
                    + ("" if alive else " (it has ended, but its change has not been put back yet)"),
                    remedy="Wait until it ends." if alive else "Put it back first: strakes knobs restore",
                )


def open_journals(root: Path) -> tuple[tuple[JournalState, ...], tuple[StrakesError, ...]]:
    """Return the journals with open changes, oldest first, and the errors of unreadable ones."""
    states, errors = [], []
    for path in _files(directory(root, "open")):
        try:
            state = read_journal(path)
        except FileNotFoundError:
            continue  # closed meanwhile
        except StrakesError as error:
            errors.append(error)
            continue
        if not state.closed:
            states.append(state)
    return tuple(states), tuple(errors)


def closed_journals(root: Path) -> tuple[JournalState, ...]:
    """Return the closed journals, oldest first, without unreadable ones."""
    states = []
    for path in _files(directory(root, "closed")):
        with suppress(StrakesError, FileNotFoundError):
            states.append(read_journal(path))
    return tuple(states)


def read_journal(path: Path) -> JournalState:
    """Read a journal.

    Raises BadInputError if it is damaged or belongs to another user, FileNotFoundError if it is missing.
    """
    try:
        remedy = "Ask that user to put the settings back: strakes knobs restore"
        with open_own(path, "a journal of knobs", remedy) as file:
            data = read_whole(file, path, _MOST_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise store_error(error, path) from error
    try:
        rows = [json.loads(line) for line in data[: whole_length(data)].splitlines()]
        return _state(path, rows)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise DamagedJournalError(
            "a journal of knobs is damaged",
            where=str(path),
            why=str(error),
            remedy=("Find the old values in the file, set them by hand, then remove the file."),
        ) from error


def _state(path: Path, rows: Sequence[Mapping[str, Any]]) -> JournalState:
    if not rows:
        raise ValueError("it has no whole line")
    head = rows[0]
    if head["format"] != _FORMAT_VERSION:
        raise ValueError(f"it has format {head['format']}, this version of strakes knows {_FORMAT_VERSION}")
    entries: dict[int, JournalEntry] = {}
    for row in rows[1:]:
        match row["is"]:
            case "will":
                entries[row["number"]] = JournalEntry(
                    row["number"], KnobPlace.from_json(row["place"]), row["before"], row["wanted"]
                )
            case "did":
                entries[row["number"]] = replace(entries[row["number"]], known=True, effective=row["effective"])
            case "settled":
                entries[row["number"]] = replace(entries[row["number"]], outcome=row["outcome"], found=row["found"])
    return JournalState(
        id=path.stem,
        path=path,
        owner=Owner.from_json(head["owner"]),
        target=head["target"],
        command=tuple(head["command"]),
        created_unix_s=float(head["created_unix_s"]),
        held=any(row["is"] == "held" for row in rows),
        given_up=any(row["is"] == "given up" for row in rows),
        tried_unix_s=max((float(row["unix_s"]) for row in rows if row["is"] == "tried"), default=0.0),
        closed=next((row["how"] for row in rows if row["is"] == "closed"), ""),
        entries=tuple(entries.values()),
    )


def _files(place: Path) -> list[Path]:
    try:
        return sorted(path for path in place.iterdir() if path.suffix == ".jsonl" and not path.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise store_error(error, place) from error


def sweep(root: Path) -> None:
    """Remove journals that were never begun, and close finished journals of killed processes."""
    with locked(root):
        _sweep(root)


def _sweep(root: Path) -> None:
    place = directory(root, "open")
    # The caller holds the lock for creating and closing journals.
    for torn in place.glob(".new-*"):
        remove_kept(torn)
    for path in _files(place):
        with suppress(BadInputError):
            if read_journal(path).closed:
                _move_to_closed(root, path)


def _next_number(root: Path) -> int:
    """Return a number above all others, so that the order does not depend on the clock."""
    paths = [*_files(directory(root, "open")), *_files(directory(root, "closed"))]
    numbers = [int(path.name[:6]) for path in paths if path.name[:6].isdecimal()]
    return max(numbers, default=0) + 1


def _move_to_closed(root: Path, path: Path) -> None:
    try:
        target = directory(root, "closed")
        with suppress(FileNotFoundError):
            move_kept(path, target / path.name)
        for old in _files(target)[:-_MOST_CLOSED_FILES]:
            remove_kept(old)
    except OSError as error:
        raise store_error(error, path) from error


def _is_locked(path: Path) -> bool:
    try:
        descriptor = open_kept(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _lock(descriptor, path, wait=False)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, *, wait: bool) -> bool:
    """Lock the file; return whether that succeeded. Raises EnvironmentLacksError without support for locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise EnvironmentLacksError(
            "the file system of the store does not support locks",
            where=str(path),
            why=os.strerror(error.errno or 0),
            remedy="Set STRAKES_STORE to a directory on a local disk.",
        ) from error
    return True
