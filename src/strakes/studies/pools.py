"""Pools of small files with the Postmark settings of StorNext (2011, S3): sizes, phases and files per hour."""

from __future__ import annotations

from typing import Literal

from strakes.model.phases import AMOUNT, SmallFilesPhase, Stop

LOW_BYTES, HIGH_BYTES = 2048, 6144
UNIT_BYTES = 1024
# Number of directories in a pool, as published (StorNext, 2011).
SUBDIRECTORIES = 16
# Files per hour that the published system needed, and that the system reached before and after tuning.
NEEDED_PER_HOUR = 2_000_000
BEFORE_PER_HOUR, AFTER_PER_HOUR = 500_000, 4_600_000
HOUR_S = 3600.0


def pool_phase(
    name: str,
    mode: Literal["accumulate", "transactions", "remove"],
    *,
    files: int = 0,
    transactions: int = 0,
    stop: Stop = AMOUNT,
    syncfs: bool = False,
) -> SmallFilesPhase:
    """Return a phase on a pool, with published Postmark settings: files of 2,048 to 6,144 bytes in calls of 1,024."""
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
        stop=stop,
        syncfs=syncfs,
    )


def files_that_fit(max_bytes: int, max_items: int, ranks: int, wanted: int) -> int:
    """Return the files per rank, at most ``wanted``. Twice as many files must fit: transactions can double a pool."""
    room = min(max_bytes // (2 * HIGH_BYTES), (max_items - ranks * (2 + SUBDIRECTORIES)) // 2)
    return max(0, min(wanted, room // ranks))
