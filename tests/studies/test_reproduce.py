"""Reproduction of a published study: its values and ours stay apart, and each omission has a reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from strakes.base.units import parse_seconds
from strakes.cli.main import run as strakes
from strakes.model.literature import SOURCES, published_values, replication_disagreement, replication_table, scale
from strakes.model.portrait import Portrait, SkippedCell
from strakes.report.html import render_html
from strakes.report.reproduced import render, rows, rules, to_document
from strakes.studies.population import Population
from strakes.studies.registry import study_named
from strakes.studies.stream import Stream
from strakes.studies.study import Study
from strakes.survey.analysis_answers import answers_of, judged, questions_of
from studies.world import flat, measured


def portrait_of(study: Study) -> Portrait:
    results = measured(study, flat)
    cells = tuple(one.estimate for one in results.measured if one.estimate is not None)
    figures = tuple(study.figures(results))
    run = {"id": "20260101-000000-x-0000"}
    return Portrait(
        run,
        {"file_system": "xfs", "cpus": 2},
        {},
        "one client",
        (),
        cells,
        (*study.findings(results), *judged(study.claims(results), results)),
        answers_of(questions_of([study], results), results),
        figures,
        (),
    )


def test_published_values_are_shown_with_ours_but_not_mixed_with_them() -> None:
    portrait = portrait_of(Stream())
    values = published_values(portrait, "S3")
    write = next(one for one in values if one.published == 214e6)
    assert write.at == "1 KiB" and "one client" in write.label
    assert [round(cell.median / 2**20, -1) for _, cell in write.own] == [1000, 1000]
    own = {cell.median for cell in portrait.cells}
    assert own.isdisjoint(one.published for one in values)


def test_a_published_value_that_was_not_measured_says_so() -> None:
    values = published_values(portrait_of(Population()), "S3")
    assert values and not any(one.own for one in values)
    found = rows(SOURCES["S3"], [portrait_of(Population())])
    value = next(row for row in found if "10 million and 40 million files" in row.published)
    assert (value.here, value.grade, value.decides) == ("not measured", "-", "a larger --budget")
    bend = next(row for row in found if "creating with" in row.here)
    assert re.fullmatch(r"[\d.]+ \[[\d.]+-[\d.]+\] times [\d,]+ files", bend.ratio)


def test_a_statement_that_cannot_be_measured_here_has_the_reason() -> None:
    portrait = portrait_of(study_named("processes-per-node"))
    impossible = SkippedCell("processes-per-node", {"on": "one data target"}, "no single data target")
    too_long = SkippedCell("processes-per-node", {"ranks": 64}, "a comparison needs --budget 24m")
    cells = tuple(cell for cell in portrait.cells if "on" not in cell.settings)
    findings = tuple(one for one in portrait.findings if "bottleneck" not in one.id)
    portrait = replace(portrait, cells=cells, findings=findings, skipped=(impossible, too_long))
    (row,) = (row for row in rows(SOURCES["S1"], [portrait]) if "link of one node" in row.published)
    assert (row.here, row.decides) == ("not measured", "no single data target")


def test_a_published_statement_is_printed_once_with_the_verdict_here() -> None:
    text = render(SOURCES["S5"], [portrait_of(study_named("access-patterns"))], [])
    assert len(re.findall("the number of requests", text)) == 1
    document = to_document(SOURCES["S5"], [portrait_of(study_named("access-patterns"))])
    row = next(row for row in document["table"] if "number of requests" in row["published"])
    assert (row["here"], row["grade"], row["decides"]) == ("holds", "sure", "")


def test_s1_ends_with_its_rules_for_this_system() -> None:
    told = rules(SOURCES["S1"], [portrait_of(study_named("transfer-size"))])
    assert len(told) == len(SOURCES["S1"].rules)
    assert (
        told[0].startswith("1. Transfer size (published: 64 KiB to 8 MiB): buffered writes: 4 KiB")
        and "(alike)" in told[0]
    )
    assert told[1] == "2. Data per process (published: 64 MiB to 1 GiB): not measured."


def test_an_undecided_statement_names_the_blocks_and_the_budget_to_decide_it() -> None:
    study = study_named("transfer-size")
    results = measured(study, flat, noise=0.5)
    answers = answers_of(questions_of([study], results), results)
    portrait = replace(portrait_of(study), answers=answers, run={"id": "r", "options": {"budget_s": 60.0}})
    open_ = [row for row in rows(SOURCES["S1"], [portrait]) if row.grade == "-" and row.ratio]
    assert open_
    for row in open_:
        match = re.fullmatch(r"(\d+) blocks \(--budget (\w+)\)", row.decides)
        assert match and int(match[1]) > 12 and parse_seconds(match[2]) >= 90


def test_every_statement_and_rule_names_answers_or_findings_of_its_studies() -> None:
    for source in SOURCES.values():
        assert {study_named(name).source for name in (*source.studies, source.grown) if name} == {source.name}
        names = [prefix + name for name in (*source.studies, source.grown) if name for prefix in ("", "against:")]
        for patterns in (*source.published.values(), *source.rules.values()):
            assert all(any(pattern.startswith(f"{name}-") for name in names) for pattern in patterns), patterns


def test_published_and_own_scales_are_listed() -> None:
    lines = {what: (theirs, ours) for what, theirs, ours in scale(SOURCES["S3"], [portrait_of(Population())])}
    assert lines["clients"][0].startswith("5") and lines["clients"][1] == "one client"
    assert lines["files"][1].startswith("up to ")


@pytest.mark.parametrize("source", SOURCES)
def test_the_scale_of_every_study_of_a_source_is_listed(source: str) -> None:
    portraits = [portrait_of(study_named(name)) for name in SOURCES[source].studies]
    assert len(scale(SOURCES[source], portraits)) == len(SOURCES[source].scale)


def test_every_omission_has_a_reason() -> None:
    text = render(SOURCES["S2"], [portrait_of(study_named("metadata-ops"))], [])
    assert "recover against the number of clients" in text
    assert all(one.why for source in SOURCES.values() for one in source.omitted)


def test_the_arithmetic_of_s2_is_computed_again_and_its_contradiction_reported() -> None:
    assert [round(row.megabytes) for row in replication_table()] == [24, 244, 2441, 24414]
    assert replication_table()[-1].predicted_s == pytest.approx(122, rel=0.01)
    assert all(45 < row.implied_mb_per_s < 55 for row in replication_table())
    assert "60 MB/s" in replication_disagreement() and "47 to 50" in replication_disagreement()


def test_the_command_prints_published_and_own_values_and_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("strakes.cli.study._LEAST_S", 3.0)
    directory = tmp_path / "measured"
    directory.mkdir()
    assert strakes(["study", "reproduce", "s2", str(directory), "--budget", "3s", "--quiet"]) == 0
    assert "Left out, and why" in " ".join(capsys.readouterr().out.split()) and not list(directory.iterdir())
    assert strakes(["study", "reproduce", "S4", str(directory), "--budget", "3s", "--quiet"]) == 2


def test_the_report_of_a_reproduction_has_separate_columns_for_published_and_own_values() -> None:
    portrait = replace(portrait_of(Stream()), run={"id": "r", "kind": "reproduce", "name": "S3 stream small-files"})
    page = render_html(portrait)
    assert 'class="n theirs"' in page and "published by S3" in page
    assert re.search(r">one client</td><td [^>]*>204.MiB/s</td><td>[^<]*</td><td class=\"n\">(1,0|9)", page)
    assert 'id="published"' not in render_html(portrait_of(Stream()))


def test_comparisons_of_two_file_systems_are_omitted_only_if_there_is_one() -> None:
    portrait = portrait_of(study_named("metadata-ops"))
    both = replace(portrait, target={**portrait.target, "against": {"path": "/b"}})
    lacking, whole = ([one["what"] for one in to_document(SOURCES["S2"], [one])["omitted"]] for one in (portrait, both))
    assert "two metadata devices" in lacking and "two metadata devices" not in whole


def test_a_population_is_not_measured_in_turn_with_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert strakes(["study", "reproduce", "S3", str(tmp_path), "--against", str(tmp_path)]) == 2
    assert "cannot alternate" in capsys.readouterr().err
