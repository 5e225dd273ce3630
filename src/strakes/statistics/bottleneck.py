"""The bottleneck test of S1: a node link of x, storage targets of y each, a file striped over n of them; the link limits when x < y n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from strakes.statistics.interval import Estimate


@dataclass(frozen=True)
class Bottleneck:
    """Whether "the node link is the bottleneck" holds, and from how many stripes on it does (None: not known)."""

    verdict: Literal["holds", "does-not", "inconclusive"]
    from_stripes: int | None


def link_is_bottleneck(link: Estimate, target: Estimate, stripes: int) -> Bottleneck:
    """Test x < y n, both rates in the same unit; a claim takes one end of each interval, so that the joint error is that of one interval.

    Raises ValueError for fewer than one stripe.

    >>> from strakes.statistics.interval import Interval
    >>> link, target = Estimate(10.0, Interval(9.5, 10.5, 0.9), 9), Estimate(3.0, Interval(2.8, 3.2, 0.9), 9)
    >>> link_is_bottleneck(link, target, 4)
    Bottleneck(verdict='holds', from_stripes=4)
    >>> link_is_bottleneck(link, target, 2).verdict, link_is_bottleneck(link, target, 3).verdict
    ('does-not', 'inconclusive')
    """
    if stripes < 1:
        raise ValueError(f"a file has at least one stripe, not {stripes}")
    if link.interval is None or target.interval is None:
        return Bottleneck("inconclusive", None)
    from_stripes = int(link.interval.high // target.interval.low) + 1 if target.interval.low > 0 else None
    if from_stripes is not None and link.interval.high >= target.interval.low * from_stripes:
        from_stripes += 1  # the quotient was rounded down across a whole number
    if link.interval.high < target.interval.low * stripes:
        return Bottleneck("holds", from_stripes)
    if link.interval.low >= target.interval.high * stripes:
        return Bottleneck("does-not", from_stripes)
    return Bottleneck("inconclusive", from_stripes)
