"""Comparisons of stored runs: verdicts on equal work, refusal of different work, and the exit status by --fail-on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from strakes.base.errors import BadInputError
from strakes.cli.compare import command
from strakes.model.cell import Cell, Measure
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.runs.run import Run
from strakes.stats.ratios import Verdict, between_runs, judge
from strakes.survey.compare_runs import compare_runs
from strakes.survey.comparison import Condition, failures, parse_fail_on
from strakes.survey.comparison_text import render
from studies.world import store_run, stored, visits_of

MakeRun = Callable[..., Run]


def plan_of(items: int = 100, directory: Any = "unique") -> Plan:
    return Plan(
        2,
        (
            MetadataPhase("create", "file-create", directory, items),
            MetadataPhase("stat", "file-stat", directory, items),
        ),
    )


def cell_of(plan: Plan, key: str = "plan", **settings: Any) -> Cell:
    measures = tuple(Measure(phase.name, "operations_per_s", {"phase": phase.name}) for phase in plan.phases)
    return Cell("plan", key, {"ranks": plan.ranks, **settings}, plan, measures)


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Return a function that stores a run of the given cells and opens it.

    ``rate`` is in operations/s, ``noise`` its relative scatter, ``drift`` the loss per block, ``at`` the Unix time of
    the start, ``load`` the load average before it, and ``client_s`` the duration of the fixed work on the client.
    """
    (tmp_path / "target").mkdir()

    def make(
        cells: Sequence[Cell],
        rate: float = 1000.0,
        blocks: int = 12,
        noise: float = 0.01,
        at: float = 0.0,
        drift: float = 0.0,
        load: float = 0.0,
        client_s: float | None = None,
        kind: str = "run",
    ) -> Run:
        visits = []
        for visit in stored(visits_of(cells, lambda phase, ranks: rate, blocks, noise)):
            slowed = (1 - drift) ** visit.block
            samples = tuple(replace(one, operations_per_s=one.operations_per_s * slowed) for one in visit.samples)
            started_unix_s = at + visit.visit
            visits.append(replace(visit, client_s=client_s, samples=samples, started_unix_s=started_unix_s))
        environment = {"host": "n1", "cpus": 2, "load_average": [load, load, load]}
        return store_run(tmp_path / "target", cells, visits, {}, kind=kind, environment=environment, studies=["plan"])

    return make


def test_a_much_slower_run_is_slower_and_an_equal_one_inconclusive(make_run: MakeRun) -> None:
    a, b, c = (make_run([cell_of(plan_of())], rate, at=at) for rate, at in ((1000.0, 0.0), (600.0, 1e4), (1000.0, 2e4)))
    slower = compare_runs([a], [b], margin=0.05, confidence=0.9)
    assert slower.overall.verdict is Verdict.SLOWER and {cell.verdict for cell in slower.cells} == {Verdict.SLOWER}
    assert all(cell.low is not None and cell.low <= 0.6 * 1.02 for cell in slower.cells)
    same = compare_runs([a], [c], margin=0.05, confidence=0.9)
    assert {cell.verdict for cell in same.cells} == {Verdict.INCONCLUSIVE} and "in turn" in same.overall.needs
    assert compare_runs([b], [a], margin=0.05, confidence=0.9).overall.verdict is Verdict.FASTER


@pytest.mark.parametrize("rate", [740.0, 850.0, 960.0, 1040.0, 1180.0, 1380.0])
def test_the_usual_difference_between_equal_runs_gives_no_verdict_on_one_pair(make_run: MakeRun, rate: float) -> None:
    """The rate of a system varies between runs, which the small scatter within a run does not show."""
    a, b = (
        make_run([cell_of(plan_of())], 1000.0, noise=0.005),
        make_run([cell_of(plan_of())], rate, noise=0.005, at=1e4),
    )
    found = compare_runs([a], [b], margin=0.05, confidence=0.9)
    assert {found.overall.verdict, *(cell.verdict for cell in found.cells)} == {Verdict.INCONCLUSIVE}
    assert found.overall.ratio == pytest.approx(rate / 1000, rel=0.01)
    assert any("single pair" in text for text in found.caution)


