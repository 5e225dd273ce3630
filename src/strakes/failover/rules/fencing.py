"""Rules about powering off a node that may still be writing."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.cib import Cib, Primitive
from strakes.failover.rules.base import OWN, rule
from strakes.failover.setup import Setup

_BMC_AGENTS = ("fence_ipmilan", "fence_ilo", "fence_ilo4", "fence_ilo5", "fence_idrac", "fence_imm", "fence_drac5", "fence_redfish")
PRETENDERS = ("fence_dummy", "null", "external/ssh", "ssh", "fence_heuristics_ping", "meatware")


def _victims(cib: Cib, setup: Setup) -> tuple[str, ...]:
    named = [node.get("name") for node in setup.corosync.one("nodelist").all("node")] if setup.corosync else []
    return tuple(dict.fromkeys([*cib.nodes, *named]))


def _is_bmc(device: Primitive) -> bool:
    return device.agent in _BMC_AGENTS


@rule(
    "fencing-switched-off",
    "error",
    "pacemaker",
    reason="A node that does not answer may still write; taking over from it without powering it off is how both copies come to differ.",
    remedy="stonith-enabled=true, with a device for every node.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/fencing.rst",
)
def switched_off(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    if setup.cib.properties.get("stonith-enabled", "true").lower() in ("false", "no", "off", "0"):
        yield "cib: stonith-enabled=false"


@rule(
    "node-without-fencing-device",
    "error",
    "pacemaker",
    reason="What runs on a node that cannot be powered off is never taken over; without any device nothing is even started.",
    remedy="Add a fencing device with pcmk_host_list=NODE.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Clusters_from_Scratch/verification.rst",
)
def no_device(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    fenced = {name for device in setup.cib.devices for name in setup.cib.fences(device)}
    for node in _victims(setup.cib, setup):
        if node not in fenced:
            yield f"cib: no device powers off {node}"


@rule(
    "fencing-device-for-nobody",
    "error",
    "pacemaker",
    reason="A device for a name that no node has is never used; mostly it was meant for one that has none now.",
    remedy="Correct pcmk_host_list or pcmk_host_map.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/fencing.rst",
)
def for_nobody(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    known = _victims(setup.cib, setup)
    for device in setup.cib.devices:
        for name in setup.cib.fences(device):
            if known and name not in known:
                yield f"cib: {device.id} powers off {name}, which is no node"


@rule(
    "fencing-that-pretends",
    "error",
    "pacemaker",
    reason="An agent that reports success without cutting the power, or asks the broken node to do it itself, lets both nodes write.",
    remedy="Use the BMC (fence_ipmilan), a switched outlet, or sbd.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/fencing.rst",
)
def pretends(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for device in setup.cib.devices:
        if device.agent in PRETENDERS:
            yield f"cib: {device.id} is {device.agent}"


@rule(
    "one-bmc-for-two-nodes",
    "error",
    "pacemaker",
    reason="Two devices with one address power off the same machine: the other one goes on while it is believed to be off.",
    remedy="Look up the address of each BMC, and prove each device: stonith_admin --fence NODE",
    source=OWN,
)
def same_bmc(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    seen: dict[tuple[str, str], Primitive] = {}
    for device in filter(_is_bmc, setup.cib.devices):
        place = (device.values.get("ip") or device.values.get("ipaddr", ""), device.values.get("ipport", "623"))
        if place[0] and place in seen and setup.cib.fences(device) != setup.cib.fences(seen[place]):
            yield f"cib: {seen[place].id} and {device.id} are both {place[0]}"
        seen.setdefault(place, device)


@rule(
    "fencing-race",
    "error",
    "pacemaker",
    reason="When the links are cut both nodes power each other off at the same moment, and nobody is left to serve.",
    remedy="Give the device of one node pcmk_delay_base=10s: that node survives. Or use priority-fencing-delay.",
    source="https://github.com/SUSE/doc-sleha/pull/81",
)
def race(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    cib = setup.cib
    if "priority-fencing-delay" in cib.properties or (setup.corosync and setup.corosync.one("quorum").all("device")):
        return
    delays: dict[str, float] = {}
    for device in cib.devices:
        for node in cib.fences(device):
            delays[node] = max(delays.get(node, 0.0), cib.delay_s(device))
        if device.values.get("pcmk_delay_max"):
            return
    if len(delays) == 2 and len(set(delays.values())) == 1:
        yield f"cib: both nodes are powered off after {next(iter(delays.values())):g} s"


@rule(
    "power-cycle-instead-of-off",
    "error",
    "pacemaker",
    reason="With method=cycle the agent may report success before the node is off; the other node has mounted the file system by then.",
    remedy="method=onoff",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/agents/ipmilan/fence_ipmilan.py",
)
def cycle(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for device in setup.cib.devices:
        if device.values.get("method") == "cycle":
            yield f"cib: {device.id} has method=cycle"


@rule(
    "ipmi-without-lanplus",
    "warning",
    "pacemaker",
    reason="Without lanplus the agent speaks IPMI 1.5, which today's BMCs refuse; the device fails when it is needed.",
    remedy="lanplus=1, and prove it: stonith_admin --fence NODE",
    source="https://github.com/ClusterLabs/fence-agents/issues/314",
)
def no_lanplus(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for device in setup.cib.devices:
        if device.agent == "fence_ipmilan" and device.values.get("lanplus", "0").lower() not in ("1", "true", "yes", "on"):
            yield f"cib: {device.id} has no lanplus=1"


@rule(
    "password-in-the-cib",
    "error",
    "pacemaker",
    reason="The CIB is no place for what is sensitive: it is on every node, in its backups and in every bug report.",
    remedy="password_script=/etc/…, a program of mode 0700 that prints it.",
    source="https://manpages.debian.org/bookworm/pacemaker-cli-utils/cibsecret.8.en.html",
)
def password(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    for primitive in setup.cib.primitives:
        for key in ("password", "passwd"):
            if primitive.values.get(key):
                yield f"cib: {primitive.id} has {key}=…"


@rule(
    "device-on-its-own-victim",
    "warning",
    "pacemaker",
    reason="The device is then watched from the very node whose failure it is for: nobody knows whether the other one can reach it.",
    remedy="A location constraint: DEVICE avoids NODE.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/fencing.rst",
)
def on_victim(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    kept_away = {(one.get("rsc"), one.get("node")) for one in setup.cib.constraints("rsc_location") if one.get("score") == "-INFINITY"}
    for device in setup.cib.devices:
        for node in setup.cib.fences(device):
            if len(setup.cib.fences(device)) == 1 and (device.id, node) not in kept_away:
                yield f"cib: {device.id} may run on {node}"


@rule(
    "fencing-shares-the-heartbeat-network",
    "error",
    "description",
    reason="What cuts the heartbeat then also cuts the way to the BMC: the nodes neither see nor can power off each other, and all stops.",
    remedy="Put the BMCs on a network of their own, or keep another heartbeat that shares nothing with it.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/fencing.rst",
)
def same_network(setup: Setup) -> Iterator[str]:
    assert setup.cluster is not None
    cluster = setup.cluster
    for node in cluster.nodes:
        network = cluster.network(node.bmc.network)
        for other in cluster.heartbeats:
            if other.name == network.name or (network.switch and other.switch == network.switch):
                yield f"cluster.toml: the BMC of {node.name} and the heartbeat {other.name} share {network.switch or network.name}"


@rule(
    "bmc-dies-with-its-node",
    "error",
    "description",
    "pacemaker",
    reason="A BMC has the power of its node. On one feed both lose it together, no power-off can be confirmed, nothing is taken over.",
    remedy="A second feed for the node, or a second level of fencing: switched outlets.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/fencing.rst",
)
def bmc_power(setup: Setup) -> Iterator[str]:
    assert setup.cluster is not None and setup.cib is not None
    for node in setup.cluster.nodes:
        others = [device for device in setup.cib.devices if node.name in setup.cib.fences(device) and not _is_bmc(device)]
        if len(set(node.power_feeds)) < 2 and not others:
            yield f"cluster.toml: {node.name} and its BMC hang on {node.power_feeds[0]} alone"


@rule(
    "fencing-level-names-nothing",
    "error",
    "pacemaker",
    reason="A level fails with any of its devices, and one that does not exist always does; after the last level nobody is powered off.",
    remedy="Correct the devices of the level.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained/fencing.rst",
)
def levels(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    known = {device.id for device in setup.cib.devices}
    for level in setup.cib.levels:
        for device in level.get("devices", "").split(","):
            if device not in known:
                yield f"cib: level {level.get('index')} of {level.get('target')} names {device}"
