"""MooseFS lab: a client, and servers in a private network. MooseFS servers refuse loopback addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.files import write_kept
from strakes.lab.device import PACKAGES, BrickLab, require_space
from strakes.lab.mounts import space_of
from strakes.lab.network import SERVER, lacking
from strakes.lab.options import LabOptions, option
from strakes.lab.packages import table

# MooseFS's default port for clients, and the base of the chunkservers' ports (the first has 9501).
_CLIENT_PORT, _FIRST_DATA_PORT = 9421, 9500
_LEAVE_FREE = "128MiB"


@dataclass(frozen=True)
class MooseFsOptions(LabOptions):
    """Options of ``lab up moosefs``."""

    chunkservers: int = option("count", "Number of chunkservers, each with its own XFS.", 3, least=1, most=16)
    size: int = option("size", "Capacity of each chunkserver.", "2GiB", least="512MiB")


class MooseFsLab(BrickLab[MooseFsOptions]):
    """A MooseFS (community edition) with one master and no fail-over."""

    options_type = MooseFsOptions
    packages = PACKAGES + table(
        "moosefs-master mfsmaster, moosefs-chunkserver mfschunkserver, moosefs-client mfsmount, moosefs-cli mfscli"
    )

    @classmethod
    def check(cls, options: MooseFsOptions, directory: Path) -> None:
        require_space(directory, options.chunkservers * options.size, "--size")

    def up(self) -> None:
        self._make_bricks("chunks", self.options.chunkservers, self.options.size, {})
        self._start_master()
        self.site.step(f"{self.options.chunkservers} chunkserver(s)")
        for number, (_, path) in self._bricks.items():
            self._start_chunkserver(number, path)
        self.start_client(*self._inside, "mfsmount", self.site.mount_point, "-f", "-H", SERVER)

    def ready(self) -> str:
        if why := super().ready():
            return why
        space = space_of(self.site.mount_point)
        # Require 3/4 of the size, because the reported space does not include what MooseFS and XFS reserve.
        registered = space and space.total_bytes >= self.options.size * self.options.chunkservers * 3 // 4
        if not registered:
            return "not all chunkservers have registered yet"
        self.site.mount_point.chmod(0o755)  # In a new MooseFS, the root directory has mode 0777.
        return ""

    def facts(self) -> Mapping[str, Any]:
        return {
            **super().facts(),
            "master": f"{SERVER}:{_CLIENT_PORT}",
            "chunkservers": {str(number): f"{SERVER}:{_FIRST_DATA_PORT + number}" for number in self._bricks},
        }

    def _start_master(self) -> None:
        self.site.step("master")
        data = self.site.make_directory("master")
        write_kept(data / "metadata.mfs", b"MFSM NEW", mode=0o644)
        exports = self.site.write("mfsexports.cfg", f"{SERVER} / rw,alldirs,admin,maproot=0:0\n")
        config = self._config("master", DATA_PATH=data, EXPORTS_FILENAME=exports)
        self.site.start("master", *self._inside, "mfsmaster", "-f", "-c", config, "start")
        self.site.wait_until("the master", lambda: lacking(self._inside, _CLIENT_PORT))

    def _start_chunkserver(self, number: int, brick: Path) -> None:
        config = self._config(
            f"chunkserver.{number}",
            DATA_PATH=self.site.make_directory(f"chunkserver.{number}"),
            HDD_CONF_FILENAME=self.site.write(f"disks.{number}.cfg", f"{brick}\n"),
            HDD_LEAVE_SPACE_DEFAULT=_LEAVE_FREE,
            MASTER_HOST=SERVER,
            MASTER_RECONNECTION_DELAY=1,
            CSSERV_LISTEN_PORT=_FIRST_DATA_PORT + number,
        )
        daemon = ("mfschunkserver", "-f", "-c", config, "start")
        self.site.start(f"chunkserver.{number}", *self._inside, *daemon)

    def _config(self, name: str, **settings: object) -> Path:
        settings |= {"WORKING_USER": "root", "WORKING_GROUP": "root"}
        return self.site.write(f"{name}.cfg", "".join(f"{key} = {value}\n" for key, value in settings.items()))
