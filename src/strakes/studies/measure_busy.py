"""Processor utilisation of servers on this machine, by phase."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from strakes.model.sample import Sample
from strakes.targets.processors import ProcessorUse, ServerProcess, processor_use

# Initial sampling interval; one sample costs a few microseconds per server.
_EVERY_S = 0.01
# A phase of at least this many sampling intervals has an error of a few percent.
_LEAST_LOOKS = 5
# At this number every second sample is dropped and the interval doubled, which bounds the memory.
_MOST_LOOKS = 20_000


class ProcessorWatch:
    """Samples the processor time of processes from :meth:`begin` to :meth:`end`."""

    def __init__(self, processes: Mapping[str, ServerProcess]) -> None:
        """Take the processes by the names of their servers."""
        self._processes = dict(processes)
        self._looks: list[tuple[float, list[ProcessorUse | None]]] = []
        self._every_s = _EVERY_S
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def begin(self) -> None:
        """Start sampling."""
        self._thread.start()

    def end(self) -> None:
        """Stop sampling."""
        self._ends.set()
        self._thread.join()

    def shares(self, samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
        """Return by phase and server the used share of the available processor time; without too short phases.

        The kernel leaves part of a cgroup quota unused, so a period with exhausted quota counts as 100 %.
        """
        by_phase: dict[str, dict[str, float]] = {}
        for sample in samples:
            began, ended = sample.origin_unix_s, sample.origin_unix_s + sample.elapsed_s
            if sample.elapsed_s < _LEAST_LOOKS * self._every_s or not self._saw(began, ended):
                continue
            for number, (name, process) in enumerate(self._processes.items()):
                uses = [self._use(number, moment) for moment in (began, ended)]
                if uses[0] is None or uses[1] is None:
                    continue
                used_s, periods, used_up = (after - before for before, after in zip(*uses, strict=True))
                share = max(used_s / sample.elapsed_s / process.processors, used_up / periods if periods > 0 else 0.0)
                by_phase.setdefault(sample.name, {})[name] = round(min(1.0, share), 4)
        return by_phase

    def _look(self) -> None:
        ends = False
        while not ends:
            ends = self._ends.wait(self._every_s if self._looks else 0)
            used = [processor_use(process) for process in self._processes.values()]
            self._looks.append((time.time(), used))
            if len(self._looks) >= _MOST_LOOKS and not ends:
                del self._looks[1::2]
                self._every_s *= 2

    def _saw(self, began: float, ended: float) -> bool:
        return bool(self._looks) and self._looks[0][0] <= began and ended <= self._looks[-1][0]

    def _use(self, number: int, moment: float) -> tuple[float, float, float] | None:
        """Interpolate a process's use at a moment: seconds, quota periods, exhausted quota periods."""
        behind = max(1, bisect_left(self._looks, moment, key=lambda look: look[0]))
        (first, low), (second, high) = ((at, uses[number]) for at, uses in self._looks[behind - 1 : behind + 1])
        if low is None or high is None:
            return None
        share = (moment - first) / (second - first)
        used_s, periods, used_up = (
            before + (after - before) * share
            for before, after in (
                (low.used_s, high.used_s),
                (low.periods, high.periods),
                (low.used_up, high.used_up),
            )
        )
        return used_s, periods, used_up
