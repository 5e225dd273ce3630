"""The cells of the example: the six studies of a first survey with plausible values."""

from __future__ import annotations

import random
from collections.abc import Mapping

from strakes.base.units import GIB, KIB, MIB
from strakes.model.portrait import CellEstimate, Setting

CACHE = "cache-suspect"
CONFIDENCE = 0.9


def example_cells() -> dict[str, CellEstimate]:
    """Return the cells of all studies by id; equal at every call."""
    cells = (*_transfer(), *_data(), *_processes(), *_open_close(), *_metadata(), *_patterns())
    return {cell.id: cell for cell in cells}


def _cell(
    key: str,
    settings: Mapping[str, Setting],
    centre: float,
    unit: str,
    runs: int = 9,
    spread: float = 0.05,
    warnings: tuple[str, ...] = (),
) -> CellEstimate:
    noise = random.Random(key)
    values = tuple(float(f"{centre * noise.lognormvariate(0.0, spread):.6g}") for _ in range(runs))
    ordered = sorted(values)
    aside = max(0, runs // 2 - 3)
    enough = runs >= 5
    return CellEstimate(
        id=key,
        study=str(settings["study"]),
        settings={name: value for name, value in settings.items() if name != "study"},
        median=ordered[runs // 2],
        low=ordered[aside] if enough else None,
        high=ordered[-1 - aside] if enough else None,
        confidence=CONFIDENCE,
        runs=runs,
        unit=unit,
        values=values,
        pooled=None if unit == "s" else float(f"{centre * 0.99:.6g}"),
        warnings=warnings,
    )


TRANSFERS = tuple(4 * KIB * 4**power for power in range(7))


def _transfer() -> list[CellEstimate]:
    cells = []
    for size in TRANSFERS:
        ramp = size / (size + 96 * KIB)
        common: dict[str, Setting] = {
            "study": "transfer-size",
            "transfer_bytes": size,
            "ranks": 4,
            "layout": "file per process",
        }
        key = f"transfer-size-{size}"
        cells.append(
            _cell(
                f"{key}:write",
                {**common, "operation": "write", "direct": False},
                1180 * MIB * (0.25 + 0.75 * ramp),
                "B/s",
            )
        )
        cells.append(
            _cell(
                f"{key}:read",
                {**common, "operation": "read", "direct": False},
                5100 * MIB * (0.3 + 0.7 * ramp),
                "B/s",
                7,
                0.08,
                (CACHE,),
            )
        )
        cells.append(
            _cell(
                f"{key}:direct-read", {**common, "operation": "read", "direct": True}, 880 * MIB * ramp, "B/s", 8, 0.04
            )
        )
    return cells


DATA = tuple(MIB * 4**power for power in range(6))


def _data() -> list[CellEstimate]:
    cells = []
    for size in DATA:
        common: dict[str, Setting] = {
            "study": "data-per-process",
            "data_bytes": size,
            "ranks": 4,
            "transfer_bytes": MIB,
        }
        write = 900 * MIB * size / (size + 6 * MIB)
        runs = 3 if size == GIB else 8
        cells.append(_cell(f"data-{size}:write", {**common, "operation": "write"}, write, "B/s", runs, 0.07))
        cells.append(
            _cell(f"data-{size}:read", {**common, "operation": "read"}, 4900 * MIB, "B/s", runs, 0.09, (CACHE,))
        )
    return cells


RANKS = (1, 2, 4, 8, 16, 32)


def _processes() -> list[CellEstimate]:
    return [
        _cell(
            f"processes-{ranks}:{operation}",
            {"study": "processes-per-node", "ranks": ranks, "operation": operation, "data_bytes": 64 * MIB},
            best * min(ranks, 8) / 8 * (1 - 0.006 * max(0, ranks - 8)),
            "B/s",
            9,
            0.05,
        )
        for ranks in RANKS
        for operation, best in (("write", 1150 * MIB), ("read past the cache", 905 * MIB))
    ]


def _open_close() -> list[CellEstimate]:
    cells = []
    for ranks in RANKS:
        for step, centre in (("open", 2.4e-6), ("close", 8.5e-7)):
            settings: dict[str, Setting] = {"study": "open-close", "ranks": ranks, "step": step}
            cells.append(
                _cell(f"open-close-{ranks}:{step}", settings, centre * (1 + (ranks / 6) ** 1.7), "s", 10, 0.12)
            )
    return cells


OPERATIONS = {
    "directory create": 41e3,
    "directory stat": 1.31e6,
    "directory remove": 38e3,
    "file create": 96e3,
    "file stat": 1.22e6,
    "file remove": 61e3,
}


def _metadata() -> list[CellEstimate]:
    cells = []
    for ranks in (1, 4):
        for operation, rate in OPERATIONS.items():
            key = f"metadata-{ranks}:{operation.replace(' ', '-').replace('directory', 'dir')}"
            settings: dict[str, Setting] = {
                "study": "metadata-ops",
                "ranks": ranks,
                "operation": operation,
                "directory": "unique",
            }
            cells.append(_cell(key, settings, rate * (1.0 if ranks == 1 else 3.1), "op/s", 7, 0.06))
    return cells


PATTERNS = {
    "SFWA": (None, 3900 * MIB),
    "MFWA": (1100 * MIB, 4700 * MIB),
    "SFSA strided": (260 * MIB, 1900.0),
    "SFSA non-strided": (980 * MIB, 2.9e11),
}


def _patterns() -> list[CellEstimate]:
    """Return cells with a rate of a few KiB/s and an impossibly high one, to test tables and axes."""
    cells = []
    for pattern, rates in PATTERNS.items():
        for operation, rate in zip(("write", "read"), rates, strict=True):
            if rate is not None:
                settings: dict[str, Setting] = {
                    "study": "access-patterns",
                    "pattern": pattern,
                    "operation": operation,
                    "request_bytes": 64 * KIB,
                }
                runs = 1 if pattern == "SFWA" else 6
                cells.append(_cell(f"patterns-{pattern}:{operation}", settings, rate, "B/s", runs, 0.06))
    return cells
