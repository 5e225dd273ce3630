"""Alarms to people: Alertmanager's API, mail, or a command that gets the event on its standard input."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from email.message import EmailMessage

from strakes.watch.values import WatchEvent

_LIMIT_S = 10.0
# What could not be told is tried again, the newest so many of it.
_MOST_WAITING = 1000
# Alertmanager forgets alerts that are not repeated, within five minutes if it is not told otherwise.
_AGAIN_S = 60.0
# Whoever takes longer to fail is left alone for as long: the watch must not wait for it each time.
_SLOW_S = 1.0
# It tells nobody of what is over: what is told for the first time when it is over lasts for so long there.
NEWS_S = 300.0

Send = Callable[[WatchEvent], None]


def to_alertmanager(url: str) -> Send:
    """Return what posts to ``URL/api/v2/alerts``; it raises OSError where that fails."""
    import urllib.request

    lasting: dict[tuple[str, str, float], None] = {}

    def send(event: WatchEvent) -> None:
        ended_s = event.ended_s
        if ended_s is not None and event.key not in lasting:
            ended_s = max(ended_s, event.told_s + NEWS_S)
        alert = {
            "labels": {"alertname": f"strakes-{event.kind}", "subject": event.subject, "began": _when(event.began_s)},
            "annotations": {"summary": event.text, "sure": "" if event.sure is None else f"{event.sure:.3f}"},
            "startsAt": _when(event.began_s),
            **({} if ended_s is None else {"endsAt": _when(max(ended_s, event.began_s))}),
        }
        body = json.dumps([alert]).encode()
        request = urllib.request.Request(
            f"{url.rstrip('/')}/api/v2/alerts", data=body, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=_LIMIT_S):
            pass
        if event.ended_s is None:
            lasting[event.key] = None
            for oldest in list(lasting)[:-_MOST_WAITING]:
                del lasting[oldest]
        else:
            lasting.pop(event.key, None)

    return send


def to_command(words: Sequence[str]) -> Send:
    """Return what starts a command with the event as JSON on its standard input; it raises OSError where that fails."""

    def send(event: WatchEvent) -> None:
        try:
            done = subprocess.run(list(words), input=json.dumps(asdict(event)).encode(), timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise OSError(f"{words[0]} did not end within {_LIMIT_S:g} s") from error
        if done.returncode:
            raise OSError(f"{words[0]} ended with status {done.returncode}")

    return send


def to_mail(recipient: str, host: str = "localhost", port: int = 25) -> Send:
    """Return what mails by the host's own server; it raises OSError where that fails."""
    import smtplib

    def send(event: WatchEvent) -> None:
        message = EmailMessage()
        message["To"], message["From"] = recipient, "strakes-watch@localhost"
        message["Subject"] = f"strakes: {' '.join(event.text.split())}"[:200]
        message.set_content(json.dumps(asdict(event), indent=1))
        try:
            with smtplib.SMTP(host, port, timeout=_LIMIT_S) as server:
                server.send_message(message)
        except smtplib.SMTPException as error:
            raise OSError(str(error)) from error

    return send


class AlertSender:
    """Tells every alarm, its beginning and its end, to all; what fails waits for the next time.

    ``repeating``: those of them that are to be told again and again what lasts.
    """

    def __init__(self, sends: Sequence[Send], repeating: Sequence[Send] = ()) -> None:
        self._sends, self._repeating = sends, repeating
        self._repeated_s = -math.inf
        self._resting: dict[Send, float] = {}
        self._waiting: deque[tuple[Send, WatchEvent]] = deque(maxlen=_MOST_WAITING)
        self.failed = ""
        """Why the last one could not be told."""

    @property
    def waiting(self) -> int:
        """Return how many are still to be told."""
        return len(self._waiting)

    def tell(self, events: Sequence[WatchEvent], lasting: Sequence[WatchEvent] = (), now_s: float = 0.0) -> None:
        """Tell what is an alarm, and what could not be told before; ``lasting``: alarms of before that last."""
        self._waiting.extend((send, event) for event in events if event.alarm for send in self._sends)
        again = list(self._waiting)
        self._waiting.clear()
        failing = {send for send, until_s in self._resting.items() if time.monotonic() < until_s}
        for send, event in again:
            if send in failing or not self._told(send, event):
                failing.add(send)
                self._waiting.append((send, event))
        if not 0 <= now_s - self._repeated_s < _AGAIN_S:
            self._repeated_s = now_s
            for send in self._repeating:
                for event in lasting:
                    if send in failing or not self._told(send, event):
                        break

    def _told(self, send: Send, event: WatchEvent) -> bool:
        began_s = time.monotonic()
        try:
            send(event)
        except OSError as error:
            self.failed = str(error)
            ended_s = time.monotonic()
            if ended_s - began_s > _SLOW_S:
                self._resting[send] = ended_s + _AGAIN_S
            return False
        return True


def _when(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat()
