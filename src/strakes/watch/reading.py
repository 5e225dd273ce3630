"""Counters read from one source, and their differences over windows of at least 15 s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strakes.targets.description import Interruption

DISKS, DATA_TARGETS, METADATA_TARGETS = "disk", "data target", "metadata target"
WINDOW_S = 15.0  # Counters are compared over windows of this length. Shorter windows have too few requests.
LONGEST_S = 20 * WINDOW_S
PING_S = 25.0  # Lustre clients ping their targets at this interval.


@dataclass(frozen=True, slots=True)
class OfKind:
    """Requests of one kind: number, sum of service times, sum of their squares, and bytes (0 if unknown)."""

    requests: float
    busy_s: float
    squares_s2: float = 0.0
    moved: float = 0.0

    def since(self, earlier: OfKind) -> OfKind:
        """Return the difference from an earlier reading."""
        return OfKind(
            self.requests - earlier.requests,
            max(0.0, self.busy_s - earlier.busy_s),
            max(0.0, self.squares_s2 - earlier.squares_s2),
            max(0.0, self.moved - earlier.moved),
        )

    @property
    def variance_s2(self) -> float:
        """Return the estimated variance of ``busy_s``, from the variance of the service times."""
        mean_s = self.busy_s / self.requests
        if self.requests < 2:
            return self.squares_s2
        return max(0.0, self.squares_s2 - self.requests * mean_s**2) * self.requests / (self.requests - 1)


@dataclass(frozen=True, slots=True)
class Work:
    """Counters of a target or disk: number of requests, and seconds spent on them.

    ``kinds``: counters of each kind of request, if available.
    """

    requests: float
    busy_s: float
    kinds: Mapping[str, OfKind] = field(default_factory=dict)

    def since(self, earlier: Work) -> Work:
        """Return the increase since an earlier reading, or the present values if the counters were reset."""
        if self.requests < earlier.requests:
            earlier = Work(0.0, 0.0)
        kinds = {
            kind: done.since(before)
            for kind, done in self.kinds.items()
            if done.requests > (before := earlier.kinds.get(kind, OfKind(0.0, 0.0))).requests
        }
        return Work(self.requests - earlier.requests, max(0.0, self.busy_s - earlier.busy_s), kinds)


@dataclass(frozen=True)
class CounterReading:
    """Counters of a source at ``time_s``. Counters are cumulative since their last reset.

    ``work``: Work by peer group, then by disk or target. ``jobs``, ``job_bytes``: requests and bytes by target and job.
    ``full``, ``locks``: used share of each capacity. ``serving``: for each target in service, time of the counters'
    last reset, or 0 if unknown (None: the source lists no targets). ``served``: requests of clients by target.
    ``recovered``: end of each target's last recovery. ``connected``: begin of each target's connection, or 0.
    ``figures``: values by metric. ``devices``: target on each disk. ``missing``: errors of this reading.
    """

    source: str
    time_s: float
    work: Mapping[str, Mapping[str, Work]] = field(default_factory=dict)
    jobs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    job_bytes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    clients: Mapping[str, float] = field(default_factory=dict)
    full: Mapping[str, float] = field(default_factory=dict)
    locks: Mapping[str, float] = field(default_factory=dict)
    serving: Mapping[str, float] | None = None
    served: Mapping[str, float] = field(default_factory=dict)
    recovering: frozenset[str] = frozenset()
    recovered: Mapping[str, float] = field(default_factory=dict)
    waits: tuple[Interruption, ...] = ()
    connected: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def has_service_times(self) -> bool:
        """Return whether servers report service times. Lustre servers report them since version 2.13."""
        return any(work.busy_s for group, of in self.work.items() if group != DISKS for work in of.values())
