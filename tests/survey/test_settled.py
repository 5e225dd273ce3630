"""A cell is ended early only where neither end of its interval would change what is said."""

from __future__ import annotations

from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.statistics.stopping import StoppingRule
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.restart_dump import RestartDump
from strakes.studies.results import Results
from strakes.studies.transfer_size import TransferSize
from strakes.survey.settled import is_settled, runs_saved
from strakes.units import MIB
from studies.world import measured


def far_apart(phase: Phase, ranks: int) -> float:
    """Small calls reach next to nothing: a few percent more or less of it say nothing new."""
    assert isinstance(phase, TransferPhase)
    return 1000.0 * MIB * min(1.0, phase.transfer_bytes / MIB)


def ids_of(results: Results, key: str) -> frozenset[str]:
    return frozenset(one.id for one in results.measured if one.id.startswith(f"{key}:") and not one.is_side)


def test_a_cell_far_from_every_threshold_is_settled_though_its_interval_is_wide() -> None:
    results = measured(TransferSize(), far_apart, blocks=14, noise=0.04)
    ids = ids_of(results, "transfer-size/buffered/4096")
    assert is_settled(TransferSize(), results, ids, 0.1)
    assert runs_saved([results.get(one) for one in ids], StoppingRule(relative_half_width=0.005)) > 0


def test_a_cell_that_could_still_change_the_advice_is_not_settled() -> None:
    def close(phase: Phase, ranks: int) -> float:
        assert isinstance(phase, TransferPhase)
        return 1000.0 * MIB * (1.0 if phase.transfer_bytes < 8 * MIB else 1.06)

    results = measured(TransferSize(), close, blocks=8, noise=0.05)
    open_ones = [
        one.id
        for one in results.where(io="buffered", operation="write")
        if not is_settled(TransferSize(), results, frozenset([one.id]), 0.1)
    ]
    assert open_ones


def test_a_headline_is_measured_to_its_precision() -> None:
    def apart(phase: Phase, ranks: int) -> float:
        assert isinstance(phase, MetadataPhase)
        return 10_000.0 if phase.directory == "shared" else 90_000.0

    results = measured(MetadataOps(), apart, blocks=7, noise=0.1)
    headline = MetadataOps().headlines(results)[0].cell
    assert not is_settled(MetadataOps(), results, frozenset([headline]), 0.1)


def test_without_an_interval_nothing_is_settled() -> None:
    results = measured(TransferSize(), far_apart, blocks=3)
    assert not is_settled(TransferSize(), results, ids_of(results, "transfer-size/buffered/4096"), 0.1)


def test_a_speed_up_that_more_runs_would_show_keeps_its_cells_open() -> None:
    results = measured(RestartDump(), lambda phase, ranks: 1000.0 * MIB, blocks=5, noise=0.02)
    assert not is_settled(RestartDump(), results, ids_of(results, "restart-dump/2"), 0.1)
