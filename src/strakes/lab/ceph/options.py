"""What can be asked of a CephFS lab, and what cannot be together."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.errors import BadInputError
from strakes.lab.options import LabOptions, choice, count, flag, iops_by_id, maybe_count, percent_by_id, seconds, size

# How often the monitors look at the beacons; nothing shorter can be set.
MONITOR_TICK_S = 1.0


@dataclass(frozen=True)
class CephOptions(LabOptions):
    """What ``lab up ceph`` takes."""

    osds: int = count(3, "Number of object stores (OSDs).")
    mds: int = count(2, "Number of active metadata ranks.", most=8)
    standby: int = count(1, "Number of standby metadata servers.", least=0, most=8)
    standby_replay: bool = flag("Let standbys follow the journal of a rank, so that they take over sooner.")
    mons: int = count(1, "Number of monitors.", most=5)
    pool_size: int = count(1, "Number of copies of every object.", most=3)
    store: str = choice(
        "bluestore", "memstore", text="Where objects are stored: in sparse files (bluestore) or in memory (memstore)."
    )
    osd_size: int = size("4GiB", "Capacity of each object store.", least="1GiB")
    osd_memory: int = size("64MiB", "Cache of each object store.", least="16MiB")
    mds_memory: int = size("256MiB", "Cache limit of each metadata server.", least="16MiB")
    slow_osd: tuple[tuple[int, int], ...] = iops_by_id(
        "Limit the device of object store ID (0, 1, ...) to IOPS reads and IOPS writes per second. May be repeated."
    )
    pool_per_osd: bool = flag("Also make one data pool on each object store alone, so that files can be placed there.")
    s3: bool = flag("Also start an object gateway (radosgw): S3 on the same object stores.")
    slow_mds: tuple[tuple[int, int], ...] = percent_by_id(
        "Limit the server of metadata rank RANK (0, 1, ...) to PERCENT of one processor. May be repeated.",
        "RANK=PERCENT",
    )
    mds_cpu: int | None = maybe_count(
        "Limit each metadata server to PERCENT of one processor.", least=5, most=100, metavar="PERCENT"
    )
    beacon_interval: float = seconds(0.5, "Time between the beacons of a metadata server.", least=0.1, most=60)
    beacon_grace: float = seconds(
        3.0, "Time without beacons after which a metadata server is replaced.", least=0.5, most=600
    )

    @property
    def monitors(self) -> tuple[str, ...]:
        """Return their names."""
        return _letters(self.mons)

    @property
    def metadata_servers(self) -> tuple[str, ...]:
        """Return their names, standbys included."""
        return _letters(self.mds + self.standby)

    @property
    def placement_groups(self) -> int:
        """Enough to spread objects evenly over a few stores: 16 to 32 for each, a power of two."""
        return min(256, 1 << (16 * self.osds * self.pool_size - 1).bit_length())


def check(options: CephOptions) -> None:
    """Raise BadInputError for what contradicts itself."""
    if options.pool_size > options.osds:
        raise BadInputError(
            f"{options.pool_size} copies need at least as many object stores",
            remedy=f"Give --osds {options.pool_size}, or fewer copies.",
        )
    stores = [number for number, _ in options.slow_osd]
    for number in stores:
        if number >= options.osds or stores.count(number) > 1:
            why = f"the stores are 0 to {options.osds - 1}" if number >= options.osds else "it is given twice"
            raise BadInputError(f"--slow-osd {number} is not possible", why=why)
    ranks = [rank for rank, _ in options.slow_mds]
    for rank in ranks:
        if rank >= options.mds or ranks.count(rank) > 1:
            why = f"the ranks are 0 to {options.mds - 1}" if rank >= options.mds else "it is given twice"
            raise BadInputError(f"--slow-mds {rank} is not possible", why=why)
    if options.slow_osd and options.store == "memstore":
        raise BadInputError("a store in memory has no device to slow down", remedy="Leave out --store memstore.")
    # Monitors forgive a silence that they may have caused themselves; with less between the two they forgive all.
    if options.beacon_grace - options.beacon_interval < MONITOR_TICK_S:
        raise BadInputError(
            "a metadata server that fails would never be replaced",
            why=f"--beacon-grace must be at least {MONITOR_TICK_S:g} s (the monitors' tick) longer than "
            "--beacon-interval",
            remedy=f"Give, for example, --beacon-grace {options.beacon_interval + MONITOR_TICK_S:g}s.",
        )


def _letters(count: int) -> tuple[str, ...]:
    return tuple("abcdefghijklmnopqrstuvwxyz"[:count])
