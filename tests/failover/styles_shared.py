"""Good configurations on shared disks, and of various file systems and services."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from failover.styles import (
    DRBD84,
    INFINITY,
    LUSTRE_TIMES,
    A,
    B,
    Files,
    address,
    both,
    cib,
    clone,
    element,
    files,
    group,
    mount,
    primitive,
    promotable,
    with_primary,
)


def zfs_oss() -> Files:
    """Return two OSTs, each on its own ZFS pool and with another preferred node."""
    resources, homes = both(), []
    for number, home in enumerate((A, B)):
        pool = primitive(
            f"pool{number}",
            "ocf:heartbeat:ZFS",
            {"pool": f"ost{number}"},
            "monitor interval=30s timeout=60s",
            "start timeout=120s",
            "stop timeout=120s",
        )
        target = primitive(
            f"ost{number}",
            "ocf:lustre:Lustre",
            {"target": f"ost{number}/ost{number}", "mountpoint": f"/mnt/ost{number}"},
            *LUSTRE_TIMES,
        )
        resources.append(group(f"serve{number}", pool, target))
        homes.append(element("rsc_location", id=f"home{number}", rsc=f"serve{number}", node=home, score="100"))
    return files(cib(resources, homes, defaults={"resource-stickiness": "1000"}), replication="")


def lustre_on_san() -> Files:
    target = primitive(
        "mdt0", "ocf:lustre:Lustre", {"target": "/dev/mapper/mdt0", "mountpoint": "/mnt/mdt0"}, *LUSTRE_TIMES
    )
    health = clone(
        "lnet-clone",
        primitive(
            "lnet",
            "ocf:lustre:healthLNET",
            {"lctl": "true", "multiplier": "1000", "device": "ib0", "host_list": "192.168.20.9@o2ib"},
            "monitor interval=60s timeout=60s",
        ),
    )
    rule = element(
        "rule",
        element("expression", id="e1", attribute="pingd", operation="not_defined"),
        element("expression", id="e2", attribute="pingd", operation="lte", value="0"),
        id="rule",
        score="-INFINITY",
    )
    rule.set("boolean-op", "or")
    return files(
        cib([*both(), health, target], [element("rsc_location", rule, id="connected", rsc="mdt0")]), replication=""
    )


def lustre_by_filesystem() -> Files:
    resources = [*both(), promotable(), mount(fstype="lustre", times=LUSTRE_TIMES, directory="/mnt/mdt0")]
    return files(cib(resources, with_primary("fs")))


def san_with_reservations() -> Files:
    scsi = primitive(
        "scsi",
        "stonith:fence_scsi",
        {
            "devices": "/dev/mapper/lun0",
            "pcmk_host_list": f"{A} {B}",
            "pcmk_monitor_action": "metadata",
            "pcmk_delay_max": "10s",
        },
        "monitor interval=60s",
        meta={"provides": "unfencing"},
    )
    volumes = primitive(
        "lvm",
        "ocf:heartbeat:LVM-activate",
        {"vgname": "shared", "vg_access_mode": "system_id"},
        "monitor interval=30s timeout=90s",
        "start timeout=90s",
        "stop timeout=90s",
    )
    return files(cib([scsi, group("grp", volumes, mount("/dev/shared/data"), address())], []), replication="")


def gfs2() -> Files:
    replication = DRBD84.replace("net { protocol C; }", "net { protocol C; allow-two-primaries yes; }")
    lock = clone(
        "dlm-clone",
        primitive(
            "dlm",
            "ocf:pacemaker:controld",
            {},
            "monitor interval=60s timeout=30s",
            "start timeout=90s",
            "stop timeout=100s",
        ),
        interleave="true",
    )
    everywhere = clone("fs-clone", mount(fstype="gfs2"), interleave="true")
    constraints = [
        *with_primary("fs-clone"),
        element("rsc_order", id="dlm-first", first="dlm-clone", then="fs-clone"),
        element("rsc_colocation", id="with-dlm", rsc="fs-clone", with_rsc="dlm-clone", score=INFINITY),
    ]
    return files(
        cib(
            [*both(), lock, promotable(promoted_max="2"), everywhere],
            constraints,
            properties={"no-quorum-policy": "freeze"},
        ),
        replication=replication,
    )


def virtual_machines() -> Files:
    vcenter = primitive(
        "vmfence",
        "stonith:fence_vmware_rest",
        {
            "ip": "vcenter.example.org",
            "username": "ha",
            "password_script": "/etc/cluster/pw",
            "ssl": "1",
            "pcmk_host_map": f"{A}:vm-alpha;{B}:vm-beta",
            "pcmk_delay_max": "15",
        },
        "monitor interval=60s timeout=60s",
    )
    return files(cib([vcenter, promotable(), group("grp", mount(), address())], with_primary()))


def iscsi() -> Files:
    block = ("monitor interval=15s timeout=40s", "start timeout=60s", "stop timeout=60s")
    target = primitive("target", "ocf:heartbeat:iSCSITarget", {"iqn": "iqn.2020-01.org.example:data"}, *block)
    unit = primitive(
        "lun",
        "ocf:heartbeat:iSCSILogicalUnit",
        {"target_iqn": "iqn.2020-01.org.example:data", "lun": "0", "path": "/dev/drbd0"},
        *block,
    )
    return files(cib([*both(), promotable(), group("grp", address(), target, unit)], with_primary()))


def service_of_systemd() -> Files:
    unit = primitive(
        "db", "systemd:postgresql", {}, "monitor interval=30s timeout=60s", "start timeout=100s", "stop timeout=100s"
    )
    away = [
        element("rsc_location", id=f"not-{node}", rsc=f"fence_{node}", node=node, score="-INFINITY") for node in (A, B)
    ]
    return files(cib([*both(), promotable(), group("grp", mount(), unit, address())], [*with_primary(), *away]))


SHARED_STYLES: Mapping[str, Callable[[], Files]] = {
    "ZFS pools of OSTs": zfs_oss,
    "Lustre on a SAN": lustre_on_san,
    "Lustre by Filesystem": lustre_by_filesystem,
    "a SAN with reservations": san_with_reservations,
    "GFS2 on two primaries": gfs2,
    "virtual machines": virtual_machines,
    "iSCSI": iscsi,
    "a service of systemd": service_of_systemd,
}