def test_more_comparisons_need_more_runs(make_run: MakeRun) -> None:
    cells = [cell_of(plan_of(items), f"plan/{items}", items=items) for items in range(100, 110)]
    a, b = make_run(cells, 1000.0, blocks=5), make_run(cells, 500.0, blocks=5, at=1e4)
    all_of_them = compare_runs([a], [b], margin=0.05, confidence=0.9)
    assert {cell.verdict for cell in all_of_them.cells} == {Verdict.INCONCLUSIVE}
    assert all("runs of A and of B" in cell.needs for cell in all_of_them.cells)
    assert all_of_them.overall.verdict is Verdict.SLOWER
    few = [replace(cells[0], measures=cells[0].measures[:1])]
    a, b = make_run(few, 1000.0, blocks=5, at=2e4), make_run(few, 500.0, blocks=5, at=3e4)
    (one,) = compare_runs([a], [b], margin=0.05, confidence=0.9).cells
    assert one.verdict is Verdict.SLOWER


def test_different_work_is_refused_by_name(make_run: MakeRun) -> None:
    a, b = make_run([cell_of(plan_of(100))]), make_run([cell_of(plan_of(200))])
    with pytest.raises(BadInputError) as caught:
        compare_runs([a], [b], margin=0.05, confidence=0.9)
    assert "phase 1 (create) items: 100 in A, 200 in B" in caught.value.why


def test_equal_cells_are_compared_and_the_others_are_named(make_run: MakeRun) -> None:
    cells = [cell_of(plan_of(100), "plan/small", size="small"), cell_of(plan_of(200), "plan/large", size="large")]
    changed = [cells[0], replace(cells[1], plan=plan_of(300))]
    found = compare_runs([make_run(cells)], [make_run(changed, at=1e4)], margin=0.05, confidence=0.9)
    assert {cell.id for cell in found.cells} == {"plan/small:create", "plan/small:stat"}
    assert [one.id for one in found.unlike] == ["plan/large"]


def test_surveys_with_different_amounts_are_judged_where_the_amounts_are_close(make_run: MakeRun) -> None:
    a, b = (
        make_run([cell_of(plan_of(items), key) for items, key in cells], rate, at=at, kind="survey")
        for cells, rate, at in (
            (((100, "near"), (100, "far")), 1000.0, 0.0),
            (((150, "near"), (900, "far")), 500.0, 1e4),
        )
    )
    comparison = compare_runs([a], [b], margin=0.05, confidence=0.9)
    verdicts = {cell.id.split(":")[0]: cell.verdict for cell in comparison.cells}
    assert verdicts == {"near": Verdict.SLOWER, "far": Verdict.INCONCLUSIVE}
    assert comparison.overall.verdict is Verdict.SLOWER and not comparison.unlike
    assert any(f"--like {a.id}" in text for text in comparison.caution)


def test_the_headline_names_equal_amounts_where_they_differ_too_much(make_run: MakeRun) -> None:
    a, b = (make_run([cell_of(plan_of(items))], at=float(items), kind="survey") for items in (100, 900))
    found = compare_runs([a], [b], margin=0.05, confidence=0.9)
    target = b.manifest["target"]
    assert found.overall.needs == f"equal amounts of work in both runs: strakes survey {target} --like {a.id}"


def test_sets_of_surveys_with_different_amounts_are_compared(make_run: MakeRun) -> None:
    amounts = (100, 150, 120, 190, 110)
    pairs = [
        [make_run([cell_of(plan_of(items))], factor * 1000, kind="survey") for factor in (1.0, 0.7)]
        for items in amounts
    ]
    found = compare_runs([pair[0] for pair in pairs], [pair[1] for pair in pairs], margin=0.05, confidence=0.9)
    assert found.overall.verdict is Verdict.SLOWER and not found.unlike


