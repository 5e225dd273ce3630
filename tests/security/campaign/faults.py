"""Faults to inject. Each function returns False if its fault was impossible at that moment."""

from __future__ import annotations

import errno
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from mounts import FaultyMount
from security.campaign.world import World, command_of, kill


@dataclass(frozen=True)
class Situation:
    """What a fault can act on: files and processes of a seed, the front end, and a file system that injects faults."""

    world: World
    process: subprocess.Popen[bytes]
    faulty: FaultyMount | None
    draw: random.Random


@dataclass(frozen=True)
class Fault:
    """A fault; ``where``: the kinds of file system on which it is possible, empty for all."""

    name: str
    act: Callable[[Situation], bool]
    where: tuple[str, ...] = ()


def _others(situation: Situation, word: bytes = b"") -> list[int]:
    return [pid for pid in situation.world.processes() if pid != situation.process.pid and word in command_of(pid)]


def _signal(number: int) -> Callable[[Situation], bool]:
    def act(situation: Situation) -> bool:
        if situation.process.poll() is not None:
            return False
        situation.process.send_signal(number)
        return True

    return act


def _kill_other(word: bytes) -> Callable[[Situation], bool]:
    def act(situation: Situation) -> bool:
        pids = _others(situation, word)
        if pids:
            kill(situation.draw.choice(pids))
        return bool(pids)

    return act


def _stop(word: bytes) -> Callable[[Situation], bool]:
    def act(situation: Situation) -> bool:
        pids = _others(situation, word) if word else [situation.process.pid]
        if not pids or situation.process.poll() is not None:
            return False
        pid = situation.draw.choice(pids)
        kill(pid, signal.SIGSTOP)
        time.sleep(situation.draw.uniform(0.05, 1.0))
        kill(pid, signal.SIGCONT)
        return True

    return act


def _rename_workspace(situation: Situation) -> bool:
    directory = situation.world.directory
    for workspace in sorted(directory.glob("strakes-*")):
        if workspace.is_symlink() or workspace.name.startswith("strakes-20260101"):
            continue
        moved = workspace.with_name("moved-by-the-owner")
        try:
            workspace.rename(moved)
            if situation.draw.random() < 0.5:
                workspace.symlink_to(situation.world.canary)
        except OSError:
            return False
        time.sleep(situation.draw.uniform(0.05, 0.5))
        if workspace.is_symlink():
            workspace.unlink()
        if not workspace.exists() and moved.exists():
            moved.rename(workspace)
        return True
    return False


def _fail(number: int) -> Callable[[Situation], bool]:
    def act(situation: Situation) -> bool:
        if situation.faulty is None:
            return False
        calls = situation.draw.sample(["write", "read", "mkdir", "mknod", "unlink", "rmdir", "lookup", "fsync"], 2)
        if number:
            situation.faulty.fail(*calls, errno=number)
        else:
            situation.faulty.hang(*calls)
        time.sleep(situation.draw.uniform(0.05, 1.0))
        situation.faulty.mend()
        return True

    return act


def _replace_mount(situation: Situation) -> bool:
    place = str(situation.world.directory)
    subprocess.run(["umount", "--lazy", place], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=1777", "strakes-test", place], check=True)
    situation.world.look()
    return True


def _step_clock(situation: Situation) -> bool:
    if situation.world.clock is None:
        return False
    situation.world.step_clock(situation.draw.choice([-1, 1]) * 10 ** situation.draw.uniform(0, 5))
    return True


FAULTS = (
    Fault("kill the front end", _signal(signal.SIGKILL)),
    Fault("interrupt", _signal(signal.SIGINT)),
    Fault("stop the front end", _stop(b"")),
    Fault("kill the engine", _kill_other(b"strakes-engine")),
    Fault("stop the engine", _stop(b"strakes-engine")),
    Fault("kill any helper", _kill_other(b"")),
    Fault("stop any helper", _stop(b"python")),
    Fault("rename the workspace", _rename_workspace, ("directory", "tmpfs")),
    Fault("EIO", _fail(errno.EIO), ("faulty",)),
    Fault("ENOSPC", _fail(errno.ENOSPC), ("faulty",)),
    Fault("slow calls", _fail(0), ("faulty",)),
    Fault("replace the mount", _replace_mount, ("tmpfs",)),
    Fault("step the clock", _step_clock),
)
