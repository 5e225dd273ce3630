"""Which files of a node are read: everything that starts, mounts, names, addresses or limits something there."""

from __future__ import annotations

import re
from pathlib import Path

_NAMES = (
    *("corosync/corosync.conf", "drbd.conf", "sysconfig/sbd", "default/sbd", "fstab", "crypttab"),
    *(f"ha.d/{name}" for name in ("ha.cf", "haresources", "authkeys")),
    *("hosts", "nsswitch.conf", "exports", "sysctl.conf", "multipath.conf", "lvm/lvm.conf"),
    *("lvm/lvmlocal.conf", "mdadm.conf", "mdadm/mdadm.conf", "iscsi/iscsid.conf", "iscsi/initiatorname.iscsi"),
    *("nfs.conf", "sysconfig/nfs", "default/nfs-kernel-server", "default/nfs-common"),
    *("systemd/logind.conf", "systemd/system.conf", "systemd/journald.conf"),
    *("default/zfs", "sysconfig/zfs", "zfs/vdev_id.conf", "kdump.conf", "default/kdump-tools", "sysconfig/kdump"),
    *("default/grub", "sysconfig/bootloader", "ldev.conf", "lnet.conf", "dlm/dlm.conf", "sanlock/sanlock.conf"),
    *("rc.local", "rc.d/rc.local", "init.d/boot.local", "init.d/after.local", "crontab", "anacrontab"),
    *("auto.master", "chrony.conf", "chrony/chrony.conf", "ntp.conf", "ntpsec/ntp.conf", "rsyslog.conf"),
    *("dnf/automatic.conf", "yum/yum-cron.conf", "needrestart/needrestart.conf"),
    *("network/interfaces", "nftables.conf", "sysconfig/nftables.conf", "sysconfig/iptables", "iptables/rules.v4"),
    *(f"{kind}/{name}" for kind in ("sysconfig", "default") for name in ("pacemaker", "corosync", "corosync-qdevice")),
)
# One that is a link to /dev/null is switched off.
_PATTERNS = (
    *("drbd.d/*.res", "drbd.d/*.conf", "booth/*.conf", "modprobe.d/*.conf", "sysctl.d/*.conf", "exports.d/*.exports"),
    *("systemd/system/*.mount", "systemd/system/*.automount", "systemd/system/*.swap", "systemd/system/*.timer"),
    *("systemd/system/*.service", "systemd/system/*.service.d/*.conf", "systemd/system/*.target.d/*.conf"),
    *("systemd/logind.conf.d/*.conf", "systemd/system.conf.d/*.conf", "systemd/journald.conf.d/*.conf"),
    *("systemd/network/*.network", "systemd/network/*.netdev", "nfs.conf.d/*.conf", "multipath/conf.d/*.conf"),
    *("cron.d/*", "cron.hourly/*", "cron.daily/*", "cron.weekly/*", "cron.monthly/*", "logrotate.d/*"),
    *("udev/rules.d/*.rules", "auto.master.d/*.autofs", "rsyslog.d/*.conf", "chrony.d/*.conf", "chrony/conf.d/*.conf"),
    *("sysconfig/network-scripts/ifcfg-*", "sysconfig/network/ifcfg-*", "NetworkManager/conf.d/*.conf"),
    *("NetworkManager/system-connections/*", "NetworkManager/dispatcher.d/*", "netplan/*.yaml", "network/if-up.d/*"),
    *("network/interfaces.d/*", "firewalld/zones/*.xml", "nftables/*.nft", "apt/apt.conf.d/*", "modules-load.d/*.conf"),
    *(
        "rc[2-5].d/S*",
        "rc.d/rc[2-5].d/S*",
        "default/grub.d/*.cfg",
        "lvm/profile/*.profile",
        "needrestart/conf.d/*.conf",
    ),
)
_PLANNED = ("pacemaker/cib.xml", *(f"lustre/{name}.sh" for name in ("make-targets", "mount-clients", "parameters")))
# What a file has beside addresses and cards is nobody's business but the program's.
_SECRETS = re.compile(r"(?im)^\s*[\w.\[\]-]*(psk|password|passphrase|secret|private-key)[\w.\[\]-]*\s*[=:].*$")
_WITH_SECRETS = re.compile(
    r"(nodes/[^/]+/)?etc/(NetworkManager/system-connections|netplan|network|sysconfig/network(-scripts)?)/.*"
)


def names_below(root: Path, *, planned: bool) -> list[str]:
    """Return the names of the files to read below a directory, in a fixed order; not all of them have to be there.

    ``planned`` files are those that a plan has beside etc.
    """
    found = [f"etc/{name}" for name in _NAMES] + list(_PLANNED if planned else ())
    found += sorted(
        str(path.relative_to(root)) for pattern in _PATTERNS for path in (root / "etc").glob(pattern) if path.is_file()
    )
    found += [name for name in ("var/spool/cron/root", "var/spool/cron/crontabs/root") if (root / name).is_file()]
    # What each node has of its own: nodes/NAME/etc/...
    found += sorted(str(path.relative_to(root)) for path in (root / "nodes").glob("*/etc/**/*") if path.is_file())
    return list(dict.fromkeys(found))


def holds_secrets(name: str) -> bool:
    """Return whether a file may hold keys and passwords of networks."""
    return bool(_WITH_SECRETS.fullmatch(name))


def without_secrets(name: str, text: str) -> str:
    """Return a file without the lines that hold the secrets of networks.

    >>> without_secrets("etc/netplan/1.yaml", "password: x\\naddresses: []")
    '\\naddresses: []'
    """
    return _SECRETS.sub("", text) if holds_secrets(name) else text


def switched_on(root: Path) -> dict[str, str]:
    """Return the links of systemd that say what is started or masked, each with an empty text.

    What is enabled is a link; its name says all, and it may point to what is not there.
    """
    found = {
        str(path.relative_to(root)): ""
        for kind in ("wants", "requires")
        for path in (root / "etc").glob(f"systemd/system/*.{kind}/*")
    }
    return found | {
        str(path.relative_to(root)): ""
        for path in (root / "etc/systemd/system").glob("*.*")
        if path.is_symlink() and str(path.readlink()) == "/dev/null"
    }
