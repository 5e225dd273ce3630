"""End a strakes command whose file servers are dead, even if the command is blocked in a system call.

One thread per file system asks the kernel every second which servers do not answer. If an outage lasts too long, the
watchdog thread raises ServersDeadError in the main thread, as Ctrl-C raises KeyboardInterrupt. If the main thread does
not react, the watchdog restores changed settings of the file system and ends the process.
"""

from __future__ import annotations

import mmap
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ctypes import Structure, c_int, sizeof
from types import FrameType
from typing import Literal

from strakes.base.errors import ServersDeadError, StrakesError
from strakes.base.foreign_text import for_terminal
from strakes.base.interrupts import last_words
from strakes.targets import command
from strakes.targets.calls import begin
from strakes.targets.target import LostServer, Target

_TICK_S = 1.0
# An outage is reported after this time in seconds. A Lustre client detects a dead machine after 13 to 16 s.
LOST_FOR_S = 13.0
# Seconds until refused connections are reported. Clients notice a refusal at once, a dead machine after 13 to 16 s.
REFUSED_FOR_S = 28.0
# Seconds from the report of an outage to the end of the command. Outages in recorded fail-overs took 21 to 38 s.
GRACE_S = 16.0
# Maximum seconds for restoring settings of the file system before the watchdog ends the command.
ENDING_S = 4.0
# Maximum seconds for the main thread to end the command. Then the watchdog ends the process.
_UNWIND_S = 2.0
# Signal by which this process reports to its parent that its work is done.
DONE = signal.SIGUSR1
# Seconds until a query for unreachable servers counts as blocked. Then a child process tests the directory.
_SLOW_S = 3.0


class _Shared(Structure):
    """Memory shared with the process ``parent`` (0: none). ``status``: exit status of the work if ``is_done``.

    ``is_unlimited``: the parent waits for dead servers without limit. ``must_end``: the parent ends this process, which
    first does ``acts`` acts. ``lost_s``: time.monotonic() of the last report of lost servers.
    """

    _fields_ = tuple(
        (one, c_int) for one in ("parent", "status", "is_done", "is_unlimited", "must_end", "acts", "lost_s")
    )


SHARED = _Shared.from_buffer(mmap.mmap(-1, sizeof(_Shared)))
_last_acts: list[Callable[[], object]] = []


@contextmanager
def before_forced_end(words: Callable[[], str], act: Callable[[], object]) -> Iterator[None]:
    """Call ``act`` and print ``words()`` if the watchdog or the parent ends the process during the ``with`` block."""
    stopping = threading.Event()
    with suppress(RuntimeError):  # No thread can be started.
        threading.Thread(target=_end_when_told, args=(stopping,), daemon=True).start()
    _last_acts.append(act)
    last_words.append(words)
    SHARED.acts = len(_last_acts)
    try:
        yield
    finally:
        stopping.set()
        last_words.remove(words)
        _last_acts.remove(act)
        SHARED.acts = len(_last_acts)


def _end_when_told(stopping: threading.Event) -> None:
    while not stopping.wait(_TICK_S):
        if SHARED.must_end:
            _end_by_force(stopping)


def _end_by_force(stopping: threading.Event, lines: Sequence[str] = ()) -> None:
    with suppress(RuntimeError):
        threading.Thread(target=_act, daemon=True).start()  # It may hang.
    if not stopping.wait(ENDING_S - 2 * _TICK_S):
        write_error((*lines, *(f"  also: {text}" for words in last_words if (text := words()))))
        tell_parent(ServersDeadError.exit_status)
        os._exit(ServersDeadError.exit_status)


def _act() -> None:
    command.end_running()
    for act in reversed(_last_acts):
        with suppress(StrakesError, OSError):
            act()


def advice(path: str, *, resumable: bool = True) -> str:
    """Return the advice that users get if servers die during a command on ``path``."""
    resume, path = "--resume continues an interrupted run, and " if resumable else "", shlex.quote(path)
    return f"Check the servers. When they answer again, {resume}strakes clean {path} removes the remaining files."


