"""An engine's message on one finished phase of a plan; ``docs/reference/engine.md`` defines the message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strakes.findings.record import Record, Rows

_AMOUNTS = ("phase", "bytes", "operations", "errors", "elapsed_s", "bytes_per_s", "operations_per_s")


@dataclass(frozen=True)
class Beginning(Record):
    """How the ranks of a phase began: ``apart_s`` from the first to the last, ``last_rank`` on ``last_host``.

    ``crowded``: some share a machine with fewer processors than ranks.
    """

    apart_s: float = 0.0
    last_rank: int = 0
    last_host: str = ""
    clock_uncertainty_s: float = 0.0
    crowded: bool = False


# A read does not measure storage if more than this share was in the page cache before it.
CACHED_SHARE = 0.05


@dataclass(frozen=True)
class PageCache(Record):
    """Bytes of a file in the page cache, before and after a phase.

    ``method`` is "none" if the kernel does not say; ``error_bytes``: the possible error if only a sample was read.
    """

    method: str = "none"
    file_bytes: int | None = None
    resident_before_bytes: int = 0
    resident_after_bytes: int = 0
    error_bytes: int = 0

    def always_written(self) -> Sequence[str]:
        """Return the value, also if it is 0."""
        return () if self.method == "none" else ("file_bytes", "resident_before_bytes", "resident_after_bytes")


@dataclass(frozen=True)
class NodeOfPhase(Record):
    """One node of the team: its ranks are those from ``first_rank`` to the next node's."""

    host: str
    first_rank: int = 0
    counters: Mapping[str, Any] = field(default_factory=dict)
    timeline: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class HeldBack(Record):
    """How long the ranks of a phase waited, all together, so that it was no more load than allowed."""

    held_back_s: float


@dataclass(frozen=True)
class Sample(Record):
    """One phase: amounts and rates of all ranks, each a row under ``columns``; ``counters``: of rank 0's node.

    The figure of another tool has only a name and a rate. ``listed``: directories read, and matches of find.
    ``trained``: data supplied to the accelerators of an epoch. ``latency_timeline``: percentiles second by second.
    ``parts``: of a mixed phase, each as a sample. ``recovery`` and the counts after it belong to a
    drill.
    """

    name: str
    phase: int = 0
    kind: str = ""
    operation: str = ""
    host: str = ""
    origin_unix_s: float = 0.0
    stopped_by: str = ""
    bytes: int = 0
    operations: int = 0
    errors: int = 0
    elapsed_s: float = 0.0
    bytes_per_s: float = 0.0
    operations_per_s: float = 0.0
    until_first: Mapping[str, Any] = field(default_factory=dict)
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
    timeline: Mapping[str, Any] = field(default_factory=dict)
    latency_timeline: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Sample, ...] = ()
    recovery_first_s: float = 0.0
    recovery_median_s: float = 0.0
    recovery_last_s: float = 0.0
    acknowledged: int = 0
    lost: int = 0
    failed: int = 0
    repeated: int = 0

    def always_written(self) -> Sequence[str]:
        """Return the amounts of what an engine measured."""
        return _AMOUNTS if self.ranks else ()

    @property
    def is_measured(self) -> bool:
        """Whether an engine measured it; of another tool's figure nothing but the rate is known."""
        return bool(self.ranks)

    def column(self, name: str) -> list[float]:
        """Return that value of every rank; empty if the engine did not send it.

        >>> Sample("write", columns=["rank", "open_s"], ranks=[[0, 0.25], [1, 0.5]]).column("open_s")
        [0.25, 0.5]
        """
        if name not in self.columns:
            return []
        place = self.columns.index(name)
        return [float(row[place]) for row in self.ranks]


def sample_named(samples: Sequence[Sample], name: str) -> Sample | None:
    """Return the sample of the phase, or the part of a mixed phase, of this name; a part has the phase's counters.

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
                return replace(
                    part,
                    phase=sample.phase,
                    host=sample.host,
                    origin_unix_s=sample.origin_unix_s,
                    until_first=sample.until_first,
                    columns=sample.columns,
                    begun=sample.begun,
                    counters=sample.counters,
                    nodes=sample.nodes,
                    timeline=sample.timeline,
                )
    return None
