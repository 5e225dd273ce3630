"""One reading of a source of counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strakes.targets.description import Interruption


@dataclass(frozen=True)
class OfKind:
    """Requests of one kind: number, total seconds, sum of squared seconds, and bytes (0: unknown)."""

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
        """Return the variance of ``busy_s`` in a sample of the same number of requests."""
        mean_s = self.busy_s / self.requests
        if self.requests < 2:
            return self.squares_s2
        return max(0.0, self.squares_s2 - self.requests * mean_s**2) * self.requests / (self.requests - 1)


@dataclass(frozen=True)
class Work:
    """Counters of a target or disk since their reset: requests, total seconds.

    ``kinds``: the counters of each kind of request, if available.
    """

    requests: float
    busy_s: float
    kinds: Mapping[str, OfKind] = field(default_factory=dict)


@dataclass(frozen=True)
class CounterReading:
    """The counters of a source at ``time_s``. Counters grow until they are reset.

    ``work``: peer group -> member -> work. ``jobs`` and ``job_bytes``: target -> job -> requests or bytes.
    ``clients``: client -> requests. ``full`` and ``locks``: used shares of the capacity. ``serving``: target -> time of
    its last reset, or None if the source knows no targets. ``recovering``: targets in recovery. ``recovered``: target
    -> end of its last recovery. ``waits``: times in the view of a client without a target. ``connected``: target ->
    time of the connection of a client, 0 if it is disconnected. ``figures``: values whose level is watched.
    ``counters``: values for display only. ``devices``:
    disk -> target. ``missing``: errors of this reading.
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
    recovering: frozenset[str] = frozenset()
    recovered: Mapping[str, float] = field(default_factory=dict)
    waits: tuple[Interruption, ...] = ()
    connected: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def has_service_times(self) -> bool:
        """Return whether servers report service times; before Lustre 2.13 they count requests only."""
        return any(work.busy_s for group, of in self.work.items() if group != DISKS for work in of.values())


# Peer groups.
DISKS, DATA_TARGETS, METADATA_TARGETS = "disk", "data target", "metadata target"


def client_and_host(directory: str) -> str:
    """Return the name of the source for the client and the servers on this machine."""
    return f"{directory} client and host"


def directory_of(source: str) -> str:
    """Return the directory of such a source; return other names unchanged.

    >>> directory_of(client_and_host("/scratch")), directory_of("oss1")
    ('/scratch', 'oss1')
    """
    return source.removesuffix(client_and_host(""))
