"""ceph.conf of a lab: small, on the loopback address, without keys, quick to notice every change; the S3 gateway."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.base.files import write_kept
from strakes.base.units import MIB
from strakes.lab.network import LOOPBACK, is_listening
from strakes.lab.options import LabOptions, option
from strakes.lab.packages import Package
from strakes.lab.site import LabSite

# How often the monitors look at the beacons; nothing shorter can be set.
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
        """Enough to spread objects evenly over a few stores: 16 to 32 for each, a power of two."""
        return min(256, 1 << (16 * self.osds * self.pool_size - 1).bit_length())


def check(options: CephOptions) -> None:
    """Raise BadInputError for what contradicts itself."""
    if options.pool_size > options.osds:
        raise BadInputError(
            f"{options.pool_size} copies need {options.pool_size} object stores or more",
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


# Its name in the lab's directory.
CONFIG = "ceph.conf"
# The least that Ceph takes (minimum of osd_memory_target in its options); the cache below decides.
_LEAST_MEMORY_TARGET_BYTES = 939_524_096


def config_text(
    directory: Path, fsid: str, ports: Mapping[str, int], options: CephOptions, devices: Mapping[int, Path]
) -> str:
    """Return the whole file. ``ports`` by server; ``devices``: the block devices of stores without a file."""
    sections: dict[str, dict[str, object]] = {
        "global": _everybody(directory, fsid, ports, options),
        "mon": _MONITOR | {"mon_data": f"{directory}/mon/$id"},
        "osd": _object_store(directory, options),
        "mds": _metadata_server(directory),
        "mgr": {"mgr_data": f"{directory}/mgr", "mgr_module_path": f"{directory}/mgr-modules"},
        "client": _client(directory),
    }
    if options.s3:
        sections[GATEWAY] = gateway_section(directory, ports[GATEWAY])
    for number, device in devices.items():
        sections[f"osd.{number}"] = {"bluestore_block_path": device}
    return "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in section.items())
        for name, section in sections.items()
    )


def _everybody(directory: Path, fsid: str, ports: Mapping[str, int], options: CephOptions) -> dict[str, object]:
    return {
        "fsid": fsid,
        "mon_host": f"[v2:{LOOPBACK}:{ports[MONITOR]}/0]",
        "public_addr": LOOPBACK,
        "cluster_addr": LOOPBACK,
        "ms_bind_port_min": 12_000,
        "ms_bind_port_max": 19_999,
        "auth_cluster_required": "none",
        "auth_service_required": "none",
        "auth_client_required": "none",
        "keyring": f"{directory}/keyring",
        "run_dir": f"{directory}/run",
        "admin_socket": f"{directory}/run/$name.asok",
        "log_file": f"{directory}/log/$name.log",
        "mon_cluster_log_file": f"{directory}/log/cluster.log",
        "crash_dir": f"{directory}/log",
        "log_flush_on_exit": "false",
        "ms_async_op_threads": 1,
        "osd_pool_default_size": options.pool_size,
        "osd_pool_default_min_size": 1,
        "osd_pool_default_pg_autoscale_mode": "off",
        # Copies may be on the same host: there is only one.
        "osd_crush_chooseleaf_type": 0,
        "mon_max_pg_per_osd": 1000,
        # The monitors and the metadata servers must agree on these two.
        "mds_beacon_interval": options.beacon_interval,
        "mds_beacon_grace": options.beacon_grace,
    }


_MONITOR: dict[str, object] = {
    "mon_allow_pool_size_one": "true",
    "mon_allow_pool_delete": "true",
    "mon_warn_on_pool_no_redundancy": "false",
    "mon_warn_on_insecure_global_id_reclaim_allowed": "false",
    "mon_warn_on_insecure_global_id_reclaim": "false",
    "mon_data_avail_warn": 2,
    "mon_data_avail_crit": 1,
    # The defaults 1, 0.05 and 5 make every change of a map (a new file system, a fail-over) wait.
    "paxos_propose_interval": 0.05,
    "paxos_min_wait": 0.02,
    "mon_tick_interval": int(MONITOR_TICK_S),
    # While the quorum is younger than this (default 60) a dead metadata server is kept that long, whatever the grace.
    "mds_beacon_mon_down_grace": 1,
}


def _object_store(directory: Path, options: CephOptions) -> dict[str, object]:
    return {
        "osd_data": f"{directory}/osd/$id",
        "osd_objectstore": options.store,
        "memstore_device_bytes": options.osd_size,
        "bluestore_block_size": options.osd_size,
        "bluestore_fsck_on_mount": "false",
        "bluestore_cache_autotune": "false",
        "bluestore_cache_size": 64 * MIB,
        "osd_memory_target": _LEAST_MEMORY_TARGET_BYTES,
        "osd_op_num_shards": 2,
        "osd_op_num_threads_per_shard": 1,
        # Objects' names fit into ext4's attributes.
        "osd_max_object_name_len": 460,
        "osd_max_object_namespace_len": 64,
    }


def _metadata_server(directory: Path) -> dict[str, object]:
    return {
        "mds_data": f"{directory}/mds/$id",
        "mds_tick_interval": 1,
        # Default 45 s: for this time a client that died before a fail-over blocks the others.
        "mds_reconnect_timeout": 5,
        "mds_root_ino_uid": os.getuid(),
        "mds_root_ino_gid": os.getgid(),
        "mds_cache_memory_limit": 256 * MIB,
        # Where metadata goes is for pins to say.
        "mds_bal_interval": 0,
    }


def _client(directory: Path) -> dict[str, object]:
    return {
        "client_mount_timeout": 30,
        "client_die_on_failed_remount": "false",
        "admin_socket": f"{directory}/run/$name.$pid.asok",
        # Only root may open a mount to others without asking /etc/fuse.conf.
        "fuse_allow_other": "true" if os.geteuid() == 0 else "false",
    }


GATEWAY, BUCKET, REGION = "client.rgw.a", "lab", "us-east-1"
# Its name in the lab's directory: the keys are in no other file, and on no command line.
KEYS = "s3.env"
GATEWAY_PACKAGES = (Package("radosgw", "radosgw"), Package("radosgw", "radosgw-admin"), Package("curl", "curl"))
# The hash is that of an empty body; curl 7.88 does not add the header.
_SIGNED = f"""aws-sigv4 = "aws:amz:{REGION}:s3"
header = "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""


def gateway_section(directory: Path, port: int) -> dict[str, object]:
    """Return what its section of the configuration holds."""
    return {
        # It insists on encryption towards the monitors, which needs keys.
        "ms_mon_client_mode": "crc",
        "rgw_data": f"{directory}/rgw",
        "rgw_frontends": f"beast endpoint={LOOPBACK}:{port}",
        "rgw_thread_pool_size": 32,
        "rgw_run_sync_thread": "false",
        "rgw_dynamic_resharding": "false",
        "rgw_enable_ops_log": "false",
        # By default deleted objects take space for two hours.
        "rgw_gc_obj_min_wait": 5,
        "rgw_gc_processor_period": 5,
        "rgw_gc_processor_max_time": 5,
    }


def start_gateway(site: LabSite, config: Path, port: int) -> None:
    """Start it, make its user and a bucket, and leave the keys in a file for this user alone."""
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
