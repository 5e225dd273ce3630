"""A mistake for every row of the tables of dangerous values, planted where the row says."""

from __future__ import annotations

from failover.mistakes import CIB, COROSYNC, Planted, device_value, property_of_cluster, set_to
from strakes.failover.rules.danger import Danger
from strakes.failover.rules.dangers import TABLE, rule_name

PAIR, HOME = "tianhe2", "nfs"
_DRBD = "etc/drbd.d/home.res"
# What the plan of homes has already; it is changed there.
_SET = ("cluster-recheck-interval", "stonith-timeout", "cipher", "directory", "device", "fstype", "fsid", "dampen")
# A primitive of each agent in the plan of homes.
_PRIMITIVES = {"Filesystem": "mount-home", "exportfs": "export-home", "drbd": "drbd-home", "ping": "clients-network"}


def _planted(danger: Danger) -> Planted:
    kind, _, name = danger.place.rpartition(" ")
    file, change = CIB, ("", "")
    if danger.option in _SET or (danger.place, danger.option) == ("exportfs", "options"):
        change = set_to(danger.option, danger.example)
    elif danger.place == "cluster":
        change = property_of_cluster(danger.option, danger.example)
    elif danger.place == "fencing":
        change = device_value("fence-nfs1", danger.option, danger.example)
    elif danger.place == "meta":
        pair = f'<nvpair id="planted-1" name="{danger.option}" value="{danger.example}"/>'
        change = r'(<group id="serve-home">)', rf'\1<meta_attributes id="planted">{pair}</meta_attributes>'
    elif kind == "op":
        words = {"name": name, "interval": "0s"} | {danger.option: danger.example}
        text = " ".join(f'{key}="{value}"' for key, value in words.items())
        change = r'(<op id="mount-home-stop-0s"[^>]*>)', rf'\1<op id="planted" {text}/>'
    elif danger.place in _PRIMITIVES:
        change = device_value(_PRIMITIVES[danger.place], danger.option, danger.example)
    elif danger.place in ("net", "disk", "options"):
        file, change = _DRBD, (rf"(\n  {danger.place} \{{)", rf"\1\n    {danger.option} {danger.example};")
    elif danger.place == "system":
        file, change = COROSYNC, (r"totem \{", f"system {{\n  {danger.option}: {danger.example}\n}}\ntotem {{")
    else:
        section = danger.place.rpartition(" ")[2]
        file, change = COROSYNC, (rf"(\b{section} \{{)", rf"\1\n  {danger.option}: {danger.example}")
    return Planted(rule_name(danger), HOME, file, *change)


PLANTED = {f"{danger.place}: {danger.option}={danger.example}": _planted(danger) for danger in TABLE}
