"""What can be done to a live system, and how it is watched meanwhile. A new kind is a class and a line in ``fault_of``."""

from __future__ import annotations

import os
import shlex
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from strakes.errors import BadInputError, MeasurementError, StrakesError
from strakes.failover.timeline import Moment
from strakes.targets.command import run

if TYPE_CHECKING:
    from strakes.lab.ceph.monitor import Monitors

CEPHFS = "cephfs-mds"
_COMMAND_S = 120.0
_LOOK_EVERY_S = 0.2


class Fault(ABC):
    """``text`` says what will be done, before it is done."""

    text: str

    @abstractmethod
    def strike(self) -> tuple[Moment, ...]:
        """Do it; what was done when. Raises StrakesError when it could not be done."""

    @abstractmethod
    def watch(self, seen: Callable[[Moment], None], stop: threading.Event) -> None:
        """Tell what the servers say, until ``stop``; runs beside everything else."""


class CommandFault(Fault):
    """A command of the user's, for any system."""

    def __init__(self, command: str) -> None:
        """Raises BadInputError for quotes that do not match."""
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise BadInputError("not a command", where=command, why=str(error)) from error
        if not self._words:
            raise BadInputError("the command of the fault is empty")
        self.text = f"run: {command}"

    def strike(self) -> tuple[Moment, ...]:
        began = time.time()
        done = run(self._words, _COMMAND_S)
        if done.status != 0:
            raise MeasurementError(
                "the fault could not be done", where=shlex.join(self._words), why=done.stderr.strip() or f"status {done.status}"
            )
        return Moment(began, "drill", shlex.join(self._words)), Moment(time.time(), "drill", "the command has ended")

    def watch(self, seen: Callable[[Moment], None], stop: threading.Event) -> None:
        """Nothing is known of its servers."""


class CephFsFault(Fault):
    """SIGKILL to the active metadata server of a CephFS lab, and what the monitors then say of the others."""

    def __init__(self, directory: Path) -> None:
        """Raises BadInputError when the directory is in no CephFS lab, or nobody stands by."""
        from strakes.lab.ceph.monitor import Monitors
        from strakes.lab.manager import all_labs

        real = directory.resolve()
        lab = next((one for one in all_labs() if one.kind == "ceph" and real.is_relative_to(one.mount_point)), None)
        if lab is None:
            raise BadInputError(
                f"--fault {CEPHFS} is for a CephFS lab",
                where=str(directory),
                remedy="Start one (strakes lab up ceph), or give the command that does the fault: --fault 'ssh mds1 reboot -f'",
            )
        self._config = Path(lab.facts["ceph_conf"])
        with Monitors(self._config) as monitors:
            states = _states(monitors)
        active = sorted(name for name, state in states.items() if state == "up:active")
        if not active or not any(state.startswith("up:standby") for state in states.values()):
            raise BadInputError("no metadata server stands by", where=lab.name, why=str(states), remedy="strakes lab down, then up again.")
        self._victim = active[0]
        pid = next((one.pid for one in lab.processes if one.role == f"mds.{self._victim}" and one.alive), None)
        if pid is None:
            raise BadInputError(f"mds.{self._victim} is active and was not started by this lab", where=lab.name)
        self._pid = pid
        self.text = f"kill -9 mds.{self._victim} (process {self._pid}), the active metadata server"

    def strike(self) -> tuple[Moment, ...]:
        os.kill(self._pid, signal.SIGKILL)
        return (Moment(time.time(), "drill", f"kill -9 mds.{self._victim}"),)

    def watch(self, seen: Callable[[Moment], None], stop: threading.Event) -> None:
        from strakes.lab.ceph.monitor import Monitors

        known: dict[str, str] = {}
        try:
            with Monitors(self._config) as monitors:
                while not stop.wait(_LOOK_EVERY_S):
                    now = _states(monitors)
                    for name in sorted(known.keys() | now.keys()):
                        state = now.get(name, "gone")
                        if known and state != known.get(name):
                            seen(Moment(time.time(), f"mds.{name}", state))
                    known = now
        except StrakesError as error:
            seen(Moment(time.time(), "drill", f"the monitors cannot be watched: {error}"))


def fault_of(text: str, directory: Path) -> Fault:
    """The word ``cephfs-mds``, or a command."""
    return CephFsFault(directory) if text == CEPHFS else CommandFault(text)


def _states(monitors: Monitors) -> dict[str, str]:
    """Name of a metadata server -> what it is doing."""
    dump = monitors.command("fs dump")
    ranks = [info for system in dump["filesystems"] for info in system["mdsmap"]["info"].values()]
    return {str(info["name"]): str(info["state"]) for info in (*ranks, *dump["standbys"])}
