"""The yardstick on IO500 submissions: from the fewest to the most nodes of every system, institutions left out.

Fixed before any forecast was made:
- A *system* is one institution, system and file system (names without regard to case and white space), submitted in
years at most one
  apart. Its smallest and its largest number of nodes are a *pair* if the larger is at least 1.5 times the smaller. Of
  several
  submissions with one number of nodes the later one is taken.
- *Phases* are those of ior and mdtest that both submissions have with a rate above zero. Before 2020 sources disagree
about creates:
  of those years the phases that create or write through mdtest are left out.
- A forecast for one system is made by a model that has seen no submission of that institution.
- *Factor of error*: forecast / measured or its inverse, whichever is above 1. Stated is the median over all phases of
all pairs, and
  *coverage*: the share of phases whose measured rate lies in the forecast's 80 % interval. Aim: at most 1.25, and 74
  to 86 %.
- Beside it, on the same phases: constant (the small rate), linear in nodes, and a power law with the median exponent
of the phase
  over the other institutions' pairs.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

LEAST_RATIO = 1.5
MOST_YEARS_APART = 1
COVERAGE = 0.8


@dataclass(frozen=True)
class Submission:
    """One entry of the list. ``rates``: GiB/s of ior phases, kIOPS of mdtest phases."""

    institution: str
    system: str
    file_system: str
    year: int
    nodes: int
    tasks: int
    rates: Mapping[str, float]


@dataclass(frozen=True)
class Pair:
    """Two submissions of one system that differ in their number of nodes, and the phases that count."""

    small: Submission
    large: Submission
    phases: tuple[str, ...]


@dataclass(frozen=True)
class Forecast:
    """A rate with the ends of its 80 % interval, all in the unit of the phase."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Error:
    """One phase of one pair, forecast and measured."""

    pair: Pair
    phase: str
    forecast: Forecast
    measured: float

    @property
    def factor(self) -> float:
        """How many times too large or too small, at least 1."""
        return math.exp(abs(math.log(self.forecast.median / self.measured)))

    @property
    def covered(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.forecast.low <= self.measured <= self.forecast.high


# Fitted to pairs of other institutions, it forecasts the larger submission of a pair from the smaller one.
Forecaster = Callable[[Submission, int, int, Sequence[str]], Mapping[str, Forecast]]
Learner = Callable[[Sequence[Pair]], Forecaster]


def read_submissions(path: Path) -> tuple[Submission, ...]:
    """Read ``io500/submissions.json`` of others; entries without nodes, tasks or year are left out."""
    return tuple(
        Submission(
            _plain(entry["inst"]),
            _plain(entry["sys"]),
            _plain(entry["fs"]),
            int(entry["year"]),
            int(entry["nodes"]),
            int(entry["tasks"]),
            {name: float(rate) for name, rate in entry["ph"].items() if rate},
        )
        for entry in json.loads(path.read_text(encoding="utf-8"))
        if all(str(entry[name]).isdigit() for name in ("year", "nodes", "tasks"))
    )


def find_pairs(submissions: Iterable[Submission]) -> tuple[Pair, ...]:
    """Smallest and largest of every system, in the order of their names."""
    systems: dict[tuple[str, str, str], list[Submission]] = defaultdict(list)
    for submission in submissions:
        systems[submission.institution, submission.system, submission.file_system].append(submission)
    pairs = []
    for _, entries in sorted(systems.items()):
        for group in _years_together(entries):
            by_nodes = {entry.nodes: entry for entry in sorted(group, key=lambda entry: entry.year)}
            small, large = by_nodes[min(by_nodes)], by_nodes[max(by_nodes)]
            phases = tuple(name for name in sorted(small.rates) if name in large.rates and counts(name, small, large))
            if large.nodes >= LEAST_RATIO * small.nodes and phases:
                pairs.append(Pair(small, large, phases))
    return tuple(pairs)


def judge(pairs: Sequence[Pair], learn: Learner) -> list[Error]:
    """Forecast every pair by what the other institutions' pairs taught."""
    errors = []
    for pair in pairs:
        forecaster = learn([other for other in pairs if other.small.institution != pair.small.institution])
        forecasts = forecaster(pair.small, pair.large.nodes, pair.large.tasks, pair.phases)
        errors += [Error(pair, name, forecasts[name], pair.large.rates[name]) for name in pair.phases]
    return errors


def summarise(errors: Sequence[Error]) -> tuple[float, float]:
    """Median factor of error, and share covered."""
    return median(error.factor for error in errors), sum(error.covered for error in errors) / len(errors)


def _plain(name: str) -> str:
    return " ".join(str(name).lower().split())


def _years_together(entries: Sequence[Submission]) -> list[list[Submission]]:
    groups: list[list[Submission]] = []
    for entry in sorted(entries, key=lambda entry: entry.year):
        if groups and entry.year - groups[-1][0].year <= MOST_YEARS_APART:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def counts(phase: str, *submissions: Submission) -> bool:
    """Tell whether a phase of these submissions is judged."""
    if not phase.startswith(("ior", "mdtest")):
        return False
    creates = phase.startswith("mdtest") and any(word in phase for word in ("write", "create"))
    return not creates or all(submission.year >= 2020 for submission in submissions)
