"""What limits did to the figures: which runs may stand together, and which cells are figures of a limit. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from strakes.launch.impact import impact_from_message
from strakes.statistics.interval import median
from strakes.studies.results import Measured

# Of the time of the ranks; less is what a nap more or less comes to.
HELD_SHARE = 0.02


def under_one_limit(visits: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The visits that ended well under that limit under which most did; of equals the highest, which distorts least.

    What ran under different limits is never pooled, and cells are never compared across them.

    >>> free, half = {"ended": "ok", "elapsed_s": 1.0}, {"ended": "ok", "elapsed_s": 2.0, "impact": {"share": 0.5}}
    >>> under_one_limit([free, half, half]) == [half, half], under_one_limit([half, free]) == [free]
    (True, True)
    """
    ok = [visit for visit in visits if visit["ended"] == "ok"]
    # What a confirmation runs again is no further evidence for the limit; without any measured visit all there is counts.
    counted = [visit for visit in ok if visit.get("purpose", "measure") == "measure"] or ok
    numbers = Counter(limit_of(visit) for visit in counted)
    if not numbers:
        return []
    most = max(numbers, key=lambda limit: (numbers[limit], share_of(limit)))
    return [visit for visit in ok if limit_of(visit) == most]


def gave_way(visits: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """How many visits were ended for other people's sake, and how many ran to their end with less load.

    >>> gave_way([{"ended": "yielded"}, {"ended": "ok", "impact": {"share": 0.5}}, {"ended": "ok"}])
    (1, 1)
    """
    yielded = sum(1 for visit in visits if visit["ended"] == "yielded")
    slowed = sum(1 for visit in visits if visit["ended"] == "ok" and share_of(limit_of(visit)) < 1.0)
    return yielded, slowed


def limit_of(visit: Mapping[str, Any]) -> str:
    """What visits under the same limit have in common; empty without one."""
    return json.dumps(visit["impact"], sort_keys=True) if visit.get("impact") else ""


def limit_in_words(limit: str) -> str:
    return str(impact_from_message(json.loads(limit) if limit else {}))


def share_of(limit: str) -> float:
    """Of the time, that a limit leaves."""
    return impact_from_message(json.loads(limit) if limit else {}).share


def held_share(sample: Mapping[str, Any]) -> float:
    """The share of its ranks' time for which a phase was held back.

    >>> held_share({"impact": {"held_back_s": 1.0}, "elapsed_s": 2.0, "ranks": [[0], [1]]}), held_share({})
    (0.25, 0.0)
    """
    if "impact" not in sample:
        return 0.0
    # Where some ranks write or read for all, theirs is the time.
    columns = sample.get("columns", ())
    place = columns.index("operations") if "operations" in columns else None
    busy = sum(1 for row in sample["ranks"] if place is None or row[place])
    time_s = float(sample["elapsed_s"]) * max(1, busy)
    return float(sample["impact"]["held_back_s"]) / time_s if time_s else 0.0


def held_back(one: Measured) -> float:
    """By how much a measure was: the median share over its runs; 0 where the limit was out of its reach."""
    shares = [held_share(seen.sample) for seen in one.observations if seen.purpose == "measure"]
    share = median(shares) if shares else 0.0
    return share if share >= HELD_SHARE else 0.0
