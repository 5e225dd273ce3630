"""Compute the latencies of a phase from the histograms of the engine (format: ``docs/reference/engine.md``)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from strakes.model.sample import Sample

SHARES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
# Histograms to omit, because waiting times between calls are no latencies of the file system.
_WAITS = ("gather", "lag")


@dataclass(frozen=True)
class Latencies:
    """Latency percentiles (p50, p90, p99, p999) of ``calls`` calls, in seconds."""

    calls: int
    percentiles: Mapping[str, float]


def latencies_by_call(samples: Iterable[Sample]) -> dict[str, Latencies]:
    """Return kind of call -> latencies of these calls in all samples of a phase. Empty if no sample has histograms.

    >>> buckets = {"unit": "ns", "sub_bits": 6, "buckets": [[100, 99], [250, 1]]}
    >>> found = latencies_by_call([Sample("stat", histograms={"file-stat": buckets})])
    >>> found["file-stat"].calls, round(found["file-stat"].percentiles["p50"], 9)
    (100, 1e-07)
    """
    return {call: _latencies(seconds) for call, seconds in _seconds_by_call(samples).items()}


def latencies_of_all(samples: Iterable[Sample]) -> Latencies | None:
    """Return the latencies of all calls in all samples of a phase, or None if no sample has histograms."""
    seconds = sum(_seconds_by_call(samples).values(), Counter[float]())
    return _latencies(seconds) if seconds else None


def _seconds_by_call(samples: Iterable[Sample]) -> dict[str, Counter[float]]:
    counts: defaultdict[str, Counter[float]] = defaultdict(Counter)
    for sample in samples:
        for call, histogram in sample.histograms.items():
            for bucket, count in histogram["buckets"] if call not in _WAITS else ():
                counts[call][_seconds_of(bucket, histogram["sub_bits"])] += count
    return counts


def _seconds_of(bucket: int, sub_bits: int) -> float:
    """Return the midpoint of a histogram bucket in seconds. Bucket bounds are in nanoseconds."""
    if not 0 <= sub_bits < 64:
        raise ValueError(f"a histogram of 64-bit numbers cannot have {sub_bits} sub_bits")
    if bucket < 1 << sub_bits:
        return bucket * 1e-9
    lowest = (bucket & ((1 << sub_bits) - 1)) + (1 << sub_bits)
    return (math.ldexp(lowest + 0.5, (bucket >> sub_bits) - 1) - 0.5) * 1e-9


def _latencies(seconds: Counter[float]) -> Latencies:
    ordered = sorted(seconds)
    ends = list(accumulate(seconds[value] for value in ordered))
    places = {name: bisect_left(ends, math.ceil(share * ends[-1])) for name, share in SHARES.items()}
    return Latencies(ends[-1], {name: ordered[place] for name, place in places.items()})
