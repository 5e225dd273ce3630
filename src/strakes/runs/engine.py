"""Base class of engines: start the engine process, supervise it while it runs plans, and restart it if it dies."""

from __future__ import annotations

import math
import os
import platform
import queue
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

from strakes.base.errors import EnvironmentLacksError, ServersDeadError, shortened
from strakes.base.processes import engine_path
from strakes.base.units import format_seconds
from strakes.base.version import __version__
from strakes.model.plan import Plan
from strakes.model.record import from_record, to_record
from strakes.model.sample import Sample
from strakes.runs.impact import UNLIMITED, Impact
from strakes.runs.messages import (
    EngineError,
    Hello,
    LoggedOperation,
    PlanEnd,
    PlanResult,
    Progress,
    hello_from_message,
    log_from_message,
    sample_from_message,
)
from strakes.runs.process import EngineProcess
from strakes.targets import calls
from strakes.targets.workspace import sweep

# Seconds from a plan's time limit until the engine is stopped.
_OVERTIME_S = 10.0
NOT_ENDED = "seconds after SIGKILL, the engine still waits for the file system"
# Maximum seconds for a cancelled plan to remove its files and end.
_CANCEL_S = 30.0
_STOP_S = 5.0
# Seconds between SIGTERM and SIGKILL for an unresponsive engine.
_SILENT_STOP_S = 1.0
# Seconds between checks of the time limits while the engine is silent.
_TICK_S = 1.0
# Maximum number of errors of a plan, as in the engine (kMostErrors). Each may have 16 million bytes.
_MOST_ERRORS = 16
# Maximum seconds from the start of a local engine to its first message.
_HELLO_S = 10.0
REINSTALL = "Install strakes again with pip install . (in a checkout, ./strakes doctor builds what is missing)."

_Ended = Literal["died", "limit", "cancelled", "silent"]


@dataclass(frozen=True)
class _Done:
    status: Literal["ok", "failed", "cancelled", "refused"]
    cleaned: bool
    left: tuple[str, ...]


@dataclass
class _Conversation:
    id: str
    samples: list[Sample] = field(default_factory=list)
    errors: list[EngineError] = field(default_factory=list)
    log: list[LoggedOperation] = field(default_factory=list)
    progress: Progress | None = None
    done: _Done | None = None
    cancelled_unix_s: float = math.inf

    def result(self, ended: PlanEnd, left: Sequence[str], *, cleaned: bool) -> PlanResult:
        return PlanResult(ended, tuple(self.samples), tuple(self.errors), cleaned, tuple(left), tuple(self.log))


