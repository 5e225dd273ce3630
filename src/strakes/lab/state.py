"""Directory and journal of a lab. The journal shows what to undo if the start of the lab was killed."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from strakes.base.errors import BadInputError
from strakes.base.files import (
    PlantedFileError,
    closing,
    in_home,
    open_directory,
    open_kept,
    open_own,
    owner_of,
    read_whole,
)
from strakes.base.finite import parse_json
from strakes.base.processes import lock_holder
from strakes.base.units import UnixTime
from strakes.model.record import from_record
from strakes.targets.marker import boot_id

JOURNAL = "lab.jsonl"
_MOST_JOURNAL_BYTES = 16 << 20
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_ID = re.compile("[0-9a-f]{10}")
# Maximum length of a lab's path. Ceph appends the name of a Unix socket, whose path may have 107 bytes.
_SOCKET_DIRECTORY_BYTES = 107 - len("/run/client.admin.4194304.asok")
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
ELSEWHERE = "Give another directory: XDG_STATE_HOME=DIR"


def labs_root() -> Path:
    """Return the directory of all labs: ``$XDG_STATE_HOME/strakes/lab``, or /var/lib/strakes-lab for root.

    For root, it raises BadInputError if other users can replace the directory, because servers trust the files in it.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        root = Path(state, "strakes", "lab")
    else:
        root = in_home("/var/lib/strakes-lab" if os.geteuid() == 0 else "~/.local/state/strakes/lab", ELSEWHERE)
    with suppress(OSError):
        os.close(open_guarded(root))
    return root


def open_guarded(directory: Path, *, make: int = 0) -> int:
    """Open a directory, and return its descriptor. For root, raises BadInputError if other users can replace it."""
    try:
        return open_directory(directory, make=make, guarded=os.geteuid() == 0)
    except PlantedFileError as error:
        what = "the directory of labs belongs to another user"
        raise BadInputError(what, where=str(directory), why=str(error.strerror), remedy=ELSEWHERE) from error


def directory_of(name: str) -> Path:
    """Return the path of a lab's directory, which may not exist. Raises BadInputError for an invalid name."""
    if not _NAME.fullmatch(name):
        remedy = "Use lower-case letters, digits and hyphens, beginning with a letter."
        raise BadInputError(f"not a valid name of a lab: {name!r}", remedy=remedy)
    return labs_root() / name


def all_directories() -> tuple[Path, ...]:
    """Return the directories of all labs, sorted by name."""
    root = labs_root()
    try:
        return tuple(root / name for name in sorted(filter(_NAME.fullmatch, os.listdir(root))))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise BadInputError("the labs cannot be listed", where=str(root), why=error.strerror or "") from error


def refuse_long_path(directory: Path) -> None:
    """Raise BadInputError if the path of a lab's directory is too long for Unix sockets in it."""
    if len(os.fsencode(directory)) > _SOCKET_DIRECTORY_BYTES:
        why = f"Unix sockets in it limit its path to {_SOCKET_DIRECTORY_BYTES} bytes"
        what = "the path of the lab's directory is too long"
        raise BadInputError(what, where=str(directory), why=why, remedy=ELSEWHERE)


@contextmanager
def working_in(lab: Path, *, make: bool) -> Iterator[bool]:
    """Lock a lab's directory while the ``with`` body runs. Yield whether the lab exists. ``make``: create it first.

    Raises BadInputError if the directory is already locked, or if it belongs to another user.
    """
    if make:
        try:
            with closing(open_guarded(lab.parent, make=0o755)) as above, suppress(FileExistsError):
                # With mode 711, other users can reach the mount point, but cannot open the directory and lock it.
                os.mkdir(lab.name, 0o711, dir_fd=above)
        except OSError as error:
            what, why = "the lab's directory cannot be made", error.strerror or ""
            raise BadInputError(what, where=str(lab), why=why, remedy=ELSEWHERE) from error
    try:
        with closing(open_guarded(lab.parent)) as above:
            directory = os.open(lab.name, _OPEN, dir_fd=above)
    except FileNotFoundError:
        yield False
        return
    except OSError as error:
        raise BadInputError("this is not the directory of a lab", where=str(lab), why=error.strerror or "") from error
    with closing(directory):
        if owner_of(directory) != os.geteuid():
            raise BadInputError("this directory belongs to another user", where=str(lab), remedy=ELSEWHERE)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            worker = lock_holder(lab)
            raise BadInputError(
                f"another command is starting or removing the lab {lab.name}",
                where=str(lab),
                why=f"process {worker} is using the lab" if worker else "",
                remedy="Wait until that command ends, or stop it.",
            ) from None
        if not (lab.exists() and os.path.samestat(lab.lstat(), os.fstat(directory))):
            raise removed_meanwhile(lab)
        yield True


