"""The files of a node that the rules read."""

from __future__ import annotations

import re
from pathlib import Path

_NAMES = (
    *("corosync/corosync.conf", "drbd.conf", "sysconfig/sbd", "default/sbd", "fstab", "crypttab"),
    *(f"ha.d/{name}" for name in ("ha.cf", "haresources", "authkeys")),
    *("hosts", "exports", "sysctl.conf", "multipath.conf", "lvm/lvm.conf", "iscsi/iscsid.conf"),
    *("nfs.conf", "sysconfig/nfs", "default/nfs-kernel-server", "default/nfs-common"),
    *("systemd/logind.conf", "systemd/system.conf", "default/zfs", "sysconfig/zfs"),
    *("default/grub", "sysconfig/bootloader", "dlm/dlm.conf", "sanlock/sanlock.conf"),
    *("rc.local", "rc.d/rc.local", "init.d/boot.local", "init.d/after.local", "crontab", "anacrontab"),
    *("auto.master", "network/interfaces"),
    *(f"{kind}/{name}" for kind in ("sysconfig", "default") for name in ("pacemaker", "corosync", "corosync-qdevice")),
)
# A file that is a link to /dev/null is disabled.
_PATTERNS = (
    *("drbd.d/*.res", "drbd.d/*.conf", "booth/*.conf", "modprobe.d/*.conf", "sysctl.d/*.conf", "exports.d/*.exports"),
    *("systemd/system/*.mount", "systemd/system/*.automount", "systemd/system/*.swap", "systemd/system/*.timer"),
    *("systemd/system/*.service", "systemd/system/*.service.d/*.conf", "systemd/system/*.target.d/*.conf"),
    *("systemd/logind.conf.d/*.conf", "systemd/system.conf.d/*.conf"),
    *("systemd/network/*.network", "nfs.conf.d/*.conf", "multipath/conf.d/*.conf"),
    *("cron.d/*", "cron.hourly/*", "cron.daily/*", "cron.weekly/*", "cron.monthly/*", "logrotate.d/*"),
    *("udev/rules.d/*.rules", "auto.master.d/*.autofs"),
    *("sysconfig/network-scripts/ifcfg-*", "sysconfig/network/ifcfg-*"),
    *("NetworkManager/system-connections/*", "NetworkManager/dispatcher.d/*", "netplan/*.yaml", "network/if-up.d/*"),
    *("network/interfaces.d/*", "rc[2-5].d/S*", "rc.d/rc[2-5].d/S*", "default/grub.d/*.cfg"),
)
_PLANNED = ("pacemaker/cib.xml", *(f"lustre/{name}.sh" for name in ("make-targets", "mount-clients", "parameters")))
# Secret settings of network cards: removed before anything is stored.
_SECRETS = re.compile(r"(?im)^\s*[\w.\[\]-]*(psk|password|passphrase|secret|private-key)[\w.\[\]-]*\s*[=:].*$")
_WITH_SECRETS = re.compile(
    r"(nodes/[^/]+/)?etc/(NetworkManager/system-connections|netplan|network|sysconfig/network(-scripts)?)/.*"
)


def names_below(root: Path, *, planned: bool) -> list[str]:
    """Return the names of the files to read below a directory, in a fixed order; some of them may not exist.

    ``planned`` adds the files of a plan that are outside etc.
    """
    found = [f"etc/{name}" for name in _NAMES] + list(_PLANNED if planned else ())
    found += sorted(
        str(path.relative_to(root)) for pattern in _PATTERNS for path in (root / "etc").glob(pattern) if path.is_file()
    )
    found += [name for name in ("var/spool/cron/root", "var/spool/cron/crontabs/root") if (root / name).is_file()]
    # Files of single nodes: nodes/NAME/etc/...
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
    """Return the links by which systemd enables or masks units, each with an empty text; targets need not exist."""
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
