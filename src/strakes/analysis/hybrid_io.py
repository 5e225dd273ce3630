"""Which cells' buffered calls Lustre's hybrid I/O turned into direct ones: they are something else than they say."""

from __future__ import annotations

from collections.abc import Mapping

from strakes.analysis import evidence
from strakes.findings.cell import Cell
from strakes.findings.portrait import RunWarning
from strakes.plan import TransferPhase
from strakes.store import Run
from strakes.store.records import TargetDescribed

_STATE = "llite.hybrid_io"
_THRESHOLDS = {
    "write": "llite.hybrid_io_write_threshold_bytes",
    "read": "llite.hybrid_io_read_threshold_bytes",
}
# Calls by which data goes through the page cache; mmap has none that could become direct.
_BUFFERED = ("posix", "raw", "uring", "mpiio", "stdio")


def hybrid_io(run: Run) -> list[RunWarning]:
    """`hybrid-io` for the cells whose calls are at least as large as the thresholds."""
    client: Mapping[str, str] = next(
        (event.description.get("client", {}) for event in run.events_of(TargetDescribed)), {}
    )
    thresholds = {
        operation: int(text) for operation, name in _THRESHOLDS.items() if (text := client.get(name, "")).isdigit()
    }
    if not thresholds:
        return []
    touched = [
        identifier for cell in run.cells for identifier in _touched(cell, thresholds, on=client.get(_STATE) == "1")
    ]
    return evidence.hybrid_io(thresholds, touched)


def _touched(cell: Cell, thresholds: Mapping[str, int], *, on: bool) -> list[str]:
    if not (cell.knobs[_STATE] == "1" if _STATE in cell.knobs else on):
        return []
    large = {
        phase.name
        for phase in cell.plan.phases
        if isinstance(phase, TransferPhase)
        and not phase.direct
        and phase.backend in _BUFFERED
        and phase.transfer_bytes >= thresholds.get(phase.operation, 1 << 62)
    }
    return [
        f"{cell.key}:{measure.suffix}" for measure in cell.measures if measure.phase in large and not measure.is_side
    ]
