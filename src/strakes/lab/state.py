"""The files of a lab: its directory with a lock, and its journal, which is used to undo a killed ``up``.

A line of JSON is written to the journal before each step.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from strakes.base.errors import BadInputError
from strakes.base.files import open_kept
from strakes.targets.marker import boot_id

JOURNAL = "lab.jsonl"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
# A Unix socket's path has at most 107 bytes. The suffix is the longest one that a lab appends to its directory.
_SOCKET_DIRECTORY_BYTES = 107 - len("/run/client.admin.4194304.asok")
# Seconds to wait for the lock. is_being_worked_in() holds it only for a moment.
_PATIENCE_S = 0.5
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
ELSEWHERE = "Give another directory: XDG_STATE_HOME=DIR"


def labs_root() -> Path:
    """Return ``$XDG_STATE_HOME/strakes/lab``, else ``/var/lib/strakes-lab`` (root), ``~/.local/state/strakes/lab``."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return Path(state, "strakes", "lab")
    return Path("/var/lib/strakes-lab") if os.geteuid() == 0 else Path.home() / ".local/state/strakes/lab"


def directory_of(name: str) -> Path:
    """Return the directory of a lab, which need not exist. Raises BadInputError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise BadInputError(
            f"not a valid name for a lab: {name!r}",
            remedy="Use lower-case letters, digits and hyphens, beginning with a letter.",
        )
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
    """Raise BadInputError if names of Unix sockets in the lab's directory would be too long for the kernel."""
    if len(os.fsencode(directory)) > _SOCKET_DIRECTORY_BYTES:
        why = f"Unix sockets in it allow {_SOCKET_DIRECTORY_BYTES} bytes"
        raise BadInputError(
            "the name of the lab's directory is too long", where=str(directory), why=why, remedy=ELSEWHERE
        )


@contextmanager
def working_in(lab: Path, *, make: bool) -> Iterator[bool]:
    """Lock the lab's directory against other commands; yield False if it does not exist. ``make``: create it.

    Raises BadInputError if another command has locked it, or if it belongs to another user.
    """
    if make:
        try:
            lab.mkdir(mode=0o755, parents=True, exist_ok=True)
        except FileExistsError:
            pass  # reported below
        except OSError as error:
            why = error.strerror or ""
            raise BadInputError(
                "the lab's directory cannot be made", where=str(lab), why=why, remedy=ELSEWHERE
            ) from error
    try:
        directory = os.open(lab, _OPEN)
    except FileNotFoundError:
        yield False
        return
    except OSError as error:
        raise BadInputError("this is not the directory of a lab", where=str(lab), why=error.strerror or "") from error
    try:
        if os.fstat(directory).st_uid != os.geteuid():
            raise BadInputError("this directory belongs to another user", where=str(lab), remedy=ELSEWHERE)
        _lock(directory, lab)
        if not (lab.exists() and os.path.samestat(lab.lstat(), os.fstat(directory))):
            raise removed_meanwhile(lab)
        yield True
    finally:
        os.close(directory)


def removed_meanwhile(lab: Path) -> BadInputError:
    """Return the error for a lab that another command has removed while this one was starting it."""
    return BadInputError(
        f"another command has just removed {lab.name}", where=str(lab), remedy="Run the command again."
    )


def is_being_worked_in(lab: Path) -> bool:
    """Return whether a command is starting or removing the lab."""
    try:
        directory = os.open(lab, _OPEN)
    except OSError:
        return False
    try:
        fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(directory)
    return False


def remove_root() -> None:
    """Remove the directory of labs if it is empty."""
    root = labs_root()
    with suppress(OSError):
        root.rmdir()
        if root.parent.name == "strakes":
            root.parent.rmdir()


def _lock(directory: int, lab: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = _holder(os.fstat(directory).st_ino)
                raise BadInputError(
                    f"another command is starting or removing {lab.name}",
                    where=str(lab),
                    why=f"process {holder} is using it" if holder else "",
                    remedy="Wait until it ends, or stop it.",
                ) from None
            time.sleep(0.02)


def _holder(inode: int) -> str:
    """Return the process that holds the lock, from /proc/locks, or ""."""
    with suppress(OSError):
        lines = Path("/proc/locks").read_text()
        match = re.search(rf"FLOCK +\w+ +WRITE +(\d+) +\S+:{inode} ", lines)
        return match[1] if match else ""
    return ""


@dataclass(frozen=True)
class ProcessRecord:
    """A started process; its start time ``started`` (ticks since boot) detects a reused process id."""

    role: str
    pid: int
    started: int


@dataclass(frozen=True)
class LabState:
    """The contents of a journal. ``ready_after_s``: None if the lab was never ready."""

    kind: str
    name: str
    id: str
    boot: str
    created_unix_s: float
    options: Mapping[str, Any]
    processes: tuple[ProcessRecord, ...]
    last_step: str
    ready_after_s: float | None
    facts: Mapping[str, Any]

    @property
    def this_boot(self) -> bool:
        """Whether the machine has not been restarted since, so that the process ids are valid."""
        return self.boot == boot_id()


class LabJournal:
    """The open journal of a lab that is being started."""

    def __init__(self, directory: Path, flags: int = 0) -> None:
        self._descriptor = open_kept(directory / JOURNAL, os.O_WRONLY | os.O_APPEND | flags, 0o644)

    @classmethod
    def create(cls, directory: Path, kind: str, name: str, options: Mapping[str, Any]) -> tuple[Self, str]:
        """Create the journal; return it and the new lab's id."""
        journal = cls(directory, os.O_CREAT | os.O_EXCL)
        lab_id = uuid.uuid4().hex[:10]
        head = {"kind": kind, "name": name, "id": lab_id, "boot": boot_id(), "created_unix_s": time.time()}
        journal._append("lab", {**head, "options": options})
        os.fsync(journal._descriptor)
        return journal, lab_id

    def step(self, text: str) -> None:
        self._append("step", {"text": text})

    def process(self, record: ProcessRecord) -> None:
        self._append("process", asdict(record))

    def ready(self, after_s: float, facts: Mapping[str, Any]) -> None:
        self._append("ready", {"after_s": round(after_s, 2), "facts": facts})

    def close(self) -> None:
        os.close(self._descriptor)

    def _append(self, what: str, record: Mapping[str, Any]) -> None:
        os.write(self._descriptor, json.dumps({"is": what, **record}).encode() + b"\n")


def read_state(directory: Path) -> LabState | None:
    """Return the state from the journal, or None if the journal is missing or its first line is incomplete."""
    try:
        lines = (directory / JOURNAL).read_bytes().split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return None
    records: dict[str, list[dict[str, Any]]] = {"lab": [], "step": [], "process": [], "ready": []}
    # If the last line is incomplete, its step was not begun. A power cut may leave a line of zeros.
    with suppress(ValueError):
        for line in lines[:-1]:
            record = json.loads(line)
            records[record.pop("is")].append(record)
    if not records["lab"]:
        return None
    ready = records["ready"][0] if records["ready"] else {"after_s": None, "facts": {}}
    return LabState(
        **records["lab"][0],
        processes=tuple({record["role"]: ProcessRecord(**record) for record in records["process"]}.values()),
        last_step=records["step"][-1]["text"] if records["step"] else "",
        ready_after_s=ready["after_s"],
        facts=ready["facts"],
    )
