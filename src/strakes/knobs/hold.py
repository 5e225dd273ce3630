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
from pathlib import Path

from strakes.errors import BadInputError, MeasurementError, StrakesError
from strakes.knobs.board import Board, board_of
from strakes.knobs.knob_place import KnobPlace
from strakes.regular_file import read_at_most
from strakes.store.files import store_error, sync_directory
from strakes.targets.command import Runner, Servers
from strakes.targets.marker import boot_id

_MOST_BYTES = 65536


def take(place: KnobPlace, before: str | None, store: Path, journal: Path, ask: Runner) -> None:
    """Say that ``store`` changes the place. Raises BadInputError where another store does and has not put it back."""
    record = {**_claim(store), "seen_from": _seen_from(), "journal": _name_of(journal), "before": before}
    text = json.dumps(record)
    board = board_of(place)
    if board is not None and _take_in_cluster(board, place, text, store, ask):
        return
    for _ in range(2):
        with _alone():
            held = _on_server(place, _TAKE, ask, text) if place.host else _take_here(place, text)
            if not held or _is_of(held, store):
                return
            if not _is_left(held):
                break
            _remove(place, ask)
    raise _refusal(place, held, f"remove {_file(place)}")


@contextmanager
def _alone() -> Iterator[None]:
    """Keep others of this machine from judging and removing a record at the same moment."""
    lock = Path(os.environ.get("STRAKES_RUN", "/run/strakes"), "knobs", ".lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
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
        if held and _is_of(held, store):
            _remove(place, ask)


def _take_in_cluster(board: Board, place: KnobPlace, text: str, store: Path, ask: Runner) -> bool:
    """Return whether the cluster keeps the record; where it does not, the machine's own has to do."""
    claimant = " ".join(_claim(store).values())
    own = board.key_of(claimant)
    try:
        known = board.read(ask)
    except MeasurementError:
        return False  # this user may not
    others = {key: held for key, held in known.items() if key != own}
    if own not in known and not _anybody_else(board, others, ask):
        if not board.write(claimant, text, ask):
            return False
        others = {key: held for key, held in board.read(ask).items() if key != own}
        if others:  # they came at the same moment
            board.remove(own, ask)
    if remaining := _anybody_else(board, others, ask):
        key, held = next(iter(remaining.items()))
        raise _refusal(place, held, f"call {shlex.join(board.removal(key))}")
    return True


def _anybody_else(board: Board, others: Mapping[str, str], ask: Runner) -> dict[str, str]:
    """Return the records that still count; what stores that are gone from this host have left is removed."""
    remaining = {}
    for key, held in others.items():
        if _is_left(held):
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
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except PermissionError:
        return _read_here(place)  # who may not write there changes no setting of this machine
    try:
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
        # Under its name when it is whole: no kill leaves a record that says nothing.
        os.link(fresh, path)
    except FileExistsError:
        return _read_here(place)
    finally:
        fresh.unlink(missing_ok=True)
    return ""


def _read_here(place: KnobPlace) -> str:
    try:
        descriptor = os.open(_file(place), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MOST_BYTES).decode(errors="replace")


def _remove(place: KnobPlace, ask: Runner) -> None:
    if place.host:
        _on_server(place, _REMOVE, ask, "")
    else:
        with suppress(OSError):
            _file(place).unlink(missing_ok=True)


def _read(held: str) -> dict[str, object]:
    try:
        record = json.loads(held)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _is_of(held: str, store: Path) -> bool:
    record, claim = _read(held), _claim(store)
    return claim == {key: record.get(key) for key in claim}


def _claim(store: Path) -> dict[str, str]:
    """Whose a record is. Several hosts may have one name, or one home directory; no two stores have one identity."""
    return {"host": socket.gethostname(), "store": _name_of(store), "identity": _identity_of(store)}


def _identity_of(store: Path) -> str:
    """Return what the store was called by chance when it first changed a setting. Raises StrakesError."""
    path = store / "knobs" / "identity"
    try:
        with suppress(FileNotFoundError):
            return read_at_most(path, _MOST_BYTES).decode("ascii", "replace").strip()
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".identity-{secrets.token_hex(8)}")
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
                file.write(f"{secrets.token_hex(16)}\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # another process was first
                os.link(fresh, path)
            sync_directory(path.parent)
        finally:
            fresh.unlink(missing_ok=True)
        return read_at_most(path, _MOST_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        raise store_error(error, path) from error


def _is_left(held: str) -> bool:
    """Whether the journal that was to put it back is closed, or gone with its store.

    Only where names of files mean the same as for whoever wrote it: since this boot, and with these mounts.
    """
    record = _read(held)
    journal = record.get("journal")
    here = (record.get("host"), record.get("seen_from")) == (socket.gethostname(), _seen_from())
    return here and isinstance(journal, str) and not os.path.lexists(journal)


def _seen_from() -> str:
    """Tell these files from those of other machines and containers, and of this machine before it started anew."""
    mounts = os.stat("/proc/self/ns/mnt")
    return f"{boot_id()} {mounts.st_dev}:{mounts.st_ino}"


def _name_of(path: Path) -> str:
    return os.path.abspath(path)
