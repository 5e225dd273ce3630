"""Which disk is which target's, where nobody says so: the disk whose written bytes follow those of the target."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import permutations

from strakes.watch.reading import Work

_FEWEST, _KEPT = 20, 120
# More would take long; servers with more targets say which devices they have (osd-*.*.mntdev).
_MOST_TARGETS, _MOST_DISKS = 4, 8
# Of what its target wrote, the disk's share may differ by so much; a disk beyond is not the target's.
_MOST_APART = 0.5


class Placed:
    """Learns from differences between readings; ``disks`` is empty until it can tell."""

    def __init__(self) -> None:
        self._before: tuple[Mapping[str, Work], Mapping[str, Work]] | None = None
        self._seen: deque[tuple[dict[str, float], dict[str, float]]] = deque(maxlen=_KEPT)
        self.disks: dict[str, str] = {}

    def add(self, disks: Mapping[str, Work], targets: Mapping[str, Work]) -> None:
        """Take in the counters of both."""
        if self._before is not None:
            self._seen.append((_written(self._before[0], disks), _written(self._before[1], targets)))
        self._before = (disks, targets)
        if len(self._seen) >= _FEWEST and len(self._seen) % _FEWEST == 0:
            self.disks = self._assign()

    def _assign(self) -> dict[str, str]:
        targets = sorted(set.intersection(*(set(of_targets) for _, of_targets in self._seen)))
        disks = sorted(set.intersection(*(set(of_disks) for of_disks, _ in self._seen)))
        disks = [disk for disk in disks if any(of_disks[disk] for of_disks, _ in self._seen)]
        if not targets or len(targets) > _MOST_TARGETS or len(disks) > _MOST_DISKS or len(disks) < len(targets):
            return {}
        apart = {
            (disk, target): sum(abs(of_disks[disk] - of_targets[target]) for of_disks, of_targets in self._seen)
            for disk in disks
            for target in targets
        }
        written = {target: sum(of_targets[target] for _, of_targets in self._seen) for target in targets}
        best = min(
            permutations(disks, len(targets)),
            key=lambda chosen: sum(apart[pair] for pair in zip(chosen, targets, strict=True)),
        )
        total = {disk: sum(of_disks[disk] for of_disks, _ in self._seen) for disk in best}
        return {
            disk: target
            for disk, target in zip(best, targets, strict=True)
            if abs(total[disk] - written[target]) <= _MOST_APART * max(written[target], 1.0)
        }


def _written(before: Mapping[str, Work], now: Mapping[str, Work]) -> dict[str, float]:
    return {name: max(0.0, work.written - before[name].written) for name, work in now.items() if name in before}
