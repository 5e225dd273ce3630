"""What every lab is: the packages it needs, how it comes up, when it is ready, what there is to know about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from strakes.lab.mounts import mounted_at, space_of
from strakes.lab.options import LabOptions
from strakes.lab.packages import Package
from strakes.lab.site import READY_LIMIT_S, LabSite

OptionsT = TypeVar("OptionsT", bound=LabOptions)

# The process of this role serves the mount: without it nothing of the lab can be used.
CLIENT = "client"


class Lab(ABC, Generic[OptionsT]):
    """One file system being started in ``site``.

    Everything it starts goes through ``site`` and the modules that take one, so that the general ``undo`` finds all of
    it: no lab has a ``down`` of its own.
    """

    options_type: ClassVar[type[LabOptions]]
    packages: ClassVar[tuple[Package, ...]]
    needs_root: ClassVar[bool] = True

    def __init__(self, site: LabSite, options: OptionsT) -> None:
        self.site = site
        self.options = options

    @classmethod
    def check(cls, options: OptionsT, directory: Path) -> None:
        """Raise BadInputError or EnvironmentLacksError for what cannot be, before anything is touched."""

    @classmethod
    def packages_for(cls, options: OptionsT) -> tuple[Package, ...]:  # noqa: ARG003 - for kinds whose options need more
        """Return what is needed with these options."""
        return cls.packages

    @property
    def ready_limit_s(self) -> float:
        """How long it may take until it is ready."""
        return READY_LIMIT_S

    @abstractmethod
    def up(self) -> None:
        """Start everything. Need not wait for it."""

    def ready(self) -> str:
        """Return what is still lacking; empty when the file system can be used."""
        return ""

    def slow_down(self) -> None:
        """When everything is up: put on the limits that were asked for, which would only have delayed it."""

    def facts(self) -> Mapping[str, Any]:
        """Return what programs need to know to talk to it."""
        return {}

    def _lacking_until_space(self, without: str) -> str:
        """Return what is still lacking of a mount with free space; ``without`` says it of one that has none."""
        if mounted_at(self.mount_point) is None:
            return "nothing is mounted yet"
        space = space_of(self.mount_point)
        return "" if space and space.free else without

    @property
    def mount_point(self) -> Path:
        """Return where it is mounted."""
        return self.site.mount_point
