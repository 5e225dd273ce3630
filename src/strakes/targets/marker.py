"""The marker file of a workspace. It shows that strakes made the directory, and which process uses it."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from strakes.base.files import closing, owner_of
from strakes.base.finite import parse_json
from strakes.base.processes import lives_in_container, process_start
from strakes.targets import child
from strakes.targets.mountinfo import no_proc

MARKER_NAME = child.MARKER_NAME
WORKSPACE_PREFIX = "strakes-"
HEARTBEAT_S = 5.0
# Prefix of the run ids of ``strakes watch``. A watch does not prevent a measurement in the same directory.
WATCH_RUN = "watch-"
# Seconds after which a heartbeat counts as old.
STALE_S = 60.0
# Seconds to wait for a new heartbeat. The last heartbeat may only seem old, because the clocks of two hosts may differ.
WATCH_S = 3 * HEARTBEAT_S

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# Length of every marker in bytes. A heartbeat overwrites the marker in place, even on a full file system.
_MARKER_BYTES = 512
_MOST_MARKER_BYTES = 16 * _MARKER_BYTES


@dataclass(frozen=True)
class Marker:
    """The contents of a marker: the process that uses the directory, and its last heartbeat.

    ``pid``, ``pid_start``: process id and start time, which are unique within ``boot`` and ``pid_namespace``.
    """

    run: str
    user: str
    host: str
    boot: str
    pid_namespace: str
    pid: int
    pid_start: int
    heartbeat_unix_s: float

    @classmethod
    def of_this_process(cls, run: str) -> Self:
        """Return a new marker for a run of this process. Raises EnvironmentLacksError without /proc."""
        pid = os.getpid()
        return cls(
            run=run,
            user=name_of_user(os.geteuid()),
            host=os.uname().nodename,
            boot=boot_id(),
            pid_namespace=pid_namespace(),
            pid=pid,
            pid_start=process_start(pid) or 0,
            heartbeat_unix_s=time.time(),
        )

    def to_bytes(self) -> bytes:
        """Return the marker as one line of JSON, padded to ``_MARKER_BYTES``."""
        return json.dumps(asdict(self)).encode().ljust(_MARKER_BYTES - 1) + b"\n"

    @property
    def process(self) -> str:
        return f"process {self.pid} of {self.user} on {self.host}"

    @property
    def is_of_this_process(self) -> bool:
        return replace(Marker.of_this_process(self.run), heartbeat_unix_s=self.heartbeat_unix_s) == self

    @property
    def is_ours(self) -> bool:
        return (self.host, self.boot, self.pid_namespace) == (os.uname().nodename, boot_id(), pid_namespace())

    def seems_live(self) -> bool:
        """Return whether the process is alive. A process on another node needs a heartbeat in the last 60 s."""
        if self.is_ours:
            return process_start(self.pid) == self.pid_start
        if self.boot == boot_id() and lives_in_container(self.pid, self.pid_start, self.pid_namespace.split(" ")[0]):
            return True
        return abs(time.time() - self.heartbeat_unix_s) < STALE_S


@dataclass(frozen=True)
class NoMarker:
    """Why a directory is not a workspace. ``unfinished``: strakes may have died while it made the directory."""

    why: str
    unfinished: bool = False
    unread: bool = False  # An error hides whether the directory is a workspace.


def are_live(places: Sequence[tuple[int, str, Marker | NoMarker]]) -> list[bool]:
    """Return, for each directory, whether a process uses it. ``places``: (open directory, name, marker).

    Waits ``WATCH_S`` seconds for a new heartbeat if a marker is missing, or if another host wrote an old marker.
    """
    live = [isinstance(marker, Marker) and marker.seems_live() for _, _, marker in places]
    unseen = [not (isinstance(marker, Marker) and marker.is_ours) for _, _, marker in places]
    if any(far and not alive for far, alive in zip(unseen, live, strict=True)):
        time.sleep(WATCH_S)
    return [
        alive or (far and read_marker(directory, name) != marker)
        for (directory, name, marker), far, alive in zip(places, unseen, live, strict=True)
    ]


def is_run_id(text: str) -> bool:
    """Return whether a text can be the id of a run."""
    return _RUN_ID.fullmatch(text) is not None


def read_marker(directory: int, name: str) -> Marker | NoMarker:
    """Return the marker of an open directory, or NoMarker if it is invalid or another user made it."""
    if not _trusted(owner := owner_of(directory)):
        return NoMarker(f"it belongs to user {name_of_user(owner)}")
    try:
        with closing(os.open(MARKER_NAME, child.READ_FILE, dir_fd=directory)) as descriptor:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return NoMarker("its marker is not a regular file")
            if not _trusted(owner := owner_of(descriptor)):
                return NoMarker(f"its marker belongs to user {name_of_user(owner)}")
            text = os.read(descriptor, _MOST_MARKER_BYTES)
    except FileNotFoundError:
        return NoMarker("it has no marker", unfinished=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return NoMarker("its marker is a symbolic link")
        return NoMarker(f"its marker cannot be read: {error.strerror}", unread=error.errno != errno.EACCES)
    marker = _parse(text)
    if marker is None:
        return NoMarker("its marker was not written by strakes", unfinished=not text.strip())
    if name != WORKSPACE_PREFIX + marker.run:
        return NoMarker(f"its marker is of another run ({marker.run})")
    return marker


def _parse(text: bytes) -> Marker | None:
    try:
        marker = Marker(**parse_json(text))
    except (TypeError, ValueError):
        return None
    *texts, pid, pid_start, heartbeat_unix_s = asdict(marker).values()
    numbers = (pid, pid_start, heartbeat_unix_s)
    well_formed = all(isinstance(text, str) for text in texts) and all(isinstance(one, int | float) for one in numbers)
    return marker if well_formed and is_run_id(marker.run) else None


def _trusted(uid: int) -> bool:
    return uid in (0, os.geteuid())


def name_of_user(uid: int) -> str:
    """Return the name of a user, or its number as text if it has no name."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def boot_id() -> str:
    """Return the kernel's id of this boot. Raises EnvironmentLacksError without /proc."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except FileNotFoundError as error:
        raise no_proc() from error


def pid_namespace() -> str:
    """Return the ids of this process's pid and time namespaces, in which its process id and start time are valid."""
    names = [os.readlink("/proc/self/ns/pid")]
    with suppress(FileNotFoundError):  # Kernels before Linux 5.6 have no time namespaces.
        names.append(os.readlink("/proc/self/ns/time"))
    return " ".join(names)
