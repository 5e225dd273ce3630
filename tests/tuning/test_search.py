"""The search finds the best setting, estimates its gain, and claims no gain if all settings are equal."""

from __future__ import annotations

import pytest

from strakes.tuning.tune_search import Search, TrialResult
from tuning.landscapes import flat, hill, search_of, searched, space


def test_the_best_setting_is_found_with_fewer_trials_than_settings() -> None:
    best = max(hill(space().settings(point)) for point in space().points)
    shares = []
    for seed in range(8):
        search = searched(search_of(seed), hill, budget=40, noise=0.05, seed=seed)
        shares.append(hill(search.space.settings(search.best)) / best)
    assert sorted(shares)[1] >= 0.95


def test_the_interval_of_the_gain_is_from_new_runs_alone() -> None:
    search = searched(search_of(1), hill, budget=60, noise=0.05, seed=1)
    truth = hill(search.space.settings(search.best)) / hill(search.space.settings(search.space.default))
    assert search.gain is not None and search.gain.interval is not None
    assert search.gain.interval.low > 1 and abs(search.gain.median / truth - 1) < 0.2
    assert search.confirmation is not None and search.gain.runs == search.confirmation.runs


@pytest.mark.more
def test_if_all_settings_are_equal_a_gain_is_reported_in_at_most_8_of_100_tries() -> None:
    reported = 0
    for seed in range(100):
        gain = searched(search_of(seed, block=8), flat, budget=32, noise=0.1, seed=seed).gain
        reported += gain is not None and gain.interval is not None and gain.interval.low > 1
    assert reported <= 8


def test_if_all_settings_are_equal_the_largest_possible_gain_is_bounded() -> None:
    assert 1.0 <= searched(search_of(3), flat, budget=60, noise=0.05, seed=3).most_possible(0.95) < 1.2


def test_bad_settings_are_not_repeated() -> None:
    search = searched(search_of(4), hill, budget=60, noise=0.05, seed=4)
    runs: dict[float, int] = {}
    for result in search.told:
        if result.trial.stage != "confirm":
            value = hill(search.space.settings(result.trial.point))
            runs[value] = runs.get(value, 0) + 1
    worse_half = sorted(runs)[: len(runs) // 2]
    assert max(runs[value] for value in worse_half) <= 3


def test_a_resumed_search_continues_exactly() -> None:
    whole = searched(search_of(5), hill, budget=30, noise=0.1, seed=5)
    cut = next(number for number, result in enumerate(whole.told) if result.block == 6)
    resumed = Search(whole.space, 5, told=list(whole.told[:cut]))
    block = resumed.next_block(len(resumed.told) / 30, lambda trial: 1 / 30)
    assert block == [result.trial for result in whole.told if result.block == 6]


def test_a_failing_setting_is_avoided_and_does_not_end_the_search() -> None:
    search = search_of(6)
    spent = 0.0
    while search.confirmation is None:
        trials, block = search.next_block(spent, lambda trial: 1 / 40), search.blocks
        for trial in trials:
            at = search.space.settings(trial.point)
            fails = at["interface"] == "mmap"
            search.told.append(TrialResult(trial, block, None if fails else hill(at)))
            spent += 1 / 40
    assert search.space.settings(search.best)["interface"] != "mmap"


def test_only_combinations_that_are_possible_are_proposed() -> None:
    search = searched(search_of(7), hill, budget=40, noise=0.1, seed=7)
    assert all(result.trial.point in search.space.numbers for result in search.told)
