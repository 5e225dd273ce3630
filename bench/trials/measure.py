"""Rounds of independent runs: the same plan twice, and once slowed by a known delay after every operation, in random
order.
"""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from strakes.errors import MeasurementError
from strakes.processes import python_module
from strakes.statistics.interval import median
from strakes.store import Run, Store

# What a round measures.
KINDS = ("a", "again", "slowed")


def measure(
    plan: Path, directory: Path, rounds: int, slower: float, budget: str, say: Callable[[int], None]
) -> list[dict[str, str]]:
    """Ids of the runs of each round, by kind. Raises MeasurementError when a run does not end well."""
    first = _run(plan, directory, budget)
    order = random.Random(rounds)
    rounds_done = []
    with tempfile.TemporaryDirectory(prefix="strakes-trials-") as place:
        slowed = Path(place) / plan.name
        slowed.write_text(_delayed(plan.read_text(encoding="utf-8"), _delays(first, slower)), encoding="utf-8")
        plans = {"a": plan, "again": plan, "slowed": slowed}
        for number in range(rounds):
            rounds_done.append(
                {kind: _run(plans[kind], directory, budget).id for kind in order.sample(KINDS, len(KINDS))}
            )
            say(number + 1)
    return rounds_done


def _run(plan: Path, directory: Path, budget: str) -> Run:
    command = python_module("strakes", "run", str(plan), str(directory), "--budget", budget)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MeasurementError("a run did not end well", where=" ".join(command), why=done.stderr.strip())
    return Store().open("latest")


def _delays(run: Run, slower: float) -> Mapping[str, int]:
    """Nanoseconds for each phase, so that an operation of one rank takes so much longer."""
    taken: dict[str, list[float]] = {}
    for visit in run.visits:
        for sample in visit.samples:
            taken.setdefault(sample.name, []).append(sample.elapsed_s * len(sample.ranks) / sample.operations)
    return {name: round(1e9 * median(seconds) * (1 / (1 - slower) - 1)) for name, seconds in taken.items()}


def _delayed(text: str, delays: Mapping[str, int]) -> str:
    """Return the plan's text with the delays.

    >>> print(_delayed('[[phase]]\\nkind = "metadata"\\nname = "stat"', {"stat": 90}))
    [[phase]]
    kind = "metadata"
    name = "stat"
    delay_ns = 90
    """
    return re.sub(
        r'^name *= *"([^"]+)"', lambda match: f"{match[0]}\ndelay_ns = {delays[match[1]]}", text, flags=re.MULTILINE
    )
