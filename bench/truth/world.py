"""Simulated file systems (worlds) with known rates, to check the answers of a survey."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan import Phase

if TYPE_CHECKING:
    import numpy as np

MIB = 1024.0**2


@dataclass(frozen=True)
class World:
    """A simulated file system: rates in B/s, metadata operations per second, and factors of settings.

    ``half_*``: transfer size in bytes at half of the maximum rate. ``*_ranks``: number of ranks -> factor on the rate.
    """

    name: str
    write: float = 400 * MIB
    read: float = 500 * MIB
    half_write: float = 0.0
    half_read: float = 0.0
    large_write: float = 1.0
    direct_write: float = 1.0
    direct_read: float = 1.0
    write_ranks: Mapping[int, float] = field(default_factory=dict)
    read_ranks: Mapping[int, float] = field(default_factory=dict)
    create_ranks: Mapping[int, float] = field(default_factory=dict)
    shared_write: float = 1.0
    shared_read: float = 1.0
    strided_write: float = 1.0
    strided_read: float = 1.0
    operations: float = 8000.0
    shared_directory: Mapping[str, float] = field(default_factory=dict)

    def rate(self, phase: Phase, ranks: int) -> float:
        if isinstance(phase, MetadataPhase):
            rate = self.operations * (self.create_ranks.get(ranks, 1.0) if phase.operation == "file-create" else 1.0)
            return rate * (self.shared_directory.get(phase.operation, 1.0) if phase.directory == "shared" else 1.0)
        assert isinstance(phase, TransferPhase)
        writes = phase.operation == "write"
        rate = (self.write if writes else self.read) * (self.write_ranks if writes else self.read_ranks).get(ranks, 1.0)
        half = self.half_write if writes else self.half_read
        rate *= phase.transfer_bytes / (phase.transfer_bytes + half)
        if writes and phase.transfer_bytes > MIB and not phase.direct:
            rate *= self.large_write
        if phase.direct:
            rate *= self.direct_write if writes else self.direct_read
        if phase.layout == "shared-file":
            rate *= self.shared_write if writes else self.shared_read
            if phase.access == "strided":
                rate *= self.strided_write if writes else self.strided_read
        return rate


EQUAL = World("equal")


def planted(effect: float, generator: np.random.Generator) -> World:
    """Return a world where the factor of a setting is 1 (probability 1/2), ``effect`` (1/4) or 1 / ``effect`` (1/4)."""

    def factor() -> float:
        if generator.random() < 0.5:
            return 1.0
        return effect if generator.random() < 0.5 else 1 / effect

    return replace(
        EQUAL,
        name=f"planted {effect:g}",
        large_write=factor(),
        direct_write=factor(),
        direct_read=factor(),
        write_ranks={1: factor(), 8: factor()},
        read_ranks={1: factor(), 8: factor()},
        create_ranks={1: factor(), 16: factor()},
        shared_write=factor(),
        shared_read=factor(),
        strided_write=factor(),
        strided_read=factor(),
        shared_directory={name: factor() for name in ("file-create", "file-stat", "file-remove")},
    )


def mixed(generator: np.random.Generator) -> World:
    """Return a realistic world, where settings change rates by random factors from 1 (no effect) to about 10."""

    def factor() -> float:
        spread = generator.choice([0.0, 0.03, 0.1, 0.3, 1.0], p=[0.3, 0.2, 0.15, 0.2, 0.15])
        return math.exp(spread * float(generator.standard_normal()))

    return World(
        "mixed",
        half_write=float(generator.choice([0.0, 4096.0, 65536.0])),
        half_read=float(generator.choice([0.0, 4096.0, 65536.0])),
        large_write=factor(),
        direct_write=factor(),
        direct_read=factor(),
        write_ranks={1: factor(), 8: factor()},
        read_ranks={1: factor(), 8: factor()},
        create_ranks={1: factor(), 16: factor()},
        shared_write=factor(),
        shared_read=factor(),
        strided_write=factor(),
        strided_read=factor(),
        shared_directory={name: factor() for name in ("file-create", "file-stat", "file-remove")},
    )
