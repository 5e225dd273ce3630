"""Mergeable histogram with buckets of 5 %, so that percentiles are accurate to 2.5 %."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_WIDTH = math.log(1.05)
# Shorter times in seconds share a bucket.
_LEAST_S = 1e-7
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
        histogram = cls()
        for value in values:
            histogram.add(value)
        return histogram

    @property
    def count(self) -> int:
        """Return the number of values."""
        return self.counts.total()

    def add(self, value: float) -> None:
        """Count one value; infinity is a failed operation."""
        bucket = round(math.log(max(value, _LEAST_S)) / _WIDTH) if value < math.inf else _FAILED
        self.counts[bucket] += 1

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
                return math.exp(bucket * _WIDTH) if bucket != _FAILED else math.inf
        return math.nan

    def to_json(self) -> dict[str, int]:
        """Return the counts with text keys."""
        return {str(bucket): count for bucket, count in sorted(self.counts.items())}

    @classmethod
    def from_json(cls, document: Mapping[str, int]) -> Histogram:
        """Return a histogram from ``to_json``. Raises ValueError if it is invalid."""
        counts = Counter({int(bucket): int(count) for bucket, count in document.items()})
        for bucket, count in counts.items():
            known = bucket in _BUCKETS or bucket == _FAILED
            if not known or not 0 < count < _MOST_COUNT:
                raise ValueError("no such values")
        return cls(counts)
