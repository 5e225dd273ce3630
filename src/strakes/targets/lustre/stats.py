"""Counters as Lustre prints them everywhere: samples, and of some their smallest, largest, sum and sum of squares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from strakes.targets.lustre.output import not_understood

_TOOL = "lctl get_param (counters)"
_COUNTER = re.compile(r"^(\S.*?)\s+(\d+) samples \[(\w+)\](?: (\d+) (\d+) (-?\d+)(?: (-?\d+))?)?\s*$")
# Older versions give microseconds, and no beginning.
_TIME = re.compile(r"^(snapshot_time|start_time|elapsed_time):?\s+(\d+)\.(\d+) secs\.[nu]secs$")


@dataclass(frozen=True)
class Counter:
    """``unit`` is that of the sum; "reqs" for those that only count. Only ``samples`` and ``total`` add up."""

    samples: int
    unit: str
    minimum: int | None = None
    maximum: int | None = None
    total: int | None = None
    squares: int | None = None


@dataclass(frozen=True)
class Stats:
    """Counters from ``start_s`` (None: not told) to ``snapshot_s``, in Unix time. A counter of zero is not there."""

    snapshot_s: float
    start_s: float | None
    counters: Mapping[str, Counter]

    def samples(self, name: str) -> int:
        """Return how often it was counted."""
        return self.counters[name].samples if name in self.counters else 0

    def total(self, name: str) -> int:
        """Return the sum."""
        return (self.counters[name].total or 0) if name in self.counters else 0

    def data(self, side: str = "") -> dict[str, float]:
        """Return reads and writes by the names all file systems share; a sample of bytes is one request."""
        counters = {}
        for way in ("read", "write"):
            counters[f"{side}data.{way}_requests"] = float(self.samples(f"{way}_bytes"))
            counters[f"{side}data.{way}_bytes"] = float(self.total(f"{way}_bytes"))
        return counters


def parse_stats(text: str) -> Stats:
    r"""Read it. Raises NotUnderstoodError.

    >>> stats = parse_stats("snapshot_time 5.0 secs.nsecs\nopen 600 samples [usecs] 143 14279 755267 2588064233")
    >>> stats.samples("open"), stats.samples("unlink")
    (600, 0)
    """
    times: dict[str, float] = {}
    counters = {}
    for line in text.splitlines():
        if time := parse_time(line):
            times[time[0]] = time[1]
        elif match := _COUNTER.match(line):
            numbers = [None if group is None else int(group) for group in match.group(4, 5, 6, 7)]
            counters[match[1]] = Counter(int(match[2]), match[3], *numbers)
        else:
            raise not_understood(_TOOL, line)
    if "snapshot_time" not in times:
        raise not_understood(_TOOL, text)
    return Stats(times["snapshot_time"], times.get("start_time"), counters)


def parse_time(line: str) -> tuple[str, float] | None:
    """Return the name and seconds of a line that tells a time."""
    match = _TIME.match(line)
    return (match[1], float(f"{match[2]}.{match[3]}")) if match else None
