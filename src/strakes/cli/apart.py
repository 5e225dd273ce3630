"""A command in a process that this one can leave behind.

Nobody can end a process that waits in the kernel for a dead server, nor one in which a thread does so or a file is
still open there; the shell that waits for it would wait as long. So commands that work on a file system do it in a
child. When the child has said its last, this process ends with its status, whether the child can end or not; and so
it does when the child itself waits for a server that does not answer. Who reads what a child writes to a pipe gets it
by way of this process, and so its end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from strakes.errors import BROKEN_PIPE_STATUS, InterruptedByUser, MeasurementError
from strakes.launch.watchdog import set_last_resort
from strakes.processes import descendants_of, kernel_waits, wait_in_words

# Told of by the child when its work is done.
_DONE = signal.SIGUSR1
_FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_WATCHED = _FORWARDED | {_DONE, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT}
# What a process in order takes to end after its work is far less, unless the machine is busy.
PATIENCE_S = 5.0
_BUSY_PATIENCE_S = 30.0
# Who is interrupted while a file system hangs ends within half a minute: as if interrupted again, then killed.
_PRESS_AFTER_S = 15.0
_GIVE_UP_AFTER_S = 24.0
# Waiting for a dead server, Lustre looks about once a second whether it is back.
_MOST_WAITS_PER_S = 2
_HANGS_AFTER_S = 10.0
# The child has others make calls that may not return; where one of its own takes so long, its server is dead.
_DEAD_AFTER_S = 30.0
_LOOK_FOR_DEAD_EVERY_S = 2.0
_LAST_S = 1.0
_PIPE_BYTES = 1 << 16
_LOOK_EVERY_S = 0.5
_TICK_S = 0.1
_PR_SET_PDEATHSIG = 1  # from the manual page prctl(2)
_PR_SET_CHILD_SUBREAPER = 36  # from the manual page prctl(2)


def run_apart(
    work: Callable[[], int], patience_s: float = PATIENCE_S, name_trouble: Callable[[], str] | None = None
) -> int:
    """Return the status that ``work`` returns in a child, which ends when it is done or this process ends.

    Signals are passed on; what ends the child by a signal ends this process alike. A child that does not end within
    ``patience_s`` after its work is named on standard error and left, and so are processes that it started and that
    wait in the kernel. Interrupted while one of them hangs, this process ends within half a minute. A child that waits
    for a dead server itself is left too, with what ``name_trouble`` says of the servers; the status is then 1.
    """
    parent, before = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    status_of_child, status_for_parent = os.pipe()
    # What the child leaves becomes ours, and can be named.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    relays = _relays()
    child = os.fork()
    if child != 0:
        os.close(status_for_parent)
        for relay in relays:
            relay.start()
        status = _Watch(child, status_of_child, patience_s, name_trouble).wait()
        lost = [relay.finish() for relay in relays]
        # What the child wrote last it never learns about.
        if status == 0 and any(lost):
            return BROKEN_PIPE_STATUS
        return _end_alike(-status) if status < 0 else status
    for relay in relays:
        relay.enter()
    os.close(status_of_child)
    # A process group of its own: the terminal's signals come once, by way of the parent. It may write all the same.
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def tell(status: int) -> None:
        os.write(status_for_parent, bytes([status]))
        os.kill(parent, _DONE)

    set_last_resort(tell)
    status = work()
    # Whoever reads what we print waits for its end.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        with suppress(OSError, ValueError, AttributeError):  # closed, or never open
            stream.flush()
        os.dup2(nowhere, number)
    tell(status)
    return status


class _Watch:
    """The parent's side."""

    def __init__(
        self, child: int, status_of_child: int, patience_s: float, name_trouble: Callable[[], str] | None
    ) -> None:
        self._child = child
        self._name_trouble = name_trouble
        self._status_of_child = status_of_child
        self._patience_s = patience_s
        self._status: int | None = None
        # Of each thread that waits in the kernel: since when it has not moved, and how often it had waited then.
        self._still: dict[tuple[int, int], tuple[float, int]] = {}

    def wait(self) -> int:
        """Until the child has ended, or does not end; processes that it leaves are named.

        Returns its status, below 0 the signal that ended it.
        """
        status = self._wait_for_the_work()
        self._wait_for_the_last()
        return status

    def _wait_for_the_work(self) -> int:
        """Return the status that the child told, or ended with, or what stands for it where it hangs."""
        interrupted_s, pressed = 0.0, False
        while not self._has_ended():
            signalled = signal.sigtimedwait(_WATCHED, _LOOK_EVERY_S if interrupted_s else _LOOK_FOR_DEAD_EVERY_S)
            if signalled is not None:
                if signalled.si_signo == _DONE:
                    return os.read(self._status_of_child, 1)[0]
                if signalled.si_signo in _FORWARDED and not interrupted_s:
                    interrupted_s = time.monotonic()
                self._take(signalled.si_signo)
            if not interrupted_s and self._still_s((self._child,)) > _DEAD_AFTER_S:
                return self._leave_dead()
            hangs = bool(interrupted_s) and self._still_s(descendants_of(os.getpid())) > _HANGS_AFTER_S
            if self._has_ended() or not hangs:
                continue
            since_s = time.monotonic() - interrupted_s
            if since_s > _PRESS_AFTER_S and not pressed:
                pressed = True
                os.kill(self._child, signal.SIGINT)
            if since_s > _GIVE_UP_AFTER_S:
                os.write(2, b"strakes: interrupted while the file system does not answer\n")
                os.write(2, b"  next: Check its servers. When they serve again: strakes clean DIR\n")
                self._end_child()
                return InterruptedByUser.exit_status
        assert self._status is not None
        return self._status

    def _has_ended(self) -> bool:
        return self._status is not None

    def _end_child(self) -> None:
        os.kill(self._child, signal.SIGKILL)
        self._patience_s = min(self._patience_s, _LAST_S)

    def _leave_dead(self) -> int:
        """Say what the child waits for, and leave it."""
        error = MeasurementError(
            "the file system does not answer",
            where=f"a call of strakes itself took more than {_DEAD_AFTER_S:g} s",
            why=self._name_trouble() if self._name_trouble else "",
            remedy="Check its servers. When they serve again: strakes clean DIR",
        )
        lines = [("error", error.what), ("where", error.where), ("why", error.why), ("next", error.remedy)]
        words = [
            f"strakes: {label}: {text}" if label == "error" else f"  {label}: {text}" for label, text in lines if text
        ]
        os.write(2, "".join(f"{word}\n" for word in words).encode())
        self._end_child()
        return error.exit_status

    def _still_s(self, processes: Iterable[int]) -> float:
        """Return for how long one of their threads has not moved: who is only slow has waited many times since."""
        now_s, still = time.monotonic(), {}
        for process, thread, times in _waits(processes):
            since_s, times_then = self._still.get((process, thread), (now_s, times))
            moved = times - times_then > _MOST_WAITS_PER_S * (now_s - since_s + 1)
            still[process, thread] = (now_s, times) if moved else (since_s, times_then)
        self._still = still
        return max((now_s - since_s for since_s, _ in still.values()), default=0.0)

    def _wait_for_the_last(self) -> None:
        """Give the child, and what waits in the kernel, some time to go; name who does not."""
        begun_s = time.monotonic()
        left = self._left()
        while left:
            # Who does not wait in the kernel only needs a processor.
            waits = any(kernel_waits(process) for process in left)
            left_s = begun_s + (self._patience_s if waits else _BUSY_PATIENCE_S) - time.monotonic()
            if left_s <= 0:
                break
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
        waits = sorted(_waits(descendants_of(os.getpid())), reverse=True)
        return left | {process: thread for process, thread, _ in waits}

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


