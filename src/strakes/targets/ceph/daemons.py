"""Asking single daemons of a cluster: by their sockets where they run on this machine, else through the monitors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from strakes.errors import MeasurementError, StrakesError
from strakes.targets.ceph.access import Access
from strakes.targets.ceph.counters import ask_socket, process_of
from strakes.targets.ceph.tool import admin_socket, ceph
from strakes.targets.command import Runner

# Each question to a remote daemon starts a process; more than these would take longer than the measurement.
MOST_ELSEWHERE = 32
_AT_ONCE = 8
_TELL_S = 4.0


class Daemons:
    """Knows which daemons have a socket here; their places are looked up once."""

    def __init__(self, run: Runner, access: Access) -> None:
        """Take how commands are run."""
        self._run = run
        self._access = access
        self._sockets: dict[str, str] = {}

    def is_here(self, daemon: str) -> bool:
        """Whether it has a socket on this machine that we may open."""
        return os.access(self._socket(daemon), os.R_OK | os.W_OK)

    def process(self, daemon: str) -> int | None:
        """Return the process id of a local daemon, or None for a remote one."""
        return process_of(self._socket(daemon)) if self.is_here(daemon) else None

    def ask(self, daemon: str, prefix: str) -> Any:
        """One question to one of them. Raises StrakesError when it does not answer within a few seconds."""
        if self.is_here(daemon):
            return ask_socket(self._socket(daemon), prefix)
        return ceph(self._access, "tell", daemon, *prefix.split(), limit_s=_TELL_S).ask(self._run)

    def ask_all(self, daemons: Mapping[str, str], prefix: str) -> dict[str, Any]:
        """Return answers by key; ``daemons`` maps keys to names. The value is the error if a daemon does not answer."""

        def one(daemon: str) -> Any:
            try:
                return self.ask(daemon, prefix)
            except StrakesError as error:
                return error

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(zip(daemons, pool.map(one, daemons.values()), strict=True))

    def _socket(self, daemon: str) -> str:
        if daemon not in self._sockets:
            try:
                self._sockets[daemon] = admin_socket(self._access, daemon).ask(self._run)
            except StrakesError:  # no ceph-conf: ask through the monitors, which report the error
                self._sockets[daemon] = ""
        return self._sockets[daemon]


def no_answer(daemon: str, error: StrakesError) -> str:
    """Return a sentence for people."""
    return (
        f"{daemon} does not answer: {error.why or error.what}."
        if isinstance(error, MeasurementError)
        else f"{daemon}: {error.why}."
    )
