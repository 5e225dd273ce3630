"""Pacemaker's resources, their operations and the constraints between them, with effective values."""

from __future__ import annotations

from dataclasses import dataclass

# Pacemaker's default time-out for an operation, in seconds.
DEFAULT_TIMEOUT_S = 20.0
# Agent that monitors a network or server -> default name of the node attribute with its result.
WATCHERS = {"ping": "pingd", "pingd": "pingd", "ethmonitor": "", "healthLNET": "pingd", "healthLUSTRE": "lustred"}


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
        return self.agent == "drbd"

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
