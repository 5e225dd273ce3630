"""S2's arithmetic on the cost of replicating metadata, compared with its measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strakes.base.language import gettext

BYTES_PER_FILE = 2.5 * 1024
CONFIGURED_MB_PER_S = 200.0
MIB = 1024 * 1024
# Files, and the seconds that S2 measured for replicating their metadata.
MEASURED: Sequence[tuple[int, float]] = ((10_000, 0.488), (100_000, 4.88), (1_000_000, 51.4), (10_000_000, 487.4))
# Rate in production according to S2's text, in MB/s.
SAID_MB_PER_S = 60.0


@dataclass(frozen=True)
class ReplicationRow:
    """One line of the table: the rate it implies is its amount over its time."""

    files: int
    megabytes: float
    predicted_s: float
    published_s: float

    @property
    def implied_mb_per_s(self) -> float:
        """Megabytes per second: the amount over the published time."""
        return self.megabytes / self.published_s


def predicted(files: int, mb_per_s: float = CONFIGURED_MB_PER_S) -> tuple[float, float]:
    """Return the megabytes of metadata of that number of files, and the seconds to replicate them at that rate.

    >>> [round(value, 3) for value in predicted(10_000)]
    [24.414, 0.122]
    """
    megabytes = files * BYTES_PER_FILE / MIB
    return megabytes, megabytes / mb_per_s


def table() -> tuple[ReplicationRow, ...]:
    """Return the published table, computed again."""
    return tuple(ReplicationRow(files, *predicted(files), published_s) for files, published_s in MEASURED)


def disagreements() -> tuple[str, ...]:
    """Where the source contradicts itself."""
    rates = [row.implied_mb_per_s for row in table()]
    low, high = min(rates), max(rates)
    if low <= SAID_MB_PER_S <= high:
        return ()
    text = gettext(
        "S2 on the rate of replication: its text says about {said:.0f} MB/s, a third of the {configured:.0f} MB/s "
        "configured; the figures of its table imply {low:.0f} to {high:.0f} MB/s.",
        said=SAID_MB_PER_S,
        configured=CONFIGURED_MB_PER_S,
        low=low,
        high=high,
    )
    return (text,)
