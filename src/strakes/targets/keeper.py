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
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from strakes.base.processes import engine_path, wait_for_end
from strakes.targets import child
from strakes.targets.marker import Marker
from strakes.targets.removal import Left, remove_tree, remove_workspace

# A child that uses no processor time for this many seconds is blocked by a server. Removing a large tree may take
# longer, but uses the processor.
_STUCK_S = 20.0
_TICK_S = 0.02
_REMOVE = "import sys; sys.path.insert(0, sys.argv[1]); from strakes.targets.keeper import work; work(sys.argv[2])"


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

    Returns the entries that are still there: all, if the file system does not answer. An interrupt does not end it.
    """
    words = [sys.executable, "-I", "-S", "-c", _REMOVE, str(Path(__file__).parents[2])]
    with os.fdopen(os.memfd_create("answer"), "r+b") as output:
        try:
            worker = subprocess.Popen(
                [*words, json.dumps([parent, name, path, directory])],
                stdin=subprocess.DEVNULL,
                stdout=output,
                # Nothing of ours may hold open what a shell reads to its end.
                stderr=subprocess.DEVNULL,
                pass_fds=[descriptor for descriptor in (parent, directory) if descriptor >= 0],
                start_new_session=True,
                # Without site packages (-S) the child does not find the engine of an editable installation.
                env={**os.environ, "STRAKES_ENGINE": str(engine_path())},
            )
        except PermissionError:  # another user's interpreter
            return _remove(parent, name, path, directory)
        if not _ends(worker):
            return (Left(path, "the file system does not answer"),)
        output.seek(0)
        if worker.returncode == 0:
            return tuple(Left(**entry) for entry in json.load(output))
    return _remove(parent, name, path, directory)


def _remove(parent: int, name: str, path: str, directory: int) -> tuple[Left, ...]:
    return remove_tree(parent, name, path) if directory < 0 else remove_workspace(parent, name, directory, path)


def work(arguments: str) -> None:
    """Remove in the child; write the entries that are left as JSON to standard output."""
    sys.stdout.write(json.dumps([asdict(left) for left in _remove(*json.loads(arguments))]))


def _ends(worker: subprocess.Popen[bytes]) -> bool:
    """Wait until a child ends. Return False, and kill it, if it uses no processor for too long."""
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
                return False
        else:
            return True


def _processor_ticks(pid: int) -> int:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        # Processor time in user and kernel mode, and voluntary context switches.
        switches = [
            line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("voluntary")
        ]
        return int(fields[11]) + int(fields[12]) + sum(int(line.split()[1]) for line in switches)
    return -1
