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

from strakes.processes import descendants_of

# Told of by the child when its work is done.
_DONE = signal.SIGUSR1
_FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_WATCHED = _FORWARDED | {_DONE, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT}
# What a process in order takes to end after its work is far less.
PATIENCE_S = 5.0
_PR_SET_PDEATHSIG = 1


def run_apart(work: Callable[[], int], patience_s: float = PATIENCE_S) -> int:
    """Return the status that ``work`` returns in a child, which ends when it is done or this process ends.

    Signals are passed on; what ends the child by a signal ends this process alike. A child that does not end within
    ``patience_s`` after its work is named on standard error and left.
    """
    parent, before = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    status_of_child, status_for_parent = os.pipe()
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

    def wait(self) -> int:
        status = None
        while status is None:
            number = signal.sigwaitinfo(_WATCHED).si_signo
            if number == _DONE:
                status = os.read(self._status_of_child, 1)[0]
            elif (ended := self._take(number)) is not None:
                return ended
        deadline = time.monotonic() + self._patience_s
        while (left_s := deadline - time.monotonic()) > 0:
            signalled = signal.sigtimedwait(_WATCHED, left_s)
            if signalled is not None and (ended := self._take(signalled.si_signo)) is not None:
                return ended
        self._tell_who_is_left()
        return status

    def _take(self, number: int) -> int | None:
        """Do what a signal asks for; returns the child's status once it has ended."""
        if number == signal.SIGCHLD:
            return self._ended()
        if number == signal.SIGTSTP:
            os.kill(self._child, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
        elif number == signal.SIGCONT or number in _FORWARDED:
            os.kill(self._child, number)
        return None

    def _ended(self) -> int | None:
        process, how = os.waitpid(self._child, os.WNOHANG)
        if not process:
            return None
        if not os.WIFSIGNALED(how):
            return os.waitstatus_to_exitcode(how)
        number = os.WTERMSIG(how)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
        return 128 + number  # of signals that do not end a process, which end none

    def _tell_who_is_left(self) -> None:
        numbers = ", ".join(map(str, (self._child, *descendants_of(self._child))))
        text = f"strakes: left behind until the servers answer again: process {numbers}, waiting for the file system\n"
        os.write(2, text.encode())
