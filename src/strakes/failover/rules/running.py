"""Rules about programs of a node that get into each other's way, and about its clock."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.known_options import options_of, slip
from strakes.failover.rules.commands import enabled_units
from strakes.failover.rules.heartbeat import is_address, links_of, nodes_of
from strakes.failover.rules.node_options import settings_of_nodes
from strakes.failover.rules.possessions import possessions_of
from strakes.failover.rules.rule import OWN, rule
from strakes.failover.setup import Setup

# Programs of which a node runs one at most.
_ALTERNATIVES = (
    ("the clock", ("chronyd", "chrony", "ntpd", "ntp", "ntpsec", "openntpd", "systemd-timesyncd")),
    ("the firewall", ("firewalld", "nftables", "iptables", "ufw", "SuSEfirewall2")),
    ("iSCSI targets", ("target", "tgt", "iscsi-scst")),
)
# Two names of one program.
_SAME = ({"chronyd", "chrony"}, {"ntpd", "ntp", "ntpsec"})
_PRESSES_THE_BUTTON = re.compile(
    r"fence_(ipmilan\S*|idrac|ilo\d?\S*|imm|redfish|rsa|rsb|drac5?)|external/(ipmi|riloe|drac5)"
)
_CHRONY = "https://chrony-project.org/doc/4.3/chrony.conf.html"


@rule("units").warning(
    reason="Each program undoes what the other one does, or the one that starts later fails.",
    remedy="systemctl disable all but one.",
    source=OWN,
)
def two_programs_for_one_task(setup: Setup) -> Iterator[str]:
    """Find programs that are enabled together and do the same."""
    enabled = {name.removesuffix(".service") for name in enabled_units(setup)}
    for what, names in _ALTERNATIVES:
        found = [name for name in names if name in enabled]
        if len(found) > 1 and not any(set(found) <= same for same in _SAME):
            yield f"systemd: {' and '.join(found)} are enabled for {what}"


@rule("units", "pacemaker").warning(
    reason="A BMC presses the power button, and acpid answers with a shutdown that takes minutes: the other node is "
    "told too early that this node is off, or fencing times out.",
    remedy="systemctl disable acpid; HandlePowerKey=ignore in logind.conf",
    source="https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/8/html/"
    "configuring_and_managing_high_availability_clusters/assembly_configuring-fencing-configuring-and-managing-high-"
    "availability-clusters",
)
def power_button_answered_slowly(setup: Setup) -> Iterator[str]:
    """Find acpid beside fencing by a BMC."""
    pressing = [one.id for one in setup.pacemaker.devices if _PRESSES_THE_BUTTON.fullmatch(one.agent)]
    if pressing and "acpid.service" in enabled_units(setup):
        yield f"systemd: acpid.service is enabled, and {pressing[0]} powers off by a BMC"


@rule().warning(
    reason="The nodes have no time source, so their clocks drift apart: logs, tickets, certificates and the times of "
    "files disagree after a take-over.",
    remedy="Add at least one server or pool outside the cluster to chrony.conf, the same on all nodes.",
    source=_CHRONY,
)
def clock_without_a_source(setup: Setup) -> Iterator[str]:
    """Find nodes that ask nobody for the time, or ask what moves with a service."""
    owned = possessions_of(setup)
    own = {address for node in nodes_of(setup) for address in links_of(node).values() if is_address(address)}
    for name in ("chrony.conf", "chrony/chrony.conf", "ntp.conf", "ntpsec/ntp.conf"):
        text = setup.bare(f"etc/{name}", "#!;%")
        if not text.strip():
            continue
        asked = re.findall(r"(?m)^\s*(?:server|pool|peer|refclock)\s+(\S+)", text)
        asked = [one for one in asked if not one.startswith("127.127.1.")]
        elsewhere = re.search(r"(?m)^\s*(sourcedir|confdir|include)\b", text) or any(
            re.match(r"etc/chrony(\.d|/conf\.d)/", file) for file in setup.texts
        )
        if not asked and not elsewhere:
            yield f"{name}: no server, no pool"
        yield from (f"{name}: {one} moves with a service" for one in asked if one in owned.addresses)
        if asked and not elsewhere and set(asked) <= own | set(setup.node_names):
            yield f"{name}: all time sources are nodes of the cluster"
    known = options_of("chrony.conf")
    for given in settings_of_nodes(setup):
        if given.table == "chrony.conf" and given.name not in known and (other := slip(given.name, known)):
            yield f"{given.file}: {given.name} may mean {other}"


@rule("units").warning(
    reason="Without something else that it needs, it does nothing, or only half of what is expected.",
    remedy="Enable pacemaker together with corosync; add crashkernel= to the kernel's command line for kdump; remove "
    "lvmetad.",
    source=OWN,
)
def enabled_without_what_it_needs(setup: Setup) -> Iterator[str]:
    """Find programs that are enabled without what they need."""
    enabled = enabled_units(setup)
    if "corosync.service" in enabled and setup.cib and "pacemaker.service" not in enabled:
        yield "systemd: corosync.service is enabled, pacemaker.service is not"
    line = setup.texts.get("etc/default/grub", "")
    if {"kdump.service", "kdump-tools.service"} & enabled and line and "crashkernel=" not in line:
        yield "default/grub: no crashkernel, and kdump is enabled"
    for name in (
        sorted({"lvm2-lvmetad.service", "lvm2-lvmetad.socket"} & enabled) if possessions_of(setup).groups else ()
    ):
        yield f"systemd: {name} is enabled, and Pacemaker activates volumes"


@rule("units", "pacemaker").error(
    reason="Pacemaker asks systemd whether the unit is active: a unit that ends at once counts as stopped and is "
    "started again and again; a unit whose processes survive its stop keeps the mount busy.",
    remedy="Type=oneshot with RemainAfterExit=yes, or another type; KillMode=control-group.",
    source="https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html",
)
def unit_unsuitable_for_pacemaker(setup: Setup) -> Iterator[str]:
    """Find units of Pacemaker's that are never active, or leave processes behind."""
    managed = {
        f"{one.agent.removesuffix('.service')}.service" for one in setup.pacemaker.services if one.standard == "systemd"
    }
    given = dict[str, dict[str, str]]()
    for name, text in setup.units.items():
        unit = name.partition("/")[0].removesuffix(".d")
        if unit in managed:
            given.setdefault(unit, {}).update(re.findall(r"(?m)^\s*(\w+)\s*=\s*(\S+)", text))
    for unit, values in given.items():
        if values.get("Type") == "oneshot" and values.get("RemainAfterExit", "no") not in ("yes", "true", "1", "on"):
            yield f"systemd: {unit} has Type=oneshot, and no RemainAfterExit=yes"
        if values.get("KillMode") in ("none", "process"):
            yield f"systemd: {unit} has KillMode={values['KillMode']}"


@rule("units", "pacemaker").error(
    reason="systemd restarts what Pacemaker has stopped or moved: the service runs on two nodes.",
    remedy="Remove Restart= from the unit, or from its drop-in file.",
    source="https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html",
)
def restarted_by_systemd(setup: Setup) -> Iterator[str]:
    """Find units of what agents start that systemd restarts."""
    units = possessions_of(setup).units
    managed = {one.agent.removesuffix(".service") for one in setup.pacemaker.services if one.standard == "systemd"}
    for given in settings_of_nodes(setup):
        unit = given.file.rpartition("system/")[2].partition(".service")[0]
        restarts = given.table == "unit Service" and given.name == "Restart" and given.value in ("always", "on-success")
        if restarts and unit not in managed and f"{unit}.service" in units:
            yield f"{given.file}: Restart={given.value}"
