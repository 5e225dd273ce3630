"""Quality of each setting of a landscape, from held-out repetitions that no search can draw.

The best of many noisy medians is biased upwards. Therefore one half of the held-out repetitions selects the best
setting, and the other half determines the quality of all settings. Then the halves swap roles. Block effects are
removed first.
"""

from __future__ import annotations

import math
from statistics import mean, median, stdev

from bench.tuning.landscape import Landscape

Values = list[dict[int, float]]


class Worth:
    """Quality of all settings. ``best``: index of the best setting in all held-out repetitions."""

    def __init__(self, landscape: Landscape) -> None:
        full, held = _levelled(landscape)
        blocks = _blocks(held)
        self._sides = [_medians(full, held, [block for block in blocks if block % 2 == odd]) for odd in (0, 1)]
        known = [number for number, values in enumerate(held) if len(values) == len(blocks)]
        self._best = [max(known, key=side.__getitem__) for side in self._sides]
        everything = _medians(full, held, blocks)
        self.best = max(known, key=everything.__getitem__)

    def share(self, number: int) -> float:
        """Return the quality of a setting / the best quality: geometric mean over both halves of the repetitions."""
        first, second = self._sides
        return math.sqrt(second[number] / second[self._best[0]] * first[number] / first[self._best[1]])


def scatter(landscape: Landscape) -> float:
    """Return the median, over settings, of the standard deviation of log repetitions (block effects included)."""
    return median(stdev(map(math.log, values.values())) for values in landscape.full if len(values) > 1)


def _blocks(held: Values) -> list[int]:
    return sorted({block for values in held for block in values})


def _medians(full: Values, held: Values, blocks: list[int]) -> list[float]:
    """Return each setting's median over ``blocks``, or over all its repetitions if it lacks a block."""
    values = [
        [values[block] for block in blocks]
        if all(block in values for block in blocks)
        else [*values.values(), *others.values()]
        for values, others in zip(held, full, strict=True)
    ]
    return [median(values_of_one) for values_of_one in values]


def _levelled(landscape: Landscape) -> tuple[Values, Values]:
    """Divide ``full`` and ``held`` by block effects, estimated from settings that every held-out block contains."""
    everywhere = [
        {**full, **held}
        for full, held in zip(landscape.full, landscape.held, strict=True)
        if len(held) == len(_blocks(landscape.held))
    ]
    usual = [mean(map(math.log, values.values())) for values in everywhere]
    levels = {
        block: math.exp(
            median(math.log(values[block]) - middle for values, middle in zip(everywhere, usual, strict=True))
        )
        for block in everywhere[0]
    }

    def level(values: Values) -> Values:
        return [
            {block: value / levels[block] for block, value in values_of_setting.items()} for values_of_setting in values
        ]

    return level(landscape.full), level(landscape.held)
