"""The network cards of a node, as ifcfg, NetworkManager, netplan, ifupdown and networkd describe them."""

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
    """One card, bond or alias.

    ``bond`` are the options of a bond, None for what is none; ``mtu`` is 0 where none is given.
    """

    file: str
    name: str
    addresses: tuple[Interface, ...] = ()
    by_dhcp: bool = False
    at_boot: bool = True
    bond: Mapping[str, str] | None = None
    mtu: int = 0


def cards_of(texts: Mapping[str, str]) -> Iterator[Card]:
    """Yield the cards of all files that are understood."""
    for name, text in texts.items():
        for pattern, reader in _READERS:
            if re.fullmatch(pattern, name):
                yield from reader(name.removeprefix("etc/"), text)


def _interfaces(*texts: str) -> tuple[Interface, ...]:
    """Return what of these is an address, with or without the length of its network."""
    found = []
    for text in texts:
        with suppress(ValueError):
            found.append(ipaddress.ip_interface(text.strip()))
    return tuple(found)


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,6}", text) else 0


def _words(text: str) -> dict[str, str]:
    return dict(re.findall(r"([\w-]+)=(\S+)", text))


def _ifcfg(file: str, text: str) -> Iterator[Card]:
    pairs = re.findall(r"(?m)^\s*(\w+)=[\"']?(.*?)[\"']?\s*$", text)
    given = dict(pairs)
    addresses = []
    for key, value in pairs:
        if re.match(r"IPADDR", key):
            rest = key.removeprefix("IPADDR")
            mask = given.get(f"PREFIX{rest}") or given.get(f"PREFIXLEN{rest}") or given.get(f"NETMASK{rest}", "")
            addresses.append(value if "/" in value or not mask else f"{value}/{mask}")
    options = given.get("BONDING_OPTS") or given.get("BONDING_MODULE_OPTS")
    bond = given.get("TYPE") == "Bond" or given.get("BONDING_MASTER") == "yes" or options is not None
    yield Card(
        file,
        given.get("DEVICE") or file.rpartition("ifcfg-")[2],
        _interfaces(*addresses),
        given.get("BOOTPROTO", "").startswith("dhcp"),
        given.get("ONBOOT", "yes").lower() != "no" and given.get("STARTMODE", "auto").lower() not in ("off", "manual"),
        _words(options or "") if bond else None,
        _number(given.get("MTU", "")),
    )


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
    dhcp = dict(sections.get("ipv4", [])).get("method") == "auto"
    for key, value in (*sections.get("ipv4", []), *sections.get("ipv6", [])):
        if re.fullmatch(r"address\d+|addresses", key):
            addresses += [word.split(",")[0] for word in value.rstrip(";").split(";")]
    bond = dict(sections.get("bond", []))
    # NetworkManager watches the links of a bond where nothing is said.
    yield Card(
        file,
        connection.get("interface-name") or connection.get("id", file.rpartition("/")[2]),
        _interfaces(*addresses),
        dhcp,
        connection.get("autoconnect", "true").lower() not in ("false", "no", "0"),
        {"miimon": "100", **bond} if bond or connection.get("type") == "bond" else None,
        _number(dict(sections.get("ethernet", [])).get("mtu", "")),
    )


def _netplan(file: str, text: str) -> Iterator[Card]:
    try:
        read = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return
    network = read.get("network") if isinstance(read, dict) else None
    for kind, named in network.items() if isinstance(network, dict) else ():
        for name, given in named.items() if isinstance(named, dict) else ():
            if not isinstance(given, dict):
                continue
            parameters = given.get("parameters")
            bond = {str(key): str(value) for key, value in parameters.items()} if isinstance(parameters, dict) else {}
            addresses = given.get("addresses")
            listed = addresses if isinstance(addresses, list) else []
            yield Card(
                file,
                str(name),
                _interfaces(*(str(next(iter(one), "")) if isinstance(one, dict) else str(one) for one in listed)),
                given.get("dhcp4") is True,
                True,
                bond if kind == "bonds" else None,
                _number(str(given.get("mtu", ""))),
            )


def _ifupdown(file: str, text: str) -> Iterator[Card]:
    joined = re.sub(r"\\\n", " ", text)
    started = {name for line in re.findall(r"(?m)^\s*(?:auto|allow-\w+)\s+(.*)$", joined) for name in line.split()}
    for head, body in re.findall(
        r"(?m)^\s*iface\s+(.*)\n((?:(?!\s*(?:iface|auto|allow-|mapping|source))[^\n]*(?:\n|$))*)", f"{joined}\n"
    ):
        name, *words = head.split()
        given = dict(re.findall(r"(?m)^\s*([\w-]+)\s+(\S.*?)\s*$", body))
        address = given.get("address", "")
        if address and "/" not in address and "netmask" in given:
            address += f"/{given['netmask']}"
        bond = {
            key.removeprefix("bond-").removeprefix("bond_"): value
            for key, value in given.items()
            if key.startswith("bond")
        }
        yield Card(
            file,
            name,
            _interfaces(address),
            "dhcp" in words,
            name in started,
            bond or None,
            _number(given.get("mtu", "")),
        )


def _networkd(file: str, text: str) -> Iterator[Card]:
    sections = _sections(text)
    network, device = sections.get("Network", []), dict(sections.get("NetDev", []))
    addresses = [value for key, value in (*network, *sections.get("Address", [])) if key == "Address"]
    bond = {key.lower(): value for key, value in sections.get("Bond", [])}
    if device.get("Kind") == "bond":
        yield Card(file, device.get("Name", ""), bond={"miimon": bond.get("miimonitorsec", "0"), **bond})
    elif file.endswith(".network"):
        link = dict(sections.get("Link", []))
        yield Card(
            file,
            dict(sections.get("Match", [])).get("Name", file.rpartition("/")[2]),
            _interfaces(*addresses),
            dict(network).get("DHCP", "no").lower() in ("yes", "ipv4", "true"),
            link.get("Unmanaged", "no") != "yes" and link.get("ActivationPolicy", "up") in ("up", "always-up"),
            None,
            _number(link.get("MTUBytes", "")),
        )


_READERS = (
    (r"etc/sysconfig/network(-scripts)?/ifcfg-(?!lo$).*", _ifcfg),
    (r"etc/NetworkManager/system-connections/.*", _network_manager),
    (r"etc/netplan/.*\.yaml", _netplan),
    (r"etc/network/interfaces(\.d/.*)?", _ifupdown),
    (r"etc/systemd/network/.*\.(network|netdev)", _networkd),
)
