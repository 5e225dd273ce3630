"""CephFS lab: monitor, object stores, metadata servers and standbys, manager (reports free space) and FUSE client."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.units import counted
from strakes.lab import network
from strakes.lab.ceph_config import (
    CONFIG,
    GATEWAY,
    GATEWAY_PACKAGES,
    KEYS,
    MONITOR,
    CephOptions,
    check,
    config_text,
    keyring_text,
    start_gateway,
)
from strakes.lab.ceph_monitor import Monitors
from strakes.lab.cgroup import device_group, limit_cpu, make_group, require
from strakes.lab.device import Device, attach, make_file, require_space
from strakes.lab.kind import Lab
from strakes.lab.packages import Package, table
from strakes.lab.process import is_alive
from strakes.lab.site import LabSite
from strakes.lab.state import LabJournal, read_state, refuse_long_path, working_in

FILE_SYSTEM, METADATA_POOL, DATA_POOL = "cephfs", "cephfs_meta", "cephfs_data"
_MANAGER_MODULES = Path("/usr/share/ceph/mgr")
# ceph-mgr loads only the module for "ceph fs status". All modules would need 300 MiB of memory.
_MODULE = "status"


class CephLab(Lab[CephOptions]):
    """A CephFS lab. Its daemons run in the foreground. Only the user who starts the lab can read the keys."""

    options_type = CephOptions
    needs_root = False
    packages = (
        *table("ceph-mon ceph-mon, ceph-mon monmaptool, ceph-osd ceph-osd, ceph-mds ceph-mds, ceph-mgr ceph-mgr"),
        *table(f"ceph-mgr-modules-core {_MANAGER_MODULES / _MODULE}, ceph-fuse ceph-fuse, ceph-common ceph"),
    )

    def __init__(self, site: LabSite, options: CephOptions) -> None:
        super().__init__(site, options)
        self._fsid = str(uuid.uuid4())
        self._config = site.directory / CONFIG
        listening = (MONITOR, *([GATEWAY] if options.s3 else []))
        self._ports = dict(zip(listening, network.free_ports(len(listening)), strict=True))
        self._devices: dict[int, Device] = {}
        self._pids: dict[str, int] = {}

    @classmethod
    def packages_for(cls, options: CephOptions) -> tuple[Package, ...]:
        for_others_than_root = (Package("fuse3", "fusermount"),) if os.geteuid() != 0 else ()
        return (*cls.packages, *for_others_than_root, *(GATEWAY_PACKAGES if options.s3 else ()))

    @classmethod
    def check(cls, options: CephOptions, directory: Path) -> None:
        check(options)
        refuse_long_path(directory)
        if options.slow_osd:
            require("blkio", "--slow-osd")
        if options.mds_cpu or options.slow_mds:
            require("cpu", "--mds-cpu" if options.mds_cpu else "--slow-mds")
        if options.store == "bluestore":
            require_space(directory, options.osds * options.osd_size, "--osd-size")

    def up(self) -> None:
        self._prepare()
        self._start_monitor()
        self._make_stores()
        self._start_servers()
        self._make_file_system()
        if self.options.s3:
            start_gateway(self.site, self._config, self._ports[GATEWAY])
        self.start_client("ceph-fuse", "-c", self._config, "-n", "client.admin", "-f", self.site.mount_point)

    def slow_down(self) -> None:
        limits = dict.fromkeys(self.options.metadata_servers, self.options.mds_cpu) | self._slow_servers()
        for name, percent in limits.items():
            if percent is not None:
                group = make_group("cpu", self.site.id, f"mds.{name}")
                group.join(self._pids[f"mds.{name}"])
                limit_cpu(group, percent)
        for number, device in self._devices.items():
            device.slow_down(self._pids[f"osd.{number}"])

    def facts(self) -> Mapping[str, Any]:
        return {
            "ceph_conf": str(self._config),
            "keyring": str(self.site.directory / "keyring"),
            "admin_sockets": str(self.site.directory / "run"),
            "slow_devices": {f"osd.{number}": str(device.path) for number, device in self._devices.items()},
            "pools_by_store": {f"osd.{number}": _pool_of(number) for number in self._stores_with_pools()},
            **({"s3_environment": str(self.site.directory / KEYS)} if self.options.s3 else {}),
        }

    def _prepare(self) -> None:
        for name in ("run", "log", "mgr", "mgr-modules"):
            self.site.make_directory(name)
        for source in (_MANAGER_MODULES / _MODULE, *_MANAGER_MODULES.glob("*.py")):
            (self.site.directory / "mgr-modules" / source.name).symlink_to(source)
        for number, iops in self.options.slow_osd:
            self.site.step(f"a slow device for osd.{number}")
            image = make_file(self.site.directory / f"osd.{number}.image", self.options.osd_size)
            self._devices[number] = attach(self.site, image, iops, device_group(self.site.id, f"osd.{number}"))
        self.site.write("keyring", keyring_text(self.options), 0o600)
        paths = {number: device.path for number, device in self._devices.items()}
        self.site.write(
            self._config.name, config_text(self.site.directory, self._fsid, self._ports, self.options, paths)
        )

    def _start_monitor(self) -> None:
        self.site.step("monitor")
        monmap, port = self.site.directory / "monmap", self._ports[MONITOR]
        address = ("--addv", "a", f"[v2:{network.LOOPBACK}:{port}]")
        self.site.run("monmaptool", "--create", "--clobber", "--fsid", self._fsid, *address, monmap)
        self.site.make_directory("mon")
        self.site.run(*self._daemon("ceph-mon", "a"), "--mkfs", "--monmap", monmap)
        self.site.start(MONITOR, *self._daemon("ceph-mon", "a"), "-f")
        self.site.wait_until("the monitor", lambda: "" if network.is_listening(port) else "it does not listen yet")

    def _make_stores(self) -> None:
        self.site.step(f"{self.options.osds} object store(s)")
        stores = {number: str(uuid.uuid4()) for number in range(self.options.osds)}
        with Monitors(self._config) as monitors:
            for store in stores.values():
                monitors.command("osd new", uuid=store)

        def make(number: int) -> None:
            self.site.make_directory("osd", str(number))
            words = self._daemon("ceph-osd", str(number))
            self.site.run(*words, "--mkfs", "--osd-uuid", stores[number], "--no-mon-config")

        with ThreadPoolExecutor() as pool:
            list(pool.map(make, stores))

    def _start_servers(self) -> None:
        self.site.step(f"{self.options.mds} metadata server(s), {self.options.standby} standby")
        for number in range(self.options.osds):
            role = f"osd.{number}"
            self._pids[role] = self.site.start(role, *self._daemon("ceph-osd", str(number)), "-f")
        for name in self.options.metadata_servers:
            self.site.make_directory("mds", name)
            self._pids[f"mds.{name}"] = self.site.start(f"mds.{name}", *self._daemon("ceph-mds", name), "-f")
        self.site.start("mgr.x", *self._daemon("ceph-mgr", "x"), "-f")

    def _make_file_system(self) -> None:
        with Monitors(self._config) as monitors:

            def lacking_stores() -> str:
                up = monitors.command("osd stat")["num_up_osds"]
                return "" if up >= self.options.osds else f"{up} of {self.options.osds} object stores are up"

            # Wait for all object stores, because Ceph moves objects to a store that starts later.
            self.site.wait_until("the object stores", lacking_stores)
            for pool, groups in ((METADATA_POOL, 16), (DATA_POOL, self.options.placement_groups)):
                monitors.command("osd pool create", pool=pool, pg_num=groups, pgp_num=groups)
            monitors.command("fs new", fs_name=FILE_SYSTEM, metadata=METADATA_POOL, data=DATA_POOL)
            for number in self._stores_with_pools():
                self._make_pool_on(monitors, number)
            monitors.command("fs set", fs_name=FILE_SYSTEM, var="max_mds", val=str(self.options.mds))
            if self.options.standby_replay:
                monitors.command("fs set", fs_name=FILE_SYSTEM, var="allow_standby_replay", val="true")
            # Suppress Ceph's health warning about manager modules that are not installed.
            monitors.command("health mute", code="MGR_MODULE_ERROR", sticky=True)
            self.site.wait_until("the metadata ranks", lambda: self._lacking_ranks(monitors))
            self.site.wait_until("the placement groups", lambda: _unclean(monitors))

    def _stores_with_pools(self) -> range:
        return range(self.options.osds if self.options.pool_per_osd else 0)

    def _make_pool_on(self, monitors: Monitors, number: int) -> None:
        pool, own_class = _pool_of(number), f"only{number}"
        monitors.command("osd crush rm-device-class", ids=[str(number)])
        monitors.command("osd crush set-device-class", **{"class": own_class}, ids=[str(number)])
        monitors.command(
            "osd crush rule create-replicated", name=pool, root="default", type="osd", **{"class": own_class}
        )
        monitors.command("osd pool create", pool=pool, pg_num=8, pgp_num=8, rule=pool, size=1)
        monitors.command("fs add_data_pool", fs_name=FILE_SYSTEM, pool=pool)

    def _slow_servers(self) -> dict[str, int]:
        if not self.options.slow_mds:
            return {}
        with Monitors(self._config) as monitors:
            daemons = monitors.command("fs dump")["filesystems"][0]["mdsmap"]["info"].values()
        holding = {daemon["rank"]: daemon["name"] for daemon in daemons if daemon["state"] == "up:active"}
        return {holding[rank]: percent for rank, percent in self.options.slow_mds}

    def _lacking_ranks(self, monitors: Monitors) -> str:
        file_system = monitors.command("fs dump")["filesystems"][0]["mdsmap"]
        states = [daemon["state"] for daemon in file_system["info"].values()]
        active = states.count("up:active")
        if active < self.options.mds:
            return f"active: {active} of {counted(self.options.mds, 'metadata rank')}"
        following = states.count("up:standby-replay")
        wanted = min(self.options.mds, self.options.standby) if self.options.standby_replay else 0
        return "" if following >= wanted else f"{following} of {wanted} standbys follow the journal"

    def _daemon(self, program: str, name: str) -> tuple[str | Path, ...]:
        return (program, "-c", self._config, "-i", name)


def _pool_of(number: int) -> str:
    return f"{DATA_POOL}.osd{number}"


def _unclean(monitors: Monitors) -> str:
    groups = monitors.command("status")["pgmap"]
    number = groups["num_pgs"]
    clean = sum(state["count"] for state in groups["pgs_by_state"] if state["state_name"] == "active+clean")
    return "" if number and clean == number else f"{clean} of {number} placement groups are clean"


def start_metadata_server(directory: Path, name: str) -> None:
    """Start an ended or continue a stopped metadata server. Raises BadInputError if the lab does not exist."""
    state = read_state(directory)
    if state is None or not state.this_boot or state.kind != "ceph":
        raise BadInputError("the CephFS lab no longer exists", where=str(directory))
    with working_in(directory, make=False) as there:
        role = f"mds.{name}"
        alive = [process.pid for process in state.processes if process.role == role and is_alive(process)]
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        if alive or not there:
            return
        with closing(LabJournal(directory, state.id)) as journal:
            site = LabSite(directory, journal, lambda _text: None)
            pid = site.start(role, "ceph-mds", "-c", directory / CONFIG, "-i", name, "-f")
            if state.options.get("mds_cpu"):
                make_group("cpu", state.id, role).join(pid)
