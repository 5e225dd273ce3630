"""What it costs and saves that a ratio is wider by how much its own blocks resemble each other."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from bench.simulate.dependent import autoregression
from strakes.statistics.dependence import dependent_interval, pooled_correlation

CONFIDENCE = 0.998


@dataclass(frozen=True)
class Resemblance:
    """Of series of like blocks: the share that is called dependent, and by how much these are wider (median).

    ``missed``: the share whose interval does not hold 1; ``missed_called``: of those that are called.
    """

    called: float
    times_as_wide: float
    missed: float
    missed_called: float


def resemblance(runs: int, correlation: float, underrated: float | None, tries: int, seed: int) -> Resemblance:
    """``underrated``: the chance that what counts is less than there is; None where nothing counts."""
    import numpy as np

    generator = np.random.default_rng(seed)
    missed = missed_called = 0
    wider = []
    for _ in range(tries):
        values = [float(value) for value in np.log(autoregression(generator, runs, correlation, 0.1))]
        alike = 0.0 if underrated is None else pooled_correlation([values], underrated)
        usual, interval = (dependent_interval(values, CONFIDENCE, each) for each in (0.0, alike))
        assert usual is not None
        assert interval is not None
        misses = not interval.contains(0.0)
        missed += misses
        if alike > 0:
            missed_called += misses
            wider.append((interval.high - interval.low) / (usual.high - usual.low))
    return Resemblance(
        len(wider) / tries, median(wider) if wider else 1.0, missed / tries, missed_called / max(1, len(wider))
    )
