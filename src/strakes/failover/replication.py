"""DRBD resources (8.4 and 9) with effective values. The section ``common`` supplies defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from strakes.failover.blocks import Block
from strakes.failover.known_options import options_of


@dataclass(frozen=True)
class Host:
    """One node of a DRBD resource. ``volumes``: number -> (device, disk, meta-disk). ``addresses``: one per path."""

    name: str
    volumes: dict[str, tuple[str, str, str]]
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Resource:
    """One DRBD resource: one or more replicated devices that are promoted together."""

    block: Block
    common: Block

    @property
    def name(self) -> str:
        """Return the name of the resource, or an empty text."""
        return self.block.words[0] if self.block.words else ""

    @cached_property
    def dialect9(self) -> bool:
        """Return whether the resource uses a feature of DRBD 9."""
        if self._connections or any(host.get("node-id") for host in self.block.all("on")):
            return True
        inner = [block for holder in (self.block, self.common) for _, block in holder.sections()]
        return any(
            key in options_of(f"9 {block.name}") and key not in options_of(f"8.4 {block.name}")
            for block in inner
            for key, _ in block.settings
        )

    @property
    def _connections(self) -> list[Block]:
        return [*self.block.all("connection"), *self.block.all("connection-mesh")]

    @property
    def _volumes(self) -> list[Block]:
        hosts = (*self.block.all("on"), *self.block.all("floating"))
        return [volume for holder in (self.block, *hosts, *self._connections) for volume in holder.all("volume")]

    def all_values(self, section: str, key: str) -> list[str]:
        """Return the distinct values of an option, which may differ between connections or volumes."""
        general = self._value(self.block, section, key) or self._value(self.common, section, key)
        within = {"net": self._connections, "disk": [*self._volumes, *self._connections]}.get(section, [])
        special = [value for block in within if (value := self._value(block, section, key))]
        everywhere = section == "net" and within and len(special) == len(within)
        return list(dict.fromkeys([*special, *([general] if general and not everywhere else [])]))

    def option(self, section: str, key: str, default: str = "") -> str:
        """Return the first value of an option, or the default."""
        return next(iter(self.all_values(section, key)), default)

    @staticmethod
    def _value(parent: Block, section: str, key: str) -> str:
        found = ""
        for name, value in parent.one(section).settings:
            if name in (key, f"no-{key}"):
                # DRBD 8.3 has no-disk-flushes instead of "disk-flushes no".
                found = "no" if name != key else value or "yes"
        return found

    @property
    def protocols(self) -> list[str]:
        """Return the distinct replication protocols (A, B or C)."""
        return self.all_values("net", "protocol") or [self.block.get("protocol") or self.common.get("protocol") or "C"]

    @property
    def is_for_a_distance(self) -> bool:
        """Return whether the resource replicates to a distant site: over a proxy, or as a stacked resource."""
        sections = [block for _, block in self.block.sections()]
        return any(block.name in ("proxy", "stacked-on-top-of") or "proxy" in block.words for block in sections)

    @property
    def fencing(self) -> list[str]:
        """Return the distinct fencing policies."""
        return self.all_values("net", "fencing") or self.all_values("disk", "fencing") or ["dont-care"]

    @cached_property
    def hosts(self) -> tuple[Host, ...]:
        """Return the nodes of the resource with their volumes and addresses."""
        return tuple(self._hosts())

    def _hosts(self) -> Iterator[Host]:
        paths: dict[str, list[str]] = {}
        for connection in self._connections:
            for block in (connection, *connection.all("path")):
                for key, value in block.settings:
                    words = value.split()
                    if key == "host" and words and "address" in words:
                        paths.setdefault(words[0], []).append(words[-1])
        shared = self._side(self.block)
        for block in self.block.all("on"):
            for name in block.words:
                own = self._side(block)
                none = ("", "", "")
                merged = {one: _filled(own.get(one, none), shared.get(one, none)) for one in {**shared, **own}}
                address = block.get("address").split()[-1:]
                yield Host(name, merged, (*address, *paths.get(name, ())))

    @staticmethod
    def _side(block: Block) -> dict[str, tuple[str, str, str]]:
        def row(part: Block) -> tuple[str, str, str]:
            metadata = part.get("meta-disk") or part.get("flexible-meta-disk")
            return _device(part.get("device")), part.get("disk"), metadata

        plain = row(block)
        sides = {"0": plain} if any(plain[:2]) else {}
        for volume in block.all("volume"):
            sides[volume.words[0] if volume.words else "0"] = _filled(row(volume), ("", "", plain[2]))
        return sides

    @property
    def devices(self) -> set[str]:
        """Return all paths of the replicated devices, such as ``/dev/drbd0`` and ``/dev/drbd/by-res/r0/0``."""
        blocks = [self.block, *self.block.all("on"), *self._volumes]
        names = {name for block in blocks for name in block.get("device").split()[:1] if name.startswith("/dev/")}
        for host in self.hosts:
            for number, (device, _, _) in host.volumes.items():
                names |= {device, f"/dev/drbd/by-res/{self.name}/{number}"} - {""}
                if number == "0":
                    names.add(f"/dev/drbd/by-res/{self.name}")
        return names

    @property
    def disks(self) -> set[str]:
        """Return the backing disks of the resource on all nodes."""
        return {disk for host in self.hosts for _, disk, _ in host.volumes.values() if disk and disk != "none"}

    @property
    def metadata(self) -> set[str]:
        """Return the external metadata devices on all nodes."""
        found = {meta.partition("[")[0].strip() for host in self.hosts for _, _, meta in host.volumes.values()}
        return {device for device in found if device.startswith("/dev/")}


def resources_of(files: Iterable[Block]) -> tuple[Resource, ...]:
    """Return all DRBD resources in the files. The sections ``common`` of all files are merged."""
    whole = Block("", blocks=[block for top in files for block in top.blocks])
    common = whole.one("common")
    return tuple(Resource(block, common) for block in whole.all("resource"))


def _filled(own: tuple[str, str, str], other: tuple[str, str, str]) -> tuple[str, str, str]:
    return own[0] or other[0], own[1] or other[1], own[2] or other[2]


def _device(text: str) -> str:
    words = text.split()
    minor = f"/dev/drbd{words[words.index('minor') + 1]}" if "minor" in words[:-1] else ""
    return minor or (words[0] if words else "")
