"""Rules about times that do not fit each other."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.cib import seconds
from strakes.failover.rules.base import OWN, rule
from strakes.failover.setup import Setup

_LEAST_TOKEN_MS = 1000
_MOST_TOKEN_MS = 30_000
_LEAST_MONITOR_S = 20.0
_LEAST_STOP_S = 60.0
# Replaying a large journal, and multiple-mount protection, delay a Lustre mount.
_LEAST_LUSTRE_S = 300.0
_DEFAULT_STONITH_S = 60.0


@rule(
    "token-too-short",
    "error",
    "corosync",
    reason="A busy node that is late for a second is taken for dead and powered off; the default was raised for this.",
    remedy="totem: token: 3000, more where machines stall.",
    source="https://github.com/corosync/corosync/pull/600",
)
def short_token(setup: Setup) -> Iterator[str]:
    assert setup.corosync is not None
    token = setup.corosync.one("totem").get("token", "3000")
    if token.isdigit() and int(token) <= _LEAST_TOKEN_MS:
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
    assert setup.corosync is not None
    token = setup.corosync.one("totem").get("token", "3000")
    if token.isdigit() and int(token) > _MOST_TOKEN_MS:
        yield f"corosync.conf: token: {token} (milliseconds)"


@rule(
    "power-off-given-up-too-early",
    "error",
    "pacemaker",
    reason="The wait is over before the delay (it counts, until Pacemaker 2.1.6) and the BMC are: it fails, though the node goes off.",
    remedy="stonith-timeout of at least 60 s more than the longest delay.",
    source="https://github.com/ClusterLabs/crmsh/pull/890",
)
def stonith_timeout(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    limit = seconds(setup.cib.properties.get("stonith-timeout", "")) or _DEFAULT_STONITH_S
    longest = max((setup.cib.delay_s(device) for device in setup.cib.devices), default=0.0)
    if limit < longest + 40:
        yield f"cib: stonith-timeout is {limit:g} s, the longest delay {longest:g} s"


@rule(
    "no-monitor",
    "error",
    "pacemaker",
    reason="Pacemaker looks once at the start and never again: a service that dies stays dead.",
    remedy="Add op monitor interval=20s.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/operations.rst",
)
def no_monitor(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for primitive in setup.cib.primitives:
        if not any(one.name == "monitor" and one.interval_s > 0 for one in primitive.operations):
            yield f"cib: {primitive.id} is not monitored"


@rule(
    "one-role-not-monitored",
    "error",
    "pacemaker",
    reason="Operations are told apart by name and interval: with the same interval for both roles one of them is not monitored.",
    remedy="Two monitors with different intervals, such as 29s role=Promoted and 31s role=Unpromoted.",
    source="https://github.com/crowbar/crowbar-openstack/pull/1464",
)
def roles(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for primitive in setup.cib.primitives:
        if setup.cib.clones.get(primitive.clone, {}).get("promotable", "false").lower() != "true":
            continue
        monitors = [one for one in primitive.operations if one.name == "monitor" and one.interval_s > 0]
        if len({one.interval_s for one in monitors}) < len(monitors):
            yield f"cib: two monitors of {primitive.id} have the same interval"
        elif monitors and {one.role for one in monitors} != {"Promoted", "Unpromoted"}:
            yield f"cib: {primitive.id} is monitored in one role only"


@rule(
    "monitor-timeout-too-short",
    "warning",
    "pacemaker",
    reason="Under load, which is when it matters, a healthy service answers late and is restarted: an outage out of nothing.",
    remedy="timeout=60s for monitors.",
    source=OWN,
)
def short_monitor(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for primitive in setup.cib.primitives:
        for one in primitive.operations:
            if one.name == "monitor" and 0 < one.timeout_s < _LEAST_MONITOR_S:
                yield f"cib: monitor of {primitive.id} has {one.timeout_s:g} s"


@rule(
    "stop-timeout-too-short",
    "error",
    "pacemaker",
    reason="A stop that is not done in time counts as failed, and a node with a failed stop is powered off: each move becomes a crash.",
    remedy="op stop timeout=120s for mounts, 300s for Lustre.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/fencing.rst",
)
def short_stop(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for primitive in setup.cib.primitives:
        stop = primitive.operation("stop")
        if primitive.is_mount and (stop.timeout_s if stop else 20.0) < _LEAST_STOP_S:
            yield f"cib: stop of {primitive.id} has {stop.timeout_s if stop else 20.0:g} s"


@rule(
    "lustre-start-timeout-too-short",
    "error",
    "pacemaker",
    reason="Lustre's own agent asks for 300 s: after a crash the mount replays a journal first; cut short, the take-over fails.",
    remedy="op start timeout=600s",
    source="https://github.com/lustre/lustre-release/blob/master/contrib/scripts/pacemaker/Lustre",
)
def short_lustre(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for primitive in setup.cib.primitives:
        if primitive.agent == "Lustre" or (primitive.agent == "Filesystem" and primitive.values.get("fstype") == "lustre"):
            start = primitive.operation("start")
            if (start.timeout_s if start else 20.0) < _LEAST_LUSTRE_S:
                yield f"cib: start of {primitive.id} has {start.timeout_s if start else 20.0:g} s"
