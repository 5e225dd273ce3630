"""Records of changed settings on this machine. They prevent two stores from changing the same setting.

The records are in ``/run/strakes/knobs``, or in the directory ``STRAKES_RUN``. A restart of the machine removes the
records and resets the settings. Each change is noted in a journal of its store before it is recorded here. At the end,
the record is removed first. So a record whose change is in no journal means that the journal is lost.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.files import closing, create_kept, open_directory, open_kept, open_own, remove_kept, replace_kept
from strakes.base.finite import parse_json
from strakes.base.processes import lock_file
from strakes.control.knob_journal import PATIENCE_S, JournalState, Owner
from strakes.control.knob_place import KnobPlace
from strakes.model.record import from_record, to_record
from strakes.runs.store_files import files_in

_MOST_BYTES = 65536


@dataclass(frozen=True)
class KnobRecord:
    """Record of a changed setting: place, original value, and the process and store that changed it."""

    store: str
    journal: str
    target: str
    owner: Owner
    place: KnobPlace
    before: str | None


def take(place: KnobPlace, before: str | None, store: Path, journal: Path, target: str = "") -> None:
    """Record that ``store`` changes a setting, unless this user cannot write to the directory of records.

    Raises BadInputError if another store or user has changed the setting and not restored it. Raises
    EnvironmentLacksError if writing fails for another reason.
    """
    path = _file(place)
    names = os.path.abspath(store), os.path.abspath(journal)
    record = to_record(KnobRecord(*names, target, Owner.this_process(), place, before))
    try:
        with _locked(path):
            held = _read(path)
            if held and held.get("store") == record["store"]:
                return
            # A record without a visible journal may come from a container. Ignore it if the setting has the old value.
            seen = "journal" not in held or os.path.lexists(str(held["journal"]))
            if held and (seen or held.get("before") != before):
                what, where = f"{place.knob} was already changed by strakes with another store", place.name_with_host
                old = "the default" if held.get("before", "?") is None else held.get("before", "?")
                why = f"the other store is {held.get('store', '?')}, the old value is {old}"
                remedy = "Run strakes knobs restore with that store. If the store is gone, set the value by hand and "
                raise BadInputError(what, where=where, why=why, remedy=f"{remedy}remove {path}.")
            if held:
                remove_kept(path)
            create_kept(path, json.dumps(record).encode())
    except PermissionError:
        if os.path.lexists(path):
            what, why = f"{place.knob} was already changed by another user", f"only that user can read {path}"
            remedy = "Ask that user (usually root) to run strakes knobs restore."
            raise BadInputError(what, where=place.name_with_host, why=why, remedy=remedy) from None
    except OSError as error:
        what = f"{place.knob} was not changed, because the original value cannot be recorded"
        why = os.strerror(error.errno) if error.errno else str(error)
        remedy = f"Make {path.parent} writable, free some space there, or set STRAKES_RUN to another directory."
        raise EnvironmentLacksError(what, where=str(path.parent), why=why, remedy=remedy) from error


def give_back(place: KnobPlace, store: Path) -> None:
    """Remove the record of a setting that ``store`` has changed."""
    path = _file(place)
    with suppress(OSError), _locked(path):
        if _read(path).get("store") == os.path.abspath(store):
            remove_kept(path)


def hand_over(place: KnobPlace, before: str | None, store: Path, heir: JournalState) -> None:
    """Assign the record of a setting to ``heir``, another journal of the store. ``before``: old value in ``heir``."""
    record = KnobRecord(os.path.abspath(store), os.path.abspath(heir.path), heir.target, heir.owner, place, before)
    path = _file(place)
    with suppress(OSError), _locked(path):
        if _read(path).get("store") == record.store:
            replace_kept(path, json.dumps(to_record(record)).encode())


def other_store(place: KnobPlace, store: Path) -> str:
    """Return the name of another store that has changed a setting and not restored it, or ""."""
    name = ""
    with suppress(OSError):
        name = str(_read(_file(place)).get("store", ""))
    return "" if name in ("?", os.path.abspath(store)) else name


def original(place: KnobPlace, store: Path, otherwise: str | None) -> str | None:
    """Return the old value in the record of a setting that ``store`` has changed, or ``otherwise`` without a record."""
    with suppress(OSError, ValueError, BadInputError), open_own(_file(place), "a record", "") as file:
        record = from_record(KnobRecord, _parsed(file))
        return record.before if record.store == os.path.abspath(store) else otherwise
    return otherwise


def records(store: Path) -> tuple[list[KnobRecord], list[StrakesError]]:
    """Return the records of settings that runs of ``store`` changed, and the errors of damaged or unreadable ones.

    A record contains commands that strakes runs, so skip records that other users can write or replace.
    """
    found: list[KnobRecord] = []
    errors: list[StrakesError] = []
    try:
        paths = files_in(_directory(), "")
    except StrakesError as error:  # The umask of root may hide its records from users.
        return [], [error] if os.geteuid() == 0 or not isinstance(error.__cause__, PermissionError) else []
    for path in paths:
        try:
            with open_own(path, "a record", "") as file:
                record = _parsed(file)
            if record.get("store") in ("?", os.path.abspath(store)):
                found.append(from_record(KnobRecord, record))
        except (FileNotFoundError, BadInputError):
            continue
        except (OSError, ValueError) as error:
            what, remedy = "the record of a changed setting is damaged", "Set the value by hand, then remove the file."
            if isinstance(error, OSError):
                what, remedy = "the record of a changed setting cannot be read", "Try again: strakes knobs restore"
            errors.append(BadInputError(what, where=str(path), why=str(error), remedy=remedy))
    return found, errors


def _directory() -> Path:
    return Path(os.environ.get("STRAKES_RUN") or "/run/strakes", "knobs")


def _file(place: KnobPlace) -> Path:
    return _directory() / hashlib.sha256(repr(place.key).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    os.close(open_directory(path.parent, make=0o755))
    path = path.with_name(".lock")
    with closing(open_kept(path, os.O_RDWR | os.O_CREAT)) as lock:
        lock_file(lock, path, PATIENCE_S)
        yield


def _read(path: Path) -> dict[str, object]:
    with suppress(FileNotFoundError), os.fdopen(open_kept(path, os.O_RDONLY), "rb") as file:
        return _parsed(file)
    return {}


def _parsed(file: BinaryIO) -> dict[str, object]:
    with suppress(ValueError):
        if isinstance(record := parse_json(file.read(_MOST_BYTES)), dict):
            return record
    return {"store": "?"}
