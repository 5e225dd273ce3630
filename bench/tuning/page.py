"""docs/tuning.md, made from the landscapes that were kept and from simulation."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.tuning.grids import GRIDS, Grid
from bench.tuning.landscape import PLACE, Landscape, load
from bench.tuning.live import KEPT
from bench.tuning.resampled import METHODS, Found, FromRuns, FromSmooth, Sampler, searches
from bench.tuning.smooth import Smooth, smooth
from strakes.tune.search import Observation, Rules, Search, Trial
from strakes.tune.space import Factor, Space
from strakes.tune.words import typed

DOCUMENT = Path(__file__).parents[2] / "docs" / "tuning.md"
GOOD = 0.95
SHARE = 0.15

_PREAMBLE = """\
# How good the tuner is

Made by `python -m bench.tuning page`; do not edit. `strakes tune` ([guide](guide/tune.md)) searches the settings of an application by
experiment. Here it searches landscapes that were measured before: a grid of settings on a real file system of the lab, every repetition
kept (`bench/landscapes`), so that it can be held against trying everything, and against other searches, many times.

- An **evaluation** is one repetition with all data; one with a quarter of them counts as a quarter.
- **Smoothed**: the landscape is the fit of all runs (effects of each setting and of every two together), and a repetition is that and the
  rest that some run really had beside the fit. What a setting is worth is then known exactly.
- **As measured**: a repetition is one that was measured, drawn with replacement from those of the first blocks; what a setting is worth is
  the median of repetitions that were **held out**, against that of the setting which an exhaustive search takes (the best median of the
  first blocks). Where repetitions scatter much, what decides is itself mostly luck, for every search alike.
