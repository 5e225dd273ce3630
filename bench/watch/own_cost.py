"""What `strakes watch` costs a neighbour: ``python -m bench.watch.own_cost DIR``.

A neighbour does operations at a steady rate (open loop) in a directory of its own. It is measured in pairs of windows,
one beside a watch of DIR and one without, in random order; what drifts slowly cancels within a pair. The result is the
ratio of the neighbour's 99th percentiles with a 90 % interval (``strakes.statistics.contrast.paired_ratio``).

``--minutes 10`` does as many pairs as fit into ten minutes; of 30 s of measuring a pair, unless ``--window`` says
otherwise. The interval is then wider, and the verdict says so where it does not decide.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Literal

import numpy as np

from strakes.launch.messages import LoggedOperation
from strakes.neighbour.probe import Probe
from strakes.processes import python_module
from strakes.statistics.contrast import paired_ratio
from strakes.statistics.interval import Estimate
from strakes.targets.workspace import Workspace

# The neighbour's operations a second, of each of three kinds.
_RATE_PER_S = 50.0
_ALLOWED = 1.01
_CONFIDENCE = 0.9
# The watch begins, and its workspace is made, before a window; its first reading is no part of what runs for years.
_SETTLE_S = 10.0
_STOP_S = 60.0
_LONG_S, _SHORT_S = 60.0, 15.0
_AROUND_S = 10.0
_SHARE = 0.99

Verdict = Literal["met", "missed", "not known: more pairs are needed"]
Window = Callable[[bool], Sequence[LoggedOperation]]


def measure(pairs: Iterable[int], window: Window, order: random.Random) -> dict[str, Estimate]:
    """Return the ratio of 99th percentiles, beside a watch over without, of each kind of operation and of all.

    ``pairs``: their numbers; ``window``: the neighbour's operations of one window, beside a watch or not.
    """
    beside: dict[str, dict[int, float]] = {}
    alone: dict[str, dict[int, float]] = {}
    for number in pairs:
        for watched in order.sample([True, False], 2):
            for name, late_s in late_of(window(watched)).items():
                (beside if watched else alone).setdefault(name, {})[number] = late_s
    return {name: paired_ratio(beside[name], alone[name], _CONFIDENCE) for name in beside if name in alone}


def fitting(limit_s: float, clock: Callable[[], float] = time.monotonic) -> Iterator[int]:
    """Return numbers of pairs while another one, as long as the longest so far, ends within ``limit_s``."""
    began_s = before_s = clock()
    longest_s = 0.0
    for number in count():
        yield number
        now_s = clock()
        longest_s, before_s = max(longest_s, now_s - before_s), now_s
        if now_s - began_s + longest_s > limit_s:
            return


def late_of(operations: Sequence[LoggedOperation]) -> Mapping[str, float]:
    """Return the 99th percentile, from when an operation was due, of each kind and of all together."""
    took: dict[str, list[float]] = {}
    for operation in operations:
        for name in (operation.phase, "all"):
            took.setdefault(name, []).append(operation.ended_s - operation.due_s)
    return {name: float(np.quantile(values, _SHARE)) for name, values in took.items()}


def verdict(ratio: Estimate) -> Verdict:
    """Tell whether the 99th percentile rises by less than 1 %; only an interval on one side of that can."""
    if ratio.interval is None or ratio.interval.low <= _ALLOWED <= ratio.interval.high:
        return "not known: more pairs are needed"
    return "met" if ratio.interval.high < _ALLOWED else "missed"


@contextmanager
def _watch(directory: Path, store: Path) -> Iterator[None]:
    words = [*python_module("strakes"), "watch", str(directory), "--store", str(store)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        yield
        if process.poll() is not None:
            raise SystemExit(f"the watch ended by itself with status {process.returncode}")
    finally:
        process.terminate()
        process.wait(_STOP_S)


def main() -> None:
    """Print a line for each kind of operation."""
    parser = argparse.ArgumentParser(prog="python -m bench.watch.own_cost", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--minutes", type=float, help="as many pairs as fit into that, instead of --pairs")
    parser.add_argument("--window", type=float, metavar="SECONDS", help="default: 60, with --minutes 15")
    parser.add_argument("--seed", type=int, default=1, help="of the order within pairs")
    chosen = parser.parse_args()
    window_s = chosen.window or (_LONG_S if chosen.minutes is None else _SHORT_S)

    with (
        tempfile.TemporaryDirectory() as store,
        Workspace.create(chosen.directory, f"own-cost-{time.time_ns():x}") as workspace,
        Probe(workspace.path, rate_per_s=_RATE_PER_S) as neighbour,
    ):

        def collect() -> list[LoggedOperation]:
            # The window without a watch waits as long before it begins.
            time.sleep(_SETTLE_S)
            neighbour.take()
            time.sleep(window_s)
            return neighbour.take()

        def window(watched: bool) -> list[LoggedOperation]:
            if not watched:
                return collect()
            with _watch(chosen.directory, Path(store)):
                return collect()

        # Making the workspace and removing it take some seconds, too.
        pairs = range(chosen.pairs) if chosen.minutes is None else fitting(60 * chosen.minutes - _AROUND_S)
        ratios = measure(pairs, window, random.Random(chosen.seed))
    for name, ratio in ratios.items():
        interval = f"{ratio.interval.low:.4f} to {ratio.interval.high:.4f}" if ratio.interval else "no interval"
        print(f"{name}: p99 x {ratio.median:.4f} ({interval}), {ratio.runs} pairs: {verdict(ratio)}")


if __name__ == "__main__":
    main()
