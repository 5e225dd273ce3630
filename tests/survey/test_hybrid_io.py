"""The warnings on hybrid I/O and on writes without fsync name exactly the cells that they affect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from strakes.base.units import MIB
from strakes.interop.command_ior import translate
from strakes.model.cell import Cell
from strakes.runs.records import RunEvent, TargetDescribed
from strakes.studies.plan_run import PlanRun
from strakes.studies.transfer_size import TransferSize
from strakes.survey.analysis_warnings import hybrid_io, unsynced
from studies.world import context

RECORDED = {
    "llite.hybrid_io": "1",
    "llite.hybrid_io_write_threshold_bytes": "2097152",
    "llite.hybrid_io_read_threshold_bytes": "8388608",
}


@dataclass(frozen=True)
class RunOf:
    """The parts of a stored run that the warning reads."""

    cells: tuple[Cell, ...]
    client: Mapping[str, str]

    def events_of(self, kind: type[RunEvent]) -> list[RunEvent]:
        assert kind is TargetDescribed
        return [TargetDescribed({"client": self.client}, ())]


CELLS = tuple(cell for cell in TransferSize().cells(context(full=True)) if isinstance(cell, Cell))


def touched(client: Mapping[str, str], cells: tuple[Cell, ...] = CELLS) -> set[str]:
    return {cell for warning in hybrid_io(RunOf(cells, client)) for cell in warning.cells}  # type: ignore[arg-type]


def test_only_buffered_calls_at_or_above_the_thresholds_are_flagged() -> None:
    seen = touched(RECORDED)
    expected = {
        f"{cell.key}:{phase}"
        for cell in CELLS
        for phase, least in (("write", 2 * MIB), ("read", 8 * MIB))
        if cell.settings["io"] == "buffered" and int(cell.settings["transfer_bytes"]) >= least
    }
    assert seen == expected
    (warning,) = hybrid_io(RunOf(CELLS, RECORDED))  # type: ignore[arg-type]
    assert "write 2 MiB, read 8 MiB" in warning.text and "hybrid_io=0" in warning.remedy


@pytest.mark.parametrize("client", [{}, {**RECORDED, "llite.hybrid_io": "0"}, {"llite.hybrid_io": "1"}])
def test_nothing_is_flagged_if_hybrid_io_is_off_or_absent(client: Mapping[str, str]) -> None:
    assert touched(client) == set()


@pytest.mark.parametrize(("option", "marked"), [("-w", {"plan:write"}), ("-e", set()), ("-B", set())])
def test_a_write_that_nothing_syncs_is_marked(option: str, marked: set[str]) -> None:
    plan = translate([option, "-o", "/tmp/file"], 2, 1).plan
    run = RunOf(tuple(PlanRun(plan, ("write", "read")).cells(context())), {})  # type: ignore[arg-type]
    assert {cell for warning in unsynced(run, "xfs") for cell in warning.cells} == marked  # type: ignore[arg-type]
