"""The client's own speed in two runs: a slower client is not a slower file system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.base.language import gettext
from strakes.runs.records import Visit
from strakes.stats.comparison import ONE_PAIR, Judged
from strakes.stats.contrast import Verdict
from strakes.stats.interval import median

_CALLED = (Verdict.FASTER, Verdict.SLOWER)


def client_ratio(a: Sequence[Visit], b: Sequence[Visit]) -> float:
    """Return how many times faster the client itself was in the visits ``b`` than in ``a``, or 1 if not measured.

    >>> fast, slow = Visit(client_s=0.002), Visit(client_s=0.004)
    >>> client_ratio([fast], [slow]), client_ratio([Visit()], [slow])
    (0.5, 1.0)
    """
    seconds = [[visit.client_s for visit in visits if visit.client_s is not None] for visits in (a, b)]
    return median(seconds[0]) / median(seconds[1]) if all(seconds) else 1.0


def by_the_client(judgement: Judged, ratio: float, least: float) -> Judged:
    """Return the verdict, made inconclusive if a change of the client's speed may explain it.

    ``ratio``: how many times faster the client was in B. A change up to ``least`` is ignored.
    """
    interval = judgement.ratio.interval
    if judgement.verdict not in _CALLED or interval is None or 1 / (1 + least) <= ratio <= 1 + least:
        return judgement
    beyond = interval.low / ratio > 1 + ONE_PAIR, interval.high / ratio < 1 / (1 + ONE_PAIR)
    if beyond[judgement.ratio.median < 1]:
        return judgement
    return replace(judgement, verdict=Verdict.INCONCLUSIVE, needs=gettext(_NEEDS[ratio > 1], share=share_of(ratio)))


_NEEDS = {
    True: "runs while the client is equally fast: in work that does not touch the file system it was {share} faster "
    "in B",
    False: "runs while the client is equally fast: in work that does not touch the file system it was {share} slower "
    "in B",
}


def caution_on(ratio: float) -> str:
    """Return a caution on the speed of the client.

    >>> caution_on(1.22)
    'The client itself was 22 % faster in B, in work that does not touch the file system.'
    """
    if ratio > 1:
        return gettext(
            "The client itself was {share} faster in B, in work that does not touch the file system.",
            share=share_of(ratio),
        )
    return gettext(
        "The client itself was {share} slower in B, in work that does not touch the file system.", share=share_of(ratio)
    )


def share_of(ratio: float) -> str:
    """Return the difference of a ratio of speeds from 1 as text.

    >>> share_of(1.22), share_of(0.78)
    ('22 %', '22 %')
    """
    return f"{100 * abs(ratio - 1):.0f} %"
