"""A function of many values in several processes, which leave nothing behind however this one ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import TypeVar

_Value = TypeVar("_Value")
_Result = TypeVar("_Result")
# A process takes so many values at once.
_AT_ONCE = 5


def map_in_processes(
    function: Callable[[_Value], _Result], values: Sequence[_Value], processes: int
) -> tuple[_Result, ...]:
    """Return the results in the order of the values. Function, values and results have to be such as can be pickled."""
    if processes < 2:
        return tuple(map(function, values))
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    try:
        # Started afresh: a copy of this process would have the locks of its threads, but not the threads.
        with ProcessPoolExecutor(processes, get_context("spawn"), _begin) as pool:
            return tuple(pool.map(function, values, chunksize=_AT_ONCE))
    except (OSError, BrokenProcessPool):
        # Without shared memory, or with too little memory or processes for all, this one does it.
        return tuple(map(function, values))


def _begin() -> None:
    """Leave interrupts to the parent, which ends this process with itself, and end with it where it is killed.

    One thread is enough for each: on large machines, numpy would begin as many as there are processors.
    """
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
