"""Rules about powering off a node that may still be writing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.cib_values import is_true, seconds
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules.fencing_devices import (
    POWERS_OFF,
    address_of,
    delays_of,
    devices_for,
    fencing_enabled,
    is_bmc,
    is_outlet,
    plug_of,
    pretends_because,
    watchdog_fences,
)
from strakes.failover.rules.rule import OWN, PACEMAKER, rule
from strakes.failover.setup import Setup

_LEAST_DELAY_S = 3.0
_IPMI = ("fence_ipmilan", "fence_idrac", "fence_ilo3", "fence_ilo4", "fence_ilo5", "fence_imm", "fence_ipmilanplus")


@rule("pacemaker").error(
    reason="A node that does not answer may still write. If another node takes over without powering it off, the data "
    "are damaged or the copies diverge.",
    remedy="stonith-enabled=true, with a device for every node.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_switched_off(setup: Setup) -> Iterator[str]:
    """Find a cluster in which fencing is switched off."""
    if not fencing_enabled(setup.pacemaker):
        yield "cib: stonith-enabled=false"


@rule("pacemaker").error(
    reason="Services of a node that cannot be powered off are never taken over; without any fencing device nothing is "
    "even started.",
    remedy="Add a fencing device with pcmk_host_list=NODE.",
    source="https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Clusters_from_Scratch/verification.rst",
)
def node_without_fencing_device(setup: Setup) -> Iterator[str]:
    """Find nodes that no device powers off."""
    cib = setup.pacemaker
    if watchdog_fences(setup):
        return
    for node in setup.node_names:
        if not devices_for(cib, node):
            yield f"cib: no device powers off {node}"


@rule("pacemaker").error(
    reason="No node has the name that the device is for, so the device is never used. It was probably meant for a node "
    "that now has none.",
    remedy="Correct pcmk_host_list or pcmk_host_map.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_device_for_unknown_node(setup: Setup) -> Iterator[str]:
    """Find devices for nodes that do not exist."""
    cib, known = setup.pacemaker, setup.node_names
    for device in cib.devices:
        for name in cib.fences(device):
            if known and name not in known:
                yield f"cib: {device.id} powers off {name}, which is no node"
        # What else is said of nodes one by one, such as their delays.
        for key, value in device.values.items():
            names = [pair.partition(":")[0] for pair in re.split(r"[;\s]+", value) if ":" in pair]
            if key != "pcmk_host_map" and set(names) & set(known):
                yield from (
                    f"cib: {device.id} has {key} for {name}, which is no node" for name in names if name not in known
                )


@rule("pacemaker").error(
    reason="Without a list of hosts, Pacemaker uses the device for every node: it powers off its own machine instead "
    "of the broken one.",
    remedy="pcmk_host_list=NODE for each BMC; pcmk_host_map=NODE:PLUG;... for outlets.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_device_without_host_list(setup: Setup) -> Iterator[str]:
    """Find devices that do not say which node they power off, and BMCs of several nodes."""
    cib = setup.pacemaker
    for device in cib.devices:
        if cib.needs_no_hosts(device):
            continue
        if (is_bmc(device) or is_outlet(device)) and cib.fences_everybody(device):
            yield f"cib: {device.id} ({device.agent}) does not say which node it powers off"
        elif is_bmc(device) and len(cib.fences(device)) > 1:
            yield f"cib: {device.id} is one {device.agent} for {' and '.join(cib.fences(device))}"


@rule("pacemaker").error(
    reason="Without a map, the outlet is looked for under the name of the node. One outlet for two nodes powers off "
    "only one of them.",
    remedy="pcmk_host_map=NODE1:1;NODE2:2",
    source=f"{PACEMAKER}/fencing.rst",
)
def outlet_not_named(setup: Setup) -> Iterator[str]:
    """Find outlets that are not named, and outlets that several nodes share."""
    cib = setup.pacemaker
    for device in cib.devices:
        nodes = cib.fences(device)
        lacking = [node for node in nodes if not plug_of(device, node)]
        mapped = is_outlet(device) or device.values.get("pcmk_host_map")
        if not mapped:
            continue
        if lacking and is_outlet(device):
            yield f"cib: {device.id} names no outlet of {' and '.join(lacking)}"
        plugs = [plug_of(device, node) for node in nodes]
        if len(set(plugs)) < len(plugs) and not lacking:
            yield f"cib: {device.id} has one outlet for {' and '.join(nodes)}"


@rule("pacemaker").warning(
    reason="SNMP before version 3 needs a community, not a user and a password: the outlet refuses the login, and the "
    "node stays on.",
    remedy="snmp_version=2c and community=NAME; or snmp_version=3 with username, password_script and the snmp_ "
    "options of the outlet.",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/lib/fencing_snmp.py.py",
)
def outlet_login_for_another_snmp_version(setup: Setup) -> Iterator[str]:
    """Find devices with a user or a password for a version of SNMP that has neither."""
    for device in setup.pacemaker.devices:
        values = device.values
        if "snmp" not in device.agent or values.get("snmp_version") == "3":
            continue
        if any(values.get(key) for key in ("username", "login", "password_script", "passwd_script")):
            yield f"cib: {device.id} has a user or a password, and no snmp_version=3"


@rule("pacemaker").error(
    reason="An agent that reports success without cutting the power, or that asks the broken node to power itself off, "
    "lets both nodes write.",
    remedy="Use the BMC (fence_ipmilan), a switched outlet, or sbd.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_that_pretends(setup: Setup) -> Iterator[str]:
    """Find devices that report success and power nothing off."""
    cib = setup.pacemaker
    for device in cib.devices:
        why = pretends_because(device)
        # fence_kdump and a ping ahead of the real device in the same level, or in an earlier one, are of use.
        helps = device.agent in ("fence_kdump", "fence_heuristics_ping") and all(
            any(not pretends_because(other) for other in devices_for(cib, node)) and cib.levels_of(node)
            for node in cib.fences(device)
        )
        if why and not helps:
            yield f"cib: {device.id} {why}"


@rule("pacemaker").error(
    reason="Two devices with the same address power off the same machine: the other node keeps running although it is "
    "believed to be off.",
    remedy="Look up the address and the outlet of each node, and test each device: stonith_admin --fence NODE",
    source=OWN,
)
def one_bmc_for_two_nodes(setup: Setup) -> Iterator[str]:
    """Find BMCs and outlets that are given for several nodes."""
    cib = setup.pacemaker
    seen: dict[tuple[str, str, str], tuple[Primitive, str]] = {}
    for device in cib.devices:
        if not (is_bmc(device) or is_outlet(device)) or not address_of(device):
            continue
        for node in cib.fences(device):
            place = (
                address_of(device),
                device.values.get("ipport", ""),
                plug_of(device, node) if is_outlet(device) else "",
            )
            other, victim = seen.setdefault(place, (device, node))
            if victim != node and not (other is device and is_outlet(device) and not place[2]):
                yield (
                    f"cib: {other.id} for {victim} and {device.id} for {node} are both {' '.join(filter(None, place))}"
                )


@rule("pacemaker").error(
    reason="When the links are cut, both nodes power each other off at the same moment, and no node is left to serve.",
    remedy="Give the device of one node pcmk_delay_base=10s: that node survives. Or use priority-fencing-delay.",
    source="https://github.com/SUSE/doc-sleha/pull/81",
)
def fencing_race(setup: Setup) -> Iterator[str]:
    """Find two nodes that would power each other off at the same moment."""
    delays = delays_of(setup)
    # Of two reservations the first one counts: it takes the key away that the second would need.
    kinds = [device for node in delays for device in devices_for(setup.pacemaker, node)]
    if kinds and all(device.agent in ("fence_scsi", "fence_mpath") for device in kinds):
        return
    if len(delays) == 2 and abs(max(delays.values()) - min(delays.values())) < _LEAST_DELAY_S:
        each = ", ".join(f"{node} after {delay:g} s" for node, delay in delays.items())
        yield f"cib: each would be powered off at the same moment ({each})"


@rule("pacemaker").error(
    reason="priority-fencing-delay favours the node whose resources have the higher priority; without priorities both "
    "nodes are equal.",
    remedy="Give the service meta priority=10, or give one device pcmk_delay_base=10s.",
    source=f"{PACEMAKER}/cluster-options.rst",
)
def priority_delay_without_priorities(setup: Setup) -> Iterator[str]:
    """Find a delay by priority where no resource has a priority."""
    cib = setup.pacemaker
    if seconds(cib.properties.get("priority-fencing-delay", "")) and not any(
        one.meta.get("priority", "0") != "0" for one in cib.services
    ):
        yield f"cib: priority-fencing-delay={cib.properties['priority-fencing-delay']}, and no resource has a priority"


@rule("pacemaker").error(
    reason="With method=cycle the agent may report success before the node is off, and the other node mounts the file "
    "system too early.",
    remedy="method=onoff",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/agents/ipmilan/fence_ipmilan.py",
)
def power_cycle_instead_of_off(setup: Setup) -> Iterator[str]:
    """Find devices with the method ``cycle``, which does not confirm that the power was off."""
    for device in setup.pacemaker.devices:
        if device.values.get("method") == "cycle":
            yield f"cib: {device.id} has method=cycle"


@rule("pacemaker").warning(
    reason="Without lanplus the agent uses IPMI 1.5, which current BMCs refuse: the device fails when it is needed.",
    remedy="Set lanplus=1, and test the device: stonith_admin --fence NODE",
    source="https://github.com/ClusterLabs/fence-agents/issues/314",
)
def ipmi_without_lanplus(setup: Setup) -> Iterator[str]:
    """Find IPMI devices without lanplus."""
    for device in setup.pacemaker.devices:
        # The agents of makers are the same program with another default.
        default = "0" if device.agent == "fence_ipmilan" else "1"
        if device.agent in _IPMI and not is_true(device.values.get("lanplus", default)):
            yield f"cib: {device.id} has no lanplus=1"


@rule("pacemaker").note(
    reason="The CIB is no place for secrets: it is on every node, in its backups and in every bug report.",
    remedy="password_script=/etc/..., a program of mode 0700 that prints the password; or Pacemaker's secrets "
    "(cibsecret).",
    source="https://manpages.debian.org/bookworm/pacemaker-cli-utils/cibsecret.8.en.html",
)
def password_in_the_cib(setup: Setup) -> Iterator[str]:
    """Find passwords that are in the configuration itself."""
    # lrm:// means that the value is a secret of its own on each node.
    open_ones = [
        primitive.id
        for primitive in setup.pacemaker.primitives
        if any(primitive.values.get(key, "lrm://") != "lrm://" for key in ("password", "passwd"))
        and primitive.values.get("passwd_method", "param") == "param"
    ]
    if open_ones:
        yield f"cib: {', '.join(open_ones)}"


@rule("pacemaker").error(
    reason="The device has a user name but no password: the machine refuses the login, and no node is powered off.",
    remedy="password_script=/etc/..., a program that prints the password; then test it: stonith_admin --fence NODE",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/lib/fencing.py.py",
)
def fencing_device_without_password(setup: Setup) -> Iterator[str]:
    """Find devices of management controllers with a user and neither password nor script nor key."""
    given = ("password", "passwd", "password_script", "passwd_script", "identity_file")
    for device in setup.pacemaker.devices:
        named = any(device.values.get(key) for key in ("username", "login", "userid"))
        if is_bmc(device) and named and not any(device.values.get(key) for key in given):
            yield f"cib: {device.id}"


@rule("pacemaker").error(
    reason="Pacemaker uses a device only from nodes on which it may run: if it is forbidden on all other nodes, nobody "
    "can power off this one.",
    remedy="Forbid the device only on the node that it powers off (DEVICE avoids NODE), and on no other.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_device_forbidden_where_needed(setup: Setup) -> Iterator[str]:
    """Find devices that may run only on the node that they power off."""
    cib = setup.pacemaker
    for device in cib.devices:
        banned = {
            node
            for location in cib.locations
            if location.score == float("-inf") and device.id in location.resources
            for node in location.nodes
        }
        if not is_true(cib.properties.get("symmetric-cluster", "true")):
            about = [location for location in cib.locations if location.certain and device.id in location.resources]
            allowed = {node for location in about if location.score >= 0 for node in location.nodes}
            banned |= set(setup.node_names) - allowed if allowed else set()
        for victim in cib.fences(device):
            others = [node for node in setup.node_names if node != victim]
            if others and all(node in banned for node in others):
                yield f"cib: {device.id} may run on no node but {victim}, which it powers off"


@rule("description").error(
    reason="What cuts the heartbeat also cuts the connection to the BMC: the nodes can neither see nor power off each "
    "other, and all services stop.",
    remedy="Put the BMCs on a network of their own, or keep a second heartbeat link that shares nothing with that "
    "network.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_shares_the_heartbeat_network(setup: Setup) -> Iterator[str]:
    """Find BMCs that share a network or a switch with a heartbeat."""
    cluster = setup.described
    for node in cluster.nodes:
        network = cluster.network(node.bmc.network)
        for other in cluster.heartbeats:
            if other.name == network.name or (network.switch and other.switch == network.switch):
                yield (
                    f"cluster.toml: the BMC of {node.name} and the heartbeat {other.name} share "
                    f"{network.switch or network.name}"
                )


@rule("description", "pacemaker").error(
    reason="A BMC is powered by its node. If the node has only one feed, both lose power together: no power-off can be "
    "confirmed, and nothing is taken over.",
    remedy="Give the node a second feed, or add a second fencing level: switched outlets.",
    source=f"{PACEMAKER}/fencing.rst",
)
def bmc_dies_with_its_node(setup: Setup) -> Iterator[str]:
    """Find nodes that lose their BMC with their only feed, and that nothing else fences."""
    cib = setup.pacemaker
    for node in setup.described.nodes:
        others = [one for one in devices_for(cib, node.name) if not is_bmc(one) and not pretends_because(one)]
        if len(set(node.power_feeds)) < 2 and not others and not watchdog_fences(setup):
            yield f"cluster.toml: {node.name} and its BMC hang on {node.power_feeds[0]} alone"


@rule("pacemaker").error(
    reason="Pacemaker assumes that a node it has not seen yet is off, without powering it off; the node may be "
    "serving.",
    remedy="Remove startup-fencing=false.",
    source=f"{PACEMAKER}/cluster-options.rst",
)
def startup_fencing_off(setup: Setup) -> Iterator[str]:
    """Find a cluster that does not fence nodes it has not seen since it started."""
    if not is_true(setup.pacemaker.properties.get("startup-fencing", "true")):
        yield "cib: startup-fencing=false"


@rule("pacemaker").error(
    reason="The fencing action is off or reboot; anything else is refused, or does nothing to the node.",
    remedy="stonith-action=off (or reboot)",
    source=f"{PACEMAKER}/cluster-options.rst",
)
def fencing_action_unknown(setup: Setup) -> Iterator[str]:
    """Find actions that do not power a node off."""
    given = setup.pacemaker.properties.get("stonith-action", "reboot")
    if given not in ("off", "reboot", "poweroff"):
        yield f"cib: stonith-action={given}"
    for device in setup.pacemaker.devices:
        if device.values.get("action", "off") not in POWERS_OFF:
            yield f"cib: {device.id} has action={device.values['action']}"


@rule("pacemaker").error(
    reason="A session with the privilege level user can read the state of the power but cannot change it.",
    remedy="privlvl=operator or administrator",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/agents/ipmilan/fence_ipmilan.py",
)
def bmc_privilege_too_low(setup: Setup) -> Iterator[str]:
    """Find users of a BMC who may not switch its power."""
    for device in setup.pacemaker.devices:
        if device.values.get("privlvl", "administrator").lower() in ("user", "callback"):
            yield f"cib: {device.id} has privlvl={device.values['privlvl']}"


@rule("pacemaker").error(
    reason="A device that does not know the address of its BMC or outlet cannot power off a node.",
    remedy="ip=ADDRESS",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_device_without_address(setup: Setup) -> Iterator[str]:
    """Find BMCs and outlets without an address."""
    for device in setup.pacemaker.devices:
        if (is_bmc(device) or is_outlet(device)) and not address_of(device):
            yield f"cib: {device.id} ({device.agent}) has no ip"


@rule("pacemaker").error(
    reason="A node whose disk reservation was removed must be unfenced before it starts anything; without "
    "provides=unfencing that never happens.",
    remedy="meta provides=unfencing",
    source=f"{PACEMAKER}/fencing.rst",
)
def reservation_without_unfencing(setup: Setup) -> Iterator[str]:
    """Find fencing by disk reservations that does not let a node back in."""
    for device in setup.pacemaker.devices:
        if device.agent in ("fence_scsi", "fence_mpath") and device.meta.get("provides") != "unfencing":
            yield f"cib: {device.id} ({device.agent}) has no meta provides=unfencing"
