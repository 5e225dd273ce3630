"""Faults of a DRBD 8.4 device: disconnect its peer, or discard the peer's copy. Undoing makes the peer synchronise."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path
from typing import ClassVar, NamedTuple

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.foreign_text import shown_command
from strakes.base.units import format_bytes
from strakes.control.drill_undo import RunCommand, Undo
from strakes.control.fault import Ask, OneCommand, Seen, looks
from strakes.failover.timeline import Moment
from strakes.targets.calls import mount_of
from strakes.targets.command import Runner, run
from strakes.targets.description import TargetRecovery

_LOOK_EVERY_S = 0.02


class _Copies(NamedTuple):
    """One reading of /proc/drbd. ``behind_bytes``: data that is out of sync (``oos``)."""

    connection: str
    role: str
    disks: str
    behind_bytes: int

    @property
    def equal(self) -> bool:
        return self.connection == "Connected" and self.disks == "UpToDate/UpToDate"


class DisconnectPeer(OneCommand):
    """Disconnect the peer, which then misses all writes. Undoing reconnects it and sends it the changed blocks."""

    # Allow four hours, because synchronising all blocks of a large device takes hours.
    back_within_s = 4 * 3600.0
    cause: ClassVar[str] = "disconnect"
    # A device that is connected refuses to be connected again.
    remedy: ClassVar[str] = "drbdadm connect minor-{0} || drbdadm cstate minor-{0} | grep -qvE 'StandAlone|Disconn'"

    def __init__(self, ask: Ask, run_one: Runner = run, states: Path = Path("/proc/drbd")) -> None:
        self._run, self._states = run_one, states
        mount = mount_of(ask.directory)
        source, found = mount.source, re.fullmatch(r"/dev/drbd(\d+)", mount.source)
        if found is None or mount.of_another_user:
            raise BadInputError("DIR is not on a DRBD device", where=f"{ask.directory} on {source}")
        self._minor = found[1]
        self._device = f"drbd{self._minor}"
        self._at_first = now = self._look()
        # If the peer is also primary, both write while they are disconnected, and no copy has all data.
        if not now.equal or now.role != "Primary/Secondary":
            what = "the DRBD copies are not in sync, or this node is not the only primary"
            raise BadInputError(what, where=source, why=f"/proc/drbd: {' '.join(now[:3])}")
        self._strike = ("drbdadm", self.cause, f"minor-{self._minor}")
        self.undo: Undo | None = RunCommand(("sh", "-c", self.remedy.format(self._minor))) if self.remedy else None
        self.text = f"run: {shown_command(self._strike)}"
        self._most_behind_bytes = 0
        self._began_s: float | None = None
        self._took_s: float | None = None

    def watch(self, seen: Seen, stop: threading.Event) -> None:
        last = self._at_first
        for _ in looks(stop, _LOOK_EVERY_S):
            now, now_s = self._look(), time.time()
            self._most_behind_bytes = max(self._most_behind_bytes, now.behind_bytes)
            if now.connection.startswith("Sync") and self._began_s is None:
                self._began_s = now_s
            if now.equal and self._began_s is not None and self._took_s is None:
                self._took_s = now_s - self._began_s
            if now[:3] != last[:3]:
                seen(Moment(now_s, self._device, f"{' '.join(now[:3])}, {format_bytes(now.behind_bytes)} differ"))
            last = now

    def recoveries(self) -> tuple[TargetRecovery, ...]:
        status = f"{format_bytes(self._most_behind_bytes)} synchronised" if self._took_s else "not synchronised"
        return (TargetRecovery(self._device, status, duration_s=self._took_s and round(self._took_s, 2)),)

    def lacking(self) -> str:
        now = self._look()
        differ = f"{format_bytes(now.behind_bytes)} differ"
        return "" if now.equal else f"{self._device} is not synchronised ({now.connection}): {differ}"

    def _look(self) -> _Copies:
        text = self._states.read_text() if os.access(self._states, os.R_OK) else ""
        found = re.search(rf"^ *{self._minor}: cs:(\S+) ro:(\S+) ds:(\S+) .*\n.*\boos:(\d+)", text, re.MULTILINE)
        if found is None:
            what, where = "the state of the DRBD device cannot be read", f"/proc/drbd, {self._device}"
            remedy = "Use DRBD 8.4 on this machine: DRBD 9 does not show its devices in /proc/drbd."
            raise EnvironmentLacksError(what, where=where, remedy=remedy)
        return _Copies(found[1], found[2], found[3], int(found[4]) * 1024)


class DiscardPeer(DisconnectPeer):
    """Declare the peer's copy invalid, so that the peer receives all blocks again, as if its disk had been replaced."""

    cause = "invalidate-remote"
    remedy = ""
