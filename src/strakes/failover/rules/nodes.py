"""Rules that compare files of a node with the disks that the cluster uses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.rules.possessions import volume_named
from strakes.failover.setup import Setup


def _listed(text: str, name: str) -> str | None:
    """Return the text of a list in lvm.conf, or None if it is not set."""
    found = re.search(rf"(?<!\w){name}\s*=\s*\[([^\]]*)\]", text)
    return found[1] if found else None


def _rejects_all(text: str) -> bool:
    """Return whether a filter of LVM rejects every disk except DRBD devices; the first matching pattern decides."""
    for rows in re.findall(r"\b(?:global_)?filter\s*=\s*\[((?:[\s,]*\"[^\"]*\")*)", text):
        before, rejects, _ = re.sub(r"\"r([|/])\.\*\1\"", "\0", rows).partition("\0")
        if rejects and all("drbd" in pattern for _, pattern in re.findall(r"\"a(.)(.*?)\1\"", before)):
            return True
    return False


def volume_not_activated_or_everywhere(setup: Setup) -> Iterator[str]:
    """Find settings of LVM that conflict with DRBD or with resources that activate volumes."""
    text = setup.bare("etc/lvm/lvm.conf")
    owners = {
        one.values.get("vgname") or one.values.get("volgrpname", ""): one
        for one in setup.services
        if one.agent in ("LVM", "LVM-activate")
    }
    below = {volume_named(disk)[0] for one in setup.drbd for disk in one.disks} - {""}
    for group in sorted({*owners, *below} - {""}) if text else ():
        one = owners.get(group)
        mode = one.values.get("vg_access_mode", "") if one else "below DRBD"
        yield from (f"lvm.conf: {group}: {wrong}" for wrong in _wrong_for(text, group, mode))


def _wrong_for(text: str, group: str, mode: str) -> Iterator[str]:
    named = {
        name: _listed(text, name) for name in ("volume_list", "auto_activation_volume_list", "read_only_volume_list")
    }
    inside = {name: rows is not None and f'"{group}"' in rows.replace("/", '"') for name, rows in named.items()}
    tags = "@" in (named["volume_list"] or "")
    if _rejects_all(text):
        yield "a filter rejects all its disks"
    if inside["read_only_volume_list"]:
        yield "read_only_volume_list"
    if mode in ("tagging", "system_id") and (
        inside["auto_activation_volume_list"] or (mode == "tagging" and inside["volume_list"])
    ):
        yield "a list activates it on every node"
    if mode != "tagging" and named["volume_list"] is not None and not inside["volume_list"] and not tags:
        yield "volume_list does not have it"
    if (
        mode == "below DRBD"
        and named["auto_activation_volume_list"] is not None
        and not inside["auto_activation_volume_list"]
    ):
        yield "auto_activation_volume_list does not have it"
    if mode == "system_id" and re.search(r"system_id_source\s*=\s*\"none\"", text):
        yield 'system_id_source = "none"'
    if mode == "lvmlockd" and re.search(r"\buse_lvmlockd\s*=\s*0", text):
        yield "use_lvmlockd = 0"


def multipath_disk_missing(setup: Setup) -> Iterator[str]:
    """Find disks of the cluster that multipath.conf hides or renames, and disks with two names."""
    text = setup.bare("etc/multipath.conf", "#!")
    used = {one.device: one.id for one in setup.services if re.fullmatch(r"/dev/mapper/[\w.]+", one.device)}
    blocks = re.findall(r"multipath\s*\{([^}]*)\}", text)
    rows = [dict(re.findall(r"\b(wwid|alias)\s+\"?([\w.:-]+)", block)) for block in blocks]
    aliases, wwids = ([row[key] for row in rows if key in row] for key in ("alias", "wwid"))
    for device, name in used.items() if aliases else ():
        if device.removeprefix("/dev/mapper/") not in aliases:
            yield f"multipath.conf: no alias {device.removeprefix('/dev/mapper/')}, which {name} uses"
    for twice in sorted({one for one in (*aliases, *wwids) if (*aliases, *wwids).count(one) > 1}):
        yield f"multipath.conf: {twice} is given twice"
    for word in _blacklisted(text) if used else ():
        if word in wwids or (word in (".*", "*", "^.*$") and "blacklist_exceptions" not in text):
            yield f"multipath.conf: blacklist has {word}"


def _blacklisted(text: str) -> list[str]:
    hidden = re.findall(r"\bblacklist\s*\{((?:[^{}]|\{[^{}]*\})*)\}", text)
    return re.findall(r"\b(?:devnode|wwid)\s+\"?([^\s\"]+)", " ".join(hidden))
