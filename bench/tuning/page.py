"""The page docs/tuning.md: results on the stored landscapes and on simulated ones."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench.tuning.grids import GRIDS, SHARE, Grid
from bench.tuning.landscape import Landscape, foremost, is_whole, load
from bench.tuning.live import KEPT
from bench.tuning.made_up import MadeUpSampler, made_up
from bench.tuning.resampled import METHODS, Found, Sampler, searches
from bench.tuning.worth import Worth, scatter
from strakes.tuning.tune_search import Search, Trial, TrialResult
from strakes.tuning.tune_space import Factor, SearchSpace
from strakes.tuning.tune_words import typed

DOCUMENT = Path(__file__).parents[2] / "docs" / "tuning.md"
GOOD = 0.95
AIM = 0.9
# First seed of the simulated landscapes on the page. Smaller seeds served to develop the search.
_MADE_UP = 1000

# Lower ends of the classes in the table of distributions, as shares of the best setting's value.
_CLASSES = (0.99, 0.95, 0.9, 0.85, 0.0)

_PREAMBLE = """\
# How good the tuner is

This page is made by `python -m bench.tuning page`; do not edit it. `strakes tune` ([guide](guide/tune.md)) searches by
experiment for the best settings of an application. Here it searches recorded landscapes: grids of settings that were
measured on real file systems of the lab, with every repetition kept (`bench/landscapes`). So the search can be repeated
many times, and compared with an exhaustive search and with other methods.

- An **evaluation** is one repetition.
- A search **draws** its repetitions, with replacement, from those measured in the first blocks. The **exhaustive
  search** uses all of these.
- Which setting is **best**, and how close a search came to it, is decided on **held-out** repetitions, which no search
  could draw. The best of many medians looks better than it is. So one half of the held-out repetitions decides which
  setting is best, and the other half how good all settings are; then the halves swap roles. A search can therefore
  reach a little more than 100 %.
- **What the exhaustive search finds** is the setting with the best median of everything that could be drawn. This
  median is noisy, so it need not be the best setting; the held-out repetitions show how good it really is.
- The evaluations of strakes include those of its confirmation, which does not choose between settings any more. TPE and
  random search take the setting with the best single repetition. One factor at a time (the method of S1) takes the
  factors in random order.
- **A grid has** the levels that `strakes tune` itself would vary on that file system. On CephFS and GlusterFS some
  levels were left out, because the whole grid would take too long to measure.
- **The most repeatable conditions** were looked for before any search. On XFS without a limit on the device,
  repetitions differed by 40% and more (20 settings, five times each); with 60 operations a second (trials of 0.45 s) by
  10% (20 settings, four times each); with 30 a second (trials of 1 s) by 6 to 15% (five settings, five times each),
  because a limited device works in time slices of 0.1 s. The file behind the loop device is in memory, so that no other
  disk is involved. On CephFS with objects of 256 KiB and 150 operations a second on each data target, repetitions
  differed by 11%.
- **Fixed before the first block was measured**: the grids, how many blocks searches draw from and how many decide, how
  the best setting is determined, and the aim. The aim is that of 30 searches (seeds 0 to 29), each with 15% of the
  repetitions of the exhaustive search, 27 find at least 95% of what the exhaustive search finds. The other columns and
  the smaller budget are additional. XFS and CephFS were measured at the same time, GlusterFS later.
- **Known before that**: earlier landscapes of XFS and CephFS, which are no longer used. By the same rule
  (on XFS with two blocks to draw from), 24 of 30 searches reached the aim on XFS, and 9 of 30 on a CephFS whose
  repetitions differed by 23%. One reason was that bad settings reach only a hundredth of the best. Since then, made-up
  landscapes have this property. The search was changed on those, with the two earlier landscapes as a check.
"""

_REJECTED = """\
## Rejected methods

- **A prior from a survey.** On these three file systems a survey of two minutes costs more than 5% of the evaluations,
  so nothing is left for the search. A survey of 30 s paid on XFS only, and a wrong prior lost up to 16 of 30 searches.
- **The knowledge gradient** instead of the present acquisition: 38 of 60 small made-up landscapes reached 95% of the
  best, 34 without it. On GlusterFS it lost 4 of 30 searches, where 2 were allowed.
- **Short runs first**, with a quarter of the data, in the first 12% of the budget. Without them, at 15% of one
  repetition of each setting, 27 instead of 20 of 30 searches reached the aim on GlusterFS, 24 as before on XFS, and 26
  instead of 29 on CephFS. At the larger budget there was no difference.

