"""Mergeable histogram with buckets of 5 %, so that percentiles are accurate to 2.5 %."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_WIDTH = math.log(1.05)
# Bucket of values at or below zero, below that of any latency in seconds.
_NOTHING = -100_000
# Bucket of failed operations, above that of any latency in seconds.
_FAILED = 100_000
# Plausible buckets and counts of a stored histogram.
_BUCKETS, _MOST_COUNT = range(-10_000, 10_001), 10**15


@dataclass
class Histogram:
    """Bucket number -> count.

    >>> histogram = Histogram.of([1.0] * 98 + [5.0, 9.0])
    >>> round(histogram.percentile(0.5), 2), round(histogram.percentile(0.99), 1), histogram.count
    (1.0, 5.0, 100)
    """

    counts: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, values: Sequence[float]) -> Histogram:
        """Return the histogram of some values."""
        return cls(Counter(map(_bucket, values)))

    @property
    def count(self) -> int:
        """Return the number of values."""
        return self.counts.total()

    def add(self, value: float) -> None:
        """Count one value; infinity is a failed operation."""
        self.counts[_bucket(value)] += 1

    def merge(self, other: Histogram) -> None:
        """Add the counts of another histogram."""
        self.counts.update(other.counts)

    def percentile(self, share: float) -> float:
        """Return a quantile (nearest rank), or NaN without values.

        >>> Histogram.of([1.0, math.inf]).percentile(0.99)
        inf
        """
        rank = math.ceil(share * self.count)
        for bucket in sorted(self.counts):
            rank -= self.counts[bucket]
            if rank <= 0:
                return _value(bucket)
        return math.nan

    def to_json(self) -> dict[str, int]:
        """Return the counts with text keys."""
        return {str(bucket): count for bucket, count in sorted(self.counts.items())}

    @classmethod
    def from_json(cls, document: Mapping[str, int]) -> Histogram:
        """Return a histogram from ``to_json``. Raises ValueError if it is invalid."""
        counts = Counter({int(bucket): int(count) for bucket, count in document.items()})
        for bucket, count in counts.items():
            if not (bucket in _BUCKETS or bucket in (_NOTHING, _FAILED)) or not 0 < count < _MOST_COUNT:
                raise ValueError("no such values")
        return cls(counts)


def _bucket(value: float) -> int:
    return round(math.log(value) / _WIDTH) if 0 < value < math.inf else _FAILED if value > 0 else _NOTHING


def _value(bucket: int) -> float:
    if bucket == _FAILED:
        return math.inf
    return 0.0 if bucket == _NOTHING else math.exp(bucket * _WIDTH)
