"""What a target says of itself and what is asked of it.

Servers, data and metadata targets, layouts, placements, counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from strakes.units import format_seconds

# Per server or target: counter -> value. Names that mean the same everywhere: md.create, md.open, md.close, md.getattr,
# md.setattr, md.unlink, md.mkdir, md.rmdir, md.rename, md.lookup, md.readdir, data.read_bytes, data.write_bytes,
# data.read_requests, data.write_requests, data.device_read_bytes (what no cache of the target held),
# data.replicated_bytes, data.busy_s, data.waited_s (of all data.waited_requests together, in the target's own store),
# and md.requests: all of a metadata target, also kinds
# without a name here. What the client counted begins with "client.".
Observation = Mapping[str, Mapping[str, float]]

# What begins so is a state, not a count: the later one stands. now.memory_bytes is the memory that a server uses.
NOW = "now."
# A counter of this name is the time since which the others count; when it moves, somebody cleared them or the server
# was restarted.
SINCE = "since_unix_s"
# A number of who counts: when it moves, another server has taken over.
SERVER = "server_number"
# How often a server was lost and found again, or did not answer in time; as a state (now.), what is not 0 while it is.
LOST = "times_lost"
CLIENT = "client."

PlacementKind = Literal["inherit", "manual", "automatic"]


@dataclass(frozen=True)
class Server:
    """A process or machine that serves part of the file system.

    ``role`` is mgs, mds, oss, mon, brick, chunkserver, ...
    """

    name: str
    role: str
    address: str
    state: str


@dataclass(frozen=True)
class DataTargetState:
    """``serving``: whether its server is there. ``used``: share of its room; None where that is not known."""

    serving: bool
    used: float | None = None


@dataclass(frozen=True)
class DataTarget:
    """Where data goes: an OST, an OSD, a brick. ``index`` is None where they are not numbered."""

    name: str
    index: int | None
    server: str
    state: str
    total_bytes: int
    free_bytes: int
    total_inodes: int
    free_inodes: int
    pools: tuple[str, ...] = ()


@dataclass(frozen=True)
class MetadataTarget:
    """Where names go: an MDT, an MDS rank."""

    name: str
    index: int | None
    server: str
    state: str
    total_bytes: int
    free_bytes: int
    total_inodes: int
    free_inodes: int


@dataclass(frozen=True)
class Description:
    """A file system as its client (and, where allowed, its servers) tells it. Sizes that nobody told are 0."""

    file_system_name: str
    version: str
    servers: tuple[Server, ...] = ()
    data_targets: tuple[DataTarget, ...] = ()
    metadata_targets: tuple[MetadataTarget, ...] = ()
    pools: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    client: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LayoutComponent:
    """Part of a file with a layout of its own, from byte ``begin`` to before ``end`` (None: to the end of the file)."""

    begin: int
    end: int | None
    layout: Layout
    mirror: int = 0


@dataclass(frozen=True)
class Layout:
    """How data is spread. None: not told, or (as a wish) left to the file system. A count of -1 is every target.

    ``targets`` are the ones really used, in order, once for each stripe; a file with ``components`` has its figures
    there and only there. With the pattern "mdt" the data is on the metadata target ``first_target``. ``object_bytes``:
    a target holds a stripe in objects of this size, where the file system has a limit of its own for them.
    """

    stripe_size_bytes: int | None = None
    stripe_count: int | None = None
    first_target: int | None = None
    pool: str = ""
    pattern: str = ""
    components: tuple[LayoutComponent, ...] = ()
    targets: tuple[int, ...] = ()
    object_bytes: int | None = None


@dataclass(frozen=True)
class Striping:
    """What layouts may be asked for: at most ``data_targets`` stripes, sizes that are multiples of ``unit_bytes``.

    ``kinds``: layouts that are more than a count and a size, by name, each as what is pasted to get it.
    """

    data_targets: int
    unit_bytes: int
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """Which metadata targets hold a directory.

    "manual": on the targets named; "automatic": spread by the file system over ``count`` targets (-1: all), or, with a
    count of 1, its new subdirectories are; "inherit": where its parent puts it. ``inherited``: subdirectories get the
    same.
    """

    kind: PlacementKind
    metadata_targets: tuple[int, ...] = ()
    count: int | None = None
    hash: str = ""
    inherited: bool = False


# A failed server may cost thousands of clients their sessions.
_MOST_NAMES = 10


@dataclass(frozen=True)
class Interruption:
    """A time in which a server or target did not serve this client. ``ended_unix_s`` is None while it lasts.

    ``evicted``: this client was; ``evicted_clients``: how many were, as far as the server told; ``evicted_names``: who.
    ``or_earlier``: it may have begun before, for that is forgotten. ``within_s``: so far off the times may be.

    >>> str(Interruption("labfs-MDT0001", 1795324554, 1795324559, evicted=True))
    'labfs-MDT0001 did not serve this client from 2026-11-22 05:15:54 UTC for 5.00 s, which was evicted.'
    """

    target: str
    began_unix_s: float
    ended_unix_s: float | None
    evicted: bool = False
    evicted_clients: int | None = None
    or_earlier: bool = False
    within_s: float = 1.0
    evicted_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as a sentence."""
        began = datetime.fromtimestamp(self.began_unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        if self.or_earlier:
            began += " or earlier"
        if self.ended_unix_s is None:
            lasted = "until now"
        elif self.ended_unix_s < self.began_unix_s:
            lasted = "for an unknown time (the clock was set back)"
        else:
            at_least = "at least " if self.or_earlier else ""
            lasted = f"for {at_least}{format_seconds(self.ended_unix_s - self.began_unix_s)}"
        evicted = ", which was evicted" if self.evicted else ""
        if self.evicted_clients is not None:
            clients = "client was" if self.evicted_clients == 1 else "clients were"
            evicted += f"; {self.evicted_clients} {clients} evicted"
            if self.evicted_names:
                others = len(self.evicted_names) - _MOST_NAMES
                evicted += f": {', '.join(self.evicted_names[:_MOST_NAMES])}{f' and {others} more' * (others > 0)}"
        return f"{self.target} did not serve this client from {began} {lasted}{evicted}."


@dataclass(frozen=True)
class ConnectionChange:
    """A state that this client's connection to a target went into; ``unix_s`` may be in whole seconds, cut off."""

    target: str
    unix_s: float
    state: str


@dataclass(frozen=True)
class TargetRecovery:
    """How a target counted that it took its clients back. None where it does not tell."""

    target: str
    status: str
    duration_s: float | None = None
    clients: int | None = None
    evicted: int | None = None
    replayed: int | None = None
    started_unix_s: float | None = None
    serving: bool = True


@dataclass(frozen=True)
class Limit:
    """What cannot be done here, and why."""

    what: str
    why: str


def difference(before: Observation, after: Observation) -> dict[str, dict[str, float]]:
    """Return what was counted between two observations. A counter that was not there before began at 0.

    Left out, as nothing can be said of them: whatever is in one observation only, and all counters of a side (client or
    server) that were cleared or started anew in between; :func:`disturbed` names them.

    >>> difference({"mdt0": {"md.open": 2.0}}, {"mdt0": {"md.open": 5.0, "md.create": 1.0, "now.memory_bytes": 7.0}})
    {'mdt0': {'md.open': 3.0, 'md.create': 1.0, 'now.memory_bytes': 7.0}}
    """
    between = {}
    for name in after:
        if name not in before:
            continue
        undone = {side for side in ("", CLIENT) if _restarted(before[name], after[name], side)}
        between[name] = {
            counter: value if counter.startswith(NOW) else value - before[name].get(counter, 0.0)
            for counter, value in after[name].items()
            if _side(counter) not in undone and not counter.endswith((SINCE, SERVER, LOST))
        }
    return {name: counters for name, counters in between.items() if counters}


def lost_between(before: Observation, after: Observation) -> tuple[str, ...]:
    """Return whose server was lost, or taken over by another, between two observations.

    >>> lost_between({"mds.0": {"server_number": 4.0}}, {"mds.0": {"server_number": 5.0}})
    ('mds.0',)
    """
    return tuple(
        name
        for name in sorted(before.keys() & after.keys())
        if before[name].get(NOW + LOST)
        or after[name].get(NOW + LOST)
        or any(
            sign in before[name] and sign in after[name] and before[name][sign] != after[name][sign]
            for sign in (SERVER, CLIENT + LOST)
        )
    )


def disturbed(before: Observation, after: Observation) -> tuple[str, ...]:
    """Return what :func:`difference` leaves out, one line for people each; empty when nothing happened to the counters.

    >>> disturbed({"mdt0": {"md.open": 2.0}}, {"mdt0": {"md.open": 1.0}})
    ('mdt0: its counters were cleared or the server was restarted during the measurement',)
    """
    lines = []
    for name in sorted({*before, *after}):
        if not before.get(name):
            lines.append(f"{name}: no counters from before the measurement")
        elif not after.get(name):
            lines.append(f"{name}: no counters from after the measurement")
        else:
            for side, whose, what in (
                ("", "its", "the server was restarted"),
                (CLIENT, "the client's", "the client was remounted"),
            ):
                if _restarted(before[name], after[name], side):
                    lines.append(f"{name}: {whose} counters were cleared or {what} during the measurement")
    return tuple(lines)


def _side(counter: str) -> str:
    return CLIENT if counter.startswith(CLIENT) else ""


def _restarted(before: Mapping[str, float], after: Mapping[str, float], side: str) -> bool:
    if any(before.get(side + sign) != after.get(side + sign) for sign in (SINCE, SERVER)):
        return True
    counts = {
        counter: value for counter, value in before.items() if _side(counter) == side and not counter.startswith(NOW)
    }
    return any(after.get(counter, 0.0) < value for counter, value in counts.items())


def layout_differences(wanted: Layout, given: Layout) -> tuple[str, ...]:
    """How what was given differs from what was asked for, one text for each value.

    What was not asked for does not count.

    >>> layout_differences(Layout(stripe_count=99), Layout(stripe_count=4, targets=(0, 1, 2, 3)))
    ('stripe count 4 instead of 99',)
    """
    lines = []
    # "Every target" may come back as that or as their number.
    if wanted.stripe_count not in (None, -1, given.stripe_count):
        lines.append(f"stripe count {_shown(given.stripe_count)} instead of {wanted.stripe_count}")
    for what, asked, got in (
        ("stripe size", wanted.stripe_size_bytes, given.stripe_size_bytes),
        ("first target", wanted.first_target, given.first_target),
        ("pool", wanted.pool or None, given.pool),
        ("pattern", wanted.pattern or None, given.pattern),
        ("targets", wanted.targets or None, given.targets),
        ("object size", wanted.object_bytes, given.object_bytes),
    ):
        if asked is not None and asked != got:
            lines.append(f"{what} {_shown(got)} instead of {_shown(asked)}")
    if wanted.components:
        lines += _component_differences(wanted.components, given.components)
    return tuple(lines)


def _component_differences(wanted: tuple[LayoutComponent, ...], given: tuple[LayoutComponent, ...]) -> list[str]:
    if [(part.begin, part.end) for part in wanted] != [(part.begin, part.end) for part in given]:
        return [f"components {_extents(given)} instead of {_extents(wanted)}"]
    return [
        f"component {number}: {line}"
        for number, (asked, got) in enumerate(zip(wanted, given, strict=True), start=1)
        for line in layout_differences(asked.layout, got.layout)
    ]


def _extents(components: tuple[LayoutComponent, ...]) -> str:
    return ", ".join(f"{part.begin}-{'end' if part.end is None else part.end}" for part in components) or "none"


def placement_differences(wanted: Placement, given: Placement) -> tuple[str, ...]:
    """Return the same for placements.

    >>> placement_differences(Placement("automatic", count=99), Placement("automatic", (0, 1), count=2))
    ('count 2 instead of 99',)
    """
    lines = []
    if wanted.metadata_targets and wanted.metadata_targets != given.metadata_targets:
        lines.append(f"metadata targets {_shown(given.metadata_targets)} instead of {_shown(wanted.metadata_targets)}")
    if wanted.count not in (None, -1, given.count):
        lines.append(f"count {_shown(given.count)} instead of {wanted.count}")
    if wanted.hash and wanted.hash != given.hash:
        lines.append(f"hash {_shown(given.hash)} instead of {wanted.hash}")
    if wanted.inherited and not given.inherited:
        lines.append("subdirectories do not inherit it")
    return tuple(lines)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value) or "none"
    return "not told" if value is None else str(value) or "none"
