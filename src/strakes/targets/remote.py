"""Base class of network file systems that strakes cannot configure, and common names of their counters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from strakes.base.errors import StrakesError
from strakes.targets.command import DEFAULT_TIMEOUT_S, Runner
from strakes.targets.description import Description, Limit
from strakes.targets.mountinfo import LAB_NETWORK, read_mounts
from strakes.targets.target import Target, said

# Common name of a counter -> names of the operations that it counts in FUSE, NFS, Ceph and GlusterFS.
_OPERATIONS = {
    "md.create": ("create", "mknod", "symlink"),
    "md.open": ("open", "open_noattr"),
    "md.close": ("close", "release"),
    "md.getattr": ("getattr", "stat", "fstat"),
    "md.setattr": ("setattr", "fsetattr", "setxattr", "rmxattr"),
    "md.unlink": ("unlink", "remove"),
    "md.mkdir": ("mkdir",),
    "md.rmdir": ("rmdir",),
    "md.rename": ("rename",),
    "md.lookup": ("lookup", "lookupino"),
    "md.readdir": ("readdir", "readdirp", "readdirplus"),
    "data.read_requests": ("read", "readv"),
    "data.write_requests": ("write", "writev"),
}


def add_up(counted: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of operation counts for each counter (``md.open``, ...). ``counted``: counts by operation."""
    own = {name.lower(): value for name, value in counted.items()}
    return {name: sum(own.get(one, 0.0) for one in names) for name, names in _OPERATIONS.items()}


class RemoteTarget(Target):
    """A network file system that strakes cannot configure. ``cannot``: impossible operations, each with the reason."""

    cannot: ClassVar[tuple[tuple[str, str], ...]]

    @cached_property
    def run_near_servers(self) -> Runner:
        """Runner for tools that connect to servers. For a lab, it runs them in the lab's network (root only)."""
        network = os.path.join(os.path.dirname(self.mount.mount_point), LAB_NETWORK)
        if not any(other.mount_point == network and other.file_system == "nsfs" for other in read_mounts()):
            return self.run
        inside = ("nsenter", f"--net={network}")
        return lambda argv, timeout_s=DEFAULT_TIMEOUT_S: self.run((*inside, *argv), timeout_s)

    def describe(self) -> Description:
        known = super().describe()
        try:
            return replace(self._parts(known), client=known.client)
        except StrakesError as error:
            return replace(known, notes=(said(error),))

    def _parts(self, known: Description) -> Description:
        return known

    def trouble(self) -> tuple[str, ...]:
        try:
            targets = self._parts(super().describe()).data_targets
        except StrakesError as error:
            return (f"The state of the servers is not known: {said(error)}.",)
        return tuple(f"{target.name} is {target.state}." for target in targets if target.state != "online")

    def limits(self) -> tuple[Limit, ...]:
        return tuple(Limit(what, why) for what, why in self.cannot)
