"""Rules about settings of Pacemaker that contradict each other, or do nothing as they stand."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from strakes.failover.cib_values import is_true, seconds
from strakes.failover.rules.fencing_devices import is_outlet
from strakes.failover.rules.rule import AGENTS, DRBD_PACEMAKER, PACEMAKER, rule
from strakes.failover.setup import Setup

_PROMOTES = ("promote", "demote")
_OPERATIONS = (
    "start",
    "stop",
    "monitor",
    "promote",
    "demote",
    "notify",
    "migrate_to",
    "migrate_from",
    "reload",
    "reload-agent",
    "validate-all",
    "meta-data",
    "methods",
    "status",
)
# A device that is looked at once an hour is usual; more seldom is as good as never.
_LONG_S = 3600.0
# What an SNMP session of version 3 needs for each level of security.
_SNMP_NEEDS = {
    "authnopriv": (("snmp_auth_prot",), ("password", "passwd", "password_script", "passwd_script")),
    "authpriv": (
        ("snmp_auth_prot",),
        ("password", "passwd", "password_script", "passwd_script"),
        ("snmp_priv_prot",),
        ("snmp_priv_passwd", "snmp_priv_passwd_script"),
    ),
}


@rule("pacemaker").error(
    reason="Settings of the device contradict each other, or are not enough to log in: the device fails when it is "
    "needed.",
    remedy="Remove one of the two, or add what is missing.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_device_contradicts_itself(setup: Setup) -> Iterator[str]:
    """Find fencing devices with options that exclude each other, or that lack another one."""
    for one in setup.pacemaker.devices:
        values = one.values
        if is_true(values.get("inet4_only", "")) and is_true(values.get("inet6_only", "")):
            yield f"cib: {one.id} has inet4_only and inet6_only"
        if values.get("snmp_version") == "3" and not (values.get("username") or values.get("login")):
            yield f"cib: {one.id} has snmp_version=3, and no username"
        if values.get("snmp_version") == "3":
            for keys in _SNMP_NEEDS.get(values.get("snmp_sec_level", "").lower(), ()):
                if not any(values.get(key) for key in keys):
                    yield f"cib: {one.id} has snmp_sec_level={values['snmp_sec_level']}, and no {keys[0]}"


@rule("pacemaker").warning(
    reason="The device is checked only once (interval 0), or every few hours: if it stops answering, nobody notices "
    "until it is needed.",
    remedy="op monitor interval=60s",
    source=f"{PACEMAKER}/operations.rst",
)
def fencing_device_rarely_checked(setup: Setup) -> Iterator[str]:
    """Find fencing devices whose monitors hardly ever run."""
    for one in setup.pacemaker.devices:
        monitors = [operation for operation in one.operations if operation.name == "monitor"]
        running = [operation for operation in monitors if operation.enabled and 0 < operation.interval_s <= _LONG_S]
        if monitors and not running:
            yield f"cib: {one.id}"


# The older name of a parameter, and the newer one.
_OLDER = {
    "login": "username",
    "ipaddr": "ip",
    "passwd": "password",
    "passwd_script": "password_script",
    "port": "plug",
    "cmd_prompt": "command_prompt",
    "secure": "ssh",
}


@rule("pacemaker").error(
    reason="Both names mean the same parameter: it depends on the agent which of the two values is used.",
    remedy="Keep the newer name.",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/lib/fencing.py.py",
)
def parameter_given_twice(setup: Setup) -> Iterator[str]:
    """Find fencing devices that have an option under its older and its newer name, with two values."""
    for one in setup.pacemaker.devices:
        for older, newer in _OLDER.items():
            old, new = one.values.get(older), one.values.get(newer)
            if one.agent.startswith("fence_") and old is not None and new is not None and old != new:
                yield f"cib: {one.id} has {older}={old} and {newer}={new}"


@rule("pacemaker").error(
    reason="Agents do not start in a particular directory: a path that does not begin with / is not found.",
    remedy="Write the full path.",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/lib/fencing.py.py",
)
def path_not_absolute(setup: Setup) -> Iterator[str]:
    """Find fencing devices with a relative path."""
    for one in setup.pacemaker.devices:
        for name, value in one.values.items():
            if re.search(r"_(path|script|file)$", name) and value and not value.startswith(("/", "lrm://")):
                yield f"cib: {one.id} has {name}={value}"


@rule("pacemaker").error(
    reason="With pcmk_host_argument=none, the agent is not told which node to power off: an outlet strip then refuses.",
    remedy="Remove pcmk_host_argument.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_agent_not_told_which_node(setup: Setup) -> Iterator[str]:
    """Find outlets that are told neither the node nor the plug."""
    for one in setup.pacemaker.devices:
        lacking = not one.values.get("plug") and not one.values.get("port")
        if is_outlet(one) and one.values.get("pcmk_host_argument") == "none" and lacking:
            yield f"cib: {one.id} ({one.agent}) has pcmk_host_argument=none"


@rule("pacemaker", "drbd").error(
    reason="The disk below DRBD has the same UUID and label: it may be mounted instead of the DRBD device, and then "
    "nothing is replicated.",
    remedy="device=/dev/drbdN",
    source=DRBD_PACEMAKER,
)
def drbd_mounted_by_uuid_or_label(setup: Setup) -> Iterator[str]:
    """Find mounts of a device by its UUID or label."""
    for one in setup.pacemaker.services:
        if one.is_mount and re.match(r"-[UL]\b|(UUID|LABEL|PARTUUID)=|/dev/disk/by-(uuid|label)/", one.device):
            yield f"cib: {one.id} mounts {one.device}"


@rule("pacemaker").error(
    reason="The first and the last address of a network cannot belong to a host, and with a wrong mask the node sends "
    "through the wrong card.",
    remedy="ip and cidr_netmask of the clients' network; remove broadcast.",
    source=f"{AGENTS}/IPaddr2",
)
def address_unusable(setup: Setup) -> Iterator[str]:
    """Find addresses that no host can have in their network, and broadcast addresses of another one."""
    for bundle in setup.pacemaker.root.iter("bundle"):
        for part in bundle.iterfind("./network[@ip-range-start]"):
            replicas = next((one.get("replicas", "1") for one in bundle if one.get("image")), "1")
            try:
                first = ipaddress.ip_interface(f"{part.get('ip-range-start')}/{part.get('host-netmask', '24')}")
                last = first.ip + int(replicas) - 1
            except ValueError:
                continue
            if not int(first.network[0]) < int(last) < int(first.network[-1]) and first.network.num_addresses > int(
                replicas
            ):
                yield f"cib: {bundle.get('id')} needs {first.ip} to {last}, which {first.network} has not"
    for one in setup.pacemaker.services:
        bits = one.values.get("cidr_netmask", "")
        if one.agent != "IPaddr2" or not bits:
            continue
        try:
            interface = ipaddress.ip_interface(f"{one.values.get('ip', '')}/{bits}")
        except ValueError:
            yield f"cib: {one.id} has {one.values.get('ip', '')}/{bits}, which is no address"
            continue
        network = interface.network
        single = network.prefixlen >= network.max_prefixlen - 1
        if network.prefixlen == 0 or (not single and interface.ip in (network[0], network[-1])):
            yield f"cib: {one.id} has {interface}"
        broadcast = one.values.get("broadcast", "")
        if broadcast and network.version == 4 and broadcast not in (str(network.broadcast_address), "+", "-"):
            yield f"cib: {one.id} has broadcast={broadcast}, the network's is {network.broadcast_address}"


@rule("pacemaker").error(
    reason="Clients can read, change and remove the files that the server needs to give their locks back.",
    remedy="Put nfs_shared_infodir next to the exported directory, on the same mount.",
    source=f"{AGENTS}/nfsserver",
)
def nfs_state_exported(setup: Setup) -> Iterator[str]:
    """Find NFS servers that keep their state within an exported directory."""
    services = setup.pacemaker.services
    exported = [one.values.get("directory", "").rstrip("/") for one in services if one.agent == "exportfs"]
    # The root of an NFSv4 tree is exported for its parts.
    roots = [one.values.get("directory", "").rstrip("/") for one in services if one.values.get("fsid") in ("0", "root")]
    for one in services:
        state = one.values.get("nfs_shared_infodir", "").rstrip("/")
        for directory in exported:
            if state and directory and directory not in roots and f"{state}/".startswith(f"{directory}/"):
                yield f"cib: {one.id} keeps its state in {state}, which is exported"


@rule("pacemaker").error(
    reason="Clients know the server by the address that they mounted from: if they are notified of the take-over from "
    "another address, they do not reclaim their locks.",
    remedy="Set source_host, or nfs_ip, to the address of the service (IPaddr2).",
    source=f"{AGENTS}/nfsnotify",
)
def lock_recovery_from_another_address(setup: Setup) -> Iterator[str]:
    """Find addresses for NFS notifications that no resource brings up."""
    addresses = {one.values.get("ip") for one in setup.pacemaker.services if one.agent in ("IPaddr2", "IPaddr")}
    for one in setup.pacemaker.services:
        for name in ("source_host", "nfs_ip") if one.agent in ("nfsnotify", "nfsserver") else ():
            for given in re.split(r"[,\s]+", one.values.get(name, "")):
                # A name may be that of the address.
                if re.fullmatch(r"[0-9a-fA-F:.]+", given) and addresses and given not in addresses:
                    yield f"cib: {one.id} has {name}={given}, which no IPaddr2 has"
        if one.agent == "nfsnotify" and addresses and not one.values.get("source_host"):
            yield f"cib: {one.id} has no source_host: clients are told from an address of the node"


@rule("pacemaker").warning(
    reason="Without nfs_shared_infodir, each node keeps its own list of clients that hold locks: after a take-over the "
    "new node does not know which clients to notify.",
    remedy="Put nfs_shared_infodir on the mount that moves with the service.",
    source=f"{AGENTS}/nfsserver",
)
def nfs_client_list_not_shared(setup: Setup) -> Iterator[str]:
    """Find NFS servers whose list of lock holders does not move, although clients are to be told."""
    services = setup.pacemaker.services
    notify = next((one for one in services if one.agent == "nfsnotify"), None)
    servers = [one for one in services if one.agent == "nfsserver"]
    moves = any(one.values.get("nfs_shared_infodir") for one in servers)
    if notify and servers and not moves and not notify.values.get("notify_args"):
        yield f"cib: {servers[0].id} has no nfs_shared_infodir, and {notify.id} tells clients"


@rule("pacemaker").error(
    reason="Options are separated by commas only: a space begins a new word, and the mount or export is refused.",
    remedy="options=rw,sync",
    source=f"{AGENTS}/Filesystem",
)
def options_with_a_space(setup: Setup) -> Iterator[str]:
    """Find mount and export options with a space in them."""
    for one in setup.pacemaker.services:
        text = one.values.get("options", "").strip()
        if one.agent in ("Filesystem", "exportfs") and re.search(r"\s", text) and not text.startswith("-o"):
            yield f"cib: {one.id} has options={text!r}"


@rule("pacemaker").error(
    reason="Pacemaker never uses an operation of this name, so it has no effect: the default timeout applies, or there "
    "is no monitor.",
    remedy="Use start, stop, monitor, promote, demote or notify.",
    source=f"{PACEMAKER}/operations.rst",
)
def operation_unknown(setup: Setup) -> Iterator[str]:
    """Find operations that Pacemaker does not have, and roles outside a promotable clone."""
    cib = setup.pacemaker
    for primitive in cib.primitives:
        promotable = cib.promotable(primitive.clone)
        for operation in primitive.operations:
            if operation.name not in _OPERATIONS:
                yield f"cib: {primitive.id} has an operation {operation.name}"
            if operation.role in ("Promoted", "Unpromoted") and operation.name == "monitor" and not promotable:
                yield f"cib: {primitive.id} is monitored as {operation.role}, and is in no promotable clone"


@rule("pacemaker").error(
    reason="Pacemaker tells operations apart by name and interval: of two with the same name and interval, one is not "
    "carried out.",
    remedy="Give one of them a different interval, for example 11s instead of 10s.",
    source=f"{PACEMAKER}/operations.rst",
)
def operation_given_twice(setup: Setup) -> Iterator[str]:
    """Find operations of one resource with one name and interval."""
    for block in setup.pacemaker.root.iter("operations"):
        seen: dict[tuple[str, float], str] = {}
        for operation in block.iterfind("./op"):
            key = operation.get("name", ""), seconds(operation.get("interval", "0"))
            other = seen.setdefault(key, operation.get("id", ""))
            if other != operation.get("id", ""):
                yield f"cib: {other} and {operation.get('id')} are one operation"


@rule("pacemaker").error(
    reason="Only a promotable clone can be promoted: an order with the action promote of any other resource waits for "
    "ever, or has no effect.",
    remedy="first-action=promote of the DRBD clone, then-action=start of the service.",
    source=f"{PACEMAKER}/constraints.rst",
)
def order_with_impossible_action(setup: Setup) -> Iterator[str]:
    """Find orders that wait for the promotion of what is never promoted."""
    cib = setup.pacemaker
    promotable = set(filter(cib.promotable, cib.clones))
    promotable |= {primitive.id for primitive in cib.primitives if primitive.clone in promotable}
    known = promotable | {one.id for one in cib.primitives} | set(cib.groups) | set(cib.clones)
    for order in cib.orders:
        for name, action in ((order.first, order.first_action), (order.then, order.then_action)):
            if action in _PROMOTES and name in known - promotable:
                yield f"cib: {order.id} waits for {action} of {name}"


@rule("pacemaker").error(
    reason="A service that runs on a node where Pacemaker does not look for it is started a second time: one file "
    "system is mounted twice.",
    remedy="Remove resource-discovery; the default is always.",
    source=f"{PACEMAKER}/constraints.rst",
)
def resource_discovery_off(setup: Setup) -> Iterator[str]:
    """Find services that Pacemaker does not look for on nodes where they may run."""
    cib = setup.pacemaker
    for constraint in cib.constraints("rsc_location"):
        node, policy = constraint.get("node", ""), constraint.get("resource-discovery", "always")
        serving = any(primitive.standard != "stonith" for primitive in cib.ties.members(constraint.get("rsc", "")))
        never = constraint.get("score", "").upper() == "-INFINITY"
        if serving and node and ((policy == "never" and not never) or policy == "exclusive"):
            yield f"cib: {constraint.get('id')} has resource-discovery={policy}"


@rule("pacemaker").warning(
    reason="Without a schema, Pacemaker accepts any text as a configuration, and silently ignores what it does not "
    "understand.",
    remedy="validate-with=pacemaker-3.7 (cibadmin --upgrade)",
    source=f"{PACEMAKER}/cluster-options.rst",
)
def configuration_not_validated(setup: Setup) -> Iterator[str]:
    """Find a configuration that is not checked against a schema, or against one that is too old."""
    given = setup.pacemaker.root.get("validate-with", "")
    if given in ("none", "pacemaker-0.6", "transitional-0.6"):
        yield f"cib: validate-with={given}"
