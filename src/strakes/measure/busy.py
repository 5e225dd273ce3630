"""How busy the processors of servers were in each phase, where servers run on this machine."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from strakes.findings.sample import Sample
from strakes.targets.processors import ProcessorUse, ServerProcess, processor_use

# At first; a look takes some microseconds for each server.
_EVERY_S = 0.01
# Of a phase that is as long as this many looks its share is known to a few percent.
_LEAST_LOOKS = 5
# With so many every second one is forgotten, and looks are taken half as often from then on.
_MOST_LOOKS = 20_000


class ProcessorWatch:
    """Looks at the processes' clocks from :meth:`begin` to :meth:`end`."""

    def __init__(self, processes: Mapping[str, ServerProcess]) -> None:
        """Take the processes by the names of their servers."""
        self._processes = dict(processes)
        self._looks: list[tuple[float, list[ProcessorUse | None]]] = []
        self._every_s = _EVERY_S
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def begin(self) -> None:
        """Start looking."""
        self._thread.start()

    def end(self) -> None:
        """Stop looking."""
        self._ends.set()
        self._thread.join()

    def shares(self, samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
        """Return by phase and server the share that it used of what it may use; without phases that were too short.

        Of a quota that threads share the kernel leaves a part unused: a period in which it was used up counts whole.
        """
        told: dict[str, dict[str, float]] = {}
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
                told.setdefault(sample.name, {})[name] = round(min(1.0, share), 4)
        return told

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
        """Return what it had used at a moment, between two looks in proportion: seconds, periods, those used up."""
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
