"""Rules about names and values in the files of a node beside the cluster's own, held against the tables of options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from strakes.failover.known_options import modules_known, options_of, slip
from strakes.failover.rules.heartbeat import links_of, name_of, nodes_of
from strakes.failover.rules.rule import OWN, rule
from strakes.failover.setup import Setup

_SYSTEMD = "https://www.freedesktop.org/software/systemd/man/latest/systemd.directives.html"
# Tables of sections, with how a file is told from its name; "ini" has sections in brackets, "braces" in braces.
_FILES = (
    (re.compile(r"etc/nfs\.conf(\.d/.*)?"), "nfs.conf", "ini"),
    (re.compile(r"etc/iscsi/iscsid\.conf"), "iscsid.conf", "ini"),
    (re.compile(r"etc/multipath\.conf|etc/multipath/conf\.d/.*"), "multipath.conf", "braces"),
    (re.compile(r"etc/(sysconfig|default)/pacemaker"), "pacemaker settings", "ini"),
    (re.compile(r"etc/(sysconfig|default)/corosync"), "corosync settings", "ini"),
    (re.compile(r"etc/systemd/logind\.conf(\.d/.*)?"), "logind.conf", "ini"),
    (re.compile(r"etc/systemd/system\.conf(\.d/.*)?"), "system.conf", "ini"),
    (re.compile(r"etc/systemd/system/.*\.(service|mount|target)(\.d/.*\.conf)?"), "unit", "ini"),
)


@dataclass(frozen=True)
class Given:
    """One setting: the file, the table of its section, its name and value."""

    file: str
    table: str
    name: str
    value: str


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
        yield Given("sysctl", "sysctl", re.sub(r"\.(conf|neigh)\.[^.]+\.", r".\1.all.", name), value)
    for one in setup.cib.services if setup.cib else ():
        options = one.values.get("options", "") if one.agent == "Filesystem" else ""
        kind = one.values.get("fstype", "")
        if options_of(f"mount options {kind}"):
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


def _known(table: str) -> tuple[str, ...]:
    """Return the tables of a section: some have a common part."""
    if table.startswith("mount options "):
        return ("mount options", table)
    return (table,)


@rule(
    "node-option-misspelt",
    "error",
    reason="The program ignores a name that it does not know, or refuses the file: what was meant is not set.",
    remedy="Write it as the manual page of the file does.",
    source=_SYSTEMD,
)
def misspelt(setup: Setup) -> Iterator[str]:
    """Find names in the files of a node that resemble a known one."""
    modules = modules_known()
    for module in re.findall(r"(?m)^\s*options\s+(\S+)", setup.modules):
        if module.replace("-", "_") not in modules and (other := slip(module, modules)):
            yield f"modprobe.d: options of {module}, which may mean {other}"
    for given in settings_of_nodes(setup):
        known = options_of(*_known(given.table))
        if known and given.name not in known and (other := slip(given.name, known)):
            yield f"{given.file}: {given.table} has {given.name}, which may mean {other}"


@rule(
    "node-value-not-taken",
    "error",
    reason="The program takes its default in place of a value that it does not understand, or does not start.",
    remedy="Write what the option takes.",
    source=_SYSTEMD,
)
def not_taken(setup: Setup) -> Iterator[str]:
    """Find values in the files of a node that the program does not take."""
    for given in settings_of_nodes(setup):
        option = options_of(*_known(given.table)).get(given.name)
        if option and given.value and (complaint := option.complaint(given.value)):
            yield f"{given.file}: {given.name}={given.value}, which ought to be {complaint}"


# Table, name, values that do harm (a regular expression), and what then happens.
_HARMFUL = (
    (
        "logind.conf Login",
        "HandlePowerKey",
        r"poweroff|reboot|suspend|hibernate",
        "a BMC that presses the button shuts the node down in minutes, and does not cut its power",
        False,
    ),
    (
        "system.conf Manager",
        "RuntimeWatchdogSec",
        r"[1-9].*|default",
        "systemd holds the watchdog that sbd needs",
        True,
    ),
    (
        "system.conf Manager",
        "DefaultTimeoutStopSec",
        r"[1-9]s?|1\ds?",
        "what has no time of its own is killed while it still writes",
        False,
    ),
    (
        "pacemaker settings",
        "PCMK_panic_action",
        r"(?!reboot|crash|sync-).*",
        "the node does not go down when it has to",
        False,
    ),
    (
        "pacemaker settings",
        "PCMK_node_start_state",
        r"standby|member.*",
        "the node serves nothing after it started",
        False,
    ),
    ("multipath.conf defaults", "path_checker", r"none|readsector0", "a dead path is not noticed", False),
    ("multipath.conf defaults", "skip_kpartx|user_friendly_names", r"(?!yes|no).*", "only yes or no is known", False),
    ("nfs.conf nfsd", "threads", r"0", "no thread serves", False),
    ("nfs.conf nfsd", "vers4|tcp", r"n|no|0|false|off", "clients that mount so are refused", False),
    (
        "unit Service",
        "Restart",
        r"always|on-failure|on-abnormal",
        "systemd restarts what Pacemaker stopped or fenced",
        True,
    ),
)


@rule(
    "node-setting-harmful",
    "error",
    reason="The node then works against the cluster.",
    remedy="Remove the line; the default is right.",
    source=OWN,
)
def harmful(setup: Setup) -> Iterator[str]:
    """Find settings of a node that work against the cluster."""
    managed = (
        {one.agent.removesuffix(".service") for one in setup.cib.services if one.standard == "systemd"}
        if setup.cib
        else set()
    )
    for given in settings_of_nodes(setup):
        for table, names, bad, because, conditional in _HARMFUL:
            if given.table != table or not re.fullmatch(names, given.name) or not re.fullmatch(bad, given.value):
                continue
            unit = given.file.rpartition("system/")[2].partition(".service")[0]
            if conditional and not (setup.sbd if given.name == "RuntimeWatchdogSec" else unit in managed):
                continue
            yield f"{given.file}: {given.name}={given.value}: {because}"
    yield from _bound_to_one(setup)
    text = re.sub(r"(?m)[#!].*$", "", setup.texts.get("etc/multipath.conf", ""))
    all_of_them = re.search(r'\bblacklist\s*\{[^}]*\b(devnode|wwid)\s+"?(\.\*|\*|\^?\.\*\$?)"?\s*$', text, re.M)
    used = [one for one in setup.cib.services if one.device.startswith("/dev/mapper/")] if setup.cib else []
    if all_of_them and used and "blacklist_exceptions" not in text:
        yield f"multipath.conf: blacklist has all disks, and {used[0].id} needs {used[0].device}"


def _bound_to_one(setup: Setup) -> Iterator[str]:
    """Find servers that listen at an address of a node only, while what they serve moves."""
    own = {address: name_of(node) for node in nodes_of(setup) for address in links_of(node).values()}
    for given in settings_of_nodes(setup):
        if given.name in ("host", "outgoing-addr") and given.value in own:
            yield f"{given.file}: {given.name}={given.value}, which is {own[given.value]} and does not move"
