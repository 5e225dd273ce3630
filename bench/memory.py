"""Peak memory of the engine. The limit is 64 MiB plus two transfers per rank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.engine import phases_of, run_plan
from bench.places import Place
from bench.work import Work
from strakes.base.units import KIB, MIB, format_bytes
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine


@dataclass(frozen=True)
class Footprint:
    """Peak resident memory of an engine that ran a single plan."""

    what: str
    peak_bytes: int
    allowed_bytes: int

    @property
    def verdict(self) -> Literal["met", "missed"]:
        return "met" if self.peak_bytes < self.allowed_bytes else "missed"


def footprints(place: Place, *, quick: bool) -> list[Footprint]:
    """Return the footprints of three plans: with large transfers, with many ranks and with many files."""
    items = 20_000 if quick else 200_000
    works = [
        Work("data", place.name, 2, transfer_bytes=64 * MIB, data_bytes=128 * MIB, repeat_ms=100),
        Work("data", place.name, 64, transfer_bytes=64 * KIB, data_bytes=MIB, repeat_ms=100),
        Work("files", place.name, 2, items=items),
    ]
    return [_footprint(work, place) for work in works]


def _footprint(work: Work, place: Place) -> Footprint:
    with LocalEngine() as engine:
        pid = engine.start().pid
        run_plan(engine, Plan(work.ranks, phases_of(work, stamped=True)), place.directory)
        peak = _peak_bytes(pid)
    what = f"{format_bytes(work.transfer_bytes)} transfers" if work.kind == "data" else f"{work.items:,} files per rank"
    return Footprint(f"{what}, {work.ranks} ranks", peak, 64 * MIB + 2 * work.ranks * work.transfer_bytes)


def _peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("bench: /proc does not contain the engine's peak memory")
