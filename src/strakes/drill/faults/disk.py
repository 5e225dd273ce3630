"""Disks: a file system without room, and a device whose requests take longer."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from strakes.drill.faults.command import struck_by
from strakes.drill.faults.fault import Ask, Fault
from strakes.drill.undo import RunCommand
from strakes.errors import BadInputError, MeasurementError
from strakes.failover.timeline import Moment
from strakes.targets.calls import mount_of, sizes_of
from strakes.targets.command import Completed, Runner, run

# How long each request to a slowed disk takes longer, in milliseconds.
_DELAY_MS = 100
_READERS = 8
# Readers end by themselves after this time, should nobody be left who ends them.
_MOST_S = 3600
_BLOCK = 4096
_FILL_S = 120.0
# What its name leads to by now may be another directory: the number of its inode tells. "cd" holds what was looked at.
_REMOVE = (
    'cd -P -- "$1" && if [ "$(stat -c %i .)" = "$2" ]; then rm -f "./$3"; '
    'else echo "$1 is another directory now: remove $3 from the one that it was" >&2; exit 1; fi'
)


class DiskFull(Fault):
    """A file system without room: one file in the directory takes what is left, without being written."""

    undo: RunCommand

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        self._run = run_one
        # Held: its owner may put another directory in its place, on another file system, before the fault or after it.
        self._directory = os.open(ask.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._directory)
        self._held = Path(f"/proc/{os.getpid()}/fd/{self._directory}")
        self._free = sizes_of(str(self._held)).free_bytes
        self._path = ask.directory.absolute() / f"strakes-disk-full-{secrets.token_hex(3)}"
        place = (str(self._path.parent), str(os.fstat(self._directory).st_ino), self._path.name)
        self.undo = RunCommand(("sh", "-c", _REMOVE, "sh", *place))
        self.text = f"fill the file system of {ask.directory} ({self._free:,} bytes are free): fallocate {self._path}"

    def strike(self) -> tuple[Moment, ...]:
        """Take all room. Raises MeasurementError where the file system cannot set room aside."""
        began = time.time()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            file = os.open(self._path.name, flags, 0o600, dir_fd=self._directory)
        except OSError as error:
            raise MeasurementError(
                "the file system cannot be filled", where=str(self._path), why=error.strerror or str(error)
            ) from error
        try:
            size, failure = self._fill(f"/proc/{os.getpid()}/fd/{file}")
        finally:
            os.close(file)  # an open one would take the room after its removal
        if not size:
            raise MeasurementError(
                "the file system cannot be filled", where=str(self._path), why=failure, remedy="Use --fault-command."
            )
        return Moment(began, "drill", f"fill {self._path}"), Moment(time.time(), "drill", f"{size:,} bytes are taken")

    def _fill(self, file: str) -> tuple[int, str]:
        """Return how much was taken, and why no more."""
        size, step, failure = 0, self._free // _BLOCK * _BLOCK, "there is no room left already"
        while step >= _BLOCK:
            taken = self._run(("fallocate", "--offset", str(size), "--length", str(step), file), _FILL_S)
            if taken.status == 0:
                size += step
                continue
            failure = taken.stderr.strip()
            if "not supported" in failure:
                break
            step = step // 2 // _BLOCK * _BLOCK
        return size, failure

    def lacking(self) -> str:
        """Return why there is no room yet, empty when the file is gone."""
        there = self._run(("ls", "-d", str(self._held / self._path.name))).status == 0
        return f"{self._path} takes all room" if there else ""


class SlowDisk(Fault):
    """A slow disk of a file system that this machine itself has on a block device."""

    undo: RunCommand

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        """Look at the device. Raises BadInputError where there is none."""
        self._run = run_one
        mount = mount_of(ask.directory)
        if not mount.source.startswith("/dev/"):
            raise BadInputError(
                "this fault needs a file system on a block device of this machine",
                where=str(ask.directory),
                why=f"it is {mount.file_system} from {mount.source}",
                remedy="On Lustre, use lustre-slow-disk. Elsewhere, give your own commands: --fault-command.",
            )
        start, stop = slowing(mount.source, Path(mount.source).name, run_one)
        self._strike = ("sh", "-c", start)
        self.undo = RunCommand(("sh", "-c", stop))
        self.text = f"slow {mount.source}: {start}"

    def strike(self) -> tuple[Moment, ...]:
        """Slow the disk."""
        return struck_by(self._strike, self._run)


def slowing(device: str, name: str, ask: Callable[[tuple[str, ...]], Completed]) -> tuple[str, str]:
    """Return the command that slows a block device, and the one that undoes it.

    dm-delay on a volume of the device mapper, otherwise readers of the whole device; ``name`` marks them.
    """
    table = ask(("dmsetup", "table", device))
    if table.status == 0 and (delayed := delayed_table(table.stdout.strip())):
        return _reload(device, delayed), _reload(device, table.stdout.strip())
    return _read_all(device, re.sub(r"[^\w.-]", "-", name))


def delayed_table(table: str) -> str:
    """Return a table of dm-delay for the same volume; empty where it is not one linear piece.

    >>> delayed_table("0 4194304 linear 252:16 2048")
    '0 4194304 delay 252:16 2048 100'
    >>> delayed_table("0 8 striped 2 128 8:0 0 8:16 0")
    ''
    """
    words = table.split()
    if len(words) != 5 or words[2] != "linear":
        return ""
    return " ".join([*words[:2], "delay", *words[3:], str(_DELAY_MS)])


def _reload(device: str, table: str) -> str:
    volume = shlex.quote(device)
    return (
        f"dmsetup reload {volume} --table {shlex.quote(table)} && "
        f"{{ dmsetup suspend --nolockfs {volume}; dmsetup resume {volume}; }}"
    )


def _read_all(device: str, name: str) -> tuple[str, str]:
    mark = f"strakes-slow-{name}"
    # Only root may write there.
    pids = f"/run/{mark}"
    disk = shlex.quote(device)
    read = f"dd if={disk} of=/dev/null bs=1M iflag=direct"
    reader = shlex.quote(f"while {read} skip=$1; do set -- 0; done")
    at_work = f"grep -q {mark} /proc/$pid/cmdline 2>/dev/null"
    stop = f"for pid in $(cat {pids} 2>/dev/null); do if {at_work}; then kill -- -$pid; fi; done; rm -f {pids}"
    # One block first, for its own words where the disk cannot be read; then a reader that died says that it was not
    # slowed.
    start = (
        f"size=$(blockdev --getsize64 {disk}) && {read} count=1 && : > {pids} && "
        f"{{ for part in $(seq 0 {_READERS - 1}); do "
        f"setsid timeout {_MOST_S} sh -c {reader} {mark} $((size / {_READERS} / 1048576 * part)) "
        f"</dev/null >/dev/null 2>&1 & echo $! >> {pids}; done; sleep 1; "
        f"for pid in $(cat {pids}); do {at_work} || {{ {stop}; "
        f"echo {shlex.quote(f'a reader of {device} ended at once')} >&2; exit 1; }}; done; }}"
    )
    return start, stop
