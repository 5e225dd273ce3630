"""Ends a command whose servers are dead, even if it is blocked in a system call.

A thread for each file system asks the kernel once a second which servers do not answer. The watchdog thread follows
the course of an outage, raises ServersDeadError in the main thread, as Ctrl-C raises KeyboardInterrupt, and restores
settings and ends the process if the main thread does not react. No wait of another thread delays it. The parent process
(strakes.cli.apart) leaves an outage to the watchdog; before it kills a blocked process, it sends TOLD_TO_END.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Literal

from strakes.base.errors import ServersDeadError, StrakesError
from strakes.targets import command
from strakes.targets.calls import begin
from strakes.targets.target import LostServer, Target

_TICK_S = 1.0
# Seconds from noticing a lost server to the report, which must come within 30 s of the fault: LOST_FOR_S for a silent
# server, since a Lustre client notices a dead machine after 13 to 16 s; REFUSED_FOR_S for a server that refuses
# connections (an unmounted target), which a client notices immediately.
LOST_FOR_S = 13.0
REFUSED_FOR_S = 28.0
# Shares of the 30 s from the report to the end of the command, one after the other: the servers may come back
# (GRACE_S); the engine is stopped and settings are restored, then the process exits even if it is blocked (ENDING_S);
# the parent process waits for processes in the kernel (5 s, strakes.cli.apart). 5 s are left for a busy machine. In
# recorded fail-overs, targets were unavailable for 21 to 38 s, less than REFUSED_FOR_S + GRACE_S.
GRACE_S = 16.0
ENDING_S = 4.0
# Share of ENDING_S for the main thread; then the watchdog restores the settings itself.
_UNWIND_S = 2.0
# Blocked in all threads, so that it stays pending until the watchdog sees it; it ends a process without a watchdog.
TOLD_TO_END = signal.SIGUSR2
# An answer about lost servers that is overdue by _SLOW_S seconds was blocked; then a child process tries the directory.
_SLOW_S = 3.0

_parent: list[tuple[Callable[[int], None], Callable[[str], None]]] = []
_last_acts: list[Callable[[], object]] = []


@contextmanager
def before_forced_end(act: Callable[[], object]) -> Iterator[None]:
    """Call ``act`` in another thread if the watchdog ends the process while the body runs."""
    _last_acts.append(act)
    try:
        yield
    finally:
        _last_acts.remove(act)


def advice(path: str, *, resumable: bool = True) -> str:
    """Return what to do after servers died during a command on ``path``."""
    resume = "--resume continues a run that was begun, and " if resumable else ""
    return f"Check them. When they serve again, {resume}strakes clean {path} removes the remaining files."


def set_parent(tell_status: Callable[[int], None], tell_trouble: Callable[[str], None]) -> None:
    """Set callbacks that report the exit status and the lost servers to the parent process.

    The parent process needs them because a blocked process may never exit.
    """
    _parent[:] = [(tell_status, tell_trouble)]


@contextmanager
def servers_watched(targets: Sequence[Target]) -> Iterator[None]:
    """Watch the servers of remote file systems while the body runs; report lost ones on standard error.

    Raises ServersDeadError in the body if servers stay dead. Does nothing outside the main thread.
    """
    remote = [target for target in targets if target.mount.remote]
    if not remote or threading.current_thread() is not threading.main_thread():
        yield
        return
    stopping = threading.Event()
    watchdog = _Watchdog(remote, stopping)
    before = signal.signal(signal.SIGALRM, watchdog.raise_error)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {TOLD_TO_END})
    watchdog.start()
    try:
        yield
    finally:
        stopping.set()
        # A query of the watchdog's threads may hang and would stay when this process exits.
        command.end_running()
        command.end_grace()
        signal.signal(signal.SIGALRM, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class Course:
    """The course of an outage: "serving", "lost", "reported" (it lasts too long for a short break), "over"."""

    def __init__(self) -> None:
        self.state: Literal["serving", "lost", "reported", "over"] = "serving"
        self._since_s = 0.0

    def step(self, now_s: float, lost: Mapping[str, LostServer]) -> bool:
        """Add the servers that are lost at ``now_s``; return whether the state changed. The end is final."""
        before, waited_s = self.state, now_s - self._since_s
        refused = all(server.refuses for server in lost.values())
        if self.state != "over" and not lost:
            self.state = "serving"
        elif self.state == "serving":
            self.state = "lost"
        elif self.state == "lost" and waited_s >= (REFUSED_FOR_S if refused else LOST_FOR_S):
            self.state = "reported"
        elif self.state == "reported" and waited_s >= GRACE_S:
            self.state = "over"
        if self.state == before:
            return False
        self._since_s = now_s
        return True


class _Watchdog:
    def __init__(self, targets: Sequence[Target], stopping: threading.Event) -> None:
        self._looks = [_Look(target, stopping) for target in targets]
        self._stopping = stopping
        self._error: ServersDeadError | None = None

    def start(self) -> None:
        for work in (self._work, *(look.repeat for look in self._looks)):
            threading.Thread(target=work, name="strakes-watchdog", daemon=True).start()

    def raise_error(self, _number: int, _frame: FrameType | None) -> None:
        """Handle SIGALRM in the main thread: raise the error of the watchdog."""
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        course = Course()
        while course.state != "over" and not self._stopping.wait(_TICK_S):
            if TOLD_TO_END in signal.sigpending():
                self._restore()
                os._exit(ServersDeadError.exit_status)
            lost = {look: servers for look in self._looks if (servers := look.lost())}
            changed = course.step(time.monotonic(), {name: each for of in lost.values() for name, each in of.items()})
            for _, tell_trouble in _parent if changed or lost else ():
                tell_trouble(_sentences(lost))
            if changed and course.state == "reported":
                with suppress(OSError, ValueError):  # nobody reads standard error any more
                    sys.stderr.write(f"{_sentences(lost)} Waiting for at most {GRACE_S:.0f} s.\n")
                    sys.stderr.flush()
        if course.state == "over" and not self._stopping.is_set():
            self._end(lost)

    def _end(self, lost: Mapping[_Look, Mapping[str, LostServer]]) -> None:
        path = next(iter(lost)).target.path
        what, why = "the servers of the file system do not answer", _sentences(lost)
        error = self._error = ServersDeadError(what, where=str(path), why=why, remedy=advice(str(path)))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
        command.end_running()
        ends_s = time.monotonic() + ENDING_S
        if self._stopping.wait(_UNWIND_S):
            return
        self._restore()
        if self._stopping.wait(max(0.0, ends_s - time.monotonic())):
            return
        with suppress(OSError):
            os.write(2, "".join(f"{line}\n" for line in error.lines()).encode())
        for tell_status, _ in _parent:
            tell_status(error.exit_status)
        os._exit(error.exit_status)

    def _restore(self) -> None:
        command.end_running()
        for act in reversed(_last_acts):
            with suppress(StrakesError, OSError):
                act()


def _sentences(lost: Mapping[_Look, Mapping[str, LostServer]]) -> str:
    return " ".join(each.sentence(name) for servers in lost.values() for name, each in servers.items())


class _Look:
    """The lost servers of one file system, read again and again in a thread of its own."""

    def __init__(self, target: Target, stopping: threading.Event) -> None:
        self.target, self._stopping = target, stopping
        self._answer: tuple[float, Mapping[str, LostServer] | None] = time.monotonic(), {}
        self._look: subprocess.Popen[bytes] | None = None
        self._look_since_s = 0.0

    def repeat(self) -> None:
        """Ask which servers are lost, until the command stops the watchdog."""
        while not self._stopping.is_set():
            known = self.target.lost_servers()
            self._answer = time.monotonic(), known
            self._stopping.wait(_TICK_S)

    def lost(self) -> Mapping[str, LostServer]:
        """Return target -> lost server. If the last answer is missing or old, try the directory in a child process."""
        answered_s, known = self._answer
        now_s = time.monotonic()
        if known or (known is not None and now_s - answered_s < _TICK_S + _SLOW_S):
            return known
        if self._look is not None and self._look.poll() is None:
            state = f"a look at it has not ended for {now_s - self._look_since_s:.0f} s"
            return {self.target.mount.mount_point: LostServer("", state)}
        self._look, self._look_since_s = begin("stat", str(self.target.path)), now_s
        return {}