"""


def write(times: int, tries: int, say: Callable[[str], None]) -> None:
    """Write the page. ``times``: searches per cell. ``tries``: searches of pure noise. ``say``: shows progress."""
    grids = [grid for grid in GRIDS if is_whole(grid)]
    parts = [_PREAMBLE, *(_landscape(grid, load(grid.name), times, say) for grid in grids)]
    parts.append(_made_up(times, say))
    say("no effect ...")
    parts.append(_no_effect(tries))
    parts.append(_REJECTED)
    if KEPT.exists():
        parts.append(_live(json.loads(KEPT.read_text(encoding="utf-8"))))
    DOCUMENT.write_text("\n".join(parts), encoding="utf-8")


def _landscape(grid: Grid, landscape: Landscape, times: int, say: Callable[[str], None]) -> str:
    settings, repetitions = len(grid.space.points), sum(map(len, landscape.full))
    parts = [f"## {grid.what}", "", _facts(grid, landscape, repetitions), ""]
    # The exhaustive search measures all repetitions and takes the setting with the best median.
    taken = Worth(landscape).share(foremost(landscape, 1)[0])
    budgets = {
        f"Budget of {SHARE:.0%} of all {repetitions:,} repetitions": SHARE * repetitions,
        f"Budget of {SHARE:.0%} of one repetition of each setting": SHARE * settings,
    }
    for words, budget in budgets.items():
        rows, classes, reached = [], [], {}
        for name, method in METHODS.items():
            say(f"{grid.name}, {words}: {name} ...")
            outcomes = searches(method, grid, (Sampler(grid, landscape, seed, budget) for seed in range(times)))
            rows.append([name, *_row(outcomes, taken)])
            reached[name] = sum(outcome.share >= GOOD * taken for outcome in outcomes)
            classes.append([name, *_distribution(outcomes)])
        goods = [f"at least {GOOD:.0%} of what the exhaustive search finds", f"at least {GOOD:.0%} of the best"]
        heads = ["search", "evaluations", "median share of the best", "lower quartile", "worst search", *goods]
        parts += [f"**{words}**, {times} searches each:", "", _table(heads, rows), ""]
        aim = f"The aim for strakes (in {AIM:.0%} of the searches {GOOD:.0%} of what the exhaustive search finds) is"
        parts += [f"{aim} {'reached' if reached['strakes tune'] >= AIM * times else 'not reached'}.", ""]
        between = [f"{low:.0%} to {high:.0%}" for high, low in pairwise(_CLASSES[:-1])]
        ends = [f"{_CLASSES[0]:.0%} or more", *between, f"less than {_CLASSES[-2]:.0%}"]
        parts += [_table(["searches that reached, of the best,", *ends], classes), ""]
    return "\n".join(parts)


def _row(outcomes: Sequence[Found], taken: float) -> list[str]:
    shares = sorted(outcome.share for outcome in outcomes)
    goods = [sum(share >= GOOD * than for share in shares) for than in (taken, 1.0)]
    return [
        f"{max(outcome.spent for outcome in outcomes):.0f}",
        f"{median(shares):.1%}",
        f"{shares[len(shares) // 4]:.1%}",
        f"{shares[0]:.1%}",
        *(f"{good} of {len(shares)}" for good in goods),
    ]


def _distribution(outcomes: Sequence[Found]) -> list[str]:
    tops = [math.inf, *_CLASSES]
    return [str(sum(low <= outcome.share < high for outcome in outcomes)) for high, low in pairwise(tops)]


def _facts(grid: Grid, landscape: Landscape, repetitions: int) -> str:
    factors = ", ".join(
        f"{factor.name} ({len(factor.levels)})" for factor in grid.space.factors if len(factor.levels) > 1
    )
    worth = Worth(landscape)
    shares = [worth.share(number) for number in range(len(grid.space.points))]
    default, near = shares[grid.space.numbers[grid.space.default]], sum(share >= GOOD for share in shares)
    turns = ", ".join(map(str, grid.searched))
    fewer = "; a smaller block has the best settings so far" if len(set(grid.searched)) > 1 else ""
    exhaustive = shares[foremost(landscape, 1)[0]]
    return " ".join(
        (
            f"{len(shares)} settings of an application of {grid.app.ranks} ranks that writes a checkpoint: {factors};",
            f"{repetitions:,} repetitions (blocks of {turns} settings, in this order{fewer}), measured",
            f"on {landscape.facts.get('measured', '')}. Repetitions of one setting differ by {scatter(landscape):.0%}",
            "(standard deviation of logarithms, median over the settings,",
            "differences between whole blocks included). The best setting is",
            f"{typed(grid.space.settings(grid.space.points[worth.best]))}. The default setting reaches {default:.0%}",
            f"of it; the setting with the best median in the exhaustive search reaches {exhaustive:.0%}; {near}",
            f"settings reach {GOOD:.0%} or more.",
        )
    )


def _made_up(times: int, say: Callable[[str], None]) -> str:
    text = (
        f"{times} simulated landscapes of 300 to 420 settings, each different (`bench/tuning/made_up.py`). Here the "
        "best setting is known exactly. Repetitions scatter by 3 to 20 %, and up to a tenth of them are delayed. The "
        "search was developed on other landscapes of the same kind."
    )
    rows = []
    for name, method in METHODS.items():
        row = [name]
        for repetitions in (1, 3):
            say(f"made up, {repetitions} repetitions: {name} ...")
            shares = []
            for seed in range(_MADE_UP, _MADE_UP + times):
                landscape = made_up(seed)
                sampler = MadeUpSampler(landscape, seed, SHARE * repetitions * len(landscape.space.points))
                shares.append(sampler.share(method(landscape, sampler, seed)))
            row += [f"{median(shares):.1%}", f"{sum(share >= GOOD for share in shares)} of {times}"]
        rows.append(row)
    budgets = [f"{SHARE:.0%} of {many}" for many in ("one repetition of each setting", "three")]
    heads = [
        "search",
        *(
            f"{budget}: {what}"
            for budget in budgets
            for what in ("median share of the best", f"at least {GOOD:.0%} of it")
        ),
    ]
    return "\n".join(["## Made-up landscapes", "", text, "", _table(heads, rows), ""])


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
    text = (
        "Here all settings are equally good except for noise, and blocks drift by half of the noise. A gain is "
        "reported when the 90 % interval of the fresh runs begins above 1. That should happen in at most 5 % of the "
        "searches:"
    )
    return "\n".join(
        [
            "## Where no setting is better",
            "",
            text,
            "",
            _table(["noise of one repetition", "searches", "gain reported"], rows),
            "",
        ]
    )


def _live(rows: Sequence[dict[str, Any]]) -> str:
    text = (
        "The search, which then began with short runs, was run on the real file system with the same number of "
        "evaluations as on its landscape. Then "
        "the setting that it found and the best of the grid were measured alternately, ten times each. The last column "
        "is the gain over the default setting, from the search's own confirmation. Both file systems were searched "
        "at the same time, with other work on the two processors."
    )
    heads = [
        "file system",
        "seed",
        "evaluations",
        "setting found",
        "share of the grid's best, 90 % interval",
        "gain over the default, 90 % interval",
    ]
    lines = [
        [
            row["grid"],
            str(row["seed"]),
            f"{row['evaluations']:g}",
            typed(row["found"]),
            _between(row["share"]),
            _between(row["gain"]),
        ]
        for row in rows
    ]
    return "\n".join(["## Live", "", text, "", _table(heads, lines), ""])


def _between(values: Sequence[float] | None) -> str:
    if values is None:
        return "the default was found best"
    middle, *ends = values
    return f"{middle:.2f}" + (f" [{ends[0]:.2f} - {ends[1]:.2f}]" if ends else "")


def _claims(seed: int, noise: Callable[[random.Random], float]) -> bool:
    space = SearchSpace(
        (Factor("a", (1, 2, 3, 4), 1), Factor("b", (1, 2, 3, 4), 1), Factor("c", ("x", "y", "z"), "x", ordered=False))
    )
    search, chance, spent, budget = Search(space, seed, block=8), random.Random(seed), 0.0, 32

    def cost(_trial: Trial) -> float:
        return 1 / budget

    while trials := search.next_block(spent, cost):
        block, drift = search.blocks, noise(chance) / 2
        for trial in trials:
            search.told.append(TrialResult(trial, block, math.exp(drift + noise(chance))))
            spent += 1 / budget
    return search.gain is not None and search.gain.interval is not None and search.gain.interval.low > 1


def _normal(scale: float) -> Callable[[random.Random], float]:
    return lambda chance: chance.gauss(0, scale)


def _heavy(scale: float) -> Callable[[random.Random], float]:
    return lambda chance: scale * chance.gauss(0, 1) / math.sqrt(chance.gammavariate(1.5, 2 / 3))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
