"""The simple rules that a forecast has to beat, with intervals from the other systems' errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median, quantiles

from bench.prediction.io500 import COVERAGE, Forecast, Forecaster, Learner, Pair, Submission

# The exponent of a phase by the pairs that a rule was shown.
Exponents = Callable[[Sequence[Pair], str], float]


def _measured_exponents(pairs: Sequence[Pair], phase: str) -> list[float]:
    return [
        math.log(pair.large.rates[phase] / pair.small.rates[phase]) / math.log(pair.large.nodes / pair.small.nodes)
        for pair in pairs
        if phase in pair.phases
    ]


def _median_exponent(pairs: Sequence[Pair], phase: str) -> float:
    return median(_measured_exponents(pairs, phase) or [0.0])


def power_rule(exponent_of: Exponents | float) -> Learner:
    """Grow with the number of nodes to that power; the interval widens with the logarithm of the distance."""

    def learn(pairs: Sequence[Pair]) -> Forecaster:
        def forecast(small: Submission, nodes: int, _tasks: int, phases: Sequence[str]) -> Mapping[str, Forecast]:
            distance = math.log(nodes / small.nodes)
            forecasts = {}
            for phase in phases:
                exponent = exponent_of if isinstance(exponent_of, float) else exponent_of(pairs, phase)
                misses = [measured - exponent for measured in _measured_exponents(pairs, phase)]
                ends = quantiles(misses, n=round(2 / (1 - COVERAGE)), method="inclusive") if len(misses) > 1 else [0.0]
                low, middle, high = (
                    small.rates[phase] * math.exp((exponent + miss) * distance) for miss in (ends[0], 0.0, ends[-1])
                )
                forecasts[phase] = Forecast(middle, low, high)
            return forecasts

        return forecast

    return learn


RULES: Mapping[str, Learner] = {
    "constant": power_rule(0.0),
    "linear": power_rule(1.0),
    "power law, others' exponent": power_rule(_median_exponent),
}
