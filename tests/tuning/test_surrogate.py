"""The surrogate model of the search copes with noisy runs and with settings that differ from their neighbours."""

from __future__ import annotations

import math
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strakes.tuning.tune_surrogate import Evaluation, Geometry, Surrogate, _back, _nearer
from tuning.landscapes import hill, space


def test_a_setting_unlike_its_neighbours_is_estimated_from_its_own_runs() -> None:
    whole, chance = space(), random.Random(2)
    odd = whole.numbers[(4, 4, "posix", "own")]
    runs = []
    for block in range(6):
        for number in {*range(block, len(whole.points), 6), odd}:
            value = hill(whole.settings(whole.points[number])) * (0.6 if number == odd else 1.0)
            runs.append(Evaluation(number, value * math.exp(chance.gauss(0, 0.05)), block))
    surrogate = Surrogate(Geometry(whole), runs)
    truth = math.log(0.6 * hill(whole.settings(whole.points[odd])))
    assert abs(float(surrogate.mean(np.array([odd]))[0]) - truth) < 0.1


def test_a_single_slow_outlier_hardly_changes_the_estimate() -> None:
    whole, chance = space(), random.Random(3)
    best = max(range(len(whole.points)), key=lambda number: hill(whole.settings(whole.points[number])))
    runs = []
    for block in range(3):
        tried = {*range(block, len(whole.points), 3), best}
        runs += [
            Evaluation(point, hill(whole.settings(whole.points[point])) * math.exp(chance.gauss(0, 0.05)), block)
            for point in tried
        ]
    held_up = [
        Evaluation(run.setting, run.value / (8 if run.setting == best and run.block == 1 else 1), run.block)
        for run in runs
    ]
    usual, held_up_model = Surrogate(Geometry(whole), runs), Surrogate(Geometry(whole), held_up)
    assert abs(float(held_up_model.mean()[best] - usual.mean()[best])) < 0.1
    assert held_up_model.scales.noise < 0.2


def test_very_bad_settings_do_not_hide_which_good_setting_is_best() -> None:
    whole, chance = space(), random.Random(4)
    truth = np.log([hill(whole.settings(point)) for point in whole.points])
    bad = np.array([whole.settings(point)["interface"] != "posix" for point in whole.points])
    truth = np.where(bad, truth - 6, truth)
    tried = chance.sample(range(len(whole.points)), len(whole.points) // 2)
    runs = [Evaluation(number, math.exp(truth[number] + chance.gauss(0, 0.03)), number % 5) for number in tried]
    mean = Surrogate(Geometry(whole), runs).mean()
    assert truth[int(np.argmax(mean))] > truth.max() - 0.05 and mean[bad].max() < mean[~bad].min()


@given(st.lists(st.floats(-20, 3), min_size=1, max_size=20))
def test_the_compression_of_bad_values_is_invertible(logs: list[float]) -> None:
    drawn = _nearer(np.array(logs))
    assert np.allclose(_back(drawn), logs, atol=1e-6) and (np.abs(drawn) <= np.abs(logs)).all()
