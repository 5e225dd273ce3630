"""HTML page, without external files, of the events and service levels of a watch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from strakes.base.units import counted, format_duration, format_seconds
from strakes.model.service_level import ServiceLevel, judge
from strakes.report.html import render_page
from strakes.watch.histogram import Histogram
from strakes.watch.ring import Ring
from strakes.watch.values import CLOCK, WatchEvent
from strakes.watch.watch import MOST_FIGURES

_MOST_EVENTS = 500  # Maximum number of rows in a table. The size of the page grows in proportion.
_RUNS_S = 600.0


def render_watch_page(ring: Ring, since_s: float, until_s: float, levels: Sequence[ServiceLevel]) -> str:
    """Return the HTML page for the time from ``since_s`` to ``until_s`` (Unix time)."""
    figures: dict[str, Histogram] = {}
    watched_s = probed_s = last_s = 0.0
    for row in ring.rows(since_s, until_s):
        watched_s += row.seconds
        probed_s += row.seconds if row.figures else 0.0
        last_s = max(last_s, row.time_s + row.seconds)
        for name, histogram in row.figures.items():
            if name in figures or len(figures) < MOST_FIGURES:
                figures.setdefault(name, Histogram()).update(histogram)
    events = sorted(ring.events(since_s), key=lambda event: -event.began_s)
    alarms = [event for event in events if event.alarm]
    gaps = [event for event in events if event.kind == "gap"]
    others = len(events) - len(alarms) - len(gaps)
    span_s = max(until_s - since_s, 1.0)
    # If the watch does not run, the end of an unfinished event is unknown.
    lasts = "lasts" if last_s > until_s - _RUNS_S else "not known"
    return render_page(
        "watch.html.j2",
        since=_when(since_s),
        until=_when(until_s),
        headline=f"{counted(len(alarms), 'alarm')}, {counted(others, 'other change')}",
        watched=_part(watched_s, span_s),
        probed=_part(probed_s, span_s),
        something=bool(last_s or events),
        levels=[str(judge(level, ring.rows(since_s, until_s))) for level in levels],
        latencies=[
            (name, f"{histogram.total():,}", *map(_latency, map(histogram.percentile, (0.5, 0.95, 0.99))))
            for name, histogram in sorted(figures.items())
        ],
        events=[_cells(event, lasts) for event in events if event.kind != "gap"][:_MOST_EVENTS],
        gaps=[_cells(event, lasts) for event in gaps][:_MOST_EVENTS],
        more=max(0, len(events) - len(gaps) - _MOST_EVENTS),
        more_gaps=max(0, len(gaps) - _MOST_EVENTS),
        damaged=sum(ring.damaged.values()),
    )


def _cells(event: WatchEvent, lasts: str) -> tuple[str, str, str, str, str, bool]:
    long = lasts if event.ended_s is None else format_duration(max(0.0, event.ended_s - event.began_s))
    if event.kind == "gap" and event.subject == CLOCK:  # A step of the clock has no duration.
        long = ""
    text = f"{event.text} (a gain)" if event.gain else event.text
    return _when(event.began_s), long, event.kind, text, event.certainty, event.alarm


def _part(seconds: float, span_s: float) -> str:
    """Return a duration and its share of the time span as text."""
    return f"{format_duration(seconds) if seconds else '0 s'} ({min(1.0, seconds / span_s):.1%})"


def _latency(seconds: float) -> str:
    return "failed" if math.isinf(seconds) else format_seconds(seconds)


def _when(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
