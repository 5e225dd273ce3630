"""Which devices are of one file system, and of one mount of it: others may have names that begin alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from strakes.errors import StrakesError
from strakes.targets.lustre.lctl_param import device

# A server has connections of its own to data targets, named after its metadata target.
_DEVICE = re.compile(r"^(?P<target>.+-(?:MDT|OST)[0-9a-f]{4})-(?:mdc|osc)-(?!MDT)(?P<instance>\w+)$")


def is_target_of(name: str, file_system: str) -> bool:
    """Tell whether a target belongs to a file system.

    >>> is_target_of("lab-MDT000a", "lab"), is_target_of("lab-2-MDT000a", "lab"), is_target_of("lab-2-MDT000a", "lab-2")
    (True, False, True)
    """
    return re.fullmatch(rf"{re.escape(file_system)}-(?:MDT|OST)[0-9a-f]{{4}}", name) is not None


def no_instance() -> str:
    """Return that the mount's own name is not known."""
    return ""


def of_mount(values: Mapping[str, str], file_system: str, ask_instance: Callable[[], str]) -> dict[str, str]:
    """Return the parameters of a mount's devices; ``ask_instance`` is asked for its name if there are several mounts.

    Where that is not known, those of the other mounts are among them.

    >>> values = {"osc.lab-OST0000-osc-ff01.state": "FULL", "osc.lab-OST0000-osc-ff02.state": "DISCONN"}
    >>> of_mount(values, "lab", lambda: "ff01")
    {'osc.lab-OST0000-osc-ff01.state': 'FULL'}
    """
    instances: dict[str, str] = {}
    for parameter in values:
        match = _DEVICE.match(device(parameter))
        if match and is_target_of(match["target"], file_system):
            instances[parameter] = match["instance"]
    wanted = set(instances.values())
    if len(wanted) > 1:
        # Where its servers do not answer, nobody says which mount it is.
        with suppress(StrakesError):
            wanted = {ask_instance()} & wanted or wanted
    return {parameter: values[parameter] for parameter, instance in instances.items() if instance in wanted}
