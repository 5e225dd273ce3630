"""Compared programs: a minimal C program (the floor), our engine and other benchmarks (peers)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from bench.work import POOL, POOL_DIRECTORIES, POOL_LEAST_BYTES, POOL_MOST_BYTES, POOL_UNIT_BYTES, SMALL, Work

# Names of the minimal C program: with inline system calls, and with calls through the C library.
FLOOR, LOOP = "floor", "C library loop"

Rates = Mapping[str, float]


class Contender(Protocol):
    """A compared program. It may support only some workloads."""

    name: str
    version: str

    def takes(self, work: Work) -> bool:
        """Return whether the program can do this workload."""

    def run(self, work: Work, directory: Path) -> Rates:
        """Run the workload in an empty directory. Return operations per second by supported operation."""


def output_of(command: list[str], *, text: str | None = None, cwd: Path | None = None) -> str:
    """Run a command and return its standard output.

    Raises SystemExit if the command fails, because a table with missing values could be mistaken for a result.
    """
    done = subprocess.run(command, input=text, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


class Floor:
    """``floor.c``, compiled on this machine. ``through_library``: make system calls through the C library."""

    def __init__(self, build: Path, *, through_library: bool) -> None:
        self.name = LOOP if through_library else FLOOR
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise SystemExit("bench: no C compiler: install gcc")
        self._program = build / self.name.replace(" ", "-")
        options = ["-DTHROUGH_LIBRARY"] if through_library else []
        source = Path(__file__).with_name("floor.c")
        output_of([compiler, "-O2", "-std=gnu11", *options, "-o", str(self._program), str(source)])
        self.version = output_of([compiler, "--version"]).splitlines()[0]

    def takes(self, work: Work) -> bool:
        return work.depth == 1

    def run(self, work: Work, directory: Path) -> Rates:
        arguments = [str(work.items)]
        if work.kind == "small":
            arguments.append(str(work.file_bytes))
        if work.kind == "pool":
            arguments = [
                str(number)
                for number in (work.items, POOL_DIRECTORIES, POOL_LEAST_BYTES, POOL_MOST_BYTES, POOL_UNIT_BYTES)
            ]
        if work.kind == "data":
            arguments = [str(work.transfer_bytes), str(work.data_bytes), str(int(work.direct)), str(work.repeat_ms)]
        output = output_of([str(self._program), work.kind, str(directory), str(work.ranks), *arguments])
        rates: dict[str, float] = json.loads(output)
        whole = {"small": SMALL, "pool": POOL}.get(work.kind)
        return rates if whole is None else {whole: one_after_the_other(*rates.values())}


def one_after_the_other(*rates: float) -> float:
    """Return the rate of items that pass through all phases in sequence, from the rate of each phase."""
    return 1 / sum(1 / rate for rate in rates)
