"""Faults of one machine: its BMC cuts the power (IPMI over the network), or its file system is full."""

from __future__ import annotations

import os
import stat
import time
import weakref
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError
from strakes.base.foreign_text import shown_command
from strakes.base.processes import process_start
from strakes.control.drill_undo import FreeRoom, RunCommand
from strakes.control.fault import Ask, Fault, struck_by, words_of
from strakes.failover.timeline import Moment
from strakes.targets import calls
from strakes.targets.command import Runner, run

_OFF, _ON = "Chassis Power is off", "Chassis Power is on"
_DEFAULT_PORT = "623"
_UNCONFIRMED = "the BMC does not confirm that the power is on"
# Smallest allocation in bytes: file systems allocate whole pages.
_BLOCK = 4096
# Time limit of one allocation in seconds.
_FILL_S = 120.0
_NAMELESS = os.O_TMPFILE | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC


class PowerOff(Fault):
    """Cuts the power of a server by its BMC, until the BMC confirms it. Undoing switches the power on.

    ipmitool reads the password from its file. fence_ipmilan is not used, because it shows the password on a command
    line.
    """

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        if not ask.bmc or ask.bmc_password_file is None:
            remedy = "Name the server to power off: --bmc HOST[:PORT] --bmc-user USER --bmc-password-file FILE."
            raise BadInputError("--bmc and --bmc-password-file are required", remedy=remedy)
        refuse_open_secret(ask.bmc_password_file)
        self._run = run_one
        via = words_of("--via", ask.via) if ask.via else ()
        host, _, port = ask.bmc.partition(":")
        # All BMCs support cipher suite 3; newer releases of ipmitool use 17 by default, which older BMCs lack.
        self._tool = (*via, "ipmitool", "-I", "lanplus", "-C", "3", "-H", host, "-p", port or _DEFAULT_PORT)
        self._tool += ("-U", ask.bmc_user, "-f", str(ask.bmc_password_file.absolute()))
        self._status = (*self._tool, "chassis", "power", "status")
        self._strike = (*self._tool, "chassis", "power", "off")
        self.undo = RunCommand((*self._tool, "chassis", "power", "on"), self._status, _ON)
        self.text = f"power off through the BMC {ask.bmc} until it confirms: {shown_command(self._strike)}"
        answer = self._run(self._status)
        if answer.status != 0 or _ON not in answer.stdout:
            why = answer.stderr.strip() or answer.stdout.strip()
            raise EnvironmentLacksError(_UNCONFIRMED, where=ask.bmc, why=why)

    def strike(self) -> tuple[Moment, ...]:
        """Power the server off; return the times of the request and of the BMC's confirmation."""
        return struck_by(self._strike, self._run, self._status, _OFF)

    def lacking(self) -> str:
        """Return an empty text if the BMC confirms that the power is on, otherwise an explanation."""
        answer = self._run(self._status)
        return "" if _ON in answer.stdout else _UNCONFIRMED


def refuse_open_secret(path: Path) -> None:
    """Raise BadInputError if users other than its owner can read a file."""
    try:
        status = os.stat(path)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadInputError("the password file cannot be read", where=str(path), why=why) from error
    if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
        why, remedy = stat.filemode(status.st_mode), f"chmod 600 {path}"
        raise BadInputError("other users can read the password file", where=str(path), why=why, remedy=remedy)


class DiskFull(Fault):
    """A full file system: an unnamed file (O_TMPFILE) allocates the free space without writing it.

    The owner of the directory may rename the directory or replace it by a link at any time. Therefore the constructor
    makes the file in the directory that it has examined, and only the descriptor of the file is used later. The file
    disappears with this process.
    """

    undo: FreeRoom

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        """Make the empty file. Raises BadInputError if the file system does not support unnamed files."""
        self._run = run_one
        directory = calls.open_directory(str(ask.directory))
        try:
            mount = calls.mount_of_open(directory)
            room = os.fstatvfs(directory)
            self._file = os.open(".", _NAMELESS, 0o600, dir_fd=directory)
        except OSError as error:
            what = "this fault needs a file system that can make an unnamed file (O_TMPFILE)"
            why, remedy = os.strerror(error.errno or 0), "NFS, CephFS and Lustre cannot. Use --fault-command."
            raise BadInputError(what, where=str(ask.directory), why=why, remedy=remedy) from error
        finally:
            os.close(directory)
        # An open descriptor would keep the file system from being unmounted.
        weakref.finalize(self, os.close, self._file)
        self._free = (room.f_bfree if os.geteuid() == 0 else room.f_bavail) * room.f_frsize // _BLOCK * _BLOCK
        self._place = f"{mount.mount_point} ({mount.file_system} from {mount.source})"
        self.undo = FreeRoom(os.getpid(), process_start(os.getpid()) or 0, self._file)
        self.text = f"fill {self._place} ({self._free:,} bytes free) with an unnamed file"

    def strike(self) -> tuple[Moment, ...]:
        """Allocate all free space. Raises MeasurementError if the file system cannot allocate without writing."""
        began, size, step, failure = time.time(), 0, self._free, "no free space to allocate"
        while step >= _BLOCK and "not supported" not in failure:
            words = ("fallocate", "--offset", str(size), "--length", str(step), self.undo.path)
            taken = self._run(words, _FILL_S)
            if taken.status == 0:
                size += step
                step = min(step, self._free - size)
            else:
                failure, step = taken.stderr.strip(), step // 2 // _BLOCK * _BLOCK
        if not size:
            what, remedy = "the file system cannot be filled", "Use --fault-command."
            raise MeasurementError(what, where=self._place, why=failure, remedy=remedy)
        return Moment(began, "drill", f"fill {self._place}"), Moment(time.time(), "drill", f"{size:,} bytes are taken")

    def lacking(self) -> str:
        """Return why the space is not free yet; empty if the file is empty."""
        return f"{self._place} has no free space" if os.fstat(self._file).st_blocks else ""
