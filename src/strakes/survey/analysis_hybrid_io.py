"""Warnings on cells whose buffered calls were turned into direct ones by Lustre's hybrid I/O."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from strakes.base.errors import BadInputError
from strakes.base.units import format_bytes, parse_bytes
from strakes.model.cell import Cell
from strakes.model.phases import TransferPhase
from strakes.model.portrait import RunWarning
from strakes.runs.records import TargetDescribed
from strakes.runs.run import Run
from strakes.survey.analysis_warning_texts import warning

_STATE = "llite.hybrid_io"
_THRESHOLDS = {
    "write": "llite.hybrid_io_write_threshold_bytes",
    "read": "llite.hybrid_io_read_threshold_bytes",
}
# Backends whose calls use the page cache and can become direct; mmap makes no such calls.
_BUFFERED = ("posix", "raw", "uring", "mpiio", "stdio")


# Values that the kernel takes as true (kstrtobool).
_ON = ("1", "y", "Y", "t", "T", "on", "On", "ON")


def hybrid_io(run: Run) -> list[RunWarning]:
    """Return a warning on the cells with calls of at least the threshold of hybrid I/O, for each pair of thresholds.

    A cell may set its own thresholds.
    """
    client: Mapping[str, str] = next(
        (event.description.get("client", {}) for event in run.events_of(TargetDescribed)), {}
    )
    touched: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for cell in run.cells:
        settings = {**client, **cell.knobs}
        thresholds = _thresholds(settings)
        if thresholds and settings.get(_STATE) in _ON:
            touched.setdefault(tuple(thresholds.items()), []).extend(_touched(cell, thresholds))
    return [
        warning("hybrid-io", cells, sizes=", ".join(f"{name} {format_bytes(size)}" for name, size in thresholds))
        for thresholds, cells in touched.items()
        if cells
    ]


def _thresholds(settings: Mapping[str, str]) -> dict[str, int]:
    """Return the threshold of each operation in bytes. The kernel accepts both 64M and 67108864."""
    thresholds = {}
    for operation, name in _THRESHOLDS.items():
        with suppress(BadInputError):
            thresholds[operation] = parse_bytes(settings.get(name, ""))
    return thresholds


def _touched(cell: Cell, thresholds: Mapping[str, int]) -> list[str]:
    large = {
        phase.name
        for phase in cell.plan.phases
        if isinstance(phase, TransferPhase)
        and not phase.direct
        and phase.backend in _BUFFERED
        and phase.operation in thresholds
        and phase.transfer_bytes >= thresholds[phase.operation]
    }
    return [
        f"{cell.key}:{measure.suffix}" for measure in cell.measures if measure.phase in large and not measure.is_side
    ]
