"""The yardsticks as a page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from bench.prediction import bounds, io500, made_up, real, recovery, series, small
from bench.prediction.ideal import find_bound
from bench.prediction.model import Judged, judge_made_up, judge_series, judge_small, learn_io500
from bench.prediction.simple import RULES

_INTRODUCTION = """# How good forecasts are

Made by `python -m bench.prediction DATA --page docs/prediction.md`; do not edit. [The guide](guide/predict.md) says
how to make forecasts. Each yardstick was fixed before the model was tried on it (`bench/prediction`). The model's
constants were chosen on made-up systems of other seeds than those below, whose figures with an earlier model were known
(69 % named right, 8 % wrong). What IO500 is forecast by was chosen among some thirty rules by their results on these
same pairs, and the series were seen before the constants were final: both look better than new data will. A *factor
of error* of 1.25 means 25 % too high or 20 % too low.
"""

_IO500 = """## IO500: from the smallest to the largest number of nodes

{pairs} systems of the IO500 list (IO500/submission-data), {phases} phases of ior and mdtest. Each is forecast from
its small
submission by what all other institutions' systems taught: of one size, only what is typical of a phase is known.

| rule | median factor of error | inside the 80 % interval |
|---|---|---|"""

_BOUNDS = """
The aim was 1.25. The best that can be reached on these phases, and what one would have to know for it
(`bench/prediction/bounds.py`; all but the first and the last row are chosen or known in hindsight):

| the rate grows with a power of the size | by nodes | by ranks |
|---|---|---|
| by the rule that is best on all other institutions' pairs, of some thirty | {chosen:.2f} | |
| with the one power that is best for all | {all[0]:.2f} | {all[1]:.2f} |
| with the power that is best for each phase | {phase[0]:.2f} | {phase[1]:.2f} |
| with that of the system's *other* phases, and what is typical of the phase | {others[0]:.2f} | {others[1]:.2f} |
| with the power that is best for each system | {system[0]:.2f} | {system[1]:.2f} |
| with that of the system and what is typical of the phase | {both[0]:.2f} | {both[1]:.2f} |
| the same system submitted twice with as many nodes and ranks | {repeated:.2f} | |

So 1.25 can be had only by who knows how this one system grew: no power that is the same for all systems comes below
{least:.2f}, even when it is chosen in hindsight. That two submissions of one size differ ({count} phases of {systems}
systems) is not the reason. How a system grows is a matter of how many of its servers were there to begin with, and of
what the submitter chose; neither is told.
"""

_SERIES = """## Published series, the outermost value left out

| series | unit | values shown | forecast | 80 % interval | published | factor of error |
|---|---|---|---|---|---|---|"""

_SEVERAL = """
Of the {number} series with two values or more to learn from: median error {error:.0%}, {inside} inside their
intervals. One value
tells nothing of a shape: there the forecast is what is typical.
"""

_MADE_UP = """## {number} made-up systems of known truth

Measured with up to 8 or 16 clients, forecast for 4 to 32 times as many; `bench/prediction/made_up.py` says how they
are made. Counters tell the busy share of each part with a probability of 0.8 only, so that what saturates cannot
always be known: somebody who knows how the systems were drawn, and chooses the threshold in hindsight, could name
{right:.0%} rightly with {wrong:.1%} wrong (`bench/prediction/ideal.py`). The aims were 80 % and 5 %.

| shape | systems | inside the 80 % interval | median factor of error | named right | named wrong | not known |
|---|---|---|---|---|---|---|"""

_SMALL = """## {number} made-up systems of which little was measured

Measured with 1 and 2 clients on 1 and 2 metadata targets, forecast for 4 and 8 clients on 3; directories are not
divided, and all clients have as much to do (`bench/prediction/small.py`). The aims were 75 % within 20 %, and 74 to
86 % inside.

| clients | figures | within 20 % | inside the 80 % interval | median factor of error |
|---|---|---|---|---|"""

# More than this of the 80 % intervals should not hold the truth.
_MOST_COVERED = 0.86
_TOO_WIDE = """
These intervals are too wide: the aim is not met. The truth of these systems has no error. The interval is made for a
measurement of it, which has one (with so few levels a large part of all that is not known), so that it holds the truth
more often than it says.
"""

_MODEL = """## The model

The ranks are customers of a closed queueing network whose stations are the clients' processors, their links, the
metadata targets, the data targets and what all share, solved by approximate mean value analysis; beside it parts that
carry so much and no more, and a power law in clients, ranks, targets and files. Each family's parameters start from
what is plausible, and the runs' medians, the busy shares that counters tell and stated limits narrow them down
(sequential Monte Carlo). Families, those with parts once with and once without a lock that grows dearer, count by how
probable they make all that was measured. Times of recovery or of a walk are a fixed part and one that grows with what
there is to do.

