"""``strakes runs history`` detects and dates level shifts of each measurement, and ignores noise."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from interop.conftest import MakeRun, make_run
from strakes.cli.main import run as strakes
from strakes.runs.run import Run
from strakes.survey.comparison import parse_fail_on
from strakes.survey.history_judge import History, HistoryPoint, HistorySeries, failures, judged

__all__ = ["make_run"]

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def series(values: list[float], unit: str = "B/s", cell: str = "a:write") -> HistorySeries:
    points = [
        HistoryPoint(f"run-{day}", (BEGIN + timedelta(days=day)).isoformat(), value, None, None)
        for day, value in enumerate(values)
    ]
    return HistorySeries(cell, {}, unit, tuple(points))


def judge_one(one: HistorySeries, since: datetime | None = None) -> HistorySeries:
    return judged([History("f", "study", "s", "/t", (), (one,))], since=since)[0].series[0]


def noisy(levels: list[float], each: int, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [level * chance.lognormvariate(0, 0.03) for level in levels for _ in range(each)]


def test_a_drop_is_reported_as_slower_with_its_day_and_size() -> None:
    found = judge_one(series(noisy([1000.0, 700.0], 12)))
    assert found.verdict == "SLOWER"
    (change,) = found.changes
    assert change.run == "run-12" and change.when.startswith("2026-01-13")
    assert change.ratio == pytest.approx(0.7, rel=0.05)
    # A time that grows is slower.
    assert judge_one(series(noisy([1.0, 0.6], 12), unit="s")).verdict == "FASTER"
    assert judge_one(series(noisy([0.6, 1.0], 12), unit="s")).verdict == "SLOWER"


def test_the_newest_change_decides_and_changes_before_since_are_ignored() -> None:
    partly_mended = judge_one(series(noisy([1000.0, 500.0, 800.0], 20)))
    assert (partly_mended.verdict, len(partly_mended.changes)) == ("FASTER", 2)
    assert judge_one(series(noisy([1000.0, 600.0], 12)), since=BEGIN + timedelta(days=13)).verdict == "NO CHANGE SHOWN"


def test_noise_alone_seldom_gives_a_change() -> None:
    wrong = 0
    for seed in range(40):
        many = tuple(series(noisy([1000.0], 20, seed=100 * seed + at), cell=f"c{at}:write") for at in range(10))
        wrong += any(
            one.verdict != "NO CHANGE SHOWN" for one in judged([History("f", "study", "s", "/t", (), many)])[0].series
        )
    assert judge_one(series([1e-29, 1e29] * 6)).seen_from is None
    assert wrong <= 6  # 2 are expected (5 % of 40); more than 6 have a probability of 0.5 %


@pytest.mark.parametrize(
    ("conditions", "met"),
    [
        ("slower", 1),
        ("slower:20%", 1),
        ("slower:50%", 0),
        ("faster", 0),
        ("inconclusive", 1),
        ("slower,inconclusive", 2),
    ],
)
def test_fail_on_counts_the_series_with_the_named_verdicts(conditions: str, met: int) -> None:
    both = (series(noisy([1000.0, 700.0], 12)), series([1.0, 2.0], cell="b:read"))
    assert len(failures(judged([History("f", "study", "s", "/t", (), both)]), parse_fail_on(conditions))) == met


def test_a_level_shift_of_a_repeated_survey_fails_a_nightly_job(
    make_run: MakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in range(12):
        make_run(day=day, speed=(1.0 if day < 6 else 0.5) * (1 + 0.001 * (day * 7 % 5)))
    make_run(day=12, fingerprint="1" * 16)  # a single run of another measurement
    assert strakes(["runs", "history", "survey", "--fail-on", "slower:10%"]) == 1
    said = capsys.readouterr()
    assert "12 runs, 2026-01-01 to 2026-01-12" in said.out and "SLOWER" in said.out
    assert "since 2026-01-07" in said.out and "is SLOWER since 2026-01-07" in said.err
    assert strakes(["runs", "history", "--json", "-"]) == 0
    (history,) = json.loads(capsys.readouterr().out)["histories"]
    assert len(history["runs"]) == 12
    sizes = [one for one in history["series"] if one["cell"].startswith("transfer-size")]
    assert sizes and all(len(one["points"]) == 12 and one["verdict"] == "SLOWER" for one in sizes)
    assert strakes(["runs", "history", "--since", "1d", "--fail-on", "slower"]) == 0


def test_imported_results_have_a_history_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[1] / "interop" / "samples" / "ior-max-only.txt").read_text()
    for value in (1234.5, 1200.0, 1250.0):
        (tmp_path / f"{value}.txt").write_text(text.replace("1234.50", str(value)))
        assert strakes(["import", str(tmp_path / f"{value}.txt")]) == 0
    capsys.readouterr()
    assert strakes(["runs", "history", "ior"]) == 0
    said = capsys.readouterr().out
    assert "import ior of" in said and "3 runs" in said
    assert "7 more runs" in said


def test_the_first_run_fails_only_on_inconclusive(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert strakes(["runs", "history"]) == 2 and "no run is stored" in capsys.readouterr().err
    make_run()
    assert strakes(["runs", "history", "survey", "--fail-on", "slower"]) == 0
    assert "No measurement has been repeated yet" in capsys.readouterr().out
    assert strakes(["runs", "history", "--fail-on", "inconclusive"]) == 1
    assert strakes(["runs", "history", "absent"]) == 2 and strakes(["runs", "history", "--fail-on", "sloer"]) == 2


@pytest.mark.parametrize("resemblance", [0.0, 0.5])
@pytest.mark.parametrize("runs", [14, 20])
def test_a_change_of_the_stated_detectable_size_is_detected_in_similar_series(runs: int, resemblance: float) -> None:
    chance = random.Random(runs)

    def of_the_kind(late: float) -> list[float]:
        off, values = chance.gauss(0, 1), []
        for run in range(runs):
            values.append(1000 * math.exp(0.05 * off) * (late if run >= runs - runs // 2 else 1))
            off = resemblance * off + math.sqrt(1 - resemblance**2) * chance.gauss(0, 1)
        return values

    promised = [judge_one(series(of_the_kind(1.0))).seen_from for _ in range(40)]
    told = [share for share in promised if share is not None]
    risen = sum(judge_one(series(of_the_kind(1 + share))).verdict == "FASTER" for share in told)
    fallen = sum(judge_one(series(of_the_kind(1 / (1 + share)))).verdict == "SLOWER" for share in told)
    assert len(told) > 30 and min(risen, fallen) >= 0.8 * len(told)


def test_ten_runs_show_a_large_change_among_many_figures_and_no_small_one() -> None:
    def many(levels: list[float], each: int) -> tuple[HistorySeries, ...]:
        return tuple(series(noisy(levels, each, seed=index), cell=f"c{index}:write") for index in range(50))

    steady = judged([History("f", "study", "s", "/t", (), many([1000.0], 10))])[0].series
    assert {one.verdict for one in steady} == {"NO CHANGE SHOWN"} and min(one.seen_from or 0 for one in steady) > 0.1
    fallen = judged([History("f", "study", "s", "/t", (), many([1000.0, 10.0], 5))])[0].series
    assert {one.verdict for one in fallen} == {"SLOWER"}


def change_amounts(run: Run, times: int) -> None:
    path = run.path / "cells.jsonl"
    cells = [json.loads(line) for line in path.read_text().splitlines()]
    for cell in cells:
        cell["fingerprint"] = f"{times:016}"
        for phase in cell["plan"]["phases"]:
            phase |= {key: phase[key] * times for key in ("block_bytes", "items") if key in phase}
            if "seconds" in (phase.get("stop") or {}):
                phase["stop"]["seconds"] *= times
    path.write_text("".join(json.dumps(cell) + "\n" for cell in cells))


def test_runs_with_other_amounts_have_separate_series(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(3):
        make_run(day=day)
    for day in (3, 4):
        change_amounts(make_run(day=day), 4)
    change_amounts(make_run(day=5), 2)
    change_amounts(alone := make_run(day=6), 64)
    newest = make_run(day=7)
    target = newest.manifest["target"]
    assert strakes(["runs", "history", target, "--json", "-"]) == 0
    (history,) = json.loads(capsys.readouterr().out)["histories"]
    sizes: dict[str, list[int]] = {}
    for one in history["series"]:
        sizes.setdefault(one["cell"], []).append(len(one["points"]))
    assert {tuple(each) for each in sizes.values()} == {(2, 5)} and history["left_out"] == [alone.id]
    assert strakes(["runs", "history", "survey"]) == 0
    said = capsys.readouterr().out
    assert f"--like {newest.id}" in said and f"no other run did similar amounts of work: {alone.id}" in said