def _waits(processes: Iterable[int]) -> list[tuple[int, int, int]]:
    """Return process, thread, and how often it has waited, of all that wait in the kernel."""
    return [(process, thread, times) for process in processes for thread, times in kernel_waits(process).items()]


def _relays() -> list[_Relay]:
    """Return what stands between the child and each pipe that it is to write to."""
    outputs: dict[tuple[int, int], list[int]] = {}
    for number in (1, 2):
        with suppress(OSError):  # closed
            about = os.fstat(number)
            if stat.S_ISFIFO(about.st_mode) or stat.S_ISSOCK(about.st_mode):
                outputs.setdefault((about.st_dev, about.st_ino), []).append(number)
    return [_Relay(numbers) for numbers in outputs.values()]


class _Relay:
    """A pipe from the child to us, and a thread that hands on what comes.

    A child that hangs keeps it open, and not what others wait for the end of.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._ours, self._of_child = os.pipe()
        self._unread = False
        self._thread = threading.Thread(target=self._hand_on, daemon=True)

    def enter(self) -> None:
        """In the child: write to it."""
        for number in self._numbers:
            os.dup2(self._of_child, number)
        os.close(self._of_child)
        os.close(self._ours)

    def start(self) -> None:
        """In the parent."""
        os.close(self._of_child)
        self._thread.start()

    def finish(self) -> bool:
        """Wait for what is on its way; return whether nobody reads standard output any more."""
        self._thread.join(_LAST_S)
        return self._unread and 1 in self._numbers

    def _hand_on(self) -> None:
        try:
            while data := os.read(self._ours, _PIPE_BYTES):
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self._numbers[0], rest) :]
        except BrokenPipeError:  # the child learns of it when it writes again
            self._unread = True
        except OSError:
            pass
        os.close(self._ours)


def _end_alike(number: int) -> int:
    """End this process by the signal that ended the child."""
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number  # of signals that do not end a process, which end none
