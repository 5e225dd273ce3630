"""From what the probe has felt so far to the load that may be: a pure function of its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Of the last so many operations of one kind. Where 1 in 100 is slow, so many slow ones are there by chance in 8 of 100
# windows (binomial); where 10 in 100 are, in 998 of 1000.
WINDOW = 100
TOO_MANY = 3
# Of the time in which each rank keeps the file system busy. After the last step there is nothing left but to stop.
SHARES = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
# Operations in a row, none of them slow, after which a step back is tried; twice as many each time that was wrong.
CALM = 600


@dataclass(frozen=True)
class Felt:
    """One operation of the probe: of which kind, and whether it took longer than others are to wait."""

    kind: str
    slow: bool


@dataclass(frozen=True)
class Control:
    """How far the measurement gives way: ``share`` of its load, or ``stopped``.

    >>> control = Control()
    >>> for felt in [Felt("cycle", False)] * 50 + [Felt("cycle", True)] * 3:
    ...     control = control.after(felt)
    >>> control.share, control.stopped
    (0.5, False)
    """

    step: int = 0
    stopped: bool = False
    raised: bool = False
    calm: int = 0
    calm_wanted: int = CALM
    recent: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Return the share of the load that may be."""
        return SHARES[self.step]

    def after(self, felt: Felt) -> Control:
        """Return what one more operation makes of it."""
        recent = (*self.recent.get(felt.kind, ()), felt.slow)[-WINDOW:]
        calm = 0 if felt.slow else self.calm + 1
        if sum(recent) >= TOO_MANY:
            return self._less()
        if self.step > 0 and calm >= self.calm_wanted:
            return Control(self.step - 1, raised=True, calm_wanted=self.calm_wanted)
        return Control(self.step, self.stopped, self.raised, calm, self.calm_wanted, {**self.recent, felt.kind: recent})

    def _less(self) -> Control:
        """Begin anew: what was felt under more load says nothing of less."""
        wanted = 2 * self.calm_wanted if self.raised else self.calm_wanted
        if self.stopped or self.step + 1 == len(SHARES):
            return Control(len(SHARES) - 1, stopped=True, calm_wanted=wanted)
        return Control(self.step + 1, calm_wanted=wanted)