def test_a_run_without_figures_is_named(make_run: MakeRun) -> None:
    with pytest.raises(BadInputError, match="no results"):
        compare_runs([make_run([cell_of(plan_of())])], [make_run([])], margin=0.05, confidence=0.9)


def test_runs_may_differ_in_the_factor_that_is_compared(make_run: MakeRun) -> None:
    a = make_run([cell_of(plan_of(directory="unique"), "plan/unique", directory="unique")])
    b = make_run([cell_of(plan_of(directory="shared"), "plan/shared", directory="shared")], 500.0, at=1e4)
    with pytest.raises(BadInputError):
        compare_runs([a], [b], margin=0.05, confidence=0.9)
    found = compare_runs([a], [b], margin=0.05, confidence=0.9, factors=["directory"])
    assert {cell.verdict for cell in found.cells} == {Verdict.SLOWER}
    with pytest.raises(BadInputError, match="no setting"):
        compare_runs([a], [b], margin=0.05, confidence=0.9, factors=["colour"])


def test_times_of_a_phase_are_compared_as_well_as_its_rate(make_run: MakeRun) -> None:
    cell = cell_of(plan_of())
    with_wait = replace(cell, measures=(*cell.measures, Measure("stat", "elapsed_s", {"phase": "wait"})))
    found = compare_runs([make_run([with_wait])], [make_run([with_wait], at=1e4)], margin=0.05, confidence=0.9)
    assert {one.id for one in found.cells} == {"plan:create", "plan:stat", "plan:stat:elapsed_s"}


def test_fail_on_takes_thresholds_and_refuses_nonsense(make_run: MakeRun) -> None:
    expected = (Condition(Verdict.SLOWER, 0.05), Condition(Verdict.INCONCLUSIVE))
    assert parse_fail_on("slower:5%, inconclusive") == expected
    for wrong in ("slow", "slower:x", "slower:5%%", "inconclusive:3%", ""):
        with pytest.raises(BadInputError):
            parse_fail_on(wrong)
    found = compare_runs(
        [make_run([cell_of(plan_of())])], [make_run([cell_of(plan_of())], 600.0, at=1e4)], margin=0.05, confidence=0.9
    )
    assert failures(found, parse_fail_on("slower:5%")) and not failures(found, parse_fail_on("slower:60%"))
    assert not failures(found, parse_fail_on("faster"))


def test_the_command_prints_verdicts_writes_json_and_obeys_fail_on(make_run: MakeRun, tmp_path: Path) -> None:
    a, b = make_run([cell_of(plan_of())]), make_run([cell_of(plan_of())], 500.0, at=1e4)
    file = tmp_path / "comparison.json"
    runner = CliRunner()
    shown = runner.invoke(command, [a.id, b.id, "--json", str(file)], standalone_mode=False)
    assert shown.return_value == 0
    assert "B is SLOWER" in shown.output and "SAME: the difference is at most 5 %" in shown.output
    assert json.loads(file.read_text())["overall"]["verdict"] == "SLOWER"
    failed = runner.invoke(command, [a.id, b.id, "--fail-on", "slower:5%"], standalone_mode=False)
    assert failed.return_value == 1 and "failed: overall is SLOWER" in failed.output


def test_separate_runs_on_an_overloaded_machine_get_no_verdict(make_run: MakeRun) -> None:
    a, b = make_run([cell_of(plan_of())], 1000.0), make_run([cell_of(plan_of())], 600.0, at=1e4, load=9.0)
    found = compare_runs([a], [b], margin=0.05, confidence=0.9)
    assert (found.overall.verdict, found.overall.grade) == (Verdict.INCONCLUSIVE, "leaning")
    assert any("overloaded" in text for text in found.caution)


