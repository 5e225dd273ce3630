"""Questions about a file system, and the graded answers that a run gives to them, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from strakes.statistics.grades import Grade

# How several measures of an option become one value of a block.
Mean = Literal["arithmetic", "geometric", "median"]


@dataclass(frozen=True)
class Option:
    """One setting that a question is about: what people call it, and the ids of the measures that show it.

    ``mean``: of several measures, block by block. The geometric mean weighs all ratios alike, the arithmetic mean is
    dominated by the fastest.
    """

    label: str
    measures: tuple[str, ...]
    mean: Mean = "geometric"


@dataclass(frozen=True)
class Question:
    """A decision that a person has to take, and the settings measured for it.

    ``title``: the decision in two or three words, e.g. "request size, writes". ``ordered``: options from the least
    demanding one up; the first that is good enough is the answer. ``alike``: the text to show if all options
    are alike. ``advises``: whether the answer is a setting that a user chooses.
    ``remark``: a caution to show with the answer, e.g. that a cache answered.
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
    """A part of a claim: how many times as good ``a`` is as ``b`` lies between ``low`` and ``high``.

    ``a``, ``b``: ids of measures; the median of several counts. ``ratio``: the two sides in words.
    """

    ratio: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    low: float
    high: float


@dataclass(frozen=True)
class Claim:
    """A published statement that a run can confirm or refute; it holds if all its parts do."""

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
    """How many times as good the chosen option is as another one: ratio and interval, and whether that is decided."""

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
    that the grade is on.
    ``within``: for "alike", the factor within which all options lie. ``confidence``: of each interval alone.
    ``blocks``: how many measured both options of ``against``. ``alike``, ``advises``, ``remark``: as in the question.
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
