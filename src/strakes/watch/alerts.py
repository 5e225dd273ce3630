"""Alarms to people: Alertmanager's API, mail, or a command that gets the event on its standard input."""

from __future__ import annotations

import json
import math
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from http.client import HTTPException

from strakes.foreign_text import escaped, without_secrets
from strakes.units import counted, format_duration
from strakes.watch.values import WatchEvent
from strakes.watch.watch_text import line

_LIMIT_S = 10.0
# What could not be told is tried again, the newest so many of it.
_MOST_WAITING = 1000
# What lasts is told to Alertmanager so often, each time for so long: it ends there if the watch is gone.
_REPEAT_S = 60.0
_LASTS_S = 300.0
# Whoever fails is asked again after so long, then after twice as long each time.
_RETRY_S, _SELDOM_S = 1.0, 300.0
# What is refused for so long, while others are taken, is given up.
_GIVE_UP_S = 86400.0
# Alertmanager tells nobody of what is over: what is told for the first time when it is over lasts for so long there.
NEWS_S = 300.0

Send = Callable[[WatchEvent], None]


@dataclass(frozen=True)
class Way:
    """A way to people. ``send`` raises OSError, HTTPException or ValueError where that fails.

    ``repeats``: it has to be told again and again what lasts.
    """

    name: str
    send: Send
    repeats: bool = False


def to_alertmanager(url: str, clock: Callable[[], float] = time.time) -> Way:
    """Return what posts to ``URL/api/v2/alerts``."""
    import urllib.request

    class Refuse(urllib.request.HTTPRedirectHandler):
        """A POST that is redirected becomes a GET, which tells nobody anything."""

        def redirect_request(self, *_: object) -> None:
            return None

    opener = urllib.request.build_opener(Refuse)
    lasting: dict[tuple[str, str, float], None] = {}

    def send(event: WatchEvent) -> None:
        ends_s = event.ended_s
        if ends_s is None:
            ends_s = clock() + _LASTS_S
        elif event.key not in lasting:
            ends_s = max(ends_s, event.told_s + NEWS_S)
        alert = {
            "labels": {
                "alertname": f"strakes-{event.kind}",
                "subject": escaped(event.subject),
                "began": _when(event.began_s),
            },
            "annotations": {
                "summary": escaped(event.text),
                "sure": "" if event.sure is None else f"{event.sure:.3f}",
            },
            "startsAt": _when(event.began_s),
            "endsAt": _when(max(ends_s, event.began_s)),
        }
        body = json.dumps([alert]).encode()
        request = urllib.request.Request(
            f"{url.rstrip('/')}/api/v2/alerts", data=body, headers={"Content-Type": "application/json"}
        )
        with opener.open(request, timeout=_LIMIT_S):
            pass
        if event.ended_s is None:
            lasting[event.key] = None
            for oldest in list(lasting)[:-_MOST_WAITING]:
                del lasting[oldest]
        else:
            lasting.pop(event.key, None)

    return Way(f"Alertmanager {without_secrets(url)}", send, repeats=True)


