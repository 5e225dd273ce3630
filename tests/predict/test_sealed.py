"""Forecasts of stored runs by the command line: sealed, scored, refused when touched."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from strakes.cli.predict import command
from strakes.errors import BadInputError
from strakes.findings.cell import Cell
from strakes.findings.record import to_record
from strakes.plan import MetadataPhase, Plan
from strakes.predict.asked import Stated, parse_asked, read_stated
from strakes.predict.figure_levels import FigureLevels
from strakes.predict.forecast_text import render
from strakes.predict.forecasts import forecast_figures
from strakes.predict.gather import figures_of, level_in, scale_of
from strakes.predict.scale import MeasuredLevel, Scale
from strakes.predict.sealed import open_sealed, record_so_far, score
from strakes.store import Run, Store
from strakes.studies.namespace_scaling import NamespaceScaling
from strakes.studies.recovery import RecoveryStudy
from studies.world import context, results_of, stored, visits_of

RUNS = Path(__file__).parent.parent / "store" / "runs"


@pytest.fixture
def small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a stored run of 1 to 4 ranks."""
    monkeypatch.setenv("STRAKES_STORE", str(tmp_path))
    with gzip.open(RUNS / "small-files.json.gz", "rt") as file:
        stored = json.load(file)
    directory = tmp_path / "runs" / stored["manifest"]["id"]
    directory.mkdir(parents=True)
    (directory / "run.json").write_text(json.dumps(stored["manifest"]))
    for name in ("cells", "visits", "events"):
        (directory / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in stored[name]))
    return Store().open(stored["manifest"]["id"])


