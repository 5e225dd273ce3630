"""How closely the ranks of phases began together, as measured. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strakes.statistics.interval import median

# What the ranks of a phase may begin apart without a word.
APART_S = 1e-3


@dataclass(frozen=True)
class Begun:
    """How far the first and the last rank of a phase began apart.

    ``host``: of the last rank, where it is known. ``share``: of the time the phase took. ``crowded``: the machine of some ranks has fewer
    processors than there were ranks on it. ``clock_uncertainty_s``: how exactly all that is known.
    """

    apart_s: float
    rank: int
    host: str
    share: float
    crowded: bool
    clock_uncertainty_s: float

    @property
    def is_apart(self) -> bool:
        return self.apart_s > APART_S


def begun(sample: Mapping[str, Any]) -> Begun | None:
    """Of one phase; None where one rank did it, or where it is not known to have begun.

    >>> begun({"columns": ["rank", "start_s"], "ranks": [[0, 0.25], [1, 0.0]], "elapsed_s": 0.5, "begun": {}}).apart_s
    0.25
    >>> begun({"columns": ["rank", "start_s"], "ranks": [[0, 0.0]], "elapsed_s": 0.5}) is None
    True
    """
    # Engines that did not say so yet had the columns, and several nodes.
    said = sample.get("begun", {} if len(sample.get("nodes", ())) > 1 else None)
    if said is None or "start_s" not in sample.get("columns", ()):
        return None
    starts = [float(row[sample["columns"].index("start_s")]) for row in sample["ranks"]]
    apart_s = max(starts) - min(starts)
    took_s = float(sample.get("elapsed_s", 0.0))
    return Begun(
        apart_s,
        starts.index(max(starts)),
        str(said.get("last_host", "")),
        min(1.0, apart_s / took_s) if took_s > 0 else 0.0,
        bool(said.get("crowded", False)),
        float(said.get("clock_uncertainty_s", 0.0)),
    )


def all_begun(visits: Sequence[Mapping[str, Any]]) -> list[Begun]:
    """Of every phase of a run that several ranks began."""
    return list(_known(sample for visit in visits for sample in visit["samples"]))


def begun_together(visits: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The phases of a run in figures, as its report has them; empty where no phase had several ranks."""
    phases = all_begun(visits)
    if not phases:
        return {}
    apart = [one.apart_s for one in phases]
    return {
        "phases": len(phases),
        "median_s": median(apart),
        "worst_s": max(apart),
        "apart": sum(one.is_apart for one in phases),
        "crowded": sum(one.crowded for one in phases),
        "clock_uncertainty_s": max(one.clock_uncertainty_s for one in phases),
    }


def _known(samples: Iterable[Mapping[str, Any]]) -> Iterator[Begun]:
    return (one for sample in samples if (one := begun(sample)) is not None)
