"""One record for each place whose value is changed, beside the setting itself: two stores do not change the same place.

It lies below ``/run/strakes`` of the machine that has the setting, so that it goes when the machine's settings go;
``STRAKES_RUN`` names another directory. Of a setting that a whole cluster keeps it lies in the cluster
(:mod:`strakes.knobs.board`). What is in it is the value before the first change, and which store is to put it back.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shlex
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from strakes.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.files import create_kept, make_directory, open_directory, open_kept, read_kept, remove_kept
from strakes.knobs.board import Board, board_of
from strakes.knobs.journal import DamagedJournalError, JournalState, read_journal
from strakes.knobs.knob_place import KnobPlace
from strakes.store.files import store_error
from strakes.targets.command import Runner, Servers
from strakes.targets.marker import boot_id

_MOST_BYTES = 65536


# foreign: written where names of files mean something else. damaged: its journal does not say what is to be put back.
# lost: its journal is gone before the value was put back. finished: the value was put back or kept.
Condition = Literal["foreign", "open", "damaged", "finished", "lost"]


@dataclass(frozen=True)
class Original:
    """The value that a place had before the first change, as its record says."""

    value: str | None


def take(place: KnobPlace, before: str | None, store: Path, journal: Path, ask: Runner) -> None:
    """Say that ``store`` changes the place. Raises BadInputError where another store does and has not put it back.

    Where the journal of the record before is lost, its original value stays the original value.
    """
    record: dict[str, object] = {**_claim(store), "seen_from": _seen_from(), "journal": _name_of(journal)}
    record |= {"place": place.to_json(), "before": before}
    board = board_of(place)
    if board is not None and _take_in_cluster(board, place, record, store, ask):
        return
    for _ in range(2):
        with _alone():
            text = json.dumps(record)
            held = _on_server(place, _TAKE, ask, text) if place.host else _take_here(place, text)
            if not held:
                return
            if _is_orphan(held, place, store):
                record["before"] = _read(held)["before"]
            elif _is_of(held, store):
                return
            elif _condition(held, place) != "finished":
                break
            _remove(place, ask)
    raise _refusal(place, held, f"remove {_file(place)}")


def lost_original(place: KnobPlace, store: Path, ask: Runner) -> Original | None:
    """Return what a change whose journal is lost has left to be put back; None where nothing is left so."""
    board = board_of(place)
    held: list[str] = []
    with suppress(MeasurementError):  # this user may not
        held += board.read(ask).values() if board else ()
    held.append(_on_server(place, _READ, ask, "") if place.host else _read_here(place))
    return next((Original(_before(text)) for text in held if text and _is_orphan(text, place, store)), None)


@dataclass(frozen=True)
class Orphan:
    """A record of this machine that no journal puts back any more."""

    path: Path
    place: KnobPlace
    before: str | None
    journal: str


@contextmanager
def orphans(store: Path) -> Iterator[tuple[Orphan, ...]]:
    """Yield this user's records of this machine that no journal puts back; nobody else takes or removes any then."""
    with _alone():
        yield tuple(orphan for path in _records() if (orphan := _orphan(path, store)))


def damaged_records() -> tuple[BadInputError, ...]:
    """Return an error for each record of this user and machine that does not say any more what is to be put back."""
    return tuple(
        BadInputError(
            "the record of a changed setting is damaged",
            where=str(path),
            why="its setting and its original value cannot be read",
            remedy="Look for the setting in strakes knobs list, set it by hand, then remove the file.",
        )
        for path in _records()
        if _is_own(path) and not {"place", "before"} <= _read(_read_file(path, own=True)).keys()
    )


