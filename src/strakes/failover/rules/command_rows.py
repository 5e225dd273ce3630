"""Commands that no node runs by itself in a cluster: one row for each, with what then happens."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.failover.rules.rule import Severity

# What kind of thing of the cluster's a command names, for the rows that are about one: see ``commands_against``.
_DISK, _PLACE, _POOL, _GROUP, _UNIT, _ADDRESS = "disk", "place", "pool", "group", "unit", "address"


@dataclass(frozen=True)
class CommandRow:
    """A command as a regular expression of its text; ``names`` is the kind of thing of the cluster that it has to name.

    ``timed`` rows do harm when they come again and again, not at boot; ``scripts`` rows also in scripts that somebody
    runs by hand.
    """

    text: str
    because: str
    names: str = ""
    only_with: str = ""
    severity: Severity = "error"
    timed: bool = False
    scripts: bool = False


_PROGRAMS = r"(pacemaker\S*|corosync(\.service)?|sbd(\.service)?|pcsd?|heartbeat)"
_WRITES = (
    r"(e2fsck|fsck(\.\w+)?|xfs_repair|tune2fs|tunefs\.lustre|debugfs|mkfs(\.\w+)?|mkfs\.lustre|wipefs|dd|"
    r"shred|blkdiscard|sgdisk|sfdisk|parted|pvcreate|mkswap|swapon|blockdev|cryptsetup|hdparm|sdparm)"
)
COMMAND_ROWS = (
    # Who has what.
    CommandRow(
        r"drbd(adm|setup) .*\b(primary|secondary|up|down|adjust|detach|disconnect|attach|outdate)\b.*",
        "Pacemaker manages DRBD: this promotes or removes a copy behind its back",
        only_with="drbd",
    ),
    CommandRow(
        r"drbd(adm|setup) .*(--discard-my-data|invalidate|create-md|new-current-uuid|"
        r"--overwrite-data-of-peer|--force).*",
        "it discards a copy of the data without checking which one",
        only_with="drbd",
    ),
    CommandRow(r"zpool (import|export)\b.*", "it takes a pool from the node that serves it", _POOL, "zfs"),
    CommandRow(
        r"zpool import\b.* (-\w*a\w*)\b.*", "it imports every pool, even one that another node has", only_with="zfs"
    ),
    CommandRow(
        r"zpool (create|add|remove|detach|offline)\b.*",
        "it creates a pool, or changes the disks of a pool",
        _POOL,
        "zfs",
    ),
    CommandRow(r"zpool (destroy|labelclear|split|reguid)\b.*", "it destroys or renames a pool", _POOL, "zfs"),
    CommandRow(
        r"zpool clear\b.*",
        "a pool that has lost its disks continues, instead of being taken over",
        _POOL,
        "zfs",
        "warning",
    ),
    CommandRow(
        r"(vg|lv)change\b.* (-a\s*e?y\S*|--activate\s*[= ]?e?y\S*|-aay|-aey|-ay).*",
        "volumes are activated on every node that runs it",
        _GROUP,
        "lvm",
    ),
    CommandRow(
        r"vgchange\b.*(--systemid|--addtag|--deltag|--lock-?start|--lock-?type).*",
        "it changes the owner of a volume group, which is the task of LVM-activate",
        _GROUP,
        "lvm",
    ),
    CommandRow(r"mount\b.*", "every node that runs this mounts the disk, even if another node has it", _DISK),
    CommandRow(r"(mount|umount|fuser)\b.*", "it is mounted or unmounted behind Pacemaker's back", _PLACE),
    CommandRow(
        r"exportfs\b.* (-\w*[ruf]\w*)\b.*",
        "it resets the exports to those in /etc/exports: what Pacemaker exports is gone",
        only_with="exports",
    ),
    CommandRow(r"exportfs\b.*:/.*", "every node that runs this exports it", only_with="exports"),
    CommandRow(r"rpc\.nfsd\b.*", "it starts the NFS server on every node", only_with="exports"),
    CommandRow(
        r"(ip|ifconfig|nmcli|arping)\b.*",
        "it adds or removes an address of the cluster behind Pacemaker's back",
        _ADDRESS,
    ),
    CommandRow(
        r"mdadm\b.*(-A|--assemble|-S|--stop|-I|--incremental)\b.*", "an array is assembled on every node", "array"
    ),
    CommandRow(
        r"(systemctl|rc-service)\b.* (start|restart|enable|try-restart|reload-or-restart|stop|isolate)\b.*",
        "only Pacemaker may start and stop it",
        _UNIT,
    ),
    CommandRow(r"service \S+ (start|restart|stop)\b.*", "only Pacemaker may start and stop it", _UNIT),
    CommandRow(
        rf"(systemctl\b.* (restart|stop|try-restart|kill|reload-or-restart)\b.* {_PROGRAMS}|"
        rf"service {_PROGRAMS} (restart|stop)).*",
        "it stops or restarts the cluster on all nodes while services are running",
    ),
    CommandRow(
        r"(kill|killall|pkill)\b.*(pacemaker|corosync|sbd|multipathd|nfsd|iscsid|drbd|lrmd|crmd|stonithd).*",
        "it kills a program that the cluster needs: the node is powered off for it, or keeps serving without it",
    ),
    # Fencing and quorum.
    CommandRow(
        r"(pcs|crm|crm_attribute|cibadmin)\b.*(stonith-enabled|fencing-enabled|maintenance-mode|"
        r"no-quorum-policy|startup-fencing|stop-all-resources|symmetric-cluster)\b.*",
        "it changes what the cluster does after a failure, each time that it runs",
    ),
    CommandRow(
        r"(pcs stonith (disable|delete|remove|confirm|level (clear|delete|remove))|"
        r"stonith_admin\b.* (-C|--confirm|-D|--deregister)|fence_ack_manual|crm node clearstate)\b.*",
        "it confirms without a check that a node is off, or removes its fencing",
    ),
    CommandRow(
        r"(pcs (node|cluster|resource|stonith) (standby|maintenance|disable|unmanage|kill|destroy|"
        r"stop)|crm (node|resource) (standby|maintenance|unmanage|stop)|crm_standby|"
        r"crm cluster stop)\b.*",
        "it takes a node or a service out of use again and again",
    ),
    CommandRow(
        r"(pcs quorum (unblock|expected-votes)|corosync-quorumtool\b.* -e|corosync-cfgtool\b.* -[HRk]|"
        r"cibadmin\b.* (-E|--erase))\b.*",
        "it changes votes, or the whole configuration, without anybody noticing",
    ),
    CommandRow(
        r"corosync-cmapctl\b.* -[sSdDp]\b.*|pcs quorum (update|device (remove|update))\b.*",
        "quorum, or what Corosync waits for, is changed each time that it runs",
    ),
    CommandRow(
        r"(pcs resource (move|relocate|ban)|crm resource (move|migrate|ban)|crm_resource\b.* (--move|--ban|-M|-B))\b.*",
        "each time it leaves a constraint behind that prevents a take-over",
        severity="warning",
        timed=True,
    ),
    CommandRow(
        r"(crm_resource\b.* (--cleanup|--refresh|-C|-R|-P)|pcs (resource|stonith) (cleanup|refresh)|"
        r"crm resource (cleanup|refresh|reprobe)|crm_failcount\b.* -D)\b.*",
        "failures are forgotten before they are counted: a service that always fails is never taken over",
        severity="warning",
        timed=True,
    ),
    CommandRow(
        r"(sg_persist|mpathpersist)\b.*(--clear|--preempt|-\w*C|--release).*",
        "it takes away the reservation that fences",
    ),
    CommandRow(r"rm\b.*/var/lib/(pacemaker|corosync|drbd)\b.*", "the node forgets the configuration, or its own votes"),
    # Power, kernel, time.
    CommandRow(
        r"(shutdown\b(?!.* -c)|reboot|poweroff|halt|(tel)?init [06]|systemctl\b.* (reboot|poweroff|"
        r"halt|kexec|suspend|hibernate)|rtcwake)\b.*|echo [bo] > /proc/sysrq-trigger",
        "all nodes do this in the same minute, and no node is left to take over",
        timed=True,
    ),
    CommandRow(
        r"(rmmod|modprobe -r|lustre_rmmod)\b.*\b(drbd\w*|zfs|lustre|lnet|softdog|dm_multipath|"
        r"iTCO_wdt|ipmi_watchdog)\b.*|lustre_rmmod",
        "it removes a module that the cluster needs",
    ),
    CommandRow(
        r"(ntpdate|hwclock\b.* (-s|--hctosys)|date (-s|--set)|sntp|chronyc makestep)\b.*",
        "the clock jumps again and again, although another program keeps it",
        severity="warning",
        timed=True,
    ),
    CommandRow(
        r"(yum|dnf|apt-get|apt|zypper)\b.*\b(update|upgrade|dist-upgrade|full-upgrade|up|dup|patch)\b.*(?<!-s)$",
        "all nodes update their programs in the same night: if an update fails, no working node is left",
        severity="warning",
        timed=True,
    ),
    CommandRow(
        r"tc qdisc (add|replace)\b.*\bnetem\b.*",
        "packets are dropped or delayed on purpose; a test has left this behind",
    ),
    CommandRow(
        r"(iptables|ip6tables|nft|firewall-cmd)\b.*(5405|5404|corosync|high-availability).*(DROP|"
        r"REJECT|drop|reject|remove).*",
        "the nodes can no longer reach each other",
    ),
    # Disks of the cluster.
    CommandRow(
        rf"{_WRITES}(?!.* (-n|--readonly|--getra|--print|-l)\b)\b.*",
        "it writes to or checks a disk of the cluster that another node may be using",
        _DISK,
    ),
    CommandRow(
        r"tune2fs\b.*(\^mmp|clear_mmp|\^has_journal|mmp_update_interval=0).*",
        "it removes the protection against a mount on both nodes, or the journal",
        scripts=True,
    ),
    CommandRow(
        r"(multipath\b.* -[FfW]|multipathd\b.*(shutdown|del|disablequeueing|suspend))\b.*",
        "it removes paths and disks",
    ),
    CommandRow(
        r"iscsiadm\b.*(--logout|-u|--op(=| )delete|-o delete)\b.*",
        "it removes disks of the cluster",
        severity="warning",
    ),
    # Lustre.
    CommandRow(
        r"lctl\b.*\b(abort_recovery|abort_recov|network down|net down|network unconfigure|deactivate|"
        r"clear_conf|erase_lcfg|lcfg_erase|lcfg_clear|llog_cancel|replace_nids|set_route .* down|"
        r"evict_client|detach|cleanup)\b.*",
        "this is for manual repairs only: clients lose their state, or their connection",
        only_with="lustre",
    ),
    CommandRow(
        r"lnetctl\b.*\b(unconfigure|(net|peer|route) del)\b.*", "clients lose their connection", only_with="lustre"
    ),
    CommandRow(
        r"tunefs\.lustre\b.*(--writeconf|--erase-params|--erase-param|--reformat|--rename).*",
        "it erases the configuration of a target",
        only_with="lustre",
    ),
)
