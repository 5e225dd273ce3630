"""Base class of engines: starts the process, runs plans, supervises it, and restarts it when it dies."""

from __future__ import annotations

import os
import platform
import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

from strakes.base.errors import EnvironmentLacksError, ServersDeadError
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
from strakes.targets.removal import remove_with_limit

# The engine keeps the limit itself; only one that cannot is past it by this much.
_OVERTIME_S = 10.0
# Ending in order removes files, which takes its time on a slow target.
_CANCEL_S = 30.0
_STOP_S = 5.0
# One that has long been silent is not expected to take its leave.
_SILENT_STOP_S = 1.0
# How often it is looked whether an engine that says nothing is past a limit.
_TICK_S = 1.0
REINSTALL = "Install strakes again with pip install . (in a checkout, ./strakes doctor builds what is missing)."


_Ended = Literal["died", "limit", "cancelled", "silent"]
_STATUSES = ("ok", "failed", "cancelled", "refused")


@dataclass
class _Conversation:
    """The engine's messages about the running plan."""

    id: str
    samples: list[Sample] = field(default_factory=list)
    errors: list[EngineError] = field(default_factory=list)
    log: list[LoggedOperation] = field(default_factory=list)
    progress: Progress | None = None
    done: Mapping[str, Any] | None = None

    def result(self, ended: PlanEnd, left: Sequence[str], *, cleaned: bool) -> PlanResult:
        """Return the messages so far as the plan's result."""
        return PlanResult(ended, tuple(self.samples), tuple(self.errors), cleaned, tuple(left), tuple(self.log))


