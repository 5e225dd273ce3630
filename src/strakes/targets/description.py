"""The parts of a file system as frozen values: servers, data and metadata targets, layouts, placements, counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from strakes.base.units import format_seconds

# Per server or target: counter -> value. Names that mean the same everywhere: md.create, md.open, md.close, md.getattr,
# md.setattr, md.unlink, md.mkdir, md.rmdir, md.rename, md.lookup, md.readdir, data.read_bytes, data.write_bytes,
# data.read_requests, data.write_requests, data.device_read_bytes (what no cache of the target held),
# data.replicated_bytes, data.busy_s, data.waited_s (of all data.waited_requests together, in the target's own store),
# and md.requests: all of a metadata target, also kinds
# without a name here. What the client counted begins with "client.".
Observation = Mapping[str, Mapping[str, float]]

# Prefix of states, for which the later value counts, not the difference. now.memory_bytes: memory used by a server.
NOW = "now."
# A counter of this name is the time since which the others count; when it moves, somebody cleared them or the server
# was restarted.
SINCE = "since_unix_s"
# A number of who counts: when it moves, another server has taken over.
SERVER = "server_number"
# Number of times a server was lost or timed out; as a state (now.), not 0 while it is lost.
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
    """``serving``: whether its server answers. ``used``: used share of its space, or None if unknown."""

    serving: bool
    used: float | None = None


@dataclass(frozen=True)
class StorageTarget:
    """``index`` is None if the targets are not numbered; a size of 0 is unknown."""

    name: str
    index: int | None = None
    server: str = ""
    state: str = ""
    total_bytes: int = 0
    free_bytes: int = 0
    total_inodes: int = 0
    free_inodes: int = 0


@dataclass(frozen=True)
class DataTarget(StorageTarget):
    """A device for data: an OST, an OSD, a brick."""

    pools: tuple[str, ...] = ()


class MetadataTarget(StorageTarget):
    """Where names go: an MDT, an MDS rank."""


@dataclass(frozen=True)
class Description:
    """A file system as reported by its client and, if allowed, its servers. Unknown sizes are 0."""

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
    """The layout of part of a file, from byte ``begin`` to before ``end`` (None: to the end of the file)."""

    begin: int
    end: int | None
    layout: Layout
    mirror: int = 0


@dataclass(frozen=True)
class Layout:
    """The distribution of data over targets. None: unknown, or in a request the file system's choice.

    ``stripe_count``: -1 means all targets. ``targets``: the targets used, in order of the stripes. A file with
    ``components`` has all other values there only. With the pattern "mdt" the data is on the metadata target
    ``first_target``. ``object_bytes``: size of the objects that hold a stripe, if the file system limits it.
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
    """The possible layouts: at most ``data_targets`` stripes, sizes that are multiples of ``unit_bytes``.

    ``kinds``: layouts with more than a count and a size, by name, each with the options that set it.
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


# A failed server may cost thousands of clients their sessions. If doubled, the names fill three lines.
_MOST_NAMES = 10


@dataclass(frozen=True)
class Interruption:
    """A time during which a server or target did not serve this client. ``ended_unix_s`` is None while it lasts.

    ``evicted``: whether this client was evicted. ``evicted_clients``, ``evicted_names``: number and names of evicted
    clients, if the server reports them. ``or_earlier``: it may have begun before the recorded history. ``within_s``:
    error of the times in seconds.
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
    """A target's counters of its last recovery. None: not reported."""

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
    """An operation that is not possible on this file system, and the reason."""

    what: str
    why: str


def difference(before: Observation, after: Observation) -> dict[str, dict[str, float]]:
    """Return the differences of the counters between two observations. A new counter began at 0.

    Omits targets that are in one observation only, and all counters of a side (client or server) that was cleared or
    restarted in between; :func:`disturbed` names them.
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
    """Return whose server was lost, or taken over by another, between two observations."""
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
    """Return a sentence for each set of counters that :func:`difference` leaves out."""
    lines = []
    for name in sorted({*before, *after}):
        missing = "before" if not before.get(name) else "after" if not after.get(name) else ""
        if missing:
            lines.append(f"{name}: no counters from {missing} the measurement")
            continue
        for side, words in (
            ("", "its counters were cleared or the server was restarted"),
            (CLIENT, "the client's counters were cleared or the client was remounted"),
        ):
            if _restarted(before[name], after[name], side):
                lines.append(f"{name}: {words} during the measurement")
    return tuple(lines)


def _side(counter: str) -> str:
    return CLIENT if counter.startswith(CLIENT) else ""


def _restarted(before: Mapping[str, float], after: Mapping[str, float], side: str) -> bool:
    if any(before.get(side + sign) != after.get(side + sign) for sign in (SINCE, SERVER)):
        return True
    counts = (counter for counter in before if _side(counter) == side and not counter.startswith(NOW))
    return any(after.get(counter, 0.0) < before[counter] for counter in counts)


_LAYOUT = ("stripe_count", "stripe_size_bytes", "first_target", "pool", "pattern", "targets", "object_bytes")


def layout_differences(wanted: Layout, given: Layout) -> tuple[str, ...]:
    """Return the differences between the given and the requested layout, one text for each value.

    Values that were not requested do not count.
    """
    lines = _differences(wanted, given, *_LAYOUT)
    if wanted.components and _extents(wanted) != _extents(given):
        return (*lines, f"components {_extents(given)} instead of {_extents(wanted)}")
    pairs = zip(wanted.components, given.components, strict=False)
    inner = (
        f"component {number}: {line}"
        for number, (asked, got) in enumerate(pairs, start=1)
        for line in layout_differences(asked.layout, got.layout)
    )
    return (*lines, *inner)


def _extents(layout: Layout) -> str:
    extents = (f"{part.begin}-{'end' if part.end is None else part.end}" for part in layout.components)
    return ", ".join(extents) or "none"


def placement_differences(wanted: Placement, given: Placement) -> tuple[str, ...]:
    """Return the same for placements."""
    lines = _differences(wanted, given, "metadata_targets", "count", "hash")
    return (*lines, "subdirectories do not inherit it") if wanted.inherited and not given.inherited else lines


def _differences(wanted: object, given: object, *names: str) -> tuple[str, ...]:
    """Return a text for each value that was wanted and not given.

    A count of -1, every target, may come back as that or as their number.
    """
    values = ((name, getattr(wanted, name), getattr(given, name)) for name in names)
    return tuple(
        f"{name.replace('size_bytes', 'size').replace('_', ' ')} {_shown(got)} instead of {_shown(asked)}"
        for name, asked, got in values
        if asked not in (None, "", (), -1, got)
    )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value) or "none"
    return "not told" if value is None else str(value) or "none"
