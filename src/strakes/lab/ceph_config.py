"""Write the ceph.conf and the keys of a CephFS lab (only loopback, fast failure detection). Start its S3 gateway."""

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
from strakes.base.files import write_kept
from strakes.lab.network import LOOPBACK, is_listening
from strakes.lab.options import LabOptions, check_ids, option
from strakes.lab.packages import table
from strakes.lab.site import LabSite

# Seconds between two checks of beacons by Ceph's monitors (mon_tick_interval). Ceph allows no shorter time.
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
        "choice",
        "Where objects are stored: in sparse files (bluestore) or in memory (memstore).",
        "bluestore",
        choices=("bluestore", "memstore"),
    )
    osd_size: int = option("size", "Capacity of each object store.", "4GiB", least="1GiB")
    slow_osd: tuple[tuple[int, int], ...] = option(
        "by-id",
        "Limit the device of object store ID (0, 1, ...) to IOPS reads and IOPS writes per second. May be repeated.",
        (),
        least=10,
        metavar="ID=IOPS",
    )
    pool_per_osd: bool = option(
        "flag", "Also make one data pool on each object store alone, so that files can be placed there.", False
    )
    s3: bool = option("flag", "Also start an object gateway (radosgw): S3 on the same object stores.", False)
    slow_mds: tuple[tuple[int, int], ...] = option(
        "by-id",
        "Limit the server of metadata rank RANK (0, 1, ...) to PERCENT of one processor. May be repeated.",
        (),
        least=5,
        most=100,
        metavar="RANK=PERCENT",
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
        """Number of placement groups of a pool: a power of two, 16 to 32 per object store, to spread objects evenly."""
        return min(256, 1 << (16 * self.osds * self.pool_size - 1).bit_length())


def check(options: CephOptions) -> None:
    """Raise BadInputError if options of a CephFS lab contradict each other."""
    if options.pool_size > options.osds:
        raise BadInputError(
            f"{options.pool_size} copies of each object need {options.pool_size} or more object stores",
            remedy=f"Give --osds {options.pool_size}, or fewer copies.",
        )
    check_ids("--slow-osd", options.slow_osd, range(options.osds))
    check_ids("--slow-mds", options.slow_mds, range(options.mds))
    if options.slow_osd and options.store == "memstore":
        raise BadInputError("a store in memory has no device to slow down", remedy="Leave out --store memstore.")
    # A monitor checks beacons once per tick. It replaces no server if its last tick is older than grace - interval.
    if options.beacon_grace - options.beacon_interval < MONITOR_TICK_S:
        raise BadInputError(
            "a metadata server that fails would never be replaced",
            why=f"--beacon-grace must be at least {MONITOR_TICK_S:g} s (the monitors' tick) longer than "
            "--beacon-interval",
            remedy=f"Give, for example, --beacon-grace {options.beacon_interval + MONITOR_TICK_S:g}s.",
        )


CONFIG = "ceph.conf"
# osd_memory_target is Ceph's minimum. paxos: by default, each change of a map, such as a fail-over, waits up to 1 s.
# mds_beacon_mon_down_grace: by default, a dead metadata server is not replaced for 60 s after a monitor starts.
# mds_reconnect_timeout: by default, a client that died before a fail-over blocks the other clients for 45 s.
# mds_bal_interval = 0: no balancing, so that only pins place metadata. osd_max_object_name: fits ext4's attributes.
# mds_beacon: monitors and metadata servers must have the same value.
_SECTIONS = """[global]
fsid = {fsid}
mon_host = [v2:{loopback}:{port}/0]
public_addr = {loopback}
cluster_addr = {loopback}
ms_bind_port_min = 12000
ms_bind_port_max = 19999
auth_allow_insecure_global_id_reclaim = false
keyring = {lab}/keyring
run_dir = {lab}/run
admin_socket = {lab}/run/$name.asok
log_file = {lab}/log/$name.log
mon_cluster_log_file = {lab}/log/cluster.log
crash_dir = {lab}/log
ms_async_op_threads = 1
osd_pool_default_size = {options.pool_size}
osd_pool_default_min_size = 1
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_max_pg_per_osd = 1000
mds_beacon_interval = {options.beacon_interval}
mds_beacon_grace = {options.beacon_grace}

[mon]
mon_data = {lab}/mon/$id
mon_allow_pool_size_one = true
mon_allow_pool_delete = true
mon_warn_on_pool_no_redundancy = false
mon_data_avail_warn = 2
mon_data_avail_crit = 1
paxos_propose_interval = 0.05
paxos_min_wait = 0.02
mon_tick_interval = {tick_s}
mds_beacon_mon_down_grace = 1

[osd]
osd_data = {lab}/osd/$id
osd_objectstore = {options.store}
memstore_device_bytes = {options.osd_size}
bluestore_block_size = {options.osd_size}
bluestore_cache_autotune = false
bluestore_cache_size = 67108864
osd_memory_target = 939524096
osd_op_num_shards = 2
osd_op_num_threads_per_shard = 1
osd_max_object_name_len = 460
osd_max_object_namespace_len = 64

[mds]
mds_data = {lab}/mds/$id
mds_tick_interval = 1
mds_reconnect_timeout = 5
mds_root_ino_uid = {uid}
mds_root_ino_gid = {gid}
mds_cache_memory_limit = 268435456
mds_bal_interval = 0

[mgr]
mgr_data = {lab}/mgr
mgr_module_path = {lab}/mgr-modules

[client]
client_mount_timeout = 30
admin_socket = {lab}/run/$name.$pid.asok
fuse_allow_other = {others}
"""
# By default, deleted objects occupy space for two hours.
_GATEWAY_SECTION = """
[client.rgw.a]
rgw_data = {lab}/rgw
rgw_frontends = beast endpoint={loopback}:{port}
rgw_thread_pool_size = 32
rgw_run_sync_thread = false
rgw_dynamic_resharding = false
rgw_gc_obj_min_wait = 5
rgw_gc_processor_period = 5
rgw_gc_processor_max_time = 5
"""


def config_text(
    directory: Path, fsid: str, ports: Mapping[str, int], options: CephOptions, devices: Mapping[int, Path]
) -> str:
    """Return the text of ceph.conf. ``ports``: server -> port. ``devices``: number of an OSD -> its block device."""
    text = _SECTIONS.format(
        lab=directory,
        fsid=fsid,
        loopback=LOOPBACK,
        port=ports[MONITOR],
        options=options,
        tick_s=int(MONITOR_TICK_S),
        uid=os.getuid(),
        gid=os.getgid(),
        # Users other than root need an entry in /etc/fuse.conf to share a FUSE mount with other users.
        others="true" if os.geteuid() == 0 else "false",
    )
    if options.s3:
        text += _GATEWAY_SECTION.format(lab=directory, loopback=LOOPBACK, port=ports[GATEWAY])
    return text + "".join(f"\n[osd.{number}]\nbluestore_block_path = {device}\n" for number, device in devices.items())


def keyring_text(options: CephOptions) -> str:
    """Return a keyring with a new key for each daemon and for client.admin. One user runs all, so each may do all."""
    names = [f"osd.{number}" for number in range(options.osds)] + [f"mds.{name}" for name in options.metadata_servers]
    caps = "".join(f'caps {service} = "allow *"\n' for service in ("mon", "osd", "mds", "mgr"))
    # Ceph's CryptoKey: type (1: AES), creation time in seconds and nanoseconds, length in bytes, key.
    head = struct.pack("<HIIH", 1, int(time.time()), 0, _KEY_BYTES)
    return "".join(
        f"[{name}]\nkey = {base64.b64encode(head + secrets.token_bytes(_KEY_BYTES)).decode()}\n{caps}"
        for name in ("mon.", "client.admin", "mgr.x", *names, *([GATEWAY] if options.s3 else []))
    )


_KEY_BYTES = 16  # AES with 128 bits, the only type of key in Ceph 16.
GATEWAY, BUCKET, REGION = "client.rgw.a", "lab", "us-east-1"
# File with the S3 keys, which therefore never appear on a command line.
KEYS = "s3.env"
GATEWAY_PACKAGES = table("radosgw radosgw, radosgw radosgw-admin, curl curl")
# S3 requires the SHA-256 hash of the (empty) body in a header, which curl 7.88 does not add.
_SIGNED = f"""aws-sigv4 = "aws:amz:{REGION}:s3"
header = "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""


def start_gateway(site: LabSite, config: Path, port: int) -> None:
    """Start the S3 gateway, create a user and a bucket, and write the user's keys to a file."""
    site.step("object gateway")
    site.make_directory("rgw")
    words = ("-c", config, "-n", GATEWAY)
    made = site.run("radosgw-admin", *words, "user", "create", "--uid=strakes", "--display-name=strakes", limit_s=120)
    keys = json.loads(made)["keys"][0]
    site.start("rgw.a", "radosgw", *words, "-f")
    site.wait_until("the object gateway", lambda: "" if is_listening(port) else "it does not listen yet")
    user = f'user = "{keys["access_key"]}:{keys["secret_key"]}"'
    lines = (f'url = "http://{LOOPBACK}:{port}/{BUCKET}"', 'request = "PUT"', user, _SIGNED, "fail", "silent")
    request = site.directory / "bucket.curl"
    write_kept(request, "\n".join((*lines, "show-error", "")))
    site.run("curl", "--config", request)
    exports = {
        "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{port}",
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": keys["access_key"],
        "AWS_SECRET_ACCESS_KEY": keys["secret_key"],
        "STRAKES_S3_BUCKET": BUCKET,
    }
    write_kept(site.directory / KEYS, "".join(f"export {name}='{value}'\n" for name, value in exports.items()))
