"""Delay interrupts until a new file or process has been recorded for removal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# runs/watchdog.py sends SIGALRM.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Delay signal handlers until the end of a ``with`` block. In threads, which run no handlers, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[int, FrameType | None]] = []
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    for wanted in _SIGNALS:
        if callable(handlers[wanted]):
            signal.signal(wanted, lambda *what: heard.append(what))
    try:
        yield
    finally:
        for known, handler in handlers.items():
            if callable(handler):
                signal.signal(known, handler)
        for number, frame in heard:
            heard_by = handlers[signal.Signals(number)]
            assert callable(heard_by)
            heard_by(number, frame)
