"""Measured rates give a verdict on a need, and forecasts only a predicted one. Invalid needs are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, StrakesRunner
from strakes.base.errors import BadInputError
from strakes.base.units import GIB, MIB
from strakes.model.cell import Cell
from strakes.model.phases import SmallFilesPhase, StreamPhase
from strakes.model.plan import Phase
from strakes.model.portrait import Portrait, RunWarning
from strakes.model.results import Results
from strakes.predict.asked import Stated, parse_asked
from strakes.predict.forecasts import forecast_figures
from strakes.predict.gather import figures_of
from strakes.report.summary import warnings_in_short
from strakes.runs.store import Store
from strakes.stats.usl import Law
from strakes.studies.client_scaling import ClientScaling
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.stream import Stream
from strakes.studies.study import Study
from strakes.survey.analysis_build import results_of
from strakes.tuning.accept_judge import (
    FAIL,
    PASS,
    PREDICTED_FAIL,
    PREDICTED_PASS,
    UNKNOWN,
    Answer,
    judge,
    render,
    to_document,
)
from strakes.tuning.accept_needs import Need, needs_from_toml
from studies.world import context, store_run, stored, visits_of

FACTS: dict[str, Any] = {
    "file_system": "xfs",
    "remote": False,
    "memory_bytes": 24 * GIB,
    "total_inodes": 10_000_000,
    "free_inodes": 8_000_000,
    "total_bytes": 1024 * GIB,
    "free_bytes": 512 * GIB,
}
LAW = Law(1000.0, 0.02, 0.0001)
Answering = Callable[..., Answer]


def scaling(phase: Phase, ranks: int) -> float:
    if isinstance(phase, SmallFilesPhase):
        return LAW.rate(ranks)
    if isinstance(phase, StreamPhase):
        return 1000.0 * MIB
    return 20_000.0


def saturated(phase: Phase, ranks: int) -> float:
    return 1000.0 if isinstance(phase, SmallFilesPhase) else 100.0 * MIB if isinstance(phase, StreamPhase) else 20_000.0


@pytest.fixture
def answer(tmp_path: Path) -> Answering:
    """Return a function that judges a need by a simulated run of a study; without a study only facts are known."""

    def answer(
        need: Need,
        study: Study | None = None,
        rates: Callable[[Phase, int], float] = scaling,
        noise: float = 0.01,
        blocks: int = 12,
        **facts: Any,
    ) -> Answer:
        told = {**FACTS, **facts}
        if study is None:
            return judge([need], told, Results((), 0.9, told), ())[0]
        cells = [cell for cell in study.cells(context()) if isinstance(cell, Cell)]
        run = store_run(tmp_path, cells, stored(visits_of(cells, rates, blocks, noise)), told)
        return judge([need], told, results_of(run), figures_of([run]))[0]

    return answer


def test_capacity_is_answered_from_what_the_file_system_states(answer: Answering) -> None:
    assert answer(Need("n", "files", 1e6)).verdict == PASS
    assert answer(Need("n", "files", 1e9)).verdict == FAIL
    unstated = {"total_inodes": 0, "total_bytes": 0}
    assert {answer(Need("n", kind, 1e6), **unstated).verdict for kind in ("files", "bytes")} == {UNKNOWN}
    assert answer(Need("n", "bytes", 1e9)).verdict == PASS
    assert answer(Need("n", "bytes", 1e15)).verdict == FAIL


def test_a_rate_that_is_saturated_below_the_need_fails_on_a_local_file_system_only(answer: Answering) -> None:
    need = Need("n", "files-per-hour", 20_000_000)
    assert answer(need, ClientScaling(), saturated).verdict == FAIL
    remote = answer(need, ClientScaling(), saturated, remote=True)
    assert remote.verdict == UNKNOWN and "several" in remote.limits


@pytest.mark.parametrize(
    ("best", "grows", "verdict"), [(4, False, FAIL), (1, False, FAIL), (16, False, FAIL), (16, True, UNKNOWN)]
)
def test_a_rate_fails_unless_it_still_grew_at_the_largest_number_of_ranks(
    answer: Answering, best: int, grows: bool, verdict: str
) -> None:
    def rates(_phase: Phase, ranks: int) -> float:
        return 1000.0 * ranks if grows else 1000.0 if ranks == best else 970.0

    found = answer(Need("n", "files-per-hour", 57_500_000 * 10), ClientScaling(), rates)
    assert found.verdict == verdict, found
    assert ("16 ranks of one node were not faster than fewer" in found.limits) == (verdict == FAIL)


def test_too_few_runs_of_the_largest_number_of_ranks_ask_for_a_larger_budget(answer: Answering) -> None:
    def rates(_phase: Phase, ranks: int) -> float:
        return 1000.0 if ranks == 4 else 950.0

    found = answer(Need("n", "files-per-hour", 1e9), ClientScaling(), rates, noise=0.5, blocks=5)
    assert found.verdict == UNKNOWN and "larger --budget" in found.limits, found


def test_a_need_fails_if_growth_in_proportion_to_clients_would_not_reach_it(answer: Answering) -> None:
    need = Need("n", "clients", 100, files_per_hour_each=20_000_000)  # one client creates 3,600,000 files an hour
    found = answer(need, ClientScaling())
    assert found.verdict == FAIL and "100 clients would reach only" in found.limits
    assert answer(replace(need, files_per_hour_each=3_000_000), ClientScaling()).verdict != FAIL
    grows = answer(need, ClientScaling(), lambda _phase, ranks: 1000.0 * ranks, remote=True)
    assert grows.verdict != FAIL, "more ranks of one client may do more"
    assert answer(need, ClientScaling(), saturated, remote=True).verdict == FAIL


def test_an_interval_that_contains_the_need_gives_no_verdict(answer: Answering) -> None:
    need = Need("n", "bandwidth", 100.0 * MIB, operation="write")
    assert answer(need, Stream(), saturated, noise=0.2).verdict == UNKNOWN


def test_too_few_runs_for_an_interval_still_show_their_rate(answer: Answering) -> None:
    found = answer(Need("n", "files-per-hour", 2_000_000), ClientScaling(), blocks=1)
    assert found.verdict == UNKNOWN
    assert "files an hour" in found.found and "1 run, too few for an interval" in found.found


def test_a_need_that_the_run_did_not_measure_names_the_command_that_does(tmp_path: Path) -> None:
    cells = [cell for cell in MetadataOps().cells(context()) if isinstance(cell, Cell)]
    run = store_run(tmp_path, cells, stored(visits_of(cells, scaling, 12, 0.01)), FACTS)
    need = Need("n", "bandwidth", 100.0 * MIB, operation="write")
    (found,) = judge([need], FACTS, results_of(run), figures_of([run]), command="strakes accept n.toml /d")
    assert (found.verdict, found.limits) == (UNKNOWN, "To decide it: strakes accept n.toml /d")


def test_unmeasured_numbers_of_clients_get_a_predicted_verdict(answer: Answering) -> None:
    near = answer(Need("n", "clients", 100, files_per_hour_each=20_000), ClientScaling())
    assert near.verdict == PREDICTED_PASS and near.forecast and "with 100 clients" in near.found
    many = answer(Need("n", "clients", 100, files_per_hour_each=3_000_000), ClientScaling(), saturated)
    assert many.verdict == PREDICTED_FAIL
    assert answer(Need("n", "clients", 8, files_per_hour_each=20_000), ClientScaling()).verdict == PASS
    assert answer(Need("n", "clients", 8, files_per_hour_each=20_000_000), ClientScaling()).verdict == FAIL


def test_a_measurement_with_more_clients_proves_nothing_about_fewer(answer: Answering) -> None:
    # The simulated system creates 2,870 files a second with 3 clients and 3,700 with 4.
    need = Need("n", "clients", 3, files_per_hour_each=3600 * 2950 / 3)
    assert answer(need, ClientScaling()).verdict not in (PASS, FAIL)
    between = answer(Need("n", "clients", 5, files_per_hour_each=20_000), ClientScaling())
    assert between.verdict == PREDICTED_PASS and "exactly that many" in between.limits


def test_the_forecast_equals_the_one_of_strakes_predict(answer: Answering) -> None:
    answered = answer(Need("n", "clients", 100, files_per_hour_each=20_000), ClientScaling(), saturated)
    (figure,) = forecast_figures(figures_of([Store().open("latest")]), parse_asked("clients=100"), Stated())
    assert figure.forecast is not None
    said = answered.found.replace(" files a second", "")
    assert f"{figure.forecast.median:,.0f} [{figure.forecast.low:,.0f} - {figure.forecast.high:,.0f}" in said


def test_ranks_of_one_node_of_a_network_file_system_are_not_clients(answer: Answering) -> None:
    need = Need("n", "clients", 8, files_per_hour_each=20_000_000)
    assert answer(need, ClientScaling(), remote=True).verdict in (UNKNOWN, PREDICTED_FAIL)


def test_a_rate_passes_if_its_interval_lies_above_the_need(answer: Answering) -> None:
    passed = answer(Need("n", "files-per-hour", 2_000_000), ClientScaling())
    assert passed.verdict == PASS and passed.evidence
    assert answer(Need("n", "operations-per-s", 500, operation="file-create"), MetadataOps()).verdict == PASS
    assert answer(Need("n", "bandwidth", 500.0 * MIB, operation="read"), Stream()).verdict == PASS


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[[need]]\nkind = 'speed'\nat_least = 1", "speed"),
        ("[[need]]\nkind = 'files'", "at_least"),
        ("[[need]]\nkind = 'files'\nat_least = 'many'", "many"),
        ("[[need]]\nkind = 'files'\nat_least = 1\ncolour = 2", "colour"),
        ("[[need]]\nkind = 'bandwidth'\nat_least = '1GiB/s'\noperation = 'seek'", "seek"),
        ("[[need]]\nkind = 'clients'\nat_least = 5", "files_per_hour_each"),
        ("[[need]]\nkind = 'clients'\nat_least = 0\nfiles_per_hour_each = 1", "above 0"),
        ("[[need]]\nkind = 'files'\nat_least = 1e300", "at most"),
        ("[[need]]\nkind = 'clients'\nat_least = 64.5\nfiles_per_hour_each = 1", "a whole number"),
        ("[[need]]\nkind = 'bandwidth'\nat_least = 5\noperation = 'read'", "needs a unit"),
        ("[[need]]\nkind = 'bandwidth'\nat_least = '5GiB'\noperation = 'read'", "not a valid rate"),
        ("title = 'x'", "no [[need]] table"),
        ("need = 3", "no [[need]] table"),
        ("wish = 3", "wish"),
        ("[[need]", "TOML"),
    ],
)
def test_an_invalid_need_is_refused_and_named(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "needs.toml"
    file.write_text(text)
    with pytest.raises(BadInputError) as caught:
        needs_from_toml(file)
    assert fault in str(caught.value) and str(file) in caught.value.where


def test_verdicts_are_printed_and_stored_although_other_files_cannot_be_written(
    strakes: StrakesRunner, tmp_path: Path
) -> None:
    needs = tmp_path / "needs.toml"
    needs.write_text("[[need]]\nkind = 'bytes'\nat_least = '1KiB'\n")
    done = strakes("accept", needs, tmp_path, "--budget", "3s", "--json", "/dev/full", "--html", "/dev/full", "-q")
    assert done.returncode == 3 and "\nPASS     bytes: 1 KiB\n" in done.stdout, done.stdout
    assert "the report could not be written" in done.stderr and "the result cannot be written" in done.stderr
    again = strakes("report", "latest", "--json", "/dev/full")
    assert again.returncode == 3 and "How fast it is" in again.stdout
    assert "\nPASS     bytes: 1 KiB\n" in strakes("report", "latest").stdout
    needs.write_text("[[need]]\nkind = 'bytes'\nat_least = '900TiB'\n")
    assert strakes("accept", needs, "/", "--from", "latest").returncode == 2
    failed = strakes("accept", needs, "--from", "latest", "--json", "/dev/full")
    assert failed.returncode == 1 and failed.stdout.split("\n\n")[1].startswith("FAIL")
    assert "the result cannot be written" in failed.stderr
    forecast = strakes("predict", "latest", "--at", "clients=4", "--json", "/dev/full")
    assert forecast.returncode == 3 and forecast.stdout and "the result cannot be written" in forecast.stderr
    kept = Path(forecast.stderr.split("copy it from ")[1].strip())
    assert isinstance(json.loads(kept.read_text()), dict)


def test_the_warnings_of_a_run_come_before_its_verdicts() -> None:
    warnings = (RunWarning("short-phases", "t", "r"), RunWarning("background-load", "Others ran.", "Stop them."))
    portrait = Portrait({}, {}, {}, "one client measured", (), (), (), (), (), warnings)
    lines = warnings_in_short(portrait, 90)
    assert lines == ["Others ran. Stop them.", "Keep in mind: Phases were too short for a sustained rate."]
    assert render(to_document("t", "latest", ()), lines).splitlines()[2:4] == lines


def test_a_run_that_does_not_describe_its_file_system_answers_no_need(strakes: StrakesRunner, tmp_path: Path) -> None:
    needs = tmp_path / "needs.toml"
    needs.write_text("[[need]]\nkind = 'bytes'\nat_least = '1KiB'\n")
    assert strakes("import", ROOT / "tests" / "interop" / "samples" / "ior-4.1.json").returncode == 0
    done = strakes("accept", needs, "--from", "latest")
    assert done.returncode == 2 and "does not describe its file system" in done.stderr
