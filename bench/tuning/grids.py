"""Grids for exhaustive measurement: an application, the levels of its settings, and a file system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strakes.base.units import KIB, MIB
from strakes.model.portrait import Setting
from strakes.targets.description import Layout, Striping
from strakes.tuning.advise_app import App, app_from_text
from strakes.tuning.tune_offers import INTERFACES, Abilities, narrowed, offers
from strakes.tuning.tune_space import SearchSpace

# Budget of a search, as a share of the evaluations of the exhaustive search.
SHARE = 0.15

_CHECKPOINT = """
title = "checkpoint"
interface = "posix"
ranks = {ranks}
ranks_per_node = {ranks}
grouping = {ranks}
[[phase]]
name = "dump"
operation = "write"
files = "{files}"
data_per_rank = "64MiB"
record_size = "64KiB"
"""


@dataclass(frozen=True)
class Grid:
    """A grid of settings.

    ``lab``: arguments of ``strakes lab up``. ``able``: what the file system offers. ``only``: factor -> levels of the
    grid. ``searched``: number of settings in each block that searches may use. ``held_out``: number of settings in each
    block that only serve to judge the searches. ``layout``: layout of the directory.
    """

    name: str
    what: str
    lab: tuple[str, ...]
    app: App
    able: Abilities
    only: Mapping[str, Sequence[Setting]]
    phase_s: float = 1.0
    searched: tuple[int, ...] = (308, 308, 308)
    held_out: tuple[int, ...] = (48, *(24 for _ in range(11)))
    layout: Layout | None = None

    @property
    def space(self) -> SearchSpace:
        return narrowed(offers(self.app, self.able), self.only)


GRIDS = (
    Grid(
        "xfs",
        "XFS on a loop device of 30 reads and 30 writes a second, its file in memory",
        ("xfs", "--iops", "30"),
        app_from_text(_CHECKPOINT.format(files="shared", ranks=16), "checkpoint"),
        Abilities(16, 512 * KIB, interfaces=tuple(INTERFACES)),
        {},
    ),
    # CephFS places objects at random. Many small objects load the data targets evenly.
    Grid(
        "cephfs",
        "CephFS with three data targets, each on a device of 150 reads and 150 writes a second, and objects of 256 KiB",
        ("ceph", "--slow-osd", "0=150", "--slow-osd", "1=150", "--slow-osd", "2=150"),
        app_from_text(_CHECKPOINT.format(files="shared", ranks=8), "checkpoint"),
        Abilities(8, MIB, tuple(INTERFACES), Striping(3, 64 * KIB), Layout(256 * KIB, 1, pool="cephfs_data")),
        {
            "stripe_bytes": (64 * KIB, 256 * KIB),
            "writers": (2, 4, 8),
            "transfer_bytes": (32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB),
            "interface": ("posix", "posix direct"),
        },
        searched=(360, 360, 360),
        held_out=(48, *(24 for _ in range(9))),
        layout=Layout(256 * KIB, 1, object_bytes=256 * KIB),
    ),
    Grid(
        "gluster",
        "GlusterFS with three bricks, each on a device of 80 reads and 80 writes a second",
        ("gluster", "--slow-brick", "1=80", "--slow-brick", "2=80", "--slow-brick", "3=80"),
        app_from_text(_CHECKPOINT.format(files="shared", ranks=8), "checkpoint"),
        Abilities(8, 512 * KIB, tuple(INTERFACES)),
        {
            "transfer_bytes": (16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB),
            "interface": ("posix", "posix direct", "stdio"),
        },
        phase_s=0.6,
        searched=(144, 144, 144),
        held_out=(24, *(12 for _ in range(7))),
    ),
)


def grid_named(name: str) -> Grid:
    return next(grid for grid in GRIDS if grid.name == name)
