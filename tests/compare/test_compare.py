"""Two stored runs side by side: like work is judged, unlike work is refused by name, and a failure is an exit status."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from strakes.cli.compare import command
from strakes.compare.fail_on import Condition, failures, parse_fail_on
from strakes.compare.runs import compare_runs
from strakes.errors import BadInputError
from strakes.plan import MetadataPhase, Plan
from strakes.portrait.collect import cell_record
from strakes.statistics.contrast import Verdict
from strakes.store import Run, Store
from strakes.studies.base import Cell, Measure
from studies.world import visits_of

MakeRun = Callable[..., Run]


def plan_of(items: int = 100, directory: Any = "unique") -> Plan:
    return Plan(2, (MetadataPhase("create", "file-create", directory, items), MetadataPhase("stat", "file-stat", directory, items)))


def cell_of(plan: Plan, key: str = "plan", **settings: Any) -> Cell:
    measures = tuple(Measure(phase.name, "operations_per_s", {"phase": phase.name}) for phase in plan.phases)
    return Cell("plan", key, {"ranks": plan.ranks, **settings}, plan, measures)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("STRAKES_STORE", str(tmp_path / "store"))
    return Store()


@pytest.fixture
def make_run(store: Store, tmp_path: Path) -> MakeRun:
    """A run of these cells at these rates, begun ``at`` seconds."""
    (tmp_path / "target").mkdir()

    def make(
        cells: Sequence[Cell],
        rate: float = 1000.0,
        blocks: int = 12,
        noise: float = 0.01,
        at: float = 0.0,
        drift: float = 0.0,
        load: float = 0.0,
    ) -> Run:
        options = {"studies": ["plan"], "confidence": 0.9, "relative_half_width": 0.1, "budget_s": 60.0, "command": "strakes run"}
        visits = visits_of(cells, lambda phase, ranks: rate, blocks, noise)
        with store.create(
            "run", "plan", tmp_path / "target", options, {"host": "n1", "cpus": 2, "load_average": [load, load, load]}
        ) as writer:
            writer.write_cells([cell_record(cell) for cell in cells])
            for visit in visits:
                slowed = (1 - drift) ** visit["block"]
                samples = [{**one, "operations_per_s": one["operations_per_s"] * slowed} for one in visit["samples"]]
                writer.append_visit({**visit, "samples": samples, "started_unix_s": at + visit["visit"]})
            writer.finish("complete")
        return store.open(writer.id)

    return make


def test_a_slower_run_is_called_slower_and_an_equal_one_the_same(make_run: MakeRun) -> None:
    a, b, c = (make_run([cell_of(plan_of())], rate, at=at) for rate, at in ((1000.0, 0.0), (850.0, 1e4), (1000.0, 2e4)))
    slower = compare_runs(a, b, margin=0.05, confidence=0.9)
    assert slower.overall.verdict is Verdict.SLOWER
    assert {cell.verdict for cell in slower.cells} == {Verdict.SLOWER}
    assert all(cell.low is not None and cell.low <= 0.85 * 1.02 for cell in slower.cells)
    assert {cell.verdict for cell in compare_runs(a, c, margin=0.05, confidence=0.9).cells} == {Verdict.SAME}
    assert compare_runs(b, a, margin=0.05, confidence=0.9).overall.verdict is Verdict.FASTER


def test_a_difference_within_what_times_of_day_do_is_no_verdict(make_run: MakeRun) -> None:
    a, b = make_run([cell_of(plan_of())], 1000.0), make_run([cell_of(plan_of())], 960.0, noise=0.02, at=1e4)
    assert compare_runs(a, b, margin=0.05, confidence=0.9).overall.verdict is not Verdict.SLOWER
    assert any("different times" in text for text in compare_runs(a, b, margin=0.05, confidence=0.9).caution)


def test_more_comparisons_need_more_runs(make_run: MakeRun) -> None:
    cells = [cell_of(plan_of(items), f"plan/{items}", items=items) for items in range(100, 110)]
    a, b = make_run(cells, 1000.0, blocks=5), make_run(cells, 700.0, blocks=5, at=1e4)
    all_of_them = compare_runs(a, b, margin=0.05, confidence=0.9)
    assert {cell.verdict for cell in all_of_them.cells} == {Verdict.INCONCLUSIVE}
    assert all("runs of both" in cell.needs for cell in all_of_them.cells)
    assert all_of_them.overall.verdict is Verdict.SLOWER
    (one,) = compare_runs(a, b, margin=0.05, confidence=0.9, only=["plan/100:stat"]).cells
    assert one.verdict is Verdict.SLOWER


def test_unlike_work_is_refused_by_name(make_run: MakeRun) -> None:
    a, b = make_run([cell_of(plan_of(100))]), make_run([cell_of(plan_of(200))])
    with pytest.raises(BadInputError) as caught:
        compare_runs(a, b, margin=0.05, confidence=0.9)
    assert "phase 1 (create) items: 100 in A, 200 in B" in caught.value.why


def test_what_is_alike_is_compared_and_the_rest_named(make_run: MakeRun) -> None:
    cells = [cell_of(plan_of(100), "plan/small", size="small"), cell_of(plan_of(200), "plan/large", size="large")]
    changed = [cells[0], replace(cells[1], plan=plan_of(300))]
    found = compare_runs(make_run(cells), make_run(changed, at=1e4), margin=0.05, confidence=0.9)
    assert {cell.id for cell in found.cells} == {"plan/small:create", "plan/small:stat"}
    assert [one.id for one in found.unlike] == ["plan/large"]


def test_the_factor_compared_may_differ(make_run: MakeRun) -> None:
    a = make_run([cell_of(plan_of(directory="unique"), "plan/unique", directory="unique")])
    b = make_run([cell_of(plan_of(directory="shared"), "plan/shared", directory="shared")], 500.0, at=1e4)
    with pytest.raises(BadInputError):
        compare_runs(a, b, margin=0.05, confidence=0.9)
    found = compare_runs(a, b, margin=0.05, confidence=0.9, factors=["directory"])
    assert {cell.verdict for cell in found.cells} == {Verdict.SLOWER}
    with pytest.raises(BadInputError, match="no factor"):
        compare_runs(a, b, margin=0.05, confidence=0.9, factors=["colour"])


def test_under_drift_nothing_is_claimed(make_run: MakeRun) -> None:
    a, b = make_run([cell_of(plan_of())], 1000.0), make_run([cell_of(plan_of())], 600.0, drift=0.02, at=1e4)
    found = compare_runs(a, b, margin=0.05, confidence=0.9)
    assert found.overall.verdict is Verdict.INCONCLUSIVE
    assert "--against" in found.overall.needs


def test_a_run_is_not_compared_with_itself(make_run: MakeRun) -> None:
    run = make_run([cell_of(plan_of())])
    with pytest.raises(BadInputError, match="same run"):
        compare_runs(run, run, margin=0.05, confidence=0.9)


def test_fail_on_takes_thresholds_and_refuses_nonsense(make_run: MakeRun) -> None:
    assert parse_fail_on("slower:5%, inconclusive") == (Condition(Verdict.SLOWER, 0.05), Condition(Verdict.INCONCLUSIVE))
    for wrong in ("slow", "slower:x", "slower:5%%", "inconclusive:3%", ""):
        with pytest.raises(BadInputError):
            parse_fail_on(wrong)
    found = compare_runs(make_run([cell_of(plan_of())]), make_run([cell_of(plan_of())], 880.0, at=1e4), margin=0.05, confidence=0.9)
    assert failures(found, parse_fail_on("slower:5%"))
    assert not failures(found, parse_fail_on("slower:20%"))
    assert not failures(found, parse_fail_on("faster"))


def test_the_command_prints_verdicts_writes_json_and_fails_as_told(make_run: MakeRun, tmp_path: Path) -> None:
    a, b = make_run([cell_of(plan_of())]), make_run([cell_of(plan_of())], 800.0, at=1e4)
    file = tmp_path / "comparison.json"
    runner = CliRunner()
    shown = runner.invoke(command, [a.id, b.id, "--json", str(file)], standalone_mode=False)
    assert shown.return_value == 0
    assert "B is SLOWER" in shown.output and "SAME: within ±5 %" in shown.output
    assert json.loads(file.read_text())["overall"]["verdict"] == "SLOWER"
    failed = runner.invoke(command, [a.id, b.id, "--fail-on", "slower:5%"], standalone_mode=False)
    assert failed.return_value == 1
    assert "failed: overall is SLOWER" in failed.output


def test_on_an_overloaded_machine_nothing_is_claimed_of_runs_apart(make_run: MakeRun) -> None:
    a, b = make_run([cell_of(plan_of())], 1000.0), make_run([cell_of(plan_of())], 600.0, at=1e4, load=9.0)
    found = compare_runs(a, b, margin=0.05, confidence=0.9)
    assert found.overall.verdict is Verdict.INCONCLUSIVE
    assert any("overloaded" in text for text in found.caution)


def test_values_that_come_in_spells_are_not_taken_for_independent_ones() -> None:
    from strakes.statistics.comparison import between_runs, judge

    # Twenty values of one spell each: one slow spell in either run says nothing about the runs.
    a = [100.0 + value % 3 for value in range(40)]
    b = [80.0 + value % 3 for value in range(21)] + [120.0 + value % 3 for value in range(19)]
    (said,) = judge([between_runs(a, b)], 0.9, 0.05)
    assert said.verdict is Verdict.INCONCLUSIVE
