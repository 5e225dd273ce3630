"""The engine's message about a finished phase. ``docs/reference/engine.md`` defines the message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strakes.model.record import Record, Rows
from strakes.stats.interval import median


@dataclass(frozen=True)
class Beginning(Record):
    """The start of a phase. ``last_host``: host of the rank that started last.

    ``crowded``: a machine had fewer processors than ranks.
    """

    last_host: str = ""
    clock_uncertainty_s: float = 0.0
    crowded: bool = False


# Maximum delay of the last rank as a share of the phase's duration. Rates up to 10 % apart count as "alike".
APART_SHARE = 0.05


@dataclass(frozen=True)
class Skew:
    """Time between the starts of the first and the last rank of a phase.

    ``rank``, ``host``: the last rank and its host, if known. ``share``: the skew divided by the duration of the phase.
    ``crowded``: a machine had fewer processors than ranks. ``clock_uncertainty_s``: possible error of the skew.
    """

    apart_s: float
    rank: int
    host: str
    share: float
    crowded: bool
    clock_uncertainty_s: float

    @property
    def is_apart(self) -> bool:
        """Return whether the skew exceeds ``APART_SHARE``."""
        return self.share > APART_SHARE


# A read counts as a read from storage if at most this share of the file was in the page cache before.
CACHED_SHARE = 0.05


@dataclass(frozen=True)
class PageCache(Record):
    """Bytes of a file in the page cache before and after a phase.

    ``method``: how they were counted, or "none". ``error_bytes``: error if only a sample of pages was checked.
    """

    method: str = "none"
    file_bytes: int | None = None
    resident_before_bytes: int = 0
    resident_after_bytes: int = 0
    error_bytes: int = 0


@dataclass(frozen=True)
class NodeOfPhase(Record):
    """A node, and the first of its ranks. Its other ranks follow, up to the first rank of the next node."""

    host: str
    first_rank: int = 0
    counters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class HeldBack(Record):
    """Seconds that the ranks of a phase waited in total because of a load limit (--impact, --neighbour)."""

    held_back_s: float


@dataclass(frozen=True)
class Sample(Record):
    """The totals of a finished phase over all ranks.

    ``ranks``: a row for each rank, with the values of ``columns``. ``counters``: counters of rank 0's node. ``parts``:
    samples of a mixed phase. ``population``, ``read_bytes``: a pool of small files, and the bytes read from it. The
    fields from ``recovery_first_s`` to ``drill`` are only for drills. Imported samples have only a name and a rate.
    """

    name: str
    phase: int = 0
    kind: str = ""
    operation: str = ""
    host: str = ""
    origin_unix_s: float = 0.0
    stopped_by: str = ""
    bytes: int = 0
    read_bytes: int = 0
    operations: int = 0
    errors: int = 0
    elapsed_s: float = 0.0
    bytes_per_s: float = 0.0
    operations_per_s: float = 0.0
    columns: Sequence[str] = ()
    ranks: Rows = ()
    begun: Beginning | None = None
    impact: HeldBack | None = None
    histograms: Mapping[str, Any] = field(default_factory=dict)
    effective: Mapping[str, Any] = field(default_factory=dict)
    cache: PageCache = PageCache()
    listed: Mapping[str, int] = field(default_factory=dict)
    trained: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, Any] = field(default_factory=dict)
    nodes: tuple[NodeOfPhase, ...] = ()
    parts: tuple[Sample, ...] = ()
    recovery_first_s: float = 0.0
    recovery_median_s: float = 0.0
    recovery_last_s: float = 0.0
    acknowledged: int = 0
    lost: int = 0
    failed: int = 0
    repeated: int = 0
    drill: Mapping[str, Any] = field(default_factory=dict)
    staged: Mapping[str, Any] = field(default_factory=dict)
    population: Mapping[str, Any] = field(default_factory=dict)
    loops: int = 0

    @property
    def data_read(self) -> int:
        """Return the number of bytes that the phase read from files.

        >>> Sample("read", kind="metadata", operation="file-read", bytes=9).data_read
        9
        """
        if self.kind in ("small-files", "stage"):
            return self.read_bytes or int(self.staged.get("read_bytes", 0))
        return self.bytes if self.operation in ("read", "train", "file-read") else 0

    @property
    def reads_small_files(self) -> bool:
        """Return whether the phase read small files through the kernel, so that any share of them may be cached."""
        small = self.kind in ("metadata", "small-files") and self.effective.get("backend") in ("posix", "uring")
        return small and self.data_read > 0

    @property
    def is_measured(self) -> bool:
        """Return whether the engine of strakes measured the phase, and not another tool."""
        return bool(self.ranks)

    def column(self, name: str) -> list[float]:
        """Return the values of a column, by rank. Empty if the engine did not send the column.

        >>> Sample("write", columns=["rank", "open_s"], ranks=[[0, 0.25], [1, 0.5]]).column("open_s")
        [0.25, 0.5]
        """
        if name not in self.columns:
            return []
        place = self.columns.index(name)
        return [float(row[place]) for row in self.ranks]

    def skew(self) -> Skew | None:
        """Return the skew between the starts of the ranks, or None for a single rank or unknown start times.

        >>> columns, ranks = ["rank", "start_s"], [[0, 0.25], [1, 0.0]]
        >>> Sample("write", columns=columns, ranks=ranks, elapsed_s=0.5, begun=Beginning()).skew().apart_s
        0.25
        >>> Sample("write", columns=columns, ranks=[[0, 0.0]], elapsed_s=0.5).skew() is None
        True
        """
        begun = self.begun or (Beginning() if len(self.nodes) > 1 else None)
        starts = self.column("start_s")
        if begun is None or not starts:
            return None
        apart_s = max(starts) - min(starts)
        share = min(1.0, apart_s / self.elapsed_s) if self.elapsed_s > 0 else 0.0
        rank = starts.index(max(starts))
        return Skew(apart_s, rank, begun.last_host, share, begun.crowded, begun.clock_uncertainty_s)


# Fields of a mixed phase that apply to its parts.
_OF_WHOLE_PHASE = ("phase", "host", "origin_unix_s", "columns", "begun", "counters", "nodes")


def sample_named(samples: Sequence[Sample], name: str) -> Sample | None:
    """Return the sample of the phase with this name. A part of a mixed phase gets the counters of the mixed phase.

    >>> both = Sample("both", host="n1", bytes=5, parts=(Sample("dump", bytes=4), Sample("watch", bytes=1)))
    >>> part = sample_named([Sample("fill"), both], "watch")
    >>> part.name, part.host, part.bytes
    ('watch', 'n1', 1)
    """
    for sample in samples:
        if sample.name == name:
            return sample
        for part in sample.parts:
            if part.name == name:
                return replace(part, **{name: getattr(sample, name) for name in _OF_WHOLE_PHASE})
    return None


def begun_together(samples: Iterable[Sample]) -> dict[str, Mapping[str, float]]:
    """Return a summary of the start skews of all phases, or {} if no skew is known."""
    phases = [skew for sample in samples if (skew := sample.skew())]
    if not phases:
        return {}
    apart_s = [phase.apart_s for phase in phases]
    found = {
        "phases": len(phases),
        "median_s": median(apart_s),
        "worst_s": max(apart_s),
        "apart": sum(phase.is_apart for phase in phases),
        "crowded": sum(phase.crowded for phase in phases),
        "clock_uncertainty_s": max(phase.clock_uncertainty_s for phase in phases),
    }
    return {"begun_together": found}
