"""Properties of fencing devices, such as their delays and the location of the switched outlet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.cib import Cib
from strakes.failover.facts import is_true, seconds
from strakes.failover.known_options import options_of
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.setup import Setup, nodes_of
from strakes.failover.source_kind import PCS_COMMANDS

_OUTLETS = re.compile(
    r"fence_(apc|apc_snmp|eaton_snmp|raritan\w*|wti|lpar_pdu|epsr2|netio|pdu\w*)|external/(rackpdu|ippower9258|wti_\w+)"
)
_ADDRESSES = ("ip", "ipaddr", "ilo_hostname", "pduip")
# Parameters that distinguish machines or outlets with the same address.
_SELECTORS = ("ipport", "systems_uri", "systems-uri", "target", "switch")


def is_bmc(device: Primitive) -> bool:
    """Return whether the fencing device is the management controller (BMC) of a node."""
    return device.agent in options_of("agents of BMCs")


def is_outlet(device: Primitive) -> bool:
    """Return whether the device switches power outlets."""
    return bool(_OUTLETS.fullmatch(device.agent))


def pretends_because(device: Primitive) -> str:
    """Return why a fencing device reports success although it cuts no power, or an empty text."""
    if device.agent in options_of("agents that cut no power"):
        return f"is {device.agent}"
    for key, real in (("pcmk_off_action", ("off",)), ("pcmk_reboot_action", ("off", "reboot", "cycle", "poweroff"))):
        if device.values.get(key, "off") not in real:
            return f"has {key}={device.values[key]}"
    return ""


def devices_for(cib: Cib, node: str) -> list[Primitive]:
    """Return all fencing devices that can fence a node."""
    return [device for device in cib.devices if node in cib.fences(device)]


def address_of(device: Primitive) -> str:
    """Return the address of a fencing device, or an empty text."""
    return next((device.values[key] for key in _ADDRESSES if device.values.get(key)), "")


def runners_of(setup: Setup, device: Primitive) -> list[str]:
    """Return the nodes on which location constraints allow a fencing device to run."""
    cib = setup.pacemaker
    opt_in = not is_true(cib.properties.get("symmetric-cluster", "true"))
    about = [one for one in cib.locations if one.certain and device.id in one.resources]
    banned = {node for one in about if one.score == -float("inf") for node in one.nodes}
    allowed = {node for one in about if one.score >= 0 for node in one.nodes}
    return [node for node in setup.node_names if node not in banned and (node in allowed or not (opt_in and allowed))]


def plug_of(device: Primitive, node: str) -> str:
    """Return the outlet of a node that the parameter ``pcmk_host_map``, ``plug`` or ``port`` names."""
    pairs = (pair.partition(":") for pair in re.split(r"[;\s]+", device.values.get("pcmk_host_map", "")))
    mapped = {name: plug for name, _, plug in pairs if plug}
    return mapped.get(node) or device.values.get("plug") or device.values.get("port", "")


def place_of_power(device: Primitive, node: str) -> tuple[str, ...]:
    """Return a key that identifies the outlet or BMC with which a fencing device powers off ``node``."""
    selected = is_outlet(device) or (is_bmc(device) and "separator" in options_of(device.agent))
    plug = plug_of(device, node) if selected else ""
    return (address_of(device), *(device.values.get(name, "") for name in _SELECTORS), plug)


def watchdog_fences(setup: Setup) -> bool:
    """Return whether watchdogs reset nodes without quorum (diskless sbd)."""
    cib = setup.pacemaker
    if cib.watchdog_s == 0 or cib.properties.get("have-watchdog", "").lower() == "false":
        return False
    return bool(setup.sbd) or is_true(cib.properties.get("have-watchdog", "")) or not cib.devices


def decides_by_priority(setup: Setup) -> bool:
    """Return whether the node with the most important services wins a fencing race."""
    cib = setup.pacemaker
    ranked = any(primitive.meta.get("priority", "0") != "0" for primitive in cib.services)
    return ranked and seconds(cib.properties.get("priority-fencing-delay", "")) > 0


def delays_of(setup: Setup) -> dict[str, tuple[float, float]]:
    """Return node -> (minimum, maximum) fencing delay in seconds. Empty if delays do not decide a fencing race."""
    cib, delays = setup.pacemaker, dict[str, tuple[float, float]]()
    for node in setup.node_names if not (decides_by_priority(setup) or any(tie_breakers(setup))) else ():
        if devices_for(cib, node):
            devices = [device for device in devices_for(cib, node) if device.agent != "fence_kdump"]
            levels = [[device for device in devices if device.id in level] for level in cib.levels_of(node)]
            devices = next(filter(None, levels), []) if levels else devices
            least_s = max((cib.delay_s(device, node) for device in devices), default=0.0)
            delays[node] = least_s, max([least_s, *(seconds(one.values.get("pcmk_delay_max", "")) for one in devices)])
    return delays


def tie_breakers(setup: Setup) -> Iterator[bool]:
    """Yield whether each tie-breaker exists: a quorum device in corosync.conf or in pcs commands, and a third node."""
    yield bool(setup.corosync.one("quorum").all("device"))
    yield bool(re.search(r"(?m)^[^#\n]*\bquorum[ \t]+device[ \t]+add\b", setup.texts.get(PCS_COMMANDS, "")))
    yield max(len(nodes_of(setup)), len(setup.pacemaker.nodes)) > 2
