"""Latency statistics of the probe's operations, by kind. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from strakes.runs.messages import LoggedOperation


@dataclass(frozen=True)
class Latencies:
    """Latencies of one kind of operation, in seconds since it was due; ``slow`` counts those above the limit."""

    operations: int
    median_s: float
    p99_s: float
    longest_s: float
    slow: int


def latencies(operations: Iterable[LoggedOperation], limit_s: float) -> dict[str, Latencies]:
    """Return latencies by kind. A failed operation counts as slow; its duration enters the percentiles as measured."""
    by_kind: dict[str, list[tuple[float, bool]]] = {}
    for operation in operations:
        by_kind.setdefault(operation.phase, []).append(
            (operation.ended_s - operation.due_s, is_slow(operation, limit_s))
        )
    return {
        kind: _of([took for took, _ in all_], sum(slow for _, slow in all_)) for kind, all_ in sorted(by_kind.items())
    }


def is_slow(operation: LoggedOperation, limit_s: float) -> bool:
    """Return whether an operation failed or took longer than the limit."""
    return not operation.acknowledged or operation.ended_s - operation.due_s > limit_s


def worst(of: Mapping[str, Latencies]) -> dict[str, float]:
    """Combine all kinds: sums of the counts, and the largest of each percentile.

    >>> worst({"read": Latencies(10, 0.001, 0.002, 0.003, 0), "write": Latencies(10, 0.002, 0.009, 0.01, 1)})
    {'operations': 20, 'slow': 1, 'median_s': 0.002, 'p99_s': 0.009, 'longest_s': 0.01}
    """
    if not of:
        return {}
    every = of.values()
    return {
        "operations": sum(latency.operations for latency in every),
        "slow": sum(latency.slow for latency in every),
        "median_s": max(latency.median_s for latency in every),
        "p99_s": max(latency.p99_s for latency in every),
        "longest_s": max(latency.longest_s for latency in every),
    }


def record(of: Mapping[str, Latencies]) -> dict[str, Any]:
    """Return the JSON record for the store."""
    return {**worst(of), "kinds": {kind: asdict(latency) for kind, latency in of.items()}}


def _of(took: list[float], slow: int) -> Latencies:
    took = sorted(took)
    # Nearest-rank percentile: the maximum for fewer than 100 values.
    return Latencies(len(took), took[(len(took) - 1) // 2], took[math.ceil(0.99 * len(took)) - 1], took[-1], slow)
