"""Rules about what a node starts, and sets in its kernel, beside the cluster's own files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.rules.commands import enabled_units
from strakes.failover.rules.lustre import made_targets, named_words
from strakes.failover.rules.node_options import settings_of_nodes
from strakes.failover.rules.node_row import SYSCTL, ZFS, SettingsOf
from strakes.failover.rules.rule import OWN, QDEVICE, rule
from strakes.failover.setup import Setup

# The units of systemd that start what an agent starts.
UNITS_OF = {
    "drbd": ("drbd.service", "drbd@{drbd_resource}.service", "drbd@{drbd_resource}.target"),
    "iSCSITarget": ("target.service", "tgt.service", "iscsi-target.service", "rtslib-fb-targetctl.service"),
    "nfsserver": ("nfs-server.service", "nfs-kernel-server.service", "nfsserver.service"),
    "apache": ("httpd.service", "apache2.service"),
    "nginx": ("nginx.service",),
    "pgsql": ("postgresql.service",),
    "pgsqlms": ("postgresql.service",),
    "mysql": ("mysqld.service", "mysql.service", "mariadb.service"),
    "galera": ("mysqld.service", "mysql.service", "mariadb.service"),
    "redis": ("redis.service", "redis-server.service"),
    "rabbitmq-cluster": ("rabbitmq-server.service",),
    "ZFS": ("zfs-import-scan.service",),
    "Lustre": ("lustre.service",),
    "named": ("named.service", "bind9.service"),
    "dhcpd": ("dhcpd.service", "isc-dhcp-server.service"),
    "haproxy": ("haproxy.service",),
    "squid": ("squid.service",),
    "vsftpd": ("vsftpd.service",),
    "tomcat": ("tomcat.service",),
    "dovecot": ("dovecot.service",),
    "slapd": ("slapd.service",),
    "controld": ("dlm.service",),
    "lvmlockd": ("lvmlockd.service", "lvm2-lvmlockd.service", "lvmlocks.service", "lvm2-lvmlocks.service"),
    "clvm": ("lvm2-clvmd.service", "lvm2-cluster-activation.service"),
    "VirtualDomain": ("libvirt-guests.service",),
    "CTDB": ("ctdb.service", "smb.service", "nmb.service"),
}
_CLUSTER_UNITS = ("pacemaker", "corosync", "sbd", "corosync-qdevice", "drbd")
_SYSTEMD = "https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html"
_MODULES_THAT_SERVE = ("drbd", "zfs", "lustre", "lnet", "softdog", "gfs2", "dlm", "nfsd", "dm_multipath")
_NOTHING_PROVED = re.compile(r"(/usr)?(/bin/)?(true|false)\b")
_MODULE_SETTINGS = (
    SettingsOf("module softdog").error("soft_noboot", "[1yY].*", "when the watchdog expires, the node is not reset"),
    SettingsOf("module softdog").error(
        "soft_panic", "[1yY].*", "the node panics in place of a reset, and stands still"
    ),
    ZFS.error("zfs_multihost_fail_intervals", "0", "a node that cannot write to the pool does not give it up"),
    ZFS.error("zfs_multihost_interval", r"\d{1,2}", "the least is 100 ms"),
    SettingsOf("module spl").error("spl_hostid", "0|0x0+", "multihost does not work without a host id"),
    SettingsOf("module drbd").error("usermode_helper", r"(?!.*drbdadm).*", "no handler is called, fence-peer neither"),
    SettingsOf("module drbd").error("fault_rate", "[1-9].*", "DRBD makes up errors of the disk"),
    SettingsOf("module lnet").error("accept", "none", "the node takes no connection over TCP: no client reaches it"),
    SettingsOf("module libcfs").error(
        "libcfs_panic_on_lbug", "0", "after an internal error Lustre's threads hang, and the node is not fenced"
    ),
    SettingsOf("module bonding").error("miimon", "0", "the bond does not see that a link is gone"),
)
_KERNEL_SETTINGS = (
    SYSCTL.error(r"net\.ipv4\.conf\..*\.arp_ignore", "8", "nobody is told where an address of the cluster is"),
    SYSCTL.error(r"vm\.min_free_kbytes", r"\d{9,}", "so many KiB that no memory is left for programs"),
    SYSCTL.error(r"kernel\.sched_rt_runtime_us", "0", "Corosync and sbd get no time of a processor"),
)


@rule("units", "pacemaker").error(
    reason="systemd starts it at boot on every node: it runs twice, or on a node that has to wait, before any node is "
    "fenced.",
    remedy="systemctl disable UNIT on all nodes; Pacemaker starts it.",
    source=OWN,
)
def started_beside_pacemaker(setup: Setup) -> Iterator[str]:
    """Find enabled units that start what Pacemaker starts."""
    enabled = enabled_units(setup)
    found = set()
    for one in setup.pacemaker.services:
        named = f"{one.agent.removesuffix('.service')}.service"
        own = (named,) if one.standard in ("systemd", "service") else UNITS_OF.get(one.agent, ())
        own = tuple(unit.replace("{drbd_resource}", one.values.get("drbd_resource", "")) for unit in own)
        found |= {f"systemd: {unit} is enabled, and {one.id} starts it" for unit in own if unit in enabled}
    yield from sorted(found)


@rule("units").error(
    reason="Pacemaker must be able to finish its stop, and Corosync and sbd need the processor at once: a node that is "
    "killed during its stop, or that is late, is fenced.",
    remedy="Remove the line from the drop-in file; the original unit is right.",
    source=_SYSTEMD,
)
def cluster_unit_restricted(setup: Setup) -> Iterator[str]:
    """Find drop-in files that kill or slow down the programs of the cluster."""
    for name, text in setup.units.items():
        # Pacemaker starts after this target.
        if name.startswith("resource-agents-deps.target.d/"):
            for unit in re.findall(r"(?m)^\s*After\s*=.*?\b((?:pacemaker|corosync)\.service)", text):
                yield f"systemd: resource-agents-deps.target waits for {unit}"
        program = name.partition(".service.d/")[0]
        if program not in _CLUSTER_UNITS or ".service.d/" not in name:
            continue
        for key, value in re.findall(r"(?m)^\s*(\w+)\s*=\s*(\S.*?)\s*$", text):
            killed = program == "pacemaker" and (
                (key == "KillMode" and value in ("control-group", "mixed")) or (key == "SendSIGKILL" and value != "no")
            )
            slowed = (
                key in ("CPUQuota", "MemoryMax", "MemoryHigh", "MemoryLimit")
                or (key == "CPUSchedulingPolicy" and value in ("idle", "batch"))
                or (key == "Nice" and re.fullmatch(r"[1-9]\d*", value))
                or (key == "OOMScoreAdjust" and re.fullmatch(r"[1-9]\d*", value))
            )
            if killed or slowed:
                yield f"systemd: {program} has {key}={value}"


@rule().error(
    reason="A module with this option, or one that is not loaded, does not do what the cluster relies on.",
    remedy="Remove the line from /etc/modprobe.d.",
    source="https://www.kernel.org/doc/html/latest/watchdog/watchdog-parameters.html",
)
def module_setting_harmful(setup: Setup) -> Iterator[str]:
    """Find options of modules that take away what the cluster counts on, and modules that cannot be loaded."""
    for given in settings_of_nodes(setup):
        for row in _MODULE_SETTINGS:
            if given.fits(row.table, row.names, row.bad):
                yield f"{given.file}: {row.table.removeprefix('module ')} {row.names}={given.value}: {row.because}"
    for module, command in re.findall(r"(?m)^\s*install\s+(\S+)[ \t]+(.*)$", setup.modules):
        if module.replace("-", "_") in _MODULES_THAT_SERVE and _NOTHING_PROVED.match(command.strip()):
            yield f"modprobe.d: {module} is never loaded"


@rule().error(
    reason="With this setting the kernel of the node works against the cluster.",
    remedy="Remove the line from /etc/sysctl.d.",
    source="https://www.kernel.org/doc/html/latest/networking/ip-sysctl.html",
)
def kernel_setting_harmful(setup: Setup) -> Iterator[str]:
    """Find settings of the kernel that work against the cluster."""
    for given in settings_of_nodes(setup):
        for row in _KERNEL_SETTINGS:
            if given.fits(row.table, row.names, row.bad):
                yield f"{given.file}: {given.name}={given.value}: {row.because}"
    if setup.drbd and setup.sysctl.get("kernel.hung_task_panic") == "1":
        yield "sysctl: kernel.hung_task_panic=1: a write that waits for fencing makes the survivor panic"
    off = [name for name, value in setup.sysctl.items() if name.endswith(".disable_ipv6") and value == "1"]
    nodes = setup.corosync.one("nodelist").all("node") if setup.corosync else []
    if any(":" in node.get(f"ring{number}_addr") for node in nodes for number in range(8)):
        yield from (f"sysctl: {name}=1, and Corosync has IPv6 addresses" for name in off if ".lo." not in name)


@rule("corosync").error(
    reason="A command that always fails, always succeeds or asks this node itself does not show who is cut off: the "
    "vote goes to the wrong side, or to none.",
    remedy="exec_NAME: /usr/bin/ping -q -c 1 GATEWAY",
    source=QDEVICE,
)
def heuristic_proves_nothing(setup: Setup) -> Iterator[str]:
    """Find heuristics of the quorum device that do not tell one side from the other."""
    own = {
        value
        for node in setup.membership.one("nodelist").all("node")
        for key, value in node.settings
        if re.fullmatch(r"ring\d_addr|name", key)
    }
    moving = {one.values.get("ip", "") for one in setup.services} - {""}
    for device in setup.membership.one("quorum").all("device"):
        for key, command in device.one("heuristics").settings:
            words = command.split()
            asked = own | moving | {"localhost", "::1"}
            if key.startswith("exec_") and (
                _NOTHING_PROVED.fullmatch(command.strip())
                or (words and (words[-1] in asked or words[-1].startswith("127.")))
            ):
                yield f"corosync.conf: {key}: {command}"


@rule("lustre", "pacemaker").error(
    reason="Targets with the same servers must be able to run on the same nodes: clients do not look for a target on "
    "any other node.",
    remedy="The nodes of --servicenode and of the location constraints of a target must be the same.",
    source="https://wiki.lustre.org/Creating_the_Lustre_Object_Storage_Services_(OSS)",
)
def target_on_nodes_of_others(setup: Setup) -> Iterator[str]:
    """Find targets made for the same servers that Pacemaker may start on different nodes."""
    cib = setup.pacemaker
    opt_in = cib.properties.get("symmetric-cluster", "true").lower() in ("false", "no", "off", "0")
    made = {words[-1]: frozenset(named_words(words, "servicenode")) for words in made_targets(setup)}
    seen: dict[frozenset[str], tuple[str, frozenset[str]]] = {}
    for one in cib.services if opt_in else ():
        servers = made.get(one.device)
        if not servers:
            continue
        places = [place for place in cib.locations if {one.id, one.group} & set(place.resources)]
        nodes = frozenset(node for place in places if place.score > 0 for node in place.nodes)
        if not nodes or any(not place.certain for place in places if place.score > 0):
            continue
        other, usual = seen.setdefault(servers, (one.id, nodes))
        if usual != nodes:
            yield f"cib: {one.id} may run on {', '.join(sorted(nodes))}, {other} on {', '.join(sorted(usual))}"
