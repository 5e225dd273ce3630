"""Write ceph.conf and the keys of a CephFS lab, and start its S3 gateway."""

from __future__ import annotations

import base64
import json
import os
import secrets
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.lab.network import is_listening
from strakes.lab.options import LabOptions, check_ids, limits, option
from strakes.lab.packages import table
from strakes.lab.site import LabSite, rendered

# Seconds between checks of the daemons' beacons by a Ceph monitor (mon_tick_interval). It is Ceph's minimum.
MONITOR_TICK_S = 1.0
MONITOR = "mon.a"


@dataclass(frozen=True)
class CephOptions(LabOptions):
    """Options of ``lab up ceph``."""

    osds: int = option("count", "Number of object stores (OSDs).", 3, least=1, most=16)
    mds: int = option("count", "Number of active metadata ranks.", 2, least=1, most=8)
    standby: int = option("count", "Number of standby metadata servers.", 1, least=0, most=8)
    standby_replay: bool = option(
        "flag", "Let standbys follow the journal of a rank, so that they take over sooner.", False
    )
    pool_size: int = option("count", "Number of copies of every object.", 1, least=1, most=3)
    store: str = option(
        "choice", "Store objects in sparse files or in memory.", "bluestore", choices=("bluestore", "memstore")
    )
    osd_size: int = option("size", "Capacity of each object store.", "4GiB", least="1GiB")
    slow_osd: tuple[tuple[int, int], ...] = limits(
        "ID=IOPS", "Limit the device of object store ID (0, 1, ...) to IOPS reads and IOPS writes per second.", 10
    )
    pool_per_osd: bool = option(
        "flag", "Also make a data pool for each object store, so that files can be placed on a single store.", False
    )
    s3: bool = option("flag", "Also start an object gateway (radosgw): S3 on the same object stores.", False)
    slow_mds: tuple[tuple[int, int], ...] = limits(
        "RANK=PERCENT", "Limit the server of metadata rank RANK (0, 1, ...) to PERCENT of one processor.", 5, 100
    )
    mds_cpu: int | None = option(
        "count", "Limit each metadata server to PERCENT of one processor.", least=5, most=100, metavar="PERCENT"
    )
    beacon_interval: float = option(
        "seconds", "Time between the beacons of a metadata server.", 0.5, least=0.1, most=60
    )
    beacon_grace: float = option(
        "seconds", "Time without beacons after which a metadata server is replaced.", 3.0, least=0.5, most=600
    )

    @property
    def metadata_servers(self) -> tuple[str, ...]:
        return tuple("abcdefghijklmnopqrstuvwxyz"[: self.mds + self.standby])

    @property
    def placement_groups(self) -> int:
        """Return a pool's number of placement groups: 16 to 32 per OSD and copy, as a power of two up to 256."""
        return min(256, 1 << (16 * self.osds * self.pool_size - 1).bit_length())


def check(options: CephOptions) -> None:
    """Raise BadInputError if options of a CephFS lab contradict each other."""
    if options.pool_size > options.osds:
        what = f"{options.pool_size} copies of each object need {options.pool_size} or more object stores"
        raise BadInputError(what, remedy=f"Give --osds {options.pool_size}, or fewer copies.")
    check_ids("--slow-osd", options.slow_osd, range(options.osds))
    check_ids("--slow-mds", options.slow_mds, range(options.mds))
    if options.slow_osd and options.store == "memstore":
        raise BadInputError("a store in memory has no device to slow down", remedy="Leave out --store memstore.")
    # A monitor never replaces a server if mon_tick_interval exceeds beacon_grace - beacon_interval.
    if options.beacon_grace - options.beacon_interval < MONITOR_TICK_S:
        why = f"--beacon-grace must exceed --beacon-interval by {MONITOR_TICK_S:g} s (the monitors' tick) or more"
        remedy = f"Give, for example, --beacon-grace {options.beacon_interval + MONITOR_TICK_S:g}s."
        raise BadInputError("a metadata server that fails would never be replaced", why=why, remedy=remedy)


CONFIG = "ceph.conf"


def config_text(
    directory: Path, fsid: str, ports: Mapping[str, int], options: CephOptions, devices: Mapping[int, Path]
) -> str:
    """Return the text of ceph.conf. ``ports``: ports by server. ``devices``: block devices by number of the OSD."""
    given = {"lab": directory, "fsid": fsid, "ports": ports, "options": options, "devices": devices}
    return rendered(CONFIG, **given, tick_s=int(MONITOR_TICK_S), uid=os.geteuid(), gid=os.getegid())


def keyring_text(options: CephOptions) -> str:
    """Return a keyring with a new key for each daemon and for client.admin. Every key has all rights."""
    names = [f"osd.{number}" for number in range(options.osds)] + [f"mds.{name}" for name in options.metadata_servers]
    names += ["mon.", "client.admin", "mgr.x", *([GATEWAY] if options.s3 else [])]
    # Ceph's CryptoKey: type (1: AES), creation time in seconds and nanoseconds, length in bytes, key.
    head = struct.pack("<HIIH", 1, int(time.time()), 0, _KEY_BYTES)
    keys = {name: base64.b64encode(head + secrets.token_bytes(_KEY_BYTES)).decode() for name in names}
    return rendered("keyring", keys=keys)


_KEY_BYTES = 16  # AES with 128 bits, the only type of key in Ceph 16.
GATEWAY = "client.rgw.a"
# File of the S3 keys, so that they never appear on a command line.
KEYS = "s3.env"
GATEWAY_PACKAGES = table("radosgw radosgw, radosgw radosgw-admin, curl curl")


def start_gateway(site: LabSite, config: Path, port: int) -> None:
    """Start the S3 gateway, create a user and a bucket, and write the user's keys to a file."""
    site.step("object gateway")
    site.make_directory("rgw")
    words = ("-c", config, "-n", GATEWAY)
    made = site.run("radosgw-admin", *words, "user", "create", "--uid=strakes", "--display-name=strakes", limit_s=120)
    keys = json.loads(made)["keys"][0]
    site.start("rgw.a", "radosgw", *words, "-f")
    site.wait_until("the object gateway", lambda: "" if is_listening(port) else "it does not listen yet")
    site.run("curl", "--config", site.fill("bucket.curl", "bucket.curl", 0o600, port=port, keys=keys))
    site.fill(KEYS, KEYS, 0o600, port=port, keys=keys)
