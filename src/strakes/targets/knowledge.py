"""Collect all facts about a file system, for ``strakes target`` and for runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from strakes.base.errors import StrakesError
from strakes.base.units import format_bytes
from strakes.targets.description import Description, Layout, Limit, Placement, StorageTarget
from strakes.targets.target import Target, TargetFacts

_WORKING = frozenset({"active", "up", "online"})
# A target counts as full if less than this share of its space is free.
_FULL_SHARE = 0.05
# If the used shares of targets differ by 17 %, Lustre ends round-robin allocation (lod.*.qos_threshold_rr).
_UNEVEN_SHARE = 0.17
_OTHER_SIZE_SHARE = 0.10


def unlike_targets(description: Description) -> tuple[str, ...]:
    """Return a sentence for each target that is unhealthy, or whose size or usage differs from other targets."""
    return (*_unlike(description.data_targets), *_unlike(description.metadata_targets))


def _unlike(targets: Sequence[StorageTarget]) -> list[str]:
    report = any(target.total_bytes for target in targets)
    lines = {target.name: _ill(target, report) for target in targets}
    sound = [target for target in targets if target.total_bytes and not lines[target.name]]
    lines |= {target.name: _odd(target, [other for other in sound if other is not target]) for target in sound}
    return [line for line in lines.values() if line]


def _ill(target: StorageTarget, others_report: bool) -> str:
    if target.state and target.state.lower() not in _WORKING:
        return f"{target.name} is not fully usable: {target.state}."
    if target.total_bytes == 0:
        return f"{target.name} did not report its free space." if others_report else ""
    if target.free_bytes < _FULL_SHARE * target.total_bytes:
        free, total = format_bytes(target.free_bytes), format_bytes(target.total_bytes)
        return f"{target.name} is full: {free} of {total} are free."
    if target.free_inodes < _FULL_SHARE * target.total_inodes:
        return f"{target.name} is out of inodes: {target.free_inodes:,} of {target.total_inodes:,} are free."
    return ""


def _odd(target: StorageTarget, others: Sequence[StorageTarget]) -> str:
    if not others:
        return ""
    size = median(other.total_bytes for other in others)
    use = median(_used(other) for other in others)
    if abs(target.total_bytes - size) > _OTHER_SIZE_SHARE * size:
        return f"{target.name} has {format_bytes(target.total_bytes)}, but other targets have {format_bytes(size)}."
    if abs(_used(target) - use) > _UNEVEN_SHARE:
        full = f"{target.name} is {_used(target):.0%} full, but other targets are {use:.0%} full"
        return f"{full}: new files are not spread evenly."
    return ""


def _used(target: StorageTarget) -> float:
    return 1 - target.free_bytes / target.total_bytes


T = TypeVar("T")


@dataclass(frozen=True)
class Knowledge:
    """All facts about the file system of a directory, with the layout and the placement of this directory.

    ``unlike``: a sentence for each storage target or server that is unhealthy or differs from the others.
    """

    facts: TargetFacts
    description: Description
    layout: Layout | None
    placement: Placement | None
    controls: tuple[str, ...]
    limits: tuple[Limit, ...]
    unlike: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        document = asdict(self)
        facts = document.pop("facts")
        return {**facts, "path": str(facts["path"]), **document}


def know(target: Target) -> Knowledge:
    """Return all facts about the file system of a directory, and in ``limits`` the reasons for missing facts.

    Raises StrakesError if the sizes are unknown.
    """
    limits: list[Limit] = []
    facts = target.facts()
    description = target.describe()
    layout = _asked(target.layout, target.path, "read the layout of this directory", limits)
    placement = _asked(target.placement, target.path, "read the placement of this directory", limits)
    unlike = (*unlike_targets(description), *target.trouble())
    return Knowledge(facts, description, layout, placement, target.controls(), (*target.limits(), *limits), unlike)


def _asked(ask: Callable[[Path], T], path: Path, what: str, limits: list[Limit]) -> T | None:
    try:
        return ask(path)
    except StrakesError as error:
        limits.append(Limit(what, error.why or error.what))
        return None
