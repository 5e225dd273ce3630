"""Rules about names and values in the files of a node beside the cluster's own, held against the tables of options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from strakes.failover.known_options import modules_known, options_of, sections_known, slip
from strakes.failover.rules.heartbeat import links_of, name_of, nodes_of
from strakes.failover.rules.node_row import uses
from strakes.failover.rules.node_rows import NODE_ROWS
from strakes.failover.rules.node_sources import special_settings
from strakes.failover.rules.rule import OWN, Severity, rule
from strakes.failover.setup import Setup

_SYSTEMD = "https://www.freedesktop.org/software/systemd/man/latest/systemd.directives.html"
_NFS_PORT = "2049"
# Tables of sections, with how a file is told from its name; "ini" has sections in brackets, "braces" in braces.
_FILES = (
    (re.compile(r"etc/nfs\.conf(\.d/.*)?"), "nfs.conf", "ini"),
    (re.compile(r"etc/iscsi/iscsid\.conf"), "iscsid.conf", "ini"),
    (re.compile(r"etc/multipath\.conf|etc/multipath/conf\.d/.*"), "multipath.conf", "braces"),
    (re.compile(r"etc/(sysconfig|default)/pacemaker"), "pacemaker settings", "ini"),
    (re.compile(r"etc/(sysconfig|default)/corosync"), "corosync settings", "ini"),
    (re.compile(r"etc/systemd/logind\.conf(\.d/.*)?"), "logind.conf", "ini"),
    (re.compile(r"etc/systemd/system\.conf(\.d/.*)?"), "system.conf", "ini"),
    (re.compile(r"etc/systemd/journald\.conf(\.d/.*)?"), "journald.conf", "ini"),
    (re.compile(r"etc/(dnf/automatic|yum/yum-cron)\.conf"), "automatic.conf", "ini"),
    (re.compile(r"etc/systemd/system/.*\.(service|mount|target)(\.d/.*\.conf)?"), "unit", "ini"),
)


@dataclass(frozen=True)
class Given:
    """One setting: the file, the table of its section, its name and value."""

    file: str
    table: str
    name: str
    value: str

    def fits(self, table: str, name: str, value: str) -> bool:
        """Tell whether the table, the name and the value are as these regular expressions say."""
        return all(map(re.fullmatch, (table, name, value), (self.table, self.name, self.value)))


def _ini(text: str) -> Iterator[tuple[str, str, str]]:
    section = ""
    for line in text.splitlines():
        plain = line.strip()
        if not plain or plain[0] in "#;":
            continue
        if head := re.fullmatch(r"\[\s*([\w.-]+)[^\]]*\]", plain):
            section = head[1]
        elif "=" in plain:
            name, _, value = plain.partition("=")
            yield section, name.removeprefix("export ").strip(), re.sub(r"\s+#.*", "", value).strip().strip("\"'")


def _braces(text: str) -> Iterator[tuple[str, str, str]]:
    path: list[str] = []
    for line in text.splitlines():
        plain = re.sub(r"[#!].*$", "", line).strip()
        if plain.endswith("{"):
            path.append(plain[:-1].strip())
        elif plain == "}":
            del path[-1:]
        elif plain:
            name, _, value = plain.partition(" ")
            yield path[-1] if path else "", name, value.strip().strip('"')


def settings_of_nodes(setup: Setup) -> Iterator[Given]:
    """Yield every setting of the files of the node that a table is about."""
    for file, text in setup.texts.items():
        for pattern, table, kind in _FILES:
            if pattern.fullmatch(file):
                for section, name, value in (_ini if kind == "ini" else _braces)(text):
                    yield Given(file.removeprefix("etc/"), f"{table} {section}".strip(), name, value)
    for module, words in re.findall(r"(?m)^\s*options\s+(\S+)[ \t]+(.*)$", setup.modules):
        for name, value in re.findall(r"(\w+)=(\"[^\"]*\"|\S*)", words):
            yield Given("modprobe.d", f"module {module}", name, value.strip('"'))
    for name, value in setup.sysctl.items():
        yield Given("sysctl", "sysctl", _of_all_cards(name), value)
    for file, table, name, value in special_settings(setup):
        yield Given(file, table, _of_all_cards(name) if table == "sysctl" else name, value)
    yield from _mounts(setup)


def _of_all_cards(name: str) -> str:
    return re.sub(r"\.(conf|neigh)\.[^.]+\.", r".\1.all.", name)


def _mounts(setup: Setup) -> Iterator[Given]:
    """Yield the mount options of file systems whose options are known."""
    for one in setup.services:
        options = one.values.get("options", "") if one.agent == "Filesystem" else ""
        kind = one.values.get("fstype", "")
        if options_of(f"mount options {kind}") or kind == "lustre":
            yield from _mount_options(f"cib: {one.id}", kind, options)
    for line in setup.fstab.splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 3 and options_of(f"mount options {words[2]}"):
            yield from _mount_options(f"fstab: {words[1]}", words[2], words[3])


def _mount_options(where: str, kind: str, options: str) -> Iterator[Given]:
    for word in re.split(r"[,\s]+", options.removeprefix("-o").strip()):
        name, _, value = word.partition("=")
        if name and not name.startswith("x-"):
            yield Given(where, f"mount options {kind}", name, value)


def _sections(setup: Setup) -> Iterator[tuple[str, str, str]]:
    """Yield file, kind of file and name of each section of the files of the node."""
    for file, text in setup.texts.items():
        for pattern, table, kind in _FILES:
            if pattern.fullmatch(file):
                names = r"(?m)^\s*\[\s*([\w.-]+)" if kind == "ini" else r"(?m)^\s*(\w+)\s*\{"
                for section in dict.fromkeys(re.findall(names, text)):
                    yield file.removeprefix("etc/"), table, section


def _known(table: str) -> tuple[str, ...]:
    """Return the tables of a section: some have a common part."""
    if table.startswith("mount options "):
        return ("mount options", table)
    return (table,)


@rule().error(
    reason="The program ignores a name that it does not know, or refuses the file: the intended setting has no effect.",
    remedy="Write the name as in the manual page of the file.",
    source=_SYSTEMD,
)
def node_option_misspelt(setup: Setup) -> Iterator[str]:
    """Find names in the files of a node that resemble a known one."""
    modules = modules_known()
    for module in re.findall(r"(?m)^\s*options\s+(\S+)", setup.modules):
        if module.replace("-", "_") not in modules and (other := slip(module, modules)):
            yield f"modprobe.d: options of {module}, which may mean {other}"
    for given in settings_of_nodes(setup):
        known = options_of(*_known(given.table))
        if known and given.name not in known and (other := slip(given.name, known)):
            yield f"{given.file}: {given.table} has {given.name}, which may mean {other}"
    for file, kind, section in _sections(setup):
        tables = sections_known(kind)
        if section not in tables and (other := slip(section, tables)):
            yield f"{file}: the section {section}, which may mean {other}"


@rule().error(
    reason="The program uses its default instead of a value that it does not understand, or does not start.",
    remedy="Use a value that the option accepts.",
    source=_SYSTEMD,
)
def node_option_value_invalid(setup: Setup) -> Iterator[str]:
    """Find values in the files of a node that the program does not take."""
    for given in settings_of_nodes(setup):
        option = options_of(*_known(given.table)).get(given.name)
        if option and given.value and (complaint := option.complaint(given.value)):
            yield f"{given.file}: {given.name}={given.value}, which ought to be {complaint}"


def _harm(setup: Setup, severity: Severity) -> Iterator[str]:
    """Yield what the rows of a severity find."""
    settings = list(settings_of_nodes(setup))
    for row in NODE_ROWS:
        if row.severity != severity or not uses(setup, row.only_with):
            continue
        for given in settings:
            if given.fits(row.table, row.names, row.bad):
                yield f"{given.file}: {given.name}={given.value}: {row.because}"


@rule().warning(
    reason="With this setting the node does less for the cluster than it could, or recovers later.",
    remedy="Remove the line; the default is right.",
    source=OWN,
)
def node_setting_doubtful(setup: Setup) -> Iterator[str]:
    """Find settings of a node that are seldom meant in a cluster."""
    yield from _harm(setup, "warning")


@rule().error(
    reason="With this setting the node works against the cluster.",
    remedy="Remove the line, or use a harmless value: HandlePowerKey=ignore, threads=64, Restart=no.",
    source=OWN,
)
def node_setting_harmful(setup: Setup) -> Iterator[str]:
    """Find settings of a node that work against the cluster."""
    yield from _harm(setup, "error")
    managed = {one.agent.removesuffix(".service") for one in setup.services if one.standard == "systemd"}
    for given in settings_of_nodes(setup):
        unit = given.file.rpartition("system/")[2].partition(".service")[0]
        restarts = given.name == "Restart" and given.value in ("always", "on-failure", "on-abnormal")
        if given.table == "unit Service" and restarts and unit in managed:
            yield f"{given.file}: {given.name}={given.value}: systemd restarts what Pacemaker stopped or fenced"
    yield from _bound_to_one(setup)
    text = setup.bare("etc/multipath.conf", "#!")
    all_of_them = re.search(r'\bblacklist\s*\{[^}]*\b(devnode|wwid)\s+"?(\.\*|\*|\^?\.\*\$?)"?\s*$', text, re.M)
    used = [one for one in setup.services if one.device.startswith("/dev/mapper/")]
    if all_of_them and used and "blacklist_exceptions" not in text:
        yield f"multipath.conf: blacklist has all disks, and {used[0].id} needs {used[0].device}"


# Table, the setting that has to be the smaller one, the larger one, and what happens otherwise.
_ORDERED = (
    ("module ko2iblnd", "peer_credits", "credits", "the first one is lowered to the second without a word"),
    ("module ksocklnd", "peer_credits", "credits", "the first one is lowered to the second without a word"),
    ("module ko2iblnd", "peer_credits_hiw", "peer_credits", "the first one is lowered to the second without a word"),
    (
        "sysctl",
        "vm.dirty_background_ratio",
        "vm.dirty_ratio",
        "the kernel takes half of the second in place of the first",
    ),
    (
        "sysctl",
        "vm.dirty_background_bytes",
        "vm.dirty_bytes",
        "the kernel takes half of the second in place of the first",
    ),
    ("sysctl", "net.core.rmem_default", "net.core.rmem_max", "the default is above the most"),
    ("sysctl", "net.core.wmem_default", "net.core.wmem_max", "the default is above the most"),
    ("iscsid.conf", "node.session.queue_depth", "node.session.cmds_max", "the queue is never filled"),
    (
        "iscsid.conf",
        "node.session.iscsi.FirstBurstLength",
        "node.session.iscsi.MaxBurstLength",
        "the target refuses it",
    ),
    ("multipath.conf defaults", "polling_interval", "max_polling_interval", "the first one is not kept"),
)


@rule().warning(
    reason="One of these settings is the limit of the other: with these values one of the two has no effect.",
    remedy="Swap them, or remove both; the defaults are right.",
    source=OWN,
)
def node_limits_reversed(setup: Setup) -> Iterator[str]:
    """Find a least that is above the most, and other numbers of one program in the wrong order."""
    numbers: dict[tuple[str, str, str], int] = {}
    for given in settings_of_nodes(setup):
        value = re.sub(r"\s+.*", "", given.value)
        if value.isdecimal():
            numbers[given.file, given.table, given.name] = int(value)
    for (file, table, name), number in numbers.items():
        larger = [(row[2], row[3]) for row in _ORDERED if row[:2] == (table, name)]
        # Names that differ only in min and max are a least and a most.
        twin = re.sub(r"(?<![a-z])min(?![a-z])", "max", name)
        larger += [(twin, "the least is above the most")] if twin != name else []
        for other, because in larger:
            # At zero most are switched off, or their default.
            most = numbers.get((file, table, other), 0)
            if number > most > 0:
                yield f"{file}: {name}={number}, {other}={most}: {because}"
    for name, value in setup.sysctl.items():
        # Least, default, most.
        row = [int(word) for word in value.split() if word.isdecimal()]
        if re.fullmatch(r"net\.ipv4\.(tcp_[rw]mem|(tcp|udp)_mem|ip_local_port_range)", name) and row != sorted(row):
            yield f"sysctl: {name}={value}: the least, the default and the most are not in this order"


@rule().error(
    reason="Two NFS services cannot listen on one port: the second one does not start, or uses another port that the "
    "firewall blocks.",
    remedy="Give nfsd, mountd, statd and lockd a port each in nfs.conf.",
    source="https://manpages.debian.org/bookworm/nfs-common/nfs.conf.5.en.html",
)
def port_given_twice(setup: Setup) -> Iterator[str]:
    """Find ports that two sections of nfs.conf have."""
    users: dict[str, dict[str, None]] = {}
    for given in settings_of_nodes(setup):
        if given.table.startswith("nfs.conf ") and given.name in ("port", "udp-port") and given.value.strip("0"):
            users.setdefault(given.value, {})[given.table.removeprefix("nfs.conf ")] = None
    if _NFS_PORT in users and not any("nfsd" in sections for sections in users.values()):
        users[_NFS_PORT]["nfsd"] = None
    for port, sections in users.items():
        if len(sections) > 1:
            yield f"nfs.conf: port {port} is given to {' and '.join(sections)}"


@rule("pacemaker").warning(
    reason="After a restart the node does not log in to its iSCSI targets by itself, or does not notice that a target "
    "is gone: its disks are missing when the cluster needs them.",
    remedy="node.startup = automatic, or a resource of ocf:heartbeat:iscsi; noop_out_interval and noop_out_timeout 5",
    source="https://github.com/open-iscsi/open-iscsi/blob/master/README",
)
def iscsi_disks_not_reconnected(setup: Setup) -> Iterator[str]:
    """Find iSCSI that nobody logs in to at boot, and that does not ask whether its target is there."""
    given = setup.settings_of("etc/iscsi/iscsid.conf")
    agents = {one.agent for one in setup.pacemaker.services}
    if given.get("node.startup") == "manual" and not agents & {"iscsi", "iSCSITarget", "iSCSILogicalUnit"}:
        yield "iscsi/iscsid.conf: node.startup = manual, and no resource logs in"
    interval = next((given[name] for name in given if name.endswith("timeo.noop_out_interval")), "")
    if interval == "0":
        yield "iscsi/iscsid.conf: noop_out_interval = 0"


def _bound_to_one(setup: Setup) -> Iterator[str]:
    """Find servers that listen at an address of a node only, while what they serve moves."""
    own = {address: name_of(node) for node in nodes_of(setup) for address in links_of(node).values()}
    yield from _bound_too_early(setup)
    for given in settings_of_nodes(setup):
        if given.name in ("host", "outgoing-addr") and given.value in own:
            yield f"{given.file}: {given.name}={given.value}, which is {own[given.value]} and does not move"


def _bound_too_early(setup: Setup) -> Iterator[str]:
    """Find a server of NFS that listens at a moving address, and starts before that address is there."""
    anywhere = setup.sysctl.get("net.ipv4.ip_nonlocal_bind") == "1"
    services = setup.cib.services if setup.cib and not anywhere else ()
    servers = [one for one in services if one.agent == "nfsserver" or one.agent.startswith("nfs-server")]
    for given in settings_of_nodes(setup) if servers else ():
        if (given.table, given.name) != ("nfs.conf nfsd", "host"):
            continue
        for address in services:
            if address.values.get("ip") not in re.split(r"[,\s]+", given.value):
                continue
            for server in servers:
                if setup.pacemaker.ties.starts_after(address, server):
                    yield f"{given.file}: host={given.value}, and {server.id} starts before {address.id}"