def tell_parent(status: int) -> None:
    """Report the exit status of the work to the parent process."""
    SHARED.status, SHARED.is_done = status, True
    if SHARED.parent:
        os.kill(SHARED.parent, DONE)


@contextmanager
def servers_watched(targets: Sequence[Target]) -> Iterator[None]:
    """Watch the servers of remote file systems in a ``with`` block, and report lost servers on standard error.

    Raises ServersDeadError in the block if servers stay dead. Does nothing outside the main thread.
    """
    remote = [target for target in targets if target.mount.remote]
    if not remote or threading.current_thread() is not threading.main_thread():
        yield
        return
    stopping = threading.Event()
    watchdog = _Watchdog(remote, stopping)
    before = signal.signal(signal.SIGALRM, watchdog.raise_error)
    try:
        yield
    finally:
        stopping.set()
        # Kill the watchdog's child processes, because a hanging query could outlive this process.
        command.end_running()
        command.end_grace()
        signal.signal(signal.SIGALRM, before)


class Course:
    """The course of an outage. States: "serving", "lost", "reported" (to the user) and "over" (the command ends)."""

    def __init__(self) -> None:
        self.state: Literal["serving", "lost", "reported", "over"] = "serving"
        self._since_s = 0.0

    def step(self, now_s: float, lost: Mapping[str, LostServer]) -> bool:
        """Update the state with the servers lost at ``now_s``. Return whether it changed. The state "over" is final."""
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
        for work in (self._work, *(look.repeat for look in self._looks)):
            threading.Thread(target=work, name="strakes-watchdog", daemon=True).start()

    def raise_error(self, _number: int, _frame: FrameType | None) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        course = Course()
        while course.state != "over" and not self._stopping.wait(_TICK_S):
            lost = {look: servers for look in self._looks if (servers := look.lost())}
            changed = course.step(time.monotonic(), {name: each for of in lost.values() for name, each in of.items()})
            SHARED.lost_s = int(time.monotonic()) if lost else 0
            if changed and course.state == "reported":
                write_error((f"{_sentences(lost)} Waiting for at most {GRACE_S:.0f} s.",))
        if course.state == "over" and not self._stopping.is_set():
            self._end(lost)

    def _end(self, lost: Mapping[_Look, Mapping[str, LostServer]]) -> None:
        path = next(iter(lost)).target.path
        what, why = "the servers of the file system do not answer", _sentences(lost)
        error = self._error = ServersDeadError(what, where=str(path), why=why, remedy=advice(str(path)))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
        command.end_running()
        if not self._stopping.wait(_UNWIND_S):
            _end_by_force(self._stopping, error.lines())


def write_error(lines: Iterable[str]) -> None:
    """Write lines to standard error. Errors are ignored."""
    with suppress(OSError):
        os.write(2, "".join(f"{for_terminal(line)}\n" for line in lines).encode())


def _sentences(lost: Mapping[_Look, Mapping[str, LostServer]]) -> str:
    return " ".join(each.sentence(name) for servers in lost.values() for name, each in servers.items())


class _Look:
    def __init__(self, target: Target, stopping: threading.Event) -> None:
        self.target, self._stopping = target, stopping
        self._answer: tuple[float, Mapping[str, LostServer] | None] = time.monotonic(), {}
        self._look: subprocess.Popen[bytes] | None = None
        self._look_since_s = 0.0

    def repeat(self) -> None:
        while not self._stopping.is_set():
            known = None
            with suppress(StrakesError, ValueError):  # A later look may succeed.
                known = self.target.lost_servers()
            self._answer = time.monotonic(), known
            self._stopping.wait(_TICK_S)

    def lost(self) -> Mapping[str, LostServer]:
        (answered_s, known), now_s = self._answer, time.monotonic()
        if known or (known is not None and now_s - answered_s < _TICK_S + _SLOW_S):
            return known
        if self._look is not None and self._look.poll() is None:
            state = f"a stat() of it has not returned for {now_s - self._look_since_s:.0f} s"
            return {self.target.mount.mount_point: LostServer("", state)}
        with suppress(OSError):  # at the limit of open files, no process can be started
            self._look, self._look_since_s = begin("stat", str(self.target.path)), now_s
        return {}
