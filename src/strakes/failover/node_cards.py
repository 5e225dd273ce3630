"""Addresses of the network cards of a node: files of ifcfg, NetworkManager, netplan, ifupdown and networkd."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import yaml

Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True)
class Card:
    """One card, bond or alias with its addresses."""

    name: str
    addresses: tuple[Interface, ...] = ()


def cards_of(texts: Mapping[str, str]) -> Iterator[Card]:
    """Yield the cards of all files in a known format."""
    for name, text in texts.items():
        for pattern, reader in _READERS:
            if re.fullmatch(pattern, name):
                yield from reader(name.removeprefix("etc/"), text)


def _interfaces(*texts: str) -> tuple[Interface, ...]:
    """Return the addresses among these texts, with or without the length of their network."""
    found = []
    for text in texts:
        with suppress(ValueError):
            found.append(ipaddress.ip_interface(text.strip()))
    return tuple(found)


def _ifcfg(file: str, text: str) -> Iterator[Card]:
    pairs = re.findall(r"(?m)^\s*(\w+)=[\"']?(.*?)[\"']?\s*$", text)
    given = dict(pairs)
    addresses = []
    for key, value in pairs:
        if re.match(r"IPADDR", key):
            rest = key.removeprefix("IPADDR")
            mask = given.get(f"PREFIX{rest}") or given.get(f"PREFIXLEN{rest}") or given.get(f"NETMASK{rest}", "")
            addresses.append(value if "/" in value or not mask else f"{value}/{mask}")
    yield Card(given.get("DEVICE") or file.rpartition("ifcfg-")[2], _interfaces(*addresses))


def _sections(text: str) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    section = ""
    for line in text.splitlines():
        if head := re.match(r"\s*\[([\w-]+)\]", line):
            section = head[1]
        elif "=" in line and not line.lstrip().startswith(("#", ";")):
            key, _, value = line.partition("=")
            found.setdefault(section, []).append((key.strip(), value.strip()))
    return found


def _network_manager(file: str, text: str) -> Iterator[Card]:
    sections = _sections(text)
    connection = dict(sections.get("connection", []))
    addresses = []
    for key, value in (*sections.get("ipv4", []), *sections.get("ipv6", [])):
        if re.fullmatch(r"address\d+|addresses", key):
            addresses += [word.split(",")[0] for word in value.rstrip(";").split(";")]
    yield Card(
        connection.get("interface-name") or connection.get("id", file.rpartition("/")[2]), _interfaces(*addresses)
    )


def _netplan(_file: str, text: str) -> Iterator[Card]:
    try:
        read = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return
    network = read.get("network") if isinstance(read, dict) else None
    for named in network.values() if isinstance(network, dict) else ():
        for name, given in named.items() if isinstance(named, dict) else ():
            addresses = given.get("addresses") if isinstance(given, dict) else None
            listed = addresses if isinstance(addresses, list) else []
            texts = (str(next(iter(one), "")) if isinstance(one, dict) else str(one) for one in listed)
            yield Card(str(name), _interfaces(*texts))


def _ifupdown(_file: str, text: str) -> Iterator[Card]:
    joined = re.sub(r"\\\n", " ", text)
    for head, body in re.findall(
        r"(?m)^\s*iface\s+(.*)\n((?:(?!\s*(?:iface|auto|allow-|mapping|source))[^\n]*(?:\n|$))*)", f"{joined}\n"
    ):
        name = head.split(maxsplit=1)[0]
        given = dict(re.findall(r"(?m)^\s*([\w-]+)\s+(\S.*?)\s*$", body))
        address = given.get("address", "")
        if address and "/" not in address and "netmask" in given:
            address += f"/{given['netmask']}"
        yield Card(name, _interfaces(address))


def _networkd(file: str, text: str) -> Iterator[Card]:
    sections = _sections(text)
    pairs = (*sections.get("Network", []), *sections.get("Address", []))
    addresses = [value for key, value in pairs if key == "Address"]
    yield Card(dict(sections.get("Match", [])).get("Name", file.rpartition("/")[2]), _interfaces(*addresses))


_READERS = (
    (r"etc/sysconfig/network(-scripts)?/ifcfg-(?!lo$).*", _ifcfg),
    (r"etc/NetworkManager/system-connections/.*", _network_manager),
    (r"etc/netplan/.*\.yaml", _netplan),
    (r"etc/network/interfaces(\.d/.*)?", _ifupdown),
    (r"etc/systemd/network/.*\.network", _networkd),
)
