"""Rules about times that do not fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from strakes.failover.cib_values import is_true, seconds
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.replication import Resource
from strakes.failover.rules.rule import COROSYNC_CONF, OWN, PACEMAKER, rule
from strakes.failover.setup import Setup

_LEAST_TOKEN_MS = 1000
_MOST_TOKEN_MS = 30_000
_TOKEN_MS = "3000"
_LEAST_MONITOR_S = 20.0
_MOST_INTERVAL_S = 300.0
_LEAST_FORGETTING_S = 30.0
_DEFAULT_STONITH_S = 60.0
_DEFAULT_FENCE_PEER_S = 90.0
# Replaying a large journal, and multiple-mount protection, delay a Lustre mount.
_LEAST_LUSTRE_S = 300.0
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


@rule(
    "token-too-short",
    "error",
    "corosync",
    reason="A busy node that is late for a second is taken for dead and powered off; the default was raised for this.",
    remedy="totem: token: 3000, more where machines stall.",
    source="https://github.com/corosync/corosync/pull/600",
)
def short_token(setup: Setup) -> Iterator[str]:
    """Find a token that is too short."""
    token = setup.membership.one("totem").get("token", "3000")
    if token.isdecimal() and int(token) <= _LEAST_TOKEN_MS:
        yield f"corosync.conf: token: {token} (milliseconds)"


@rule(
    "token-too-long",
    "warning",
    "corosync",
    reason="For so long nobody takes over from a node that is dead; every client waits as well.",
    remedy="totem: token: 3000 to 10000",
    source="https://github.com/corosync/corosync/pull/600",
)
def long_token(setup: Setup) -> Iterator[str]:
    """Find a token that is too long."""
    token = setup.membership.one("totem").get("token", "3000")
    if token.isdecimal() and int(token) > _MOST_TOKEN_MS:
        yield f"corosync.conf: token: {token} (milliseconds)"


@rule(
    "consensus-too-short",
    "error",
    "corosync",
    reason="Corosync wants at least 1.2 times the token for it, and does not start with less.",
    remedy="Remove consensus: it then follows from token.",
    source=COROSYNC_CONF,
)
def short_consensus(setup: Setup) -> Iterator[str]:
    """Find a consensus shorter than 1.2 tokens."""
    totem = setup.membership.one("totem")
    token, consensus = totem.get("token", _TOKEN_MS), totem.get("consensus")
    if token.isdecimal() and consensus.isdecimal() and int(consensus) < 1.2 * int(token):
        yield f"corosync.conf: consensus: {consensus} with token: {token}"


@rule(
    "power-off-given-up-too-early",
    "error",
    "pacemaker",
    reason="The wait is over before the delay (it counts, until Pacemaker 2.1.6) and the BMC are: it fails, though "
    "the node goes off.",
    remedy="stonith-timeout of at least 30 s more than the longest delay.",
    source="https://github.com/ClusterLabs/crmsh/pull/890",
)
def stonith_timeout(setup: Setup) -> Iterator[str]:
    """Find a limit for fencing that leaves less than 20 s after the longest delay."""
    limit = seconds(setup.pacemaker.properties.get("stonith-timeout", "")) or _DEFAULT_STONITH_S
    longest = max((setup.pacemaker.delay_s(device) for device in setup.pacemaker.devices), default=0.0)
    if limit < longest + 20:
        yield f"cib: stonith-timeout is {limit:g} s, the longest delay {longest:g} s"


@rule(
    "no-monitor",
    "error",
    "pacemaker",
    reason="Pacemaker looks once at the start and never again: a service that dies stays dead.",
    remedy="Add op monitor interval=20s.",
    source=f"{PACEMAKER}/operations.rst",
)
def no_monitor(setup: Setup) -> Iterator[str]:
    """Find services that are not monitored."""
    for primitive in setup.pacemaker.services:
        if not any(one.name == "monitor" and one.interval_s > 0 and one.enabled for one in primitive.operations):
            yield f"cib: {primitive.id} is not monitored"


@rule(
    "fencing-device-not-monitored",
    "note",
    "pacemaker",
    reason="A device that stopped answering is noticed when it is needed.",
    remedy="Add op monitor interval=60s.",
    source=f"{PACEMAKER}/fencing.rst",
)
def device_not_monitored(setup: Setup) -> Iterator[str]:
    """Find fencing devices that are not monitored."""
    for device in setup.pacemaker.devices:
        if not any(one.name == "monitor" and one.interval_s > 0 and one.enabled for one in device.operations):
            yield f"cib: {device.id} is not monitored"


@rule(
    "monitored-too-seldom",
    "error",
    "pacemaker",
    reason="For so long nobody notices that the service is dead.",
    remedy="op monitor interval=20s",
    source=f"{PACEMAKER}/operations.rst",
)
def seldom(setup: Setup) -> Iterator[str]:
    """Find services that are monitored too seldom."""
    for primitive in setup.pacemaker.services:
        for one in primitive.operations:
            if one.name == "monitor" and one.interval_s > _MOST_INTERVAL_S:
                yield f"cib: {primitive.id} is looked at every {one.interval_s:g} s"


@rule(
    "one-role-not-monitored",
    "error",
    "pacemaker",
    reason="Operations are told apart by name and interval: with the same interval for both roles one of them is "
    "not monitored.",
    remedy="Two monitors with different intervals, such as 29s role=Promoted and 31s role=Unpromoted.",
    source="https://github.com/crowbar/crowbar-openstack/pull/1464",
)
def roles(setup: Setup) -> Iterator[str]:
    """Find promotable resources that are not monitored where they are promoted."""
    cib = setup.pacemaker
    for primitive in cib.primitives:
        if not is_true(cib.clones.get(primitive.clone, {}).get("promotable", "false")):
            continue
        monitors = [one for one in primitive.operations if one.name == "monitor" and one.interval_s > 0 and one.enabled]
        if len({one.interval_s for one in monitors}) < len(monitors):
            yield f"cib: two monitors of {primitive.id} have the same interval"
        # Without a role it is the one that is not promoted.
        elif monitors and "Promoted" not in {one.role for one in monitors}:
            yield f"cib: {primitive.id} is not monitored where it is promoted"


@rule(
    "standby-copy-not-monitored",
    "warning",
    "pacemaker",
    reason="A copy that failed on the standby is noticed when it should be promoted.",
    remedy="op monitor interval=31s role=Unpromoted",
    source="https://github.com/crowbar/crowbar-openstack/pull/1464",
)
def standby_role(setup: Setup) -> Iterator[str]:
    """Find promotable resources that are monitored only where they are promoted."""
    cib = setup.pacemaker
    for primitive in cib.primitives:
        monitors = {
            one.role for one in primitive.operations if one.name == "monitor" and one.interval_s > 0 and one.enabled
        }
        if is_true(cib.clones.get(primitive.clone, {}).get("promotable", "false")) and monitors == {"Promoted"}:
            yield f"cib: {primitive.id} is only monitored where it is promoted"


@rule(
    "monitor-timeout-too-short",
    "warning",
    "pacemaker",
    reason="Under load, which is when it matters, a healthy service answers late and is restarted: an outage out "
    "of nothing.",
    remedy="timeout=60s for monitors.",
    source=OWN,
)
def short_monitor(setup: Setup) -> Iterator[str]:
    """Find monitors with too short a time-out."""
    for primitive in setup.pacemaker.primitives:
        for one in primitive.operations:
            # Without a file system below it, an agent answers in a moment: its own advice is 5 to 20 s.
            least = 5.0 if primitive.agent in ("IPaddr2", "IPaddr", "ethmonitor", "ping") else _LEAST_MONITOR_S
            if one.name == "monitor" and 0 < one.timeout_s < least and one.interval_s > 0:
                yield f"cib: monitor of {primitive.id} has {one.timeout_s:g} s"


def _short(primitive: Primitive, names: tuple[str, ...]) -> Iterator[str]:
    least = _LEAST_S.get(primitive.agent, {})
    if primitive.is_lustre:
        least = {"start": _LEAST_LUSTRE_S, "stop": _LEAST_LUSTRE_S}
    for name in names:
        if name in least and primitive.timeout_s(name) < least[name]:
            yield f"cib: {name} of {primitive.id} has {primitive.timeout_s(name):g} s, it needs {least[name]:g} s"


@rule(
    "stop-timeout-too-short",
    "error",
    "pacemaker",
    reason="A stop that is not done in time counts as failed, and a node with a failed stop is powered off: each "
    "move becomes a crash.",
    remedy="op stop timeout=120s for mounts, 300s for Lustre.",
    source=f"{PACEMAKER}/fencing.rst",
)
def short_stop(setup: Setup) -> Iterator[str]:
    """Find stops and demotions with too short a time-out."""
    for primitive in setup.pacemaker.services:
        yield from _short(primitive, ("stop", "demote"))


@rule(
    "start-timeout-too-short",
    "error",
    "pacemaker",
    reason="After a crash a start replays journals and waits for disks; cut short it counts as failed, and so does "
    "the take-over.",
    remedy="op start timeout=240s for DRBD, 60s for a mount, 600s for Lustre.",
    source="https://github.com/lustre/lustre-release/blob/master/contrib/scripts/pacemaker/Lustre",
)
def short_start(setup: Setup) -> Iterator[str]:
    """Find starts and promotions with too short a time-out."""
    for primitive in setup.pacemaker.services:
        yield from _short(primitive, ("start", "promote"))


@rule(
    "failure-forgotten-too-early",
    "error",
    "pacemaker",
    reason="The failure is forgotten before it can count: a service that cannot run here is restarted here for ever.",
    remedy="failure-timeout=600s",
    source=f"{PACEMAKER}/resources.rst",
)
def forgotten_early(setup: Setup) -> Iterator[str]:
    """Find failures that are forgotten before they can count."""
    for primitive in setup.pacemaker.services:
        forgets = seconds(primitive.meta.get("failure-timeout", ""))
        if 0 < forgets < _LEAST_FORGETTING_S:
            yield f"cib: {primitive.id} has failure-timeout={primitive.meta['failure-timeout']}"


@rule(
    "fence-peer-gives-up-before-the-power-off",
    "error",
    "pacemaker",
    "drbd",
    reason="When the handler gives up waiting for the fencing, writing goes on although the peer may be alive; "
    "what is then told may be lost.",
    remedy="crm-fence-peer with --timeout above stonith-timeout.",
    source="https://github.com/LINBIT/drbd-utils/blob/master/scripts/crm-fence-peer.9.sh",
)
def handler_timeout(setup: Setup) -> Iterator[str]:
    """Find explicit time-outs of promotion that are shorter than the fencing handler needs."""
    yield from _handler_times(setup, explicit=True)


@rule(
    "fence-peer-waits-for-its-default",
    "warning",
    "pacemaker",
    "drbd",
    reason="The handler's default of 90 s is below stonith-timeout: when fencing takes longer, writing goes on "
    "while the peer may be alive.",
    remedy="crm-fence-peer with --timeout above stonith-timeout.",
    source="https://github.com/LINBIT/drbd-utils/blob/master/scripts/crm-fence-peer.9.sh",
)
def handler_default(setup: Setup) -> Iterator[str]:
    """Find default time-outs of promotion that are shorter than the fencing handler needs."""
    yield from _handler_times(setup, explicit=False)


def freeze_s(resource: Resource) -> float:
    """Return for how many seconds the handler of ``fence-peer`` holds up writing at most."""
    words = resource.option("handlers", "fence-peer").replace("=", " ").split()
    given = next((after for word, after in pairwise(words) if word in ("--timeout", "-t")), "")
    return seconds(given) or _DEFAULT_FENCE_PEER_S


def _handler_times(setup: Setup, *, explicit: bool) -> Iterator[str]:
    fencing_s = seconds(setup.pacemaker.properties.get("stonith-timeout", "")) or _DEFAULT_STONITH_S
    late = []
    for resource in setup.drbd:
        handler = resource.option("handlers", "fence-peer")
        given = bool(re.search(r"\s(--timeout|-t)\b", handler))
        if "crm-fence-peer" in handler and given == explicit and freeze_s(resource) < fencing_s:
            late.append(f"{resource.name} waits {freeze_s(resource):g} s")
    if late:
        yield f"drbd: fence-peer of {', '.join(late)}, stonith-timeout is {fencing_s:g} s"
