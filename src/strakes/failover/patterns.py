"""Patterns of a configuration, which somebody else wrote: each is tried for a moment only."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from strakes.errors import BadInputError

_MOMENT_S = 1.0
_REMEDY = "Write it without repetitions inside repetitions, or name the nodes or resources."


def matches(pattern: str, name: str) -> bool:
    """Tell whether the pattern is found in the name.

    Raises BadInputError for a text that is no pattern, or takes too long.

    >>> matches("oss[0-9]+", "oss12"), matches("^mds", "oss12")
    (True, False)
    """
    try:
        with _moment(pattern):
            return re.search(pattern, name) is not None
    except (re.error, RecursionError, OverflowError) as error:
        raise BadInputError("a pattern of the CIB is not valid", where=pattern[:80], why=str(error)) from error


@contextmanager
def _moment(pattern: str) -> Iterator[None]:
    """End what the body does by a signal, which the search for a pattern looks for; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        why = f"it was not decided within {_MOMENT_S:g} s"
        raise BadInputError("a pattern of the CIB takes too long", where=pattern[:80], why=why, remedy=_REMEDY)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _MOMENT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
