"""Pacemaker's resources, their operations and the constraints between them, with effective values."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Pacemaker's default time-out for an operation, in seconds.
DEFAULT_TIMEOUT_S = 20.0
# Agent that monitors a network or server -> default name of the node attribute with its result.
WATCHERS = {"ping": "pingd", "pingd": "pingd", "ethmonitor": "", "healthLNET": "pingd", "healthLUSTRE": "lustred"}
# Agents whose data are damaged if two nodes run them at the same time.
_KEEPERS = re.compile(
    "LVM.*|ZFS|zpool|mdraid|Raid1|crypt|SAP.*|oracle|db2.*|sybaseASE|pgsql.*|mysql|mariadb|VirtualDomain|Xen|iSCSI.*"
)
# Paths of disks that several nodes have, or that DRBD replicates.
_SHARED = re.compile(r"/dev/(drbd.*|mapper/mpath.*|disk/by-id/(scsi|wwn|dm-uuid-mpath)-.*)")


@dataclass(frozen=True)
class Operation:
    """One operation of a resource, with effective values."""

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
    """One resource or fencing device. ``clone``, ``group``: id of the clone or group around it, or empty."""

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
        """Return whether data are damaged if two nodes run the resource at the same time."""
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
        """Return whether the resource mounts a file system or exports a disk."""
        return self.is_mount or self.agent == "iSCSILogicalUnit"

    @property
    def device(self) -> str:
        """Return the device that the resource mounts or exports, or an empty text."""
        return self.values.get("device") or self.values.get("target") or self.values.get("path", "")

    @property
    def is_on_shared_disk(self) -> bool:
        """Return whether the resource uses a disk that several nodes have for sure."""
        return self.values.get("fstype", "") not in ("", "auto") and bool(_SHARED.fullmatch(self.device))

    @property
    def mount_point(self) -> str:
        """Return the mount point of the resource, or an empty text."""
        return (self.values.get("directory") or self.values.get("mountpoint", "")).rstrip("/")


@dataclass(frozen=True)
class Location:
    """A location constraint for some nodes. With a negative score, resources avoid these nodes."""

    id: str
    resources: tuple[str, ...]
    nodes: tuple[str, ...]
    score: float
    role: str = ""
    certain: bool = True  # False if the current time or other values outside the CIB decide


@dataclass(frozen=True)
class Colocation:
    """A colocation of two (resource, role) pairs. A negative score keeps them on different nodes."""

    id: str
    resources: tuple[tuple[str, str], tuple[str, str]]
    score: float


@dataclass(frozen=True)
class Order:
    """An order: ``then_action`` of the resource ``then`` follows ``first_action`` of the resource ``first``."""

    id: str
    first: str
    first_action: str
    then: str
    then_action: str
    mandatory: bool
    symmetrical: bool
