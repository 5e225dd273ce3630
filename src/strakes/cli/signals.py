"""Turn Ctrl-C, SIGTERM and the loss of the terminal into KeyboardInterrupt, so that workspaces are cleaned up."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from strakes.base.errors import InterruptedByUser
from strakes.base.foreign_text import for_terminal
from strakes.base.interrupts import last_words

_AGAIN_S = 0.05  # Seconds until a signal is sent again, if Python dropped its KeyboardInterrupt.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOW_CURSOR = "\x1b[?25h"  # Escape sequence that shows the cursor, which live displays hide.
_STOPPING = (
    "strakes: stopping and cleaning up; interrupt again to stop sooner",
    "strakes: stopping now; remove leftover files with: strakes clean DIR",
)
# Lines for a live display to print, because it would overwrite the output of a signal handler. None: no display.
below: list[str] | None = None


@contextmanager
def orderly_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first signal and at the second Ctrl-C. End the process at the third Ctrl-C.

    Further SIGTERM and SIGHUP are ignored. Batch systems and lost sessions signal all processes of a job, so a single
    request may arrive several times.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    count = 0
    lost = False

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal count, lost
        if lost:
            lost = False
            raise KeyboardInterrupt
        if count and number != signal.SIGINT:
            return
        count += 1
        if count > len(_STOPPING):
            _write(f"{_SHOW_CURSOR}\n" if os.isatty(2) else "")
            _write("".join(f"  also: {for_terminal(text)}\n" for words in last_words if (text := words())))
            os._exit(InterruptedByUser.exit_status)
        if below is None:
            _write(f"{_STOPPING[count - 1]}\n")
        else:
            below[:] = _STOPPING[count - 1 : count]
        raise KeyboardInterrupt

    def send_again(found: sys.UnraisableHookArgs) -> None:
        nonlocal lost
        if isinstance(found.exc_value, KeyboardInterrupt) and before:
            lost = True
            threading.Timer(_AGAIN_S, os.kill, (os.getpid(), next(iter(before)))).start()
        else:
            hook(found)

    # A caller such as nohup ignores some signals. Keep ignoring these signals.
    before = {one: signal.signal(one, handle) for one in _SIGNALS if signal.getsignal(one) is not signal.SIG_IGN}
    # Python drops an exception of a signal handler that runs during a destructor. Then send the signal again.
    hook, sys.unraisablehook = sys.unraisablehook, send_again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(text: str) -> None:  # a signal handler must not use sys.stderr, whose lock the interrupted code may hold
    with suppress(OSError):
        os.write(2, text.encode())
