"""Speed of generating and verifying the engine's data on one core, in a cached buffer. At least 8 GB/s is required."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.contenders import output_of
from strakes.base.units import KIB

BUFFER_BYTES = 64 * KIB
WANTED_BYTES_PER_S = 8e9
_TRIALS = 5
_TRIAL_MS = 100


@dataclass(frozen=True)
class Speed:
    """Speed of one operation on a buffer."""

    what: str
    bytes_per_s: float

    @property
    def verdict(self) -> Literal["met", "missed"]:
        return "met" if self.bytes_per_s >= WANTED_BYTES_PER_S else "missed"


def speeds(build: Path) -> list[Speed]:
    """Compile ``pattern.cpp`` with the engine's source and options, run the program, and return the speeds."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise SystemExit("bench: no C++ compiler: install g++")
    engine = Path(__file__).parents[1] / "engine"
    program = build / "pattern"
    sources = [str(Path(__file__).with_name("pattern.cpp")), str(engine / "data" / "pattern.cpp")]
    output_of([compiler, "-std=c++20", "-O2", "-DNDEBUG", f"-I{engine}", "-o", str(program), *sources])
    speeds = json.loads(output_of([str(program), str(BUFFER_BYTES), str(_TRIAL_MS), str(_TRIALS)]))
    return [Speed(what, rate) for what, rate in speeds.items()]
