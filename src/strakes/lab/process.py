"""Start, find and kill the processes of a lab."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from strakes.base.files import open_kept
from strakes.base.processes import process_start, trusted_words
from strakes.lab.state import ProcessRecord
from strakes.targets import command
from strakes.targets.command import Completed

# Environment variable that marks the processes of a lab with its id. Child processes inherit it.
MARK = "STRAKES_LAB"
# PATH of the lab's commands: an ordinary user's PATH may lack directories of server programs.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Prefixes of environment variables that a lab's processes must not inherit.
_FOREIGN = ("CEPH_", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHON")


def complaint(done: Completed) -> str:
    """Return the last lines that a failed command printed, or its exit status if it printed nothing."""
    return last_lines(done.stderr or done.stdout, 4) or f"it ended with status {done.status}"


def environment(lab_id: str = "") -> dict[str, str]:
    """Return the environment variables of a lab's commands."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    marked = {MARK: lab_id} if lab_id else {}
    return {**kept, "PATH": PATH, "LC_ALL": "C.UTF-8", **marked}


def run(argv: Sequence[str], *, limit_s: float, lab_id: str = "") -> Completed:
    """Run a short command. Kill the command after ``limit_s`` seconds. The exit status for a missing program is 127."""
    unset = [word for name in os.environ if name.startswith(_FOREIGN) for word in ("-u", name)]
    mark = [f"{MARK}={lab_id}"] if lab_id else []
    try:
        return command.run_unmarked(["env", *unset, *mark, *argv], limit_s)  # Daemons that it starts must stay.
    except command.CommandTimeout:
        return Completed(tuple(argv), -signal.SIGKILL, "", "it did not end in time")


def start(argv: Sequence[str], *, log: Path, lab_id: str) -> subprocess.Popen[bytes]:
    """Start a daemon of a lab in a new session. Raises OSError if the program is missing."""
    with os.fdopen(open_kept(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), "ab") as output:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(lab_id),
            start_new_session=True,
        )


def is_alive(record: ProcessRecord) -> bool:
    """Return whether a recorded process runs. The start time reveals a reused process id."""
    return process_start(record.pid) == record.started


def memory_of(pid: int) -> int:
    """Return the resident memory of a process in bytes, or 0 if it has ended."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def name_of(pid: int) -> str:
    """Return the program name of a process, or "?" if the process has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    return "?"


def _processes() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def members(lab_id: str, records: Sequence[ProcessRecord], networks: Collection[int] = ()) -> dict[int, int]:
    """Return id -> start time of a lab's processes. ``networks``: inode numbers of its network namespaces.

    Any user can set the environment variable of a lab, but only root can enter its network namespaces.
    """
    mark = f"{MARK}={lab_id}".encode()
    found = {record.pid for record in records if is_alive(record)}
    for pid in _processes():
        process = Path("/proc", str(pid))
        # env(1) starts commands. Until it has set their environment, only the arguments of env contain the lab's id.
        for name in ("environ", "cmdline"):
            if mark in trusted_words(process, name):
                found.add(pid)
        with suppress(OSError):
            if networks and (process / "ns/net").stat().st_ino in networks:
                found.add(pid)
    starts = {pid: process_start(pid) for pid in found - {os.getpid()}}
    return {pid: started for pid, started in starts.items() if started is not None}


def kill_all(
    lab_id: str, records: Sequence[ProcessRecord], networks: Collection[int], patience_s: float
) -> dict[int, int]:
    """Kill all processes of a lab. Return id -> start time of the processes that have not ended in time."""
    deadline = time.monotonic() + patience_s
    known: dict[int, int] = {}
    empty_searches = 0
    while True:
        # During exec(2), a process has no environment and is not found. So two searches in a row must find nothing.
        known |= members(lab_id, records, networks)
        alive = {pid: started for pid, started in known.items() if process_start(pid) == started}
        empty_searches = 0 if alive else empty_searches + 1
        if empty_searches == 2 or time.monotonic() > deadline:
            return alive
        for pid in alive:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def users_of(directory: Path) -> dict[int, str]:
    """Return id -> program name of processes that use files below a directory. The directory is not accessed."""
    return {
        pid: name_of(pid)
        for pid in _processes()
        if any(f"{target}/".startswith(f"{directory}/") for target in _held_by(pid))
    }


def last_lines(text: str, count: int) -> str:
    """Return the last ``count`` non-empty lines of a text, joined by " | "."""
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-count:])


def _held_by(pid: int) -> Iterator[str]:
    links = ["cwd", "root", "exe"]
    with suppress(OSError):
        links += [f"fd/{descriptor}" for descriptor in os.listdir(f"/proc/{pid}/fd")]
    for link in links:
        with suppress(OSError):
            yield os.readlink(f"/proc/{pid}/{link}")
