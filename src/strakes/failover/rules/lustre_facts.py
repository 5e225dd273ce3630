"""Facts about Lustre's targets from the script that makes them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from strakes.failover.rules.facts import Thing, facts
from strakes.failover.setup import Setup


def made_targets(setup: Setup) -> Iterator[list[str]]:
    """Yield the words of each mkfs.lustre and tunefs.lustre command."""
    for line in re.sub(r"\\\n", " ", setup.lustre).splitlines():
        if line.strip().startswith(("mkfs.lustre", "tunefs.lustre")):
            yield shlex.split(line.strip())


def option_values(words: list[str], option: str) -> list[str]:
    """Return the values of an option; colons separate the nodes."""
    given = [word.partition("=")[2] for word in words if word.startswith(f"--{option}=")]
    return [part for value in given for part in value.split(":") if part]


def nids(words: list[str], *options: str) -> set[str]:
    """Return the NIDs in options; commas separate the NIDs of one node."""
    return {nid for option in options for node in option_values(words, option) for nid in node.split(",")}


def mgs_servers(setup: Setup) -> set[str]:
    """Return the NIDs of the MGS servers; empty if the script does not make the MGS."""
    managers = [words for words in made_targets(setup) if "--mgs" in words]
    return {nid for words in managers for nid in nids(words, "servicenode", "failnode")}


def targets(setup: Setup) -> Iterator[Thing]:
    """Yield the targets that the script makes."""
    servers, made = mgs_servers(setup), list(made_targets(setup))
    backing = {disk for one in setup.drbd for disk in one.disks}
    devices = {device for one in setup.drbd for device in one.devices}
    named = [words[-1] for words in made if words[0] == "mkfs.lustre"]
    for words in made:
        device, both = words[-1], set(option_values(words, "servicenode"))
        known = set(option_values(words, "mgsnode"))
        unmanaged = device.startswith("/dev/drbd") and devices and device not in devices
        deduced = {
            "options": words[1:-1],
            "number of servers": str(len(both)),
            "failnode": option_values(words, "failnode"),
            "servicenode": sorted(both),
            "number of nodes of the MGS": "" if "--mgs" in words else str(len(known)),
            "strange nodes of the MGS": sorted(nids(words, "mgsnode") - servers) if servers else (),
            "is a dataset": "yes" if not device.startswith("/") and words[0] == "mkfs.lustre" else "",
            "has a backend": option_values(words, "backfstype"),
            "is on the wrong disk": "yes" if device in backing or unmanaged else "",
            "times made": str(named.count(device)),
        }
        yield Thing(f"make-targets.sh: {device}", facts(deduced))
