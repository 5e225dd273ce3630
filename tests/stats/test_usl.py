"""Fits of the universal scalability law: exact data, the peak, and the coverage of intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapes import Shape, normal, slowed_down
from strakes.stats.usl import Law, fit

CLIENTS = (1, 2, 4, 8, 16, 32)
laws = st.builds(Law, st.floats(1.0, 1e9), st.floats(0.0, 0.9), st.floats(0.0, 0.05))


@given(laws)
def test_exact_rates_give_their_law(law: Law) -> None:
    found = fit({clients: [law.rate(clients)] * 5 for clients in CLIENTS})
    assert found.law.rate_of_one == pytest.approx(law.rate_of_one, rel=1e-6)
    assert found.law.contention == pytest.approx(law.contention, abs=1e-6)
    assert found.law.coherency == pytest.approx(law.coherency, abs=1e-6) and found.worst_residual < 1e-6
    assert found.measured_up_to == 32


@given(laws)
def test_the_rate_is_highest_at_the_peak(law: Law) -> None:
    if law.peak < 1e6:
        top = law.rate(law.peak)
        assert law.rate(0.9 * law.peak + 0.1) <= top * (1 + 1e-9) and law.rate(1.1 * law.peak) <= top * (1 + 1e-9)


def test_contention_alone_never_lets_the_rate_fall_and_full_contention_never_lets_it_rise() -> None:
    assert Law(100.0, 0.2, 0.0).peak == math.inf and Law(100.0, 1.0, 0.01).peak == 1.0


@given(laws, st.lists(st.lists(st.floats(0.8, 1.25), min_size=5, max_size=5), min_size=4, max_size=6))
def test_a_fit_is_as_good_as_any_law_nearby_not_negative_and_inside_its_intervals(
    true: Law, noise: list[list[float]]
) -> None:
    rates = {
        clients: [true.rate(clients) * factor for factor in row] for clients, row in zip(CLIENTS, noise, strict=False)
    }
    found = fit(rates)
    law = found.law
    middle = {clients: sorted(row)[2] for clients, row in rates.items()}

    def error(tried: Law) -> float:
        return sum((middle[clients] / tried.rate(clients) - 1) ** 2 for clients in middle)

    assert law.contention >= 0 and law.coherency >= 0
    assert found.contention.contains(law.contention) and found.coherency.contains(law.coherency)
    assert found.peak.contains(law.peak)
    assert all(found.rate(clients).contains(law.rate(clients)) for clients in (1, 16, 64))
    for factor in (0.9, 0.999, 1.001, 1.1):
        assert error(law) <= error(Law(law.rate_of_one * factor, law.contention, law.coherency)) * (1 + 1e-6) + 1e-9
        assert error(law) <= error(Law(law.rate_of_one, law.contention * factor, law.coherency)) * (1 + 1e-6) + 1e-9
        assert error(law) <= error(Law(law.rate_of_one, law.contention, law.coherency * factor)) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("shape", [normal(0.05), slowed_down(0.1)], ids=lambda shape: shape.name)
@pytest.mark.parametrize("law", [Law(100.0, 0.05, 0.001), Law(100.0, 0.2, 0.0), Law(100.0, 0.01, 0.01)])
def test_intervals_cover_the_true_coefficients_and_rates(law: Law, shape: Shape) -> None:
    tries, runs = 100, 6
    generator = np.random.default_rng(3)
    held = np.zeros(5)
    for _ in range(tries):
        rates = {
            clients: (law.rate(clients) * shape.draw(generator, (runs,)) / shape.median).tolist() for clients in CLIENTS
        }
        found = fit(rates)
        held += [
            found.contention.contains(law.contention),
            found.coherency.contains(law.coherency),
            found.rate(32).contains(law.rate(32)),
            found.rate(64).contains(law.rate(64)),
            found.peak.contains(law.peak),
        ]
    assert held.min() / tries >= 0.88 - 3.7 * math.sqrt(0.88 * 0.12 / tries)


def test_data_that_do_not_follow_the_law_have_a_large_residual() -> None:
    steps = {1: 100.0, 2: 100.0, 4: 100.0, 8: 800.0, 16: 800.0, 32: 50.0}
    assert fit({clients: [rate] * 5 for clients, rate in steps.items()}).worst_residual > 0.3


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        ({1: [1.0], 2: [2.0], 4: [3.0]}, "at least 4 different numbers of clients"),
        ({0: [1.0], 1: [1.0], 2: [2.0], 4: [3.0]}, "at least 4 different numbers of clients"),
        ({1: [1.0], 2: [0.0], 4: [3.0], 8: [4.0]}, "above zero"),
    ],
)
def test_too_few_numbers_of_clients_and_rates_of_zero_are_refused(rates: dict[int, list[float]], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        fit(rates)


@pytest.mark.parametrize("cap", [3, 4, 6])
def test_a_hard_limit_that_the_law_cannot_express_is_in_its_interval(cap: int) -> None:
    generator = np.random.default_rng(cap)
    rates = {
        clients: (100.0 * min(clients, cap) * np.exp(0.03 * generator.standard_normal(6))).tolist()
        for clients in (1, 2, 3, 4, 8)
    }
    assert fit(rates).rate(16).contains(100.0 * cap)
