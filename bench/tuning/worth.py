"""What every setting of a landscape is worth, and which is best: decided on repetitions that no search could draw.

The best of many medians looks better than it is. So one half of the held-out repetitions says which setting is best,
and the other half how good that one and all others are; then the other way round. What a whole block was faster or
slower by is taken out first.
"""

from __future__ import annotations

import math
from statistics import mean, median, stdev

from bench.tuning.landscape import Landscape

Values = list[dict[int, float]]


class Worth:
    """Of every setting."""

    def __init__(self, landscape: Landscape) -> None:
        full, held = _levelled(landscape)
        blocks = _blocks(held)
        self._sides = [_medians(full, held, [block for block in blocks if block % 2 == odd]) for odd in (0, 1)]
        known = [number for number, values in enumerate(held) if len(values) == len(blocks)]
        self._best = [max(known, key=side.__getitem__) for side in self._sides]
        everything = _medians(full, held, blocks)
        self.best = max(known, key=everything.__getitem__)

    def share(self, number: int) -> float:
        """Of the best, by the halves that did not say which is."""
        first, second = self._sides
        return math.sqrt(second[number] / second[self._best[0]] * first[number] / first[self._best[1]])


def scatter(landscape: Landscape) -> float:
    """Of one repetition: the usual standard deviation of its logarithm (median over the settings), with what blocks
    differ by.
    """
    return median(stdev(map(math.log, values.values())) for values in landscape.full if len(values) > 1)


def _blocks(held: Values) -> list[int]:
    return sorted({block for values in held for block in values})


def _medians(full: Values, held: Values, blocks: list[int]) -> list[float]:
    """Of settings that were not held out often enough, of all their repetitions."""
    values = [
        [values[block] for block in blocks]
        if all(block in values for block in blocks)
        else [*values.values(), *others.values()]
        for values, others in zip(held, full, strict=True)
    ]
    return [median(values_of_one) for values_of_one in values]


def _levelled(landscape: Landscape) -> tuple[Values, Values]:
    """Return the repetitions less what their block was faster or slower by, told by the settings that are in every
    block.
    """
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
