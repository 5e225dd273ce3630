"""Whether the level of a figure has changed: online, in bounded memory, at a stated rate of false alarms.

The last values are scored within the values before them, by ranks and by spreads, and summed over windows of 4 to 64.
Each sum has a law of what chance makes of it; the one that stands out most is held against the bound that calibration
gives for the wanted rate.
After a change the series is watched for its end and for a further change; when it stays, its new level is learned. A
change that is back soon after it was over is the same one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from strakes.watch.calibration import (
    LEAST_SPREAD,
    LONGEST,
    WANDER,
    WINDOWS,
    Calibration,
    calibrate,
    most_alarms,
    resampled_medians,
    scores,
    spreads_of,
)
from strakes.watch.change_size import Seen, interval_of_change, seen
from strakes.watch.regimes import SHORTEST_REGIME, aligned, regime_begins
from strakes.watch.rhythm import Rhythm
from strakes.watch.values import Numbers

# Values before anything is said; a level that has changed is learned from as many.
LEARN = 60
_LEARN_AGAIN = 30
_LONGEST_PAST = 256
_MONTH_S = 30.4375 * 86400.0
# The baseline is calibrated again when it has grown by this factor, and when so many of its values are new.
_GROWN, _RENEWED = 1.4, 128
# Evidence (log likelihood ratio, of values that are far apart) that a change is over.
_OVER = 3.0
_LEAST = 0.05
# Chance is left this share of the alarms: a baseline of a few dozen values is one of many that there could have been.
_PASSED = 0.6
# Each change that was told in a year leaves this share of the alarms: a level that wanders goes further to be news.
_WANDERS = 0.4
# So many values of a change, or more, tell the level that a further one is held against.
_FEWEST_OF_LEVEL = 4
# Where a change began, no value weighs more than so many spreads.
_TAME = 4.0
# Between the least and the most of so many values is their median with 94 %.
_FEWEST_OF_ANY = 5
_WEEK_S = 7 * 86400.0
_YEAR_S = 365.25 * 86400.0


@dataclass(frozen=True)
class LevelChange:
    """Times are of the values; ``ratio`` is after / before.

    Where ``before`` is not clearly above zero there is none: ``ratio`` is 1 plus the difference, and not ``relative``.
    """

    began_s: float
    told_s: float
    ratio: float
    low: float
    high: float
    sure: float
    before: float
    after: float
    relative: bool = True


@dataclass(frozen=True)
class LevelEnd:
    """The change that was told last is over since ``ended_s``."""

    ended_s: float


@dataclass(frozen=True)
class LevelReturns:
    """The change that was told last, and was over, is back since ``began_s``: it is no second one."""

    began_s: float


@dataclass(frozen=True)
class LevelStays:
    """The change that was told last has been confirmed, at ``confirmed_s``, by values that came after it was told."""

    confirmed_s: float


LevelNews = LevelChange | LevelReturns | LevelStays | LevelEnd


class LevelDetector:
    """``alarms_a_month``: of this series. ``least``: the smallest change worth telling, as a share.

    ``wander``: how far its level goes by itself, in spreads.
    """

    def __init__(
        self,
        alarms_a_month: float,
        least: float = _LEAST,
        scale: Literal["log", "plain"] = "log",
        wander: float = WANDER,
    ) -> None:
        self.alarms_a_month = alarms_a_month
        self._wander = wander
        self._least = least
        self._scale = scale
        self._rhythm = Rhythm()
        self._past: deque[tuple[float, float]] = deque(maxlen=_LONGEST_PAST)
        self._recent: deque[tuple[float, float]] = deque()
        self._calibration: Calibration | None = None
        self._calibrated_at = 0
        self._new = 0
        self._changed: _Changed | None = None
        self._over: _Over | None = None
        self._told_at: deque[float] = deque(maxlen=16)
        # When regimes of the past began, whose levels are those of the last one by now.
        self._begins_s: list[float] = []
        self._rhythm_begun = False
        self._lowest = math.inf

    @property
    def learning(self) -> bool:
        """Tell whether nothing can be said yet."""
        return len(self._past) < LEARN

    def add(self, time_s: float, value: float) -> LevelNews | None:
        """Take in a value; return what it shows. One that is not finite (on a log scale: above zero) is left out."""
        if not math.isfinite(value) or (self._scale == "log" and value <= 0):
            return None
        self._lowest = min(self._lowest, value)
        figure = math.log(value) if self._scale == "log" else value
        rest = figure - self._rhythm.expected(time_s)
        if self._changed is not None:
            return self._after_change(time_s, rest)
        if len(self._past) < LEARN:
            self._learn(time_s, rest)
            return None
        self._recent.append((time_s, rest))
        if len(self._recent) > LONGEST:
            self._learn(*self._recent.popleft())
        if self._over is not None:
            self._over.values += 1
        return self._test()

    def _learn(self, time_s: float, rest: float) -> None:
        self._past.append((time_s, rest))
        self._new += 1
        if self._rhythm_begun:
            self._rhythm.learn(time_s, rest + self._rhythm.expected(time_s) - self._level())

    def _level(self) -> float:
        return float(np.median([rest for _, rest in self._past]))

    def _settle(self, values: Sequence[tuple[float, float]], time_s: float) -> None:
        """Take the level of ``values``, those since a change, for that of the past; what is known of chance holds."""
        size = float(np.median([rest for _, rest in values])) - self._level()
        self._past = deque([*((time, rest + size) for time, rest in self._past), *values], maxlen=_LONGEST_PAST)
        self._told_at.append(time_s)
        self._begins_s.append(values[0][0])

    def _bound(self, calibration: Calibration, now_s: float) -> float:
        told = sum(now_s - told_s < _YEAR_S for told_s in self._told_at)
        return calibration.threshold(_PASSED * self.alarms_a_month * _WANDERS**told)

    def _test(self) -> LevelChange | LevelReturns | None:
        calibration = self._calibrated()
        past = np.array([rest for _, rest in self._past])
        recent = np.array([rest for _, rest in self._recent])
        reach = [window for window in WINDOWS if window <= len(recent)]
        if not reach:
            return None
        sums = np.cumsum(scores(past[None], recent[None])[:, 0, ::-1], axis=1)[:, np.array(reach) - 1]
        standings = calibration.standings(sums)
        most = float(standings.max())
        bound = self._bound(calibration, self._recent[-1][0])
        if most < bound:
            return None
        window = reach[int(standings.max(axis=0).argmax())]
        return self._told(past, recent, window, bound, calibration.quiet(most))

    def _told(
        self, past: Numbers, recent: Numbers, window: int, bound: float, sure: float
    ) -> LevelChange | LevelReturns | None:
        before = float(np.median(past))
        spread = float(spreads_of(past))
        length = self._calibrated().length
        since = likely_beginning(past, recent, before, spread, window, length)
        alike = spread <= LEAST_SPREAD
        if alike:
            # What is not as it always was may be anything: its first values do not tell its level.
            since = max(since, int(np.flatnonzero(np.abs(recent - before) <= spread).max(initial=-1)) + 1)
            if len(recent) - since < _FEWEST_OF_ANY:
                return None
        after = float(np.median(recent[since:]))
        # Without their rhythm, values that never are below zero can be.
        floor = 0.0 if self._scale == "plain" and self._lowest >= 0 else -math.inf
        had, has = max(before, floor), max(after, floor)
        relative = self._scale == "log" or before > spread
        whole = before if self._scale == "plain" and relative else 1.0
        of_level = 1.0 if relative else max(abs(before), abs(after))
        if has == had or abs(self._as_ratio(after - before, whole) - 1) < self._least * of_level:
            return None
        differences = resampled_medians(recent[since:], 1) - resampled_medians(past, 2)
        low, high = np.percentile(differences, [5, 95])
        if low < 0 < high:
            return None
        if alike:
            least, most = float(recent[since:].min()) - before, float(recent[since:].max()) - before
        else:
            least, most = self._sizes(past, seen(recent[since:], before), bound, length)
        times = [time for time, _ in self._recent]
        change = LevelChange(
            times[since],
            times[-1],
            self._as_ratio(has - had, whole),
            self._as_ratio(min(max(least, floor - had), has - had), whole),
            self._as_ratio(max(most, has - had), whole),
            sure,
            self._as_value(had),
            self._as_value(has),
            relative,
        )
        far = before + float(low if after < before else high)
        self._changed = _Changed(before, after, far, spread, self._wandering(), list(self._recent)[since:])
        for entry in list(self._recent)[:since]:
            self._past.append(entry)
        self._recent.clear()
        if self._over is not None and self._over.is_same(float(low), float(high), len(self._changed.values)):
            return LevelReturns(change.began_s)
        self._over = _Over(float(low), float(high))
        return change

    def _sizes(self, past: Numbers, looks: Seen, bound: float, length: float) -> tuple[float, float]:
        """Return between which sizes a change is that ``looks`` so."""

        def look(past: Numbers, recent: Numbers, before: float, spread: float, window: int) -> Seen:
            return seen(recent[likely_beginning(past, recent, before, spread, window, length) :], before)

        places = np.searchsorted([time for time, _ in self._past], self._begins_s).tolist()
        begins = [0, *sorted({place for place in places if 0 < place < len(past)})]
        return interval_of_change(past, begins, looks, self._calibrated(), bound, look)

    def _after_change(self, time_s: float, rest: float) -> LevelNews | None:
        changed = self._changed
        assert changed is not None
        stayed = changed.stays
        if changed.add(time_s, rest):
            self._changed = None
            assert self._over is not None
            self._over.values = changed.over_for
            return LevelEnd(changed.over_since)
        if len(changed.values) >= _LEARN_AGAIN:
            self._settle(changed.values, time_s)
            self._calibration, self._changed, self._over = None, None, None
        elif (further := self._further(changed)) is not None:
            return further
        return LevelStays(time_s) if changed.stays and not stayed else None

    def _further(self, changed: _Changed) -> LevelChange | None:
        """Return a further change in the direction of the one that was told, against the values since that one."""
        calibration = self._calibration
        assert calibration is not None
        # Some of the values that it was told by may be of before it.
        rests = np.array([rest for _, rest in changed.values[changed.told_by :]])
        past = np.array([rest for _, rest in self._past])
        past -= np.median(past)
        most, window = -math.inf, 0
        for length in (length for length in WINDOWS if length <= len(rests)):
            since = len(rests) - length
            levels = [(changed.far, math.inf)]
            if since >= _FEWEST_OF_LEVEL:
                levels.append((changed.furthest(float(np.median(rests[:since]))), since))
            for level, values in levels:
                found = scores(past[None] + level, rests[None, since:])[:, 0].sum(axis=1)
                standing = calibration.standing_of_few(changed.direction * found, length, values)
                most, window = max((most, window), (standing, length))
        bound = self._bound(calibration, changed.values[-1][0])
        if most < bound:
            return None
        held = self._past, [*self._begins_s], self._told_at.copy(), self._over
        self._settle(changed.values[:-window], changed.values[-1][0])
        self._recent, self._over = deque(changed.values[-window:]), None
        past = np.array([rest for _, rest in self._past])
        change = self._told(past, rests[-window:], window, bound, calibration.quiet(most))
        if isinstance(change, LevelChange):
            return change
        self._past, self._begins_s, self._told_at, self._over = held
        self._recent.clear()
        return None

    def _calibrated(self) -> Calibration:
        count = len(self._past)
        grown = count >= min(self._calibrated_at * _GROWN, _LONGEST_PAST) and count > self._calibrated_at
        if self._calibration is None or grown or self._new >= _RENEWED:
            times = np.array([time for time, _ in self._past])
            past = np.array([rest for _, rest in self._past])
            begins = regime_begins(past, _fewest(times))
            past = aligned(past, begins)
            self._past = deque(zip(times.tolist(), past.tolist(), strict=True), maxlen=_LONGEST_PAST)
            known = [begun_s for begun_s in self._begins_s if begun_s > times[0]]
            self._begins_s = sorted({*known, *times[begins[1:]].tolist()})
            begins = [0, *np.searchsorted(times, self._begins_s).tolist()]
            span = float(times[-1] - times[0])
            if not self._rhythm_begun and spreads_of(past) > LEAST_SPREAD:
                # A rhythm is learned once changes of level are known: it would take one for a part of itself. What is
                # always the same has none, and what is once different would be taken for it.
                self._rhythm_begun = True
                for time, rest in self._past:
                    self._rhythm.learn(time, rest - self._level())
            a_month = _MONTH_S * (count - 1) / span if span > 0 else float(count)
            self._calibration = calibrate(past, a_month, begins, self._wander)
            self._calibrated_at, self._new = count, 0
        return self._calibration

    def _wandering(self) -> float:
        """Return how many values say as much of a level that wanders as an independent one says of one that stays."""
        return max(1.0, float(np.mean((self._calibrated().spreads[0] ** 2 / np.array(WINDOWS))[-3:])))

    def _as_ratio(self, difference: float, whole: float) -> float:
        return math.exp(difference) if self._scale == "log" else 1 + difference / whole

    def _as_value(self, level: float) -> float:
        return math.exp(level) if self._scale == "log" else level


@dataclass
class _Over:
    """The change that was told last, by the interval of its size, and how many values came since it was over."""

    low: float
    high: float
    values: int = 0

    def is_same(self, low: float, high: float, lasted: int) -> bool:
        """Tell whether a change between ``low`` and ``high`` that began ``lasted`` values ago is this one again.

        It is as large, and the old level was not back for good: where that is for less than a regime, it is an episode.
        """
        return low <= self.high and high >= self.low and self.values - lasted < SHORTEST_REGIME


class _Changed:
    """A change that was told, until it is over or is the new level."""

    def __init__(
        self, before: float, after: float, far: float, spread: float, length: float, values: list[tuple[float, float]]
    ) -> None:
        self.values = values
        # The new level may be as far off as that, by the values that it was told by.
        self.far = far
        self.told_by = len(values)
        self.over_since = 0.0
        self.over_for = 0
        self._before, self._after, self._spread, self._length = before, after, spread, length
        self._evidence = self._lasting = 0.0

    @property
    def stays(self) -> bool:
        """Whether the new level is confirmed (Wald's test of the old level against the new one, from telling on)."""
        return self._lasting > _OVER

    @property
    def direction(self) -> float:
        """1 where the level rose, -1 where it fell."""
        return math.copysign(1.0, self._after - self._before)

    def furthest(self, level: float) -> float:
        """Return a level, or the one that was told where that is further away: a further change goes beyond it."""
        return self._after + self.direction * max(self.direction * (level - self._after), 0.0)

    def add(self, time_s: float, rest: float) -> bool:
        """Sum up the evidence that the old level is back (Page); no value weighs more than two spreads.

        Fewer values at the old level than a change is told from end none.
        """
        self.values.append((time_s, rest))
        size = self._after - self._before
        middle = (self._before + self._after) / 2
        step = (
            min(max((rest - middle) / self._spread, -2.0), 2.0)
            * (-abs(size) / size)
            * min(abs(size) / self._spread, 2.0)
        )
        if self._evidence <= 0:
            self._evidence, self.over_since, self.over_for = 0.0, time_s, 0
        self.over_for += step > 0
        self._evidence += step / self._length
        self._lasting -= step / self._length
        return self._evidence > _OVER and self.over_for >= WINDOWS[0]


def _fewest(times: Numbers) -> int:
    """Return how many values a regime has at least: those of a week, or an hour of the day would be one."""
    return max(SHORTEST_REGIME, math.ceil(_WEEK_S / max(float(np.median(np.diff(times))), 1e-9)))


def likely_beginning(past: Numbers, recent: Numbers, before: float, spread: float, window: int, length: float) -> int:
    """Return the place before which a change of level is as likely to have begun as after it, given the last values.

    Each place is as likely as two levels that part there fit (normal values; the median is told, for the best fit may
    be the earliest of many that are nearly as good). It is at most half a window before the window says. ``length``:
    so many values say as much as an independent one. The level before the change is that of the values just before it:
    one that was learned from all of the past and has drifted since would date the change too early.
    """
    count = len(recent)
    off = np.clip((np.concatenate([past[-LONGEST:], recent]) - before) / spread, -_TAME, _TAME)
    after = np.cumsum(off[::-1])[::-1][-count:]
    lasting = count - np.arange(count)
    lasted = len(off) - lasting
    gains = lasted * lasting / len(off) * ((off.sum() - after) / lasted - after / lasting) ** 2
    first = max(0, count - window - window // 2)
    gains = gains[first : count - 1] / (2 * length)
    likely = np.cumsum(np.exp(gains - gains.max()))
    return first + int(np.searchsorted(likely, likely[-1] / 2))


def most_alarms_a_month(values_a_month: float) -> float:
    """Return from how many on a series is hardly told more often because more may be told by chance."""
    return most_alarms(values_a_month) / _PASSED


class LearnedTooLittle(Exception):
    """A series ended before anything could be said of it."""
