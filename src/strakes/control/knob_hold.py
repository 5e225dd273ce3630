"""One record for each changed setting, so that two stores of this machine do not change the same one.

The records are in ``/run/strakes/knobs``, which is empty after a restart, as the settings have their defaults then;
``STRAKES_RUN`` names another directory. A record holds its setting while the journal that it names is open.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.files import create_kept, open_directory, open_kept, remove_kept
from strakes.control.knob_place import KnobPlace

_MOST_BYTES = 65536


def take(place: KnobPlace, before: str | None, store: Path, journal: Path) -> None:
    """Record that ``store`` changes the setting. A user who may not write there keeps no record.

    Raises BadInputError if another store has changed the setting and not restored it, EnvironmentLacksError if the
    record cannot be written.
    """
    path = _file(place)
    record = {"store": os.path.abspath(store), "journal": os.path.abspath(journal), "before": before}
    try:
        with _locked(path):
            held = _read(path)
            if held and held.get("store") == record["store"]:
                return
            # A journal that cannot be seen may be open elsewhere. With its original value the setting is free.
            seen = "journal" not in held or os.path.lexists(str(held["journal"]))
            if held and (seen or held.get("before") != before):
                what, where = f"{place.knob} is changed by strakes with another store", place.name_with_host
                why = f"store {held.get('store', '?')}; before: {held.get('before', '?')}"
                remedy = "Restore it there: strakes knobs restore. If that store is gone, set the value by hand and "
                raise BadInputError(what, where=where, why=why, remedy=f"{remedy}remove {path}.")
            if held:
                remove_kept(path)
            create_kept(path, json.dumps(record).encode(), mode=0o644)
    except PermissionError:
        return
    except OSError as error:
        raise EnvironmentLacksError(
            f"{place.knob} was not changed, since its original value cannot be recorded",
            where=str(path.parent),
            why=os.strerror(error.errno) if error.errno else str(error),
            remedy="Make it writable with some room, or set STRAKES_RUN to another directory.",
        ) from error


def give_back(place: KnobPlace, store: Path) -> None:
    """Remove the store's record of a setting that is restored or kept."""
    path = _file(place)
    with suppress(OSError), _locked(path):
        if _read(path).get("store") == os.path.abspath(store):
            remove_kept(path)


def _file(place: KnobPlace) -> Path:
    digest = hashlib.sha256(repr(place.key).encode("utf-8", "surrogatepass")).hexdigest()
    return Path(os.environ.get("STRAKES_RUN", "/run/strakes"), "knobs", digest[:32])


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time read and replace records. Raises OSError."""
    os.close(open_directory(path.parent, make=0o755))
    lock = open_kept(path.with_name(".lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _read(path: Path) -> dict[str, object]:
    """Return a record, empty if the file is missing; a damaged one has no journal."""
    try:
        with os.fdopen(open_kept(path, os.O_RDONLY), "rb") as file:
            record = json.loads(file.read(_MOST_BYTES))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        record = None
    return record if isinstance(record, dict) else {"store": "?"}
