"""Limits of a plan's load on the file system. ``--impact`` sets them, and ``--neighbour`` reduces them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from strakes.base.errors import BadInputError
from strakes.base.language import gettext
from strakes.base.units import KIB, format_value, parse_bytes, parse_count
from strakes.model.record import Record

# Lowest limits that --impact accepts. With lower limits, even the smallest study would take too long.
LEAST_BYTES_PER_S = 256 * KIB
LEAST_OPERATIONS_PER_S = 5.0
MOST_PER_S = 1e15  # Highest limit in bytes or operations per second. The engine has the same maximum.
_LIMIT = re.compile(r"(?P<number>.*?)\s*(?P<unit>operations|iops|ops|op)?\s*/\s*s", re.IGNORECASE)


@dataclass(frozen=True)
class Impact(Record):
    """Limits of the load of all ranks together (None: no limit). ``share``: duty cycle of each rank, 0 to 1."""

    bytes_per_s: float | None = None
    operations_per_s: float | None = None
    share: float = 1.0

    def __str__(self) -> str:
        """Return the limits as text.

        >>> str(Impact(bytes_per_s=209715200.0, operations_per_s=5000.0)), str(Impact(share=0.25)), str(Impact())
        ('200 MiB/s and 5,000 op/s', 'a share of 1/4 of the time', 'no limit')
        """
        limits = [] if self.bytes_per_s is None else [format_value(self.bytes_per_s, "B/s")]
        limits += [] if self.operations_per_s is None else [format_value(self.operations_per_s, "op/s")]
        limits += [] if self.share == 1.0 else [f"a share of 1/{1 / self.share:.3g} of the time"]
        return gettext(" and ").join(limits) or gettext("no limit")


UNLIMITED = Impact()


def parse_impact(limits: Sequence[str]) -> Impact:
    """Parse the values of ``--impact``, at most one in bytes and one in operations per second. Raises BadInputError.

    >>> parse_impact(["200MiB/s", "5000ops/s"])
    Impact(bytes_per_s=209715200.0, operations_per_s=5000.0, share=1.0)
    """
    rates: dict[str, float] = {}
    for text in (part.strip() for limit in limits for part in limit.split(",")):
        form = _LIMIT.fullmatch(text)
        of_operations = form is not None and form["unit"]
        what = "operations_per_s" if of_operations else "bytes_per_s"
        least, in_words = (LEAST_OPERATIONS_PER_S, "5 ops/s") if of_operations else (LEAST_BYTES_PER_S, "256 KiB/s")
        try:
            number = form["number"] if form else text
            rate = float((parse_count if of_operations else parse_bytes)(number)) if form else math.nan
        except BadInputError:
            rate = math.nan
        if not math.isfinite(rate):
            raise BadInputError(f"not a limit: {text!r}", remedy="Write, for example, 200MiB/s or 5000ops/s.")
        if what in rates:
            remedy = "Give at most one limit for bytes and one for operations."
            raise BadInputError("--impact gives the same kind of limit twice", where=text, remedy=remedy)
        if not least <= rate <= MOST_PER_S:
            wrong = "too low to measure with" if rate < least else "higher than any file system can do"
            remedy = f"Give at least {in_words}, or leave out --impact."
            raise BadInputError(f"--impact is {wrong}", where=text, remedy=remedy)
        rates[what] = rate
    return Impact(rates.get("bytes_per_s"), rates.get("operations_per_s"))
