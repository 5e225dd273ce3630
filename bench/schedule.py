"""Punctuality of a probe: at 10,000 operations per second, 99.9 % must begin within 1 ms of their due time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.engine import run_plan
from bench.places import Place
from strakes.model.phases import ProbePhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine

RATE_PER_S = 10_000
ALLOWED_S = 1e-3
_SHARE = 0.999


@dataclass(frozen=True)
class Lag:
    """Delay of operations in one run, from due time to begin. ``late_s``: 99.9th percentile in seconds."""

    what: str
    median_s: float
    late_s: float

    @property
    def verdict(self) -> Literal["met", "missed"]:
        return "met" if self.late_s <= ALLOWED_S else "missed"


def lags(place: Place, *, quick: bool) -> list[Lag]:
    """Return the delays of one rank that looks up files on a file system in memory."""
    phase = ProbePhase("lookups", "file-stat", rate_per_s=RATE_PER_S, seconds=2 if quick else 10)
    with LocalEngine() as engine:
        (sample,) = run_plan(engine, Plan(1, (phase,)), place.directory)
    lag = sample.histograms["lag"]
    return [Lag(f"file-stat, {place.name}, 1 rank", quantile_s(lag, 0.5), quantile_s(lag, _SHARE))]


def quantile_s(histogram: Mapping[str, object], share: float) -> float:
    """Return the upper end of the bucket that contains the quantile, in seconds.

    >>> quantile_s({"sub_bits": 6, "buckets": [[3, 98], [64, 1], [1234, 1]]}, 0.98)
    3e-09
    """
    buckets, sub_bits = histogram["buckets"], histogram["sub_bits"]
    assert isinstance(buckets, Sequence) and isinstance(sub_bits, int)
    left = share * sum(count for _, count in buckets)
    for bucket, count in buckets:
        left -= count
        if left <= 0:
            return _highest_ns(bucket, sub_bits) / 1e9
    return 0.0


def _highest_ns(bucket: int, sub_bits: int) -> int:
    """Return the largest value of a bucket in nanoseconds (docs/reference/engine.md)."""
    size = 1 << sub_bits
    if bucket < size:
        return bucket
    shift = bucket // size - 1
    return int(((bucket % size + size + 1) << shift) - 1)
