"""What a source of counters has told at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strakes.targets.description import Interruption


@dataclass(frozen=True)
class OfKind:
    """Requests of one kind: how many, seconds spent on them, their squares added up, and bytes (0: not told)."""

    requests: float
    busy_s: float
    squares_s2: float = 0.0
    moved: float = 0.0

    def since(self, earlier: OfKind) -> OfKind:
        """Return what was added."""
        return OfKind(
            self.requests - earlier.requests,
            max(0.0, self.busy_s - earlier.busy_s),
            max(0.0, self.squares_s2 - earlier.squares_s2),
            max(0.0, self.moved - earlier.moved),
        )

    @property
    def variance_s2(self) -> float:
        """Return by how much ``busy_s`` would vary if as many requests were drawn again."""
        mean_s = self.busy_s / self.requests
        if self.requests < 2:
            return self.squares_s2
        return max(0.0, self.squares_s2 - self.requests * mean_s**2) * self.requests / (self.requests - 1)


@dataclass(frozen=True)
class Work:
    """What one target or disk has done since it counts: requests, seconds spent on them, bytes written.

    ``kinds``: the requests of each kind, where that is told.
    """

    requests: float
    busy_s: float
    written: float = 0.0
    kinds: Mapping[str, OfKind] = field(default_factory=dict)


@dataclass(frozen=True)
class CounterReading:
    """Everything is as it stands at ``time_s``; counters only grow, until they begin anew.

    ``work``: group of equals -> member -> work. ``jobs`` and ``job_bytes``: target -> job -> what it has asked for;
    ``clients``: how many requests each client has sent. ``full`` and ``locks``: shares of what there is.
    ``serving``: target -> since when it counts; None where this source does not know targets. ``recovering``: targets
    that have not all clients back; ``spared``: those whose clients others serve meanwhile; ``recovered``: target ->
    when all were, as its server tells. ``waits``: when targets did not serve a client; ``connected``: target -> since
    when a client is connected to it, 0 where it is not. ``figures``: values whose level is watched; ``counters``:
    values that are only shown. ``devices``: disk -> its target. ``missing``: what could not be read.
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
    spared: frozenset[str] = frozenset()
    recovered: Mapping[str, float] = field(default_factory=dict)
    waits: tuple[Interruption, ...] = ()
    connected: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def has_service_times(self) -> bool:
        """Whether servers count for how long their targets work; before Lustre 2.13 they count requests only."""
        return any(work.busy_s for group, of in self.work.items() if group != DISKS for work in of.values())


# Groups of equals.
DISKS, DATA_TARGETS, METADATA_TARGETS = "disk", "data target", "metadata target"


def client_and_host(directory: str) -> str:
    """Return the name of the source that is this machine: its client, and its servers if it has some."""
    return f"{directory} client and host"


def directory_of(source: str) -> str:
    """Return the directory of such a source; any other source is itself.

    >>> directory_of(client_and_host("/scratch")), directory_of("oss1")
    ('/scratch', 'oss1')
    """
    return source.removesuffix(client_and_host(""))
