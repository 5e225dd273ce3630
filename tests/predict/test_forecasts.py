"""Forecasts from stored runs on the command line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from strakes.base.errors import BadInputError
from strakes.cli.predict import command
from strakes.interop.formats import read_file
from strakes.interop.importing import keep
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.model.record import to_record
from strakes.predict.asked import Stated, parse_asked, read_stated
from strakes.predict.forecast_text import render
from strakes.predict.forecasts import forecast_figures
from strakes.predict.gather import figures_of, scale_of
from strakes.predict.levels import FigureLevels, MeasuredLevel, Scale
from strakes.runs.run import Run
from strakes.runs.store import Store
from strakes.studies.recovery import RecoveryStudy
from studies.world import cells_of, stored, visits_of

MDTEST_RUNS = Path(__file__).parent / "mdtest"


@pytest.fixture
def small_files(store_run: Callable[..., Run]) -> Run:
    return store_run("20260101-000000-small-files")


def call(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_more_clients_of_a_local_file_system_are_ranks_of_its_node(small_files: Run) -> None:
    assert "with 1 client, 100 ranks" in call(small_files.id, "--at", "clients=100")


def test_every_session_of_libcephfs_is_a_client() -> None:
    def cell(backend: Literal["posix", "cephfs"]) -> Cell:
        phase = MetadataPhase("make", "file-create", "unique", 8, backend=backend)
        return Cell("namespace-scaling", "key", {"metadata_targets": 2}, Plan(4, (phase,), 1), ())

    sessions, mount = (scale_of(each, each.settings) for each in (cell("cephfs"), cell("posix")))
    assert sessions == Scale(clients=4, ranks=4, mdts=2, osts=0)
    assert mount == Scale(clients=1, ranks=4, mdts=2, osts=0)


def levels_of(*told: tuple[int, float | None, bool]) -> FigureLevels:
    """Return a figure; each triple is a level: clients, requests per operation, whether a cache answered."""
    levels = tuple(
        MeasuredLevel(Scale(clients, clients), 6.0, 0.05, requests=requests, from_cache=from_cache)
        for clients, requests, from_cache in told
    )
    return FigureLevels("namespace-scaling", "file-stat", "op/s", {}, levels)


def test_levels_answered_partly_from_a_cache_are_left_out() -> None:
    def left_out(*told: tuple[int, float | None, bool]) -> list[int]:
        return [level.scale.clients for level in levels_of(*told).left_out]

    assert left_out((1, 0.84, False), (2, 1.17, False), (4, 1.2, False)) == [1]
    assert left_out((1, 1.1, False), (2, 1.17, False), (4, 1.2, False)) == []
    assert left_out((1, None, True), (2, None, False), (4, None, False)) == [1]
    assert left_out((1, None, True), (2, None, True)) == [] and left_out((1, None, False), (2, 1.2, False)) == []


def test_a_rate_twenty_times_that_of_two_clients_is_attributed_to_the_cache() -> None:
    rates = {1: 97_807.0, 2: 446.0}
    levels = tuple(MeasuredLevel(Scale(clients, clients), math.log(rate), 0.2) for clients, rate in rates.items())
    figure = FigureLevels("namespace-scaling", "file-stat", "op/s", {}, levels)
    assert [level.scale.clients for level in figure.left_out] == [1]
    assert not FigureLevels("recovery", "first-client", "s", {}, levels).left_out


def test_levels_left_out_are_reported_with_the_reason() -> None:
    figure = levels_of((1, 0.84, False), (2, 1.17, False), (4, 1.2, False))
    said = render(forecast_figures([figure], parse_asked("clients=8"), Stated()))
    assert "not used: 403 op/s with 1 client, 1 rank" in said


def recovery(run: Run, blocks: int) -> tuple[FigureLevels, ...]:
    cells = cells_of(RecoveryStudy(), file_system="fuse.ceph-fuse")
    visits = stored(visits_of(cells, lambda phase, ranks: 10.0, blocks, 0.01))
    for name, values in (("cells", cells), ("visits", visits)):
        (run.path / f"{name}.jsonl").write_text("".join(json.dumps(to_record(each)) + "\n" for each in values))
    return figures_of([Run(run.path)])


def test_figures_of_measures_other_than_the_rate_are_forecast(small_files: Run) -> None:
    figures = recovery(small_files, blocks=4)
    assert [figure.settings["who"] for figure in figures] == ["first client", "median client", "last client"]
    assert all({level.scale.clients for level in figure.levels} == {1, 10, 50, 200} for figure in figures)


def test_a_forecast_for_another_number_of_metadata_targets_is_unknown_with_a_reason(
    small_files: Run, tmp_path: Path
) -> None:
    document = tmp_path / "forecast.json"
    call(small_files.id, "--at", "ranks=64", "--at", "mdts=4", "--json", str(document))
    figures = json.loads(document.read_text())["figures"]
    assert json.loads(document.read_text())["asked"] == {"ranks": 64, "mdts": 4}
    assert figures and all(figure["forecast"] is None and figure["unknown_because"] for figure in figures)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("clients", "unknown value"),
        ("clients=0", "not a whole number"),
        ("clients=1,clients=2", "twice"),
        ("clients=8,ranks=4", "fewer ranks than clients"),
        ("files=8_0", "not a whole number"),
        ("link=1GB/s", "unknown value"),
        ("clients=2,nodes=2", "twice"),
    ],
)
def test_a_size_that_makes_no_sense_is_refused(text: str, what: str) -> None:
    with pytest.raises(BadInputError, match=what):
        parse_asked(text)


def test_numbers_can_be_written_with_suffixes() -> None:
    for text in ("1G", "1000M", "1000000000"):
        assert parse_asked(f"files={text}").counts == {"files": 10**9}
    assert parse_asked("clients=2k,mdts=3").counts == {"clients": 2000, "mdts": 3}


@given(st.text(max_size=40))
def test_arbitrary_text_is_a_size_or_is_refused(text: str) -> None:
    with suppress(BadInputError):
        assert parse_asked(text).counts


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[limits.mdt]\nspeed = 3\n", "speed is not known"),
        ("[limits.mdt]\noperations_per_s = -1\n", "not above zero"),
        ("[limits.mdt]\noperations_per_s = 1e300\n", "too large"),
        ("[limits.mdt]\noperations_per_s = nan\n", "not a number"),
        ("[limits.mdt]\noperations_per_s = true\n", "not a number"),
        ("[limits.mdt]\noperations_per_s = '40GB/s'\n", "not a valid number"),
        ("[limits.link]\nbytes_per_s = 12\n", "needs a unit"),
        ("[limits.link]\nbytes_per_s = '12GB'\n", "not a valid rate"),
        ("[limits.mdt]\n", "contains no limit"),
        ("", "contains no limit"),
        ("limits = 3\n", "contains no limit"),
        ("[limits.mdt]\noperations_per_s = 3\n[other]\n", "'other' is not known in this file"),
        ("[limits.mdt\n", "not valid TOML"),
    ],
)
def test_limits_that_make_no_sense_are_refused(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "system.toml"
    file.write_text(text)
    with pytest.raises(BadInputError) as caught:
        read_stated(file)
    assert what in str(caught.value)


def test_stated_numbers_and_rates_are_read_as_data_sheets_write_them(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    for operations, rate, links in (("40000", "12GB/s", 12e9), ('"40k"', "100Gb/s", 12.5e9)):
        file.write_text(f'[limits.mdt]\noperations_per_s = {operations}\n[limits.link]\nbytes_per_s = "{rate}"\n')
        stated = read_stated(file)
        assert stated.of("op/s") == {"mdts": 40000.0} and stated.of("B/s") == {"links": links}


MDTEST = """-- started at 11/20/2026 10:00:00 --

