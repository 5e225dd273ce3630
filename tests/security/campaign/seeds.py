"""A run of one seed: the draw, the command with its faults, and the checks."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from mounts import FaultyMount, faulty_mounted
from security.campaign.acts import ACTS, Act, mounts_below, read_ahead
from security.campaign.faults import FAULTS, Fault, Situation
from security.campaign.world import BrokenError, World, require

# Share of seeds with faults during the start-up of Python. In the others, faults wait until the command works.
_EARLY = 0.2


def run_seed(seed: int, acts: tuple[str, ...] = ()) -> list[str]:
    """Run a seed and describe each step. Raises BrokenError. ``acts``: the commands to draw from; empty: all."""
    draw = random.Random(seed)
    chosen = draw.choice([act for act in ACTS if not acts or act.name in acts])
    kind = draw.choice(chosen.kinds if os.geteuid() == 0 else ("directory",))
    faults = [fault for fault in FAULTS if not fault.where or kind in fault.where]
    schedule = [(draw.uniform(0.05, chosen.span_s), draw.choice(faults)) for _ in range(draw.randint(1, 4))]
    place = Path(tempfile.mkdtemp(prefix=f"strakes-seed-{seed}-"))
    world = World(seed, place, moving_clock() if draw.random() < 0.5 else None)
    done = [f"{chosen.name} on {kind}"]
    try:
        with _mounted(kind, world) as faulty:
            world.plant()
            # A placeholder until _act starts the command: a process that has ended.
            ended = subprocess.Popen("true")
            ended.wait()
            _act(chosen, schedule, Situation(world, ended, faulty, draw), done)
        require(not mounts_below(place), f"mounts are left: {mounts_below(place)}")
    except BrokenError as error:
        world.close()
        raise BrokenError(f"{error}; {'; '.join(done)}; see {place}") from error
    finally:
        world.close()
    shutil.rmtree(place)
    return done


def _act(act: Act, schedule: list[tuple[float, Fault]], situation: Situation, done: list[str]) -> None:
    world = situation.world
    if act.kinds == ("faulty",):
        (world.place / "read-ahead").write_text(read_ahead(world).read_text())
    words = act.words(world)
    early = situation.draw.random() < _EARLY
    process = world.start(*words)
    if not early:
        world.wait_for_work(process)
    began = time.monotonic()
    situation = Situation(world, process, situation.faulty, situation.draw)
    for at, fault in sorted(schedule, key=lambda each: each[0]):
        time.sleep(max(0.0, at - (time.monotonic() - began)))
        done.append(fault.name if fault.act(situation) else f"{fault.name}: nothing to do it to")
    done.append(f"ended with {world.end(process)}")
    world.require_nobody()
    kept = world.visits()
    if act.again:
        done.append(f"gone on with: {world.call(*words, '--resume')}")
        world.require_nobody()
        require(world.visits()[: len(kept)] == kept, "visits were lost or made again")
    act.after(world)
    require(world.call("runs", "--json") == 0, "the store is not listed")
    require(world.call("clean", str(world.directory)) == 0, "clean failed")
    world.require_nobody()
    world.require_as_before()
    world.require_no_traceback()


@contextmanager
def _mounted(kind: str, world: World) -> Iterator[FaultyMount | None]:
    if kind == "directory":
        yield None
    elif kind == "faulty":
        with faulty_mounted() as faulty:
            own, world.directory = world.directory, faulty.place
            try:
                yield faulty
            finally:
                faulty.mend()
                world.directory = own
    else:
        words = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=1777", "strakes-test", str(world.directory)]
        subprocess.run(words, check=True)
        try:
            yield None
        finally:
            while str(world.directory) in mounts_below(world.place):
                done = subprocess.run(["umount", str(world.directory)], capture_output=True, text=True)
                if done.returncode != 0:
                    subprocess.run(["umount", "--lazy", str(world.directory)], check=True)
                    raise BrokenError(f"something still uses the mount: {done.stderr}")


@cache
def moving_clock() -> Path | None:
    """Compile a library that shifts the wall clock of processes that preload it; None without a compiler."""
    if shutil.which("cc") is None:
        return None
    library = Path(tempfile.mkdtemp(prefix="strakes-clock-")) / "clock.so"
    source = Path(__file__).with_name("clock.c")
    words = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    return library if subprocess.run(words, capture_output=True).returncode == 0 else None