def to_command(words: Sequence[str]) -> Way:
    """Return what starts a command with the event as JSON on its standard input."""

    def send(event: WatchEvent) -> None:
        try:
            done = subprocess.run(list(words), input=json.dumps(asdict(event)).encode(), timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise OSError(f"it did not end within {_LIMIT_S:g} s") from error
        if done.returncode:
            raise OSError(f"it ended with status {done.returncode}")

    return Way(f"the command {words[0]}", send)


def to_mail(recipient: str, host: str = "localhost", port: int = 25) -> Way:
    """Return what mails by the host's own server."""
    import smtplib

    def send(event: WatchEvent) -> None:
        try:
            with smtplib.SMTP(host, port, timeout=_LIMIT_S) as server:
                server.send_message(_mail(event, recipient))
        except smtplib.SMTPException as error:
            raise OSError(str(error)) from error

    return Way(f"mail to {recipient}", send)


def _mail(event: WatchEvent, recipient: str) -> EmailMessage:
    message = EmailMessage()
    message["To"], message["From"] = recipient, "strakes-watch@localhost"
    text = escaped(" ".join(event.text.split()))
    over = "" if event.ended_s is None else "over: "
    message["Subject"] = f"strakes: {over}{text}"[:200]
    lines = [escaped(line(event)), "", f"Began: {_readable(event.began_s)}"]
    if event.ended_s is not None:
        lines.append(f"Ended: {_readable(event.ended_s)}")
    lines += [f"{name.replace('_', ' ')}: {escaped(str(value))}" for name, value in event.evidence.items()]
    lines += ["", "The event as JSON is attached. A page of all events: strakes watch report"]
    message.set_content("\n".join(lines) + "\n")
    message.add_attachment(
        json.dumps(asdict(event), indent=1).encode(), maintype="application", subtype="json", filename="event.json"
    )
    return message


@dataclass(eq=False)
class _Waiting:
    """What is still to be told, how often that has failed since when, and from when on it is tried again."""

    event: WatchEvent
    failures: int = 0
    since_s: float = 0.0
    due_s: float = -math.inf


@dataclass
class _Pace:
    """How often in a row it failed, and from when on the next one is tried."""

    failures: int = 0
    due_s: float = -math.inf

    def slow_down(self, now_s: float) -> None:
        self.failures += 1
        self.due_s = now_s + _wait_s(self.failures)


@dataclass
class _Queue:
    """What one way is still to be told; its thread takes one after the other.

    What was refused waits by itself and holds up nothing else. Where everything fails, ever less is tried.
    """

    way: Way
    waiting: list[_Waiting] = field(default_factory=list)
    again: list[WatchEvent] = field(default_factory=list)
    busy: bool = False
    dropped: int = 0
    delivered: int = 0
    delivered_s: float = -math.inf
    # While anything fails: why, of which event, and what was told of it.
    why: str = ""
    failed: WatchEvent | None = None
    gap: WatchEvent | None = None
    # Of what was never tried, and of the rest.
    first: _Pace = field(default_factory=_Pace)
    later: _Pace = field(default_factory=_Pace)

    def add(self, events: Sequence[WatchEvent], lasting: Sequence[WatchEvent] | None) -> None:
        """Take in what is new, and what is to be told again where that is due."""
        keys = {event.key for event in events}
        if self.way.repeats:
            # It only wants to know until when something lasts.
            self.waiting = [waiting for waiting in self.waiting if waiting.event.key not in keys]
        self.waiting += map(_Waiting, events)
        self._drop_beyond_most()
        if self.way.repeats:
            keys = {waiting.event.key for waiting in self.waiting}
            again = self.again if lasting is None else lasting
            self.again = [event for event in again if event.key not in keys]

    def next(self, now_s: float) -> _Waiting | float:
        """Return what is to be told now, first what was never tried; else from when on something is."""
        ready = list[_Waiting]()
        due_s = math.inf
        keys = set[tuple[str, str, float]]()
        for waiting in self.waiting:
            # Nothing ends before its beginning was told.
            if waiting.event.key not in keys:
                keys.add(waiting.event.key)
                its_s = max(waiting.due_s, self.later.due_s) if waiting.failures else self.first.due_s
                due_s = min(due_s, its_s)
                if its_s <= now_s:
                    ready.append(waiting)
        if ready:
            return min(ready, key=lambda waiting: waiting.failures > 0)
        if self.again and self.later.due_s <= now_s:
            return _Waiting(self.again.pop(0))
        return min(due_s, self.later.due_s) if self.again else due_s

    def done(self, told: _Waiting, why: str, now_s: float) -> None:
        """Keep what became of it."""
        kept = told in self.waiting
        if not why:
            self.delivered, self.delivered_s = self.delivered + 1, now_s
            self.first, self.later = _Pace(), _Pace()
            if kept:
                self.waiting.remove(told)
            return
        self.why, self.failed = why, told.event
        self.later.slow_down(now_s)
        if kept and not told.failures:
            self.first.slow_down(now_s)
        told.since_s = told.since_s if told.failures else now_s
        told.failures += 1
        told.due_s = now_s + _wait_s(told.failures)
        if kept and now_s - told.since_s > _GIVE_UP_S and self.delivered_s > told.since_s:
            self.waiting.remove(told)
            self.dropped += 1
        elif not kept and all(waiting.event.key != told.event.key for waiting in self.waiting):
            self.waiting.append(told)
            self._drop_beyond_most()

    @property
    def failing(self) -> bool:
        """Tell whether anything could not be told so far."""
        return any(waiting.failures for waiting in self.waiting)

    def _drop_beyond_most(self) -> None:
        more = max(0, len(self.waiting) - _MOST_WAITING)
        del self.waiting[:more]
        self.dropped += more


def _wait_s(failures: int) -> float:
    return min(_RETRY_S * 2.0 ** min(failures - 1, 20), _SELDOM_S)


class AlertSender:
    """Tells every alarm, its beginning and its end, to all; what fails is tried again. Nobody waits for a slow one."""

    def __init__(self, ways: Sequence[Way]) -> None:
        self._queues = [_Queue(way) for way in ways]
        self._changed = threading.Condition()
        self._repeated_s = -math.inf
        for queue in self._queues:
            threading.Thread(target=self._work, args=(queue,), daemon=True).start()

    @property
    def waiting(self) -> int:
        """Return how many are still to be told."""
        with self._changed:
            return sum(len(queue.waiting) for queue in self._queues)

    @property
    def failed(self) -> str:
        """Return why one could not be told; empty where none fails now."""
        with self._changed:
            return next((f"{queue.way.name}: {queue.why}" for queue in self._queues if queue.failing), "")

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many were delivered, wait, and were dropped: (way, what) -> number."""
        with self._changed:
            return {
                (escaped(queue.way.name), what): count
                for queue in self._queues
                for what, count in (
                    ("delivered", queue.delivered),
                    ("waiting", len(queue.waiting)),
                    ("dropped", queue.dropped),
                )
            }

    def tell(self, events: Sequence[WatchEvent], lasting: Sequence[WatchEvent] = (), now_s: float = 0.0) -> None:
        """Tell what is an alarm; ``lasting``: alarms of before that last."""
        new = [event for event in events if event.alarm]
        repeat = not 0 <= now_s - self._repeated_s < _REPEAT_S
        if repeat:
            self._repeated_s = now_s
        if not new and not repeat:
            return
        with self._changed:
            for queue in self._queues:
                queue.add(new, lasting if repeat else None)
            self._changed.notify_all()

    def troubles(self, now_s: float) -> list[WatchEvent]:
        """Return, once each, which way fails, and that all is told by it again."""
        events = []
        with self._changed:
            for queue in self._queues:
                name, failed = queue.way.name, queue.failed
                if queue.failing and queue.gap is None and failed is not None:
                    text = (
                        f"an alarm ({failed.kind}, {failed.subject}) cannot be delivered by {name}: {queue.why}; it is "
                        "tried again"
                    )
                    queue.gap = WatchEvent("gap", f"alarms by {name}", now_s, now_s, text)
                    events.append(queue.gap)
                elif queue.gap is not None and not queue.failing:
                    long = format_duration(max(0.0, now_s - queue.gap.began_s))
                    lost = f"; {counted(queue.dropped, 'alarm')} dropped so far" if queue.dropped else ""
                    text = f"alarms are delivered by {name} again; not all could be for about {long}{lost}"
                    ended_s = max(now_s, queue.gap.began_s)
                    events.append(replace(queue.gap, told_s=now_s, ended_s=ended_s, text=text))
                    queue.gap = None
        return events

    def settle(self, limit_s: float = _LIMIT_S) -> int:
        """Wait until all is told, or for so long; return how many still wait."""
        with self._changed:
            self._changed.wait_for(
                lambda: not any(queue.waiting or queue.again or queue.busy for queue in self._queues), limit_s
            )
            return sum(len(queue.waiting) for queue in self._queues)

    def _work(self, queue: _Queue) -> None:
        while True:
            with self._changed:
                while not isinstance(chosen := queue.next(time.monotonic()), _Waiting):
                    self._changed.wait(None if chosen == math.inf else max(0.0, chosen - time.monotonic()))
                queue.busy = True
            why = _why_not(queue.way, chosen.event)
            with self._changed:
                queue.busy = False
                queue.done(chosen, why, time.monotonic())
                self._changed.notify_all()


def _why_not(way: Way, event: WatchEvent) -> str:
    try:
        way.send(event)
    except (OSError, HTTPException, ValueError) as error:
        # urllib says so of what a system call says.
        inner = getattr(error, "reason", error)
        return getattr(inner, "strerror", None) or str(error) or type(error).__name__
    return ""


def _when(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat()


def _readable(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
