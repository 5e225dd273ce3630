"""Questions about a file system, and the graded answers of a run, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from strakes.stats.grades import Grade

# Mean of several measures of an option in a block.
Mean = Literal["arithmetic", "geometric", "median"]


@dataclass(frozen=True)
class Option:
    """One setting that a question compares: its displayed name, and the ids of its measures.

    ``mean``: of several measures, by block. The geometric mean gives all ratios the same weight, the arithmetic mean is
    dominated by the fastest measures.
    """

    label: str
    measures: tuple[str, ...]
    mean: Mean = "geometric"


@dataclass(frozen=True)
class Question:
    """A decision of a user, and the settings measured for it.

    ``title``: the decision in two or three words, e.g. "request size, writes". ``ordered``: options are sorted, the
    least demanding one first; the first that is good enough is the answer. ``alike``: text if all options are alike.
    ``advises``: whether the answer is a setting that a user chooses. ``remark``: a caution to show with the answer,
    e.g. that a cache answered.
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
    """A part of a claim: the ratio of ``a`` to ``b`` is between ``low`` and ``high``.

    ``a``, ``b``: ids of measures; of several, the median is used. ``ratio``: the two sides as text.
    """

    ratio: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    low: float
    high: float


@dataclass(frozen=True)
class Claim:
    """A published statement that a run can confirm or refute. It holds if all its parts hold."""

    id: str
    study: str
    statement: str
    parts: tuple[Part, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures of all parts, each once."""
        return tuple(dict.fromkeys(measure for part in self.parts for measure in (*part.a, *part.b)))


@dataclass(frozen=True)
class Comparison:
    """Comparison of the chosen option with another: how many times better it is, with interval and grade."""

    option: str
    measure: str
    ratio: float
    low: float
    high: float
    grade: Grade


@dataclass(frozen=True)
class Answer:
    """The best available answer to one question.

    ``chosen``, ``measure``: the option that is best or good enough, and its first measure. ``against``: the comparison
    that decides the grade. ``within``: for "alike", the factor within which all options are. ``confidence``: of each
    single interval. ``blocks``: number of blocks that measured both options of ``against``. ``alike``, ``advises``,
    ``remark``: as in the question.
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
