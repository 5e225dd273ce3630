"""Landscapes: all repetitions of all settings of a grid, measured once and stored."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.tuning.grids import Grid, grid_named
from bench.tuning.settled import settle
from strakes.lab.device import loops_below
from strakes.model.cell import Cell
from strakes.runs.engine import LocalEngine
from strakes.studies.measure_directories import LayoutDirectories
from strakes.targets.registry import detect
from strakes.targets.workspace import Workspace
from strakes.tuning.tune_plans import TrialSize, layout_of, plan_of
from strakes.tuning.tune_space import Point

PLACE = Path(__file__).parent.parent / "landscapes"
_LIMIT_S = 60.0
# Data of a rank as a multiple of the largest transfer. The time to measure grows in proportion.
_TRANSFERS_OF_A_RANK_TIMES = 4


@dataclass
class Landscape:
    """Rates with each setting by block, in B/s. ``full``: for searches. ``held``: held out, to judge settings."""

    grid: str
    full: list[dict[int, float]]
    held: list[dict[int, float]]
    facts: Mapping[str, Any] = field(default_factory=dict)


def begun(grid: Grid) -> Landscape:
    count = len(grid.space.points)
    return Landscape(grid.name, [{} for _ in range(count)], [{} for _ in range(count)])


def measure_block(grid: Grid, landscape: Landscape, directory: Path, seed: int) -> bool:
    """Measure the next block: every setting, or only the best ones, once in random order.

    Return False if all blocks were measured already.
    """
    seconds: list[float] = list(landscape.facts.get("block_s", ()))
    block = len(seconds)
    sizes = (*grid.searched, *grid.held_out)
    if block >= len(sizes):
        return False
    started = time.monotonic()
    searched = block < len(grid.searched)
    numbers = foremost(landscape, sizes[block]) if block else list(range(len(grid.space.points)))
    random.Random(f"{seed}/{block}").shuffle(numbers)
    with running(grid, directory, seed) as runner:
        for number in numbers:
            values = landscape.full if searched else landscape.held
            values[number][block] = runner.value(grid.space.points[number])
    seconds.append(round(time.monotonic() - started))
    landscape.facts = {"measured": time.strftime("%Y-%m-%d", time.gmtime()), "block_s": seconds}
    return True


@contextmanager
def running(grid: Grid, directory: Path, seed: int) -> Iterator[Runner]:
    """Yield a runner with a workspace and an engine. ``directory``: mount point in the folder of a lab."""
    target = detect(directory)
    if grid.layout is not None:
        target.set_layout(directory, grid.layout)
    with (
        Workspace.create(target.path, time.strftime("%Y%m%d-%H%M%S-landscape-0000", time.gmtime())) as workspace,
        LocalEngine() as engine,
    ):
        yield Runner(grid, LayoutDirectories(workspace.path, target), engine, loops_below(directory.parent), seed)


class Runner:
    """Runs repetitions in sequence, and waits for idle devices before each."""

    def __init__(
        self, grid: Grid, places: LayoutDirectories, engine: LocalEngine, devices: Sequence[str], seed: int
    ) -> None:
        self._grid, self._places, self._engine, self._devices = grid, places, engine, devices
        self._scale = TrialSize(grid.able.ranks, _TRANSFERS_OF_A_RANK_TIMES * grid.able.data_bytes, grid.phase_s, seed)
        self._runs = 0

    def value(self, point: Point) -> float:
        settings = self._grid.space.settings(point)
        plan = plan_of(self._grid.app, settings, self._scale)
        layout = layout_of(settings)
        for given in self._places.make([Cell("", "", {}, plan, (), layout=layout)]):
            if given.differences:
                raise SystemExit(f"the directory did not get the requested layout: {given.differences}")
        where = self._places.of(layout)
        assert where is not None
        self._runs += 1
        settle(where, self._devices)
        result = self._engine.run(plan, where, f"v{self._runs}", _LIMIT_S)
        if result.ended != "ok":
            raise SystemExit(f"a run ended as {result.ended}: {result.errors}")
        return result.samples[-1].bytes_per_s


def foremost(landscape: Landscape, most: int) -> list[int]:
    """Return the indices of the ``most`` settings with the best medians in ``full``, best first."""
    medians = [median(values.values()) for values in landscape.full]
    return sorted(range(len(medians)), key=lambda number: -medians[number])[:most]


def save(landscape: Landscape, path: Path) -> None:
    """Write a landscape. Values are rounded to four digits, which is less than the noise."""

    def rows(values: list[dict[int, float]]) -> list[list[float | None]]:
        # A row has the number of a block, and then the value of each setting.
        blocks = sorted({block for by_block in values for block in by_block})
        return [
            [block, *(float(f"{by_block[block]:.4g}") if block in by_block else None for by_block in values)]
            for block in blocks
        ]

    grid = grid_named(landscape.grid)
    document = {
        "grid": landscape.grid,
        "unit": "B/s",
        "facts": dict(landscape.facts),
        "settings": [grid.space.settings(point) for point in grid.space.points],
        "full": rows(landscape.full),
        "held": rows(landscape.held),
    }
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps(document, separators=(",", ":")).encode())


def is_whole(grid: Grid) -> bool:
    """Return whether all blocks of the grid were measured."""
    path = PLACE / f"{grid.name}.json.gz"
    blocks = len(grid.searched) + len(grid.held_out)
    return path.exists() and len(load(grid.name).facts["block_s"]) == blocks


def load(name: str, place: Path = PLACE) -> Landscape:
    """Read a landscape. Raises ValueError if its settings differ from the grid's settings."""
    document = json.loads(gzip.decompress((place / f"{name}.json.gz").read_bytes()))
    grid = grid_named(document["grid"])
    if document["settings"] != [grid.space.settings(point) for point in grid.space.points]:
        raise ValueError(f"the grid {name} has different settings now than in the measurement")

    def by_setting(rows: list[list[float | None]]) -> list[dict[int, float]]:
        values: list[dict[int, float]] = [{} for _ in grid.space.points]
        for block, *row in rows:
            for by_block, value in zip(values, row, strict=True):
                if block is not None and value is not None:
                    by_block[int(block)] = value
        return values

    full, held = (by_setting(document[kind]) for kind in ("full", "held"))
    return Landscape(document["grid"], full, held, document["facts"])