class Engine(ABC):
    """A process that executes plans. It starts on first use, and ends with the ``with`` block."""

    _current_directory: str | None = None
    """Current directory of the command. None: the directory of strakes, because users give launchers relative paths."""

    _here = False
    """Whether the engine always runs on this node."""

    @property
    def silence_s(self) -> float | None:
        """Return the seconds without a message after which a running engine counts as dead, or None for no limit."""
        return None

    def __init__(self) -> None:
        self._process: EngineProcess | None = None
        self._environment: Mapping[str, str] = {}
        self._hello: Hello | None = None
        self._cancels = 0
        self._talk = _Conversation("")
        self.impact: Impact = UNLIMITED
        """Limit of the load of all following plans."""
        self.beside: tuple[Path, ...] = ()
        """Further workspaces. The ranks of all following plans are distributed over all workspaces."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return the command that starts the engine. Raises EnvironmentLacksError if a program for it is missing."""

    @abstractmethod
    def patience_s(self) -> float:
        """Return the maximum time in seconds from the start to the engine's first message."""

    @property
    def remedy(self) -> str:
        """Return the advice that users get if the engine does not start."""
        return REINSTALL

    def start(self) -> Hello:
        """Start the engine unless it runs. Raises EnvironmentLacksError on failure or another version of the engine."""
        if self._process is not None and self._hello is not None and self._process.is_alive():
            return self._hello
        self.close()
        command = self.command()
        try:
            self._process = EngineProcess(command, self._hear, self._environment, self._current_directory)
        except OSError as error:
            what, why = "the engine cannot be started", os.strerror(error.errno or 0)
            raise EnvironmentLacksError(what, where=command[0], why=why, remedy=self.remedy) from error
        self._hello = self._first_words(command, self._process)
        return self._hello

    def run(
        self,
        plan: Plan,
        directory: Path,
        cell_id: str,
        limit_s: float,
        on_progress: Callable[[Progress], None] | None = None,
        keep: bool = False,
        prepared: bool = False,
        on_log: Callable[[Sequence[LoggedOperation]], None] | None = None,
        progress_s: float | None = None,
    ) -> PlanResult:
        """Run one plan in ``directory/cell_id``, and return its result.

        ``keep``: do not remove the files. ``prepared``: accept an existing ``directory/cell_id``. ``on_log``: called
        every ``progress_s`` seconds with the operations that probes have newly logged.

        Raises EnvironmentLacksError if the engine does not start. An exception while the plan runs, such as
        KeyboardInterrupt, cancels the plan.
        """
        self._cancels = 0
        talk = self._talk = _Conversation(cell_id)
        seen: Path | PurePosixPath = directory
        if plan.inside_ceph():
            from strakes.targets.ceph_tool import inside

            place = inside(directory)
            seen = place.directory
            if place.environment != self._environment:
                self.close()
                self._environment = place.environment
        self.start()
        process = self._process
        assert process is not None
        options = {
            "beside": [_directory_of(str(path)) | calls.identity(path, here=self._here) for path in self.beside],
            "progress_s": progress_s,
            "prepared": prepared,
            "impact": to_record(self.impact),
        }
        request: dict[str, Any] = {"type": "plan", "id": cell_id, **_directory_of(str(seen)), "plan": plan.to_json()}
        request |= calls.identity(directory, here=self._here and not plan.inside_ceph())
        request |= {"limit_s": limit_s, "keep": keep, **{name: value for name, value in options.items() if value}}
        sent = process.send(request)
        try:
            ended = self._listen(process, limit_s, on_progress, on_log) if sent else "died"
        except ServersDeadError:
            hello = self._forget()
            process.stop(_SILENT_STOP_S, reap_s=0.0)
            self._kill_ranks(hello)
            raise
        except BaseException:
            self._abandon(process)
            raise
        if ended is None:
            assert talk.done is not None
            result = talk.result(talk.done.status, talk.done.left, cleaned=talk.done.cleaned)
            if not keep and not result.cleaned:
                return self._after_an_end_without_cleaning(process, result, directory, cell_id)
            return result
        return self._after_death(process, ended, directory, limit_s, self._forget(), keep=keep)

    def so_far(self) -> PlanResult:
        """Return the partial result of a plan that an exception interrupted."""
        done = self._talk.done
        return self._talk.result("limit" if done is None else done.status, (), cleaned=False)

    @property
    def cancelled_unix_s(self) -> float:
        """Return the Unix time at which the last plan was cancelled, or infinity if it was not cancelled."""
        return self._talk.cancelled_unix_s

    def cancel(self) -> None:
        """Cancel the running plan. A second call stops the engine. Safe in signal handlers and other threads."""
        self._cancels += 1
        if (process := self._process) is not None:
            process.wake()

    def close(self) -> None:
        """End the engine. A second call has no effect."""
        process = self._process
        self._forget()
        if process is not None:
            process.end_input(_STOP_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _first_words(self, command: Sequence[str], process: EngineProcess) -> Hello:
        patience_s = self.patience_s()
        try:
            message = process.receive(patience_s, wake=False)
            if message is None:
                why = process.how_it_ended()
            else:
                hello = hello_from_message(message)
                if hello.engine == __version__:
                    return hello
                why = f"it has version {hello.engine}, but strakes has {__version__}"
        except queue.Empty:
            why = process.how_it_ended(f"it sent no message for {patience_s:.0f} s")
        except (KeyError, TypeError, ValueError) as error:
            why = f"its first message is not a valid hello ({error})"
        self._forget()
        process.stop(_STOP_S)
        what = "the engine does not start or has the wrong version"
        raise EnvironmentLacksError(what, where=command[0], why=why, remedy=self.remedy)

    def _listen(
        self,
        process: EngineProcess,
        limit_s: float,
        on_progress: Callable[[Progress], None] | None = None,
        on_log: Callable[[Sequence[LoggedOperation]], None] | None = None,
    ) -> _Ended | None:
        deadline = time.monotonic() + limit_s + _OVERTIME_S
        cancelled = False
        talk, silent_s, silence_s = self._talk, 0.0, self.silence_s
        while talk.done is None:
            now = time.monotonic()
            if self._cancels and not cancelled:
                cancelled = True
                deadline, talk.cancelled_unix_s = now + _CANCEL_S, time.time()
                process.send({"type": "cancel", "id": talk.id})
            if now > deadline or self._cancels > 1:
                return "cancelled" if cancelled else "limit"
            try:
                message = process.receive(min(_TICK_S, deadline - now))
            except queue.Empty:
                silent_s += min(time.monotonic() - now, 2 * _TICK_S)  # This process may have been suspended.
                if silence_s is not None and silent_s > silence_s:
                    return "silent"
                continue
            silent_s = 0.0
            if message is None:
                return "died"
            before, logged = talk.progress, len(talk.log)
            self._take(message)
            if on_log is not None and len(talk.log) > logged:
                on_log(talk.log[logged:])
            if on_progress is not None and talk.progress is not None and talk.progress is not before:
                on_progress(talk.progress)
        return None

    def _hear(self, line: str) -> None:  # noqa: B027 - only launchers of MPI say more than messages
        """Handle a line of output that is not a message. Called by the threads that read the output."""

    def _take(self, message: Mapping[str, Any]) -> None:
        talk = self._talk
        try:
            # The engine cannot know the id of an unreadable request, so the id in its error is empty.
            if message["id"] not in (talk.id, ""):
                self._hear(f"it sent a message about another plan: {message}")
            elif message["type"] == "progress":
                talk.progress = from_record(Progress, message)
            elif message["type"] == "sample":
                talk.samples.append(sample_from_message(message))
            elif message["type"] == "log":
                talk.log.extend(log_from_message(message))
            elif message["type"] == "error" and len(talk.errors) < _MOST_ERRORS:
                error = from_record(EngineError, message)
                talk.errors.append(replace(error, why=shortened(error.why)))
            elif message["type"] == "done":
                talk.done = from_record(_Done, message)
        except (KeyError, TypeError, ValueError) as error:
            self._hear(f"not a valid message ({error!r}): {message}")

    def _abandon(self, process: EngineProcess) -> None:
        patience_s = 0.0
        try:
            self._cancels = 1
            if self._talk.done is None:
                self._listen(process, 0.0)
            patience_s = _STOP_S
        finally:
            if self._talk.done is None:
                self._forget()
                process.stop(patience_s)

    def _after_death(
        self, process: EngineProcess, ended: _Ended, directory: Path, limit_s: float, hello: Hello | None, *, keep: bool
    ) -> PlanResult:
        talk = self._talk
        if ended == "died":
            why = process.how_it_ended()
            gone = self._all_gone(hello)
        else:
            gone = process.stop(_STOP_S if ended != "silent" else _SILENT_STOP_S) and self._all_gone(hello)
            why = "the engine was stopped" if gone else NOT_ENDED
            if gone and ended == "silent":
                why = "rank 0 or its launcher was stopped, or the node of rank 0 hangs or cannot be reached"
            for message in process.remaining():
                self._take(message)
        after_s = (self.silence_s or 0.0) if ended == "silent" else limit_s + _OVERTIME_S
        talk.errors.append(_own_error(talk, ended, why, after_s, self._lost(hello)))
        # Keep the files, because their removal would hang on a hanging file system.
        left = (str(directory / talk.id),) if keep or not gone else self._sweep_all(directory, talk.id)
        return talk.result("limit" if ended == "silent" else ended, left, cleaned=not left)

    def _after_an_end_without_cleaning(
        self, process: EngineProcess, result: PlanResult, directory: Path, name: str
    ) -> PlanResult:
        self._forget()
        if process.end_input(_STOP_S) or not result.errors:
            return result
        return replace(result, errors=(*result.errors, EngineError("the engine does not end", why=NOT_ENDED)))

    def _sweep_all(self, directory: Path, name: str) -> tuple[str, ...]:
        return tuple(path for place in (directory, *self.beside) for path in sweep(place, name))

    def _all_gone(self, hello: Hello | None) -> bool:
        return True

    def _ranks_here(self, hello: Hello | None) -> list[int]:
        return []

    def _kill_ranks(self, hello: Hello | None) -> None:
        for pid in self._ranks_here(hello):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _lost(self, hello: Hello | None) -> Mapping[str, str | int]:
        return {"host": platform.node()}

    def _forget(self) -> Hello | None:
        hello, self._process, self._hello = self._hello, None, None
        return hello


def _own_error(talk: _Conversation, ended: _Ended, why: str, after_s: float, lost: Mapping[str, Any]) -> EngineError:
    what = {
        "died": "the engine died",
        "limit": f"the plan did not end within {format_seconds(after_s)}",
        "cancelled": "the plan did not stop cleanly when it was cancelled",
        "silent": f"the engine sent no message for {format_seconds(after_s)}",
    }[ended]
    where = dict(lost)
    if talk.progress is not None:
        where |= {"phase": talk.progress.phase, "operation": talk.progress.name, "ranks_done": talk.progress.ranks_done}
    remedy = "Check that the file system answers. A server may be down, or the limit may be too short."
    if ended == "died":
        killed = "See in the kernel's log whether memory ran out; else a user or a limit (ulimit -t) killed the engine."
        remedy = killed if "SIGKILL" in why else "Please report this error."
    elif ended == "silent":
        remedy = "Check the host and its network. STRAKES_SILENCE_S sets how many seconds of silence are allowed."
    return EngineError(what, where, why, "", remedy)


def _directory_of(path: str) -> dict[str, str]:
    try:
        path.encode()
    except UnicodeEncodeError:
        return {"directory_hex": os.fsencode(path).hex()}
    return {"directory": path}


def find_engine() -> Path:
    """Return $STRAKES_ENGINE, else the engine in the package. Raises EnvironmentLacksError if the file is missing."""
    path = engine_path()
    if not path.is_file():
        remedy = REINSTALL
        if os.environ.get("STRAKES_ENGINE"):
            remedy = "Unset STRAKES_ENGINE, or set it to the path of the engine."
        raise EnvironmentLacksError("the engine is missing", where=str(path), why="no such file", remedy=remedy)
    return path


class LocalEngine(Engine):
    """An engine that is one process on this node, with threads as ranks."""

    _current_directory = "/"
    _here = True

    def __init__(self, executable: Path | None = None) -> None:
        super().__init__()
        self._executable = executable

    def command(self) -> Sequence[str]:
        return [str((self._executable or find_engine()).absolute())]

    def patience_s(self) -> float:
        return _HELLO_S
