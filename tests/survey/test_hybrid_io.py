"""The hybrid I/O warning names exactly the cells whose calls it affects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from strakes.base.units import MIB
from strakes.model.cell import Cell
from strakes.runs.records import RunEvent, TargetDescribed
from strakes.studies.hybrid_io import KNOB, HybridIo
from strakes.studies.transfer_size import TransferSize
from strakes.survey.analysis_hybrid_io import hybrid_io
from strakes.targets.description import Description
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
    sizes = {
        name: {int(cell.split("/")[2].split(":")[0]) for cell in seen if cell.endswith(name)}
        for name in ("write", "read")
    }
    assert min(sizes["write"]) < 8 * MIB == min(sizes["read"])
    assert all(cell.startswith("transfer-size/buffered/") for cell in seen)
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


def test_a_study_that_varies_hybrid_io_is_flagged_in_the_cells_with_it_on() -> None:
    described = Description("labfs", "2.17", client=RECORDED)
    cells = tuple(cell for cell in HybridIo().cells(context(description=described)) if isinstance(cell, Cell))
    assert {cell.knobs[KNOB] for cell in cells} == {"0", "1"} and len(cells) == 8
    seen = touched({**RECORDED, "llite.hybrid_io": "0"}, cells)
    assert seen and all(cell.startswith("hybrid-io/on/") for cell in seen)
    (skipped,) = HybridIo().cells(context(description=replace(described, client={})))
    assert "hybrid I/O is not available here" in skipped.reason  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("size", "threshold", "noted"),
    [
        (8 * MIB, "64M", False),
        (8 * MIB, "67108864", False),
        (MIB, "64K", True),
        (MIB, str(MIB), True),
        (MIB, "0", True),
    ],
)
@pytest.mark.parametrize("operation", ["write", "read"])
def test_a_threshold_set_by_the_cell_overrides_the_recorded_one(
    size: int, threshold: str, noted: bool, operation: str
) -> None:
    knob = f"llite.hybrid_io_{operation}_threshold_bytes"
    cells = tuple(replace(cell, knobs={knob: threshold}) for cell in CELLS if cell.key.endswith(f"buffered/{size}"))
    assert cells
    seen = {cell for cell in touched(RECORDED, cells) if cell.endswith(f":{operation}")}
    assert bool(seen) == noted
    # The threshold of the cell counts even if the client reports none.
    only = {cell for cell in touched({KNOB: "1"}, cells) if cell.endswith(f":{operation}")}
    assert bool(only) == noted


def test_each_pair_of_thresholds_is_reported_with_its_cells() -> None:
    knobs = {"llite.hybrid_io_write_threshold_bytes": "64M"}
    varied = tuple(replace(cell, key=f"{cell.key}x", knobs=knobs) for cell in CELLS)
    warnings = hybrid_io(RunOf((*CELLS, *varied), RECORDED))  # type: ignore[arg-type]
    assert ["write 2 MiB" in each.text for each in warnings] == [True, False]
    assert "write 64 MiB, read 8 MiB" in warnings[1].text
    assert not any("x:" in cell for cell in warnings[0].cells) and all("x:" in cell for cell in warnings[1].cells)
