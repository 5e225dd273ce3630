"""Rules about the state of the running cluster: what has failed already, and waits for the next failure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from strakes.failover.rules.rule import COROSYNC_CONF, PACEMAKER, rule
from strakes.failover.setup import DRBD_STATE, LINK_STATE, PACEMAKER_STATE, Setup

_REPAIRED = "Repair the cause, then: crm_resource --cleanup"


def _status(setup: Setup) -> Xml.Element:
    return Xml.fromstring(setup.texts[PACEMAKER_STATE])


def _is(element: Xml.Element, key: str) -> bool:
    return element.get(key) == "true"


@rule("state").error(
    reason="While a node is offline, unclean, or in standby or maintenance, no other node is left that can take over.",
    remedy="Repair the node and start it; crm_standby --delete, or stonith_admin --confirm only when the node is "
    "really off.",
    source=f"{PACEMAKER}/nodes.rst",
)
def node_not_available(setup: Setup) -> Iterator[str]:
    """Find nodes that are offline or not in use, and a side without quorum."""
    status = _status(setup)
    for node in status.iterfind("./nodes/node"):
        wrong = [key for key in ("unclean", "standby", "maintenance", "pending") if _is(node, key)]
        if not _is(node, "online"):
            wrong.insert(0, "offline")
        if wrong:
            yield f"crm_mon: node {node.get('name')} is {', '.join(wrong)}"
    coordinator = status.find("./summary/current_dc")
    if coordinator is not None and coordinator.get("with_quorum") == "false":
        yield "crm_mon: this side has no quorum"


@rule("state").error(
    reason="A resource that has failed, is blocked or is not managed is not recovered by itself.",
    remedy=_REPAIRED,
    source=f"{PACEMAKER}/resources.rst",
)
def service_not_running(setup: Setup) -> Iterator[str]:
    """Find resources that have failed, are stopped, are not managed or no longer configured."""
    for resource in _status(setup).iterfind("./resources//resource"):
        wrong = [key for key in ("failed", "blocked") if _is(resource, key)]
        if _is(resource, "orphaned"):
            wrong.append("running, and no longer configured")
        if resource.get("managed") == "false":
            wrong.append("not managed")
        if resource.get("role") == "Stopped" and not _is(resource, "disabled"):
            wrong.append("stopped")
        if wrong:
            yield f"crm_mon: {resource.get('id')} is {', '.join(wrong)}"


@rule("state").error(
    reason="A device whose monitor fails will not power off its node either: nothing is taken over from that node.",
    remedy="Check the BMC or outlet, its network and its password; then test it at a quiet time: stonith_admin --fence "
    "NODE",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_device_does_not_answer(setup: Setup) -> Iterator[str]:
    """Find fencing devices that have failed."""
    devices = {device.id for device in setup.devices}
    for failure in _status(setup).iterfind("./failures/failure"):
        name = re.sub(r"_(monitor|start|stop)_\d+$", "", failure.get("op_key", ""))
        if name in devices:
            yield f"crm_mon: {name} on {failure.get('node')}: {failure.get('exitreason') or failure.get('exitstatus')}"


@rule("state").warning(
    reason="Failures count against the node until they are cleaned up: the next one may ban the service from the node.",
    remedy=_REPAIRED,
    source=f"{PACEMAKER}/operations.rst",
)
def failures_not_cleaned_up(setup: Setup) -> Iterator[str]:
    """Find failed operations of services, and fencing that failed."""
    status = _status(setup)
    devices = {device.id for device in setup.devices}
    for failure in status.iterfind("./failures/failure"):
        name = re.sub(r"_(\w+?)_\d+$", "", failure.get("op_key", ""))
        if name not in devices:
            yield f"crm_mon: {failure.get('op_key')} on {failure.get('node')}: {failure.get('exitstatus')}"
    for event in status.iterfind("./fence_history/fence_event"):
        if event.get("status") == "failed":
            failed = f"{event.get('target')} ({event.get('action')}) failed, {event.get('completed', '')}"
            yield f"crm_mon: fencing {failed}".rstrip(", ")


@rule("link state").error(
    reason="Only one link is left: when the next cable, card or switch fails, a node is powered off.",
    remedy="Repair the network of that link; corosync-cfgtool -s shows it.",
    source=COROSYNC_CONF,
)
def link_down(setup: Setup) -> Iterator[str]:
    """Find links of Corosync that are disconnected."""
    link = ""
    for line in setup.texts[LINK_STATE].splitlines():
        link = line.strip() if line.startswith("LINK ID") else link
        # Corosync 2 calls it faulty.
        if "disconnected" in line or "FAULTY" in line:
            yield f"corosync: {link}: {' '.join(line.split())}"


@rule("replication state").error(
    reason="Nobody can take over from a copy that is not up to date or not connected: if the other node dies, nothing "
    "is left.",
    remedy="drbdadm status; repair the replication network or the disk, and wait for UpToDate.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-administration.adoc",
)
def copies_not_the_same(setup: Setup) -> Iterator[str]:
    """Find DRBD copies that are not connected or not up to date, and devices that do not write."""
    name = ""
    for line in setup.texts[DRBD_STATE].splitlines():
        old = re.search(r"^\s*(\d+): cs:(\w+) .*ds:(\S+)(?: \w (s)?)?", line)
        if old and (old[2] != "Connected" or old[3] != "UpToDate/UpToDate" or old[4]):
            yield f"drbd: device {old[1]} is {old[2]}, {old[3]}{', and does not write' if old[4] else ''}"
        name = line.split()[0] if line[:1].strip() else name
        for what, value in re.findall(r"\b(connection|disk|peer-disk|replication|suspended):(\S+)", line):
            if value not in ("UpToDate", "Connected", "Established", "Diskless", "no"):
                yield f"drbd: {name}: {what} is {value}"