class Engine(ABC):
    """One engine, started on first use; a context manager that ends it.

    ``log`` takes every line that is no message; it is called from other threads.
    """

    @property
    def silence_s(self) -> float | None:
        """Return the silence in seconds after which a running engine counts as dead; None: no limit."""
        return None

    def __init__(self, log: Callable[[str], None] | None = None) -> None:
        self._log = log or (lambda _: None)
        self._process: EngineProcess | None = None
        self._environment: Mapping[str, str] = {}
        self._hello: Hello | None = None
        self._cancels = 0
        self.impact: Impact = UNLIMITED
        """How much load every plan from now on may be."""
        self.beside: tuple[Path, ...] = ()
        """Workspaces that the ranks of every plan from now on take in turn with the one that it is run in."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return the command that starts it. Raises EnvironmentLacksError when something for it is missing."""

    @abstractmethod
    def patience_s(self) -> float:
        """How long it may take to say hello."""

    @property
    def remedy(self) -> str:
        """Return the remedy if the engine does not start."""
        return REINSTALL

    def start(self) -> Hello:
        """Start it if it does not run. Raises EnvironmentLacksError when it does not start or is of another version."""
        if self._process is not None and self._hello is not None and self._process.is_alive():
            return self._hello
        self.close()
        command = self.command()
        try:
            self._process = EngineProcess(command, self._log, self._environment)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise EnvironmentLacksError(
                "the engine cannot be started", where=command[0], why=why, remedy=self.remedy
            ) from error
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
        """Run one plan in ``directory/cell_id`` and wait for its end; ``directory`` is a workspace.

        With ``prepared`` that directory may exist. ``on_log`` receives operations of probes with a log every
        ``progress_s`` seconds.

        Raises EnvironmentLacksError if no engine starts; the result says how the plan ended. Any exception meanwhile
        (above all KeyboardInterrupt) cancels the plan in order and is raised again.
        """
        self._cancels = 0
        seen: Path | PurePosixPath = self._inside_ceph(directory) if plan.inside_ceph() else directory
        self.start()
        process = self._process
        assert process is not None
        talk = _Conversation(cell_id)
        options = {
            "beside": [_directory_of(str(path)) for path in self.beside],
            "progress_s": progress_s,
            "prepared": prepared,
            "impact": to_record(self.impact),
        }
        request: dict[str, Any] = {"type": "plan", "id": cell_id, **_directory_of(str(seen)), "plan": plan.to_json()}
        request |= {"limit_s": limit_s, "keep": keep, **{name: value for name, value in options.items() if value}}
        sent = process.send(request)
        try:
            ended = self._listen(process, talk, limit_s, on_progress, on_log) if sent else "died"
        except ServersDeadError:
            self._forget()
            process.stop(_SILENT_STOP_S)
            raise
        except BaseException:
            self._abandon(process, talk)
            raise
        if ended is None:
            assert talk.done is not None
            result = talk.result(
                talk.done["status"], [*map(str, talk.done["left"])], cleaned=bool(talk.done["cleaned"])
            )
            if not keep and not result.cleaned:
                return self._after_an_end_without_cleaning(process, result, directory, cell_id)
            return result
        hello = self._hello
        self._forget()
        return self._after_death(process, talk, ended, directory, limit_s, hello, keep=keep)

    def _inside_ceph(self, directory: Path) -> PurePosixPath:
        """Return the workspace's path inside the Ceph file system; set the engine's environment for the cluster."""
        from strakes.targets.ceph_tool import inside

        place = inside(directory)
        if place.environment != self._environment:
            self.close()
            self._environment = place.environment
        return place.directory

    def cancel(self) -> None:
        """End the running plan in order; a second time, at once.

        It only takes a note, so that signal handlers and other threads can call it.
        """
        self._cancels += 1
        if (process := self._process) is not None:
            process.wake()

    def close(self) -> None:
        """End the engine. May be called twice."""
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
            why = f"it sent nothing for {patience_s:.0f} s"
        except (KeyError, TypeError, ValueError) as error:
            why = f"its first message is not a valid hello ({error})"
        self._forget()
        process.stop(_STOP_S)
        raise EnvironmentLacksError(
            "the engine does not start or has the wrong version", where=command[0], why=why, remedy=self.remedy
        )

    def _listen(
        self,
        process: EngineProcess,
        talk: _Conversation,
        limit_s: float,
        on_progress: Callable[[Progress], None] | None = None,
        on_log: Callable[[Sequence[LoggedOperation]], None] | None = None,
    ) -> _Ended | None:
        """Until the plan is done (None); else how it ended without: cancelled means that it would not end in order."""
        deadline = time.monotonic() + limit_s + _OVERTIME_S
        cancelled = False
        heard, silence_s = time.monotonic(), self.silence_s
        while talk.done is None:
            now = time.monotonic()
            if self._cancels and not cancelled:
                cancelled = True
                deadline = now + _CANCEL_S
                process.send({"type": "cancel", "id": talk.id})
            if now > deadline or self._cancels > 1:
                return "cancelled" if cancelled else "limit"
            try:
                message = process.receive(min(_TICK_S, deadline - now))
            except queue.Empty:
                if silence_s is not None and time.monotonic() - heard > silence_s:
                    return "silent"
                continue
            heard = time.monotonic()
            if message is None:
                return "died"
            before, logged = talk.progress, len(talk.log)
            self._take(talk, message)
            if on_log is not None and len(talk.log) > logged:
                on_log(talk.log[logged:])
            if on_progress is not None and talk.progress is not None and talk.progress is not before:
                on_progress(talk.progress)
        return None

    def _take(self, talk: _Conversation, message: Mapping[str, Any]) -> None:
        """One message into the conversation; one of another plan, or one that lacks something, into the log."""
        try:
            # A line that it cannot read has no id; ours is the only request that it has.
            if message["id"] not in (talk.id, ""):
                self._log(f"it sent a message about another plan: {message}")
            elif message["type"] == "progress":
                talk.progress = from_record(Progress, message)
            elif message["type"] == "sample":
                talk.samples.append(sample_from_message(message))
            elif message["type"] == "log":
                talk.log.extend(log_from_message(message))
            elif message["type"] == "error":
                talk.errors.append(from_record(EngineError, message))
            elif message["type"] == "done":
                talk.done = _checked_done(message)
        except (KeyError, TypeError, ValueError) as error:
            self._log(f"not a valid message ({error!r}): {message}")

    def _abandon(self, process: EngineProcess, talk: _Conversation) -> None:
        """End the plan in order because nobody waits for it any more; a further exception ends the engine at once."""
        try:
            self._cancels = 1
            if talk.done is None and self._listen(process, talk, 0.0) is None:
                return
            patience_s = _STOP_S
        except BaseException:
            patience_s = 0.0
            raise
        finally:
            if talk.done is None:
                self._forget()
                process.stop(patience_s)

    def _after_death(
        self,
        process: EngineProcess,
        talk: _Conversation,
        ended: _Ended,
        directory: Path,
        limit_s: float,
        hello: Hello | None,
        *,
        keep: bool,
    ) -> PlanResult:
        """Return the result of a plan whose engine did not finish, and remove its files."""
        if ended == "died":
            why = process.how_it_ended()
            gone = self._all_gone(hello)
        else:
            gone = process.stop(_STOP_S if ended != "silent" else _SILENT_STOP_S) and self._all_gone(hello)
            why = "it was stopped" if gone else "even SIGKILL does not end it, because it waits for the file system"
            if gone and ended == "silent":
                why = "its first process was stopped, or that process's node hangs or cannot be reached"
            for message in process.remaining():
                self._take(talk, message)
        after_s = (self.silence_s or 0.0) if ended == "silent" else limit_s + _OVERTIME_S
        talk.errors.append(_own_error(talk, ended, why, after_s, self._lost(hello)))
        # Removing files on a hanging file system would hang as well.
        left = (str(directory / talk.id),) if keep or not gone else self._sweep_all(directory, talk.id)
        return talk.result("limit" if ended == "silent" else ended, left, cleaned=not left)

    def _after_an_end_without_cleaning(
        self, process: EngineProcess, result: PlanResult, directory: Path, name: str
    ) -> PlanResult:
        """Threads that do not come back may be in it still; the next plan gets a fresh one."""
        self.close()
        return result

    def _sweep_all(self, directory: Path, name: str) -> tuple[str, ...]:
        """Remove a plan's files from each of its directories; return the paths that remain."""
        return tuple(path for place in (directory, *self.beside) for path in sweep(place, name))

    def _all_gone(self, hello: Hello | None) -> bool:
        """Whether nobody of an engine that has ended works on its files any more."""
        return True

    def _lost(self, hello: Hello | None) -> Mapping[str, str | int]:
        """Who it is that has gone or does not answer, where no engine is left to say so."""
        return {"host": platform.node()}

    def _forget(self) -> None:
        self._process = None
        self._hello = None