mdtest-4.1.0 was launched with {ranks} total task(s) on {ranks} node(s)
Command line used: mdtest '-n' '1000' '-i' '3' '-u' '-d' '/mnt/lustre/md'
Path                : /mnt/lustre/md
FS                  : 1.0 TiB   Used FS: 1.0%   Inodes: 100.0 Mi   Used Inodes: 0.1%
{ranks} tasks, {items} files/directories

SUMMARY rate (in ops/sec): (of 3 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                 {rate:.3f}     {rate:.3f}    {rate:.3f}  0.0
-- finished at 11/20/2026 10:01:00 --
"""


def test_results_of_other_tools_are_forecast(tmp_path: Path) -> None:
    runs: list[Run] = []
    for ranks in (1, 2, 4):
        file = tmp_path / f"mdtest-{ranks}.out"
        file.write_text(MDTEST.format(ranks=ranks, items=1000 * ranks, rate=700.0 * ranks**0.9))
        runs += keep(file, read_file(file), Store())
    (created,) = figures_of(runs)
    assert created.name == "file creation, items each 1,000, mdtest (imported)"
    assert [level.scale for level in created.levels] == [Scale(n, n, osts=0) for n in (1, 2, 4)]
    (each,) = forecast_figures([created], parse_asked("clients=16"), Stated())
    assert each.forecast is not None and each.forecast.low < 700 * 16**0.9 < each.forecast.high


def test_superlinear_growth_of_a_published_beegfs_series_is_not_extrapolated() -> None:
    runs = [run for path in sorted(MDTEST_RUNS.glob("*.txt")) for run in keep(path, read_file(path), Store())]
    forecasts = forecast_figures(figures_of(runs), parse_asked("ranks=128"), Stated())
    (created,) = (each for each in forecasts if each.figure.operation == "file-creation")
    assert created.forecast is not None and created.forecast.low < 166_000 < created.forecast.median < 300_000
    assert "grow faster than linearly" in " ".join(created.notes)
