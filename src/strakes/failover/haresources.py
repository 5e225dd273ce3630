"""Read ``haresources`` and ``ha.cf`` of Heartbeat 1, and of Heartbeat 2 in this mode: one group for each line."""

from __future__ import annotations

import re

from strakes.failover.cib_builder import CibBuilder, Words
from strakes.failover.crm_text import joined_lines

_PARAMETERS = {
    "IPaddr": ("ip", "cidr_netmask", "nic"),
    "IPaddr2": ("ip", "cidr_netmask", "nic"),
    "Filesystem": ("device", "directory", "fstype", "options"),
    "LVM": ("volgrpname",),
}


def read_haresources(text: str, ha_cf: str = "") -> CibBuilder:
    """Return the CIB with the same resources; ``ha_cf`` gives the nodes and whether fencing is configured."""
    builder = CibBuilder()
    stonith = re.findall(r"(?m)^\s*stonith(?:_host)?\s+(.*)$", ha_cf)
    builder.properties({"stonith-enabled": "true" if stonith else "false"})
    for name in " ".join(re.findall(r"(?m)^\s*node\s+(.*)$", ha_cf)).split():
        builder.node(name)
    for number, words in enumerate(stonith, 1):
        parts = words.split()
        host, agent = (parts[0], parts[1]) if len(parts) > 1 else ("*", parts[0])
        values = {} if host == "*" else {"hostlist": host}
        builder.primitive(f"stonith-{number}", agent, Words((), values, ()), standard="stonith")
    for number, line in enumerate(joined_lines(text), 1):
        node, *entries = line.partition("#")[0].split() or [""]
        if entries:
            builder.node(node)
            _group(builder, number, node, entries)
    return builder


def _group(builder: CibBuilder, line: int, node: str, entries: list[str]) -> None:
    """Add the resources of a line; they start in its order, and DRBD is promoted before them."""
    group = f"line-{line}"
    members, copies = list[str](), list[str]()
    for number, entry in enumerate(entries, 1):
        agent, *values = entry.split("::")
        identity = f"{agent if values else 'ip' if entry[0].isdigit() else agent}-{line}-{number}"
        if entry[0].isdigit():
            agent, values = "IPaddr2", entry.split("/")
        if agent in ("drbddisk", "drbdupper"):
            builder.primitive(
                identity, "ocf:linbit:drbd", Words((), {"drbd_resource": values[0] if values else "all"}, ())
            )
            builder.clone(f"ms-{identity}", identity, {"notify": "true"}, promotable=True)
            copies.append(f"ms-{identity}")
            continue
        names = _PARAMETERS.get(agent, tuple(str(place) for place in range(1, len(values) + 1)))
        if agent in ("IPaddr", "IPaddr2") and len(values) == 1:
            values = values[0].split("/")
        known = f"ocf:heartbeat:{agent}" if agent in _PARAMETERS else f"lsb:{agent}"
        builder.primitive(identity, known, Words((), dict(zip(names, values, strict=False)), ()))
        members.append(identity)
    if members:
        builder.group(group, members)
        builder.constraint("rsc_location", f"home-{group}", {"rsc": group, "node": node, "score": "100"})
        for clone in copies:
            near = {"rsc": group, "with-rsc": clone, "with-rsc-role": "Promoted", "score": "INFINITY"}
            builder.constraint("rsc_colocation", f"{group}-on-{clone}", near)
            first = {"first": clone, "first-action": "promote", "then": group, "then-action": "start"}
            builder.constraint("rsc_order", f"{clone}-before-{group}", first)
