"""What a source of counters has told at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strakes.targets.description import Interruption


@dataclass(frozen=True)
class Work:
    """What one target or disk has done since it counts: requests, seconds spent on them, bytes written."""

    requests: float
    busy_s: float
    written: float = 0.0


@dataclass(frozen=True)
class CounterReading:
    """Everything is as it stands at ``time_s``; counters only grow, until they begin anew.

    ``work``: group of equals -> member -> work. ``jobs`` and ``job_bytes``: what each job has asked for; ``clients``:
    how many requests each client has sent. ``full`` and ``locks``: shares of what there is. ``serving``: target ->
    since when it counts; None where this source does not know targets. ``recovering``: targets that have not all
    clients back. ``waits``: when targets did not serve a client. ``figures``: values whose level is watched;
    ``counters``: values that are only shown. ``devices``: disk -> its target. ``missing``: what could not be read.
    """

    source: str
    time_s: float
    work: Mapping[str, Mapping[str, Work]] = field(default_factory=dict)
    jobs: Mapping[str, float] = field(default_factory=dict)
    job_bytes: Mapping[str, float] = field(default_factory=dict)
    clients: Mapping[str, float] = field(default_factory=dict)
    full: Mapping[str, float] = field(default_factory=dict)
    locks: Mapping[str, float] = field(default_factory=dict)
    serving: Mapping[str, float] | None = None
    recovering: frozenset[str] = frozenset()
    waits: tuple[Interruption, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


# Groups of equals.
DISKS, DATA_TARGETS, METADATA_TARGETS = "disk", "data target", "metadata target"
