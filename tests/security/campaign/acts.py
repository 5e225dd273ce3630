"""Commands that run during the faults, each with its own check in addition to the checks of every seed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from security.campaign.world import World, require

_ROOT = Path(__file__).parents[3]
_PLAN = """
ranks = 2
[[phase]]
kind = "metadata"
name = "create"
operation = "file-create"
directory = "unique"
items = 200
[[phase]]
kind = "metadata"
name = "remove"
operation = "file-remove"
directory = "unique"
items = 200
"""
_KNOB = "bdi.read_ahead_kb"


@dataclass(frozen=True)
class Act:
    """A command to run during faults.

    ``words``: its arguments. ``again``: whether it can be repeated with --resume. ``span_s``: the duration of the
    schedule of faults. ``after``: the check afterwards. ``kinds``: the file systems to run on.
    """

    name: str
    words: Callable[[World], list[str]]
    again: bool
    span_s: float
    after: Callable[[World], None] = lambda world: None
    kinds: tuple[str, ...] = ("directory", "tmpfs", "faulty")


def _plan(world: World) -> list[str]:
    path = world.place / "plan.toml"
    path.write_text(_PLAN)
    return ["run", str(path), str(world.directory), "--budget", "1s", "--quiet"]


def _tune(world: World) -> list[str]:
    app = str(_ROOT / "examples/apps/restart-dump.toml")
    knobs = ["--knobs", f"{_KNOB}=64,256"]
    return ["tune", "--app", app, str(world.directory), "--budget", "4s", "--quiet", *knobs]


def _set_knob(world: World) -> list[str]:
    return ["knobs", "set", str(world.directory), f"{_KNOB}=512"]


def read_ahead(world: World) -> Path:
    number = os.stat(world.directory).st_dev
    return Path(f"/sys/class/bdi/{os.major(number)}:{os.minor(number)}/read_ahead_kb")


def _require_restored(world: World) -> None:
    original = (world.place / "read-ahead").read_text()
    pending = list(world.place.glob("store/knobs/*.jsonl"))
    require(pending != [] or read_ahead(world).read_text() == original, "a setting is changed and nothing is pending")
    require(world.call("knobs", "restore") == 0, "knobs restore failed")
    require(read_ahead(world).read_text() == original, "a setting was not put back")
    require(not list(world.place.glob("run/knobs/[!.]*")), "the record of a changed setting is left")


def _drill(world: World) -> list[str]:
    done = world.place / "fault-is-done"
    commands = ["--fault-command", f"touch {done}", "--restore-command", f"rm -f {done}"]
    times = ["--before", "0.5s", "--after", "1s", "-n", "2", "--yes-this-interrupts-service"]
    return ["failover", "drill", str(world.directory), *commands, *times]


def _require_undone(world: World) -> None:
    if (world.place / "fault-is-done").exists():
        world.call("failover", "undo")
        require(not (world.place / "fault-is-done").exists(), "the fault of a drill was not undone")


def _require_no_lab(world: World) -> None:
    world.call("lab", "down", "--all")
    left = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f"{world.place}" in line]
    require(not left, f"a mount of a lab is left: {left}")
    require(not list(world.place.rglob("lab.jsonl")), "a lab is left")


ACTS = (
    Act("run", _plan, again=True, span_s=2.0),
    Act("survey", lambda one: ["survey", str(one.directory), "--budget", "4s", "-q"], again=True, span_s=6.0),
    Act("tune", _tune, again=True, span_s=6.0, after=_require_restored, kinds=("faulty",)),
    Act("knobs", _set_knob, again=False, span_s=0.8, after=_require_restored, kinds=("faulty",)),
    Act("drill", _drill, again=False, span_s=4.0, after=_require_undone),
    Act("lab", lambda _: ["lab", "up", "xfs"], again=False, span_s=0.8, after=_require_no_lab, kinds=("directory",)),
)


def mounts_below(place: Path) -> list[str]:
    words = subprocess.run(["findmnt", "-rno", "TARGET"], capture_output=True, text=True, check=True)
    return [line for line in words.stdout.splitlines() if line.startswith(f"{place}/")]
