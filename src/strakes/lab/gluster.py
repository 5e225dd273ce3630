"""GlusterFS lab: a management daemon, a server for each brick in a private network, and a FUSE client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError
from strakes.lab.cgroup import require
from strakes.lab.device import PACKAGES, BrickLab, require_space
from strakes.lab.network import SERVER
from strakes.lab.options import LabOptions, check_ids, limits, option
from strakes.lab.packages import table
from strakes.lab.state import refuse_long_path

VOLUME = "strakes"
# Path compiled into GlusterFS -> directory of the lab that is mounted there for the daemons.
_FIXED = {"/var/lib/glusterd": "work", "/var/log/glusterfs": "log", "/run/gluster": "run"}


@dataclass(frozen=True)
class GlusterOptions(LabOptions):
    """Options of ``lab up gluster``."""

    bricks: int = option("count", "Number of bricks, each with its own server and XFS.", 3, least=1, most=16)
    replica: int = option(
        "count", "Number of copies of every file; the number of bricks must be a multiple of it.", 1, least=1, most=4
    )
    size: int = option("size", "Capacity of each brick.", "2GiB", least="320MiB")
    slow_brick: tuple[tuple[int, int], ...] = limits(
        "ID=IOPS", "Limit the device of brick ID (1, 2, ...) to IOPS reads and IOPS writes per second.", 10
    )


class GlusterLab(BrickLab[GlusterOptions]):
    """A GlusterFS volume in a private network, because GlusterFS refuses bricks on the loopback address."""

    options_type = GlusterOptions
    packages = PACKAGES + table("glusterfs-server glusterd, glusterfs-cli gluster, glusterfs-client glusterfs")

    @classmethod
    def check(cls, options: GlusterOptions, directory: Path) -> None:
        if options.bricks % options.replica:
            what = f"the number of bricks, {options.bricks}, is not a multiple of the number of copies"
            raise BadInputError(f"{what}, {options.replica}", remedy="Change --bricks or --replica.")
        refuse_long_path(directory)
        check_ids("--slow-brick", options.slow_brick, range(1, options.bricks + 1))
        if options.slow_brick:
            require("blkio", "--slow-brick")
        require_space(directory, options.bricks * options.size, "--size")

    def up(self) -> None:
        self._make_bricks("brick", self.options.bricks, self.options.size, dict(self.options.slow_brick))
        self._start_daemon()
        self._make_volume()
        log = self.site.directory / "log/client.log"
        where = ("-s", SERVER, f"--volfile-id={VOLUME}", self.site.mount_point)
        # Use nosuid and nodev, because any local user could create files of root through the servers.
        client = ("glusterfs", "--no-daemon", "--fuse-mountopts=nosuid,nodev", "-l", log, "-L", "WARNING")
        self.start_client(*self._inside, *client, *where)

    def slow_down(self) -> None:
        for device, path in self._bricks.values():
            device.slow_down(self._pid_of(path))

    def facts(self) -> Mapping[str, Any]:
        known = super().facts()
        return {
            **known,
            "commands": {**known["commands"], "gluster": [str(word) for word in self._gluster()]},
            "bricks": {str(number): str(path / "data") for number, (_, path) in self._bricks.items()},
        }

    def _with_own_directories(self) -> tuple[str, ...]:
        mounts = [f'mount --bind "{self.site.directory / own}" {fixed}' for fixed, own in _FIXED.items()]
        script = " && ".join(["mount -t tmpfs strakes-lab /run", "mkdir /run/gluster", *mounts, 'exec "$@"'])
        return ("unshare", "--mount", "--propagation", "slave", "/bin/sh", "-c", script, "sh")

    def _gluster(self) -> tuple[str | Path, ...]:
        log = self.site.directory / "log/cli.log"
        return ("gluster", "--mode=script", f"--glusterd-sock={self._socket}", f"--log-file={log}")

    @property
    def _socket(self) -> Path:
        return self.site.directory / "run/glusterd.socket"

    def _start_daemon(self) -> None:
        self.site.step("management daemon")
        for own in _FIXED.values():
            self.site.make_directory(own)
        volfile = self.site.fill("glusterd.vol", "glusterd.vol", socket=self._socket, server=SERVER)
        daemon = ("glusterd", "--no-daemon", "-f", volfile, "-L", "WARNING")
        self.site.start("glusterd", *self._inside, *self._with_own_directories(), *daemon)
        lacking = "it has not made its socket yet"
        self.site.wait_until("the management daemon", lambda: "" if self._socket.exists() else lacking)

    def _make_volume(self) -> None:
        self.site.step(f"a volume over {self.options.bricks} brick(s)")
        replica = ("replica", str(self.options.replica)) if self.options.replica > 1 else ()
        bricks = [f"{SERVER}:{path}/data" for _, path in self._bricks.values()]
        command = (*self._with_own_directories(), *self._gluster(), "volume")
        self.site.run(*command, "create", VOLUME, *replica, *bricks, "force")
        self.site.run(*command, "start", VOLUME)
        for number, (_, path) in self._bricks.items():
            self.site.adopt(f"brick.{number}", self._pid_of(path))

    def _pid_of(self, brick: Path) -> int:
        name = f"{SERVER}-{str(brick / 'data').strip('/').replace('/', '-')}.pid"
        return int((self.site.directory / "run/vols" / VOLUME / name).read_text())
