"""The ``ceph`` command: arguments, parsing of answers, and errors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from strakes.base.errors import EnvironmentLacksError, MeasurementError, StrakesError
from strakes.targets.ceph_access import Access
from strakes.targets.ceph_counters import ask_socket
from strakes.targets.command import Command, Completed, Runner

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


# Number of daemons. Each question to a remote one starts a process of half a second; if doubled, a round takes twice
# as long.
MOST_ELSEWHERE = 32
# Number of simultaneous processes. Doubling it takes twice the memory of the client.
_AT_ONCE = 8
_TELL_S = 4.0


class Daemons:
    """Knows which daemons have a socket here; their places are looked up once."""

    def __init__(self, run: Runner, access: Access) -> None:
        self._run = run
        self._access = access
        self._sockets: dict[str, str] = {}

    def is_here(self, daemon: str) -> bool:
        """Whether it has a socket on this machine that we may open."""
        return os.access(self._socket(daemon), os.R_OK | os.W_OK)

    def ask_all(self, daemons: Iterable[str], prefix: str) -> dict[str, Any]:
        """Return the answer of each daemon; the error of one that does not answer within a few seconds."""

        def ask(daemon: str) -> Any:
            try:
                if self.is_here(daemon):
                    return ask_socket(self._socket(daemon), prefix)
                return ceph(self._access, "tell", daemon, *prefix.split(), limit_s=_TELL_S).ask(self._run)
            except StrakesError as error:
                return error

        names = list(daemons)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(zip(names, pool.map(ask, names), strict=True))

    def _socket(self, daemon: str) -> str:
        if daemon not in self._sockets:
            conf = ("--conf", self._access.configuration) if self._access.configuration else ()
            self._sockets[daemon] = ""
            with suppress(StrakesError):  # no ceph-conf: ask through the monitors, which report the error
                done = self._run(("ceph-conf", *conf, "--name", daemon, "--show-config-value", "admin_socket"))
                self._sockets[daemon] = done.stdout.strip() if done.status == 0 else ""
        return self._sockets[daemon]
