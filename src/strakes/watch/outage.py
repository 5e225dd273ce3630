"""Something that did not work for a while, as those know it who try it now and then."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.units import format_duration


@dataclass(frozen=True)
class Outage:
    """``worked_s``: when it worked last; ``failed_s`` and ``still_s``: when it failed first and last."""

    worked_s: float
    failed_s: float
    still_s: float

    @property
    def began_s(self) -> float:
        """Return when it probably began: in the middle of when it can have done so."""
        return (min(self.worked_s, self.failed_s) + self.failed_s) / 2

    def ended_s(self, again_s: float) -> float:
        """Return when it probably ended, if it worked at ``again_s``."""
        return max(self.began_s, (self.still_s + again_s) / 2)

    def how_long(self, again_s: float) -> str:
        """Return how long it was at least and at most, if it worked at ``again_s``.

        >>> Outage(90.0, 100.0, 160.0).how_long(190.0), Outage(100.0, 100.0, 100.0).how_long(130.0)
        ('60 s to 100 s', 'at most 30 s')
        """
        least_s, most_s = max(0.0, self.still_s - self.failed_s), max(0.0, again_s - min(self.worked_s, self.failed_s))
        most, least = format_duration(most_s), format_duration(least_s)
        if not least_s or least == most:
            return f"at most {most}"
        return f"{least} to {most}"
