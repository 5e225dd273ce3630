"""The version of Lustre: of the kernel module, or of the tools where the module does not say."""

from __future__ import annotations

import re

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import checked, not_understood

_VERSION = re.compile(r"^(?:version=|lfs |lctl |lustre: |)(\d+\.\S+)$", re.MULTILINE)


def tool_version() -> Command[str]:
    """Ask lfs for its version."""
    return Command(("lfs", "--version"), read_version)


def module_version() -> Command[str]:
    """Ask the kernel modules for theirs."""
    return Command(("lctl", "get_param", "version"), read_version)


def read_version(done: Completed) -> str:
    """Return the version in "version=2.17.57", "lfs 2.17.57", and among others in "lustre: 2.10.8"."""
    match = _VERSION.search(checked(done, "the version is not known"))
    if match is None:
        raise not_understood(" ".join(done.argv), done.stdout)
    return match[1]
