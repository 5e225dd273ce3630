"""Pacemaker: the cluster information base (CIB) with resources, constraints, fencing and alerts."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from strakes.failover.cluster import Cluster, Node, Pdu, ServedTarget
from strakes.failover.planned.planned_file import Line, PlannedFile
from strakes.failover.planned.services import service_rows

# Pacemaker 2.1 knows this schema, and later versions upgrade it.
_SCHEMA = "pacemaker-3.7"
_DELAY_S = 10
# More than the stickiness of all members of a group.
_WATCHED = 20_000
STONITH_TIMEOUT_S = 120
# Time that DRBD waits for the fencing of its peer: longer than Pacemaker tries.
FENCE_PEER_S = STONITH_TIMEOUT_S + 60
ALERTS = "/etc/strakes"


class _Builder:
    """Builds a CIB and the explanations of its elements."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.lines: list[Line] = []
        versions = {"admin_epoch": "0", "epoch": "1", "num_updates": "0"}
        self.cib = Xml.Element("cib", {"validate-with": _SCHEMA, "crm_feature_set": "3.7.1", **versions})
        self.configuration = Xml.SubElement(self.cib, "configuration")
        self.options, self.nodes, self.resources, self.constraints = (
            Xml.SubElement(self.configuration, tag) for tag in ("crm_config", "nodes", "resources", "constraints")
        )

    def values(self, parent: Xml.Element, tag: str, identity: str, values: dict[str, str]) -> None:
        made = Xml.SubElement(parent, tag, id=identity)
        for name, value in values.items():
            Xml.SubElement(made, "nvpair", id=f"{identity}-{name}", name=name, value=value)

    def explained_values(self, parent: Xml.Element, tag: str, identity: str, rows: dict[str, tuple[str, str]]) -> None:
        """Add values, each with the risk that it averts."""
        self.values(parent, tag, identity, {name: value for name, (value, _) in rows.items()})
        for name, (value, why) in rows.items():
            self.explain(f"{name}={value}", why)

    def primitive(self, parent: Xml.Element, identity: str, agent: str, values: dict[str, str]) -> Xml.Element:
        """Add a resource; the agent is ``STANDARD:TYPE`` or ``STANDARD:PROVIDER:TYPE``."""
        standard, _, rest = agent.partition(":")
        provider, _, kind = rest.rpartition(":")
        given = {"id": identity, "class": standard, "provider": provider, "type": kind}
        made = Xml.SubElement(parent, "primitive", {name: text for name, text in given.items() if text})
        if values:
            self.values(made, "instance_attributes", f"{identity}-values", values)
        return made

    def keep_away(self, name: str, node: str, called: str = "") -> None:
        """Keep a resource and its probes off a node; ``called`` is its name in the id."""
        away = {"rsc": name, "node": node, "score": "-INFINITY", "resource-discovery": "never"}
        Xml.SubElement(self.constraints, "rsc_location", {"id": f"{called or name}-not-{node}", **away})

    def explain(self, text: str, why: str) -> None:
        self.lines.append(Line(text, why))

    def operations(self, primitive: Xml.Element, rows: list[tuple[str, str, str, str]]) -> None:
        """Add operations, given as rows of name, interval, timeout and role."""
        made = Xml.SubElement(primitive, "operations")
        for name, interval, timeout, role in rows:
            identity = f"{primitive.get('id')}-{name}-{interval}"
            given = {"id": identity, "name": name, "interval": interval, "timeout": timeout, "role": role}
            Xml.SubElement(made, "op", {key: text for key, text in given.items() if text})


def pacemaker_file(cluster: Cluster) -> PlannedFile:
    """Return the CIB for the cluster."""
    build = _Builder(cluster)
    _properties(build)
    for number, node in enumerate(cluster.nodes, 1):
        Xml.SubElement(build.nodes, "node", id=str(number), uname=node.name)
    for node in cluster.nodes:
        _fencing(build, node)
    for target in cluster.targets:
        _target(build, target)
    _management_first(build)
    _watch(build)
    _topology(build)
    _defaults(build)
    _alerts(build)
    Xml.SubElement(build.cib, "status")
    Xml.indent(build.cib)
    return PlannedFile(
        "pacemaker/cib.xml", Xml.tostring(build.cib, encoding="unicode") + "\n", lines=tuple(build.lines)
    )


