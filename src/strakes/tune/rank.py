"""Whether two measures put things in the same order."""

from __future__ import annotations

from collections.abc import Sequence


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's, with mean ranks for ties; 0 where one of them has no order.

    Raises ValueError for unlike lengths or fewer than two.

    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 20.0, 90.0]), rank_correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])
    (1.0, -1.0)
    """
    if len(a) != len(b) or len(a) < 2:
        raise ValueError("as many of both, and two at least")
    ranks_a, ranks_b = _ranks(a), _ranks(b)
    middle = (len(a) + 1) / 2
    together = sum((x - middle) * (y - middle) for x, y in zip(ranks_a, ranks_b, strict=True))
    spread_a, spread_b = (sum((x - middle) ** 2 for x in ranks) for ranks in (ranks_a, ranks_b))
    return float(together / (spread_a * spread_b) ** 0.5) if spread_a and spread_b else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    below = [sum(other < value for other in values) for value in values]
    alike = [sum(other == value for other in values) for value in values]
    return [low + (same + 1) / 2 for low, same in zip(below, alike, strict=True)]
