"""The yardstick of forecasts finds the right pairs, and its rules are exact on systems that follow them."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest
from bench.prediction import recovery, speed
from bench.prediction.bounds import growths, one_for_each, repeated
from bench.prediction.ideal import find_bound, probable_parts
from bench.prediction.io500 import find_pairs, judge, read_submissions, summarise
from bench.prediction.made_up import PARTS, Size, make_tasks, read_sheet
from bench.prediction.parts import Parts
from bench.prediction.real import forecast_again, keep_levels, read_results, render
from bench.prediction.simple import RULES
from bench.prediction.small import as_shared, make_small_tasks

from strakes.predict.gather import figures_of
from strakes.predict.scale import Scale
from strakes.store.run import Run

RUNS = Path(__file__).parent.parent / "store" / "runs"


def entry(inst: str, nodes: object, rate: float, year: object = 2023, **more: float) -> dict[str, object]:
    phases = {"ior_easy_write": rate, "find": 5.0, **more}
    return {"inst": inst, "sys": "S", "fs": "Lustre ", "year": str(year), "nodes": nodes, "tasks": 10, "ph": phases}


def write(tmp_path: Path, *entries: dict[str, object]) -> Path:
    path = tmp_path / "submissions.json"
    path.write_text(json.dumps(entries))
    return path


def test_a_pair_is_the_smallest_and_the_largest_of_one_system_in_years_close_together(tmp_path: Path) -> None:
    path = write(
        tmp_path, entry("A", 10, 1.0), entry("A", 20, 1.5), entry("a ", 40, 2.0, 2024), entry("A", 80, 9.0, 2026)
    )
    (pair,) = find_pairs(read_submissions(path))
    assert (pair.small.nodes, pair.large.nodes, pair.phases) == (10, 40, ("ior_easy_write",))


def test_entries_that_do_not_say_how_large_they_were_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, entry("A", None, 1.0), entry("A", 10, 1.0, "E8"), entry("A", 12, 1.0))
    assert len(read_submissions(path)) == 1


def test_creates_of_years_whose_sources_disagree_do_not_count(tmp_path: Path) -> None:
    path = write(
        tmp_path, entry("A", 10, 1.0, 2019, mdtest_easy_write=1.0), entry("A", 20, 1.0, 2019, mdtest_easy_write=2.0)
    )
    assert find_pairs(read_submissions(path))[0].phases == ("ior_easy_write",)


@pytest.mark.parametrize(("name", "growth"), [("constant", 1.0), ("linear", 4.0), ("power law, others' exponent", 2.0)])
def test_each_rule_is_exact_on_systems_that_follow_it(name: str, growth: float, tmp_path: Path) -> None:
    systems = [entry(inst, nodes, rate) for inst in "ABCD" for nodes, rate in ((10, 3.0), (40, 3.0 * growth))]
    errors = judge(find_pairs(read_submissions(write(tmp_path, *systems))), RULES[name])
    factor, _ = summarise(errors)
    assert factor == pytest.approx(1.0)
    assert len(errors) == 4


@pytest.mark.more
def test_who_knows_how_systems_were_drawn_names_most_of_them_rightly() -> None:
    tasks = make_tasks(8, seed=12)
    bound = find_bound(tasks, [probable_parts(task, seed) for seed, task in enumerate(tasks)])
    assert bound.right >= 0.5 and bound.wrong <= 0.05


def test_what_has_no_forecast_or_was_not_measured_counts_as_missed() -> None:
    score = {"figure": "file create, manual (x)", "forecast": 90.0, "low": 80.0, "high": 99.0, "measured": 100.0}
    page = render([{"model": 2, "limit": 15, "scores": {"4": [{**score, "factor": 1.11, "covered": False}], "8": []}}])
    assert "| 15 | 4 | 6 | 1 | 0 | 1.11 |" in page and "| 15 | 8 | 6 | 0 | 0 | - |" in page
    assert "Of 12 figures 8% are within 20 %, 0% inside" in page
    afterwards = {"model": 4, "afterwards": {"of": "2", "figures": 36, "within": 32, "inside": 30}}
    page = render([afterwards])
    assert "has 32 of the 36 figures of model 2 within 20 %, and 30\ninside its intervals. It was not" in page
    assert "Not tried on this file system: model 1, model 2, model 3, model 5" in page
    assert not render([])


def test_a_later_model_is_tried_on_the_small_levels_that_were_kept() -> None:
    level = {"log_error": 0.01, "busy": {}, "from_cache": False, "requests": None, "runs": 7, "left_out": False}
    levels = [
        {**level, "scale": asdict(Scale(clients, clients, mdts, undivided=True)), "log_value": math.log(rate)}
        for clients, mdts, rate in ((1, 1, 100.0), (2, 1, 198.0), (2, 2, 200.0))
    ]
    document = {"figures": [{"figure": "file create", "unit": "op/s", "study": "x", "measured": levels, "scale": {}}]}
    score = {"figure": "file create", "measured": 390.0}
    result = {"model": 0, "limit": 15, "scores": {"4": [score], "8": [{**score, "measured": 4.0}]}}
    again = forecast_again([{**result, "small": keep_levels(document)}, result])
    assert again["afterwards"] == {"of": "0", "figures": 2, "within": 1, "inside": 1}


def test_what_many_clients_wait_is_missed_where_it_was_not_measured() -> None:
    score = {"figure": "watch, last client (x)", "forecast": 9.0, "low": 8.0, "high": 11.0, "measured": 10.0}
    page = recovery.render([{"model": 2, "scores": {"50": [{**score, "covered": True}], "60": []}}])
    assert "Model 2: of 6 figures 1 are within 20 %, 1 inside their intervals" in page
    assert not recovery.render([])


def test_directories_that_are_not_divided_are_served_by_fewer_targets() -> None:
    assert [as_shared(Size(clients, 1, 3)).mdts for clients in (1, 2, 3, 4, 8)] == [1, 2, 3, 2, pytest.approx(8 / 3)]
    task = make_small_tasks(1)[0]
    assert [(level.size.clients, level.size.mdts) for level in task.levels] == [(1, 1), (2, 1), (2, 2)]


def test_each_limit_was_judged_once_with_each_model() -> None:
    limits = [(result["model"], result["limit"]) for result in read_results() if "afterwards" not in result]
    assert len(limits) == len(set(limits))


def test_a_page_goes_on_with_what_was_computed_before_as_long_as_its_sources_are_the_same(tmp_path: Path) -> None:
    source, kept_at, made = tmp_path / "source.py", tmp_path / "parts.json", []

    def part(text: str) -> list[str]:
        def make() -> list[str]:
            made.append(text)
            return [text]

        source.write_text(text)
        value: list[str] = Parts(kept_at).get("part", [source], make)
        return value

    assert [part("one"), part("one"), part("two")] == [["one"], ["one"], ["two"]]
    assert made == ["one", "two"]


def test_no_power_of_the_size_is_better_than_the_one_that_is_best_for_each_system(tmp_path: Path) -> None:
    systems = [
        entry(inst, nodes, rate, ior_hard_write=2 * rate)
        for inst, growth in (("A", 1.0), ("B", 2.0), ("C", 4.0))
        for nodes, rate in ((10, 3.0), (40, 3.0 * growth))
    ]
    rows = growths(find_pairs(read_submissions(write(tmp_path, *systems))), "nodes")
    assert one_for_each(rows, lambda row: row.pair) == pytest.approx(1.0)
    assert one_for_each(rows, lambda row: row.phase) == pytest.approx(2.0)


def test_a_submission_that_is_listed_twice_is_not_one_that_was_measured_twice(tmp_path: Path) -> None:
    twice = [entry("A", 10, rate) for rate in (1.0, 1.1)] + [entry("B", 10, 1.0), entry("B", 10, 1.0)]
    assert repeated(read_submissions(write(tmp_path, *twice))) == [[pytest.approx(1.1)]]


def test_a_sheet_states_what_no_counter_tells_within_some_ten_percent_and_of_locks_only_where_asked() -> None:
    for seed, task in enumerate(make_tasks(12, seed=3)):
        sheet, without = (read_sheet(task, seed, of_locks=of_locks) for of_locks in (True, False))
        assert set(sheet) == set(PARTS) - set(task.levels[0].busy)
        assert without == {part: stated for part, stated in sheet.items() if part != "lock"}
        assert all(0.6 < stated * task.system.demand_s[part] < 1.6 for part, stated in sheet.items())


def test_a_run_that_is_timed_has_figures_of_its_own_for_every_repetition(tmp_path: Path) -> None:
    with gzip.open(RUNS / "small-files.json.gz", "rt") as file:
        stored = json.load(file)
    run = speed.make_run(stored, tmp_path, cells=6)
    figures = figures_of([Run(tmp_path / "runs" / run)])
    assert len(Run(tmp_path / "runs" / run).cells) == 6
    assert len({figure.settings["copy"] for figure in figures}) == 3
    values = [level.log_value for figure in figures for level in figure.levels]
    assert len(set(values)) == len(values)
    result = {"run": "x", "figures": len(figures), "clock_s": 1.04, "processor_s": 2.0, "load": 0.1}
    assert speed.render([result]).endswith("| x | 9 | 1.0 | 2.0 |\n")
    assert "Other work ran" in speed.render([{**result, "load": 3.0}])
