"""MooseFS: a master and chunkservers in a private network (they refuse loopback addresses), and a FUSE client."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.files import write_kept
from strakes.lab.device import PACKAGES, Brick, check_bricks, make_bricks
from strakes.lab.kind import CLIENT, Lab
from strakes.lab.mounts import mounted_at, space_of
from strakes.lab.network import LabNetwork, make_network
from strakes.lab.options import LabOptions, option
from strakes.lab.packages import Package

_MASTER_PORT, _CHUNKSERVER_PORT, _CLIENT_PORT = 9419, 9420, 9421
_FIRST_DATA_PORT = 9500
_LEAVE_FREE = "128MiB"


@dataclass(frozen=True)
class MooseFsOptions(LabOptions):
    """Options of ``lab up moosefs``."""

    chunkservers: int = option("count", "Number of chunkservers, each with its own XFS.", 3, least=1, most=16)
    size: int = option("size", "Capacity of each chunkserver.", "2GiB", least="512MiB")


class MooseFsLab(Lab[MooseFsOptions]):
    """The community edition: one master, no fail-over."""

    options_type = MooseFsOptions
    packages = (
        *PACKAGES,
        Package("moosefs-master", "mfsmaster"),
        Package("moosefs-chunkserver", "mfschunkserver"),
        Package("moosefs-client", "mfsmount"),
        Package("moosefs-cli", "mfscli"),
    )
    _network: LabNetwork
    _bricks: Mapping[int, Brick]

    @classmethod
    def check(cls, options: MooseFsOptions, directory: Path) -> None:
        check_bricks(directory, options.chunkservers, options.size, {}, "--size")

    def up(self) -> None:
        self._network = make_network(self.site)
        self._bricks = make_bricks(self.site, "chunks", self.options.chunkservers, self.options.size, {})
        self._start_master()
        self.site.step(f"{self.options.chunkservers} chunkserver(s)")
        for number, brick in self._bricks.items():
            self._start_chunkserver(number, brick)
        self.site.step("client")
        self.site.make_directory("mnt")
        self.site.start(CLIENT, "mfsmount", self.mount_point, "-f", "-H", self._network.server)

    def ready(self) -> str:
        if mounted_at(self.mount_point) is None:
            return "nothing is mounted yet"
        space = space_of(self.mount_point)
        # Each brings its capacity, less what XFS keeps for itself.
        if space is None or space.total_bytes < self.options.size * self.options.chunkservers * 3 // 4:
            return "not all chunkservers have registered yet"
        return "" if space.free_bytes else "no space is free yet"

    def facts(self) -> Mapping[str, Any]:
        return {
            "master": f"{self._network.server}:{_CLIENT_PORT}",
            "network_namespace": str(self._network.namespace),
            "commands": {"mfscli": ["mfscli", "-H", self._network.server]},
            "chunkservers": {
                str(number): f"{self._network.server}:{_FIRST_DATA_PORT + number}" for number in self._bricks
            },
            "devices": {str(number): str(brick.device.path) for number, brick in self._bricks.items()},
        }

    def _start_master(self) -> None:
        self.site.step("master")
        data = self.site.make_directory("master")
        write_kept(data / "metadata.mfs", b"MFSM NEW", mode=0o644)
        exports = self.site.write("mfsexports.cfg", f"{self._network.subnet} / rw,alldirs,admin,maproot=0:0\n")
        topology = self.site.write("mfstopology.cfg", "")
        server = self._network.server
        config = self._config(
            "master",
            DATA_PATH=data,
            EXPORTS_FILENAME=exports,
            TOPOLOGY_FILENAME=topology,
            MATOML_LISTEN_HOST=server,
            MATOML_LISTEN_PORT=_MASTER_PORT,
            MATOCS_LISTEN_HOST=server,
            MATOCS_LISTEN_PORT=_CHUNKSERVER_PORT,
            MATOCL_LISTEN_HOST=server,
            MATOCL_LISTEN_PORT=_CLIENT_PORT,
        )
        self.site.start("master", *self._network.inside, "mfsmaster", "-f", "-c", config, "start")
        self.site.wait_until(
            "the master", lambda: "" if self._network.answers(_CLIENT_PORT) else "it does not listen yet"
        )

    def _start_chunkserver(self, number: int, brick: Brick) -> None:
        config = self._config(
            f"chunkserver.{number}",
            DATA_PATH=self.site.make_directory(f"chunkserver.{number}"),
            HDD_CONF_FILENAME=self.site.write(f"disks.{number}.cfg", f"{brick.path}\n"),
            HDD_LEAVE_SPACE_DEFAULT=_LEAVE_FREE,
            MASTER_HOST=self._network.server,
            MASTER_PORT=_CHUNKSERVER_PORT,
            MASTER_RECONNECTION_DELAY=1,
            CSSERV_LISTEN_HOST=self._network.server,
            CSSERV_LISTEN_PORT=_FIRST_DATA_PORT + number,
        )
        daemon = ("mfschunkserver", "-f", "-c", config, "start")
        self.site.start(f"chunkserver.{number}", *self._network.inside, *daemon)

    def _config(self, name: str, **settings: object) -> Path:
        user = pwd.getpwuid(os.geteuid()).pw_name
        group = grp.getgrgid(os.getegid()).gr_name
        everybody = {"WORKING_USER": user, "WORKING_GROUP": group}
        return self.site.write(
            f"{name}.cfg", "".join(f"{key} = {value}\n" for key, value in {**everybody, **settings}.items())
        )
