"""DRBD's resources as configured: what a resource says itself, else what ``common`` says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from strakes.failover.blocks import Block


@dataclass(frozen=True)
class Resource:
    """One replicated device. ``dialect9`` when it is written in the words of DRBD 9."""

    block: Block
    common: Block

    @property
    def name(self) -> str:
        return self.block.words[0] if self.block.words else ""

    @property
    def hosts(self) -> list[Block]:
        return self.block.all("on")

    @property
    def dialect9(self) -> bool:
        return bool(self.block.all("connection") or self.block.all("connection-mesh")) or any(host.get("node-id") for host in self.hosts)

    def option(self, section: str, key: str, default: str = "") -> str:
        return self.block.one(section).get(key) or self.common.one(section).get(key) or default

    @property
    def protocol(self) -> str:
        return self.option("net", "protocol") or self.block.get("protocol") or self.common.get("protocol")

    @property
    def fencing(self) -> str:
        """The policy, wherever the dialect wants it."""
        return self.option("net", "fencing") or self.option("disk", "fencing")

    @property
    def devices(self) -> dict[str, str]:
        """Host -> device that it makes."""
        shared = self.block.get("device")
        return {host.words[0]: _device(host.get("device") or shared) for host in self.hosts if host.words}


def resources_of(files: Iterable[Block]) -> tuple[Resource, ...]:
    blocks = list(files)
    common = Block("common")
    for top in blocks:
        for block in top.all("common"):
            common.settings += block.settings
            common.blocks += block.blocks
    return tuple(Resource(block, common) for top in blocks for block in top.all("resource"))


def _device(text: str) -> str:
    """``/dev/drbd0 minor 0`` and ``minor 0`` are the same device."""
    words = text.split()
    return f"/dev/drbd{words[1]}" if words[:1] == ["minor"] and len(words) > 1 else (words[0] if words else "")
