"""Ends a command whose servers are dead, even if it is blocked in a system call.

A thread asks the kernel once a second which servers do not answer. It raises ServersDeadError in the main thread, as
Ctrl-C raises KeyboardInterrupt, and ends the process if the main thread does not react.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from strakes.base.errors import ServersDeadError
from strakes.targets import command
from strakes.targets.calls import begin
from strakes.targets.target import LostServer, Target

_TICK_S = 1.0
# Seconds from noticing a lost server to the report, which must come within 30 s of the fault: LOST_FOR_S for a silent
# server, since a Lustre client notices a dead machine after 13 to 16 s; REFUSED_FOR_S for a server that refuses
# connections (an unmounted target), which a client notices immediately.
LOST_FOR_S = 13.0
REFUSED_FOR_S = 28.0
# Seconds from the report until the command is ended in order (GRACE_S), and until the process exits even if it is
# blocked (END_S). In recorded fail-overs, targets were unavailable for 21 to 38 s, less than REFUSED_FOR_S + GRACE_S.
GRACE_S = 22.0
END_S = 25.0
_JOIN_S = 0.2
# A query for lost servers that takes longer than _SLOW_S seconds was blocked; the next one is _ASK_AGAIN_S later.
_SLOW_S = 3.0
_ASK_AGAIN_S = 30.0

_last_resort: list[Callable[[int], None]] = []


def set_last_resort(tell: Callable[[int], None]) -> None:
    """Set a callback that reports the exit status to the parent process, because a blocked process may never exit."""
    _last_resort[:] = [tell]


@contextmanager
def servers_watched(targets: Sequence[Target], note: Callable[[str], None]) -> Iterator[None]:
    """Watch the servers of remote file systems while the body runs; report them by ``note``, from another thread.

    Raises ServersDeadError in the body if servers stay dead. Does nothing outside the main thread.
    """
    remote = [target for target in targets if target.mount.remote]
    if not remote or threading.current_thread() is not threading.main_thread():
        yield
        return
    watchdog = _Watchdog(remote, note)
    before = signal.signal(signal.SIGALRM, watchdog.raise_error)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()
        signal.signal(signal.SIGALRM, before)


class _Watchdog:
    def __init__(self, targets: Sequence[Target], note: Callable[[str], None]) -> None:
        self._looks = [_Look(target) for target in targets]
        self._note = note
        self._error: ServersDeadError | None = None
        self._stopping = threading.Event()
        self._main = threading.main_thread()
        self._thread = threading.Thread(target=self._work, name="strakes-watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        # Join with a limit, because the thread may be waiting for a command.
        self._thread.join(_JOIN_S)
        command.end_grace()

    def raise_error(self, _number: int, _frame: FrameType | None) -> None:
        """Handle SIGALRM in the main thread: raise the error of the watchdog."""
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        reported_s: float | None = None
        while True:
            dead = [look for look in self._looks if look.is_dead()]
            if not dead:
                reported_s = None
            elif reported_s is None:
                reported_s = time.monotonic()
                self._note(f"{dead[0].error().why} Waiting for at most {GRACE_S:.0f} s.")
            elif time.monotonic() - reported_s >= GRACE_S:
                self._end(dead[0].error(), reported_s + END_S)
                return
            if self._stopping.wait(_TICK_S):
                return

    def _end(self, error: ServersDeadError, by_s: float) -> None:
        self._error = error
        signal.pthread_kill(self._main.ident or 0, signal.SIGALRM)
        command.end_running()
        if self._stopping.wait(max(0.0, by_s - time.monotonic())):
            return
        with suppress(OSError):
            os.write(2, "".join(f"{line}\n" for line in error.lines()).encode())
        for tell in _last_resort:
            tell(error.exit_status)
        os._exit(error.exit_status)


class _Look:
    """The lost servers of one file system, and since when each is lost (time.monotonic)."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._since_s: dict[str, float] = {}
        self._lost: Mapping[str, LostServer] = {}
        self._look: subprocess.Popen[bytes] | None = None
        self._look_since_s = 0.0
        self._ask_from_s = 0.0

    def is_dead(self) -> bool:
        """Return whether a server has been lost for long enough to report it, longer if all refuse connections."""
        began_s = time.monotonic()
        known = self._target.lost_servers() if began_s >= self._ask_from_s else None
        now_s = since_s = time.monotonic()
        if now_s - began_s > _SLOW_S:
            self._ask_from_s = now_s + _ASK_AGAIN_S
        if known is None:
            known = self._without_answer()
            since_s = self._look_since_s
        self._lost = known
        self._since_s = {name: self._since_s.get(name, since_s) for name in known}
        lost_for_s = max((now_s - since_s for since_s in self._since_s.values()), default=0.0)
        patience_s = REFUSED_FOR_S if all(server.refuses for server in known.values()) else LOST_FOR_S
        return bool(known) and lost_for_s >= patience_s

    def _without_answer(self) -> Mapping[str, LostServer]:
        """Check the directory in a child process. Return it as lost while an earlier child still waits."""
        if self._look is not None and self._look.poll() is None:
            return {self._target.mount.mount_point: LostServer("", "checking this directory does not end")}
        self._look, self._look_since_s = begin("stat", str(self._target.path)), time.monotonic()
        return {}

    def error(self) -> ServersDeadError:
        """Return the error that names all servers that are currently lost."""
        now_s = time.monotonic()
        why = " ".join(
            f"{name}{f' on {lost.host}' if lost.host else ''} does not answer: {lost.state}, for at least "
            f"{now_s - self._since_s[name]:.0f} s."
            for name, lost in self._lost.items()
        )
        return ServersDeadError(
            "the servers of the file system do not answer",
            where=str(self._target.path),
            why=why,
            remedy="Check them. When they serve again, --resume continues a run that was begun, and "
            f"strakes clean {self._target.path} removes the remaining files.",
        )
