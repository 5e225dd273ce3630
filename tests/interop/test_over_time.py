"""``strakes export --over-time``: the latencies of every second, in each format that supports them."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest
from jsonschema import Draft202012Validator
from prometheus_client.openmetrics import parser as openmetrics_parser

from interop.conftest import LATENCY_COLUMNS, MakeRun, latency_rows
from strakes.cli.main import run as strakes
from strakes.interop.exports.over_time import COLUMNS
from strakes.schemas import load_schema

SECONDS = 4


def exported(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert strakes(["export", *words]) == 0
    return capsys.readouterr().out


def test_csv_has_a_row_per_visit_kind_of_call_and_second(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(seconds=SECONDS)
    table = list(csv.DictReader(exported(capsys, "--format", "csv", "--over-time").splitlines()))
    assert list(table[0]) == list(COLUMNS)
    assert len(table) == len(run.visits) * (SECONDS + 1)
    visit = run.visits[3]
    mine = [row for row in table if int(row["visit"]) == visit.visit]
    for call, wanted in latency_rows(SECONDS).items():
        rows = [[float(row[name]) for name in LATENCY_COLUMNS] for row in mine if row["call"] == call]
        assert rows == wanted
    assert {float(row["origin_unix_s"]) for row in mine} == {visit.samples[0].origin_unix_s}
    assert {row["row_s"] for row in mine} == {"1.0"}


def test_a_phase_with_two_figures_is_exported_once(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(seconds=SECONDS)
    table = list(csv.DictReader(exported(capsys, "--format", "csv", "--over-time").splitlines()))
    keys = [(row["cell"], row["visit"], row["call"], row["t_s"]) for row in table]
    assert len(keys) == len(set(keys))


def test_parquet_has_the_same_rows_with_types(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(seconds=SECONDS)
    path = tmp_path / "latencies.parquet"
    assert strakes(["export", "--format", "parquet", "--over-time", "-o", str(path)]) == 0
    table = list(csv.DictReader(exported(capsys, "--format", "csv", "--over-time").splitlines()))
    with duckdb.connect() as connection:
        stored = connection.execute("SELECT visit, t_s, p99_s FROM read_parquet(?)", [str(path)]).fetchall()
    assert stored == [(int(row["visit"]), float(row["t_s"]), float(row["p99_s"])) for row in table]


def test_openmetrics_has_timestamps_and_is_accepted_by_prometheus(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(seconds=SECONDS)
    text = exported(capsys, "--format", "openmetrics", "--over-time")
    (family,) = openmetrics_parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    assert family.name == "strakes_latency_over_time_seconds"
    assert len(family.samples) == len(run.visits) * (SECONDS + 1) * 4
    first = run.visits[0].samples[0].origin_unix_s
    of_first = [
        (round(float(sample.timestamp) - first), sample.value)
        for sample in family.samples
        if first < float(sample.timestamp) < first + 60
        and (sample.labels["call"], sample.labels["percentile"]) == ("write", "p99")
    ]
    assert of_first == [(second, second * 0.99) for second in range(1, SECONDS + 1)]
    if promtool := shutil.which("promtool"):
        (tmp_path / "latencies.om").write_text(text)
        words = [promtool, "tsdb", "create-blocks-from", "openmetrics", "latencies.om", "blocks"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert list((tmp_path / "blocks").iterdir())


def test_json_has_latencies_over_time_without_the_option(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(seconds=SECONDS)
    document = json.loads(exported(capsys))
    Draft202012Validator(load_schema("export")).validate(document)
    assert document["visits"][0]["samples"][0]["latency_timeline"]["rows"] == latency_rows(SECONDS)


def test_a_run_of_short_phases_and_an_unsuitable_format_are_refused(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run()
    for form in ("csv", "openmetrics", "parquet"):
        capsys.readouterr()
        assert strakes(["export", "--format", form, "--over-time", "-o", str(tmp_path / form)]) == 2
        assert "2 s" in capsys.readouterr().err
        assert not (tmp_path / form).exists()
    assert strakes(["export", "--format", "ior-json", "--over-time"]) == 2
    assert "csv" in capsys.readouterr().err
