"""Rules about nodes that reset themselves: watchdogs and sbd."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.cib_values import is_true
from strakes.failover.rules.fencing_devices import tie_breakers, watchdog_fences
from strakes.failover.rules.heartbeat import nodes_of
from strakes.failover.rules.rule import COROSYNC_CONF, SBD, rule
from strakes.failover.setup import Setup


@rule("pacemaker").error(
    reason="With stonith-watchdog-timeout, Pacemaker assumes that a lost node is off after that time; without sbd and "
    "a watchdog it keeps writing.",
    remedy="Set up sbd (SBD_WATCHDOG_DEV), or remove stonith-watchdog-timeout.",
    source=SBD,
)
def watchdog_without_sbd(setup: Setup) -> Iterator[str]:
    """Find a watchdog that Pacemaker relies on while sbd does not run."""
    cib = setup.pacemaker
    if cib.watchdog_s != 0 and not watchdog_fences(setup):
        yield f"cib: stonith-watchdog-timeout={cib.properties['stonith-watchdog-timeout']}, and no sbd"


@rule("pacemaker", "corosync").error(
    reason="A watchdog resets a node that has lost quorum. With two_node, a node never loses it, so neither node is "
    "reset.",
    remedy="Use a quorum device or a third node, or sbd with a shared disk, or BMCs.",
    source=SBD,
)
def watchdog_with_two_nodes(setup: Setup) -> Iterator[str]:
    """Find two nodes that only their watchdogs fence, with nothing that decides between them."""
    shared = any(device.agent in ("fence_sbd", "external/sbd") for device in setup.pacemaker.devices)
    if watchdog_fences(setup) and not shared and not any(tie_breakers(setup)) and len(nodes_of(setup)) == 2:
        yield "cib: stonith-watchdog-timeout with two nodes and no quorum device"


@rule("sbd").error(
    reason="Without a watchdog, sbd cannot reset a node that hangs; without its disk or SBD_PACEMAKER it does not "
    "learn when to do so.",
    remedy="SBD_WATCHDOG_DEV=/dev/watchdog, SBD_PACEMAKER=yes, and SBD_DEVICE if a disk is used.",
    source=SBD,
)
def sbd_not_working(setup: Setup) -> Iterator[str]:
    """Find settings of sbd that do not fit the cluster, and disks of it that hold data."""
    values = setup.sbd
    watchdog = values.get("SBD_WATCHDOG_DEV", "/dev/watchdog")
    if not watchdog.startswith("/dev/watchdog"):
        yield f"sbd: SBD_WATCHDOG_DEV={watchdog}"
    if not is_true(values.get("SBD_PACEMAKER", "yes")):
        yield f"sbd: SBD_PACEMAKER={values['SBD_PACEMAKER']}"
    with_disk = setup.cib and any(device.agent in ("external/sbd", "fence_sbd") for device in setup.cib.devices)
    if with_disk and not values.get("SBD_DEVICE"):
        yield "sbd: a device of Pacemaker uses the disk, and SBD_DEVICE is empty"
    backing = {disk for resource in setup.drbd for disk in (*resource.disks, *resource.devices)}
    disks = [disk for disk in re.split(r"[;\s]+", values.get("SBD_DEVICE", "")) if disk]
    for disk in sorted({disk for disk in disks if disks.count(disk) > 1}):
        yield f"sbd: SBD_DEVICE has {disk} twice"
    for disk in disks:
        if ",/" in disk:
            yield f"sbd: SBD_DEVICE={disk} is one name; several are separated by ;"
        if disk in backing or disk.startswith("/dev/drbd"):
            yield f"sbd: SBD_DEVICE={disk} is replicated by DRBD, or holds its data"


@rule("sbd", "corosync").error(
    reason="Only one program can open a watchdog: the other one does not start, or resets nothing.",
    remedy="Remove resources { watchdog_device } from corosync.conf: sbd resets the node.",
    source=COROSYNC_CONF,
)
def watchdog_used_by_two_programs(setup: Setup) -> Iterator[str]:
    """Find a watchdog that Corosync opens although sbd needs it."""
    device = setup.membership.one("resources").get("watchdog_device", "off")
    if device not in ("", "off"):
        yield f"corosync.conf: watchdog_device={device}, and sbd is used"
