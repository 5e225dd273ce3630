"""Alarms by a command: each alarm and each end of one starts it once, with the event as JSON on its standard input.

Routing, grouping, repeats and mail are Alertmanager's, by the rules in packaging/prometheus.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from strakes.foreign_text import escaped
from strakes.units import counted, format_duration
from strakes.watch.values import WatchEvent

_LIMIT_S = 10.0
# A command that takes its full time limit for each alarm has run through these after three hours.
_MOST_WAITING = 1000

Send = Callable[[Sequence[str], WatchEvent], None]


def run_command(words: Sequence[str], event: WatchEvent) -> None:
    """Start the command and wait for it. Raises OSError."""
    try:
        done = subprocess.run(list(words), input=json.dumps(asdict(event)).encode(), timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"it did not end within {_LIMIT_S:g} s") from error
    if done.returncode:
        raise OSError(f"it ended with status {done.returncode}")


class AlertSender:
    """Starts the command ``words`` for alarms, in a thread: a slow command delays no reading. No words: no alarms."""

    def __init__(self, words: Sequence[str] = (), send: Send = run_command) -> None:
        self._words, self._send = tuple(words), send
        self._changed = threading.Condition()
        self._waiting: deque[WatchEvent] = deque()
        self._busy = False
        self._delivered = self._failed = 0
        self._why = ""
        self._gap: WatchEvent | None = None
        if words:
            threading.Thread(target=self._work, daemon=True).start()

    @property
    def failed(self) -> str:
        """Why the last alarm could not be delivered; empty if it was."""
        with self._changed:
            return self._why

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        """Number of alarms by (command, state)."""
        with self._changed:
            states = (("delivered", self._delivered), ("waiting", len(self._waiting)), ("failed", self._failed))
            return {(escaped(self._words[0]), state): count for state, count in states} if self._words else {}

    def tell(self, events: Sequence[WatchEvent]) -> None:
        """Queue the alarms among these events."""
        if not self._words:
            return
        with self._changed:
            self._waiting += [event for event in events if event.alarm]
            while len(self._waiting) > _MOST_WAITING:
                self._waiting.popleft()
                self._failed += 1
            self._changed.notify_all()

    def troubles(self, now_s: float) -> list[WatchEvent]:
        """Return, once each, that the command fails and that it works again."""
        with self._changed:
            if self._why and self._gap is None:
                text = f"an alarm could not be delivered by {self._words[0]}: {self._why}; it is not tried again"
                self._gap = WatchEvent("gap", f"alarms by {self._words[0]}", now_s, now_s, text)
                return [self._gap]
            if self._gap is not None and not self._why:
                gap, self._gap = self._gap, None
                long = format_duration(max(0.0, now_s - gap.began_s))
                lost = counted(self._failed, "alarm")
                text = f"alarms are delivered by {self._words[0]} again after {long}; {lost} lost"
                return [replace(gap, told_s=now_s, ended_s=max(now_s, gap.began_s), text=text)]
        return []

    def settle(self, limit_s: float = _LIMIT_S) -> int:
        """Wait for the queue to drain, up to a limit; return how many alarms still wait."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._busy, limit_s)
            return len(self._waiting)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                event, self._busy = self._waiting.popleft(), True
            why = ""
            try:
                self._send(self._words, event)
            except OSError as error:
                why = error.strerror or str(error)
            with self._changed:
                self._busy, self._why = False, why
                self._delivered += not why
                self._failed += bool(why)
                self._changed.notify_all()
