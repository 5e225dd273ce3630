"""What a finding or an advice asserts, so that it can be checked.

Ratios of two measures, and between which bounds they lie.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """``of`` is ``low`` to ``high`` times as good as ``to`` (ids of measures; of times: so many times shorter).

    None is no bound. A finding that is not decided asserts nothing.
    """

    of: str
    to: str
    low: float | None = None
    high: float | None = None
