"""Facts about a running cluster, from the output of its programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from strakes.failover.facts import Thing, facts, yes
from strakes.failover.setup import DRBD_STATE, LINK_STATE, PACEMAKER_STATE, Setup

_GOOD = ("UpToDate", "Connected", "Established", "Diskless", "no")


def _status(setup: Setup) -> Xml.Element:
    return Xml.fromstring(setup.texts[PACEMAKER_STATE])


def node_states(setup: Setup) -> Iterator[Thing]:
    """Yield the nodes, and the partition of the cluster that answered."""
    status = _status(setup)
    for node in status.iterfind("./nodes/node"):
        wrong = [key for key in ("unclean", "standby", "maintenance", "pending") if node.get(key) == "true"]
        wrong += ["offline"] if node.get("online") != "true" else []
        yield Thing(f"crm_mon: node {node.get('name')}", facts({"bad states": wrong}))
    coordinator = status.find("./summary/current_dc")
    lost = coordinator is not None and coordinator.get("with_quorum") == "false"
    yield Thing("crm_mon: this side", facts({"bad states": "without quorum" if lost else ""}))


def resource_states(setup: Setup) -> Iterator[Thing]:
    """Yield the resources."""
    for one in _status(setup).iterfind("./resources//resource"):
        wrong = [key for key in ("failed", "blocked") if one.get(key) == "true"]
        wrong += ["running, and no longer configured"] if one.get("orphaned") == "true" else []
        wrong += ["not managed"] if one.get("managed") == "false" else []
        wrong += ["stopped"] if one.get("role") == "Stopped" and one.get("disabled") != "true" else []
        yield Thing(f"crm_mon: {one.get('id')}", facts({"bad states": wrong}))


def failures(setup: Setup) -> Iterator[Thing]:
    """Yield the failed operations and the failed fencing actions."""
    status, devices = _status(setup), {device.id for device in setup.devices}
    for one in status.iterfind("./failures/failure"):
        name = re.sub(r"_(\w+?)_\d+$", "", one.get("op_key", ""))
        told = {"is of a device": yes(name in devices), "result": one.get("exitreason") or one.get("exitstatus") or ""}
        yield Thing(f"crm_mon: {one.get('op_key')} on {one.get('node')}:", facts(told))
    for event in status.iterfind("./fence_history/fence_event[@status='failed']"):
        yield Thing(f"crm_mon: fencing {event.get('target')}:", facts({"result": f"{event.get('action')} failed"}))


def link_states(setup: Setup) -> Iterator[Thing]:
    """Yield the links of Corosync."""
    link = ""
    for line in setup.texts[LINK_STATE].splitlines():
        link = line.strip() if line.startswith("LINK ID") else link
        # Corosync 2 calls a broken ring faulty.
        broken = " ".join(line.split()) if "disconnected" in line or "FAULTY" in line else ""
        yield Thing(f"corosync: {link}:", facts({"bad states": broken}))


def copy_states(setup: Setup) -> Iterator[Thing]:
    """Yield the copies of DRBD: from the kernel for 8.4, from drbdsetup for 9."""
    name = ""
    for line in setup.texts[DRBD_STATE].splitlines():
        old = re.search(r"^\s*(\d+): cs:(\w+) .*ds:(\S+)(?: \w (s)?)?", line)
        name = f"device {old[1]}" if old else line.split()[0] if line[:1].strip() else name
        bad = [value for _, value in re.findall(r"\b(connection|disk|peer-disk|replication|suspended):(\S+)", line)]
        bad = [value for value in bad if value not in _GOOD]
        if old and (old[2] != "Connected" or old[3] != "UpToDate/UpToDate" or old[4]):
            bad = [old[2], old[3], "suspended" if old[4] else ""]
        yield Thing(f"drbd: {name}", facts({"bad states": bad}))
