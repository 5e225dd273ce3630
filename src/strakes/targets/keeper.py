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
from pathlib import Path

from strakes.processes import wait_for_end
from strakes.targets import child
from strakes.targets.marker import Marker
from strakes.targets.removal import Left, remove_tree, remove_workspace

# A child that uses no processor time for this many seconds is blocked by a server. Removing a large tree may take
# longer, but uses the processor.
STUCK_S = 20.0
_TICK_S = 0.02
_HANGS = "the file system does not answer"
_REMOVER = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from strakes.targets.keeper import main; main(sys.argv[1:])"
)


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


def remove_with_limit(kind: str, parent: int, name: str, path: str, directory: int = -1) -> tuple[Left, ...]:
    """``kind`` "tree" or "workspace": the two functions of that name, given up when they hang."""
    descriptors = [descriptor for descriptor in (parent, directory) if descriptor >= 0]
    words = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        _REMOVER,
        str(Path(__file__).parents[2]),
        kind,
        str(parent),
        str(directory),
        name,
        path,
    ]
    with os.fdopen(os.memfd_create("left"), "r+b") as output:
        try:
            remover = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                pass_fds=descriptors,
                start_new_session=True,
            )
        except PermissionError:  # another user's interpreter
            return _remove(kind, parent, directory, name, path)
        if not wait_while_at_work(remover):
            return (Left(path, _HANGS),)
        output.seek(0)
        answer = output.read()
    if remover.returncode != 0:
        return _remove(kind, parent, directory, name, path)
    return tuple(Left(os.fsdecode(bytes.fromhex(encoded)), why) for encoded, why in json.loads(answer))


def wait_while_at_work(worker: subprocess.Popen[bytes]) -> bool:
    """Until it ends (True), or uses no processor for too long: it is then given up (False)."""
    used, since = -1, time.monotonic()
    while True:
        try:
            wait_for_end(worker, _TICK_S)
        except subprocess.TimeoutExpired:
            now = _processor_ticks(worker.pid)
            if now != used:
                used, since = now, time.monotonic()
            elif time.monotonic() - since > STUCK_S:
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


def _remove(kind: str, parent: int, directory: int, name: str, path: str) -> tuple[Left, ...]:
    return remove_tree(parent, name, path) if kind == "tree" else remove_workspace(parent, name, directory, path)


def main(words: list[str]) -> None:
    """Remove the workspace and write the remaining entries as JSON to standard output."""
    kind, parent, directory, name, path = words
    left = _remove(kind, int(parent), int(directory), name, path)
    print(json.dumps([(os.fsencode(remainder.path).hex(), remainder.why) for remainder in left]))  # noqa: T201 - for whoever started us
