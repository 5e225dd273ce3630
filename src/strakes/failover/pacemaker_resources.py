"""Pacemaker's resources, their operations and the constraints between them, with the values in force."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

DEFAULT_TIMEOUT_S = 20.0  # Pacemaker's default time-out of an operation in seconds.
# Monitoring agent -> default name of the node attribute that it sets: first network monitors, then all monitors.
NETWORK_WATCHERS = {"ping": "pingd", "pingd": "pingd", "ethmonitor": "", "healthLNET": "pingd"}
WATCHERS = {**NETWORK_WATCHERS, "healthLUSTRE": "lustred", "diskd": "diskd"}
# Agents whose data are damaged if two nodes run them at the same time.
_KEEPERS = re.compile(
    "LVM.*|ZFS|zpool|mdraid|Raid1|crypt|SAP.*|oracle|db2.*|sybaseASE|pgsql.*|mysql|mariadb|VirtualDomain|Xen|iSCSI.*"
)
# Paths of disks that are attached to several nodes or replicated by DRBD.
_SHARED = re.compile(r"/dev/(drbd.*|mapper/mpath.*|disk/by-id/(scsi|wwn|dm-uuid-mpath)-.*)")


@dataclass(frozen=True)
class Operation:
    """An operation of a resource, with the values in force."""

    name: str
    interval_s: float
    timeout_s: float
    role: str
    on_fail: str = ""
    enabled: bool = True
    requires: str = ""

    @property
    def repeats(self) -> bool:
        """Return whether the operation is a recurring monitor."""
        return self.name == "monitor" and self.interval_s > 0


@dataclass(frozen=True)
class Primitive:
    """A resource or fencing device. ``clone``, ``group``: id of the clone or group that contains it, or empty."""

    id: str
    standard: str
    provider: str
    agent: str
    values: dict[str, str]
    meta: dict[str, str]
    operations: tuple[Operation, ...]
    clone: str = ""
    group: str = ""
    default_timeout_s: float = DEFAULT_TIMEOUT_S

    def operation(self, name: str, role: str = "") -> Operation | None:
        """Return the first operation with this name and, if a role is given, with this role."""
        return next((one for one in self.operations if one.name == name and (not role or one.role == role)), None)

    def timeout_s(self, name: str) -> float:
        """Return the time-out of an operation in seconds, or the default if none is configured."""
        operation = self.operation(name)
        return operation.timeout_s if operation else self.default_timeout_s

    @property
    def watched_attribute(self) -> str:
        """Return the node attribute that a monitoring agent such as ping sets, or an empty text."""
        if self.agent not in WATCHERS:
            return ""
        return self.values.get("name") or WATCHERS[self.agent] or f"ethmonitor-{self.values.get('interface', '')}"

    @property
    def is_drbd(self) -> bool:
        """Return whether the resource is a DRBD device."""
        return self.agent == "drbd" and self.standard == "ocf"

    @property
    def keeps_data(self) -> bool:
        """Return whether the resource damages data if two nodes run it at the same time."""
        return self.is_drbd or self.uses_disk or bool(_KEEPERS.fullmatch(self.agent))

    @property
    def is_mount(self) -> bool:
        """Return whether the resource mounts a file system."""
        return self.agent in ("Filesystem", "Lustre")

    @property
    def is_lustre(self) -> bool:
        """Return whether the resource mounts a Lustre target."""
        return self.agent == "Lustre" or (self.is_mount and self.values.get("fstype") == "lustre")

    @property
    def uses_disk(self) -> bool:
        """Return whether the resource mounts a file system, or exports a disk over the network."""
        return self.is_mount or self.agent == "iSCSILogicalUnit"

    @property
    def device(self) -> str:
        """Return the device that the resource mounts or exports, or an empty text."""
        return self.values.get("device") or self.values.get("target") or self.values.get("path", "")

    @property
    def is_on_shared_disk(self) -> bool:
        """Return whether the path of the resource's disk shows that several nodes share the disk."""
        return self.values.get("fstype", "") not in ("", "auto") and bool(_SHARED.fullmatch(self.device))

    @property
    def mount_point(self) -> str:
        """Return the mount point of the resource, or an empty text."""
        return (self.values.get("directory") or self.values.get("mountpoint", "")).rstrip("/")


@dataclass(frozen=True)
class Location:
    """A location constraint for some nodes. With a negative score, the resources avoid these nodes."""

    id: str
    resources: tuple[str, ...]
    nodes: tuple[str, ...]
    score: float
    role: str = ""
    certain: bool = True  # False if the constraint depends on values outside the CIB, such as the time.


@dataclass(frozen=True)
class Colocation:
    """A colocation of two (resource, role) pairs. A negative score keeps them on different nodes."""

    id: str
    resources: tuple[tuple[str, str], tuple[str, str]]
    score: float


