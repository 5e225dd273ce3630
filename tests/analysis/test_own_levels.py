"""A change of one figure only is found with its moment and size, and not where work jumps to and fro or only wanders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from strakes.analysis.beside import Shift
from strakes.analysis.levels import Levels
from strakes.analysis.own_levels import own_shifts
from strakes.findings.portrait import CellEstimate
from strakes.findings.results import Measured, Observation, Results
from strakes.findings.sample import Sample
from strakes.statistics.interval import median

BLOCKS, CELLS, EACH_S = 14, 12, 0.4
NONE = Levels((), 0.0)

# How fast a cell is at a moment, with its noise.
Speed = Callable[[int, float, np.random.Generator], float]


def results(speed: Speed, seed: int) -> Results:
    """Blocks over cells that each write and read in a visit, the reads twice as fast."""
    generator = np.random.default_rng(seed)
    runs: dict[tuple[int, str], list[Observation]] = {}
    at_s = 500.0
    for block in range(1, BLOCKS + 1):
        for cell in generator.permutation(CELLS).tolist():
            for operation, rate in (("write", 100.0), ("read", 200.0)):
                value = rate * speed(cell, at_s - 500.0, generator)
                seen = Observation(block, "measure", value, 1, Sample(operation), at_s=at_s)
                runs.setdefault((cell, operation), []).append(seen)
            at_s += EACH_S
    return Results(tuple(measured(*name, of_cell) for name, of_cell in runs.items()), 0.9, {})


def measured(cell: int, operation: str, runs: list[Observation]) -> Measured:
    values = tuple(run.value for run in runs)
    name = f"cell{cell}:{operation}"
    settings: dict[str, str | int | float | bool] = {"ranks": cell + 1, "operation": operation}
    estimate = CellEstimate(
        name, "transfer-size", settings, median(values), None, None, 0.9, len(values), "B/s", "", values
    )
    return Measured(name, "transfer-size", settings, "B/s", tuple(runs), estimate)


def noise(generator: np.random.Generator, deviation: float = 0.05) -> float:
    return float(np.exp(deviation * generator.standard_normal()))


@pytest.mark.parametrize("factor", [0.4, 0.6, 2.0])
@pytest.mark.parametrize("since_s", [20.0, 50.0])
def test_a_lasting_change_of_one_cell_is_named_with_its_moment_and_size(factor: float, since_s: float) -> None:
    (shift,) = own_shifts(results(lambda cell, at_s, random: noise(random) * step(cell, at_s), 3), NONE)
    assert shift.cells == ("cell7:write", "cell7:read")
    assert shift.what == "8 ranks, write, read"
    assert shift.factor == pytest.approx(0.5, rel=0.1)
    assert shift.after_s == pytest.approx(30, abs=CELLS * EACH_S)
    (shift,) = own_shifts(
        results(lambda cell, at_s, random: noise(random) * (factor if cell == 2 and at_s > since_s else 1.0), 4), NONE
    )
    assert shift.cells == ("cell2:write", "cell2:read")
    assert shift.factor == pytest.approx(factor, rel=0.1)
    assert shift.after_s == pytest.approx(since_s, abs=CELLS * EACH_S)


def step(cell: int, at_s: float) -> float:
    return 0.5 if cell == 7 and at_s > 30.0 else 1.0


def test_what_changed_with_its_kind_of_work_is_not_named_again() -> None:
    changed = Levels((Shift("write", 30.0, 0.5, 0.001, ("cell7:write", "cell7:read")),), 0.0)
    assert own_shifts(results(lambda cell, at_s, random: noise(random) * step(cell, at_s), 3), changed) == ()


def heavy(_: int, __: float, generator: np.random.Generator) -> float:
    return float(np.exp(0.1 * generator.standard_t(2)))


def two_levels(_: int, __: float, generator: np.random.Generator) -> float:
    return (0.4 if generator.random() < 0.3 else 1.0) * noise(generator, 0.03)


def stalls(_: int, __: float, generator: np.random.Generator) -> float:
    return float(1 / (1 + 0.2 * generator.pareto(1.5)))


@pytest.mark.parametrize("speed", [lambda *of: noise(of[2], 0.25), heavy, two_levels, stalls])
def test_steady_work_does_not_change_however_it_scatters(speed: Speed) -> None:
    assert sum(bool(own_shifts(results(speed, seed), NONE)) for seed in range(20)) <= 1


@pytest.mark.parametrize("correlation", [0.5, 0.8])
def test_cells_that_wander_do_not_change(correlation: float) -> None:
    found = 0
    for seed in range(20):
        state: dict[int, float] = {}

        def wandering(cell: int, _: float, generator: np.random.Generator, state: dict[int, float] = state) -> float:
            fresh = float(generator.standard_normal())
            before = state.get(cell, fresh)
            state[cell] = correlation * before + (1 - correlation**2) ** 0.5 * fresh
            return float(np.exp(0.1 * state[cell]))

        found += bool(own_shifts(results(wandering, seed), NONE))
    assert found <= 2
