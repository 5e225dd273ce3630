"""The process that owns a journal, and whether it still runs."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Literal, Self

from strakes.base.processes import process_start
from strakes.targets.marker import boot_id, pid_namespace

# elsewhere: on another host, or in another container of this one, where its number means nothing here.
Life = Literal["alive", "dead", "elsewhere"]


@dataclass(frozen=True)
class Owner:
    """``started`` is in clock ticks since boot (proc_pid_stat(5))."""

    host: str
    boot: str
    namespace: str
    pid: int
    started: int

    @classmethod
    def this_process(cls) -> Self:
        """Return the process that runs this."""
        pid = os.getpid()
        return cls(socket.gethostname(), boot_id(), pid_namespace(), pid, process_start(pid) or 0)

    def life(self) -> Life:
        """Return whether the process is alive, dead, or not visible from here."""
        if self.host != socket.gethostname():
            return "elsewhere"
        if self.boot != boot_id():
            return "dead"
        if self.namespace != pid_namespace():
            return "elsewhere"
        return "alive" if process_start(self.pid) == self.started else "dead"

    @property
    def this_boot(self) -> bool:
        """Return whether it is of this boot."""
        return self.boot == boot_id()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"
