"""The grids that are measured exhaustively: which application, which settings of it, on which file system of the lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strakes.advise.app import App, app_from_text
from strakes.portrait.model import Setting
from strakes.targets.model import Layout, Striping
from strakes.tune.offers import INTERFACES, Abilities, narrowed, offers
from strakes.tune.space import Space
from strakes.units import KIB, MIB

_CHECKPOINT = """
title = "checkpoint"
interface = "posix"
ranks = 8
ranks_per_node = 8
grouping = 8
[[phase]]
name = "dump"
operation = "write"
files = "{files}"
data_per_rank = "64MiB"
record_size = "64KiB"
"""


@dataclass(frozen=True)
class Grid:
    """``able`` is what the tuner finds there; ``only`` the levels of the grid. ``lab`` are the words after `strakes lab up`.

    ``object_bytes``: what the directory measured is given before.
    """

    name: str
    what: str
    lab: tuple[str, ...]
    app: App
    able: Abilities
    only: Mapping[str, Sequence[Setting]]
    low_share: float
    object_bytes: int | None = None

    @property
    def space(self) -> Space:
        return narrowed(offers(self.app, self.able), self.only)


GRIDS = (
    Grid(
        "xfs",
        "XFS on a loop device of 250 reads and 250 writes a second",
        ("xfs", "--size", "6GiB", "--iops", "250"),
        app_from_text(_CHECKPOINT.format(files="shared"), "checkpoint"),
        Abilities(8, 2 * MIB, interfaces=tuple(INTERFACES)),
        {},
        0.25,
    ),
    # Objects as large as a file: then a file is on as many data targets as it has stripes, as on Lustre.
    Grid(
        "cephfs",
        "CephFS with three data targets, each on a device of 200 reads and 200 writes a second, and objects of 64 MiB",
        ("ceph", "--slow-osd", "0=200", "--slow-osd", "1=200", "--slow-osd", "2=200"),
        app_from_text(_CHECKPOINT.format(files="shared"), "checkpoint"),
        Abilities(8, 512 * KIB, tuple(INTERFACES), Striping(3, 64 * KIB), Layout(4 * MIB, 1, pool="cephfs_data")),
        {
            "stripe_bytes": (64 * KIB, MIB, 4 * MIB),
            "writers": (2, 4, 8),
            "transfer_bytes": (64 * KIB, 256 * KIB, 512 * KIB),
            "interface": ("posix", "posix direct"),
        },
        0.25,
        object_bytes=64 * MIB,
    ),
)


def grid_named(name: str) -> Grid:
    return next(grid for grid in GRIDS if grid.name == name)