def call(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_figures_of_a_run_have_a_level_for_each_number_of_ranks(small_files: Run) -> None:
    figures = figures_of([small_files])
    assert {figure.operation for figure in figures} >= {"create and write"}
    for figure in figures:
        assert [level.scale.ranks for level in figure.levels] == sorted({level.scale.ranks for level in figure.levels})
        assert all(level.log_error > 0 for level in figure.levels)


def test_figures_shared_among_processes_have_the_same_forecasts(small_files: Run) -> None:
    figures = figures_of([small_files])
    alone, shared = (
        forecast_figures(figures, parse_asked("clients=100"), Stated(), processes=number) for number in (1, 2)
    )
    assert alone == shared and any(each.forecast is not None and each.curve for each in alone)


def test_more_clients_of_a_local_file_system_are_ranks_of_its_node(small_files: Run) -> None:
    assert all(figure.local for figure in figures_of([small_files]))
    assert "with 1 client, " in call(small_files.id, "--at", "clients=100")


def test_every_session_of_libcephfs_is_a_client() -> None:
    def cell(backend: Literal["posix", "cephfs"]) -> Cell:
        phase = MetadataPhase("make", "file-create", "unique", 8, backend=backend)
        return Cell("namespace-scaling", "key", {"metadata_targets": 2}, Plan(4, (phase,), 1), ())

    sessions, mount = (scale_of(each, each.settings) for each in (cell("cephfs"), cell("posix")))
    assert sessions == Scale(clients=4, ranks=4, mdts=2)
    assert mount == Scale(clients=1, ranks=4, mdts=2)


@pytest.mark.parametrize(("backend", "told"), [("posix", True), ("cephfs", False)])
def test_the_processors_of_a_node_are_not_those_of_each_session_on_it(backend: str, told: bool) -> None:
    (whole, *_) = (cell for cell in NamespaceScaling().cells(context()) if isinstance(cell, Cell))
    phases = tuple(replace(phase, backend=backend) for phase in whole.plan.phases if isinstance(phase, MetadataPhase))
    cell = replace(whole, plan=replace(whole.plan, phases=phases))
    visits = visits_of([cell], lambda phase, ranks: 1000.0, 6, 0.01)
    measured = results_of([cell], visits).measured[0]
    level = level_in(measured, cell, measured.id.rpartition(":")[2], stored(visits), "")
    assert level is not None and ("clients" in level.busy) is told


def levels_of(*told: tuple[int, float | None, bool]) -> FigureLevels:
    """Return a figure with a level for each: clients, requests for an operation, whether memory answered."""
    levels = tuple(
        MeasuredLevel(Scale(clients, clients), 6.0, 0.05, requests=requests, from_cache=from_cache)
        for clients, requests, from_cache in told
    )
    return FigureLevels("namespace-scaling", "file-stat", "op/s", {}, levels)


def test_levels_whose_requests_did_not_reach_servers_alike_are_no_points_of_the_curve() -> None:
    def left_out(*told: tuple[int, float | None, bool]) -> list[int]:
        return [level.scale.clients for level in levels_of(*told).left_out]

    assert left_out((1, 0.84, False), (2, 1.17, False), (4, 1.2, False)) == [1]
    assert left_out((1, 1.1, False), (2, 1.17, False), (4, 1.2, False)) == []
    assert left_out((1, None, True), (2, None, False), (4, None, False)) == [1]
    assert left_out((1, None, True), (2, None, True)) == []
    assert left_out((1, None, False), (2, 1.2, False)) == []


def test_what_is_left_out_is_told_with_the_reason() -> None:
    figure = levels_of((1, 0.84, False), (2, 1.17, False), (4, 1.2, False))
    said = render(forecast_figures([figure], parse_asked("clients=8"), Stated()), None)
    assert "left out: 403 op/s with 1 client, 1 rank" in said
    assert "there servers got 0.84 requests for each operation, here 1.2." in said


def test_figures_of_another_measure_than_the_rate_are_forecast_too(small_files: Run) -> None:
    cells = [cell for cell in RecoveryStudy().cells(context(file_system="fuse.ceph-fuse")) if isinstance(cell, Cell)]
    visits = stored(visits_of(cells, lambda phase, ranks: 10.0, 4, 0.01))
    for name, values in (("cells", cells), ("visits", visits)):
        (small_files.path / f"{name}.jsonl").write_text("".join(json.dumps(to_record(each)) + "\n" for each in values))
    figures = figures_of([Run(small_files.path)])
    assert [figure.settings["who"] for figure in figures] == ["first client", "median client", "last client"]
    assert all([level.scale.clients for level in figure.levels] == [1, 10, 50, 200] for figure in figures)


def test_the_busy_share_of_a_level_is_that_of_its_busiest_server() -> None:
    (cell, *_) = (cell for cell in NamespaceScaling().cells(context()) if isinstance(cell, Cell))
    visits = visits_of([cell], lambda phase, ranks: 1000.0, 6, 0.01)
    measured = results_of([cell], visits).measured[0]
    phase = measured.id.rpartition(":")[2]
    with_shares = [replace(visit, servers_busy={phase: {"cephfs:0": 0.9, "cephfs:1": 0.2}}) for visit in stored(visits)]
    level = level_in(measured, cell, phase, with_shares, "")
    assert level is not None and level.busy["mdts"] == pytest.approx(0.9)


def test_a_sealed_forecast_is_scored_by_a_run_of_that_size(small_files: Run, tmp_path: Path) -> None:
    ranks = max(level.scale.ranks for figure in figures_of([small_files]) for level in figure.levels)
    said = call(small_files.id, "--at", f"ranks={ranks}", "--seal")
    (sealed,) = (tmp_path / "forecasts").iterdir()
    assert sealed.stem in said and "No sealed forecast has been scored yet" in said
    scored = call("score", sealed.stem, small_files.id)
    assert "inside the interval" in scored
    record = record_so_far(tmp_path)
    assert record is not None and record[0] >= 1 and record[1] < 1.2
    assert "Sealed forecasts so far" in call(small_files.id, "--at", "ranks=64")


def test_a_run_is_compared_with_the_interval_for_a_measurement_where_a_forecast_has_one() -> None:
    figure = levels_of((1, None, False), (2, None, False))
    scale = {"clients": 2, "ranks": 2, "mdts": 1, "osts": 1, "files": 0, "link": 1.0, "undivided": False}
    ends = {"median": 400.0, "low": 390.0, "high": 402.0}

    def covered(forecast: dict[str, object]) -> bool:
        entry = {"figure": figure.name, "unit": figure.unit, "scale": scale, "forecast": forecast}
        return score({"figures": [entry]}, [figure])[0].covered

    assert not covered({**ends}) and covered({**ends, "measurement": [380.0, 410.0]})


def test_a_forecast_that_was_changed_is_not_scored(small_files: Run, tmp_path: Path) -> None:
    call(small_files.id, "--at", "ranks=64", "--seal")
    (sealed,) = (tmp_path / "forecasts").iterdir()
    document = json.loads(sealed.read_text())
    document["figures"][0]["forecast"]["median"] *= 2
    sealed.write_text(json.dumps(document))
    with pytest.raises(BadInputError, match="seal of the forecast is broken"):
        open_sealed(sealed.stem, tmp_path)


def test_a_run_of_another_size_scores_nothing(small_files: Run, tmp_path: Path) -> None:
    call(small_files.id, "--at", "ranks=64", "--seal")
    (sealed,) = (tmp_path / "forecasts").iterdir()
    with pytest.raises(BadInputError, match="did not measure any figure"):
        call("score", sealed.stem, small_files.id)


def test_what_was_not_changed_is_unknown_and_the_page_and_the_document_say_so(small_files: Run, tmp_path: Path) -> None:
    page, document = tmp_path / "forecast.html", tmp_path / "forecast.json"
    said = call(small_files.id, "--at", "ranks=64,mdts=4", "--html", str(page), "--json", str(document))
    assert "UNKNOWN" in said and "metadata targets" in said
    figures = json.loads(document.read_text())["figures"]
    assert figures and all(figure["forecast"] is None and figure["unknown_because"] for figure in figures)
    assert "Unknown" in page.read_text()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("clients", "does not know"),
        ("clients=0", "not a number"),
        ("clients=1,clients=2", "twice"),
        ("clients=8,ranks=4", "fewer ranks than clients"),
        ("colour=3", "does not know"),
        ("clients=-4", "not a number"),
    ],
)
def test_a_size_that_makes_no_sense_is_refused(text: str, what: str) -> None:
    with pytest.raises(BadInputError, match=what):
        parse_asked(text)


@given(st.text(max_size=40))
def test_any_text_is_a_size_or_is_refused(text: str) -> None:
    with suppress(BadInputError):
        assert parse_asked(text).counts or parse_asked(text).link_bytes_per_s


def test_stated_limits_are_read_and_others_refused(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text('[limits.mdt]\noperations_per_s = 40000\n[limits.link]\nbytes_per_s = "12GB/s"\n')
    stated = read_stated(file)
    assert stated.of("op/s") == {"mdts": 40000.0} and stated.of("B/s") == {"links": 12e9}
    file.write_text("[limits.mdt]\nspeed = 3\n")
    with pytest.raises(BadInputError, match="speed is not known"):
        read_stated(file)
    file.write_text("[limits.mdt]\noperations_per_s = -1\n")
    with pytest.raises(BadInputError, match="not a rate above zero"):
        read_stated(file)
