"""Mergeable histogram with buckets that are 5 % wide, so percentiles are accurate to 2.5 %."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

_WIDTH = math.log(1.05)
_LEAST_S = 1e-7
# Bucket number of failed operations. Bucket n holds latencies of about 1.05^n seconds, so no latency gets this number.
_FAILED = 100_000
# Limits for stored histograms: bucket numbers (up to 10 years) and counts.
_BUCKETS, _MOST_COUNT = range(-400, 401), 10**15


class Histogram(Counter[int]):
    """Counts of values by bucket number."""

    def add(self, value: float) -> None:
        """Count one value in seconds. Infinity counts as a failed operation."""
        bucket = round(math.log(max(value, _LEAST_S)) / _WIDTH) if value < math.inf else _FAILED
        self[bucket] += 1

    def percentile(self, share: float) -> float:
        """Return the quantile at ``share`` (0 to 1) by the nearest-rank method, or NaN without values."""
        rank = math.ceil(share * self.total())
        for bucket in sorted(self):
            rank -= self[bucket]
            if rank <= 0:
                return math.exp(bucket * _WIDTH) if bucket != _FAILED else math.inf
        return math.nan

    def to_json(self) -> dict[str, int]:
        """Return the counts as a JSON object: bucket number as text -> count."""
        return {str(bucket): count for bucket, count in sorted(self.items())}

    @classmethod
    def from_json(cls, document: Mapping[str, int]) -> Histogram:
        """Return the histogram that ``to_json`` has written. Raises ValueError if the document is invalid."""
        counts = {int(bucket): int(count) for bucket, count in document.items()}
        for bucket, count in counts.items():
            known = bucket in _BUCKETS or bucket == _FAILED
            if not known or not 0 < count < _MOST_COUNT:
                raise ValueError("no such values")
        return cls(counts)
