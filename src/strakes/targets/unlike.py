"""Data and metadata targets that are not like the others: full, unusable, smaller, fuller.

Each of them bends a measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from strakes.targets.description import DataTarget, Description, MetadataTarget
from strakes.units import format_bytes

_WORKING = frozenset({"active", "up", "online"})
# Less room than this and new files go elsewhere, or nowhere.
_FULL = 0.05
# Above this spread Lustre no longer takes data targets in turn (lod.*.qos_threshold_rr, 17 % unless changed).
_UNEVEN = 0.17
_OTHER_SIZE = 0.10


def unlike_targets(description: Description) -> tuple[str, ...]:
    """Return a sentence for each target that is unhealthy or differs from the others; empty if all are alike.

    >>> alike = DataTarget("ost0", 0, "a", "active", 100 << 30, 50 << 30, 1000, 900)
    >>> full = DataTarget("ost1", 1, "a", "active", 100 << 30, 1 << 30, 1000, 900)
    >>> unlike_targets(Description("labfs", "", data_targets=(alike, alike, full)))
    ('ost1 is full: 1 GiB of 100 GiB are free.',)
    """
    return (*_unlike(description.data_targets), *_unlike(description.metadata_targets))


def _unlike(targets: Sequence[DataTarget] | Sequence[MetadataTarget]) -> list[str]:
    ill = {
        target.name: line for target in targets if (line := _ill(target, any(other.total_bytes for other in targets)))
    }
    sound = [target for target in targets if target.name not in ill and target.total_bytes]
    odd = {target.name: _odd(target, [other for other in sound if other is not target]) for target in sound}
    lines = (ill.get(target.name) or odd.get(target.name, "") for target in targets)
    return [line for line in lines if line]


def _ill(target: DataTarget | MetadataTarget, others_report: bool) -> str:
    """Return the trouble of a target, independent of the others."""
    if target.state and target.state.lower() not in _WORKING:
        return f"{target.name} cannot be used like the others: {target.state}."
    if target.total_bytes == 0:
        return f"{target.name} did not report its free space." if others_report else ""
    if target.free_bytes < _FULL * target.total_bytes:
        return (
            f"{target.name} is full: {format_bytes(target.free_bytes)} of {format_bytes(target.total_bytes)} are free."
        )
    if target.free_inodes < _FULL * target.total_inodes:
        return f"{target.name} is out of inodes: {target.free_inodes:,} of {target.total_inodes:,} are free."
    return ""


def _odd(target: DataTarget | MetadataTarget, others: Sequence[DataTarget | MetadataTarget]) -> str:
    """How a target differs from most of the others."""
    if not others:
        return ""
    size = median(other.total_bytes for other in others)
    use = median(_used(other) for other in others)
    if abs(target.total_bytes - size) > _OTHER_SIZE * size:
        return f"{target.name} has {format_bytes(target.total_bytes)} where others have {format_bytes(size)}."
    if abs(_used(target) - use) > _UNEVEN:
        return (
            f"{target.name} is {_used(target):.0%} full where others are {use:.0%} full: new files are not "
            "spread evenly."
        )
    return ""


def _used(target: DataTarget | MetadataTarget) -> float:
    return 1 - target.free_bytes / target.total_bytes