def _own_error(
    talk: _Conversation, ended: _Ended, why: str, after_s: float, lost: Mapping[str, str | int]
) -> EngineError:
    """Return what the front end saw, in the engine's form; the engine's own errors stand before it."""
    what = {
        "died": "the engine died",
        "limit": f"the plan did not end within {format_seconds(after_s)}",
        "cancelled": "the plan did not stop cleanly when it was cancelled",
        "silent": f"the engine sent nothing for {format_seconds(after_s)}",
    }[ended]
    where = dict(lost)
    if talk.progress is not None:
        where |= {"phase": talk.progress.phase, "operation": talk.progress.name, "ranks_done": talk.progress.ranks_done}
    remedy = "Check that the file system answers. A server may be down, or the limit may be too short."
    if ended == "died":
        killed = "See in the kernel's log whether memory ran out; otherwise somebody killed it."
        remedy = killed if "SIGKILL" in why else "Please report it."
    elif ended == "silent":
        remedy = "Check the host and its network. STRAKES_SILENCE_S sets how many seconds of silence are allowed."
    return EngineError(what, where, why, "", remedy)


def _directory_of(path: str) -> dict[str, str]:
    """Return the key of a request; JSON has no place for bytes that are not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return {"directory_hex": os.fsencode(path).hex()}
    return {"directory": path}


def sweep(directory: Path, name: str) -> tuple[str, ...]:
    """Remove what a dead engine left of a plan; returns what stays."""
    try:
        workspace = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return (str(directory / name),)
    try:
        return tuple(left.path for left in remove_with_limit(workspace, name, str(directory / name)))
    finally:
        os.close(workspace)


def _checked_done(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a ``done`` message. Raises KeyError or ValueError for any other."""
    _ = message["cleaned"], message["left"]
    if message["status"] not in _STATUSES:
        raise ValueError(f"status {message['status']!r}")
    return message


_HELLO_S = 10.0


def find_engine() -> Path:
    """Return $STRAKES_ENGINE, or the engine in the package. Raises EnvironmentLacksError if neither exists."""
    path = engine_path()
    if not path.is_file():
        remedy = REINSTALL
        if os.environ.get("STRAKES_ENGINE"):
            remedy = "Unset STRAKES_ENGINE, or set it to the path of the engine."
        raise EnvironmentLacksError("the engine is missing", where=str(path), why="no such file", remedy=remedy)
    return path


class LocalEngine(Engine):
    """One process; ``log`` as Engine's."""

    def __init__(self, executable: Path | None = None, log: Callable[[str], None] | None = None) -> None:
        super().__init__(log)
        self._executable = executable

    def command(self) -> Sequence[str]:
        """Return the command that starts the engine on this node. Raises EnvironmentLacksError where it is absent."""
        return [str(self._executable or find_engine())]

    def patience_s(self) -> float:
        """Longest time in seconds until it says hello."""
        return _HELLO_S
