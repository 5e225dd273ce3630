"""Where the level of a past changed, so that what was learned over a change is not taken for noise.

How much a value resembles the one before is read off differences, which a change of level leaves alone; with that
taken out, the past is cut where a cut saves more squares than chance lets it (Chakar, Lebarbier, Levy-Leduc and Robin,
Bernoulli 23 (2017) 1408).
"""

from __future__ import annotations

import numpy as np

from strakes.watch.values import Numbers

# A regime has at least so many values: what is shorter is an episode, and part of the noise.
SHORTEST_REGIME = 10
# What a cut must save, in variances of the noise times the logarithm of the number of values. Independent normal values
# need 2; tails are heavier, and the resemblance is an estimate.
_PENALTY = 6.0
# There is no more than one change in so many values.
_APART = 30
_NEIGHBOURS = 3
_FAR = 3.0
_MOST_OWED = 0.9


def regime_begins(past: Numbers, fewest: int = SHORTEST_REGIME) -> list[int]:
    """Return the indices at which regimes of at least ``fewest`` values begin; the first is 0."""
    count = len(past)
    differences = np.abs(np.diff(past))
    spread = 1.4826 * float(np.median(differences))
    if count < 2 * fewest or spread == 0:
        return [0]
    # Outliers are drawn towards their neighbours, or two of them would be a regime.
    padded = np.pad(past, _NEIGHBOURS, mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEIGHBOURS + 1), axis=1)
    tame = middle + np.clip(past - middle, -_FAR * spread, _FAR * spread)
    owed = _owed(past)
    rest = tame[1:] - owed * tame[:-1]
    noise = _noise(past, owed)
    cuts = _cut(rest, fewest, _PENALTY * noise**2 * float(np.log(count)))
    # A level that changes more often wanders, and how far it wanders is what chance does.
    return [0, *(cut + 1 for cut in cuts)] if len(cuts) <= count // _APART else [0]


def aligned(past: Numbers, begins: list[int]) -> Numbers:
    """Return the past as if every regime had had the level of the last one."""
    ends = [*begins[1:], len(past)]
    levels = [float(np.median(past[begin:end])) for begin, end in zip(begins, ends, strict=True)]
    moved = past.copy()
    for begin, end, level in zip(begins, ends, levels, strict=True):
        moved[begin:end] += levels[-1] - level
    return moved


def _owed(past: Numbers) -> float:
    """Return the correlation of neighbours, whatever the levels."""
    one, two = (float(np.median(np.abs(past[lag:] - past[:-lag]))) for lag in (1, 2))
    return min(_MOST_OWED, max(0.0, (two / one) ** 2 - 1))


def _noise(past: Numbers, owed: float) -> float:
    """Return the spread of what a value does not owe to the one before."""
    rest = past[1:] - owed * past[:-1]
    # The difference of two such rests has no level, and twice their variance.
    return 1.4826 * float(np.median(np.abs(np.diff(rest)))) / float(np.sqrt(2))


def _cut(values: Numbers, fewest: int, penalty: float) -> list[int]:
    """Return where to cut so that squares and penalties are fewest (dynamic programming over all cuts)."""
    count = len(values)
    total = np.concatenate([[0.0], np.cumsum(values)])
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(count + 1, dtype=np.int64)
    for end in range(fewest, count + 1):
        begins = np.arange(0, end - fewest + 1)
        # Squares about the mean, but for the sum of all squares, which every way of cutting has.
        costs = best[begins] - (total[end] - total[begins]) ** 2 / (end - begins) + penalty
        last[end] = int(np.argmin(costs))
        best[end] = costs[last[end]]
    cuts: list[int] = []
    place = int(last[count])
    while place > 0:
        cuts.append(place)
        place = int(last[place])
    return cuts[::-1]
