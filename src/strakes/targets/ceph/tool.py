"""The ``ceph`` command: arguments, parsing of answers, and errors."""

from __future__ import annotations

import json
from typing import Any

from strakes.errors import EnvironmentLacksError, MeasurementError, StrakesError
from strakes.targets.ceph.access import Access
from strakes.targets.command import Command, Completed

# Monitors that do not answer in this time are given up by the command itself.
_CONNECT_S = 5
_LIMIT_S = 10.0
# Words of the command's last line, and who has to do what.
_NOT_ALLOWED = ("EACCES", "Permission denied", "Operation not permitted", "EPERM", "access denied", "permission denied")
_NOT_CONFIGURED = (
    "ObjectNotFound",
    "error calling conf_read_file",
    "unable to get monitor info",
    "no keyring found",
    "InvalidArgument",
)


def ceph(access: Access, *words: str, limit_s: float = _LIMIT_S) -> Command[Any]:
    """Return a ``ceph`` command with JSON output.

    Raises StrakesError with exit status 3 if Ceph is not configured here or refuses access, 1 without an answer.
    """
    argv = ("ceph", *access.options, "--connect-timeout", str(_CONNECT_S), *words, "--format", "json")

    def read(done: Completed) -> Any:
        if done.status != 0:
            raise _refusal(done, words)
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise MeasurementError(
                f"the output of ceph {' '.join(words)} is not understood", where=repr(done.stdout[:200])
            ) from None

    return Command(argv, read, limit_s)


def admin_socket(access: Access, daemon: str) -> Command[str]:
    """Where a daemon that runs on this machine would have its socket for administration."""
    conf = ("--conf", access.configuration) if access.configuration else ()

    def read(done: Completed) -> str:
        return done.stdout.strip() if done.status == 0 else ""

    return Command(("ceph-conf", *conf, "--name", daemon, "--show-config-value", "admin_socket"), read)


def _refusal(done: Completed, words: tuple[str, ...]) -> StrakesError:
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    why = lines[-1] if lines else f"exit status {done.status}"
    where = f"ceph {' '.join(words)}"
    if any(word in done.stderr for word in _NOT_ALLOWED):
        remedy = "Mount with a Ceph user that can read the state of the cluster (caps: mon 'allow r', mgr 'allow r')."
        return EnvironmentLacksError("permission to ask the cluster is denied", where=where, why=why, remedy=remedy)
    if any(word in done.stderr for word in _NOT_CONFIGURED):
        remedy = "Put the cluster's ceph.conf and a keyring into /etc/ceph, or set CEPH_CONF to the file."
        return EnvironmentLacksError("the cluster cannot be asked", where=where, why=why, remedy=remedy)
    remedy = "Check the monitors: ceph health detail"
    return MeasurementError("the cluster does not answer", where=where, why=why, remedy=remedy)
