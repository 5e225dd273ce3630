"""Heartbeat and removal of a workspace in child processes.

A system call that waits for a dead server cannot be interrupted, and a process with a thread in such a call cannot
exit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import strakes.base.errors as errors
from strakes.base.processes import engine_path, wait_for_end
from strakes.targets import child
from strakes.targets.calls import UnansweredError
from strakes.targets.marker import Marker
from strakes.targets.removal import Left, remove_tree, remove_workspace

# A child that uses no processor time for this many seconds is blocked by a server. Removing a large tree may take
# longer, but uses the processor.
_STUCK_S = 20.0
_TICK_S = 0.02
_WORK = "import sys; sys.path.insert(0, sys.argv[1]); from strakes.targets.keeper import work; work(*sys.argv[2:])"


class Heart:
    """Writes the marker anew now and then until :meth:`stop`, or until this process has gone."""

    def __init__(self, descriptor: int, marker: Marker, interval_s: float) -> None:
        """Take the open marker over. Where no child can be started (another user's interpreter) it does not beat."""
        words = [
            sys.executable,
            "-I",
            "-S",
            str(Path(child.__file__)),
            "beat",
            str(descriptor),
            str(interval_s),
            marker.to_bytes().decode(),
        ]
        self._child: subprocess.Popen[bytes] | None = None
        with suppress(PermissionError):
            self._child = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=[descriptor],
                start_new_session=True,
            )
        os.close(descriptor)
        if self._child is not None and self._child.stdout is not None:
            # Its start takes a processor for a while, which the first thing measured must not share.
            self._child.stdout.read()
            self._child.stdout.close()

    def stop(self, patience_s: float) -> bool:
        """Whether it has stopped: a beat that does not return waits for a target that hangs."""
        if self._child is None:
            return True
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            wait_for_end(self._child, patience_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return False
        return True


def remove_with_limit(parent: int, name: str, path: str, directory: int = -1) -> tuple[Left, ...]:
    """Remove a tree in the open directory ``parent``, or the workspace that is open as ``directory``.

    Returns the entries that are still there: all, if the file system does not answer.
    """
    try:
        if directory < 0:
            left = apart(remove_tree, path, parent, name, path, descriptors=(parent,))
        else:
            left = apart(remove_workspace, path, parent, name, directory, path, descriptors=(parent, directory))
    except UnansweredError as error:
        return (Left(path, error.what),)
    return tuple(Left(**entry) for entry in left)


def apart(function: Callable[..., object], where: str, *arguments: object, descriptors: Sequence[int] = ()) -> Any:
    """Call a function in a child process; return its answer, with dataclasses as dictionaries and tuples as lists.

    Raises StrakesError as the function does, and UnansweredError if the child hangs. An interrupt ends the child,
    unless it works on open ``descriptors``.
    """
    words = [sys.executable, "-I", "-S", "-c", _WORK, str(Path(__file__).parents[2])]
    words += [function.__module__, function.__name__, json.dumps(arguments)]
    with os.fdopen(os.memfd_create("answer"), "r+b") as output:
        try:
            worker = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                # Nothing of ours may hold open what a shell reads to its end.
                stderr=subprocess.DEVNULL,
                pass_fds=descriptors,
                start_new_session=True,
                # Without site packages (-S) the child does not find the engine of an editable installation.
                env={**os.environ, "STRAKES_ENGINE": str(engine_path())},
            )
            _wait_while_at_work(worker, where)
        except PermissionError:  # another user's interpreter
            return _read(_call(function, arguments))
        except (KeyboardInterrupt, errors.InterruptedByUser):
            if not descriptors:
                worker.kill()
            raise
        output.seek(0)
        answer = output.read().decode()
    return _read(answer if worker.returncode == 0 else _call(function, arguments))


def _wait_while_at_work(worker: subprocess.Popen[bytes], where: str) -> None:
    """Wait until a child ends. Raises UnansweredError, and kills it, if it uses no processor for too long."""
    used, since = -1, time.monotonic()
    while True:
        try:
            wait_for_end(worker, _TICK_S)
        except subprocess.TimeoutExpired:
            now = _processor_ticks(worker.pid)
            if now != used:
                used, since = now, time.monotonic()
            elif time.monotonic() - since > _STUCK_S:
                worker.kill()
                raise UnansweredError(
                    "the file system does not answer",
                    where=where,
                    why=f"a call has waited for it for {_STUCK_S:g} s",
                    remedy="Try again when its servers answer.",
                ) from None
        else:
            return


def _processor_ticks(pid: int) -> int:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        # Processor time in user and kernel mode, and voluntary context switches.
        switches = [
            line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("voluntary")
        ]
        return int(fields[11]) + int(fields[12]) + sum(int(line.split()[1]) for line in switches)
    return -1


def work(module: str, name: str, arguments: str) -> None:
    """Call a function, and write its answer, or its error, as JSON to standard output."""
    sys.stdout.write(_call(getattr(import_module(module), name), json.loads(arguments)))


def _call(function: Callable[..., object], arguments: Sequence[object]) -> str:
    try:
        return json.dumps({"answer": function(*arguments)}, default=asdict)
    except errors.StrakesError as error:
        kind = next(base.__name__ for base in type(error).__mro__ if hasattr(errors, base.__name__))
        return json.dumps({"kind": kind, "error": vars(error)})


def _read(text: str) -> Any:
    document = json.loads(text)
    if "error" in document:
        raise getattr(errors, document["kind"])(**document["error"])
    return document["answer"]
