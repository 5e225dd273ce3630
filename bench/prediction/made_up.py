"""Made-up systems that saturate (universal scalability law, Gunther 2007), each size measured once."""

from __future__ import annotations

import math

import numpy as np

from strakes.predict.levels import MeasuredLevel, Scale
from strakes.predict.model import Model

_SIZES, _ASKED = (1, 2, 4, 8, 16), (32, 64)
SYSTEMS = 60


def share_inside(scatter: float, seed: int = 4711) -> float:
    """Return the share of forecasts whose interval holds what would be measured, with this scatter of a measurement."""
    generator = np.random.default_rng(seed)
    inside = []
    for _ in range(SYSTEMS):
        serial, pairs = 10 ** generator.uniform(-2.5, -0.5), 10 ** generator.uniform(-5, -2.5)

        def measure(ranks: int, serial: float = serial, pairs: float = pairs) -> float:
            law = math.log(1000 * ranks / (1 + serial * (ranks - 1) + pairs * ranks * (ranks - 1)))
            return law + scatter * float(generator.standard_normal())

        model = Model([MeasuredLevel(Scale(ranks, ranks), measure(ranks), 0.0) for ranks in _SIZES])
        for ranks in _ASKED:
            forecast = model.forecast(Scale(ranks, ranks))
            inside.append(forecast.low <= math.exp(measure(ranks)) <= forecast.high)
    return sum(inside) / len(inside)
