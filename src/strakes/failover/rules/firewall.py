"""A rule about the firewall of a node: it must let through what the nodes and the clients say to each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.rules.heartbeat import nodes_of
from strakes.failover.rules.node_row import uses
from strakes.failover.rules.rule import rule
from strakes.failover.setup import Setup

_PAGE = "https://clusterlabs.org/projects/pacemaker/doc/2.1/Clusters_from_Scratch/html/cluster-setup.html"
# Lists of blocked addresses may be long; rules are not.
_MOST = 200_000
_COROSYNC_PORT = 5405
# What firewalld opens by the names of its services.
_SERVICES = {
    "high-availability": range(5404, 5413),
    "nfs": range(2049, 2050),
    "nfs4": range(2049, 2050),
    "iscsi-target": range(3260, 3261),
}
# nft and iptables may be told names of ports in place of numbers.
_NAMED = {"nfs": 2049, "iscsi-target": 3260}


def _needed(setup: Setup) -> dict[int, str]:
    """Return the ports that have to be open, and for whom."""
    found = dict[int, str]()
    if nodes_of(setup):
        given = setup.membership.one("totem").one("interface").get("mcastport")
        found[int(given) if given.isdecimal() and len(given) < 6 else _COROSYNC_PORT] = "Corosync"
    for resource in setup.drbd:
        for host in resource.hosts:
            for address in host.addresses:
                if port := re.search(r":(\d{1,5})$", address):
                    found.setdefault(int(port[1]), "DRBD")
    agents = {one.agent for one in setup.services}
    if uses(setup, "exports"):
        found[2049] = "NFS"
    if "iSCSITarget" in agents:
        found[3260] = "iSCSI"
    if uses(setup, "lustre") and "@tcp" in setup.lustre:
        found[988] = "Lustre"
    return found


def _opened(lines: list[str]) -> list[range]:
    """Return every number, and span of numbers, in lines that let something through."""
    found = []
    for line in lines:
        for first, last in re.findall(r"(?<![\d.])(\d{2,5})(?:[-:](\d{2,5}))?(?![\d.])", line):
            found.append(range(int(first), int(last or first) + 1))
        found += [range(port, port + 1) for name, port in _NAMED.items() if re.search(rf"\b{name}\b", line)]
    return found


def _nft(text: str) -> tuple[bool, list[str]]:
    """Tell whether nft or iptables shuts out what nobody lets in, and return the lines that let something in.

    Lines that trust a card or a network as a whole give None of it: then the first is False.
    """
    lines = [line.strip() for line in text[:_MOST].splitlines() if not line.lstrip().startswith("#")]
    body = "\n".join(lines)
    closed = bool(
        re.search(r"hook\s+input[^}]*?policy\s+drop", body)
        or re.search(r"(?m)^:INPUT (DROP|REJECT)", body)
        or re.search(r"(?m)^-A INPUT -j (DROP|REJECT)", body)
        or re.search(r"hook\s+input(?:.|\n)*?\n(?:counter )?(drop|reject)\b", body)
    )
    opening = [
        line for line in lines if re.search(r"\baccept\b|ACCEPT", line) or line.startswith(("define", "elements"))
    ]
    for line in opening:
        of_a_port = re.search(r"dport|--dports?|icmp|ct state|ESTABLISHED|established|sport", line)
        from_somewhere = re.search(r"\bsaddr\b|\biif(name)?\b|(^| )-[si] ", line) and not re.search(
            r"iif(name)? \"?lo\b|-i lo\b", line
        )
        if from_somewhere and not of_a_port:
            return False, opening
    return closed, opening


def _firewalld(setup: Setup) -> tuple[bool, list[range]]:
    """Tell whether the zones shut out what they do not name, and return what they let in."""
    zones = {name: text for name, text in setup.texts.items() if name.startswith("etc/firewalld/zones/")}
    everything = "\n".join(zones.values())
    trusted = "trusted" in " ".join(zones) or any(
        re.search(r"(?mi)^\s*zone\s*=\s*[\"']?trusted", text)
        for name, text in setup.texts.items()
        if "network" in name.lower()
    )
    trusted = trusted or bool(re.search(r"target=\"ACCEPT\"|<accept\s*/>", everything))
    opened = _opened(re.findall(r"<port [^>]*port=\"([\d-]+)\"", everything))
    opened += [_SERVICES[name] for name in re.findall(r"<service name=\"([\w-]+)\"", everything) if name in _SERVICES]
    return bool(zones) and not trusted, opened


@rule("corosync").error(
    reason="The firewall drops what the nodes send to each other, or requests of clients: the link, the replication or "
    "the service does not work.",
    remedy="firewall-cmd --permanent --add-service=high-availability; also open the ports of DRBD and of the service.",
    source=_PAGE,
)
def port_closed_by_the_firewall(setup: Setup) -> Iterator[str]:
    """Find firewalls that let nothing in by themselves, and do not name a port that is needed."""
    needed = _needed(setup)
    shut, opened = _firewalld(setup)
    places = [("firewalld", opened)] if shut else []
    for file, text in setup.texts.items():
        if re.fullmatch(r"etc/(nftables\.conf|sysconfig/(nftables\.conf|iptables)|iptables/rules\.v4)", file):
            shut, lines = _nft(text + "\n".join(_included(setup) if "nft" in file else ()))
            places += [(file.removeprefix("etc/"), _opened(lines))] if shut else []
            for line in text.splitlines():
                if re.search(r"\bdrop\b|\breject\b|-j (DROP|REJECT)", line) and "dport" in line:
                    for port, whom in needed.items():
                        if any(port in span for span in _opened([line])):
                            yield f"{file.removeprefix('etc/')}: {line.strip()[:80]} ({whom})"
    for file, spans in places:
        for port, whom in needed.items():
            if not any(port in span for span in spans):
                yield f"{file}: port {port} of {whom} is not open"


def _included(setup: Setup) -> Iterator[str]:
    yield from (text for name, text in setup.texts.items() if name.startswith("etc/nftables/"))
