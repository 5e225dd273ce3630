"""How often the interval of a ratio covers the true ratio, and how often a verdict is wrong or found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from bench.simulate.shapes import Shape, bimodal, heavy_tailed, log_normal, normal, slowed_down
from strakes.statistics.contrast import Verdict, independent_ratio, paired_ratio, verdict
from strakes.statistics.interval import Estimate
from strakes.statistics.stopping import StoppingRule

if TYPE_CHECKING:
    import numpy as np

CONFIDENCE = 0.9
DRIFT_PER_VISIT = 0.01

Design = Literal["paired", "paired-drift", "independent"]


@dataclass(frozen=True)
class Pair:
    """Two settings to compare, both with rates around 1."""

    a: Shape
    b: Shape

    @property
    def name(self) -> str:
        return f"{self.a.name} / {self.b.name}" if self.a.name != self.b.name else f"{self.a.name}, both"


def ratio_pairs() -> tuple[Pair, ...]:
    """Like shapes, and shapes that differ in scatter, skew and modes."""
    steady, noisy, stalls = normal(0.03), log_normal(0.3), slowed_down(0.1)
    groups, halves = bimodal(0.7, 0.6), bimodal(0.5, 0.6)
    alike = (normal(0.05), noisy, heavy_tailed(0.1), stalls, groups, halves)
    unlike = ((noisy, steady), (stalls, steady), (heavy_tailed(0.1), stalls), (groups, steady), (halves, steady))
    return (*(Pair(shape, shape) for shape in alike), *(Pair(a, b) for a, b in unlike))


def ratio_coverage(pair: Pair, design: Design, runs: tuple[int, int], tries: int, seed: int) -> float:
    """Share of intervals at 90 % that hold the true ratio.

    ``paired``: common blocks that are faster or slower as a whole by 10 %; the true ratio is the median of a / b.
    ``paired-drift``: besides, the target slows by 1 % with every visit, and the order within a block is random.
    ``independent``: sets of runs of their own; the true ratio is that of the medians.
    """
    import numpy as np

    truth = pair.a.median / pair.b.median if design == "independent" else _median_ratio(pair)
    covered = 0
    for ratio in _ratios(pair, design, runs, tries, np.random.default_rng(seed)):
        covered += ratio.interval is not None and ratio.interval.contains(truth)
    return covered / tries


def verdicts(
    pair: Pair, design: Design, runs: int, slower: float, margin: float, tries: int, seed: int
) -> dict[Verdict, float]:
    """Share of each verdict when ``a`` is slowed by the factor 1 - ``slower``."""
    import numpy as np

    counts = dict.fromkeys(Verdict, 0)
    for ratio in _ratios(pair, design, (runs, runs), tries, np.random.default_rng(seed), 1 - slower):
        counts[verdict(ratio, margin)] += 1
    return {outcome: count / tries for outcome, count in counts.items()}


def stopped_ratio_coverage(pair: Pair, tries: int, seed: int) -> float:
    """Coverage of the paired ratio over the blocks two cells share, when each cell stops by its own interval (or at 20
    runs).
    """
    import numpy as np

    rule = StoppingRule(max_runs=20)
    truth = _median_ratio(pair)
    generator = np.random.default_rng(seed)
    rates = [shape.draw(generator, (tries, rule.max_runs)).tolist() for shape in (pair.a, pair.b)]
    covered = 0
    for a, b in zip(*rates, strict=True):
        common = min(_stops_at(rule, a), _stops_at(rule, b))
        ratio = paired_ratio(dict(enumerate(a[:common])), dict(enumerate(b[:common])), CONFIDENCE)
        covered += ratio.interval is not None and ratio.interval.contains(truth)
    return covered / tries


def _stops_at(rule: StoppingRule, rates: list[float]) -> int:
    return next(runs for runs in range(rule.smallest_runs, rule.max_runs + 1) if rule.judge(rates[:runs]).stop)


def _ratios(
    pair: Pair, design: Design, runs: tuple[int, int], tries: int, generator: np.random.Generator, factor: float = 1.0
) -> Iterator[Estimate]:
    import numpy as np

    all_a, all_b = factor * pair.a.draw(generator, (tries, runs[0])), pair.b.draw(generator, (tries, runs[1]))
    if design != "independent":
        blocks = np.exp(0.1 * generator.standard_normal((tries, runs[0])))
        all_a, all_b = all_a * blocks, all_b * blocks
    if design == "paired-drift":
        a_first = generator.integers(0, 2, (tries, runs[0]))
        visits = 2 * np.arange(runs[0])
        all_a, all_b = (
            all_a * (1 - DRIFT_PER_VISIT) ** (visits + 1 - a_first),
            all_b * (1 - DRIFT_PER_VISIT) ** (visits + a_first),
        )
    for a, b in zip(all_a.tolist(), all_b.tolist(), strict=True):
        if design == "independent":
            yield independent_ratio(a, b, CONFIDENCE)
        else:
            yield paired_ratio(dict(enumerate(a)), dict(enumerate(b)), CONFIDENCE)


@lru_cache(maxsize=64)
def _median_ratio(pair: Pair) -> float:
    """Return the median of a / b: exact for like shapes, otherwise of four million draws (its error is far below an
    interval's width).
    """
    import numpy as np

    if pair.a.name == pair.b.name:
        return 1.0
    generator = np.random.default_rng(1)
    return float(np.median(pair.a.draw(generator, (4_000_000,)) / pair.b.draw(generator, (4_000_000,))))