def test_a_difference_that_the_loads_cannot_explain_is_likely(make_run: MakeRun) -> None:
    a, b = (make_run([cell_of(plan_of())], rate, at=at, load=9.0) for rate, at in ((1000.0, 0.0), (300.0, 1e4)))
    found = compare_runs([a], [b], margin=0.05, confidence=0.9)
    assert (found.overall.verdict, found.overall.grade) == (Verdict.INCONCLUSIVE, "likely")
    assert "B is likely SLOWER: 0.3" in render(found) and "a machine without other load" in render(found)
    assert not failures(found, parse_fail_on("slower"))


def test_a_slower_client_is_not_taken_for_a_slower_file_system(make_run: MakeRun) -> None:
    a = make_run([cell_of(plan_of())], 1000.0, client_s=0.002)
    b = make_run([cell_of(plan_of())], 620.0, at=1e4, client_s=0.0024)
    found = compare_runs([a], [b], margin=0.05, confidence=0.9)
    assert found.overall.verdict is Verdict.INCONCLUSIVE and "equally fast client" in found.overall.needs
    assert any("The client itself was 17 % slower in B" in text for text in found.caution)
    much_slower = make_run([cell_of(plan_of())], 500.0, at=2e4, client_s=0.0024)
    assert compare_runs([a], [much_slower], margin=0.05, confidence=0.9).overall.verdict is Verdict.SLOWER


def test_variation_within_a_run_widens_the_interval() -> None:
    steady = [100.0 + value % 3 for value in range(12)]
    wandering = [90.0 + 5 * (value // 3) + value % 3 for value in range(12)]  # four levels
    slower = [0.85 * value for value in steady]
    verdicts = [judge([between_runs(one, slower)], 0.9, 0.05, least=0.05)[0].verdict for one in (steady, wandering)]
    assert verdicts == [Verdict.SLOWER, Verdict.INCONCLUSIVE]


def test_alternating_runs_are_compared_with_their_neighbours(make_run: MakeRun) -> None:
    rates = [1000.0, 700.0, 1300.0, 900.0, 1100.0]
    pairs = [[make_run([cell_of(plan_of())], factor * rate) for factor in (1.0, 0.95)] for rate in rates]
    a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = compare_runs(a, b, margin=0.02, confidence=0.9)
    assert found.overall.verdict is Verdict.SLOWER and found.overall.ratio == pytest.approx(0.95, abs=0.01)
    assert found.cells[0].runs_a == 5
    # The order of the runs in an argument does not matter.
    assert compare_runs(a[::-1], b, margin=0.02, confidence=0.9).overall == found.overall


def test_sets_of_runs_made_one_after_the_other_keep_the_variance_between_runs(make_run: MakeRun) -> None:
    rates = [1000.0, 700.0, 1300.0, 900.0, 1100.0]
    a, b = ([make_run([cell_of(plan_of())], factor * rate) for rate in rates] for factor in (1.0, 0.95))
    found = compare_runs(a, b, margin=0.02, confidence=0.9)
    assert found.overall.verdict is Verdict.INCONCLUSIVE
    assert "about" in found.overall.needs and "runs each of A and B" in found.overall.needs
    assert any("not made in turn" in text for text in found.caution)


def test_sets_of_runs_are_separated_by_commas(make_run: MakeRun) -> None:
    pairs = [[make_run([cell_of(plan_of())], factor * 1000) for factor in (1.0, 0.7)] for _ in range(5)]
    a, b = (",".join(pair[side].id for pair in pairs) for side in (0, 1))
    told = CliRunner().invoke(command, [a, b, "--json", "-"])
    assert told.exit_code == 0 and json.loads(told.output)["overall"]["verdict"] == "SLOWER"
    for words in ([f"{a},{pairs[0][0].id}", b], [pairs[0][0].id] * 2):
        twice = CliRunner().invoke(command, words)
        assert isinstance(twice.exception, BadInputError) and "given twice" in twice.exception.what
