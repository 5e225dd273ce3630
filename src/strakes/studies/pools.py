"""Pools of small files as S3 filled them: sizes, phases, and files an hour. What several studies share."""

from __future__ import annotations

from typing import Literal

from strakes.findings.portrait import Finding, IntervalOf
from strakes.findings.results import Measured
from strakes.plan import AMOUNT, SmallFilesPhase, Stop

LOW_BYTES, HIGH_BYTES = 2048, 6144
UNIT_BYTES = 1024
SUBDIRECTORIES = 16
# What S3 had to reach, and what it reached: files an hour, before and after its tuning.
NEEDED_PER_HOUR = 2_000_000
BEFORE_PER_HOUR, AFTER_PER_HOUR = 500_000, 4_600_000
HOUR_S = 3600.0


def pool_phase(
    name: str,
    mode: Literal["accumulate", "transactions", "remove"],
    *,
    files: int = 0,
    transactions: int = 0,
    first_item: int = 0,
    stop: Stop = AMOUNT,
) -> SmallFilesPhase:
    """Return a phase on the pool; files of 2,048 to 6,144 bytes in calls of 1,024, as S3 set Postmark."""
    return SmallFilesPhase(
        name,
        mode,
        LOW_BYTES,
        HIGH_BYTES,
        files_per_rank=files,
        subdirectories=SUBDIRECTORIES,
        read_unit_bytes=UNIT_BYTES,
        write_unit_bytes=UNIT_BYTES,
        transactions=transactions,
        first_item=first_item,
        stop=stop,
    )


def files_that_fit(max_bytes: int, max_items: int, ranks: int, wanted: int) -> int:
    """Files per rank for which there is room, twice over (transactions double a pool)."""
    room = min(max_bytes // (2 * HIGH_BYTES), (max_items - ranks * (2 + SUBDIRECTORIES)) // 2)
    return max(0, min(wanted, room // ranks))


def per_hour_finding(identifier: str, cell: Measured, what: str, needed_per_hour: float | None = None) -> Finding:
    """Files an hour, as a figure or as a test of a need."""
    assert cell.estimate is not None
    rate = cell.estimate.median * HOUR_S
    statement = f"{what}: {rate / 1e6:,.3g} million files an hour"
    if cell.estimate.low is None or cell.estimate.high is None:
        return Finding(
            identifier,
            cell.study,
            f"{statement}.",
            "inconclusive",
            (cell.id,),
            needs="more runs: give a larger --budget",
        )
    low, high = cell.estimate.low * HOUR_S / 1e6, cell.estimate.high * HOUR_S / 1e6
    interval = IntervalOf(low, high, cell.estimate.confidence, "rate of files", "million files/h")
    if needed_per_hour is None:
        return Finding(identifier, cell.study, f"{statement}.", "measured", (cell.id,), interval)
    needed = needed_per_hour / 1e6
    statement += f"; S3 needed {needed:g} million, from 100 clients or more."
    if low >= needed:
        return Finding(identifier, cell.study, statement, "holds", (cell.id,), interval, tone="good")
    if high < needed:
        return Finding(identifier, cell.study, statement, "does-not", (cell.id,), interval, tone="bad")
    return Finding(
        identifier,
        cell.study,
        statement,
        "inconclusive",
        (cell.id,),
        interval,
        "a narrower interval: give a larger --budget",
    )
