"""Questions about a file system, such as "which request size is best?", and the graded answers of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from strakes.stats.grades import Grade

# How to average the values that several measurements have in the same round of trials.
Mean = Literal["arithmetic", "geometric", "median"]


@dataclass(frozen=True)
class Option:
    """A setting that a question compares with others: its displayed name, and the ids of its measurements.

    ``mean``: how to average the measurements of a round. In an arithmetic mean, the fastest ones dominate.
    """

    label: str
    measures: tuple[str, ...]
    mean: Mean = "geometric"


@dataclass(frozen=True)
class Question:
    """A question that a run answers: which option should a user choose?

    ``title``: the decision in two or three words, e.g. "request size, writes". ``ordered``: options are sorted by cost,
    cheapest first, and the first good enough option is the answer. ``alike``: the answer if all options perform alike.
    ``advises``: whether users can choose the setting. ``remark``: a caution, e.g. that the data came from a cache.
    """

    id: str
    study: str
    title: str
    options: tuple[Option, ...]
    ordered: bool = False
    alike: str = ""
    advises: bool = True
    remark: str = ""


@dataclass(frozen=True)
class Part:
    """One condition of a claim: the ratio of ``a`` to ``b`` is between ``low`` and ``high``.

    ``a``, ``b``: ids of measurements, averaged by ``mean`` in each round of trials. ``ratio``: a text that names both.
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
    """The factor by which the chosen option is better than another, with interval and grade."""

    option: str
    measure: str
    ratio: float
    low: float
    high: float
    grade: Grade


@dataclass(frozen=True)
class Answer:
    """The graded answer to one question.

    ``chosen``, ``measure``: the recommended option and its first measurement. ``against``: the comparison that decides
    the grade. ``within``: for the grade "alike", the maximum factor between options. ``confidence``: of each interval.
    ``blocks``: number of rounds that measured both options. The other fields are those of :class:`Question`.
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
