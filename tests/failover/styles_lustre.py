"""Good configurations of Lustre and ZFS after public guides, retyped instead of copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.etree import ElementTree as Xml

from failover.styles import (
    LUSTRE_TIMES,
    QDEVICE,
    A,
    B,
    Files,
    address,
    both,
    cib,
    clone,
    corosync,
    element,
    files,
    group,
    mount,
    primitive,
)
from failover.styles_more import LONG, LUSTRE, after, home


def _lustre_target(name: str, device: str, agent: str = "ocf:lustre:Lustre") -> Xml.Element:
    return primitive(name, agent, {"target": device, "mountpoint": f"/lustre/{name}"}, *LUSTRE_TIMES)


def lustre_wiki() -> Files:
    """Return MGS and MDT on shared disks, with healthLNET and healthLUSTRE that ban nodes where LNet is down."""
    times = ("monitor interval=20s timeout=60s", "start timeout=300s", "stop timeout=300s")
    lnet = clone(
        "healthLNET-clone",
        primitive(
            "healthLNET",
            "ocf:lustre:healthLNET",
            {"lctl": "true", "multiplier": "1000", "device": "ib0", "host_list": "10.73.2.1@o2ib 10.73.2.2@o2ib"},
            *times,
        ),
    )
    lustre = clone("healthLUSTRE-clone", primitive("healthLUSTRE", "ocf:lustre:healthLUSTRE", {}, *times))
    rules = [
        element(
            "rsc_location",
            element(
                "rule",
                element("expression", id=f"lt-{name}-{attribute}", attribute=attribute, operation="lt", value="1"),
                element("expression", id=f"nd-{name}-{attribute}", attribute=attribute, operation="not_defined"),
                id=f"rule-{name}-{attribute}",
                score="-INFINITY",
                boolean_op="or",
            ),
            id=f"{name}-{attribute}",
            rsc=name,
        )
        for name in ("MGT", "MDT0")
        for attribute in ("pingd", "lustred")
    ]
    homes = [
        element("rsc_location", id=f"{name}-{node}", rsc=name, node=node, score=score)
        for name, node, score in (("MGT", A, "100"), ("MGT", B, "50"), ("MDT0", B, "100"), ("MDT0", A, "50"))
    ]
    resources = [
        *both(),
        _lustre_target("MGT", "/dev/mapper/mgt"),
        _lustre_target("MDT0", "/dev/mapper/mdt0"),
        lnet,
        lustre,
    ]
    return files(cib(resources, [*homes, *rules], defaults={"resource-stickiness": "500"}), replication="")


def lustre_of_a_laboratory() -> Files:
    """Return a target with the agents of a laboratory, which no distribution has."""
    pool = primitive(
        "pool",
        "ocf:llnl:zpool",
        {"pool": "garter5", "import_options": "-f -N -d /dev/disk/by-vdev"},
        "monitor interval=30s timeout=90s",
        "start timeout=330s",
        "stop timeout=330s",
    )
    target = primitive(
        "MGS",
        "ocf:llnl:lustre",
        {"dataset": "garter5/mgs", "mountpoint": "/mnt/lustre/mgs"},
        "monitor interval=30s timeout=90s",
        "start timeout=330s",
        "stop timeout=330s",
    )
    return files(cib([*both(), group("mgs", pool, target)], []), replication="")


def oss_by_names() -> Files:
    """Return OSTs by /dev/disk/by-id, mounted by the Filesystem agent and spread over the pair."""
    targets = [
        mount(f"/dev/disk/by-id/wwn-0x{number}", "lustre", f"ost{number}", LUSTRE_TIMES, f"/mnt/ost{number}")
        for number in range(4)
    ]
    homes = [
        element("rsc_location", id=f"home{number}", rsc=f"ost{number}", node=(A, B)[number % 2], score="100")
        for number in range(4)
    ]
    return files(cib([*both(), *targets], homes, defaults={"resource-stickiness": "1000"}), replication="")


def lustre_zfs() -> Files:
    """Return the example of Lustre's wiki: MGS and MDT on one pair, each a group of ZFS pool and target."""
    groups = [
        group(
            f"group-{name}",
            primitive(f"zfs-{name}", "ocf:heartbeat:ZFS", {"pool": f"{name}pool"}, *LONG[:1], *LUSTRE[1:]),
            primitive(
                f"lustre-{name}",
                "ocf:lustre:Lustre",
                {"target": f"{name}pool/{name}", "mountpoint": f"/lustre/demo/{name}"},
                *LUSTRE,
            ),
        )
        for name in ("mgt", "mdt0")
    ]
    constraints = [
        home("group-mgt", A, "100"),
        home("group-mdt0", B, "100"),
        after("lustre-mgt", "lustre-mdt0", kind="Optional"),
    ]
    return files(cib([*both(), *groups], constraints, defaults={"resource-stickiness": "200"}), replication="")


def lustre_md_raid() -> Files:
    """Return an OSS pair on software RAID, assembled by one node at a time."""
    groups = [
        group(
            f"g-ost{number}",
            primitive(
                f"md-ost{number}",
                "ocf:heartbeat:mdraid",
                {"mdadm_conf": f"/etc/ha/md{number}.conf", "md_dev": f"/dev/md{number}"},
                *LONG,
            ),
            primitive(
                f"ost{number}",
                "ocf:lustre:Lustre",
                {"target": f"/dev/md{number}", "mountpoint": f"/mnt/ost{number}"},
                *LUSTRE,
            ),
        )
        for number in (0, 1)
    ]
    constraints = [home("g-ost0", A), home("g-ost1", B)]
    return files(cib([*both(), *groups], constraints, defaults={"resource-stickiness": "100"}), replication="")


def zfs_ha() -> Files:
    """Return a public how-to: a ZFS pool with its address, fenced by reservations on multipath devices."""
    fence = primitive(
        "fence-vol1",
        "stonith:fence_mpath",
        {
            "devices": "/dev/mapper/35000c50026839f4f,/dev/mapper/35000c50026839f50",
            "pcmk_host_map": f"{A}:1;{B}:2",
            "pcmk_monitor_action": "metadata",
            "pcmk_reboot_action": "off",
        },
        "monitor interval=60s",
        meta={"provides": "unfencing"},
    )
    pool = primitive("vol1", "ocf:heartbeat:ZFS", {"pool": "vol1", "importargs": "-d /dev/mapper/"}, *LONG)
    text = cib([fence, group("group-vol1", pool, address(identity="vol1-ip"))], [home("group-vol1", A)])
    return files(text, corosync(quorum=QDEVICE), "")


LUSTRE_STYLES: Mapping[str, Callable[[], Files]] = {
    "Lustre wiki: MGS and MDT": lustre_wiki,
    "agents of a laboratory": lustre_of_a_laboratory,
    "OSTs by their names": oss_by_names,
    "Lustre wiki: pools and targets": lustre_zfs,
    "Lustre on software RAID": lustre_md_raid,
    "ZFS with reservations": zfs_ha,
}