def _properties(build: _Builder) -> None:
    rows = {
        "stonith-enabled": ("true", "split brain: nothing is taken over from a node that is not known to be off"),
        "stonith-action": (
            "off",
            "a node that restarts automatically and is fenced again and again; a person checks it first",
        ),
        "stonith-timeout": (f"{STONITH_TIMEOUT_S}s", "a power-off that is given up before the BMC could do it"),
        "no-quorum-policy": ("stop", "two halves that both serve: a side without quorum stops"),
        "concurrent-fencing": ("true", "one fencing device that hangs and holds up the other"),
        "cluster-recheck-interval": ("5min", "a failure count that never expires"),
    }
    build.explained_values(build.options, "cluster_property_set", "cib-bootstrap-options", rows)


def _fencing(build: _Builder, node: Node) -> None:
    cluster = build.cluster
    wins = node.name == cluster.survivor
    # With more nodes, only the side that has quorum powers nodes off.
    delay = {"pcmk_delay_base": f"{_DELAY_S}s"} if wins and len(cluster.nodes) == 2 else {}
    bmc = node.bmc
    values = {
        "ip": bmc.address,
        "ipport": str(bmc.port),
        "username": bmc.user,
        "password_script": bmc.password_script,
        "lanplus": "1",
        "cipher": "17",
        "privlvl": "administrator",
        "method": "onoff",
        "pcmk_host_list": node.name,
        "pcmk_reboot_action": "off",
        **delay,
    }
    _device(build, f"fence-{node.name}", "fence_ipmilan", values, node)
    build.explain(
        f"fence-{node.name}: fence_ipmilan method=onoff",
        f"a power cycle that is reported as done before {node.name} is off",
    )
    build.explain(
        f"fence-{node.name}: password_script={bmc.password_script}", "a password that everybody can read in the CIB"
    )
    if delay:
        build.explain(
            f"fence-{node.name}: pcmk_delay_base={_DELAY_S}s",
            f"both nodes powering each other off at the same moment: {node.name} survives",
        )
    build.explain(
        f"fence-{node.name} avoids {node.name}", "a node that is asked to power itself off and reports it as done"
    )
    for number, pdu in enumerate(node.pdus, 1):
        values = {
            "ip": pdu.address,
            "plug": pdu.outlet,
            **_outlet_login(pdu),
            "pcmk_host_map": f"{node.name}:{pdu.outlet}",
            "pcmk_reboot_action": "off",
            **delay,
        }
        _device(build, f"outlet-{node.name}-{number}", pdu.agent, values, node)


def _outlet_login(pdu: Pdu) -> dict[str, str]:
    snmp = {"snmp_version": pdu.snmp_version} if pdu.snmp_version else {}
    if not pdu.logs_in:
        return {**snmp, "community": pdu.community}
    secured = {"snmp_sec_level": "authNoPriv", "snmp_auth_prot": "SHA"} if pdu.snmp_version == "3" else {}
    return {"username": pdu.user, "password_script": pdu.password_script, **snmp, **secured}


def _device(build: _Builder, identity: str, agent: str, values: dict[str, str], node: Node) -> None:
    device = build.primitive(build.resources, identity, f"stonith:{agent}", values)
    build.operations(device, [("monitor", "60s", "60s", "")])
    elsewhere = {"id": f"{identity}-elsewhere", "rsc": identity, "node": node.name, "score": "-INFINITY"}
    Xml.SubElement(build.constraints, "rsc_location", elsewhere)


