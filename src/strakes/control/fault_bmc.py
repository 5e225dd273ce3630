"""The power of a server, cut by its BMC (IPMI over the network)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.control.drill_undo import RunCommand
from strakes.control.fault import Ask, Fault
from strakes.control.fault_command import struck_by, words_of
from strakes.failover.timeline import Moment
from strakes.targets.command import Runner, run

_OFF, _ON = "Chassis Power is off", "Chassis Power is on"
_DEFAULT_PORT = "623"


class PowerOff(Fault):
    """A server without power, as its BMC confirms; its power comes back in the end.

    It does not use fence_ipmilan, which gives the password to ipmitool on its command line: here it stays in its file.
    """

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        if not ask.bmc or ask.bmc_password_file is None:
            raise BadInputError(
                "--bmc and --bmc-password-file are required",
                remedy="Name the server to power off: --bmc HOST[:PORT] --bmc-user USER --bmc-password-file FILE.",
            )
        refuse_open_secret(ask.bmc_password_file)
        self._run = run_one
        via = words_of("--via", ask.via) if ask.via else ()
        host, _, port = ask.bmc.partition(":")
        where = (
            "-H",
            host,
            "-p",
            port or _DEFAULT_PORT,
            "-U",
            ask.bmc_user,
            "-f",
            str(ask.bmc_password_file.absolute()),
        )
        # Cipher suite 3: what BMCs of all ages have; newer ones of ipmitool ask for 17.
        self._tool = (*via, "ipmitool", "-I", "lanplus", "-C", "3", *where)
        self._status = (*self._tool, "chassis", "power", "status")
        self.undo = RunCommand((*self._tool, "chassis", "power", "on"), self._status, _ON)
        self.text = (
            f"power off through the BMC {ask.bmc} until it confirms: "
            f"{' '.join((*self._tool, 'chassis', 'power', 'off'))}"
        )
        answer = self._run(self._status)
        if answer.status != 0 or _ON not in answer.stdout:
            raise EnvironmentLacksError(
                "the BMC does not confirm that the power is on",
                where=ask.bmc,
                why=answer.stderr.strip() or answer.stdout.strip(),
            )

    def strike(self) -> tuple[Moment, ...]:
        """Power the server off, and return when that was asked for and when the BMC confirmed it."""
        return struck_by((*self._tool, "chassis", "power", "off"), self._run, self._status, _OFF)

    def lacking(self) -> str:
        """Return why the server is not as before, empty when the BMC confirms that its power is on."""
        answer = self._run(self._status)
        return "" if _ON in answer.stdout else "the BMC does not confirm that the power is on"


def refuse_open_secret(path: Path) -> None:
    """Refuse a file that others than its owner can read. Raises BadInputError."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise BadInputError(
            "the password file cannot be read", where=str(path), why=error.strerror or str(error)
        ) from error
    if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
        raise BadInputError(
            "other users can read the password file",
            where=str(path),
            why=stat.filemode(status.st_mode),
            remedy=f"chmod 600 {path}",
        )
