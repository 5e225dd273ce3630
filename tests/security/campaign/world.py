"""Directories and processes of a seed, files that must not change, and the checks of every seed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

# 130 means interrupted. A SIGINT before strakes runs its first line kills Python.
STATUSES = {0, 1, 2, 3, 130, -signal.SIGINT, -signal.SIGKILL}
_PATIENCE_S = 60.0
_LIMIT_S = 180.0
_MARK = "STRAKES_CAMPAIGN"
_SIGNS_OF_WORK = ("store/runs/*", "store/knobs/*", "run/knobs/*", "labs/*", "fault-is-done")


class BrokenError(AssertionError):
    """A promise was not kept."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise BrokenError(what)


class World:
    """Environment of one seed; ``directory`` is the measured one."""

    def __init__(self, seed: int, place: Path, clock: Path | None) -> None:
        self.place = place
        self.directory, self.canary = place / "measured", place / "canary"
        self.directory.mkdir()
        self._mark = f"{seed}-{place.name}"
        self.clock = clock
        self.environment = {
            **os.environ,
            "STRAKES_STORE": str(place / "store"),
            "STRAKES_RUN": str(place / "run"),
            "XDG_STATE_HOME": str(place / "state"),
            _MARK: self._mark,
        }
        if clock is not None:
            self.environment |= {"LD_PRELOAD": str(clock), "STRAKES_CAMPAIGN_CLOCK": str(place / "clock")}
            self.step_clock(0.0)
        self._before: tuple[str, str] = ("", "")
        self._socket = socket.socket(socket.AF_UNIX)

    def plant(self) -> None:
        """Create files of others in and outside the measured directory, some of them links, and record their state."""
        (self.canary / "below").mkdir(parents=True)
        for number in range(20):
            (self.canary / "below" / f"file{number}").write_bytes(random.Random(number).randbytes(1000))
        with suppress(OSError):
            self._socket.bind(str(self.canary / "socket"))
        with suppress(OSError):  # faulty_fs.py has no links
            os.link(self.canary / "below" / "file0", self.directory / "hard")
        with suppress(OSError):
            (self.directory / "soft").symlink_to(self.canary)
            (self.directory / "strakes-20260101-000000-planted").symlink_to(self.canary)
        with suppress(OSError):
            (self.directory / "strakes-20260101-000000-theirs").mkdir()
            with (self.directory / "strakes-20260101-000000-theirs" / "file").open("wb", 0) as file:
                file.write(b"theirs")
        self.look()

    def look(self) -> None:
        self._before = self._digests()

    def _digests(self) -> tuple[str, str]:
        return digest(self.canary), digest(self.directory)

    def step_clock(self, seconds: float) -> None:
        (self.place / "clock").write_text(f"{seconds}\n")

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        with (self.place / "errors").open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-I", "-m", "strakes", *words],
                env=self.environment,
                stdin=quiet,
                stdout=quiet,
                stderr=errors,
            )

    def end(self, process: subprocess.Popen[bytes]) -> int:
        try:
            status = process.wait(_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise BrokenError("it does not end") from error
        require(status in STATUSES, f"exit status {status}")
        return status

    def wait_for_work(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while process.poll() is None and time.monotonic() < deadline:
            if any(any(self.place.glob(sign)) for sign in _SIGNS_OF_WORK) or len(self.processes()) > 1:
                return
            time.sleep(0.01)

    def call(self, *words: str) -> int:
        return self.end(self.start(*words))

    def processes(self) -> list[int]:
        wanted = f"{_MARK}={self._mark}".encode()
        marked = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with suppress(OSError):
                if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    marked.append(int(name))
        return sorted(marked)

    def require_nobody(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while left := self.processes():
            require(time.monotonic() < deadline, f"processes are left: {[command_of(pid) for pid in left]}")
            time.sleep(0.2)

    def require_no_traceback(self) -> None:
        path = self.place / "errors"
        text = path.read_text(errors="replace") if path.exists() else ""
        # An interrupt during the start-up of Python gives a traceback of Python's own.
        own = "".join(part for part in text.split("Traceback ") if not part.rstrip().endswith("KeyboardInterrupt"))
        require('File "' not in own, f"a traceback reached the user: {text[-2000:]}")

    def require_as_before(self) -> None:
        require(self._digests() == self._before, "something of others changed, or something was left")

    def visits(self) -> list[object]:
        rows: list[object] = []
        for path in sorted(self.place.glob("store/runs/*/visits.jsonl")):
            rows += [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
        return rows

    def close(self) -> None:
        for pid in self.processes():
            kill(pid)
        self._socket.close()


def digest(top: Path) -> str:
    lines = []
    for path in sorted(top.rglob("*")):
        status = path.lstat()
        content = b""
        if path.is_file() and not path.is_symlink():
            with path.open("rb", 0) as file:
                content = file.read()
        name, sum_ = path.relative_to(top), hashlib.sha256(content).hexdigest()
        lines.append(f"{name} {status.st_mode} {status.st_nlink} {sum_}")
    return "\n".join(lines)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def command_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
