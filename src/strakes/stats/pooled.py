"""The pooled rate of many runs: total work divided by total time."""

from __future__ import annotations

from collections.abc import Sequence


def pooled_rate(work: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the work per second of all runs together; for equal work, the harmonic mean of the rates.

    Raises ValueError if the two differ in length or are empty, or if the total time is zero.

    >>> pooled_rate([100.0, 100.0], [1.0, 4.0])
    40.0
    """
    if len(work) != len(seconds) or not work:
        raise ValueError(f"a pooled rate needs one time for each piece of work, not {len(work)} and {len(seconds)}")
    total = sum(seconds)
    if total <= 0:
        raise ValueError("a pooled rate needs time that passed")
    return sum(work) / total
