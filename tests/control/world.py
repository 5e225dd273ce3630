"""A simulated system with two settings in a file, and processes that are killed at a given step of changing them.

``number`` silently adjusts 101 to 999 to 100, but accepts values of four digits, which the tests use for changes by
somebody else. ``option`` may be unset, as in the configuration database of a cluster.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from strakes.control.knob import Knob, load
from strakes.targets.calls import mount_of
from strakes.targets.command import DEFAULT_TIMEOUT_S, Completed
from strakes.targets.local import LocalTarget
from strakes.targets.target import Target

MOST = 100

_CATALOGUE = """
file_systems = ["*"]

[[knob]]
name = "number"
meaning = "A number."
kind = "integer"
least = 0
where = "client"
read = ["world", "get", "number"]
write = ["world", "set", "{place}", "{value}"]
adjusts = "more than 100 becomes 100"
source = "https://example.org/"

[[knob]]
name = "option"
meaning = "An option."
kind = "text"
where = "cluster"
read = ["world", "config", "dump"]
write = ["world", "config", "set", "option", "{value}"]
unset = ["world", "config", "rm", "all", "option"]
unset_sets = ["other", "on"]
cluster = ["world", "config", "fsid"]
answer = "ceph config dump"
source = "https://example.org/"
"""


def knobs() -> tuple[Knob, ...]:
    return load(_CATALOGUE, "world.toml")


class World:
    """The system: ``ask`` runs its commands, and ``on_step`` is called before and after each change of a value."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.on_step: Callable[[], None] = lambda: None
        self.refuses = False
        self.cluster, self.other = "a", "on"
        self._file = place / "values.json"
        self._file.write_text(json.dumps({"number": "8", "option": None}))

    @property
    def values(self) -> dict[str, str | None]:
        document: dict[str, str | None] = json.loads(self._file.read_text())
        return document

    def write(self, name: str, value: str | None) -> None:
        fresh = self._file.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({**self.values, name: value}))
        fresh.replace(self._file)

    def ask(self, argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        words = tuple(argv)
        match words[2:] if words[1] == "config" else words[1:]:
            case ("get", name):
                return Completed(words, 0, f"{self.values[name]}\n", "")
            case ("fsid",):
                return Completed(words, 0, f"{self.cluster}\n", "")
            case ("dump",):
                values = {"option": self.values["option"], "other": self.other}.items()
                rows = [{"section": "all", "name": name, "value": value} for name, value in values if value]
                return Completed(words, 0, json.dumps(rows), "")
            case ("set", name, value):
                if self.refuses:
                    return Completed(words, 22, "", "Error EINVAL: not now\n")
                made = str(MOST) if name == "number" and MOST < int(value) < 1000 else value
                self._step(lambda: self.write(name, made))
            case ("rm", _, name):
                self._step(lambda: self.write(name, None))
            case _:
                raise AssertionError(words)
        return Completed(words, 0, "", "")

    def _step(self, change: Callable[[], None]) -> None:
        self.on_step()
        change()
        self.on_step()

    def target(self) -> Target:
        return LocalTarget(self.place, mount_of(self.place), runner=self.ask)


@contextmanager
def killed_at(step: int | None, world: World) -> Iterator[None]:
    """Kill this process by SIGKILL at its ``step``-th step inside the block, or never for None.

    A write is one step, which writes half of the data. Before and after each fsync, rename, replace, link and change of
    the world are two steps.
    """
    count = 0

    def passed() -> bool:
        nonlocal count
        count += 1
        return count == step

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def maybe() -> None:
        if passed():
            die()

    real = {name: getattr(os, name) for name in ("write", "fsync", "rename", "replace", "link")}

    def write(descriptor: int, data: Any) -> int:
        if passed():
            real["write"](descriptor, bytes(data)[: len(data) // 2])
            die()
        done: int = real["write"](descriptor, data)
        return done

    def around(name: str) -> Callable[..., None]:
        def wrapped(*arguments: Any, **options: Any) -> None:
            maybe()
            real[name](*arguments, **options)
            maybe()

        return wrapped

    os.write = write
    for name in ("fsync", "rename", "replace", "link"):
        setattr(os, name, around(name))
    world.on_step = maybe
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)


REFUSED = 3


def in_child(body: Callable[[], object], world: World, step: int | None = None) -> int:
    """Run ``body`` in a child process that is killed at ``step``.

    Return its status: 0, REFUSED after a StrakesError, 1 after another exception, or -9 if it was killed.
    """
    from strakes.base.errors import StrakesError

    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with killed_at(step, world):
                body()
            status = 0
        except StrakesError:
            status = REFUSED
        finally:
            os._exit(status)
    _, wait_status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(wait_status)
