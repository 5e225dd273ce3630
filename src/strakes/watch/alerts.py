"""Run a command once when an alarm begins and once when the alarm ends, with the event as JSON on stdin.

For routing, grouping, repeats, retries and mail, use Alertmanager with the rules in packaging/prometheus.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict

from strakes.base.foreign_text import escaped
from strakes.base.processes import by_env
from strakes.watch.values import WatchEvent

_LIMIT_S = 10.0
# Maximum number of queued alarms. If the command takes 10 seconds per alarm, a full queue takes 10,000 seconds.
_MOST_WAITING = 1000
_killed = set[subprocess.Popen[bytes]]()  # commands that may not have ended yet


def run_command(words: Sequence[str], event: WatchEvent) -> None:
    """Run a command with the event as JSON on stdin. Raises OSError if it fails or is killed after 10 s."""
    # Discard the output, which may be endless. Start a process group, to kill a shell and its children together.
    null = subprocess.DEVNULL
    _killed.difference_update([child for child in tuple(_killed) if child.poll() is not None])
    process = subprocess.Popen(by_env(words), stdin=subprocess.PIPE, stdout=null, stderr=null, process_group=0)
    try:
        process.communicate(json.dumps(asdict(event)).encode(), _LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _killed.add(process)
        raise OSError(f"the command did not end within {_LIMIT_S:g} s") from None
    if status := process.returncode:
        why = {126: " (not executable)", 127: " (not found)"}.get(status, "")  # as env(1) and shells
        raise OSError(f"the command ended with status {status}{why}")


class AlertSender:
    """Queue of alarms. A thread runs the command ``words`` for each alarm, so that the watch does not wait for it."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        self._words = tuple(words)
        self._pool = ThreadPoolExecutor(1, "strakes-alerts")
        self._pool.submit(int)  # Start the thread now, because later the machine may refuse it.
        self._waiting: list[Future[None]] = []
        self._delivered = self._failed = 0
        self._reported = False
        self.why = ""
        """Why the last alarm could not be delivered, or an empty text if it was delivered."""

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        """Return (command, state) -> number of alarms. A state is "delivered", "waiting" or "failed"."""
        states = (("delivered", self._delivered), ("waiting", len(self._waiting)), ("failed", self._failed))
        return {(escaped(self._words[0]), state): count for state, count in states} if self._words else {}

    def tell(self, events: Sequence[WatchEvent], now_s: float) -> list[WatchEvent]:
        """Queue the events that are alarms. Return an event if the command has begun to fail or has recovered."""
        for event in (event for event in events if event.alarm and self._words):
            if len(self._waiting) < _MOST_WAITING:
                self._waiting.append(self._pool.submit(run_command, self._words, event))
            else:
                self._failed += 1
        self._collect()
        if bool(self.why) == self._reported:
            return []
        self._reported = bool(self.why)
        command = self._words[0]
        text = f"an alarm could not be delivered by {command}: {self.why}; strakes does not retry"
        if not self.why:
            text = f"alarms are delivered by {command} again; {self._failed} were lost"
        return [WatchEvent("gap", f"alarms by {command}", now_s, now_s, text, now_s)]

    def settle(self, limit_s: float = _LIMIT_S) -> int:
        """Wait up to ``limit_s`` seconds for the queued alarms. Return the number of alarms that were not sent."""
        waiting = wait(self._waiting, limit_s).not_done
        self._collect()
        if waiting:
            self._pool.shutdown(wait=False, cancel_futures=True)
        return len(waiting)

    def _collect(self) -> None:
        for done in [future for future in self._waiting if future.done()]:
            self._waiting.remove(done)
            error = done.exception()
            self.why = "" if error is None else getattr(error, "strerror", None) or str(error)
            self._delivered += error is None
            self._failed += error is not None