def _is_own(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:  # it was put back meanwhile
        return False


def _records() -> list[Path]:
    place = Path(os.environ.get("STRAKES_RUN", "/run/strakes"), "knobs")
    try:
        return sorted(path for path in place.iterdir() if not path.name.startswith("."))
    except OSError:
        return []


def _orphan(path: Path, store: Path) -> Orphan | None:
    held = _read_file(path, own=True)
    record = _read(held)
    document = record.get("place")
    if not isinstance(document, dict):
        return None
    try:
        place = KnobPlace.from_json(document)
    except TypeError:
        return None
    # Only what lies where such a record lies: a copy of it says nothing.
    if place.host or _file(place).name != path.name or not _is_orphan(held, place, store):
        return None
    return Orphan(path, place, _before(held), str(record.get("journal")))


@contextmanager
def _alone() -> Iterator[None]:
    """Keep others of this machine from judging and removing a record at the same moment."""
    lock = Path(os.environ.get("STRAKES_RUN", "/run/strakes"), "knobs", ".lock")
    try:
        os.close(open_directory(lock.parent, make=0o755))
        descriptor = open_kept(lock, os.O_RDWR | os.O_CREAT)
    except OSError:  # who may not write there makes and removes none
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def give_back(place: KnobPlace, store: Path, ask: Runner) -> None:
    """Say that the place has its old value, as far as this store knows. What does not answer keeps its record."""
    with suppress(StrakesError, OSError):
        if board := board_of(place):
            for key, held in board.read(ask).items():
                if _is_of(held, store):
                    board.remove(key, ask)
    with suppress(StrakesError, OSError):
        held = _on_server(place, _READ, ask, "") if place.host else _read_here(place)
        # Nobody else could take the place meanwhile: a record that nobody can read was ours.
        if held and (_is_of(held, store) or "before" not in _read(held)):
            _remove(place, ask)


def _take_in_cluster(board: Board, place: KnobPlace, record: dict[str, object], store: Path, ask: Runner) -> bool:
    """Return whether the cluster keeps the record; where it does not, the machine's own has to do."""
    claimant = " ".join(_claim(store).values())
    own = board.key_of(claimant)
    try:
        known = board.read(ask)
    except MeasurementError:
        return False  # this user may not
    others = {key: held for key, held in known.items() if key != own}
    orphans = {key: held for key, held in known.items() if _is_orphan(held, place, store)}
    if orphans:
        record["before"] = _before(next(iter(orphans.values())))
    if (own not in known or own in orphans) and not _anybody_else(board, place, others, store, ask):
        if not board.write(claimant, json.dumps(record), ask):
            return False
        others = {key: held for key, held in board.read(ask).items() if key != own}
        if others:  # they came at the same moment
            board.remove(own, ask)
    if remaining := _anybody_else(board, place, others, store, ask):
        key, held = next(iter(remaining.items()))
        raise _refusal(place, held, f"call {shlex.join(board.removal(key))}")
    return True


def _anybody_else(
    board: Board, place: KnobPlace, others: Mapping[str, str], store: Path, ask: Runner
) -> dict[str, str]:
    """Return the records that still count; what stores that are gone from this host have left is removed."""
    remaining = {}
    for key, held in others.items():
        if _is_orphan(held, place, store) or _condition(held, place) == "finished":
            board.remove(key, ask)
        else:
            remaining[key] = held
    return remaining


def _refusal(place: KnobPlace, held: str, removal: str) -> BadInputError:
    other = _read(held)
    return BadInputError(
        f"{place.knob} is changed by strakes with another store",
        where=place.name_with_host,
        why=f"store {other.get('store', '?')} on {other.get('host', '?')}; before: {other.get('before', '?')}",
        remedy=f"Put it back there: strakes knobs restore. If that store is gone, set the value by hand and {removal}.",
    )


# Linked to its name when it is whole: no kill leaves a record that says nothing.
_TAKE = (
    'umask 022; mkdir -p "${1%/*}" && printf %s "$2" >"$1.$$" && '
    '{ ln "$1.$$" "$1" 2>/dev/null || head -c 65536 "$1"; }; '
    'status=$?; rm -f "$1.$$"; exit $status'
)
_READ = '[ ! -f "$1" ] || head -c 65536 "$1"'
_REMOVE = 'rm -f "$1"'


def _file(place: KnobPlace) -> Path:
    """One for each place, however it is reached."""
    root = "/run/strakes" if place.host else os.environ.get("STRAKES_RUN", "/run/strakes")
    digest = hashlib.sha256(repr(place.key[1:]).encode("utf-8", "surrogatepass")).hexdigest()
    return Path(root, "knobs", digest[:32])


def _on_server(place: KnobPlace, script: str, ask: Runner, text: str) -> str:
    """Return what the script says; nothing where that user may keep no record: he can change nothing there either."""
    words = ("sh", "-c", script, "sh", str(_file(place)), text)
    done = Servers(place.servers).runner(place.host, ask)(words)
    return done.stdout.strip() if done.status == 0 else ""


def _take_here(place: KnobPlace, text: str) -> str:
    path = _file(place)
    try:
        os.close(open_directory(path.parent, make=0o755))
        create_kept(path, text.encode(), mode=0o644)
    except (FileExistsError, PermissionError):
        return _read_here(place)  # who may not write there changes no setting of this machine
    except OSError as error:
        raise _no_record(place, error) from error
    return ""


def _no_record(place: KnobPlace, error: OSError) -> EnvironmentLacksError:
    return EnvironmentLacksError(
        f"{place.knob} was not changed, since its original value cannot be recorded",
        where=str(_file(place).parent),
        why=os.strerror(error.errno) if error.errno else str(error),
        remedy="Make it writable with some room, or set STRAKES_RUN to another directory.",
    )


def _read_here(place: KnobPlace) -> str:
    return _read_file(_file(place))


def _read_file(path: Path, *, own: bool = False) -> str:
    """Return what is in a record; nothing where there is none, or, of ``own`` ones, where it is another user's."""
    try:
        descriptor = open_kept(path, os.O_RDONLY)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        # It says which commands to run: those of somebody else are not run in our name.
        if own and os.fstat(descriptor).st_uid != os.geteuid():
            return ""
        return file.read(_MOST_BYTES).decode(errors="replace")


def _remove(place: KnobPlace, ask: Runner) -> None:
    if place.host:
        _on_server(place, _REMOVE, ask, "")
    else:
        with suppress(OSError):
            remove_kept(_file(place))


def _read(held: str) -> dict[str, object]:
    try:
        record = json.loads(held)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _is_of(held: str, store: Path) -> bool:
    record, claim = _read(held), _claim(store)
    # Hosts that share a store are told apart by their names, unless it is this machine under another name.
    if _boot_of(record) == boot_id():
        del claim["host"]
    return claim == {key: record.get(key) for key in claim}


def _boot_of(record: Mapping[str, object]) -> str:
    return str(record.get("seen_from", "")).partition(" ")[0]


def _claim(store: Path) -> dict[str, str]:
    """Whose a record is. Several hosts may have one name, or one home directory; no two stores have one identity."""
    return {"host": socket.gethostname(), "store": _name_of(store), "identity": _identity_of(store)}


def _identity_of(store: Path) -> str:
    """Return what the store was called by chance when it first changed a setting. Raises StrakesError."""
    path = _identity_file(store)
    try:
        with suppress(FileNotFoundError):
            return _read_identity(path)
        make_directory(path.parent)
        with suppress(FileExistsError):  # another process was first
            create_kept(path, f"{secrets.token_hex(16)}\n".encode())
        return _read_identity(path)
    except OSError as error:
        raise store_error(error, path) from error


def _read_identity(path: Path) -> str:
    return read_kept(path, _MOST_BYTES).decode("ascii", "replace").strip()


def _identity_file(store: Path) -> Path:
    return store / "knobs" / "identity"


def _is_orphan(held: str, place: KnobPlace, store: Path) -> bool:
    """Whether no journal puts the place back any more, as far as this store can say."""
    record = _read(held)
    if "before" not in record or not isinstance(record["before"], str | None):
        return False
    condition = _condition(held, place)
    # What is wrong with the journal of another store is for that store to say.
    return condition == "lost" or (condition == "damaged" and _is_of(held, store))


def _before(held: str) -> str | None:
    value = _read(held).get("before")
    return value if isinstance(value, str) else None


def _condition(held: str, place: KnobPlace) -> Condition:
    """Tell what has become of the journal that is to put a record's place back.

    Only where names of files mean the same as for whoever wrote it: since this boot, and with these mounts.
    """
    record = _read(held)
    journal, store = record.get("journal"), record.get("store")
    if record.get("seen_from") != _seen_from() or not isinstance(journal, str) or not isinstance(store, str):
        return "foreign"
    try:
        if _read_identity(_identity_file(Path(store))) != record.get("identity"):
            return "lost"  # another store has its name now
        if (state := _state_of(Path(journal))) == "damaged":
            return "damaged"
        closed = None if state else _state_of(Path(journal).parent.with_name("closed") / Path(journal).name)
    except (FileNotFoundError, NotADirectoryError):
        return "lost"
    except (OSError, StrakesError):
        return "foreign"
    if state:
        outcomes = [entry.outcome for entry in state.entries if entry.place.key == place.key]
        return "damaged" if not outcomes else "finished" if all(outcomes) else "open"
    settled = closed and closed != "damaged" and any(entry.place.key == place.key for entry in closed.entries)
    return "finished" if settled else "lost"


def _state_of(journal: Path) -> JournalState | Literal["damaged"] | None:
    """Return a journal, None where it is gone. Raises OSError or StrakesError for another user's."""
    try:
        os.lstat(journal)
        return read_journal(journal)
    except DamagedJournalError:
        return "damaged"
    except (FileNotFoundError, NotADirectoryError):
        return None


def _seen_from() -> str:
    """Tell these files from those of other machines and containers, and of this machine before it started anew."""
    mounts = os.stat("/proc/self/ns/mnt")
    return f"{boot_id()} {mounts.st_dev}:{mounts.st_ino}"


def _name_of(path: Path) -> str:
    return os.path.abspath(path)
