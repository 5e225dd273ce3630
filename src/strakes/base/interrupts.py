"""Defer signals while a new file or process is recorded for removal, and interrupt code that exceeds its limits."""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from strakes.base.errors import StrakesError

# The watchdog thread (runs/watchdog.py) interrupts the main thread by SIGALRM.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
# Seconds to defer signals. A server can keep a system call from ending, because Python repeats a call after EINTR.
_PATIENCE_S = 10.0
_MOST_BYTES = 768 << 20  # Maximum memory for a file. The process takes less than 1 GB.
# Functions that return a text to print if a signal ends the process at once. They run in a signal handler.
last_words: list[Callable[[], str]] = []


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Run the handlers of signals at the end of a ``with`` block, or if it does not end within 10 s of the signal.

    No effect outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[int, FrameType | None]] = []
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append((number, frame))
        if len(heard) == 1:
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)
        elif number == signal.SIGALRM:
            run_handlers()

    def run_handlers() -> None:
        while heard:
            number, frame = heard.pop(0)
            if callable(heard_by := handlers[signal.Signals(number)]):
                heard_by(number, frame)

    deferred = {number: by for number, by in handlers.items() if callable(by) or number == signal.SIGALRM}
    for wanted in deferred:
        signal.signal(wanted, hear)
    try:
        yield
    finally:
        if heard:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for known, handler in deferred.items():
            signal.signal(known, handler)
        run_handlers()


@contextmanager
def ended_after(seconds: float, error: StrakesError, timer: int, number: signal.Signals) -> Iterator[None]:
    """Raise ``error`` if a ``with`` block takes longer than ``seconds``. Nested blocks pause the outer timer."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise error

    before = signal.signal(number, stop)
    outer = signal.setitimer(timer, seconds, 1.0)  # The interrupted code may catch the error, so the timer repeats.
    try:
        yield
    finally:
        signal.setitimer(timer, *outer)
        signal.signal(number, before)


@contextmanager
def limited(seconds: float, error: Callable[[str], StrakesError]) -> Iterator[None]:
    """Limit the processor time and the memory of a ``with`` block. No effect outside the main thread.

    ``error``: returns the error to raise at a limit from its reason.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    data, (soft, hard) = Path("/proc/self/statm").read_text().split()[5], resource.getrlimit(resource.RLIMIT_DATA)
    most = int(data) * resource.getpagesize() + _MOST_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most if soft == resource.RLIM_INFINITY else min(soft, most), hard))
    late = error(f"it takes more than {seconds:g} s of processor time")
    try:
        with ended_after(seconds, late, signal.ITIMER_VIRTUAL, signal.SIGVTALRM):
            yield
    except MemoryError:
        raise error(f"it takes more than {_MOST_BYTES >> 20} MiB of memory") from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
