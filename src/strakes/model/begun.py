"""Skew between the starts of the ranks in a phase. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from strakes.model.sample import Beginning, Sample
from strakes.stats.interval import median

# Largest skew in seconds without a warning.
APART_S = 1e-3


@dataclass(frozen=True)
class Begun:
    """Skew between the first and the last rank of a phase.

    ``rank``, ``host``: the last rank and its host, if known. ``share``: the skew as a share of the time of the phase.
    ``crowded``: a machine had fewer processors than ranks. ``clock_uncertainty_s``: error of the skew.
    """

    apart_s: float
    rank: int
    host: str
    share: float
    crowded: bool
    clock_uncertainty_s: float

    @property
    def is_apart(self) -> bool:
        """Whether the ranks began more than ``APART_S`` seconds apart."""
        return self.apart_s > APART_S


def begun(sample: Sample) -> Begun | None:
    """Return the skew of a phase, or None for one rank or if the starts are unknown.

    >>> ranks = [[0, 0.25], [1, 0.0]]
    >>> write = Sample("write", columns=["rank", "start_s"], ranks=ranks, elapsed_s=0.5, begun=Beginning())
    >>> begun(write).apart_s
    0.25
    >>> begun(Sample("write", columns=["rank", "start_s"], ranks=[[0, 0.0]], elapsed_s=0.5)) is None
    True
    """
    # Without ``begun``, the starts on several nodes are in the columns.
    beginning = sample.begun or (Beginning() if len(sample.nodes) > 1 else None)
    starts = sample.column("start_s")
    if beginning is None or not starts:
        return None
    apart_s = max(starts) - min(starts)
    share = min(1.0, apart_s / sample.elapsed_s) if sample.elapsed_s > 0 else 0.0
    rank, uncertainty_s = starts.index(max(starts)), beginning.clock_uncertainty_s
    return Begun(apart_s, rank, beginning.last_host, share, beginning.crowded, uncertainty_s)


def all_begun(samples: Iterable[Sample]) -> list[Begun]:
    """Return the skew of each phase that has several ranks."""
    return [start for sample in samples if (start := begun(sample)) is not None]


def begun_together(samples: Iterable[Sample]) -> Mapping[str, float]:
    """Return the statistics of all phases of a run for the report, empty if no phase had several ranks."""
    phases = all_begun(samples)
    if not phases:
        return {}
    apart = [phase.apart_s for phase in phases]
    return {
        "phases": len(phases),
        "median_s": median(apart),
        "worst_s": max(apart),
        "apart": sum(phase.is_apart for phase in phases),
        "crowded": sum(phase.crowded for phase in phases),
        "clock_uncertainty_s": max(phase.clock_uncertainty_s for phase in phases),
    }
