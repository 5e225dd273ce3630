"""Latest known state of the interruptions of a service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.targets.description import Interruption


def as_known_last(met: Sequence[Interruption], later: Sequence[Interruption]) -> list[Interruption]:
    """Return each observed interruption once, with its latest known end and evictions.

    ``met``: interruptions observed by visits. ``later``: further observations, also of other interruptions.

    >>> lasting, over = Interruption("mds.0", 0, None), Interruption("mds.0", 0, 5, evicted=True)
    >>> as_known_last([lasting, over], []) == as_known_last([lasting], [over]) == [over]
    True
    """
    known: dict[tuple[str, float], Interruption] = {}
    for lost in met:
        before = known.get((lost.target, lost.began_unix_s), lost)
        known[lost.target, lost.began_unix_s] = _merged(before, lost)
    for lost in later:
        if before_or_none := known.get((lost.target, lost.began_unix_s)):
            known[lost.target, lost.began_unix_s] = _merged(before_or_none, lost)
    return list(known.values())


def _merged(before: Interruption, later: Interruption) -> Interruption:
    return replace(
        later,
        ended_unix_s=before.ended_unix_s if later.ended_unix_s is None else later.ended_unix_s,
        evicted=before.evicted or later.evicted,
        evicted_clients=before.evicted_clients if later.evicted_clients is None else later.evicted_clients,
        evicted_names=later.evicted_names or before.evicted_names,
    )
