"""A command in a process that this one can leave behind.

Nobody can end a process that waits in the kernel for a dead server, nor one in which a thread does so or a file is
still open there; the shell that waits for it would wait as long. So commands that work on a file system do it in a
child. When the child has said its last, this process ends with its status, whether the child can end or not.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from strakes.errors import InterruptedByUser
from strakes.processes import descendants_of, kernel_waits, wait_in_words

# Told of by the child when its work is done.
_DONE = signal.SIGUSR1
_FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_WATCHED = _FORWARDED | {_DONE, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT}
# What a process in order takes to end after its work is far less.
PATIENCE_S = 5.0
# Who is interrupted while a file system hangs ends within half a minute: as if interrupted again, then killed.
_PRESS_AFTER_S = 15.0
_GIVE_UP_AFTER_S = 24.0
# Waiting for a dead server, Lustre looks about once a second whether it is back.
_MOST_WAITS_PER_S = 2
_HANGS_AFTER_S = 10.0
_GIVEN_UP = -1000  # no signal has this number
_LAST_S = 1.0
_LOOK_EVERY_S = 0.5
_TICK_S = 0.1
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def run_apart(work: Callable[[], int], patience_s: float = PATIENCE_S) -> int:
    """Return the status that ``work`` returns in a child, which ends when it is done or this process ends.

    Signals are passed on; what ends the child by a signal ends this process alike. A child that does not end within
    ``patience_s`` after its work is named on standard error and left, and so are processes that it started and that
    wait in the kernel. Interrupted while one of them hangs, this process ends within half a minute.
    """
    parent, before = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    status_of_child, status_for_parent = os.pipe()
    # What the child leaves becomes ours, and can be named.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child != 0:
        os.close(status_for_parent)
        return _Watch(child, status_of_child, patience_s).wait()
    os.close(status_of_child)
    # A process group of its own: the terminal's signals come once, by way of the parent. It may write all the same.
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    status = work()
    # Whoever reads what we print waits for its end.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        with suppress(OSError, ValueError, AttributeError):  # closed, or never open
            stream.flush()
        os.dup2(nowhere, number)
    os.write(status_for_parent, bytes([status]))
    os.kill(parent, _DONE)
    return status


class _Watch:
    """The parent's side."""

    def __init__(self, child: int, status_of_child: int, patience_s: float) -> None:
        self._child = child
        self._status_of_child = status_of_child
        self._patience_s = patience_s
        self._status: int | None = None
        # Of each thread that waits in the kernel: since when it has not moved, and how often it had waited then.
        self._still: dict[tuple[int, int], tuple[float, int]] = {}

    def wait(self) -> int:
        """Until the child has ended, or does not end; processes that it leaves are named."""
        told = self._wait_for_the_work()
        self._wait_for_the_last()
        if told == _GIVEN_UP:
            return InterruptedByUser.exit_status
        return _end_alike(-told) if told < 0 else told

    def _wait_for_the_work(self) -> int:
        """Return the status that the child told, or ended with; _GIVEN_UP where it was interrupted and hangs."""
        interrupted_s, pressed = 0.0, False
        while not self._has_ended():
            signalled = signal.sigtimedwait(_WATCHED, _LOOK_EVERY_S) if interrupted_s else signal.sigwaitinfo(_WATCHED)
            if signalled is not None:
                if signalled.si_signo == _DONE:
                    return os.read(self._status_of_child, 1)[0]
                if signalled.si_signo in _FORWARDED and not interrupted_s:
                    interrupted_s = time.monotonic()
                self._take(signalled.si_signo)
            if not interrupted_s or self._has_ended() or not self._hangs():
                continue
            since_s = time.monotonic() - interrupted_s
            if since_s > _PRESS_AFTER_S and not pressed:
                pressed = True
                os.kill(self._child, signal.SIGINT)
            if since_s > _GIVE_UP_AFTER_S:
                os.kill(self._child, signal.SIGKILL)
                self._patience_s = min(self._patience_s, _LAST_S)
                return _GIVEN_UP
        assert self._status is not None
        return self._status

    def _has_ended(self) -> bool:
        return self._status is not None

    def _hangs(self) -> bool:
        """Tell whether one of our threads has not moved for long: who is only slow has waited many times since."""
        now_s, still = time.monotonic(), {}
        for process, thread, times in self._waits():
            since_s, times_then = self._still.get((process, thread), (now_s, times))
            moved = times - times_then > _MOST_WAITS_PER_S * (now_s - since_s + 1)
            still[process, thread] = (now_s, times) if moved else (since_s, times_then)
        self._still = still
        return any(now_s - since_s > _HANGS_AFTER_S for since_s, _ in still.values())

    def _wait_for_the_last(self) -> None:
        """Give the child, and what waits in the kernel, some time to go; name who does not."""
        deadline = time.monotonic() + self._patience_s
        left = self._left()
        while left and (left_s := deadline - time.monotonic()) > 0:
            signalled = signal.sigtimedwait(_WATCHED, min(left_s, _TICK_S))
            if signalled is not None:
                self._take(signalled.si_signo)
            left = {process: thread for process, thread in self._left().items() if process in left}
        for process, thread in left.items():
            text = f"strakes: left behind until the servers answer again: process {process} "
            os.write(2, f"{text}{wait_in_words(process, thread)}; it ends by itself then\n".encode())

    def _left(self) -> dict[int, int]:
        """Return the child as long as it is there, and whoever waits in the kernel, each with the thread that does."""
        left = {self._child: self._child} if self._status is None else {}
        return left | {process: thread for process, thread, _ in sorted(self._waits(), reverse=True)}

    def _waits(self) -> list[tuple[int, int, int]]:
        """Return process, thread, and how often it has waited, of all that wait in the kernel."""
        return [
            (process, thread, times)
            for process in descendants_of(os.getpid())
            for thread, times in kernel_waits(process).items()
        ]

    def _take(self, number: int) -> None:
        """Do what a signal asks for."""
        if number == signal.SIGCHLD:
            self._reap()
        elif self._status is not None:
            return
        elif number == signal.SIGTSTP:
            os.kill(self._child, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
        elif number == signal.SIGCONT or number in _FORWARDED:
            os.kill(self._child, number)

    def _reap(self) -> None:
        """Take note of the child's end. Others are what it left; they are ours now."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._child:
                    self._status = os.waitstatus_to_exitcode(ended[1])


def _end_alike(number: int) -> int:
    """End this process by the signal that ended the child."""
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number  # of signals that do not end a process, which end none