def _topology(build: _Builder) -> None:
    """Add fencing levels: first the BMC, which confirms that the node is off, then all outlets together."""
    if not any(node.pdus for node in build.cluster.nodes):
        return
    topology = Xml.SubElement(build.configuration, "fencing-topology")
    for node in build.cluster.nodes:
        levels = [
            f"fence-{node.name}",
            ",".join(f"outlet-{node.name}-{number}" for number in range(1, len(node.pdus) + 1)),
        ]
        for index, devices in enumerate(filter(None, levels), 1):
            level = {"id": f"level-{node.name}-{index}", "target": node.name, "index": str(index), "devices": devices}
            Xml.SubElement(topology, "fencing-level", level)
        build.explain(
            f"fencing levels of {node.name}: BMC, then outlets", "a BMC that has lost its power together with its node"
        )


def _target(build: _Builder, target: ServedTarget) -> None:
    cluster, group = build.cluster, f"serve-{target.name}"
    if target.replicated:
        _copies(build, target)
    grouped = Xml.SubElement(build.resources, "group", id=group)
    for identity, kind, values, operations in service_rows(cluster, target):
        build.operations(build.primitive(grouped, identity, kind, values), operations)
    if not target.replicated:
        build.explain(
            f"{group} is one group and no clone", "a device that both nodes reach, mounted on both: it is destroyed"
        )
    Xml.SubElement(build.constraints, "rsc_location", id=f"{group}-home", rsc=group, node=target.prefers, score="50")
    build.explain(
        f"{group} prefers {target.prefers} (50, less than the stickiness)", "an arbitrary place at the first start"
    )
    for node in cluster.nodes:
        if node.name not in target.nodes:
            for name in (group, *([f"drbd-{target.name}-clone"] if target.replicated else [])):
                build.keep_away(name, node.name)
    if len(cluster.nodes) > 2:
        build.explain(
            f"{group} only on {' and '.join(target.nodes)}", "a start on a node that does not reach the disks"
        )


def _copies(build: _Builder, target: ServedTarget) -> None:
    """Add the promotable clone of DRBD, and run the group on its promoted node."""
    drbd, group = f"drbd-{target.name}", f"serve-{target.name}"
    clone = Xml.SubElement(build.resources, "clone", id=f"{drbd}-clone")
    build.values(
        clone,
        "meta_attributes",
        f"{drbd}-clone-meta",
        {
            "promotable": "true",
            "promoted-max": "1",
            "promoted-node-max": "1",
            "clone-max": "2",
            "clone-node-max": "1",
            "notify": "true",
            "interleave": "true",
        },
    )
    build.explain(f"{drbd}-clone: promoted-max=1", "two nodes that write to their copy at the same time")
    build.explain(f"{drbd}-clone: notify=true", "a DRBD agent that does not learn what happens to its peer")
    build.operations(
        build.primitive(clone, drbd, "ocf:linbit:drbd", {"drbd_resource": target.name}),
        [
            ("monitor", "29s", "60s", "Promoted"),
            ("monitor", "31s", "60s", "Unpromoted"),
            ("start", "0s", "240s", ""),
            ("promote", "0s", "120s", ""),
            ("demote", "0s", "120s", ""),
            ("notify", "0s", "90s", ""),
            ("stop", "0s", "120s", ""),
        ],
    )
    build.explain(
        f"{drbd}: monitor 29s Promoted, 31s Unpromoted",
        "one role without monitoring: Pacemaker treats two monitors with the same interval as one",
    )
    promoted = {"with-rsc": f"{drbd}-clone", "with-rsc-role": "Promoted", "score": "INFINITY"}
    Xml.SubElement(build.constraints, "rsc_colocation", {"id": f"{group}-on-primary", "rsc": group, **promoted})
    build.explain(f"{group} only with Promoted {drbd}-clone", "a mount on the node that has not the writable copy")
    order = {
        "first": f"{drbd}-clone",
        "first-action": "promote",
        "then": group,
        "then-action": "start",
        "kind": "Mandatory",
    }
    Xml.SubElement(build.constraints, "rsc_order", {"id": f"{group}-after-promotion", **order})
    build.explain(f"promote {drbd}-clone, then start {group}", "a mount before the device can be written")


