"""A reading of the counters of one source, and differences of counters over windows of at least 15 s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strakes.targets.description import Interruption

# Names of the peer groups.
DISKS, DATA_TARGETS, METADATA_TARGETS = "disk", "data target", "metadata target"
# Minimum length of a window in seconds. Shorter windows have too few requests for a comparison.
WINDOW_S = 15.0
# Maximum number of seconds between two readings that are compared.
LONGEST_S = 20 * WINDOW_S


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
        """Return the variance of the sum ``busy_s``, estimated from the times of the requests."""
        mean_s = self.busy_s / self.requests
        if self.requests < 2:
            return self.squares_s2
        return max(0.0, self.squares_s2 - self.requests * mean_s**2) * self.requests / (self.requests - 1)


_NONE = OfKind(0.0, 0.0)


@dataclass(frozen=True)
class Work:
    """Counters of a target or disk since their last reset: number of requests, and total seconds of work.

    ``kinds``: the counters of each kind of request, if available.
    """

    requests: float
    busy_s: float
    kinds: Mapping[str, OfKind] = field(default_factory=dict)

    def since(self, earlier: Work) -> Work:
        """Return the difference from an earlier reading. If the counters were reset, they count from zero."""
        if self.requests < earlier.requests:
            return self
        kinds = {
            kind: done.since(before)
            for kind, done in self.kinds.items()
            if done.requests > (before := earlier.kinds.get(kind, _NONE)).requests
        }
        return Work(self.requests - earlier.requests, max(0.0, self.busy_s - earlier.busy_s), kinds)


def grown(before: float, now: float) -> float:
    """Return the increase of a counter that may have been reset.

    >>> grown(10.0, 12.0), grown(10.0, 3.0)
    (2.0, 3.0)
    """
    return now - before if now >= before else now


@dataclass(frozen=True)
class CounterReading:
    """The counters of a source at ``time_s``. Counters grow until they are reset.

    ``work``: peer group -> member -> work. ``jobs`` and ``job_bytes``: target -> job -> requests or bytes. ``clients``:
    client -> requests. ``full`` and ``locks``: name -> used share of the space or locks. ``serving``: target -> last
    reset of its counters (0: unknown); None if the source lists no targets. ``served``: target -> requests of clients.
    ``recovering``: targets in recovery. ``recovered``: target -> end of its last recovery. ``waits``: interruptions of
    targets for a client. ``connected``: target -> time when a client connected to it, 0 if disconnected. ``figures``:
    metric -> value, whose level is watched. ``devices``: disk -> target. ``missing``: errors of this reading.
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
        """Return whether servers report service times. Lustre servers before 2.13 only count requests."""
        return any(work.busy_s for group, of in self.work.items() if group != DISKS for work in of.values())


@dataclass(frozen=True)
class Window:
    """Differences between the counters of two readings. Times are Unix time."""

    began_s: float
    ended_s: float
    work: Mapping[str, Work]


class Windows:
    """Cuts the counters of one group into windows. A clock step discards the current window."""

    def __init__(self) -> None:
        self._first: tuple[float, Mapping[str, Work]] | None = None

    def add(self, time_s: float, work: Mapping[str, Work]) -> Window | None:
        """Add counters; return the window that they complete, or None."""
        if self._first is None or not 0 <= time_s - self._first[0] <= LONGEST_S:
            self._first = (time_s, work)
            return None
        began_s, before = self._first
        if time_s - began_s < WINDOW_S:
            return None
        self._first = (time_s, work)
        return Window(began_s, time_s, {name: now.since(before[name]) for name, now in work.items() if name in before})


def client_and_host(directory: str) -> str:
    """Return the name of the source for the client and the servers on this machine."""
    return f"{directory} client and host"


def directory_of(source: str) -> str:
    """Return the directory in a name from ``client_and_host``; return other names of sources unchanged.

    >>> directory_of(client_and_host("/scratch")), directory_of("oss1")
    ('/scratch', 'oss1')
    """
    return source.removesuffix(client_and_host(""))
