"""Changes of level are found with their moment, in the work that changed, and not where there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from strakes.analysis.levels import Levels, levels_of
from strakes.analysis.medians import medians_of
from strakes.findings.portrait import CellEstimate
from strakes.findings.results import Measured, Observation, Results
from strakes.findings.sample import Sample
from strakes.statistics.interval import median

BLOCKS = 12
CELLS = 10
EACH_S = 0.5
START_S = 1000.0

# How fast work of a cell is at a moment.
Speed = Callable[[str, float], float]


def results(speed: Speed, noise: float = 0.05, seed: int = 1, blocks: int = BLOCKS) -> Results:
    """Blocks over cells of which every second one reads and the others create, in random order."""
    generator = np.random.default_rng(seed)
    observations: dict[int, list[Observation]] = {cell: [] for cell in range(CELLS)}
    at_s = START_S
    for block in range(1, blocks + 1):
        for cell in generator.permutation(CELLS).tolist():
            value = 100.0 * (cell + 1) * speed(kind(cell), at_s - START_S)
            value *= float(np.exp(noise * generator.standard_normal()))
            observations[cell].append(Observation(block, "measure", value, 1, Sample("phase"), at_s=at_s))
            at_s += EACH_S
    return Results(tuple(measured(cell, runs) for cell, runs in observations.items()), 0.9, {})


def kind(cell: int) -> str:
    return "read" if cell % 2 else "file-create"


def measured(cell: int, runs: list[Observation]) -> Measured:
    values = tuple(run.value for run in runs)
    name, settings = f"cell{cell}:phase", {"operation": kind(cell)}
    estimate = CellEstimate(
        name, "transfer-size", settings, median(values), None, None, 0.9, len(values), "op/s", "", values
    )
    return Measured(name, "transfer-size", settings, "op/s", tuple(runs), estimate)


def steady(_: str, __: float) -> float:
    return 1.0


def at_place(factors: list[float], _: str, at_s: float) -> float:
    return factors[round(at_s / EACH_S)]


def test_steady_work_hardly_ever_changes() -> None:
    found = [levels_of(results(steady, noise, seed)) for noise in (0.03, 0.3) for seed in range(25)]
    assert sum(bool(levels.changed) for levels in found) <= 5


def test_work_that_gets_slower_steadily_does_not_only_wander() -> None:
    """What goes steadily resembles the run before, as what wanders does."""

    def slower(what: str, at_s: float) -> float:
        return 1 - 0.6 * at_s / 100 if what == "read" and at_s < 100 else 1.0

    for seed in range(10):
        changed = levels_of(results(slower, seed=seed, blocks=24)).changed
        assert set(changed) == {f"cell{cell}:phase" for cell in range(1, CELLS, 2)}


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_step_of_all_work_is_found_with_its_moment_and_size(factor: float) -> None:
    levels = levels_of(results(lambda _, at_s: factor if at_s >= 20 else 1.0))
    (shift,) = levels.shifts
    assert shift.what == "all that was measured"
    assert shift.after_s == pytest.approx(20, abs=2)
    assert shift.factor == pytest.approx(factor, rel=0.1)
    assert len(shift.cells) == CELLS


def test_a_change_of_one_kind_of_work_is_said_of_that_kind_only() -> None:
    levels = levels_of(results(lambda what, at_s: 0.4 if what == "file-create" and at_s >= 5 else 1.0))
    assert set(levels.changed) == {f"cell{cell}:phase" for cell in range(0, CELLS, 2)}


def test_a_change_upon_the_first_runs_is_found() -> None:
    levels = levels_of(results(lambda _, at_s: 0.3 if at_s < 5 else 1.0))
    assert [round(shift.after_s) for shift in levels.shifts] == [5]


@pytest.mark.parametrize("period_s", [6.0, 10.0, 24.0])
def test_a_neighbour_who_comes_and_goes_is_told_as_two_levels_that_take_turns(period_s: float) -> None:
    levels = levels_of(results(lambda _, at_s: 0.5 if at_s % period_s < period_s / 2 else 1.0))
    (turns,) = levels.turns
    assert levels.shifts == ()
    assert turns.factor == pytest.approx(0.5, rel=0.15)
    assert turns.share == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("only", ["", "read"])
def test_a_dip_that_comes_back_is_told_as_one_stretch(only: str) -> None:
    def dip(what: str, at_s: float) -> float:
        return 0.5 if 20 <= at_s < 40 and only in what else 1.0

    for seed in range(5):
        found = results(dip, seed=seed)
        levels = levels_of(found)
        (turns,) = levels.turns
        assert levels.shifts == ()
        assert turns.between == pytest.approx((20, 40), abs=2)
        assert turns.factor == pytest.approx(0.5, rel=0.1)
        assert turns.what == (only or "all that was measured")
        of_read = next(measured for measured in found.measured if measured.settings["operation"] == "read")
        before, meanwhile, after = medians_of(of_read, levels, START_S)
        assert meanwhile / before == pytest.approx(0.5, rel=0.2)
        assert after / before == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize("only", ["", "create"])
def test_a_dip_too_short_for_a_change_and_one_back_is_told(only: str) -> None:
    for seed in range(5):
        (turns,) = levels_of(results(lambda what, s: 0.4 if 20 <= s < 28 and only in what else 1.0, seed=seed)).turns
        assert turns.between == pytest.approx((20, 28), abs=2)
        assert turns.factor == pytest.approx(0.4, rel=0.1)
        assert turns.what == (only or "all that was measured")


def test_levels_that_come_in_any_order_are_both_shown_where_no_median_is_of_both() -> None:
    generator = np.random.default_rng(5)
    for slow, shown in ((0.55, 2), (1.0, 0)):
        found = results(lambda *_, slow=slow: slow if generator.random() < 0.5 else 1.0)
        levels = levels_of(found)
        assert {len(medians_of(one, levels, START_S)) for one in found.measured} == {shown}
        assert not levels.changed


def test_two_dips_are_no_one_stretch() -> None:
    levels = levels_of(results(lambda _, at_s: 0.5 if 12 <= at_s < 24 or 40 <= at_s < 52 else 1.0))
    assert all(turns.between is None for turns in levels.turns)
    assert levels.turns or levels.shifts


@pytest.mark.parametrize("only", ["read", ""])
def test_short_dips_that_come_back_take_turns_however_few_visits_they_slow(only: str) -> None:
    """Of 3 s in each 20, and told of no other work."""
    named = 0
    for seed in range(10):
        found = results(lambda what, at_s: 0.5 if at_s % 20 >= 17 and only in what else 1.0, seed=seed, blocks=20)
        (turns,) = levels_of(found).turns
        assert turns.between is None
        assert turns.factor == pytest.approx(0.5, abs=0.05)
        named += turns.what == (only or "all that was measured")
    assert named >= 9


def test_work_that_was_not_met_before_a_change_is_not_named() -> None:
    """Reads begin after the change, so that nobody knows what they were before."""
    slow = results(lambda _, at_s: 1.0 if at_s < 20 else 0.5)
    late = tuple(
        replace(one, observations=tuple(run for run in one.observations if run.at_s - START_S >= 20))
        if one.settings["operation"] == "read"
        else one
        for one in slow.measured
    )
    (shift,) = levels_of(replace(slow, measured=late)).shifts
    assert shift.what == "create"


def test_work_that_was_not_met_during_a_dip_is_not_named() -> None:
    dip = results(lambda _, at_s: 0.5 if 20 <= at_s < 40 else 1.0)
    apart = tuple(
        replace(one, observations=tuple(run for run in one.observations if not 20 <= run.at_s - START_S < 40))
        if one.settings["operation"] == "read"
        else one
        for one in dip.measured
    )
    (turns,) = levels_of(replace(dip, measured=apart)).turns
    assert turns.between == pytest.approx((20, 40), abs=2)
    assert turns.what == "create"


def test_a_dip_of_all_metadata_operations_is_told_of_them_together() -> None:
    dip = results(lambda what, at_s: 0.5 if what != "read" and 20 <= at_s < 40 else 1.0)
    two_kinds = tuple(
        replace(one, settings={"operation": "stat"}) if one.id.startswith("cell8") else one for one in dip.measured
    )
    (turns,) = levels_of(replace(dip, measured=two_kinds)).turns
    assert turns.what == "all metadata operations"
    assert "cell8:phase" in turns.cells and "cell1:phase" not in turns.cells


def test_where_no_kind_of_work_was_met_often_enough_before_a_change_all_of_them_are_named() -> None:
    """Three visits before the change, two of one kind and one of the other."""
    (shift,) = levels_of(results(lambda _, at_s: 1.0 if at_s < 1.5 else 0.3)).shifts
    assert shift.what == "all that was measured"


def wandering(seed: int) -> Speed:
    """An autoregression of its own, of each kind of work."""
    generator = np.random.default_rng(seed)
    states: dict[str, float] = {}

    def speed(what: str, _: float) -> float:
        fresh = 0.1 * float(generator.standard_normal())
        states[what] = 0.8 * states.get(what, fresh) + 0.6 * fresh
        return float(np.exp(states[what]))

    return speed


def test_what_each_kind_of_work_does_by_itself_is_mostly_no_change_of_level() -> None:
    told = [levels_of(results(wandering(seed), 0.02, seed)).shifts for seed in range(40)]
    assert sum(map(bool, told)) <= 10


def test_runs_of_two_groups_are_known_in_whatever_order_they_come() -> None:
    generator = np.random.default_rng(1)
    levels = levels_of(results(lambda what, _: 0.8 if what == "read" and generator.random() < 0.4 else 1.0, 0.02))
    assert {name for name in levels.grouped if int(name[4]) % 2} == {f"cell{cell}:phase" for cell in range(1, CELLS, 2)}
    assert levels_of(results(steady)).grouped == {}


def test_a_neighbour_is_found_whose_rhythm_the_noise_hides_in_single_runs() -> None:
    """Levels last for many visits, so that means of a few of them show what single ones do not."""

    def neighbour(_: str, at_s: float) -> float:
        return 0.5 if at_s % 20 < 10 else 1.0

    turned = [levels_of(results(neighbour, 0.25, seed, blocks=36)).turns for seed in range(10)]
    assert sum(bool(turns) for turns in turned) >= 6
    assert all(turns.factor == pytest.approx(0.5, abs=0.15) for of_one in turned for turns in of_one)


def of_phases(speed: Callable[[int, float], float], seed: int, noise: float = 0.05, blocks: int = 17) -> Results:
    """Visits of four phases each; ``speed`` is that of a visit, by its number, and of a moment."""
    generator = np.random.default_rng(seed)
    observations: dict[tuple[int, int], list[Observation]] = {}
    at_s, visits = START_S, 0
    for block in range(1, blocks + 1):
        for cell in generator.permutation(CELLS).tolist():
            begun_s, visits = at_s, visits + 1
            for phase in range(4):
                value = speed(visits, at_s - START_S) * float(np.exp(noise * generator.standard_normal()))
                sample = Sample(f"phase{phase}", phase=phase)
                of_phase = observations.setdefault((cell, phase), [])
                of_phase.append(Observation(block, "measure", value, 1, sample, at_s=begun_s))
                at_s += EACH_S
    cells = (
        replace(measured(cell, runs), id=f"cell{cell}:phase{phase}") for (cell, phase), runs in observations.items()
    )
    return Results(tuple(cells), 0.9, {})


@pytest.mark.parametrize("period_s", [3.0, 4.0])
def test_levels_that_last_for_less_than_a_visit_take_turns_between_its_phases(period_s: float) -> None:
    def neighbour(_: int, at_s: float) -> float:
        return 0.5 if at_s % period_s >= period_s / 2 else 1.0

    for seed in range(5):
        (turns,) = levels_of(of_phases(neighbour, seed)).turns
        assert turns.factor == pytest.approx(0.5, rel=0.15)
        assert turns.share == pytest.approx(0.5, abs=0.15)


def test_visits_that_are_slow_as_a_whole_by_chance_take_no_turns() -> None:
    slow = np.random.default_rng(0).random(1000) < 0.4
    told = [levels_of(of_phases(lambda visit, _: 0.75 if slow[visit] else 1.0, seed)).turns for seed in range(5)]
    assert told == [()] * 5


def test_visits_that_are_unlike_the_one_before_take_no_turns() -> None:
    logs = [0.0]
    for step in np.random.default_rng(0).standard_normal(1000):
        logs.append(-0.8 * logs[-1] + 0.06 * float(step))
    for seed in range(4, 7):
        told = levels_of(of_phases(lambda visit, _: float(np.exp(logs[visit])), seed, noise=0.01, blocks=30))
        assert told.turns == ()


def test_noise_of_that_size_alone_takes_no_turns() -> None:
    assert sum(bool(levels_of(results(steady, 0.25, seed, blocks=36)).turns) for seed in range(20)) <= 1


def test_runs_that_resemble_their_neighbours_do_not_change() -> None:
    changed = 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        wander = [float(generator.standard_normal())]
        for _ in range(BLOCKS * CELLS):
            wander.append(0.8 * wander[-1] + 0.6 * float(generator.standard_normal()))
        factors = np.exp(0.1 * np.array(wander))
        levels = levels_of(results(partial(at_place, factors.tolist()), 0.02, seed))
        changed += bool(levels.changed)
    assert changed <= 3


def test_medians_are_those_of_each_level_and_none_of_what_did_not_change() -> None:
    stepped = results(lambda _, at_s: 0.5 if at_s >= 30 else 1.0, noise=0.01)
    levels = levels_of(stepped)
    before, after = medians_of(stepped.get("cell0:phase"), levels, START_S)
    assert before == pytest.approx(100.0, rel=0.02)
    assert after == pytest.approx(50.0, rel=0.02)
    assert medians_of(stepped.get("cell0:phase"), Levels((), 0.0), START_S) == ()


def test_a_few_runs_say_nothing_of_levels() -> None:
    assert levels_of(Results((), 0.9, {})) == Levels((), 0.0)


@pytest.mark.parametrize("factor", [0.4, 0.5, 0.7, 1.6])
def test_what_only_some_work_does_is_not_said_of_all(factor: float) -> None:
    """A step is found each time, a neighbour often; both with the right work and size."""
    told = 0
    for seed in range(4):
        stepped = levels_of(results(lambda what, at_s: factor if what == "read" and at_s >= 25 else 1.0, seed=seed))
        assert [shift.what for shift in stepped.shifts] == ["read"]
        assert stepped.shifts[0].factor == pytest.approx(factor, rel=0.15)
        turning = levels_of(results(lambda what, at_s: factor if what == "read" and at_s % 12 < 6 else 1.0, seed=seed))
        slower = min(factor, 1 / factor)
        for turns in turning.turns:
            assert turns.what == "read"
            assert turns.factor == pytest.approx(slower, rel=0.15)
        told += bool(turning.turns)
    assert told >= 1


def test_one_step_of_a_few_cells_takes_no_turns() -> None:
    def of_cells(seed: int) -> Results:
        made = results(steady, 0.03, seed)
        slow = {"cell0:phase", "cell2:phase"}
        return replace(
            made,
            measured=tuple(
                measured(
                    number,
                    [
                        replace(run, value=run.value * (0.4 if run.at_s >= START_S + 20 else 1.0))
                        for run in cell.observations
                    ],
                )
                if cell.id in slow
                else cell
                for number, cell in enumerate(made.measured)
            ),
        )

    assert [levels_of(of_cells(seed)).turns for seed in range(10)] == [()] * 10


def test_cells_that_wander_by_themselves_hardly_ever_change() -> None:
    changed = 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        level = generator.standard_normal(CELLS)
        made: dict[int, list[Observation]] = {cell: [] for cell in range(CELLS)}
        at_s = START_S
        for block in range(1, BLOCKS + 1):
            level = 0.8 * level + 0.6 * generator.standard_normal(CELLS)
            for cell in generator.permutation(CELLS).tolist():
                value = float(np.exp(0.1 * level[cell]))
                made[cell].append(Observation(block, "measure", value, 1, Sample("phase"), at_s=at_s))
                at_s += EACH_S
        found = Results(tuple(measured(cell, runs) for cell, runs in made.items()), 0.9, {})
        changed += bool(levels_of(found).changed)
    assert changed <= 3


def test_steps_of_a_clock_are_no_levels() -> None:
    """Times of two and three ticks of a clock, whatever made them."""
    changed = 0
    for seed in range(20):
        exact = results(steady, 0.05, seed)
        stepped = []
        for number, cell in enumerate(exact.measured):
            generator = np.random.default_rng([seed, number])
            ticks = [int(250 * (number + 1) / run.value + generator.random()) for run in cell.observations]
            runs = [replace(run, value=100.0 / tick) for run, tick in zip(cell.observations, ticks, strict=True)]
            stepped.append(replace(measured(number, runs), step=1 / float(np.median(ticks))))
        changed += bool(levels_of(replace(exact, measured=tuple(stepped))).turns)
    assert changed == 0


def test_the_size_of_what_was_slow_for_a_while_is_not_diluted_by_what_was_before() -> None:
    """Where only its end is found, the runs before it are slow ones and others."""
    wrong = found = 0
    for seed in range(10):
        slow = results(lambda _, at_s: 0.3 if 9 <= at_s < 20 else 1.0, 0.03, seed)
        factors = [shift.factor for shift in levels_of(slow).shifts]
        found += len(factors)
        wrong += any(abs(abs(np.log(factor)) - np.log(1 / 0.3)) > 0.15 for factor in factors)
    assert found >= 5
    assert wrong <= 1


@pytest.mark.parametrize("rough", [(0, 33), (33, 67), (67, 100)])
def test_scatter_that_differs_by_time_is_no_change_of_level(rough: tuple[int, int]) -> None:
    told = 0
    for seed in range(20):
        generator = np.random.default_rng([7, seed])

        def scattering(_: str, at_s: float, generator: np.random.Generator = generator) -> float:
            return float(np.exp((0.25 if rough[0] <= at_s < rough[1] else 0.0) * generator.standard_normal()))

        told += bool(levels_of(results(scattering, 0.03, seed, blocks=20)).changed)
    assert told <= 1