def _watch(build: _Builder) -> None:
    """Move services away from a node that has lost the clients' network, which no heartbeat may use."""
    hosts = build.cluster.file_system.watch
    if hosts and "@" in hosts[0]:
        values = {"lctl": "true", "host_list": " ".join(hosts), "multiplier": str(_WATCHED)}
        _watcher(build, "clients-network", "ocf:lustre:healthLNET", values)
    elif hosts:
        values = {"host_list": " ".join(hosts), "multiplier": str(_WATCHED), "dampen": "5s"}
        _watcher(build, "clients-network", "ocf:pacemaker:ping", values)
    for network in build.cluster.client_networks:
        if network.interface:
            values = {"interface": network.interface, "multiplier": str(_WATCHED)}
            name = f"card-{network.name}"
            _watcher(build, name, "ocf:heartbeat:ethmonitor", values)


def _watcher(build: _Builder, name: str, agent: str, values: dict[str, str]) -> None:
    """Run one agent on every server; the groups prefer nodes with a higher value of its attribute."""
    clone = Xml.SubElement(build.resources, "clone", id=f"{name}-clone")
    primitive = build.primitive(clone, name, agent, {**values, "name": name})
    build.operations(primitive, [("monitor", "10s", "60s", ""), ("start", "0s", "60s", ""), ("stop", "0s", "20s", "")])
    for node in build.cluster.nodes:
        if node.quorum_only:
            build.keep_away(f"{name}-clone", node.name, name)
    for target in build.cluster.targets:
        group = f"serve-{target.name}"
        location = Xml.SubElement(build.constraints, "rsc_location", id=f"{group}-{name}", rsc=group)
        rule = Xml.SubElement(location, "rule", {"id": f"{group}-{name}-rule", "score-attribute": name})
        Xml.SubElement(rule, "expression", id=f"{group}-{name}-defined", attribute=name, operation="defined")
    watched = values.get("host_list", values.get("interface", ""))
    build.explain(
        f"{name}: {agent.rpartition(':')[2]} {watched}",
        "a node that serves although its clients cannot reach it any more",
    )


def _management_first(build: _Builder) -> None:
    """Start the MGS first: a Lustre target that starts for the first time registers with the MGS."""
    targets = build.cluster.targets
    for manager in (target for target in targets if "mgs" in target.role):
        for target in targets:
            if target is not manager:
                first, then = f"serve-{manager.name}", f"serve-{target.name}"
                order = {"id": f"{then}-after-mgs", "first": first, "then": then, "kind": "Optional"}
                Xml.SubElement(build.constraints, "rsc_order", order)
                build.explain(f"start {first}, then {then} (if both start)", "a target that does not find its MGS")


def _defaults(build: _Builder) -> None:
    rows = {
        "resource-stickiness": ("1000", "a second interruption when the repaired node comes back"),
        "migration-threshold": ("3", "a service that is restarted for ever where it cannot run"),
        "failure-timeout": ("600s", "an old, forgotten failure that keeps a service away from a healthy node"),
    }
    parent = Xml.SubElement(build.configuration, "rsc_defaults")
    build.explained_values(parent, "meta_attributes", "rsc-options", rows)


def _alerts(build: _Builder) -> None:
    wanted = {"mail": build.cluster.alerts.mail_to, "webhook": build.cluster.alerts.webhook_url_file}
    if not any(wanted.values()):
        return
    parent = Xml.SubElement(build.configuration, "alerts")
    for name, recipient in wanted.items():
        if recipient:
            alert = Xml.SubElement(parent, "alert", id=f"alert-{name}", path=f"{ALERTS}/alert-{name}")
            Xml.SubElement(alert, "recipient", id=f"alert-{name}-to", value=recipient)
            build.explain(f"alert by {name} to {recipient}", "running on one leg for weeks because nobody knew")
