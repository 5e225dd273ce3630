"""Rules about the operations of resources: monitors that are missing, and time-outs that are too short."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.known_options import advised_times
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules.rule import OWN, PACEMAKER, rule
from strakes.failover.setup import Setup

_LEAST_MONITOR_S = 20.0
_MOST_INTERVAL_S = 300.0
_LEAST_OF_ADVICE = 3
# Replaying a large journal, and multiple-mount protection, delay a Lustre mount.
_LEAST_LUSTRE_S = 300.0
# A unit ends what it was doing; systemd itself gives it 90 s, Pacemaker 20 s where nothing is written.
_LEAST_UNIT_S = 10.0
# What the agents need when a disk is busy; their own advice is above it.
_LEAST_S = {
    "drbd": {"start": 60.0, "stop": 60.0, "promote": 60.0, "demote": 60.0},
    "Filesystem": {"start": 40.0, "stop": 60.0},
    "ZFS": {"start": 60.0, "stop": 60.0},
    "LVM-activate": {"start": 60.0, "stop": 60.0},
    "nfsserver": {"start": 40.0, "stop": 20.0},
    "exportfs": {"start": 20.0, "stop": 20.0},
    "IPaddr2": {"start": 10.0, "stop": 10.0},
}


@rule("pacemaker").error(
    reason="Without a monitor, Pacemaker checks the service once at the start and never again: if it dies, it stays "
    "dead.",
    remedy="Add op monitor interval=20s.",
    source=f"{PACEMAKER}/operations.rst",
)
def no_monitor(setup: Setup) -> Iterator[str]:
    """Find services that are not monitored."""
    for primitive in setup.pacemaker.services:
        running = (one for one in primitive.operations if one.role != "Stopped")
        if not any(one.repeats and one.enabled for one in running):
            yield f"cib: {primitive.id} is not monitored"


@rule("pacemaker").warning(
    reason="If the device stops answering, nobody notices until a node has to be powered off.",
    remedy="Add op monitor interval=60s.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_device_not_monitored(setup: Setup) -> Iterator[str]:
    """Find fencing devices that are not monitored."""
    silent = [
        device.id
        for device in setup.pacemaker.devices
        # sbd itself watches its disks.
        if device.agent not in ("external/sbd", "fence_sbd", "fence_watchdog")
        and not any(one.repeats and one.enabled for one in device.operations)
    ]
    if silent:
        yield f"cib: {', '.join(silent)}: not monitored"


@rule("pacemaker").error(
    reason="A dead service is not noticed for that long.",
    remedy="op monitor interval=20s",
    source=f"{PACEMAKER}/operations.rst",
)
def monitored_too_seldom(setup: Setup) -> Iterator[str]:
    """Find services that are monitored too seldom."""
    for primitive in setup.pacemaker.services:
        for one in primitive.operations:
            if one.name == "monitor" and one.interval_s > _MOST_INTERVAL_S:
                yield f"cib: {primitive.id} is monitored every {one.interval_s:g} s"


@rule("pacemaker").error(
    reason="Pacemaker tells operations apart by name and interval: if both roles have the same interval, one of them "
    "is not monitored.",
    remedy="Two monitors with different intervals, such as 29s role=Promoted and 31s role=Unpromoted.",
    source="https://github.com/crowbar/crowbar-openstack/pull/1464",
)
def one_role_not_monitored(setup: Setup) -> Iterator[str]:
    """Find promotable resources that are not monitored where they are promoted."""
    cib = setup.pacemaker
    for primitive in cib.primitives:
        if not cib.promotable(primitive.clone):
            continue
        monitors = [one for one in primitive.operations if one.repeats and one.enabled]
        if len({one.interval_s for one in monitors}) < len(monitors):
            yield f"cib: two monitors of {primitive.id} have the same interval"
        # Without a role it is the one that is not promoted.
        elif monitors and "Promoted" not in {one.role for one in monitors}:
            yield f"cib: {primitive.id} is not monitored where it is promoted"


@rule("pacemaker").warning(
    reason="If the copy on the standby fails, nobody notices until it has to be promoted.",
    remedy="op monitor interval=31s role=Unpromoted",
    source="https://github.com/crowbar/crowbar-openstack/pull/1464",
)
def standby_copy_not_monitored(setup: Setup) -> Iterator[str]:
    """Find promotable resources that are monitored only where they are promoted."""
    cib = setup.pacemaker
    for primitive in cib.primitives:
        monitors = {one.role for one in primitive.operations if one.repeats and one.enabled}
        if cib.promotable(primitive.clone) and monitors == {"Promoted"}:
            yield f"cib: {primitive.id} is only monitored where it is promoted"


@rule("pacemaker").warning(
    reason="Under load a healthy service answers late, and this timeout makes Pacemaker restart it: an unnecessary "
    "outage when it hurts most.",
    remedy="timeout=60s for monitors.",
    source=OWN,
)
def monitor_timeout_too_short(setup: Setup) -> Iterator[str]:
    """Find monitors with too short a time-out."""
    for primitive in setup.pacemaker.primitives:
        for one in primitive.operations:
            # Without a file system below it, an agent answers in a moment: its own advice is 5 to 20 s.
            least = 5.0 if primitive.agent in ("IPaddr2", "IPaddr", "ethmonitor", "ping") else _LEAST_MONITOR_S
            if one.repeats and 0 < one.timeout_s < least:
                yield f"cib: monitor of {primitive.id} has {one.timeout_s:g} s"


def _short(primitive: Primitive, names: tuple[str, ...]) -> Iterator[str]:
    least = _LEAST_S.get(primitive.agent, {})
    if primitive.is_lustre:
        least = {"start": _LEAST_LUSTRE_S, "stop": _LEAST_LUSTRE_S}
    elif primitive.standard in ("systemd", "service", "lsb"):
        least = dict.fromkeys(("start", "stop"), _LEAST_UNIT_S)
    for name in names:
        if name in least and primitive.timeout_s(name) < least[name]:
            yield f"cib: {name} of {primitive.id} has {primitive.timeout_s(name):g} s, it needs {least[name]:g} s"


@rule("pacemaker").error(
    reason="A stop that does not finish in time counts as failed, and a node with a failed stop is powered off: every "
    "move becomes a crash.",
    remedy="op stop timeout=120s for mounts, 300s for Lustre.",
    source=f"{PACEMAKER}/fencing.rst",
)
def stop_timeout_too_short(setup: Setup) -> Iterator[str]:
    """Find stops and demotions with too short a time-out."""
    for primitive in setup.pacemaker.services:
        yield from _short(primitive, ("stop", "demote"))


@rule("pacemaker").error(
    reason="After a crash, a start replays journals and waits for disks. If the timeout ends it, the start and with it "
    "the take-over count as failed.",
    remedy="op start timeout=240s for DRBD, 60s for a mount, 600s for Lustre.",
    source="https://github.com/lustre/lustre-release/blob/master/contrib/scripts/pacemaker/Lustre",
)
def start_timeout_too_short(setup: Setup) -> Iterator[str]:
    """Find starts and promotions with too short a time-out."""
    for primitive in setup.pacemaker.services:
        yield from _short(primitive, ("start", "promote"))


@rule("pacemaker").warning(
    reason="The agent's own metadata recommend more than three times as long. After a start that times out the service "
    "is banned from the node; after a stop, the node is powered off.",
    remedy="Use the timeouts that crm_resource --show-metadata AGENT shows.",
    source=f"{PACEMAKER}/operations.rst",
)
def timeout_far_below_the_agents_advice(setup: Setup) -> Iterator[str]:
    """Find operations with less than a third of the time that their agent advises."""
    short = []
    for one in setup.pacemaker.services:
        for name, advised in advised_times(f"{one.provider}:{one.agent}").items():
            given = one.timeout_s(name)
            judged = name in (*_LEAST_S.get(one.agent, ()), "monitor") or one.operation(name) is None
            if not judged and 0 < given < advised / _LEAST_OF_ADVICE:
                short.append(f"{name} of {one.id} has {given:g} s, the agent advises {advised:g} s")
    if short:
        yield f"cib: {', '.join(short)}"
