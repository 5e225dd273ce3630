"""Run a command in a child process, which the parent can abandon if it hangs.

A process that waits in the kernel for a dead server cannot be killed, and its shell would wait for it. Therefore
commands that access a file system run in a child process.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from strakes.base.errors import BROKEN_PIPE_STATUS, InterruptedByUser, MeasurementError, StrakesError
from strakes.base.interrupts import ended_after
from strakes.base.processes import commands_of, descendants_of, kernel_waits, process_start, wait_in_words
from strakes.runs.watchdog import DONE, ENDING_S, SHARED, tell_parent, write_error

_Explain = Callable[[], tuple[str, str, str]]
_FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_WATCHED = _FORWARDED | {DONE, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT}
# Seconds that a child may take to exit after its work: 5 s if the child waits in the kernel, 10 s if not.
PATIENCE_S = 5.0
_BUSY_PATIENCE_S = 10.0
_GIVE_UP_AFTER_S = 20.0  # Seconds from an interrupt until the child is abandoned. The command must end within 30 s.

# A thread with at most this many context switches per second counts as hanging. Lustre's retries cause one a second.
_MOST_WAITS_PER_S = 2
_HANGS_AFTER_S = 10.0
_DEAD_AFTER_S = 30.0
_EXPLAIN_S = 10.0
# The child's watchdog thread reports every second. After this number of seconds without a report, it counts as hanging.
_OLD_S = 10.0
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # From linux/prctl.h.
_LOOK_EVERY_S = 2.0
_LAST_S = 1.0
_PIPE_BYTES = 1 << 16
_TICK_S = 0.1
_SIGNAL_BYTES = _SET_BYTES = 128  # Bytes of struct signalfd_siginfo (signalfd(2)), and of the C library's sigset_t.


def run_apart(
    work: Callable[[], int],
    patience_s: float = PATIENCE_S,
    explain: _Explain = lambda: ("", "", ""),
    *,
    foreground: bool = False,
) -> int:
    """Run ``work`` in a child process and return its exit status, or -N if signal N has ended it.

    The parent passes signals on to the child, and returns 130 if one of these ends it. After its work, the child has
    ``patience_s`` seconds to exit. Then the parent abandons the child and its descendants that wait in the kernel, and
    lists them on standard error. If the child waits for a dead server during its work, it is abandoned with an error
    and status 1. ``explain``: function that returns directory, reason and remedy for this error. ``foreground``: let
    the child use the terminal, from which it then gets Ctrl-C.
    """
    ctypes.memset(ctypes.byref(SHARED), 0, ctypes.sizeof(SHARED))
    SHARED.parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)  # adopt orphans of the child, so that hanging ones are listed
    relays = _relays()
    child = os.fork()
    if child != 0:
        for relay in relays:
            relay.start()
        # The kernel queues a blocked signal even if it is ignored, as SIGHUP by nohup(1).
        ignored = {number for number in _FORWARDED if signal.getsignal(number) is signal.SIG_IGN}
        forwarded = _FORWARDED - ignored - ({signal.SIGINT} if foreground else set())
        watch = _Watch(child, patience_s, explain, forwarded)
        status = watch.wait_for_the_work()
        watch.wait_for_the_last()
        status = watch.wait_for_the_reader(relays) or status
        if status == 0 and any(relay.unread for relay in relays):
            return BROKEN_PIPE_STATUS
        return InterruptedByUser.exit_status if -status in forwarded else status
    for relay in relays:
        relay.enter()
    nowhere = os.open(os.devnull, os.O_RDWR)
    # The child has its own process group, so the terminal sends signals only to the parent, which forwards them.
    # SIGTTOU is ignored, because it would stop a child that writes to the terminal.
    os.setpgid(0, os.getpgid(0) if foreground else 0)
    signal.signal(signal.SIGTTOU, signal.SIG_DFL if foreground else signal.SIG_IGN)
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != SHARED.parent:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)

    status = work()
    # Close the outputs now, because the reader of a pipe waits until all writers have closed it.
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
        os.dup2(nowhere, number)
    tell_parent(status)
    return status


@dataclass
class _Watch:
    _child: int
    _patience_s: float
    _explain: _Explain
    _forwarded: Collection[int]
    _status: int | None = None
    _is_childless: bool = False
    _interrupted_s: float = 0.0
    _still: dict[tuple[int, int], tuple[float, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started = process_start(self._child) or 0
        library, watched = ctypes.CDLL(None), ctypes.create_string_buffer(_SET_BYTES)
        for number in _WATCHED:
            library.sigaddset(watched, int(number))
        self._signals = int(library.signalfd(-1, watched, os.O_CLOEXEC))

    def wait_for_the_work(self) -> int:
        while self._status is None and not SHARED.is_done:
            if number := self._handle_signal(_LOOK_EVERY_S):
                if number in self._forwarded:
                    self._interrupted_s = self._interrupted_s or time.monotonic()
            elif self._interrupted_s:
                if self._still_s() > _HANGS_AFTER_S and time.monotonic() - self._interrupted_s > _GIVE_UP_AFTER_S:
                    return self._give_up(InterruptedByUser("interrupted while the file system does not answer"))
            elif time.monotonic() - SHARED.lost_s < _OLD_S:
                self._still.clear()
            elif not SHARED.is_unlimited and self._still_s(self._child) > _DEAD_AFTER_S:
                return self._give_up(MeasurementError("the file system does not answer"))
        return SHARED.status if SHARED.is_done else self._status or 0

    def _give_up(self, error: StrakesError) -> int:
        # With a dead directory in PATH, no program starts.
        with suppress(StrakesError), ended_after(_EXPLAIN_S, error, signal.ITIMER_REAL, signal.SIGALRM):
            error.where, error.why, error.remedy = self._explain()
        if isinstance(error, MeasurementError):
            waits = [wait_in_words(process, thread) for process, thread, _ in _waits(self._child)]
            call = f"process {self._child} {waits[0]}, has been" if waits else "strakes has been"
            error.why = f"{call} in one call for more than {_DEAD_AFTER_S:g} s. {error.why}".strip()
        write_error(error.lines())
        SHARED.must_end, ends_s = 1, time.monotonic() + ENDING_S
        while SHARED.acts and self._status is None and time.monotonic() < ends_s:
            self._handle_signal(_TICK_S)
        if self._status is None:
            os.kill(self._child, signal.SIGKILL)
        self._patience_s = min(self._patience_s, _LAST_S)
        return error.exit_status

    def _still_s(self, *processes: int) -> float:
        now_s, still = time.monotonic(), {}
        for process, thread, times in _waits(*processes):
            since_s, times_then = self._still.get((process, thread), (now_s, times))
            moved = times - times_then > _MOST_WAITS_PER_S * (now_s - since_s + 1)
            still[process, thread] = (now_s, times) if moved else (since_s, times_then)
        self._still = still
        return max((now_s - since_s for since_s, _ in still.values()), default=0.0)

    def wait_for_the_last(self) -> None:
        begun_s = time.monotonic()
        with suppress(OSError):
            for number in commands_of(self._child, self._started):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
        if self._status is None:
            self._handle_signal(_TICK_S)
        left = self._left()
        while left and time.monotonic() - begun_s < (self._patience_s if _waits(*left) else _BUSY_PATIENCE_S):
            self._handle_signal(_TICK_S)
            left = {process: thread for process, thread in self._left().items() if process in left}
        waiting = {process for process, *_ in _waits(*left)}
        for process, thread in left.items():
            state = "has not ended yet"
            if process in waiting:
                state = f"{wait_in_words(process, thread)}; it is left behind. It ends when the servers answer again"
            write_error([f"strakes: process {process} {state}"])

    def wait_for_the_reader(self, relays: Sequence[_Relay]) -> int:
        """Wait until all output of the child is written. Return 0, or the exit status after an interrupt.

        After an interrupt, wait only for a second, because the reader may be stopped.
        """
        quiet_s = 0.0
        while quiet_s < _LAST_S and any(relay.is_alive() for relay in relays):
            is_busy = not self._interrupted_s and any(relay.is_busy for relay in relays)
            quiet_s = 0.0 if is_busy else quiet_s + _TICK_S
            if (number := self._handle_signal(_TICK_S)) in self._forwarded:
                return 128 + number
        return 0

    def _left(self) -> dict[int, int]:
        if self._is_childless:
            return {}
        left = {self._child: self._child} if self._status is None else {}
        return left | {process: thread for process, thread, _ in sorted(_waits(), reverse=True)}

    def _handle_signal(self, within_s: float) -> int:  # signalfd, because sigtimedwait() returns garbage after SIGCONT
        poll = select.poll()
        poll.register(self._signals, select.POLLIN)
        if not poll.poll(within_s * 1000):
            return 0
        number = int.from_bytes(os.read(self._signals, _SIGNAL_BYTES)[:4], sys.byteorder)
        if number == signal.SIGCHLD:
            try:
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    if ended[0] == self._child:
                        self._status = os.waitstatus_to_exitcode(ended[1])
            except ChildProcessError:
                self._is_childless = True
        elif number == signal.SIGTSTP:
            if self._status is None:
                os.kill(self._child, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self._status is None and number in (*self._forwarded, signal.SIGCONT):
            os.kill(self._child, number)
            os.kill(self._child, signal.SIGCONT)  # A stopped process acts on no other signal.
        return number


def _waits(*processes: int) -> list[tuple[int, int, int]]:
    # At the limit of open files, /proc cannot be read. Then report no waiting threads.
    with suppress(OSError):
        family = processes or descendants_of(os.getpid())
        return [(process, thread, times) for process in family for thread, times in kernel_waits(process).items()]
    return []


def _relays() -> list[_Relay]:
    outputs: dict[tuple[int, int], list[int]] = {}
    for number in (1, 2):
        with suppress(OSError):
            about = os.fstat(number)
            if stat.S_ISFIFO(about.st_mode) or stat.S_ISSOCK(about.st_mode):
                outputs.setdefault((about.st_dev, about.st_ino), []).append(number)
    return [_Relay(numbers) for numbers in outputs.values()]


class _Relay(threading.Thread):
    # This thread copies the child's output, so that a hanging child does not hold the command's own output open.
    unread = is_busy = False

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self._numbers = numbers
        self._ours, self._of_child = os.pipe()

    def enter(self) -> None:
        for number in self._numbers:
            os.dup2(self._of_child, number)
        os.close(self._of_child)
        os.close(self._ours)

    def run(self) -> None:
        os.close(self._of_child)
        try:
            while data := os.read(self._ours, _PIPE_BYTES):
                self.is_busy, rest = True, memoryview(data)
                while rest:
                    rest = rest[os.write(self._numbers[0], rest) :]
                self.is_busy = False
        except OSError as error:
            self.unread = isinstance(error, BrokenPipeError) and 1 in self._numbers
        os.close(self._ours)
