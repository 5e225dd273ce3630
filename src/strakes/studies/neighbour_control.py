"""The load controller: computes the allowed load from the probe's latest operations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# The load is reduced if TOO_MANY of the last WINDOW operations of one kind were slow. By the binomial distribution
# that happens in 8 % of windows if 1 % of operations are slow, and in 99.8 % if 10 % are.
WINDOW = 100
TOO_MANY = 3
# Duty cycle of each rank at each step. After the last step the measurement stops.
SHARES = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
# Consecutive operations without a slow one before the load is raised; doubled each time the raise had to be undone.
CALM = 600


@dataclass(frozen=True)
class Felt:
    """One operation of the probe: its kind, and whether it took longer than the limit."""

    kind: str
    slow: bool


@dataclass(frozen=True)
class Control:
    """State of the controller: the allowed ``share`` of the load, or ``stopped``.

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
        """Return the allowed share of the load, 0 to 1."""
        return SHARES[self.step]

    def after(self, felt: Felt) -> Control:
        """Return the state after one more operation."""
        recent = (*self.recent.get(felt.kind, ()), felt.slow)[-WINDOW:]
        calm = 0 if felt.slow else self.calm + 1
        if sum(recent) >= TOO_MANY:
            return self._less()
        if self.step > 0 and calm >= self.calm_wanted:
            return Control(self.step - 1, raised=True, calm_wanted=self.calm_wanted)
        return Control(self.step, self.stopped, self.raised, calm, self.calm_wanted, {**self.recent, felt.kind: recent})

    def _less(self) -> Control:
        """Reduce the load by one step and forget the latencies under the higher load."""
        wanted = 2 * self.calm_wanted if self.raised else self.calm_wanted
        if self.stopped or self.step + 1 == len(SHARES):
            return Control(len(SHARES) - 1, stopped=True, calm_wanted=wanted)
        return Control(self.step + 1, calm_wanted=wanted)
