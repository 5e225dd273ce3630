"""The process of an engine. It exchanges messages as lines of JSON. Other output is logged."""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from strakes.base.errors import shortened
from strakes.base.finite import parse_json
from strakes.base.processes import descendants_of, ending, private_mpi_directory, process_start, wait_for_end

_VERSION = 1
_TYPES = frozenset({"hello", "progress", "sample", "log", "error", "done", "heartbeat"})
_REPEATED = ("progress", "heartbeat")  # Sent every second. No message of them is kept.
_KEPT_LINES = 20
# Limits of one message: its text (longer lines are read in pieces), and its values, of up to 150 bytes each.
_MOST_MESSAGE_BYTES, _MOST_VALUES = 64 << 20, 2_000_000
# Maximum number of unread messages. While there are more, the engine waits. Twice the number takes twice the memory.
_MOST_UNREAD = 2
# Maximum memory of all results of one plan: 2 million operations of a probe, with 50 bytes for each value (measured).
_MOST_PLAN_BYTES, _VALUE_BYTES = 768 << 20, 50
_PIPE_LINES = 4096  # Maximum number of messages in a pipe of 64 KiB.
_MOST_WORDS_BYTES = 64 << 10
# Seconds without progress until an engine counts as one that does not read.
_SEND_S = 10.0
_JOIN_S = 2.0
_TICK_S = 0.1

_WAKE: Mapping[str, Any] = {}

Log = Callable[[str], None]


class EngineProcess:
    """A running engine. Threads read its output, so that pipes never fill. ``log`` gets lines that are no messages."""

    def __init__(
        self,
        command: Sequence[str],
        log: Log,
        environment: Mapping[str, str] | None = None,
        current_directory: str | None = None,
    ) -> None:
        """Start the process. ``environment``: additional variables. Raises OSError if that fails."""
        self._left, secret = ExitStack(), dict[str, str]()
        if [Path(word).name for word in command] != ["strakes-engine"]:  # All others are linked with MPI.
            secret = self._left.enter_context(private_mpi_directory())
        # In a process group of its own, the engine gets no Ctrl-C. The parent gets it and cancels the plan.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            env={**os.environ, **secret, **(environment or {})},
            cwd=current_directory,
        )
        # A SimpleQueue, because signal handlers call wake().
        self._messages: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(_MOST_UNREAD)
        self._plan_bytes = 0
        self._last_words: deque[str] = deque(maxlen=_KEPT_LINES)
        self._readers = (
            threading.Thread(target=self._read_messages, args=(self._process.stdout, log), daemon=True),
            threading.Thread(target=self._read_words, args=(self._process.stderr, log), daemon=True),
        )
        for reader in self._readers:
            reader.start()

    def is_alive(self) -> bool:
        """Return whether the process still runs."""
        return self._process.poll() is None

    def send(self, message: Mapping[str, object]) -> bool:
        """Send a message as a line of JSON. Return False if the engine has closed its input, or does not read it."""
        assert self._process.stdin is not None
        if message["type"] == "plan":
            self._plan_bytes = 0
        data = memoryview(json.dumps({"version": _VERSION, **message}, separators=(",", ":")).encode() + b"\n")
        ready = select.poll()
        ready.register(self._process.stdin, select.POLLOUT)
        try:
            while data:
                if not ready.poll(_SEND_S * 1000):
                    self._last_words.append(f"it did not read its input for {_SEND_S:.0f} s")
                    return False
                data = data[os.write(self._process.stdin.fileno(), data[: select.PIPE_BUF]) :]
        except BrokenPipeError:
            return False
        return True

    def receive(self, timeout_s: float, *, wake: bool = True) -> Mapping[str, Any] | None:
        """Return the next message, or None at the end of the engine's output or of a process whose children keep it.

        Raises queue.Empty after ``timeout_s`` seconds or, unless ``wake`` is false, when :meth:`wake` is called.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            ended = not self.is_alive()
            try:
                message = self._messages.get(timeout=max(min(deadline - time.monotonic(), _JOIN_S), 0.001))
            except queue.Empty:
                if ended:
                    return None
                if time.monotonic() >= deadline:
                    raise
                continue
            if message is not _WAKE:
                self._room.release()
                return message
            if wake:
                raise queue.Empty

    def wake(self) -> None:
        """Interrupt :meth:`receive`. Signal handlers and other threads can call it."""
        self._messages.put(_WAKE)

    def remaining(self) -> Iterator[Mapping[str, Any]]:
        """Yield the messages of a stopped engine that :meth:`receive` has not returned."""
        with suppress(queue.Empty):
            while (message := self.receive(_TICK_S, wake=False)) is not None:
                yield message

    def end_input(self, patience_s: float) -> bool:
        """Ask the engine to exit, and stop it after ``patience_s`` seconds. Return whether it has exited."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not self._wait(patience_s):
            return self.stop(patience_s)
        self._close()
        return True

    def stop(self, patience_s: float, reap_s: float = _JOIN_S) -> bool:
        """Send SIGTERM and, after ``patience_s`` seconds, SIGKILL. Return whether the process has exited.

        Kill its descendants that outlive it, such as the ssh of an mpiexec. ``reap_s``: maximum seconds to wait after
        SIGKILL, and for the descendants.
        """
        family = [(pid, process_start(pid)) for pid in descendants_of(self._process.pid)]
        for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, reap_s)):
            self._process.send_signal(number)
            if self._wait(wait_s):
                break
        deadline = time.monotonic() + reap_s
        for pid, started in family:
            while started and process_start(pid) == started and time.monotonic() < deadline:
                time.sleep(_TICK_S)
            if started and process_start(pid) == started:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        self._close(reap_s)
        return self._process.returncode is not None

    def how_it_ended(self, how: str = "") -> str:
        """Return ``how``, else how the process ended, and its last lines that are no messages, as text."""
        if not how and not self._wait(_JOIN_S):
            self.stop(_JOIN_S)
            how = "it closed its output"
        elif not how:
            self._close()
            how = ending(self._process.returncode)
        return shortened("; ".join([how, *self._last_words]))

    def _wait(self, seconds: float) -> bool:
        try:
            wait_for_end(self._process, seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _close(self, join_s: float = _JOIN_S) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._room.release(_PIPE_LINES)  # Read the rest of the output.
        for reader in self._readers:
            reader.join(join_s)
        self._left.close()

    def _read_messages(self, stream: IO[bytes], log: Log) -> None:
        with stream:
            while line := stream.readline(_MOST_MESSAGE_BYTES):
                message = _parse(line)
                if message is None:
                    self._say(line, log)
                    continue
                if message["type"] not in _REPEATED:
                    self._plan_bytes += len(line) + _VALUE_BYTES * sum(map(line.count, (b",", b"[", b"{")))
                if self._plan_bytes > _MOST_PLAN_BYTES:
                    self._last_words.append(f"its results of one plan take more than {_MOST_PLAN_BYTES >> 20} MiB")
                    break
                self._room.acquire()
                self._messages.put(message)
        self._messages.put(None)

    def _read_words(self, stream: IO[bytes], log: Log) -> None:
        with stream:
            while line := stream.readline(_MOST_WORDS_BYTES):
                self._say(line, log)

    def _say(self, line: bytes, log: Log) -> None:
        self._last_words.append(line[:_MOST_WORDS_BYTES].decode(errors="replace").rstrip("\n"))
        log(self._last_words[-1])


def _parse(line: bytes) -> Mapping[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        message = parse_json(line, _MOST_VALUES)
    except ValueError:
        return None
    return message if str(message.get("type")) in _TYPES and message.get("version") == _VERSION else None
