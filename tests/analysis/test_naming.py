"""Kinds of work, and parts of them, are named only where their own runs show that they changed."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from strakes.analysis.levels import Levels, levels_of
from strakes.analysis.medians import medians_of
from strakes.analysis.naming import is_named
from strakes.analysis.shown import may_show, p_value_beside
from strakes.analysis.turns import Visit
from strakes.findings.portrait import CellEstimate, Setting
from strakes.findings.results import Measured, Observation, Results
from strakes.findings.sample import Sample
from strakes.statistics.interval import median

START_S, EACH_S = 1000.0, 0.5
SMALL, LARGE, HUGE = 65536, 1048576, 8388608

# Operation, size of calls, in one of how many blocks it is run.
Cell = tuple[str, int, int]
EVERY: tuple[Cell, ...] = (
    *[("write", SMALL, 1), ("write", LARGE, 1), ("read", SMALL, 1), ("read", LARGE, 1)] * 2,
    *[("file-create", 0, 1), ("file-remove", 0, 1)] * 2,
    ("file-rename", 0, 4),
    ("write", HUGE, 4),
)


def results(speed: Callable[[Cell, float], float], noise: float, seed: int, blocks: int = 24) -> Results:
    """Blocks over cells in random order."""
    generator = np.random.default_rng(seed)
    runs: dict[int, list[Observation]] = {number: [] for number in range(len(EVERY))}
    at_s = START_S
    for block in range(blocks):
        for number in generator.permutation(len(EVERY)).tolist():
            if block % EVERY[number][2]:
                continue
            value = 100.0 * speed(EVERY[number], at_s - START_S) * float(np.exp(noise * generator.standard_normal()))
            runs[number].append(Observation(block, "measure", value, 1, Sample("phase"), at_s=at_s))
            at_s += EACH_S
    return Results(tuple(measured(number, seen) for number, seen in runs.items()), 0.9, {})


def measured(number: int, runs: list[Observation]) -> Measured:
    operation, size, _ = EVERY[number]
    settings: dict[str, Setting] = {"operation": operation, **({"transfer_bytes": size} if size else {})}
    values = tuple(run.value for run in runs)
    name, unit = f"cell{number}:phase", "B/s" if size else "op/s"
    estimate = CellEstimate(
        name, "transfer-size", settings, median(values), None, None, 0.9, len(values), unit, "", values
    )
    return Measured(name, "transfer-size", settings, unit, tuple(runs), estimate)


def named(levels: Levels) -> set[str]:
    told = [*(shift.what for shift in levels.shifts), *(turns.what for turns in levels.turns)]
    return {kind for what in told for kind in what.split(", ")}


@pytest.mark.parametrize("noise", [0.05, 0.15])
def test_work_of_few_runs_is_not_named_with_the_work_that_changed(noise: float) -> None:
    def speed(cell: Cell, at_s: float) -> float:
        return 0.5 if at_s >= 70 and cell[0] in ("write", "file-create") else 1.0

    for seed in range(6):
        found = results(speed, noise, seed)
        levels = levels_of(found)
        assert named(levels) == {"write", "create"}
        rename = next(one for one in found.measured if one.settings["operation"] == "file-rename")
        assert medians_of(rename, levels, START_S) == ()


def test_levels_that_take_turns_are_those_of_the_work_that_shows_them() -> None:
    for seed in range(6):
        levels = levels_of(results(lambda cell, s: 0.45 if cell[0] == "read" and s % 14 >= 8 else 1.0, 0.1, seed))
        assert named(levels) == {"read"}


def test_calls_of_one_size_are_named_and_not_their_kind_of_work() -> None:
    def speed(cell: Cell, at_s: float) -> float:
        return 0.4 if at_s % 14 >= 8 and cell[1] == SMALL else 1.0

    for seed in range(6):
        found = results(speed, 0.05, seed)
        levels = levels_of(found)
        assert named(levels) == {"write (64 KiB)", "read (64 KiB)"}
        for one in found.measured:
            shown = medians_of(one, levels, START_S)
            assert (len(shown) > 1) == (one.settings.get("transfer_bytes") == SMALL)


def test_all_is_said_where_all_that_can_tell_show_it() -> None:
    for seed in range(6):
        assert named(levels_of(results(lambda _, s: 0.5 if s >= 70 else 1.0, 0.05, seed))) == {"all that was measured"}


def test_of_few_runs_the_chance_is_that_of_all_orders() -> None:
    generator = np.random.default_rng(4)
    cells = {"a": (3, 2), "b": (2, 2)}
    values = {cell: generator.standard_normal(sum(counts)).tolist() for cell, counts in cells.items()}

    def beaten(cell: str, late: tuple[int, ...]) -> int:
        own = values[cell]
        return sum(own[one] < own[other] for one in late for other in range(len(own)) if other not in late)

    orders = {cell: list(itertools.combinations(range(sum(of)), of[1])) for cell, of in cells.items()}
    seen = sum(beaten(cell, tuple(range(of[0], sum(of)))) for cell, of in cells.items())
    every = [beaten("a", one) + beaten("b", other) for one in orders["a"] for other in orders["b"]]
    visits = [Visit(0.0, cell, value) for cell, own in values.items() for value in own]
    after = [place >= of[0] for of in cells.values() for place in range(sum(of))]
    chance = sum(one >= seen for one in every) / len(every)
    assert p_value_beside(visits, after, slower=True) == pytest.approx(chance)
    assert may_show(visits, after, 1 / 60)
    assert not may_show(visits, after, 1 / 61)


def test_runs_that_did_not_change_hardly_ever_show_it() -> None:
    generator = np.random.default_rng(5)
    after = [place % 12 >= 7 for place in range(60)]
    called = 0
    for _ in range(1000):
        visits = [Visit(float(place), f"cell{place // 12}", value) for place, value in enumerate(generator.random(60))]
        called += p_value_beside(visits, after, slower=True) <= 0.05
    assert called <= 65


def test_a_change_of_several_kinds_is_one_of_each() -> None:
    assert is_named("read", "all that was measured")
    assert is_named("read", "write, read")
    assert not is_named("read", "all metadata operations")
    assert not is_named("read", "read (64 KiB)")
