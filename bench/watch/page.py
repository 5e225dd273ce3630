"""What was found, when, and at how many false alarms, each detector with one setting."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.watch.contest import Contestant

_WHICH = "those that were not used to choose how strakes works (its rivals were tuned on all)"
_NAMES = {"level": "level", "week": "a week of", "target": "a slow target,"}


def render(contestants: Sequence[Contestant], by_chance: float, series: int, planted: int) -> str:
    """Return the page."""
    lines = [
        "# How well `strakes watch` finds what changed",
        "",
        "Written by `python -m bench.watch YEAR.csv.gz`; `bench/watch/yardstick.py` says what is planted",
        "and how it is counted, and was fixed before the year was looked at (later amendments are marked there).",
        f"The year is Cori's (TOKIO, NERSC, 2017): {series} series of benchmarks, about one run a day.",
        "",
        "## The year as it is",
        "All series together; alarms that nothing in the columns explains, a month, and those with a cause.",
        "",
        "| detector | settings | alarms a month | with a cause, in all |",
        "| --- | --- | --- | --- |",
    ]
    for one in contestants:
        causes = ", ".join(f"{count} {cause}" for cause, count in sorted(one.as_it_is.explained.items())) or "none"
        lines.append(f"| {one.name} | {one.settings} | {one.as_it_is.a_month:.2f} | {causes} |")
    lines += [
        "",
        f"Of moments chosen at random the same rules explain {by_chance:.1%}: so many causes are there by chance.",
        "",
        "## Planted changes",
        "Found share, median delay in days, precision, and strict precision (a series' own alarms count as false).",
        f"Planted into {planted} of the {series} series: {_WHICH if planted < series else 'all'}.",
        f"Plants of each level and week: {_counts(contestants, 'level')}.",
        f"Of slow targets: {_counts(contestants, 'target')}."
        if any(kind == "target" for kind, _ in contestants[0].scores)
        else "Slow targets were not planted in this run.",
        "",
        f"| planted | {' | '.join(one.name for one in contestants)} |",
        "| --- |" + " --- |" * len(contestants),
    ]
    for key in contestants[0].scores:
        kind, ratio = key
        cells = []
        for one in contestants:
            score = one.scores[key]
            delay = "" if math.isnan(score.delay_days) else f" {score.delay_days:.0f} d,"
            cells.append(f"{score.found:.0%},{delay} {score.precision:.2f} ({score.strict_precision:.2f})")
        lines.append(f"| {_NAMES[kind]} {ratio - 1:+.0%} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _counts(contestants: Sequence[Contestant], wanted: str) -> str:
    """Return how many plants of a kind each detector had, as one number where all had as many."""
    counts = {one.name: next(s.planted for (kind, _), s in one.scores.items() if kind == wanted) for one in contestants}
    if len(set(counts.values())) == 1:
        return str(next(iter(counts.values())))
    return ", ".join(f"{count} for {name}" for name, count in counts.items())
