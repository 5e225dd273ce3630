"""Disks: a file system without room, and a device whose requests take longer."""

from __future__ import annotations

import os
import re
import shlex
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from strakes.base.errors import BadInputError, MeasurementError
from strakes.control.drill_undo import FreeRoom, RunCommand
from strakes.control.fault import Ask, Fault
from strakes.control.fault_command import OneCommand
from strakes.failover.timeline import Moment
from strakes.targets import calls
from strakes.targets.calls import mount_of
from strakes.targets.command import Completed, Runner, run

# How long each request to a slowed disk takes longer, in milliseconds.
_DELAY_MS = 100
_READERS = 8
# Readers exit after this time in seconds if the process that should end them has died.
_MOST_S = 3600
_BLOCK = 4096
_FILL_S = 120.0
_NAMELESS = os.O_TMPFILE | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC


class DiskFull(Fault):
    """A full file system: an unnamed file (O_TMPFILE) allocates the free space without writing it.

    The owner of the directory may rename it or replace it by a link at any moment. Therefore the constructor makes the
    file, in the directory that it examined, and uses only its descriptor; the file disappears with this process.
    """

    undo: FreeRoom

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        """Make the file, still empty. Raises BadInputError where the file system has no files without a name."""
        self._run = run_one
        directory = calls.open_directory(str(ask.directory))
        try:
            mount = calls.mount_of_open(directory)
            room = os.fstatvfs(directory)
            self._file = os.open(".", _NAMELESS, 0o600, dir_fd=directory)
        except OSError as error:
            raise BadInputError(
                "this fault needs a file system that can make an unnamed file (O_TMPFILE)",
                where=str(ask.directory),
                why=os.strerror(error.errno or 0),
                remedy="NFS, CephFS and Lustre cannot. Give your own commands: --fault-command.",
            ) from error
        finally:
            os.close(directory)
        # An open descriptor would keep the file system from being unmounted.
        weakref.finalize(self, os.close, self._file)
        self._free = (room.f_bfree if os.geteuid() == 0 else room.f_bavail) * room.f_frsize // _BLOCK * _BLOCK
        self._place = f"{mount.mount_point} ({mount.file_system} from {mount.source})"
        self.undo = FreeRoom.of_this_process(self._file)
        self.text = f"fill {self._place} ({self._free:,} bytes free) with an unnamed file"

    def strike(self) -> tuple[Moment, ...]:
        """Take all room that was free. Raises MeasurementError where the file system cannot set room aside."""
        began, size, step = time.time(), 0, self._free
        failure = "no free space to allocate"
        while step >= _BLOCK:
            words = ("fallocate", "--offset", str(size), "--length", str(step), self.undo.path)
            taken = self._run(words, _FILL_S)
            if taken.status == 0:
                size += step
                step = min(step, self._free - size)
                continue
            failure = taken.stderr.strip()
            if "not supported" in failure:
                break
            step = step // 2 // _BLOCK * _BLOCK
        if not size:
            raise MeasurementError(
                "the file system cannot be filled", where=self._place, why=failure, remedy="Use --fault-command."
            )
        return Moment(began, "drill", f"fill {self._place}"), Moment(time.time(), "drill", f"{size:,} bytes are taken")

    def lacking(self) -> str:
        """Return why the space is not free yet; empty if the file is empty."""
        return f"{self._place} has no free space" if os.fstat(self._file).st_blocks else ""


class SlowDisk(OneCommand):
    """A slow disk of a file system that this machine itself has on a block device."""

    undo: RunCommand

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        """Find the device. Raises BadInputError if the directory has none."""
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