@dataclass(frozen=True)
class Order:
    """An order constraint: ``then_action`` of resource ``then`` comes after ``first_action`` of resource ``first``."""

    id: str
    first: str
    first_action: str
    then: str
    then_action: str
    mandatory: bool
    symmetrical: bool


class Ties:
    """Groups, colocations and orders of a CIB. ``templates``: template by resource. ``tags``: ids by tag."""

    def __init__(
        self,
        primitives: Sequence[Primitive],
        templates: Mapping[str, str],
        tags: Mapping[str, Sequence[str]],
        colocations: Iterable[Colocation],
        orders: Iterable[Order],
    ) -> None:
        self._tags = tags
        self._members: dict[str, list[Primitive]] = defaultdict(list)
        self._groups: dict[str, list[Primitive]] = defaultdict(list)
        self._place: dict[str, int] = {}  # Resource id -> position in its group.
        for one in primitives:
            for name in dict.fromkeys((one.id, one.group, one.clone)):
                self._members[name].append(one)
            if (template := templates.get(one.id)) and template not in (one.id, one.group, one.clone):
                self._members[template].append(one)
            if one.group:
                self._place.setdefault(one.id, len(self._groups[one.group]))
                self._groups[one.group].append(one)
        self._colocated: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for constraint in colocations:
            if constraint.score == inf:
                (near, near_role), (far, far_role) = constraint.resources
                self._colocated[near].append((far, far_role))
                self._colocated[far].append((near, near_role))
        self._orders_from: dict[str, list[Order]] = defaultdict(list)
        for order in orders:
            if order.mandatory:
                self._orders_from[order.first].append(order)
        self._ids = {one.id for one in primitives}
        self._after: dict[str, frozenset[str]] = {}

    def members(self, identity: str) -> tuple[Primitive, ...]:
        """Return the resources of the group, clone, template or tag with this id, or the resource with this id."""
        found: dict[int, Primitive] = {}
        seen, waiting = {identity}, [identity]
        while waiting:
            name = waiting.pop()
            if name not in self._tags:
                found |= {id(one): one for one in self._members.get(name, ())}
                continue
            named = [other for other in dict.fromkeys(self._tags[name]) if other not in seen]
            seen |= set(named)
            waiting += reversed(named)
        return tuple(found.values())

    def tied(self, primitive: Primitive, clone: str) -> bool:
        """Return whether colocations keep a resource on the node where ``clone`` is promoted."""
        waiting, seen = [primitive.id, primitive.group, primitive.clone], {""}
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for member in self.members(name):
                waiting += [member.id, member.group]
            for far, role in self._colocated.get(name, ()):
                if far == clone or any(member.clone == clone for member in self.members(far)):
                    if role == "Promoted":
                        return True
                else:
                    waiting.append(far)
        return False

    def waits_for_promotion(self, primitive: Primitive, clone: str) -> bool:
        """Return whether orders delay the start of a resource until ``clone`` is promoted."""
        copies = {clone, *(member.id for member in self.members(clone))}
        orders = [order for name in copies for order in self._orders_from[name] if order.first_action == "promote"]
        first = [order.then for order in orders if order.symmetrical]
        return primitive.id in self._reached(first, symmetrical=True)

    def starts_after(self, later: Primitive, earlier: Primitive) -> bool:
        """Return whether a group or an order constraint delays the start of ``later`` until ``earlier`` has started."""
        if earlier.id not in self._after:
            mates = self._groups.get(earlier.group, ())
            behind = mates[self._place[earlier.id] + 1 :] if mates else ()
            names = {earlier.id, earlier.group, earlier.clone} - {""}
            orders = [order for name in names for order in self._orders_from.get(name, ())]
            reached = self._reached([*(one.id for one in behind), *(order.then for order in orders)])
            self._after[earlier.id] = frozenset(self._ids & reached)
        return later.id in self._after[earlier.id]

    def _reached(self, first: Iterable[str], *, symmetrical: bool = False) -> set[str]:
        reached, followed, waiting = set[str](), {""}, list(first)
        from_here: dict[str, int] = {}
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            own = {name}
            for member in self.members(name):
                mates = self._groups.get(member.group, [])
                place, last = self._place.get(member.id, 0), from_here.get(member.group, len(mates))
                waiting += [member.id, *(one.id for one in mates[place:last])]
                if member.group:
                    from_here[member.group] = min(place, last)
                own |= {member.group, member.clone}  # Orders of a group or clone apply to all members.
            for one in own - followed:
                waiting += [order.then for order in self._orders_from[one] if order.symmetrical or not symmetrical]
            followed |= own
        return reached
