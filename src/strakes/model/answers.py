"""Questions about a file system, such as "which request size is best?", and the graded answers of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from strakes.stats.grades import Grade

# How to average several measurements of one round. (A round measures every combination of settings once.)
Mean = Literal["arithmetic", "geometric", "median"]


@dataclass(frozen=True)
class Option:
    """An option that a question compares with others: its displayed name, and the ids of its measurements.

    ``mean``: how to average several measurements. In an arithmetic mean, high values dominate.
    """

    label: str
    measures: tuple[str, ...]
    mean: Mean = "geometric"


@dataclass(frozen=True)
class Question:
    """A question that a run answers: which option should a user choose?

    ``title``: two or three words, e.g. "request size, writes". ``ordered``: options are sorted by cost, and the answer
    is the cheapest one that is good enough. ``alike``: the answer if all options perform alike. ``advises``: whether
    users can choose the setting. ``remark``: a caution, e.g. that the data came from a cache.
    """

    id: str
    study: str
    title: str
    options: tuple[Option, ...]
    ordered: bool = False
    alike: str = ""
    advises: bool = True
    remark: str = ""

    @property
    def measures(self) -> tuple[str, ...]:
        """Return the ids of the measurements of all options."""
        return tuple(measure for option in self.options for measure in option.measures)


@dataclass(frozen=True)
class Part:
    """A condition of a claim: the ratio of the values of ``a`` and ``b`` is between ``low`` and ``high``.

    ``a``, ``b``: ids of measurements, which are averaged. ``ratio``: name of the ratio in reports.
    """

    ratio: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    low: float
    high: float
    mean: Mean = "median"


@dataclass(frozen=True)
class Claim:
    """A published statement that a run can confirm or refute. The claim holds if all its conditions hold."""

    id: str
    study: str
    statement: str
    parts: tuple[Part, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        """Return the ids of all measurements in the conditions of the claim, without duplicates."""
        return tuple(dict.fromkeys(measure for part in self.parts for measure in (*part.a, *part.b)))


@dataclass(frozen=True)
class Comparison:
    """The ratio of the chosen option to another one (above 1: better), with its interval and grade (certainty)."""

    option: str
    measure: str
    ratio: float
    low: float
    high: float
    grade: Grade


@dataclass(frozen=True)
class Answer:
    """The graded answer to a :class:`Question`. Fields with the same names have the same meaning.

    ``chosen``: the recommended option. ``measure``: the first measurement id of this option. ``against``: the
    comparison that decides the grade. ``within``: if options are "alike", upper bound of the ratio between them.
    ``blocks``: number of rounds.
    """

    id: str
    study: str
    title: str
    grade: Grade
    chosen: str
    measure: str
    against: Comparison
    others: tuple[Comparison, ...]
    confidence: float
    blocks: int
    within: float | None = None
    alike: str = ""
    advises: bool = True
    remark: str = ""
