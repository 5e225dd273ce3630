"""Connections of a Lustre client: which targets do not answer, and which servers served these targets last."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from strakes.targets.lustre_parameters import (
    FULL,
    IDLE,
    UNREACHED_STATES,
    StateChange,
    States,
    continued,
    service_addresses,
    working_address,
)
from strakes.targets.lustre_servers import NOTHING, host_of, hosts, state_query, states, target_in
from strakes.targets.lustre_tool import Answers, get_param, of_mount
from strakes.targets.target import LostServer

# Seconds within which a client detects a dead server on all connections to this server.
NOTICE_S = 16.0


class Connections:
    """The connections of a Lustre mount, with state changes and servers that the kernel no longer reports.

    After a loss, the kernel reports the server that it tries next. The lost server is the last connected one or, if
    that is unknown, any configured one. A server that has another FULL connection NOTICE_S seconds later is alive.
    """

    def __init__(self, file_system: str, ask_instance: Callable[[], str]) -> None:
        self._file_system, self._ask_instance = file_system, ask_instance
        self._changes: dict[str, tuple[StateChange, ...]] = {}
        self._read: Mapping[str, States] = {}
        self._last: dict[str, str] = {}
        self._possible: dict[str, tuple[str, ...]] = {}

    def states(self, answers: Answers) -> dict[str, States]:
        """Return Lustre target -> states of its connection, including changes that the kernel has forgotten."""
        known = states(answers, self._file_system, self._ask_instance)
        for name, of in known.items():
            self._changes[name] = continued(self._changes.get(name, ()), of.changes)
        return {name: replace(of, changes=self._changes[name]) for name, of in known.items()}

    def lost(self, answers: Answers) -> dict[str, LostServer] | None:
        """Return Lustre target -> server that does not answer, or None if the kernel shows no connection states."""
        known = self.states(answers)
        if not known:
            return None
        if known != self._read:
            self._read = known
            self._read_servers(answers, known)
        now_s = time.time()
        connected = {self._last[name]: name for name, of in known.items() if of.current == FULL and name in self._last}
        lost = {name: self._lost(name, of, connected, now_s) for name, of in known.items() if of.lost(now_s)}
        # An idle connection does not notice the loss of its server.
        dead = {server.host for server in lost.values() if not server.refuses and not server.answers} - {*connected}
        return lost | {
            name: LostServer(self._last[name], f"{IDLE}, and its server is dead")
            for name, of in known.items()
            if of.current == IDLE and self._last.get(name) in dead
        }

    def _lost(self, name: str, of: States, connected: Mapping[str, str], now_s: float) -> LostServer:
        on = (self._last[name],) if name in self._last else self._possible.get(name, ())
        silent = [host for host in on if host not in connected]
        state = of.in_words(now_s)
        if on and not silent and now_s - (of.not_working_since() or 0.0) > NOTICE_S:
            state += f"; {connected[on[0]]} on its server {on[0]} is connected"
        elif not silent:
            silent = [*on]
        return LostServer(" or ".join(silent), state, of.refused(now_s), of.current not in UNREACHED_STATES)

    def why_unread(self, answers: Answers) -> str:
        """Return why this user cannot read connection states that should be readable, or ""."""
        params = answers.get(state_query(self._file_system), NOTHING)
        if params.cut_off and (self._read or os.geteuid() == 0):
            return params.why or "lctl get_param fails"
        return "; ".join(answers.notes) if self._read or answers.hangs("lctl") or answers.misread else ""

    def _read_servers(self, answers: Answers, known: Mapping[str, States]) -> None:
        names = (f"{kind}.{self._file_system}-*.import" for kind in ("mdc", "osc"))
        values = answers.get(get_param(*names), NOTHING).values
        for parameter, text in of_mount(values, self._file_system, self._ask_instance).items():
            name, address = target_in(parameter), working_address(text)
            self._possible[name] = hosts(service_addresses(text))
            if address and name in known and known[name].working:
                self._last[name] = host_of(address)
