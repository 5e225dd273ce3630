"""Mergeable histogram with buckets that are 5 % wide, so percentiles are accurate to 2.5 %."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_WIDTH = math.log(1.05)
# Smallest value in seconds. Smaller values are counted as this value.
_LEAST_S = 1e-7
# Bucket of failed operations. It lies outside _BUCKETS: no latency is as long as 1.05^100,000 seconds.
_FAILED = 100_000
# Bucket numbers and maximum counts that are accepted in stored histograms.
_BUCKETS, _MOST_COUNT = range(-10_000, 10_001), 10**15


@dataclass
class Histogram:
    """Counts of values by bucket number.

    >>> histogram = Histogram.of([1.0] * 98 + [5.0, 9.0])
    >>> round(histogram.percentile(0.5), 2), round(histogram.percentile(0.99), 1), histogram.count
    (1.0, 5.0, 100)
    """

    counts: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, values: Sequence[float]) -> Histogram:
        """Return the histogram of these values."""
        histogram = cls()
        for value in values:
            histogram.add(value)
        return histogram

    @property
    def count(self) -> int:
        """Return the number of values."""
        return self.counts.total()

    def add(self, value: float) -> None:
        """Count one value in seconds. Infinity counts as a failed operation."""
        bucket = round(math.log(max(value, _LEAST_S)) / _WIDTH) if value < math.inf else _FAILED
        self.counts[bucket] += 1

    def merge(self, other: Histogram) -> None:
        """Add the counts of another histogram."""
        self.counts.update(other.counts)

    def percentile(self, share: float) -> float:
        """Return the quantile for ``share`` (0 to 1) by the nearest-rank method, or NaN without values.

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
        """Return the counts for JSON: bucket number as text -> count."""
        return {str(bucket): count for bucket, count in sorted(self.counts.items())}

    @classmethod
    def from_json(cls, document: Mapping[str, int]) -> Histogram:
        """Return the histogram that ``to_json`` has written. Raises ValueError if the document is invalid."""
        counts = Counter({int(bucket): int(count) for bucket, count in document.items()})
        for bucket, count in counts.items():
            known = bucket in _BUCKETS or bucket == _FAILED
            if not known or not 0 < count < _MOST_COUNT:
                raise ValueError("no such values")
        return cls(counts)
