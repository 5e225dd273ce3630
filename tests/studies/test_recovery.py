"""Recovery time against the number of clients, on a simulated service of known behaviour."""

from __future__ import annotations

from strakes.model.results import Results
from strakes.studies.recovery import RecoveryStudy
from studies.world import answered, cells_of, measured, skipped_of


def results(blocks: int = 8) -> Results:
    # The rate is 10 operations/s for any number of ranks, so clients are served one after the other.
    return measured(RecoveryStudy(), lambda phase, ranks: 10.0, blocks=blocks, file_system="fuse.ceph-fuse")


def test_a_service_that_readmits_its_clients_one_by_one_is_recognised_by_the_ratio() -> None:
    growth = answered(RecoveryStudy(), results())["growth"]
    assert (growth.grade, growth.chosen, growth.against.option) == ("sure", "1 client", "200 clients")
    assert 190 < growth.against.low < growth.against.high < 210


def test_the_figure_has_first_median_and_last_client_and_published_times_as_a_reference() -> None:
    (figure,) = RecoveryStudy().figures(results())
    assert [(one.name, [point.x for point in one.points]) for one in figure.series] == [
        (who, [1.0, 10.0, 50.0, 200.0]) for who in ("first client", "median client", "last client")
    ]
    assert len({point.cell for one in figure.series for point in one.points}) == 12, "without files in flight"
    assert figure.references[0].points[-1] == (2000.0, 420.0)


def test_the_requested_number_of_ranks_is_one_of_the_numbers_of_clients() -> None:
    cells = cells_of(RecoveryStudy(), file_system="fuse.ceph-fuse", most_ranks=60)
    assert [cell.settings["clients"] for cell in cells] == [1, 10, 50, 60, 200, 50]
    assert [cell.settings["files"] for cell in cells] == [0, 0, 0, 0, 0, 50_000]
    of_files = cells_of(RecoveryStudy(), file_system="fuse.ceph-fuse", files=1000)
    assert [cell.settings["files"] for cell in of_files] == [1000] * 4


def test_the_wait_of_2_000_clients_is_forecast_from_three_drills_and_marked_as_a_forecast() -> None:
    by_drills = {drills: {one.id: one for one in RecoveryStudy().findings(results(drills))} for drills in (2, 3)}
    few, enough = (by_drills[drills]["recovery-forecast"] for drills in (2, 3))
    assert few.verdict == "inconclusive" and "3 drills" in few.needs
    assert enough.verdict == "forecast" and enough.interval is not None
    # 2,000 clients create 7 files each, one after the other, in 0.1 s per file.
    assert enough.interval.low < 1400 < enough.interval.high and "Zeng et al. published 420 s" in enough.statement


def test_files_in_flight_are_a_separate_factor() -> None:
    answer = answered(RecoveryStudy(), results())["in-flight"]
    assert {answer.chosen, answer.against.option} == {"0 files just created", "50,000 files just created"}


def test_the_absence_of_data_loss_is_claimed_only_after_enough_drills() -> None:
    by_runs = {blocks: RecoveryStudy().findings(results(blocks))[-1].verdict for blocks in (2, 8)}
    assert by_runs == {2: "inconclusive", 8: "holds"}


def test_on_a_mount_one_client_is_measured_and_larger_numbers_are_skipped() -> None:
    (one,), others = cells_of(RecoveryStudy()), skipped_of(RecoveryStudy())
    assert one.plan.ranks == 1
    assert len(others) == 3 and all("a client is a mount" in other.reason for other in others)
