"""What `strakes watch` costs a neighbour: ``python -m bench.watch.own_cost DIR``.

A neighbour does operations at a steady rate (open loop) in a directory of its own, beside a watch of DIR. Those that
are due close to an operation of the probe are compared with the others (``exposed.py``), which takes half an hour or
more to tell 1 % of the 99th percentile. Whatever else the machine does meanwhile hits both alike.

Effects that last longer than that, such as on caches, are only seen by ``--pairs N``: windows of a minute beside a
watch and without, in random order. The result is the ratio of the 99th percentiles of each pair
(``strakes.statistics.contrast.paired_ratio``), and its interval is much wider.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Literal
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from bench.watch.exposed import CONFIDENCE, SHARE, Operations, effect, exposed, in_time
from strakes.cli.watch import command
from strakes.launch.local import LocalEngine
from strakes.launch.messages import LoggedOperation
from strakes.neighbour.probe import KINDS, Probe
from strakes.plan import MixedPhase, Part, Plan, ProbePhase
from strakes.statistics.contrast import paired_ratio
from strakes.statistics.interval import Estimate
from strakes.targets.workspace import Workspace
from strakes.units import KIB
from strakes.watch.probed import RATE_PER_S
from strakes.watch.reading import CounterReading
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch

# The neighbour has so many ranks for each of three kinds of operations, so that those that take long keep no other one
# waiting. Their operations a second are never in step with the probe: of all rates one with the golden ratio's fraction
# spreads most evenly what is done each second.
_RANKS = 10
_RATE_PER_S = 4.0 + (5**0.5 - 1) / 2
_ALLOWED = 1.01
# The watch begins before a window; its first reading is no part of what runs for years.
_SETTLE_S = 10.0
_STOP_S = 60.0
_WINDOW_S = 60.0
_LIMIT_S = 60.0
# Exposed is what is due so long before or after an operation of the probe: what is due before may last until then. The
# verdict is that of the last. (50 ms was chosen for the first run, in which the effect seemed to last longer.)
_NEAR_S = (0.02, 0.05, 0.1)
_JUDGED_S = _NEAR_S[-1]
# Before a plan of the probe begins, the probe removes and makes its files; a reading of counters takes so long at most.
_MAKES_S, _READS_S = 1.0, 1.0
# Halfway between two operations of the probe, which has three kinds; so long before or after that is half of what is
# not exposed there.
_PLACEBO_S = 0.5 / (len(KINDS) * RATE_PER_S)
_NEAR_PLACEBO_S = (_PLACEBO_S - _JUDGED_S) / 2

Verdict = Literal["met", "missed", "not known: a longer run is needed"]
Window = Callable[[bool], Sequence[LoggedOperation]]


def measure(pairs: Iterable[int], window: Window, order: random.Random) -> dict[str, Estimate]:
    """Return the ratio of 99th percentiles, beside a watch over without, of each kind of operation and of all.

    ``pairs``: their numbers; ``window``: the neighbour's operations of one window, beside a watch or not.
    """
    beside: dict[str, dict[int, float]] = {}
    alone: dict[str, dict[int, float]] = {}
    for number in pairs:
        for watched in order.sample([True, False], 2):
            for name, operations in by_kind(window(watched)).items():
                late_s = float(np.quantile(operations.late_s, SHARE))
                (beside if watched else alone).setdefault(name, {})[number] = late_s
    return {name: paired_ratio(beside[name], alone[name], CONFIDENCE) for name in beside if name in alone}


def by_kind(operations: Sequence[LoggedOperation]) -> Mapping[str, Operations]:
    """Return all of them together, and those of each kind; latency counts from when an operation was due."""
    kinds = ["all", *sorted({operation.phase for operation in operations})]
    found = {}
    for kind in kinds:
        of_kind = [operation for operation in operations if kind in ("all", operation.phase)]
        due_s, begun_s, ended_s = np.array([(each.due_s, each.begun_s, each.ended_s) for each in of_kind]).T
        found[kind] = Operations(due_s, begun_s - due_s, ended_s - due_s)
    return found


@dataclass(frozen=True)
class Moments:
    """When a watch did something, as Unix times: operations of its probe, plans of the probe, readings of counters."""

    probe: list[float] = field(default_factory=list)
    plans: list[float] = field(default_factory=list)
    readings: list[float] = field(default_factory=list)


def costs(kinds: Mapping[str, Operations], moments: Moments) -> Iterator[tuple[str, float, Estimate]]:
    """Yield what each exposure does: its name, the share of operations that are exposed, and the effect."""
    first_s, last_s = min(moments.probe), max(moments.probe)
    beside = {
        kind: each.of((each.due_s > first_s) & (each.due_s < last_s) & in_time(each.due_s, kinds["all"]))
        for kind, each in kinds.items()
    }

    def to_probe(due_s: NDArray[np.float64], near_s: float) -> NDArray[np.bool_]:
        return exposed(due_s, moments.probe, near_s, near_s) | exposed(due_s, moments.plans, _MAKES_S, near_s)

    def row(name: str, operations: Operations, mask: NDArray[np.bool_]) -> tuple[str, float, Estimate]:
        return name, float(np.mean(mask)), effect(operations, mask)

    every = beside["all"]
    for near_s in _NEAR_S:
        yield row(f"probe, within {1000 * near_s:.0f} ms", every, to_probe(every.due_s, near_s))
    for kind, each in beside.items():
        if kind != "all":
            yield row(f"{kind}: probe, within {1000 * _JUDGED_S:.0f} ms", each, to_probe(each.due_s, _JUDGED_S))
    yield row("reading of counters", every, exposed(every.due_s, moments.readings, 0.0, _READS_S))
    spared = every.of(~to_probe(every.due_s, _JUDGED_S))
    between_s = np.array(moments.probe) + _PLACEBO_S
    yield row("nothing (placebo)", spared, exposed(spared.due_s, between_s, _NEAR_PLACEBO_S, _NEAR_PLACEBO_S))


def verdict(ratio: Estimate) -> Verdict:
    """Tell whether the 99th percentile rises by less than 1 %; only an interval on one side of that can."""
    if ratio.interval is None or ratio.interval.low <= _ALLOWED <= ratio.interval.high:
        return "not known: a longer run is needed"
    return "met" if ratio.interval.high < _ALLOWED else "missed"


def _watch_and_note(directory: Path, store: Path, probing: Event) -> None:
    """Watch until terminated, as the command does; note beside the store when something was done."""
    moments = Moments()
    take, add = Probe.take, Watch.add

    def take_and_note(probe: Probe) -> list[LoggedOperation]:
        operations = take(probe)
        if operations:
            probing.set()
        moments.probe.extend(operation.due_s for operation in operations)
        moments.plans.extend(operation.due_s for operation in operations if operation.number == 0)
        return operations

    def add_and_note(watch: Watch, reading: CounterReading) -> list[WatchEvent]:
        if reading.source != "probe":
            moments.readings.append(reading.time_s)
        return add(watch, reading)

    with (
        patch.object(Probe, "take", take_and_note),
        patch.object(Watch, "add", add_and_note),
        redirect_stdout(io.StringIO()),
    ):
        command.main([str(directory), "--store", str(store)], standalone_mode=False)
    _notes_of(store).write_text(json.dumps(asdict(moments)))


def _notes_of(store: Path) -> Path:
    return store.with_suffix(".json")


@contextmanager
def _watch(directory: Path, store: Path) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    probing = context.Event()
    process = context.Process(target=_watch_and_note, args=(directory, store, probing))
    process.start()
    try:
        if not probing.wait(_LIMIT_S):
            raise SystemExit("the watch does not begin to probe")
        yield
        if not process.is_alive():
            raise SystemExit(f"the watch ended by itself with status {process.exitcode}")
    finally:
        process.terminate()
        process.join(_STOP_S)


def _neighbour(engine: LocalEngine, workspace: Path, seconds: float) -> Sequence[LoggedOperation]:
    """Return what a neighbour did for so long."""
    parts = tuple(
        Part(
            _RANKS,
            ProbePhase(kind, kind, _RATE_PER_S, seconds, files=kind.replace("-", ""), file_bytes=4 * KIB, log=True),
        )
        for kind in KINDS
    )
    plan = Plan(_RANKS * len(KINDS), (MixedPhase("neighbour", parts),), 1)
    result = engine.run(plan, workspace, "neighbour", seconds + _LIMIT_S)
    if result.ended != "ok":
        raise SystemExit(f"the neighbour ended as {result.ended}: {result.errors}")
    return result.log


def _in_pairs(directory: Path, store: Path, workspace: Path, pairs: int) -> Mapping[str, Estimate]:
    with LocalEngine() as engine:

        def collect() -> Sequence[LoggedOperation]:
            # The window without a watch waits as long before it begins.
            time.sleep(_SETTLE_S)
            return _neighbour(engine, workspace, _WINDOW_S)

        def window(watched: bool) -> Sequence[LoggedOperation]:
            if not watched:
                return collect()
            with _watch(directory, store):
                return collect()

        return measure(range(pairs), window, random.Random(1))


def _beside(directory: Path, store: Path, workspace: Path, seconds: float) -> tuple[Sequence[LoggedOperation], Moments]:
    """Return what the neighbour did in one plan, and what the watch did meanwhile."""
    with LocalEngine() as engine, _watch(directory, store):
        time.sleep(_SETTLE_S)
        operations = _neighbour(engine, workspace, seconds)
        # The watch hears of operations a little later.
        time.sleep(_SETTLE_S)
    return operations, Moments(**json.loads(_notes_of(store).read_text()))


def _in_words(ratio: Estimate) -> str:
    interval = f"{ratio.interval.low:.4f} to {ratio.interval.high:.4f}" if ratio.interval else "no interval"
    return f"p99 x {ratio.median:.4f} ({interval})"


def main() -> None:
    """Print a line for each exposure, or for each kind of operation."""
    parser = argparse.ArgumentParser(prog="python -m bench.watch.own_cost", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--minutes", type=float, default=35.0)
    parser.add_argument("--neighbour", type=Path, metavar="DIR", help="another mount of the same; default: DIR")
    parser.add_argument("--pairs", type=int, help="measure so many pairs of windows instead")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        Workspace.create(chosen.neighbour or chosen.directory, f"own-cost-{time.time_ns():x}") as workspace,
    ):
        store = Path(directory) / "store"
        if chosen.pairs:
            for name, ratio in _in_pairs(chosen.directory, store, workspace.path, chosen.pairs).items():
                print(f"{name}: {_in_words(ratio)}, {ratio.runs} pairs: {verdict(ratio)}")
            return
        operations, moments = _beside(chosen.directory, store, workspace.path, 60 * chosen.minutes)
    kinds = by_kind(operations)
    for name, each in kinds.items():
        print(f"{name}: {len(each.due_s)} operations, p99 {1000 * np.quantile(each.late_s, SHARE):.1f} ms")
    for name, share, ratio in costs(kinds, moments):
        print(f"{name}: {share:.1%} exposed, {_in_words(ratio)}, {ratio.runs} minutes: {verdict(ratio)}")


if __name__ == "__main__":
    main()
