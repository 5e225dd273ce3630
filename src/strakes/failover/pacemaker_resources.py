"""Pacemaker's resources, their operations and the constraints between them, with effective values."""

from __future__ import annotations

from dataclasses import dataclass

# Pacemaker's default time-out for an operation, in seconds.
DEFAULT_TIMEOUT_S = 20.0
# Agent that monitors a network or server -> default name of the node attribute that holds its result.
WATCHERS = {"ping": "pingd", "pingd": "pingd", "ethmonitor": "", "healthLNET": "pingd", "healthLUSTRE": "lustred"}


@dataclass(frozen=True)
class Operation:
    """One operation of a resource, with the values of ``op_defaults`` or Pacemaker's defaults where it sets none."""

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
    """One resource or fencing device. ``clone``, ``group``: ids, or empty. ``meta``: effective meta attributes."""

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
        """Return the first operation with this name (and role, if one is given), or None."""
        return next((one for one in self.operations if one.name == name and (not role or one.role == role)), None)

    def timeout_s(self, name: str) -> float:
        """Return the time-out of an operation in seconds; the default time-out if the operation is not configured."""
        operation = self.operation(name)
        return operation.timeout_s if operation else self.default_timeout_s

    @property
    def watched_attribute(self) -> str:
        """Return the node attribute in which an agent such as ping stores its result; empty for other agents."""
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
        """Return whether the resource mounts a file system, or exports a disk to clients."""
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
    """A location constraint: resources prefer some nodes, or avoid them if the score is negative."""

    id: str
    resources: tuple[str, ...]
    nodes: tuple[str, ...]
    score: float
    role: str = ""
    certain: bool = True  # False if it depends on the time or on other values that are not in the CIB


@dataclass(frozen=True)
class Colocation:
    """A colocation of two (resource, role) pairs: on the same node, or on different nodes if the score is negative."""

    id: str
    resources: tuple[tuple[str, str], tuple[str, str]]
    score: float


@dataclass(frozen=True)
class Order:
    """An order of two actions: ``then_action`` of the resource ``then`` waits for ``first_action`` of ``first``."""

    id: str
    first: str
    first_action: str
    then: str
    then_action: str
    mandatory: bool
    symmetrical: bool
