"""Recognise the files of a cluster by their content, and convert commands and other formats to a CIB."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from strakes.failover.blocks import read_corosync
from strakes.failover.cib_builder import CibBuilder
from strakes.failover.cluster import is_address
from strakes.failover.crm_text import STATEMENT, expanded, joined_lines, read_crm
from strakes.failover.facts import read_table
from strakes.failover.pcs_commands import COMMAND, HEADS, read_pcs_commands, read_pcs_config

CIB, COROSYNC, HARESOURCES = "pacemaker/cib.xml", "etc/corosync/corosync.conf", "etc/ha.d/haresources"
CRM, PCS_COMMANDS, PCS_CONFIG = "pacemaker/crm.txt", "pacemaker/pcs.sh", "pacemaker/pcs-config.txt"
STATEMENTS = {PCS_CONFIG: read_pcs_config, CRM: read_crm, PCS_COMMANDS: read_pcs_commands}
SBD_FILES = {"etc/sysconfig/sbd", "etc/default/sbd"}
SCRIPTS = (CRM, PCS_COMMANDS)  # A cluster may have several files of each of these kinds.
# Pattern of the content -> usual path of such a file. After ^, [ \t]* takes linear time, but \s* quadratic time.
_KINDS = (
    (re.compile(r"(?s)\A\s*+(?:(?><!--.*?-->|<\?xml.*?\?>)\s*+)*+<cib[\s>]"), CIB),
    (re.compile(r"(?m)^[ \t]*totem\s*\{"), COROSYNC),
    (re.compile(r"(?m)^[ \t]*(?:resource\s+\S+|common|global)\s*\{"), "etc/drbd.d/{name}"),
    (HEADS, PCS_CONFIG),
    (COMMAND, PCS_COMMANDS),
    (STATEMENT, CRM),
)


def place_of_source(name: str, text: str) -> str:
    """Return the usual path of a file with this content, or an empty text."""
    if name in ("haresources", "ha.cf"):
        return f"etc/ha.d/{name}"
    found = next((place for pattern, place in _KINDS if pattern.search(text)), "") if "\0" not in text else ""
    return found.format(name=name)


def built_cib(texts: Mapping[str, str]) -> tuple[str, CibBuilder] | None:
    """Return (file, CIB) for a file with crm, pcs or haresources statements, or None without such a file."""
    for name, read in STATEMENTS.items():
        if name in texts:
            builder = read(expanded(texts[name]))
            if not builder.node_names:
                names, builder.nodes_assumed = named_nodes(builder.text, texts)
                for node in names:
                    builder.node(node)
            if SBD_FILES & texts.keys() and "have-watchdog" not in builder.text:
                builder.properties({"have-watchdog": "true"})  # Pacemaker sets have-watchdog if sbd runs.
            builder.prune()
            return name, builder
    if HARESOURCES in texts:
        return HARESOURCES, read_crm("\n".join(_haresources(texts[HARESOURCES], texts.get("etc/ha.d/ha.cf", ""))))
    return None


def named_nodes(cib: str, texts: Mapping[str, str]) -> tuple[tuple[str, ...], bool]:
    """Return the node names of a cluster whose CIB lists no nodes, and whether the names are guesses."""
    drbd = "\n".join(text for name, text in texts.items() if name.startswith("etc/drbd"))
    nodes = read_corosync(texts.get(COROSYNC, ""), COROSYNC).one("nodelist").all("node")
    members = [name for one in nodes if (name := one.get("name") or one.get("ring0_addr"))]
    listed = [name for name in members if not is_address(name)]
    fenced = re.findall(r'name="pcmk_host_(?:list|map)" value="([^"]*)"', cib)
    named = (
        listed
        or re.findall(r"\bon\s+(\S+)\s*\{", drbd)
        or [re.split("[:=]", word)[0] for value in fenced for word in re.split(r"[\s,;]+", value) if word]
        or re.findall(r'<fencing-level [^<>]*target="([^"]*)"', cib)
        or re.findall(r'(?:<rsc_location [^<>]*node|<expression (?=[^<>]*"#uname")[^<>]* value)="([^"]*)"', cib)
        or members
    )
    return tuple(dict.fromkeys(named or ("assumed-1", "assumed-2"))), not listed


# haresources has no monitors and time-outs. Add some, so that no rule reports them as missing.
_MONITOR = "op monitor interval=20s timeout=60s"
_OPERATIONS = " ".join([_MONITOR, *(f"op {name} timeout=600s" for name in ("start", "stop", "promote", "demote"))])


def _haresources(text: str, ha_cf: str) -> Iterator[str]:
    ha_cf = re.sub("#.*", "", ha_cf)
    stonith = re.findall(r"(?m)^[ \t]*stonith(?:_host)?\s+(.*)$", ha_cf)
    yield f"property stonith-enabled={'true' if stonith else 'false'}"
    nodes = " ".join(re.findall(r"(?m)^[ \t]*node\s+(.*)$", ha_cf)).split()
    yield from (f"node {name}" for name in nodes)
    for number, words in enumerate(stonith, 1):
        parts = words.split()
        host, agent = (parts[0], parts[1]) if len(parts) > 1 else ("*", parts[0])
        values = {} if host == "*" else {"hostlist": parts[2] if len(parts) > 2 else host}
        values |= dict(zip(("ipaddr", "userid", "passwd", "interface"), parts[3:], strict=False))
        yield f"primitive stonith-{number} stonith:{agent} {_settings(values)} {_MONITOR}"
    for number, line in enumerate(joined_lines(text), 1):
        node, *entries = line.partition("#")[0].split() or [""]
        if entries:
            yield from () if nodes else [f"node {node}"]
            yield from _group(number, node, entries)


def _group(line: int, node: str, entries: list[str]) -> Iterator[str]:
    members, copies, known = list[str](), list[tuple[str, int]](), read_table("options/heartbeat")
    for number, entry in enumerate(entries, 1):
        agent, *values = entry.split("::")
        identity = f"{agent if values or not entry[0].isdigit() else 'ip'}-{line}-{number}"
        if agent in ("drbddisk", "drbdupper"):
            resource = _settings({"drbd_resource": values[0] if values else "all"})
            monitor = "op monitor interval=19s role=Promoted timeout=60s"
            yield f"primitive {identity} ocf:linbit:drbd {resource} {_OPERATIONS} {monitor}"
            yield f"ms ms-{identity} {identity} meta notify=true"
            copies.append((f"ms-{identity}", len(members)))
            continue
        if entry[0].isdigit():
            agent, values = "IPaddr2", [entry]
        names = known.get(agent) or [str(place) for place in range(1, len(values) + 1)]
        if agent in ("IPaddr", "IPaddr2") and len(values) == 1:
            values = values[0].split("/")
        kind = f"ocf:heartbeat:{agent}" if agent in known else f"lsb:{agent}"
        yield f"primitive {identity} {kind} {_settings(dict(zip(names, values, strict=False)))} {_OPERATIONS}"
        members.append(identity)
    if members:
        yield f"group line-{line} {' '.join(members)}"
        yield f"location home-line-{line} line-{line} 100: {node}"
    for clone, place in copies if members else ():
        yield f"colocation line-{line}-on-{clone} inf: line-{line} {clone}:Promoted"
        # Heartbeat starts the resources from left to right.
        for later in members[place : place + 1]:
            yield f"order {clone}-before-line-{line} Mandatory: {clone}:promote {later}:start"


def _settings(values: Mapping[str, str]) -> str:
    return " ".join(shlex.quote(f"{name}={value}") for name, value in values.items())
