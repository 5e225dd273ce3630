"""Exported runs have the figures of the run in every format, and the programs that use a format can read them."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

from interop.conftest import MakeRun
from runs.test_older_runs import RUNS, unpack
from strakes.base.foreign_text import escaped
from strakes.base.schemas import load_schema
from strakes.cli.main import run as strakes
from strakes.interop.export_openmetrics import FAMILIES, to_openmetrics
from strakes.interop.export_rows import COLUMNS, results_of
from strakes.model.record import from_record
from strakes.runs.records import Visit
from strakes.runs.store import Store

SAMPLES = Path(__file__).parent / "samples"


def parse_openmetrics(text: str) -> list[Metric]:
    return list(openmetrics_parser.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def exported(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert strakes(["export", *words]) == 0
    return capsys.readouterr().out


def import_sample(name: str) -> str:
    assert strakes(["import", str(SAMPLES / name)]) == 0
    return Store().runs()[-1].id


def test_json_has_the_whole_run_and_matches_its_schema(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run()
    document = json.loads(exported(capsys))
    Draft202012Validator(load_schema("export")).validate(document)
    assert document["manifest"]["id"] == run.id
    assert [from_record(Visit, visit) for visit in document["visits"]] == run.visits and document["findings"]["cells"]
    import_sample("ior-4.1.txt")
    imported = json.loads(exported(capsys))
    Draft202012Validator(load_schema("export")).validate(imported)
    assert imported["cells"][0]["imported"] is True


def test_csv_has_a_row_for_every_measured_value(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run()
    table = list(csv.DictReader(exported(capsys, "--format", "csv").splitlines()))
    assert list(table[0]) == list(COLUMNS)
    assert len(table) == sum(len(cell.observations) for cell in results_of(run).measured)
    for cell in results_of(run).measured[:3]:
        mine = [row for row in table if row["cell"] == cell.id]
        assert [float(row["value"]) for row in mine] == [seen.value for seen in cell.observations]
        assert cell.estimate is not None and {float(row["median"]) for row in mine} == {cell.estimate.median}
        assert json.loads(mine[0]["settings"]) == dict(cell.settings)


def test_openmetrics_are_read_by_old_and_new_parsers_of_prometheus(
    make_run: MakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run()
    text = exported(capsys, "--format", "openmetrics")
    families = {family.name: family for family in parse_openmetrics(text)}
    assert set(families) <= set(FAMILIES)
    assert families["strakes_bandwidth_bytes_per_second"].unit == "bytes_per_second"
    for cell in [cell for cell in results_of(run).measured if cell.estimate is not None][:5]:
        assert cell.estimate is not None
        values = {
            sample.labels["estimate"]: sample.value
            for family in families.values()
            for sample in family.samples
            if sample.labels.get("cell") == cell.id and "estimate" in sample.labels
        }
        assert values == {"median": cell.estimate.median, "low": cell.estimate.low, "high": cell.estimate.high}
    (info,) = families["strakes_run_info"].samples
    assert info.labels["run"] == run.id and info.labels["target"].endswith('tar"get')
    assert {family.name for family in parse_prometheus(text)} == set(families)


def test_the_next_run_continues_the_same_time_series(make_run: MakeRun) -> None:
    def series(text: str) -> set[frozenset[tuple[str, str]]]:
        return {
            frozenset({"": sample.name, **sample.labels}.items())
            for family in parse_openmetrics(text)
            for sample in family.samples
            if family.name
            in ("strakes_bandwidth_bytes_per_second", "strakes_rate_operations_per_second", "strakes_measured_runs")
        }

    assert series(to_openmetrics(make_run(day=0))) == series(to_openmetrics(make_run(day=1, speed=0.5)))


@pytest.mark.parametrize("text", ['a"b\\c\nd', "\r\t\x1b[31m", "\udcff\u202e"])
def test_any_text_is_preserved_or_escaped_as_a_label(make_run: MakeRun, text: str) -> None:
    run = make_run(host=text)
    labels = {sample.labels["host"] for family in parse_openmetrics(to_openmetrics(run)) for sample in family.samples}
    assert labels == {escaped(text).replace("\r", "\\r")}


def test_an_imported_run_is_exported_as_a_median_without_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    import_sample("ior-4.1.txt")
    families = {family.name: family for family in parse_openmetrics(exported(capsys, "--format", "openmetrics"))}
    assert {sample.labels["estimate"] for sample in families["strakes_bandwidth_bytes_per_second"].samples} == {
        "median"
    }
    assert {sample.labels["code"] for sample in families["strakes_warned_cells"].samples} == {"imported"}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_run_of_every_kind_is_exported_in_every_format_or_refused_with_a_next_step(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = unpack(path, Path(os.environ["STRAKES_STORE"]) / "runs").name
    for form in ("json", "csv", "openmetrics", "io500"):
        status = strakes(["export", run, "--format", form, "-o", str(tmp_path / form)])
        said = capsys.readouterr().err
        # Only runs with the phases of IO500 can be exported in its format.
        assert status == 0 or (status == 2 and "this run contains no" in said and form == "io500"), (form, said)
