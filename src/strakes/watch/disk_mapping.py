"""Maps disks to targets by their written bytes, for servers that do not list the devices of their targets.

Targets that share striped files write nearly the same amounts. A disk belongs to one target only if each other disk
fits significantly worse. Otherwise all targets whose disks fit equally well are candidates.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from itertools import permutations

from strakes.watch.reading import Work

_FEWEST, _KEPT, _EACH = 20, 120, 5
# The search is factorial. Servers with more targets list their devices (osd-*.*.mntdev).
_MOST_TARGETS, _MOST_DISKS = 4, 8
# Largest relative difference between the bytes of a disk and of its target.
_MOST_APART = 0.5
# Least distance of each other disk in standard errors.
_CLEARLY = 4.0


class Placed:
    """Learns from differences between readings of one server. ``disks`` is empty until the mapping is clear."""

    def __init__(self) -> None:
        self._before: tuple[Mapping[str, Work], Mapping[str, Work]] | None = None
        self._seen: deque[tuple[dict[str, float], dict[str, float]]] = deque(maxlen=_KEPT)
        self._since = 0
        self.disks: dict[str, str] = {}
        self.perhaps: dict[str, tuple[str, ...]] = {}
        """Disk -> candidate targets, for disks whose mapping is ambiguous."""

    def add(self, disks: Mapping[str, Work], targets: Mapping[str, Work]) -> None:
        """Add the counters of both."""
        if self._before is not None:
            self._seen.append((_written(self._before[0], disks), _written(self._before[1], targets)))
            self._since += 1
        self._before = (disks, targets)
        if len(self._seen) >= _FEWEST and self._since >= _EACH:
            self._since = 0
            found = self._assign()
            clear = {disk: targets[0] for disk, targets in found.items() if len(targets) == 1}
            # Keep the last unambiguous match until another one is found.
            kept = {disk: target for disk, target in self.disks.items() if disk not in clear}
            self.disks = clear | {disk: target for disk, target in kept.items() if target not in clear.values()}
            self.perhaps = {disk: targets for disk, targets in (self.perhaps | found).items() if disk not in self.disks}

    def _assign(self) -> dict[str, tuple[str, ...]]:
        """Return the candidate targets of each disk that belongs to a target."""
        targets = sorted(set.intersection(*(set(of_targets) for _, of_targets in self._seen)))
        disks = sorted(set.intersection(*(set(of_disks) for of_disks, _ in self._seen)))
        disks = [disk for disk in disks if any(of_disks[disk] for of_disks, _ in self._seen)]
        if not targets or len(targets) > _MOST_TARGETS or len(disks) > _MOST_DISKS or len(disks) < len(targets):
            return {}
        apart = {
            (disk, target): [abs(of_disks[disk] - of_targets[target]) for of_disks, of_targets in self._seen]
            for disk in disks
            for target in targets
        }
        sums = {pair: sum(each) for pair, each in apart.items()}
        best = min(
            permutations(disks, len(targets)),
            key=lambda chosen: sum(sums[pair] for pair in zip(chosen, targets, strict=True)),
        )
        of_disk = dict(zip(best, targets, strict=True))
        found = {}
        for disk in (disk for disk, target in of_disk.items() if self._close(disk, target)):
            alike = [other for other in disks if other != disk and not _clear(apart, of_disk, disk, other)]
            if all(other in of_disk for other in alike):
                found[disk] = tuple(sorted(of_disk[each] for each in (disk, *alike)))
        return found

    def _close(self, disk: str, target: str) -> bool:
        written = sum(of_targets[target] for _, of_targets in self._seen)
        return abs(sum(of_disks[disk] for of_disks, _ in self._seen) - written) <= _MOST_APART * max(written, 1.0)


def _clear(apart: Mapping[tuple[str, str], list[float]], of_disk: Mapping[str, str], disk: str, other: str) -> bool:
    """Return whether swapping ``disk`` with ``other`` would make the fit significantly worse."""
    target = of_disk[disk]
    worse = [wrong - right for wrong, right in zip(apart[other, target], apart[disk, target], strict=True)]
    if other in of_disk:
        swapped = zip(apart[disk, of_disk[other]], apart[other, of_disk[other]], strict=True)
        worse = [each + wrong - right for each, (wrong, right) in zip(worse, swapped, strict=True)]
    return sum(worse) > _CLEARLY * math.sqrt(sum(each * each for each in worse))


def _written(before: Mapping[str, Work], now: Mapping[str, Work]) -> dict[str, float]:
    return {name: max(0.0, work.written - before[name].written) for name, work in now.items() if name in before}
