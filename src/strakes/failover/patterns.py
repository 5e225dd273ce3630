"""Search with regular expressions from a configuration; a time limit stops expressions that would take too long."""

from __future__ import annotations

import re
import signal

from strakes.errors import BadInputError
from strakes.failover.limits import ended_after

_MOMENT_S = 1.0
_REMEDY = "Write it without repetitions inside repetitions, or name the nodes or resources."


def matches(pattern: str, name: str) -> bool:
    """Return whether the pattern is found in the name.

    Raises BadInputError for an invalid pattern and for one that takes too long.

    >>> matches("oss[0-9]+", "oss12"), matches("^mds", "oss12")
    (True, False)
    """
    why = f"it was not decided within {_MOMENT_S:g} s"
    slow = BadInputError("a pattern of the CIB takes too long", where=pattern[:80], why=why, remedy=_REMEDY)
    try:
        with ended_after(_MOMENT_S, slow, signal.ITIMER_REAL, signal.SIGALRM):
            return re.search(pattern, name) is not None
    except (re.error, RecursionError, OverflowError) as error:
        raise BadInputError("a pattern of the CIB is not valid", where=pattern[:80], why=str(error)) from error
