"""Functions to start a lab in its directory. Each step is recorded in a journal before it begins."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from pathlib import Path

from strakes.base.errors import EnvironmentLacksError
from strakes.base.files import open_directory, write_kept
from strakes.base.processes import process_start
from strakes.lab.process import complaint, last_lines, run, start
from strakes.lab.state import LabJournal

# Time limit in seconds for a start. Servers need some seconds, or minutes on a busy machine.
READY_LIMIT_S = 180.0
_COMMAND_S = 60.0
_TICK_S = 0.1


def rendered(name: str, /, **given: object) -> str:
    """Return a configuration file made from the template ``name`` and values."""
    from jinja2 import StrictUndefined, Template

    text = resources.files("strakes").joinpath(f"lab/templates/{name}.j2").read_text(encoding="utf-8")
    template = Template(text, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    return str(template.render(given))


class LabSite:
    """Starts and records the processes of a lab. ``say``: called with a text for each step."""

    def __init__(self, directory: Path, journal: LabJournal, say: Callable[[str], None]) -> None:
        self.directory = directory
        self.name = directory.name
        self.id = journal.id
        self.mount_point = directory / "mnt"
        self._journal = journal
        self._say = say
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def step(self, text: str) -> None:
        self._journal.note(last_step=text)
        self._say(f"{self.name}: {text}")

    def make_directory(self, *parts: str, mode: int = 0o700) -> Path:
        path = self.directory.joinpath(*parts)
        os.close(open_directory(path, make=mode))
        return path

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.directory / name
        write_kept(path, text, mode=mode)
        return path

    def fill(self, name: str, template: str, mode: int = 0o644, /, **given: object) -> Path:
        return self.write(name, rendered(template, lab=self.directory, **given), mode)

    def install(self, source: str, name: str) -> Path:
        text = resources.files("strakes").joinpath(f"lab/{source}").read_text(encoding="utf-8")
        return self.write(name, text, 0o755)

    def mount_memory(self, size: int) -> None:
        where = self.make_directory("mnt")
        self.run("mount", "-t", "tmpfs", "-o", f"size={size},mode=0755,nosuid,nodev", f"strakes-lab-{self.name}", where)

    def make_namespace(self, path: Path) -> None:
        """Make a network namespace. A bind mount at ``path`` keeps the namespace alive."""
        write_kept(path, "")
        self.run("unshare", f"--net={path}", "ip", "link", "set", "lo", "up")

    def ip(self, network: Path, *lines: str) -> None:
        self.run("nsenter", f"--net={network}", "ip", "-batch", self.write("network.ip", "\n".join((*lines, ""))))

    def run(self, *argv: str | Path, limit_s: float = _COMMAND_S) -> str:
        words = [str(word) for word in argv]
        done = run(words, limit_s=limit_s, lab_id=self.id)
        if done.status != 0:
            raise self._failed(f"{words[0]} failed", " ".join(words), complaint(done))
        return done.stdout

    def start(self, role: str, *argv: str | Path) -> int:
        words = [str(word) for word in argv]
        try:
            process = start(words, log=self._log_of(role), lab_id=self.id)
        except OSError as error:
            raise self._failed(f"{role} was not started", words[0], error.strerror or "") from error
        self.adopt(role, process.pid)
        self._daemons[role] = process
        return process.pid

    def adopt(self, role: str, pid: int) -> None:
        self._journal.note(role=role, pid=pid, started=process_start(pid) or 0)

    def wait_until(self, what: str, lacking: Callable[[], str], *, limit_s: float = READY_LIMIT_S) -> None:
        """Wait until ``lacking`` returns "". Raises EnvironmentLacksError after ``limit_s`` or if a daemon ends."""
        deadline = time.monotonic() + limit_s
        while why := lacking():
            self._require_daemons()
            if time.monotonic() > deadline:
                remedy = "The machine may be too busy or too small. Try again with fewer servers."
                raise self._failed(f"waited {limit_s:.0f} s for {what}", str(self.directory), why, remedy)
            time.sleep(_TICK_S)
        self._require_daemons()

    def _require_daemons(self) -> None:
        for role, process in self._daemons.items():
            if process.poll() is None:
                continue
            text = ""
            with suppress(OSError):
                text = self._log_of(role).read_text(errors="replace")
            why = last_lines(text, 4) or "it printed nothing"
            raise self._failed(f"{role} ended", f"{role} of {self.name}", why)

    def _failed(self, what: str, where: str, why: str, remedy: str = "") -> EnvironmentLacksError:
        return EnvironmentLacksError(f"{self.name} cannot be started: {what}", where=where, why=why, remedy=remedy)

    def _log_of(self, role: str) -> Path:
        return self.make_directory("log") / f"{role}.out"
