"""Rules about settings in the files of a node (kernel, systemd, multipath, NFS, ZFS, Lustre)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from strakes.failover.facts import Doubtful, Thing, facts, read_table, shared, yes
from strakes.failover.rules_possessions import commands_run, volume_named
from strakes.failover.setup import Setup, files_of_nodes


def _rejects_all(text: str) -> bool:
    for rows in re.findall(r"\b(?:global_)?filter\s*=\s*\[((?:[\s,]*\"[^\"]*\")*)", text):
        before, rejects, _ = re.sub(r"\"r([|/])\.\*\1\"", "\0", rows).partition("\0")
        if rejects and all("drbd" in pattern for pattern in re.findall(r"\"a([^\"]*)\"", before)):
            return True
    return False


def volume_groups(setup: Setup) -> Iterator[Thing]:
    """Yield each LVM volume group of the cluster, with the settings in lvm.conf that affect it."""
    text = setup.bare("etc/lvm/lvm.conf")
    modes = {volume_named(disk)[0]: "below DRBD" for one in setup.drbd for disk in one.disks}
    for one in setup.services:
        if one.agent in ("LVM", "LVM-activate"):
            group = one.values.get("vgname") or one.values.get("volgrpname", "")
            modes[group] = one.values.get("vg_access_mode") or "unknown"
    lists = re.findall(r"(?<!\w)((?:auto_activation_|read_only_)?volume_list)\s*=\s*\[([^\[\]]*)\]", text)
    plain = dict(re.findall(r"(?<!\w)(system_id_source|use_lvmlockd|use_lvmetad|locking_type)\s*=\s*\"?(\w+)", text))
    for group in sorted(modes.keys() - {""}) if text else ():
        inside = {name: f'"{group}"' in rows.replace("/", '"') for name, rows in lists}
        listed = {name: "yes" if inside[name] else "by tag" if "@" in rows else "no" for name, rows in lists}
        deduced = {"the mode": modes[group], "has no disk": yes(_rejects_all(text))}
        yield Thing(f"lvm.conf: {group}", facts(plain, listed, deduced))


def multipath_disk_missing(setup: Setup) -> Iterator[str]:
    """Find disks of the cluster that multipath.conf hides or renames, and repeated names in the file."""
    text = setup.bare("etc/multipath.conf", "#!")
    used = {one.device: one.id for one in setup.services if re.fullmatch(r"/dev/mapper/[\w.]+", one.device)}
    sections = " ".join(re.findall(r"multipath\s*\{([^{}]*)\}", text))
    aliases, wwids = (re.findall(rf"\b{key}\s+\"?([\w.:-]+)", sections) for key in ("alias", "wwid"))
    for name, user in ((device.removeprefix("/dev/mapper/"), user) for device, user in used.items()):
        if aliases and name not in aliases and not re.match("mpath|[0-9a-f]{17}", name):
            yield f"multipath.conf: no alias {name}, which {user} uses"
    names = sorted((*aliases, *wwids))
    yield from (f"multipath.conf: {one} is given twice" for one in sorted({a for a, b in pairwise(names) if a == b}))
    hidden = " ".join(re.findall(r"\bblacklist\s*\{((?:[^{}]|\{[^{}]*\})*)\}", text))
    for word in re.findall(r"\b(?:devnode|wwid)\s+\"?([^\s\"]+)", hidden) if used else ():
        if word in wwids or (word in (".*", "*", "^.*$") and "blacklist_exceptions" not in text):
            yield f"multipath.conf: blacklist has {word}"


def files_of_nodes_differ(setup: Setup) -> Iterator[str]:
    """Find files that must be equal on all nodes but differ, and host names or ids that several nodes share."""
    views = files_of_nodes(setup)
    own = [node for node in views if node]
    nodes = own if {*setup.members} <= {*own} else ["", *own]
    for file in sorted({name for node in nodes for name in views[node]}) if own else ():
        grade = str if re.match(r"etc/(corosync|pacemaker)/", file) else Doubtful
        yield from map(grade, _differing(file, {node: views[node][file] for node in nodes if file in views[node]}))
    for file in ("etc/iscsi/initiatorname.iscsi", "etc/hostname", "etc/hostid", "etc/nvme/hostnqn"):
        names = [(setup.bare(f"nodes/{node}/{file}").strip(), node) for node in own]
        # Ignore a host id with bytes that are not UTF-8: they were replaced by U+FFFD when the file was read.
        yield from (f"{file} is the same on {a} and {b}" for name, a, b in shared(names) if name.strip("\ufffd"))


def _differing(file: str, texts: Mapping[str, str]) -> Iterator[str]:
    rows = {node: _compared(file, text) for node, text in texts.items()}
    first, *others = rows
    for other in (node for node in others if rows[node] != rows[first]):
        changed = {re.split(r"[^\w.-]", line)[0] for line in {*rows[first]} ^ {*rows[other]} if "key" not in file}
        names = f": {', '.join(sorted(changed))}" if changed else ""
        yield f"{file} differs between {first or 'other nodes'} and {other}{names}"


def _compared(file: str, text: str) -> list[str]:
    for pattern, wanted in read_table("options/equal_files").items():
        if re.fullmatch(f"etc/({pattern})", file):
            words = (line.split() for line in re.split("[\n{};]", re.sub("#.*|[\"']", "", text)))
            plain = (re.sub(" ?([:=]) ?", r"\1", " ".join(each)) for each in words)
            # Without a node list, nodeid is the node's own id, which must differ between nodes.
            kept = (line for line in plain if line and ("nodelist" in text or not line.startswith("nodeid:")))
            return [line for line in kept if re.fullmatch(wanted, line)]
    return []


_Row = tuple[str, str, str]  # (section, name, value) of a setting


@dataclass(frozen=True)
class Given:
    """A setting in a file of a node. ``table``: name of the table of known options for this file."""

    file: str
    table: str
    name: str
    value: str


def _ini(text: str) -> Iterator[_Row]:
    section = ""
    for plain in map(str.strip, text.splitlines()):
        if head := re.fullmatch(r"\[\s*([\w.-]++)[^\]]*\]", plain):
            section = head[1]
        elif "=" in plain and plain[0] not in "#;":
            name, _, rest = plain.partition("=")
            yield section, name.removeprefix("export ").strip(), re.sub(r"(?<!\s)\s+#.*", "", rest).strip().strip("\"'")


def _braces(text: str) -> Iterator[_Row]:
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


def _kernel_line(text: str) -> Iterator[_Row]:
    for name, rest in re.findall(r"(?m)^[ \t]*(?:export )?(\w+)=[\"']?(.*)$", text):
        value = re.sub("[\"']$", "", rest.rstrip())
        yield "menu", name, value
        for word in value.split() if name.startswith(("GRUB_CMDLINE_LINUX", "DEFAULT_APPEND")) else ():
            key, _, given = word.partition("=")
            yield "line", key, given


# Format in options/formats.toml -> reader of such files.
_READERS: Mapping[str, Callable[[str], Iterable[_Row]]] = {"ini": _ini, "braces": _braces, "kernel line": _kernel_line}
_CLUSTER_UNIT = re.compile(r"systemd/system/(pacemaker|corosync|corosync-qdevice|sbd|multipathd|iscsid|drbd)\.service")


def settings_of_nodes(setup: Setup) -> Iterator[Given]:
    """Yield the settings in all files of nodes with a known format."""
    for file, text in setup.texts.items():
        name = file.removeprefix("etc/")
        for pattern, (table, form) in read_table("options/formats").items():
            for section, key, value in _READERS[form](text) if re.fullmatch(f"etc/({pattern})", file) else ():
                cluster = table == "unit" and _CLUSTER_UNIT.match(name)
                yield Given(name, f"{table} {section}{' of the cluster' if cluster else ''}".strip(), key, value)
    for module, words in re.findall(r"(?m)^[ \t]*options\s+(\S+)[ \t]+(.*)$", setup.modules):
        for key, value in re.findall(r"\b(\w++)=(\"[^\"]*\"|\S*)", words):
            yield Given("modprobe.d", f"module {module}", key, value.strip('"'))
    for module, command in re.findall(r"(?m)^[ \t]*install\s+(\S+)[ \t]+(.*)$", setup.modules):
        yield Given("modprobe.d", "module", f"install {module}", command)
    for key, value in setup.sysctl.items():
        yield Given("sysctl", "sysctl", re.sub(r"\.(conf|neigh)\.[^.]+\.", r".\1.all.", key), value)
    yield from _commands(setup)
    for one in (one for one in setup.services if one.agent == "ZFS"):
        words = (word for word in one.values.get("importargs", "").split() if "=" in word)
        yield from (Given(f"cib: {one.id}", "pool", *word.partition("=")[::2]) for word in words)


def _commands(setup: Setup) -> Iterator[Given]:
    for command in commands_run(setup):
        where, words = command.file.rpartition("/")[2], command.words
        pairs = [(before, word.partition("=")) for before, word in pairwise(words) if "=" in word]
        if words[0] in ("zpool", "zfs"):
            for before, (name, _, value) in pairs:
                if words[1] == "set" or before in ("-o", "-O"):
                    kind = "pool" if words[0] == "zpool" and before != "-O" else "dataset"
                    yield Given(where, kind, name, value)
        elif words[:2] in (("lctl", "set_param"), ("lctl", "conf_param")):
            yield from (Given(where, "lctl", name, value) for _, (name, _, value) in pairs)
        elif words[0] == "sysctl":
            found = re.findall(r"(?<![\w./])([\w./]++) ?= ?(\S+)", " ".join(words))
            yield from (Given(where, "sysctl", name, value) for name, value in found if "." in name[1:-1])