def removed_meanwhile(lab: Path) -> BadInputError:
    """Return the exception for a lab that another command has removed."""
    what = f"another command has just removed the lab {lab.name}"
    return BadInputError(what, where=str(lab), remedy="Run the command again.")


def remove_root() -> None:
    """Remove the directory of all labs if it is empty."""
    root = labs_root()
    with suppress(OSError):
        root.rmdir()
        if root.parent.name == "strakes":
            root.parent.rmdir()


@dataclass(frozen=True)
class ProcessRecord:
    """A process of a lab. ``started``: start time in ticks since boot, which reveals a reused process id."""

    role: str
    pid: int
    started: int


_WORDS, _BY_NAME = tuple[str, ...], Mapping[str, tuple[str, ...]]
_COMMANDS: Mapping[str, Any] = {"commands": _BY_NAME}
# Kind of lab -> types of the facts that strakes reads.
_FACTS: Mapping[str, Mapping[str, Any]] = {
    "ceph": {"ceph_conf": str},
    "ha": {
        **dict.fromkeys(("commands", "links", "power", "journals"), _BY_NAME),
        **dict.fromkeys(("nodes", "clients", "addresses"), _WORDS),
        "bmc_log": str,
        "alerts": str,
        "look_every_s": float,
    },
}


@dataclass(frozen=True)
class LabState:
    """The recorded state of a lab. ``ready_after_s``: seconds from start to readiness, None until then."""

    kind: str
    name: str
    id: str
    boot: str
    created_unix_s: UnixTime
    options: Mapping[str, Any]
    processes: tuple[ProcessRecord, ...] = ()
    last_step: str = ""
    ready_after_s: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"{self.id!r} is not the id of a lab")
        if self.ready_after_s is not None:
            found = {"commands": {}, **self.facts}
            for name, kind in _FACTS.get(self.kind, _COMMANDS).items():
                from_record(kind, found[name])

    @property
    def this_boot(self) -> bool:
        """Return whether the lab was started after the last boot. If not, the recorded process ids are invalid."""
        return self.boot == boot_id()


class LabJournal:
    """The open journal of a lab. Each line is JSON: a process, or new values of LabState's fields."""

    def __init__(self, directory: Path, lab_id: str, flags: int = 0) -> None:
        self.id = lab_id
        self._descriptor = open_kept(directory / JOURNAL, os.O_WRONLY | os.O_APPEND | flags)

    @classmethod
    def create(cls, directory: Path, kind: str, options: Mapping[str, Any]) -> Self:
        journal = cls(directory, uuid.uuid4().hex[:10], os.O_CREAT | os.O_EXCL)
        head = {"kind": kind, "name": directory.name, "id": journal.id, "options": options}
        journal.note(**head, boot=boot_id(), created_unix_s=time.time())
        os.fsync(journal._descriptor)
        return journal

    def note(self, **fields: object) -> None:
        os.write(self._descriptor, json.dumps(fields).encode() + b"\n")

    def close(self) -> None:
        os.close(self._descriptor)


def read_state(directory: Path) -> LabState | None:
    """Return the state recorded in a lab's journal, or None if its first line is incomplete.

    Raises BadInputError if the journal is damaged. strakes trusts its contents, so it must not be writable by others.
    """
    path = directory / JOURNAL
    try:
        with open_own(path, "the journal of a lab", ELSEWHERE) as file:
            lines = read_whole(file, path, _MOST_JOURNAL_BYTES).split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return None
    state: LabState | None = None
    fields: dict[str, Any] = {}
    processes: dict[str, ProcessRecord] = {}
    # Ignore a damaged last line: each step is recorded before it begins, so this step has not begun.
    last = len(lines) - 1
    for number, line in enumerate(lines[:-1], 1):
        try:
            record = from_record(dict[str, Any], parse_json(line))
            if "role" in record:
                process = _present(from_record(ProcessRecord, record), directory)
                processes[process.role] = process
            else:
                fields |= record
                state = from_record(LabState, fields)
        except ValueError as error:
            if number < last:
                remedy = f"Remove this line, or restart this machine and then remove {directory}."
                what, where = "the journal of a lab is damaged", f"{path}, line {number}"
                raise BadInputError(what, where=where, why=str(error), remedy=remedy) from error
    return replace(state, processes=tuple(processes.values())) if state else None


def _present(process: ProcessRecord, lab: Path) -> ProcessRecord:
    """Return the process that is the node now: its BMC starts another one at power-on."""
    with suppress(OSError, ValueError):
        pid, started, _ = (lab / f"{process.role.removeprefix('node.')}.pid").read_text().split()
        return replace(process, pid=int(pid), started=int(started))
    return process
