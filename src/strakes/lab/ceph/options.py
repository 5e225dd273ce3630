"""What can be asked of a CephFS lab, and what cannot be together."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.errors import BadInputError
from strakes.lab.options import LabOptions, choice, count, flag, iops_by_id, maybe_count, percent_by_id, seconds, size

# How often the monitors look at the beacons; nothing shorter can be set.
MONITOR_TICK_S = 1.0


@dataclass(frozen=True)
class CephOptions(LabOptions):
    osds: int = count(3, "Object stores (OSDs).")
    mds: int = count(2, "Active metadata ranks.", most=8)
    standby: int = count(1, "Metadata servers that wait to take over.", least=0, most=8)
    standby_replay: bool = flag("Standbys follow the journal of a rank, to take over sooner.")
    mons: int = count(1, "Monitors.", most=5)
    pool_size: int = count(1, "Copies of every object.", most=3)
    store: str = choice("bluestore", "memstore", text="Where objects are: on sparse files, or in memory.")
    osd_size: int = size("4GiB", "Capacity of each object store.", least="1GiB")
    osd_memory: int = size("64MiB", "Cache of each object store.", least="16MiB")
    mds_memory: int = size("256MiB", "Cache limit of each metadata server.", least="16MiB")
    slow_osd: tuple[tuple[int, int], ...] = iops_by_id(
        "The device of the object store ID (0, 1, ...) does so many reads, and writes, a second. May be repeated."
    )
    pool_per_osd: bool = flag("Besides the usual data pool one on each object store alone, so that files can be put there.")
    slow_mds: tuple[tuple[int, int], ...] = percent_by_id(
        "Whoever has the metadata rank RANK (0, 1, ...) when all is up may use so much of one processor. May be repeated.", "RANK=PERCENT"
    )
    mds_cpu: int | None = maybe_count("Each metadata server may use so much of one processor.", least=5, most=100, metavar="PERCENT")
    beacon_interval: float = seconds(0.5, "Time between a metadata server's signs of life.", least=0.1, most=60)
    beacon_grace: float = seconds(3.0, "Silence after which it is replaced.", least=0.5, most=600)

    @property
    def monitors(self) -> tuple[str, ...]:
        return _letters(self.mons)

    @property
    def metadata_servers(self) -> tuple[str, ...]:
        return _letters(self.mds + self.standby)

    @property
    def placement_groups(self) -> int:
        """Enough to spread objects evenly over a few stores: 16 to 32 for each, a power of two."""
        return min(256, 1 << (16 * self.osds * self.pool_size - 1).bit_length())


def check(options: CephOptions) -> None:
    """Raises BadInputError for what contradicts itself."""
    if options.pool_size > options.osds:
        raise BadInputError(
            f"{options.pool_size} copies need as many object stores", remedy=f"Give --osds {options.pool_size}, or fewer copies."
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
        raise BadInputError("a store in memory has no device that could be slow", remedy="Leave --store memstore out.")
    # The monitors forgive a silence that they may have caused themselves; with less between the two they forgive every one.
    if options.beacon_grace - options.beacon_interval < MONITOR_TICK_S:
        raise BadInputError(
            "a metadata server that dies would never be replaced",
            why=f"--beacon-grace must be longer than --beacon-interval by the monitors' tick ({MONITOR_TICK_S:g} s) or more",
            remedy=f"Give --beacon-grace {options.beacon_interval + MONITOR_TICK_S:g}s or more.",
        )


def _letters(count: int) -> tuple[str, ...]:
    return tuple("abcdefghijklmnopqrstuvwxyz"[:count])
