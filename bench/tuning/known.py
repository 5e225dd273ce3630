"""What a portrait is worth to the tuner, and what an ideal observer would reach: computed once, kept, and told."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bench.tuning.grids import GRIDS, Grid
from bench.tuning.ideal import observe, truth
from bench.tuning.knowledge import (
    PORTRAIT_S,
    SHORT_CONFIRMATION,
    evaluation_s,
    portrait_of,
    prior,
    searched,
)
from bench.tuning.landscape import PLACE, Landscape, is_whole, load
from bench.tuning.made_up import MadeUp, MadeUpSampler, made_up
from bench.tuning.resampled import Draws, Method, Sampler, Task, at_random, gaussian, tpe
from bench.tuning.worth import scatter
from strakes.tune.rank import rank_correlation
from strakes.tune.space import Point
from strakes.tune.surrogate import Array

KEPT = PLACE / "known.json"
SHARE, GOOD, AIM, SEARCHES = 0.05, 0.95, 0.9, 30
_SHORT_S = 30.0
_ERRORS = (0.05, 0.1, 0.2, 0.4, math.inf)
# Made-up landscapes that variants were compared on; a survey of 30 s costs about what it does on XFS and CephFS.
_MADE_UP, _MADE_UP_COST = range(300, 324), 18
# Errors of what a made-up survey says of a level, by how long it takes.
_WHOLE, _PART = 0.15, 0.3

# Fewer evaluations than one block are no search.
_FEWEST = 6
_OBSERVED = 60
# Searches that a wrong prior may cost, by the yardstick.
_MOST_LOST = 3

_COUNTED = ("counted", "fewer")
_ROWS = (
    ("today", "strakes tune as it is"),
    ("short", "strakes tune, short confirmation"),
    ("tpe", "Optuna TPE"),
    ("gp", "Optuna's Gaussian process"),
    ("random", "random search"),
    ("free", "prior from the portrait, short confirmation"),
    ("wrong", "the same prior with its sign reversed"),
    ("counted", "prior from a portrait of 30 s, short confirmation"),
    ("fewer", "no prior, and fewer evaluations by the cost of that portrait"),
)


# What is computed first: what no other table has.
_ORDER = ("free", "counted", "fewer", "today", "short", "tpe", "gp", "random", "wrong")
# Searches that know nothing of portraits.
_OTHERS: Mapping[str, Method] = {"tpe": tpe, "gp": gaussian, "random": at_random}


def compute(say: Callable[[str], None], kept_at: Path = KEPT) -> None:
    """Add what is not kept yet; every figure is kept as soon as it is there."""
    kept: dict[str, dict[str, Any]] = json.loads(kept_at.read_text()) if kept_at.exists() else {}
    for place, name, value in _tasks():
        if name not in kept.setdefault(place, {}) and (name != "gp" or find_spec("torch")):
            kept[place][name] = value()
            say(f"{place} {name}: {kept[place][name]}")
            kept_at.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _tasks() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    for grid in GRIDS:
        if not is_whole(grid):
            continue
        landscape = load(grid.name)
        values, noise, budget = truth(grid, landscape), scatter(landscape), SHARE * sum(map(len, landscape.full))
        facts = {
            "evaluation_s": round(evaluation_s(grid, landscape), 2),
            "budget": budget,
            "good": int((values >= math.log(GOOD)).sum()),
            "scatter": noise,
            "correlation": rank_correlation(list(prior(grid, portrait_of(grid))), list(values)),
        }
        yield from ((grid.name, name, partial(_given, fact)) for name, fact in facts.items())
        for error in _ERRORS:
            yield grid.name, f"ideal {error}", partial(_ideally, values, noise, error, round(budget))
        for name in _ORDER:
            less = _SHORT_S / evaluation_s(grid, landscape) if name in _COUNTED else 0.0
            if budget - less >= _FEWEST:
                yield grid.name, name, partial(_on, grid, landscape, name, budget - less)
    for name in _ORDER:
        yield "made up", name, partial(_on_made_up, name, _MADE_UP_COST if name in _COUNTED else 0)


def _given(fact: float) -> float:
    return fact


def _ideally(values: Array, noise: float, error: float, budget: int) -> dict[str, float]:
    return asdict(observe(values, noise, error, budget, GOOD, _OBSERVED))


def _on(grid: Grid, landscape: Landscape, name: str, budget: float) -> int:
    """How many searches reach the aim."""
    cells = portrait_of(grid, part=name == "counted")
    known = {"free": 1, "counted": 1, "wrong": -1}.get(name, 0) * prior(grid, cells)
    reached = 0
    for seed in range(SEARCHES):
        sampler = Sampler(grid, landscape, seed, budget)
        reached += sampler.share(_search(name, grid, sampler, seed, known)) >= GOOD
    return reached


def _on_made_up(name: str, cost: float) -> int:
    reached = 0
    for seed in _MADE_UP:
        landscape = made_up(seed)
        sampler = MadeUpSampler(landscape, seed, SHARE * 3 * len(landscape.space.points) - cost)
        known = (-1 if name == "wrong" else 1) * surveyed(landscape, seed, _PART if name == "counted" else _WHOLE)
        reached += sampler.share(_search(name, landscape, sampler, seed, known)) >= GOOD
    return reached


def _search(name: str, task: Task, sampler: Draws, seed: int, known: Array) -> Point:
    if name in _OTHERS:
        return _OTHERS[name](task, sampler, seed)
    return searched(
        task,
        sampler,
        seed,
        known if name in ("free", "wrong", "counted") else None,
        None if name == "today" else SHORT_CONFIRMATION,
    )


def surveyed(landscape: MadeUp, seed: int, error: float) -> Array:
    """Return what a survey would say of it: half of the factors are varied, one at a time, with errors."""
    chance = np.random.default_rng([seed, 99])
    levels = np.array(landscape.space.points)
    result: Array = np.zeros(len(levels))
    for which, factor in enumerate(landscape.space.factors):
        if chance.random() < 0.5:
            continue
        effects = np.array(
            [np.median(landscape.full[levels[:, which] == level]) for level in range(len(factor.levels))]
        )
        result += (effects - effects.mean() + error * chance.normal(size=len(effects)))[levels[:, which]]
    result -= result.mean()
    return result


def section(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """As docs/tuning.md tells it."""
    places = [grid.name for grid in GRIDS if grid.name in kept]
    every = [*places, *(["made up"] if "made up" in kept else [])]
    facts = [_fact(name, kept[name]) for name in places]
    costs = [f"{name}, in evaluations" for name in (f"{SHARE:.0%}", "portrait of 120 s", "portrait of 30 s")]
    heads = ["landscape", "seconds for one evaluation", *costs, "rank correlation"]

    def cell(place: str, row: str) -> str:
        if row in kept[place]:
            return f"{kept[place][row]} of {_of(place)}"
        return (
            "not possible"
            if row in _COUNTED and place != "made up" and _less(kept[place]) < _FEWEST
            else "not measured"
        )

    rows = [[words, *(cell(place, name) for place in every)] for name, words in _ROWS]
    ideal = []
    for error in _ERRORS:
        row = ["no guesses" if math.isinf(error) else f"{error:.0%}"]
        for place in places:
            reached = kept[place].get(f"ideal {error}")
            row += ["not measured"] if reached is None else [_ideal(reached)]
        ideal.append(row)
    return "\n".join(
        [
            "## What a portrait would be worth to the search",
            "",
            _INTRODUCTION,
            "",
            _table(heads, facts),
            "",
            _arithmetic(kept, places),
            "",
            _HEAD + (_HEAD_MADE_UP if "made up" in kept else ""),
            "",
            _table(["search", *every], rows),
            "",
            _verdict(kept, every),
            *_unfinished(),
            "",
            "### How many searches of an ideal observer would succeed",
            "",
            _IDEAL,
            "",
            _table(["error of its guesses", *places], ideal),
            "",
            _reachable(kept, places),
            "",
            "### What else was tried",
            "",
            _TRIED,
            "",
        ]
    )


def _fact(name: str, kept: Mapping[str, Any]) -> list[str]:
    seconds = kept["evaluation_s"]
    costs = [f"{PORTRAIT_S / seconds:.0f}", f"{_SHORT_S / seconds:.0f}"]
    return [name, f"{seconds:.2f}", f"{kept['budget']:.0f}", *costs, f"{kept['correlation']:.2f}"]


def _less(kept: Mapping[str, Any]) -> float:
    return float(kept["budget"] - _SHORT_S / kept["evaluation_s"])


def _ideal(reached: Mapping[str, float]) -> str:
    by, most = (round(reached[name] * SEARCHES) for name in ("by_measuring", "at_most"))
    return f"{by} of {SEARCHES} (at most {most}; rank correlation {round(reached['correlation'], 2) + 0.0:.2f})"


def _arithmetic(kept: Mapping[str, Mapping[str, Any]], places: Sequence[str]) -> str:
    dear = [name for name in places if PORTRAIT_S / kept[name]["evaluation_s"] >= kept[name]["budget"]]
    if not dear:
        return ""
    sums = [
        f"{PORTRAIT_S:.0f} s / {kept[name]['evaluation_s']:.2f} s = {PORTRAIT_S / kept[name]['evaluation_s']:.0f} "
        f"evaluations, and the budget is {kept[name]['budget']:.0f}"
        for name in dear
    ]
    return (
        f"On {_list(dear)} a portrait of two minutes ({'; '.join(sums)}) takes longer than all evaluations of "
        f"the {SHARE:.0%}: if its cost is counted, nothing is left for the search. A portrait can only pay off where "
        f"trying everything takes more than {PORTRAIT_S / SHARE / 60:.0f} minutes."
    )


def _verdict(kept: Mapping[str, Mapping[str, Any]], every: Sequence[str]) -> str:
    known = [place for place in every if {"counted", "today"} <= kept[place].keys()]
    met = [place for place in known if kept[place]["counted"] >= AIM * _of(place)]
    better = [place for place in known if kept[place]["counted"] > kept[place]["today"]]
    if not known:
        return "No search has been made yet in which the cost of the portrait is counted."
    harmless = all(
        kept[place]["short"] - kept[place]["wrong"] <= _MOST_LOST for place in known if "wrong" in kept[place]
    )
    built = better == list(every) and harmless and not _unfinished()
    wrongs = [
        f"{kept[place]['wrong']} instead of {kept[place]['short']} on {place}"
        for place in known
        if {"wrong", "short"} <= kept[place].keys()
    ]
    lost = f"A wrong prior misleads the search: {', '.join(wrongs)} (it was allowed to lose at most {_MOST_LOST})."
    return " ".join(
        (
            f"With the cost of a portrait of 30 s counted, the aim ({AIM:.0%} of the searches) is reached on:",
            f"{_list(met)} (of {_list(known)}). More searches than today reach {GOOD:.0%} of the best on:",
            f"{_list(better)}.",
            *([lost] if wrongs and not harmless else []),
            "By the rule that was fixed beforehand, such a prior is worth building in."
            if built
            else "So `strakes tune` has no such prior. By the rule fixed beforehand it had to be better on all file "
            "systems, on a third one as well, and harmless if wrong.",
            "Optuna's Gaussian process (`GPSampler` of Optuna 5.0, its defaults; the best single value wins) needs",
            "PyTorch, which these benchmarks do not install. `python -m bench.tuning known` computes that row where it",
            "is installed. It was run with Debian's PyTorch 1.13, without the line of the sampler that names the",
            "processor as the device, which that version does not know. As for TPE, combinations that are not possible",
            "have a rate of 0.",
        )
    )


def _of(place: str) -> int:
    return len(_MADE_UP) if place == "made up" else SEARCHES


def _list(places: Sequence[str]) -> str:
    return ", ".join(places) if places else "none"


def _unfinished() -> list[str]:
    grids = [grid for grid in GRIDS if (PLACE / f"{grid.name}.json.gz").exists() and not is_whole(grid)]
    lines = []
    for grid in grids:
        measured, blocks = len(load(grid.name).facts["block_s"]), len(grid.searched) + len(grid.held_out)
        begun = f"A further landscape, {grid.what}, was begun: {measured} of {blocks} blocks have been measured."
        lines += ["", f"{begun} Searches of it will be reported when it is complete."]
    return lines


def _reachable(kept: Mapping[str, Mapping[str, Any]], places: Sequence[str]) -> str:
    sentences = []
    for place in places:
        here = kept[place]
        enough = [
            (error, here[f"ideal {error}"])
            for error in _ERRORS
            if f"ideal {error}" in here and here[f"ideal {error}"]["by_measuring"] >= AIM
        ]
        told = f"{place} ({here['good']} settings reach {GOOD:.0%}, repetitions scatter by {here['scatter']:.0%})"
        if not enough:
            sentences.append(f"On {told} it does not find one in {AIM:.0%} of the searches with any of these guesses.")
            continue
        error, reached = enough[-1]
        how = "even without guesses" if math.isinf(error) else f"with guesses that are wrong by {error:.0%}"
        sentences.append(
            f"On {told} the observer finds one of these in {AIM:.0%} of the searches {how} (rank correlation "
            f"{reached['correlation']:.2f}); the expectation from the portrait has a rank correlation of "
            f"{here['correlation']:.2f}."
        )
    return " ".join(sentences)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *rows))


_HEAD = f"""\
Searches that reach {GOOD:.0%} of the best with {SHARE:.0%} of the evaluations. In the last two rows the cost of a
portrait of 30 s is counted, which is not possible where that costs more than all evaluations; the other searches use a
portrait that costs nothing, or none."""

_HEAD_MADE_UP = f"""
On the {len(_MADE_UP)} made-up landscapes (`bench/tuning/made_up.py`), the survey is made up as well: it varies half of
the factors, one at a time, and gives the effect of each level with an error of {_WHOLE:.0%}, or of {_PART:.0%} in a
survey of 30 s, which costs {_MADE_UP_COST} evaluations there."""

_INTRODUCTION = """\
A search could begin with the results of a survey of two minutes on the same file system (`strakes survey DIR --budget
2m`). The rule for using them and the aim were fixed beforehand (`bench/tuning/yardstick.md`; the portrait of XFS was
already known when the rule was chosen). The expected logarithm of a rate is a sum over the factors that the survey also
varies; factors that it does not vary are expected to have no effect. Half of the settings tried in the screening are
those expected to be best, and the surrogate model learns the differences from the expectation. A short confirmation
takes 5% of the budget instead of 15%. For XFS and CephFS only the medians of the whole portrait were kept. They are
used in place of a portrait of 30 s, which makes it look better than it is. The rank correlation is that between the
rates expected from the portrait and the measured ones."""

_IDEAL = """\
An ideal observer knows how much repetitions scatter, and the set of values that the settings have, but not which
setting has which value. For each setting it has a guess with an error of known size. After every repetition it computes
the exact probabilities. It chooses what to measure by top-two Thompson sampling, spends all 5% of the evaluations on
the search and none on a confirmation, and takes the setting most likely to be good enough. "At most" is how often at
least one of the settings that it has the budget to measure, best guesses first, is good enough: that would be reached
if repetitions did not scatter. The observer learns nothing about one setting from another; a search that does can do
better with bad guesses or none. Each figure is from 60 searches, scaled to 30, so it may be wrong by two or three."""

# Judged once, by the rule in yardstick.md.
_TRIED = """\
Other ways to search were compared on made-up landscapes (`bench/tuning/yardstick.md`): the knowledge gradient, top-two
Thompson sampling, models averaged over what their constants may be, models with an effect of each pair of factors, and
runs with a quarter of the data only where the model expects most of them. On landscapes of 300 to 420 settings none
reached the aim clearly more often than today's search. On small ones (120 to 170 settings, some 22 evaluations) the
knowledge gradient did, with every third run for exploring. So by the rule fixed beforehand it was judged once, with 5%
of the evaluations:

| search | 30 made-up landscapes | 60 small ones | xfs | cephfs | gluster |
| --- | --- | --- | --- | --- | --- |
| strakes tune as it is | 21 of 30 | 34 of 60 | 22 of 30 | 24 of 30 | 7 of 30 |
| knowledge gradient | 22 of 30 | 38 of 60 | 25 of 30 | 25 of 30 | 3 of 30 |

On each file system it was allowed to lose at most 2 of 30 searches, and on gluster it lost 4. So it is not built in.
On the made-up landscapes it had measured a good setting in 77 of 90 searches, but chose one in only 60 (today's search:
72 and 55): repetitions scatter too much to tell good settings apart with so few of them. On gluster even the exhaustive
search, with three repetitions of each setting, chooses one that reaches only 93% of the best.

A wrong prior can be made harmless: four models that believe the prior to 0, 35, 70 and 100% are averaged, each weighed
by how probable it makes what was measured so far. With a portrait that costs nothing and a short confirmation,
25 searches reach the aim on xfs, 24 on cephfs and 4 on gluster, and as many with the prior's sign reversed. Without a
prior 22, 26 and 3 do. So such a prior does no harm, but it does not help either: it loses what the portrait gained on
xfs. This is not built in. The code of both trials is not kept."""
