"""Properties that rules check: of services, fencing devices, operations, clones and groups."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from itertools import combinations

from strakes.failover import rules_fencing_devices as power
from strakes.failover.cluster import is_address
from strakes.failover.facts import Facts, Table, Thing, facts, is_true, seconds, yes
from strakes.failover.known_options import advised_times, options_of, slip
from strakes.failover.pacemaker_resources import WATCHERS, Primitive
from strakes.failover.rules_possessions import enabled_units, units_of, volume_named
from strakes.failover.setup import Setup, hosts_of, links_of, nodes_of
from strakes.failover.source_kind import CRM

_UNSTABLE = re.compile(r"/dev/(sd[a-z]+|nvme\d+n\d++|hd[a-z]|dm-)\d*(p\d+)?")
_CARD_FILE = re.compile(
    r"etc/(sysconfig/network(-scripts)?/ifcfg-.*|NetworkManager/system-connections/.*|netplan/.*|network/interfaces.*|"
    r"systemd/network/.*)"
)
_WITH_ADDRESSES = ("ip", "ipaddr", "host_list", "source_host", "nfs_ip", "clientspec", "broadcast")
_RESERVATIONS = ("fence_scsi", "fence_mpath")
# With these agents, one fencing device fences every node, so it needs no pcmk_host_list.
FOR_EVERY_NODE = ("fence_sbd", "external/sbd", "fence_scsi", "fence_mpath", "fence_watchdog")
SBD = ("external/sbd", "fence_sbd")
_PASSWORDS = ("password", "passwd", "password_script", "passwd_script", "identity_file")
ADDRESSES = ("IPaddr2", "IPaddr", "IPv6addr")
_USERS = ("username", "login", "userid")
# Types of file systems that only one node may mount at a time. Without a type (""), assume one of these types.
_LOCAL = ("", "auto", "ext2", "ext3", "ext4", "xfs", "btrfs", "ldiskfs", "lustre", "zfs", "jfs", "reiserfs", "f2fs")


def needs_one_node(one: Primitive) -> bool:
    """Return whether only one node at a time may run a resource: it mounts a local file system or imports a pool."""
    remote = re.match(r"[^/]+:", one.device) or re.search(r"bind|\bro\b", one.values.get("options", ""))
    # With force_clones, each node mounts its own local disk, so several nodes may run the resource.
    own = is_true(one.values.get("force_clones", "false")) and not one.is_on_shared_disk
    return (one.is_mount and one.values.get("fstype", "") in _LOCAL and not remote and not own) or one.agent == "ZFS"


def resources(setup: Setup, *, devices: bool = True) -> Iterator[Thing]:
    """Yield the properties of each resource. ``devices``: include fencing devices."""
    chosen = setup.pacemaker.primitives if devices else setup.services
    yield from (Thing(f"cib: {one.id}", _primitive(setup, one)) for one in chosen)


def fencing_devices(setup: Setup) -> Iterator[Thing]:
    """Yield the properties of each fencing device, except devices with ``target-role=Stopped``."""
    cib = setup.pacemaker
    off = cib.properties.get("have-watchdog") == "false"  # sbd does not work without a watchdog.
    for one in cib.devices:
        targets = cib.fences(one)
        hosts = one.agent in FOR_EVERY_NODE
        deduced: Table = {
            "is a BMC": yes(power.is_bmc(one)),
            "is an outlet": yes(power.is_outlet(one)),
            "is a reservation": yes(one.agent in _RESERVATIONS),
            "watches itself": yes(one.agent in (*SBD, "fence_watchdog")),
            "its address": power.address_of(one),
            "its user": next((one.values[key] for key in _USERS if one.values.get(key)), ""),
            "its password": yes(any(one.values.get(key) for key in _PASSWORDS)),
            "is in a level": yes(any(one.id in row for node in setup.node_names for row in cib.levels_of(node))),
            "is for every node": yes(not hosts and cib.fences_everybody(one)),
            "its nodes": targets,
            "its known nodes": (known := {*targets} & {*setup.node_names, *cib.remote_nodes}),
            "number of its nodes": str(0 if hosts else len(known or targets)),
            "pretends": power.pretends_because(one)
            or "needs sbd, which has no watchdog" * (off and one.agent in SBD)
            or next(_leaves_open(setup, one), ""),
            "is needed with others": yes(_helps(setup, one)),
            "its runners": (runners := power.runners_of(setup, one)),
            "number of its runners": str(len(runners)),
            "runs on its node": yes(set(targets) & set(runners)),
            "is the only BMC": yes(power.is_bmc(one) and sum(map(power.is_bmc, cib.devices)) == 1),
        }
        yield Thing(f"cib: {one.id}", _primitive(setup, one, deduced))


def _helps(setup: Setup, device: Primitive) -> bool:
    cib = setup.pacemaker
    return device.agent in ("fence_kdump", "fence_heuristics_ping") and all(
        any(not power.pretends_because(other) for other in power.devices_for(cib, node))
        and (device.agent == "fence_kdump" or cib.levels_of(node))
        for node in cib.fences(device)
    )


def _leaves_open(setup: Setup, device: Primitive) -> Iterator[str]:
    if device.agent not in _RESERVATIONS or any(one.agent not in _RESERVATIONS for one in setup.devices):
        return
    disks = tuple(filter(None, re.split(r"[\s,;]+", device.values.get("devices", ""))))
    for one in setup.services if disks and not any(one.agent == "crypt" for one in setup.services) else ():
        places = {path.rpartition("/")[0] for path in (one.device, *disks)}
        alike = one.uses_disk and places in ({"/dev/mapper"}, {"/dev/disk/by-id"}) and not volume_named(one.device)[0]
        if alike and not one.device.startswith(disks):
            yield f"does not keep a node away from {one.device}, which {one.id} uses"
    for name, text in setup.texts.items() if device.agent == "fence_mpath" else ():
        if file := re.fullmatch(r"(?:nodes/([^/]+)/)?etc/multipath\.conf", name):
            keys = set(re.findall(r"(?m)^[ \t]*reservation_key\s+\"?(?:0x)?0*(\w+)", text))
            wanted = power.plug_of(device, file[1]).removeprefix("0x").lstrip("0") if file[1] else ""
            if not keys or (wanted and not keys & {wanted, "file"}):
                yield f"needs reservation_key {wanted}, but {name} has {', '.join(sorted(keys)) or 'none'}"


def operations(setup: Setup) -> Iterator[Thing]:
    """Yield each operation twice: with the values in force, and as written in the CIB."""
    for one in setup.pacemaker.primitives:
        # pcs adds a monitor for each role to promotable agents. Pacemaker ignores these if the resource is not cloned.
        ignored = not one.clone and any(each.repeats and not each.role for each in one.operations)
        for each in one.operations:
            effective = {
                "name": each.name,
                "role": each.role,
                "on-fail": each.on_fail,
                "standard": one.standard,
                "is of a watcher": yes(one.agent in WATCHERS),
                "has its role": yes(ignored or setup.pacemaker.promotable(one.clone)),
            }
            yield Thing(f"cib: {each.name} of {one.id}", facts(effective))
    for element in (one for tag in ("primitive", "template") for one in setup.pacemaker.root.iter(tag)):
        rows = [((op.get("name"), seconds(op.get("interval", "0"))), op) for op in element.iterfind("./operations/op")]
        keys, agent = [key for key, _ in rows], f"{element.get('provider')}:{element.get('type')}"
        of_agent = options_of(agent).keys() - options_of("operation").keys()
        for key, op in rows:
            written = {f"written {name}": text for name, text in op.attrib.items()}
            given = {*op.attrib, *(pair.get("name", "") for pair in op.iter("nvpair"))}
            deduced = {"is given twice": yes(keys.count(key) > 1), "option of its agent": given & of_agent}
            yield Thing(f"cib: {op.get('id')}", facts(written, deduced))


def clones(setup: Setup) -> Iterator[Thing]:
    """Yield the meta attributes of each clone, and properties of its members."""
    cib = setup.pacemaker
    own = {*setup.node_names}  # A DRBD host at another site is no node of this cluster.
    hosts = {r.name: str(len({one.name for one in r.hosts} & own) or len(r.hosts) or "") for r in setup.drbd}
    bundles = {one.get("id") for one in cib.root.iter("bundle")}
    single = options_of("agents with one promoted copy")
    for name, meta in cib.clones.items():
        members = [one for one in cib.primitives if one.clone == name]
        times = {one.agent: advised_times(f"{one.provider}:{one.agent}") for one in members}
        deduced: Table = {
            "agents": [one.agent for one in members],
            "is promotable": yes(cib.promotable(name)),
            "is stacked": yes(cib.is_stacked(name)),
            # For a bundle, the number of promoted copies is in the container element.
            "promoted copies": "" if name in bundles else meta.get("promoted-max") or meta.get("master-max", "1"),
            "promoted copies on a node": meta.get("promoted-node-max") or meta.get("master-node-max", "1"),
            "agents without promotion": [name for name, known in times.items() if known and "promote" not in known],
            "is used on both nodes": yes(setup.writes_on_both_nodes),
            "number of nodes": str(len(cib.members_of_corosync)),
            "number of hosts": [hosts.get(one.values.get("drbd_resource", ""), "") for one in members],
            "has one promoted copy": yes(any(one.agent in single for one in members)),
        }
        yield Thing(f"cib: {name}", facts(meta, deduced))


def groups(setup: Setup) -> Iterator[Thing]:
    """Yield the meta attributes of each group, and properties of the order of its members."""
    for group in setup.pacemaker.root.iter("group"):
        pairs = group.iterfind("./meta_attributes/nvpair")
        meta = {pair.get("name", ""): pair.get("value", "") for pair in pairs}
        members = setup.pacemaker.groups.get(group.get("id", ""), ())
        # SAP's guides start the IP address before the mount, so do not report this order.
        sap = any(one.agent.startswith("SAP") for one in members)
        early = [a.id for a, b in combinations(members, 2) if a.agent in ADDRESSES and b.is_mount and not sap]
        deduced: Table = {
            "addresses before mounts": dict.fromkeys(early),
            "needs its order": yes(len({one.agent for one in members}) > 1),
        }
        yield Thing(f"cib: {group.get('id')}", facts(meta, deduced))


def _primitive(setup: Setup, one: Primitive, more: Table | None = None) -> Facts:
    cib = setup.pacemaker
    unit = one.standard in ("systemd", "service", "lsb")
    least = advised_times(f"least:{'a unit' if unit else 'Lustre' if one.is_lustre else one.agent}")
    advised = advised_times(f"{one.provider}:{one.agent}")
    far = [
        f"{name} {one.timeout_s(name):g} s, its agent advises {limit:g} s"
        for name, limit in advised.items()
        if (name in ("start", "stop", "monitor") or (name != "notify" and cib.promotable(one.clone)))
        and (name not in least or one.operation(name) is None)
        and 0 < one.timeout_s(name) < limit / 3
    ]
    far += [
        f"{name} {one.timeout_s(name):g} s, it needs {s:g} s" for name, s in least.items() if one.timeout_s(name) < s
    ]
    usual_s = 5 if one.agent in (*ADDRESSES, *WATCHERS, "pgsqlms") else 20
    monitors = [each.timeout_s for each in one.operations if each.repeats and each.enabled]
    far += [f"monitor {limit_s:g} s, {usual_s} s is usual" for limit_s in monitors if limit_s < usual_s]
    stop_s, start_s = one.timeout_s("stop"), one.timeout_s("start")
    if one.operation("stop") and stop_s < min(60, start_s / 10):
        far.append(f"stop {stop_s:g} s, start {start_s:g} s")
    deduced: Table = {
        "id": one.id,
        "agent": one.agent,
        "standard": one.standard,
        "provider": one.provider,
        "keeps data": yes(one.keeps_data or cib.promotable(one.clone)),
        "is on a shared disk": yes(one.is_on_shared_disk),
        "is bound to a node": cib.only_node(one),
        "is exported for reading": yes(re.search(r"\bro\b", one.values.get("options", ""))),
        "is a mount": yes(one.is_mount),
        "is a watcher": yes(one.agent in WATCHERS),
        "mount options": re.split(r"[,\s]+", one.values.get("options", "") if one.is_mount else ""),
        "export options": re.split(r"[,\s]+", one.values.get("options", "") if one.agent == "exportfs" else ""),
        "import options": one.values.get("importargs", "").split() if one.agent == "ZFS" else (),
        "device name": one.device,
        "is cloned": yes(one.clone),
        "is promotable": yes(cib.promotable(one.clone)),
        "is stacked": yes(cib.is_stacked(one.clone)),
        "needs one node": yes(needs_one_node(one)),
        "is notified": yes(is_true(cib.clones.get(one.clone, {}).get("notify") or one.meta.get("notify", "false"))),
        "needs notifications": yes(one.agent in options_of("agents that are notified") or one.is_drbd),
        "can migrate": yes(not options_of(f"{one.provider}:{one.agent}") or "migrate_to" in advised),
        "short operations": far,
        "cluster nodes": str(len(setup.node_names)),
        "is completed by crmsh": yes(CRM in setup.texts and "dc-version" not in cib.properties),
        "failures expire after": one.meta.get("failure-timeout", "").removeprefix("0"),
    }
    return facts(
        one.values,
        {f"meta.{name}": value for name, value in one.meta.items()},
        _operations(one),
        deduced,
        _surroundings(setup, one),
        more or {},
    )


def _surroundings(setup: Setup, one: Primitive) -> Table:
    agents = {other.agent for other in setup.services}
    locked = one.values.get("vg_access_mode") in ("lvmlockd", "clvmd") and not agents & {"lvmlockd", "clvm"}
    shared = one.is_mount and one.values.get("fstype") == "gfs2" and one.clone and "controld" not in agents
    words = [word for value in one.values.values() for word in re.split(r"[\s,;]+", value)]
    kind, kinds = one.values.get("fstype", ""), options_of("file systems")
    ip = one.values.get("ip", "") if one.agent in ADDRESSES and not one.clone else ""
    mentioned = re.compile(rf"(?<![\w.:]){re.escape(ip)}(?![\w.:])")
    cards = [file for file in setup.texts if ip and _CARD_FILE.fullmatch(file) and mentioned.search(setup.bare(file))]
    hosts = one.values.get("host_list", "").split() if one.agent in WATCHERS else []
    return {
        "lacks a lock manager": yes(locked or shared),
        "/var/lib/nfs is mounted": yes("/var/lib/nfs" in (other.values.get("directory") for other in setup.services)),
        "unstable disks": [word for word in words if _UNSTABLE.fullmatch(word)],
        "misspelt file system": slip(kind, kinds) if one.is_mount and kind and kind not in kinds else "",
        "listed names that are no nodes": _strangers(setup, one),
        "contradiction": _contradiction(setup, one),
        "enabled units": [unit for unit in units_of(one) if unit in enabled_units(setup)],
        "cards with its address": cards,
        "watched cluster addresses": hosts * ({host.partition("@")[0] for host in hosts} <= _own_addresses(setup)),
        "address problem": _address_problem(one),
    }


def _strangers(setup: Setup, one: Primitive) -> Iterator[str]:
    known, text = {*setup.pacemaker.nodes, *setup.pacemaker.remote_nodes}, one.values.get("node_list", "")
    if one.agent == "galera" and (address := one.values.get("wsrep_cluster_address", "")):
        # galera: each host in wsrep_cluster_address must be a node, or be in cluster_host_map.
        pairs = re.findall(r"(?<![^;:\s])([^;:\s]++):\s*([^;\s]+)", one.values.get("cluster_host_map", ""))
        known, text = {name for _, name in pairs} or known, re.sub(r"\?.*|^gcomm://", "", address)
        yield from [f"{address} has no gcomm://"] if not address.startswith("gcomm://") else ()
    names = [name for name in re.split(r"[\s,;]+", text) if name and not re.search("[$<]", name)]
    # corosync.conf may have addresses in place of the names of nodes.
    if not all(map(is_address, known)):
        strange = (one for one in names if one not in known and not (setup.nodes_assumed and re.search("[.:]", one)))
        yield from (f"{one} is no node" for one in strange)


def _contradiction(setup: Setup, one: Primitive) -> Iterator[str]:
    sid, number = (one.values.get(key, "") for key in ("SID", "InstanceNumber"))
    for other in setup.services if one.agent in ("SAPHana", "SAPHanaController") else ():
        alike = other.values.get("SID") == sid and other.agent.startswith("SAPHana")
        if alike and other.values.get("InstanceNumber", number) != number:
            yield f"InstanceNumber is {number}, and {other.values['InstanceNumber']} in {other.id}"
        if alike and (one.agent, other.agent) == ("SAPHana", "SAPHanaFilesystem"):
            yield f"the package of {other.id} needs SAPHanaController"
    sids = {other.values.get("SID") for other in setup.services if other.agent == "SAPHanaTopology"}
    if one.agent in ("SAPHana", "SAPHanaController") and sids and sid not in sids:
        yield f"SID is {sid}, and no SAPHanaTopology has it"


def _own_addresses(setup: Setup) -> set[str]:
    links = [text for node in nodes_of(setup) for text in links_of(node).values()]
    described = setup.cluster.nodes if setup.cluster else ()
    given = [address for node in described for address in node.addresses.values()]
    moving = [one.values.get("ip", "") for one in setup.services if one.agent in ADDRESSES]
    return {*links, *(hosts_of(setup).get(text, "") for text in links), *setup.node_names, *moving, *given} - {""}


def _address_problem(one: Primitive) -> str:
    for name, value in one.values.items():
        words = [word.partition("@")[0] for word in re.split(r"[,\s]+", value)] if name in _WITH_ADDRESSES else []
        for word in words:
            dotted = "." in word and re.fullmatch(r"[\d.]+(/\d+)?", word)
            address, _, mask = word.partition("/")
            if dotted and (not is_address(address) or (mask and (name != "clientspec" or int(mask) > 32))):
                return f"{name}={word} is not an address"
        ports = value.split(",") if re.fullmatch(r"(\w*_)?port(no)?|pgport|remote-port", name) else []
        if one.standard != "stonith" and any(port.isdecimal() and not 0 < int(port) < 65536 for port in ports):
            return f"{name}={value} is not a port"
    text, bits = one.values.get("ip", ""), one.values.get("cidr_netmask", "")
    if one.agent not in ADDRESSES or not re.fullmatch(r"[\d.]+|[\da-fA-F:]+", text):
        return ""
    try:
        found = ipaddress.ip_interface(f"{text}/{bits}" if bits else text)
    except ValueError:
        return f"{text}/{bits} is not an address"
    network, broadcast = found.network, one.values.get("broadcast", "+")
    single = network.prefixlen >= found.max_prefixlen - 1
    if network.prefixlen == 0 or (not single and found.ip in (network[0], network[-1])):
        return f"{found} is the address of a network, or of all its hosts"
    right = single or broadcast in ("+", "-", str(network.broadcast_address))
    return "" if right else f"broadcast={broadcast} is not the broadcast address of {network}"


def _operations(one: Primitive) -> dict[str, str | tuple[str, ...]]:
    running = [each for each in one.operations if each.repeats and each.enabled]
    roles = {each.role for each in running}
    found: dict[str, str | tuple[str, ...]] = {
        "is monitored": yes([each for each in running if each.role != "Stopped"]),
        "monitored roles": tuple(each.role or "Unpromoted" for each in running),
        "monitor interval": f"{min(each.interval_s for each in running):g}" if running else "",
        "monitor intervals": tuple(f"{each.interval_s:g}" for each in running),
        "promoted is monitored": "yes" if "Promoted" in roles else "no" if roles else "",
        "standby is monitored": "yes" if roles - {"Promoted"} else "no" if roles else "",
        "op requires": tuple(each.requires for each in one.operations),
        "has a repeated interval": yes(len({each.interval_s for each in running}) < len(running)),
    }
    for each in one.operations:
        found[f"op.{each.name}.timeout"] = f"{each.timeout_s:g}"
    return found