- The evaluations of strakes include those of its confirmation (a fifth of the budget), which chooses nothing any more.
"""


def write(times: int, tries: int, say: Callable[[str], None]) -> None:
    """The whole document."""
    parts = [_PREAMBLE]
    there = [grid for grid in GRIDS if (PLACE / f"{grid.name}.json.gz").exists()]
    parts += [_landscape(grid, load(grid.name), times, say) for grid in there]
    say("no effect ...")
    parts.append(_no_effect(tries))
    if KEPT.exists():
        parts.append(_live(json.loads(KEPT.read_text(encoding="utf-8"))))
    DOCUMENT.write_text("\n".join(parts), encoding="utf-8")


def _landscape(grid: Grid, landscape: Landscape, times: int, say: Callable[[str], None]) -> str:
    settings, repetitions = len(grid.space.points), min(len(one) for one in landscape.full)
    smoothed = smooth(landscape, grid)
    parts = [f"## {grid.what}", "", _facts(grid, landscape, smoothed, repetitions), ""]
    heads = ["search", "evaluations", "median share of the best", "a quarter of the searches below", "worst", f"at least {GOOD:.0%}"]
    of_one = f"{SHARE:.0%} of one repetition of each setting"
    of_all = f"{SHARE:.0%} of all {settings * repetitions:,} repetitions"
    kinds: list[tuple[str, Callable[[int, float], Sampler]]] = [
        ("Without the noise of what decides (smoothed)", lambda seed, budget: FromSmooth(smoothed, grid, seed, budget))
    ]
    if all(landscape.held):
        kinds.append(("As measured, decided on held-out repetitions", lambda seed, budget: FromRuns(landscape, grid, seed, budget)))
    for title, sampler in kinds:
        rows = []
        for words, share in ((of_one, SHARE), (of_all, SHARE * repetitions)) if repetitions > 1 else ((of_one, SHARE),):
            rows.append([f"**{words}**", "", "", "", "", ""])
            for name, method in METHODS.items():
                say(f"{grid.name}, {title}, {words}: {name} ...")
                rows.append([name, *_row(searches(method, grid, (sampler(seed, share * settings) for seed in range(times))))])
        parts += [f"**{title}**, {times} searches each:", "", _table(heads, rows), ""]
    return "\n".join(parts)


def _row(found: Sequence[Found]) -> list[str]:
    shares = sorted(one.share for one in found)
    good = sum(share >= GOOD for share in shares)
    return [
        f"{max(one.spent for one in found):.0f}",
        f"{median(shares):.1%}",
        f"{shares[len(shares) // 4]:.1%}",
        f"{shares[0]:.1%}",
        f"{good} of {len(shares)}",
    ]


def _facts(grid: Grid, landscape: Landscape, smoothed: Smooth, repetitions: int) -> str:
    factors = ", ".join(f"{factor.name} ({len(factor.levels)})" for factor in grid.space.factors if len(factor.levels) > 1)
    when = landscape.facts.get("measured", "")
    noise = float(smoothed.noise.std())
    shares = [smoothed.share(number) for number in range(len(grid.space.points))]
    default, near = shares[grid.space.numbers[grid.space.default]], sum(share >= GOOD for share in shares)
    kept = f"{repetitions} repetitions of each with all data, measured on {when} while the machine did much other work"
    apart = f"a repetition differs from what its setting reaches by {noise:.0%} (standard deviation of logarithms)"
    reach = f"The default reaches {default:.0%} of the best; {near} settings reach {GOOD:.0%} of it (both smoothed)."
    return f"{len(shares)} settings: {factors}; {kept}: {apart}. {reach}"


def _no_effect(tries: int) -> str:
    rows = []
    for name, noise in (
        ("normal, 10 %", _normal(0.1)),
        ("normal, 30 %", _normal(0.3)),
        ("heavy-tailed (t with 3 degrees), 10 %", _heavy(0.1)),
    ):
        reported = sum(_claims(seed, noise) for seed in range(tries))
        share = reported / tries
        rows.append([name, f"{tries:,}", f"{share:.2%} ± {math.sqrt(max(share, 1 / tries) * (1 - share) / tries):.2%}"])
    said = (
        "All settings are alike but for noise, and blocks drift by half of it. A gain is reported where the 90 % interval of the fresh "
        "runs begins above 1, so in 5 % of the tries at most:"
    )
    return "\n".join(
        ["## Where no setting is better", "", said, "", _table(["noise of one repetition", "tries", "gain reported"], rows), ""]
    )


def _live(rows: Sequence[dict[str, Any]]) -> str:
    said = (
        "The same search on the file system itself; what it found and the best of the smoothed grid were then measured in turn, ten times "
        "each. The gain is that over the default, from the search's own confirmation."
    )
    heads = [
        "file system",
        "seed",
        "evaluations",
        "found",
        "share of the grid's best, 90 % interval",
        "gain over the default, 90 % interval",
    ]
    lines = [
        [one["grid"], str(one["seed"]), f"{one['evaluations']:g}", typed(one["found"]), _between(one["share"]), _between(one["gain"])]
        for one in rows
    ]
    return "\n".join(["## Live", "", said, "", _table(heads, lines), ""])


def _between(values: Sequence[float] | None) -> str:
    if values is None:
        return "the default was found best"
    middle, *ends = values
    return f"{middle:.2f}" + (f" [{ends[0]:.2f} - {ends[1]:.2f}]" if ends else "")


def _claims(seed: int, noise: Callable[[random.Random], float]) -> bool:
    space = Space((Factor("a", (1, 2, 3, 4), 1), Factor("b", (1, 2, 3, 4), 1), Factor("c", ("x", "y", "z"), "x", ordered=False)))
    search, chance, spent, budget = Search(space, seed, Rules(low_share=1.0, block=8)), random.Random(seed), 0.0, 32

    def cost(_trial: Trial) -> float:
        return 1 / budget

    while trials := search.next_block(spent, cost):
        block, drift = search.blocks, noise(chance) / 2
        for trial in trials:
            search.tell(Observation(trial, block, math.exp(drift + noise(chance))))
            spent += 1 / budget
    return search.gain is not None and search.gain.interval is not None and search.gain.interval.low > 1


def _normal(scale: float) -> Callable[[random.Random], float]:
    return lambda chance: chance.gauss(0, scale)


def _heavy(scale: float) -> Callable[[random.Random], float]:
    return lambda chance: scale * chance.gauss(0, 1) / math.sqrt(chance.gammavariate(1.5, 2 / 3))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