Levels are left out whose operations did not reach servers as those of the largest did: by the servers' own count of
requests for an operation. Where directories are on one metadata target each and all ranks have as much to do, the
busiest target ends the phase. What no family may exceed is what servers did by the share of the time in which they were
busy. The interval is that of a measurement like those that it is made from.
"""


def make_page(data: Path, systems: int) -> str:
    """Judge everything; ``data``: the directory with the data of others."""
    return "\n".join(
        [
            _INTRODUCTION,
            *_io500(data),
            *_series(data),
            *_made_up(systems),
            *_small(systems),
            real.render(real.read_results()),
            recovery.render(recovery.read_results()),
            _MODEL,
        ]
    )


def _io500(data: Path) -> Iterator[str]:
    submissions = io500.read_submissions(data / "io500" / "submissions.json")
    pairs = io500.find_pairs(submissions)
    yield _IO500.format(pairs=len(pairs), phases=sum(len(pair.phases) for pair in pairs))
    for name, rule in (("strakes", learn_io500), *RULES.items()):
        factor, covered = io500.summarise(io500.judge(pairs, rule))
        yield f"| {name} | {factor:.2f} | {covered:.0%} |"
    sizes = [bounds.growths(pairs, size) for size in bounds.SIZES]
    best = [bounds.one_for_all(rows) for rows in sizes]
    of_phases = [bounds.one_for_each(rows, lambda row: row.phase) for rows in sizes]
    both, others = zip(*map(bounds.of_system_and_phase, sizes), strict=True)
    twice = bounds.repeated(submissions)
    yield _BOUNDS.format(
        chosen=bounds.chosen_by_others(pairs),
        all=best,
        phase=of_phases,
        system=[bounds.one_for_each(rows, lambda row: row.pair) for rows in sizes],
        both=both,
        others=others,
        repeated=median(map(median, twice)),
        count=sum(map(len, twice)),
        systems=len(twice),
        least=min(*best, *of_phases),
    )


def _series(data: Path) -> Iterator[str]:
    judged = [(each, judge_series(each)) for each in series.read_series(data / "series.csv")]
    yield _SERIES
    for each, result in judged:
        said = result.forecast
        mark = "" if result.covered else " (outside)"
        yield (
            f"| {each.name} | {each.unit} | {len(each.shown)} | {said.median:.4g} "
            f"| {said.low:.4g} to {said.high:.4g}{mark} | {result.truth:.4g} | {result.factor:.2f} |"
        )
    several = [result for each, result in judged if len(each.shown) > 1]
    error = median(abs(result.forecast.median / result.truth - 1) for result in several)
    yield _SEVERAL.format(number=len(several), error=error, inside=sum(result.covered for result in several))


def _made_up(number: int) -> Iterator[str]:
    began = time.process_time()
    tasks = made_up.make_tasks(number)
    judged = [judge_made_up(task) for task in tasks]
    seconds = (time.process_time() - began) / number
    bound = find_bound(tasks)
    yield _MADE_UP.format(number=number, right=bound.right, wrong=bound.wrong)
    for shape in (*made_up.SHAPES, "all"):
        some = [each for each in judged if shape in (each.name, "all")]
        columns = [
            shape,
            str(len(some)),
            _share([each.covered for each in some]),
            f"{median(each.factor for each in some):.2f}",
            *_named(some),
        ]
        yield f"| {' | '.join(columns)} |"
    yield f"\nA forecast took {seconds:.1f} s of one processor.\n"


def _small(number: int) -> Iterator[str]:
    tasks = small.make_small_tasks(number)
    judged = [
        (size.clients, each) for task in tasks for (size, _), each in zip(task.asked, judge_small(task), strict=True)
    ]
    yield _SMALL.format(number=number)
    for clients in (*(clients for clients, _ in small.ASKED), "all"):
        some = [each for asked, each in judged if clients in (asked, "all")]
        within = _share([abs(each.forecast.median / each.truth - 1) <= 0.2 for each in some])
        covered = _share([each.covered for each in some])
        yield f"| {clients} | {len(some)} | {within} | {covered} | {median(each.factor for each in some):.2f} |"
    if sum(each.covered for _, each in judged) > _MOST_COVERED * len(judged):
        yield _TOO_WIDE


def _named(judged: Sequence[Judged]) -> list[str]:
    return [_share([each.named is verdict for each in judged]) for verdict in (True, False, None)]


def _share(flags: Sequence[bool]) -> str:
    return f"{sum(flags) / len(flags):.0%}"
