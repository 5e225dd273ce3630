"""Fault of one machine: its BMC cuts the power (IPMI over the network)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.foreign_text import shown_command
from strakes.base.processes import words_of
from strakes.control.drill_undo import RunCommand
from strakes.control.fault import Ask, OneCommand
from strakes.targets.command import Runner, run

_OFF, _ON = "Chassis Power is off", "Chassis Power is on"
_UNCONFIRMED = "the BMC does not confirm that the power is on"


class PowerOff(OneCommand):
    """Cut the power of a server by its BMC, and wait until the BMC confirms it. Undoing switches the power on.

    ipmitool reads the password from its file. fence_ipmilan is not used, because it shows the password on a command
    line.
    """

    _answer = _OFF

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        if not ask.bmc or ask.bmc_password_file is None:
            remedy = "Name the server to power off: --bmc HOST[:PORT] --bmc-user USER --bmc-password-file FILE."
            raise BadInputError("--bmc and --bmc-password-file are required", remedy=remedy)
        refuse_open_secret(ask.bmc_password_file)
        self._run = run_one
        via = words_of("--via", ask.via) if ask.via else ()
        host, _, port = ask.bmc.partition(":")
        # All BMCs support cipher suite 3. Older ones lack suite 17, the default of newer releases of ipmitool.
        self._tool = (*via, "ipmitool", "-I", "lanplus", "-C", "3", "-H", host, "-p", port or "623")
        self._tool += ("-U", ask.bmc_user, "-f", str(ask.bmc_password_file.absolute()))
        self._status = (*self._tool, "chassis", "power", "status")
        self._strike = (*self._tool, "chassis", "power", "off")
        self.undo = RunCommand((*self._tool, "chassis", "power", "on"), self._status, _ON)
        self.text = f"power off through the BMC {ask.bmc} until it confirms: {shown_command(self._strike)}"
        answer = self._run(self._status)
        if answer.status != 0 or _ON not in answer.stdout:
            raise EnvironmentLacksError(_UNCONFIRMED, where=ask.bmc, why=answer.last_line)

    def lacking(self) -> str:
        """Return "" if the BMC confirms that the power is on, else an explanation."""
        answer = self._run(self._status)
        return "" if _ON in answer.stdout else _UNCONFIRMED


def refuse_open_secret(path: Path) -> None:
    """Raise BadInputError if users other than the owner can read a file."""
    try:
        status = os.stat(path)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadInputError("the password file cannot be read", where=str(path), why=why) from error
    if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
        why, remedy = stat.filemode(status.st_mode), f"chmod 600 {path}"
        raise BadInputError("other users can read the password file", where=str(path), why=why, remedy=remedy)
