"""Select trials with the same load limit (--impact, --neighbour), and find rates that the limit reduced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from strakes.model.results import Measured
from strakes.model.sample import Sample
from strakes.runs.records import Visit
from strakes.stats.interval import median

# A load limit matters only if the ranks waited for at least 2 % of their time because of it.
HELD_SHARE = 0.02


def under_one_limit(visits: Sequence[Visit]) -> list[Visit]:
    """Return the successful trials with the most frequent load limit. If two limits tie, the higher one is used.

    Trials with different limits must not be pooled or compared.

    >>> from strakes.runs.impact import Impact
    >>> free, half = Visit(1), Visit(2, impact=Impact(share=0.5))
    >>> under_one_limit([free, half, half]) == [half, half], under_one_limit([half, free]) == [free]
    (True, True)
    """
    ok = [visit for visit in visits if visit.ended_well]
    numbers = Counter(visit.impact for visit in ok if visit.is_measurement) or Counter(visit.impact for visit in ok)
    if not numbers:
        return []
    most = max(numbers, key=lambda limit: (numbers[limit], limit.share))
    return [visit for visit in ok if visit.impact == most]


def gave_way(visits: Sequence[Visit]) -> tuple[int, int]:
    """Return the number of trials that were stopped to protect other users, and of trials with a reduced load.

    >>> from strakes.runs.impact import Impact
    >>> gave_way([Visit(ended="yielded"), Visit(impact=Impact(share=0.5)), Visit()])
    (1, 1)
    """
    yielded = sum(1 for visit in visits if visit.ended == "yielded")
    slowed = sum(1 for visit in visits if visit.ended_well and visit.impact.share < 1.0)
    return yielded, slowed


def held_share(sample: Sample) -> float:
    """Return the share (0 to 1) of a phase in which its ranks waited because of a load limit.

    >>> from strakes.model.sample import HeldBack
    >>> held_share(Sample("write", impact=HeldBack(1.0), elapsed_s=2.0, ranks=[[0], [1]])), held_share(Sample("write"))
    (0.25, 0.0)
    """
    if sample.impact is None:
        return 0.0
    operations = sample.column("operations")
    busy = sum(1 for done in operations if done) if operations else len(sample.ranks)
    time_s = sample.elapsed_s * max(1, busy)
    return sample.impact.held_back_s / time_s if time_s else 0.0


def held_back(cell: Measured) -> float:
    """Return the median share of time that ranks waited because of a load limit (0 if it is negligible)."""
    shares = [held_share(seen.sample) for seen in cell.observations if seen.purpose == "measure"]
    share = median(shares) if shares else 0.0
    return share if share >= HELD_SHARE else 0.0
