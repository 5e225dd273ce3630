"""Settings of a node that work against the cluster: one row for each, with what then happens."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.failover.rules.rule import Severity
from strakes.failover.setup import Setup

_NO = "n|no|0|false|off"
_YES = "y|yes|1|true|on"


@dataclass(frozen=True)
class NodeRow:
    """Table, names and values as regular expressions; ``only_with`` names what the setup has to use."""

    table: str
    names: str
    bad: str
    because: str
    severity: Severity = "error"
    only_with: str = ""


def uses(setup: Setup, what: str) -> bool:
    """Tell whether the setup uses what a row is about."""
    agents = {one.agent for one in setup.cib.services} if setup.cib else set()
    devices = {one.agent for one in setup.cib.devices} if setup.cib else set()
    lustre = bool(setup.lustre or setup.lnet) or any(one.is_lustre for one in (setup.cib.services if setup.cib else ()))
    return {
        "": True,
        "sbd": bool(setup.sbd),
        "lustre": lustre,
        "drbd": bool(setup.drbd),
        "zfs": "ZFS" in agents or "zpool create" in setup.lustre,
        "lvm": bool(agents & {"LVM-activate", "LVM", "clvm", "lvmlockd"}),
        "multipath": "etc/multipath.conf" in setup.texts,
        "address": bool(agents & {"IPaddr2", "IPaddr"}),
        "fence_kdump": "fence_kdump" in devices,
        "exports": bool(agents & {"exportfs", "nfsserver"}),
    }[what]


_CLUSTER = "pacemaker|corosync|sbd|corosync-qdevice"
NODE_ROWS = (
    NodeRow(
        "logind.conf Login",
        "HandlePowerKey",
        r"poweroff|reboot|suspend|hibernate",
        "a BMC that presses the button shuts the node down in minutes, and does not cut its power",
    ),
    NodeRow(
        "system.conf Manager",
        "RuntimeWatchdogSec",
        r"[1-9].*|default",
        "systemd holds the watchdog that sbd needs",
        only_with="sbd",
    ),
    NodeRow(
        "system.conf Manager",
        "DefaultTimeoutStopSec",
        r"[1-9]s?|1\ds?",
        "what has no time of its own is killed while it still writes",
    ),
    NodeRow(
        "pacemaker settings",
        "PCMK_panic_action",
        r"(?!reboot|crash|sync-).*",
        "the node does not go down when it has to",
    ),
    NodeRow(
        "pacemaker settings",
        "PCMK_node_start_state",
        r"standby|member.*",
        "the node serves nothing after it started",
    ),
    NodeRow("multipath.conf (defaults|device|overrides)", "path_checker", r"none", "a dead path is not noticed"),
    NodeRow("multipath.conf defaults", "skip_kpartx|user_friendly_names", r"(?!yes|no).*", "only yes or no is known"),
    NodeRow(
        "multipath.conf defaults",
        "queue_without_daemon",
        "yes",
        "when multipathd stops, requests wait for ever, and so does the shutdown of the node",
        "warning",
    ),
    NodeRow("nfs.conf nfsd", "threads", r"[01]", "no thread, or a single one, serves all clients"),
    NodeRow("nfs.conf nfsd", "vers4|tcp", _NO, "clients that mount so are refused"),
    NodeRow(
        "iscsid.conf",
        r"node\.session\.timeo\.replacement_timeout",
        r"-\d+",
        "requests wait for ever for a target that is gone",
    ),
    NodeRow("iscsid.conf", r"node\.session\.scan", "manual", "the disks of a target do not appear after the login"),
    # The kernel.
    NodeRow(
        "sysctl",
        r"kernel\.panic",
        "0",
        "after a panic the node stands still until somebody powers it off",
        "warning",
    ),
    NodeRow(
        "sysctl", r"kernel\.panic_on_oops", "0", "the node goes on after its kernel has failed, half alive", "warning"
    ),
    NodeRow(
        "sysctl",
        r"kernel\.hung_task_panic",
        "1",
        "threads of Lustre wait for disks and clients longer than that: a healthy server panics",
        "warning",
        "lustre",
    ),
    NodeRow("sysctl", r"kernel\.modules_disabled", "1", "no module can be loaded when a service starts"),
    NodeRow(
        "sysctl",
        r"kernel\.kexec_load_disabled",
        "1",
        "no kernel for dumps is loaded: fence_kdump never hears of one",
        only_with="fence_kdump",
    ),
    NodeRow(
        "sysctl",
        r"vm\.dirty_ratio",
        r"[6-9]\d|100",
        "so much of the memory has to be written at the unmount that the stop times out",
        "warning",
    ),
    NodeRow("sysctl", r"net\.ipv4\.tcp_retries2", r"[0-4]", "a pause of a second or two cuts all connections"),
    NodeRow("sysctl", r"net\.ipv4\.tcp_syn_retries", "0", "one lost packet makes a connection fail"),
    NodeRow(
        "sysctl",
        r"net\.ipv4\.icmp_echo_ignore_all",
        "1",
        "whoever asks by ping whether the node or an address of the cluster is there hears nothing",
        "warning",
    ),
    NodeRow(
        "sysctl",
        r"net\.ipv4\.conf\.\S+\.promote_secondaries",
        "0",
        "when one address of a card goes, all others of its network go with it",
        "warning",
        "address",
    ),
    NodeRow(
        "sysctl",
        r"net\.ipv4\.conf\.\S+\.drop_gratuitous_arp",
        "1",
        "nobody on this node learns that an address has moved",
        "warning",
    ),
    NodeRow("sysctl", r"kernel\.watchdog_thresh", "0", "a processor that hangs is not noticed", "warning"),
    # Modules.
    NodeRow("module zfs", "zfs_autoimport_disable", "0", "pools of the cache file are imported with the module"),
    NodeRow(
        "module (zfs|spl)",
        "zfs_nocacheflush|zil_nocacheflush",
        "1",
        "what is acknowledged is still in the memory of the disks",
        "warning",
    ),
    NodeRow("module zfs", "zil_replay_disable", "1", "what was acknowledged before the crash is not brought back"),
    NodeRow("module zfs", "zfs_recover", "1", "the pool goes on after errors that ought to stop it"),
    NodeRow("module zfs", "zfs_txg_timeout", r"\d{3,}", "minutes of writes are lost with a node", "warning"),
    NodeRow("module zfs", "zfs_deadman_enabled", "0", "a disk that never answers is not noticed", "warning"),
    NodeRow("module lnet", "accept_port", r"(?!988$).+", "all other nodes look for this one at port 988"),
    NodeRow("module lnet", "forwarding", "(?!disabled|enabled).+", "LNet knows only enabled and disabled"),
    NodeRow("module lnet", "auto_down", "0", "a peer that is dead counts as alive", "warning"),
    NodeRow("module (lnet|ko2iblnd|ksocklnd)", "credits|peer_credits", "0|1", "one message at a time is sent"),
    NodeRow("module ptlrpc", "suppress_pings", "[1yY].*", "a client that died is noticed by nobody", "warning"),
    NodeRow("module ptlrpc", "at_max", "0", "without adaptive time-outs a busy server loses its clients"),
    NodeRow("module (ost|mdt|mds)", r"\w*(num|max)\w*threads\w*|\w*threads_max", "[0-4]", "a few requests block all"),
    NodeRow("module softdog", "soft_margin", "[0-4]", "a busy node resets itself"),
    # LVM.
    NodeRow(
        "lvm.conf global",
        "locking_type",
        "0|4|5",
        "nothing keeps two nodes from changing one group of volumes",
        only_with="lvm",
    ),
    NodeRow(
        "lvm.conf global",
        "use_lvmetad",
        "1",
        "lvmetad keeps in memory what the other node has changed, and activates at boot",
        only_with="lvm",
    ),
    NodeRow(
        "lvm.conf global",
        "fallback_to_(local|clustered)_locking",
        "1",
        "where the locks are not there, volumes are changed without them",
        "warning",
        "lvm",
    ),
    NodeRow("lvm.conf global", "activation", "0", "no volume is ever activated", only_with="lvm"),
    NodeRow("lvm.conf global", "metadata_read_only", "1", "the owner of a group cannot be changed", only_with="lvm"),
    NodeRow("lvm.conf global", "wait_for_locks", "0", "a command fails where it ought to wait", "warning", "lvm"),
    NodeRow(
        "lvm.conf activation",
        "activation_mode",
        "partial",
        "a group with lost disks is activated, and served with holes",
        "warning",
        "lvm",
    ),
    NodeRow(
        "lvm.conf devices",
        "multipath_component_detection",
        "0",
        "LVM takes a single path for the disk, and loses it with that path",
        only_with="multipath",
    ),
    NodeRow("lvm.conf devices", "dir", "(?!/dev/?$).+", "what the cluster mounts is below /dev", only_with="lvm"),
    # ZFS at boot.
    NodeRow(
        "zfs settings",
        "ZPOOL_IMPORT_ALL_VISIBLE",
        _YES,
        "every pool that the node sees is imported when it starts",
        only_with="zfs",
    ),
    NodeRow(
        "zfs settings",
        "ZPOOL_IMPORT_OPTS",
        r".*-(\w*[fFXD]|a).*",
        "pools are imported by force when the node starts",
        only_with="zfs",
    ),
    # Properties of pools and datasets, whoever sets them.
    NodeRow("pool", "multihost", "off", "nothing keeps a second node from importing a pool that is in use"),
    NodeRow("pool", "readonly", "on", "nothing can be written"),
    NodeRow("pool", "failmode", "continue", "a pool whose disks are gone is not taken over"),
    NodeRow("pool", "ashift", "9", "each write to a disk with sectors of 4 KiB is a read and a write", "warning"),
    NodeRow("dataset", "sync", "disabled", "what clients were told is written is lost with the node"),
    NodeRow("dataset", "checksum", "off", "damaged data are served as good"),
    NodeRow("dataset", "readonly", "on", "nothing can be written"),
    NodeRow("dataset", "(primary)?cache", "none", "every read goes to the disks", "warning"),
    # Lustre's parameters, at the making of a target or by lctl.
    NodeRow("lctl", r"(.*\.)?panic_on_lbug", "0", "after an error of Lustre's own its threads hang, and nobody fences"),
    NodeRow("lctl", r"(osc|osp|mdc|lov)\..*active|.*\.(osc|mdc)\.active", "0", "the target is used by nobody"),
    NodeRow("lctl", r"(.*\.)?degraded", "1", "no new files are put on the target", "warning"),
    NodeRow("lctl", r"(.*\.)?no_precreate", "1", "no new files are put on the target", "warning"),
    NodeRow("lctl", r"(.*\.)?max_create_count", "0", "no new files are put on the target", "warning"),
    NodeRow("lctl", r"(.*\.)?ir_state", "disabled|off|0", "clients learn of a take-over only by time-outs", "warning"),
    NodeRow(
        "lctl", r"(.*\.)?sync_(on_)?lock_cancel", "never", "a client's lock goes before its data are safe", "warning"
    ),
    NodeRow("lctl", r"(.*\.)?suppress_pings", "1", "a client that died is noticed by nobody", "warning"),
    NodeRow("lctl", r"(.*\.)?changelog_gc", "0", "a reader that is gone fills the metadata target", "warning"),
    NodeRow("lctl", r"(.*\.)?at_max", "0", "without adaptive time-outs a busy server loses its clients"),
    NodeRow("lctl", r"(.*\.)?quota\.(mdt|ost)", r"(?![ugp]{1,3}$|none$).*", "quota is of u, g and p, or none"),
    NodeRow("lctl", r"(.*\.)?failover\.mode", r"(?!failover$).*", "clients get errors in place of waiting"),
    NodeRow("lctl", r"(.*\.)?threads_max", "[0-4]", "a few requests block all"),
    NodeRow("lctl", r"(.*\.)?identity_upcall", r"(/usr)?/bin/(false|true)", "nobody is known: access is refused"),
    NodeRow("lctl", "debug", "-1", "the kernel writes a line for every step of every request", "warning"),
    NodeRow("mount options lustre", "skip_lcfg|writeconf|nosvc|abort_recov\\w*", ".*", "it is for repairs only"),
    NodeRow("mount options lustre", "noir", ".*", "clients learn of a take-over only by time-outs", "warning"),
    NodeRow("mount options lustre", "exclude", ".*", "the targets that are excluded are used by nobody", "warning"),
    # Units of systemd: of the cluster's own programs.
    NodeRow(
        f"unit Service of ({_CLUSTER})",
        r"Private(Tmp|Mounts|Devices|Network|Users)|Protect(System|Home|Kernel\w+|ControlGroups|Clock)|MountFlags",
        r"(?!no$|false$|0$|shared$).+",
        "what agents mount or set is seen by nobody else",
    ),
    NodeRow(
        f"unit Service of ({_CLUSTER})",
        r"ReadOnlyPaths|InaccessiblePaths|User|CapabilityBoundingSet|SystemCallFilter|RootDirectory|DynamicUser",
        ".+",
        "the program has not the rights that it needs",
    ),
    NodeRow(
        f"unit Service of ({_CLUSTER})",
        r"RestrictRealtime|NoNewPrivileges|RestrictNamespaces",
        _YES,
        "the program has not the rights that it needs",
    ),
    NodeRow(f"unit Service of ({_CLUSTER})", "KillSignal", ".*KILL|9", "the program is killed in place of stopped"),
    NodeRow(
        f"unit Service of ({_CLUSTER})", "LimitMEMLOCK", r"\d{1,8}|\d+[KM]", "it is paged out, and late", "warning"
    ),
    NodeRow(f"unit Service of ({_CLUSTER})", "LimitRTPRIO", "0", "it gets no time of a busy processor"),
    NodeRow(
        f"unit Service of ({_CLUSTER})",
        r"Exec(Start|Stop)",
        r"(/usr)?/bin/(true|false)",
        "it is never started, or never stopped",
    ),
    NodeRow(
        f"unit Unit of ({_CLUSTER})",
        "PartOf|BindsTo",
        r".*(network|NetworkManager|systemd-networkd|firewalld|sshd|chronyd).*",
        "a restart of that unit stops the cluster on this node",
    ),
    NodeRow(
        "kdump",
        "(failure_action|default)",
        "shell",
        "a node whose dump fails waits for somebody, powered on",
        "warning",
    ),
    NodeRow(
        "kernel command line",
        r"zfs(\.|_)?zfs_force|zfs_force",
        "1",
        "pools are imported by force at boot",
        only_with="zfs",
    ),
    NodeRow(
        "kernel command line",
        "spl_hostid|spl.spl_hostid",
        "0+|0x0+",
        "multihost does not work without a host id",
        only_with="zfs",
    ),
    NodeRow(
        "kernel command line",
        "panic",
        "0",
        "after a panic the node stands still until somebody powers it off",
        "warning",
    ),
)
