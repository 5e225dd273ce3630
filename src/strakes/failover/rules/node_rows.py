"""Settings of a node that work against the cluster: one row for each, with what then happens."""

from __future__ import annotations

from strakes.failover.rules.node_row import DATASET, KERNEL_LINE, LCTL, LVM, MULTIPATH, NO, SYSCTL, YES, ZFS, SettingsOf
from strakes.failover.rules.node_rows_system import SYSTEM_ROWS

_CLUSTER = "pacemaker|corosync|sbd|corosync-qdevice"
_SERVICE = SettingsOf(f"unit Service of ({_CLUSTER})")
NODE_ROWS = (
    SettingsOf("logind.conf Login").error(
        "HandlePowerKey",
        r"poweroff|reboot|suspend|hibernate",
        "a BMC that presses the button shuts the node down in minutes, and does not cut its power",
    ),
    SettingsOf("system.conf Manager").error(
        "RuntimeWatchdogSec", r"[1-9].*|default", "systemd holds the watchdog that sbd needs", only_with="sbd"
    ),
    SettingsOf("system.conf Manager").error(
        "DefaultTimeoutStopSec", r"[1-9]s?|1\ds?", "what has no time of its own is killed while it still writes"
    ),
    SettingsOf("pacemaker settings").error(
        "PCMK_panic_action", r"(?!reboot|crash|sync-).*", "the node does not go down when it has to"
    ),
    SettingsOf("pacemaker settings").error(
        "PCMK_node_start_state", r"standby|member.*", "the node serves nothing after it started"
    ),
    SettingsOf("multipath.conf (defaults|device|overrides)").error(
        "path_checker", r"none", "a dead path is not noticed"
    ),
    MULTIPATH.error("skip_kpartx|user_friendly_names", r"(?!yes|no).*", "only yes or no is known"),
    MULTIPATH.warning(
        "queue_without_daemon",
        "yes",
        "when multipathd stops, requests wait for ever, and so does the shutdown of the node",
    ),
    SettingsOf("nfs.conf nfsd").error("threads", r"[01]", "no thread, or a single one, serves all clients"),
    SettingsOf("nfs.conf nfsd").error("vers4|tcp", NO, "clients that mount so are refused"),
    SettingsOf("iscsid.conf").error(
        r"node\.session\.timeo\.replacement_timeout", r"-\d+", "requests wait for ever for a target that is gone"
    ),
    SettingsOf("iscsid.conf").error(
        r"node\.session\.scan", "manual", "the disks of a target do not appear after the login"
    ),
    # The kernel.
    SYSCTL.warning(r"kernel\.panic", "0", "after a panic the node stands still until somebody powers it off"),
    SYSCTL.warning(r"kernel\.panic_on_oops", "0", "the node goes on after its kernel has failed, half alive"),
    SYSCTL.warning(
        r"kernel\.hung_task_panic",
        "1",
        "threads of Lustre wait for disks and clients longer than that: a healthy server panics",
        only_with="lustre",
    ),
    SYSCTL.error(r"kernel\.modules_disabled", "1", "no module can be loaded when a service starts"),
    SYSCTL.error(
        r"kernel\.kexec_load_disabled",
        "1",
        "no kernel for dumps is loaded: fence_kdump never hears of one",
        only_with="fence_kdump",
    ),
    SYSCTL.warning(
        r"vm\.dirty_ratio",
        r"[6-9]\d|100",
        "so much of the memory has to be written at the unmount that the stop times out",
    ),
    SYSCTL.error(r"net\.ipv4\.tcp_retries2", r"[0-4]", "a pause of a second or two cuts all connections"),
    SYSCTL.error(r"net\.ipv4\.tcp_syn_retries", "0", "one lost packet makes a connection fail"),
    SYSCTL.warning(
        r"net\.ipv4\.icmp_echo_ignore_all",
        "1",
        "whoever asks by ping whether the node or an address of the cluster is there hears nothing",
    ),
    SYSCTL.warning(
        r"net\.ipv4\.conf\.\S+\.promote_secondaries",
        "0",
        "when one address of a card goes, all others of its network go with it",
        only_with="address",
    ),
    SYSCTL.warning(
        r"net\.ipv4\.conf\.\S+\.drop_gratuitous_arp", "1", "nobody on this node learns that an address has moved"
    ),
    SYSCTL.warning(r"kernel\.watchdog_thresh", "0", "a processor that hangs is not noticed"),
    # Modules.
    ZFS.error("zfs_autoimport_disable", "0", "pools of the cache file are imported with the module"),
    SettingsOf("module (zfs|spl)").warning(
        "zfs_nocacheflush|zil_nocacheflush", "1", "what is acknowledged is still in the memory of the disks"
    ),
    ZFS.error("zil_replay_disable", "1", "what was acknowledged before the crash is not brought back"),
    ZFS.error("zfs_recover", "1", "the pool goes on after errors that ought to stop it"),
    ZFS.warning("zfs_txg_timeout", r"\d{3,}", "minutes of writes are lost with a node"),
    ZFS.warning("zfs_deadman_enabled", "0", "a disk that never answers is not noticed"),
    SettingsOf("module lnet").error("accept_port", r"(?!988$).+", "all other nodes look for this one at port 988"),
    SettingsOf("module lnet").error("forwarding", "(?!disabled|enabled).+", "LNet knows only enabled and disabled"),
    SettingsOf("module lnet").warning("auto_down", "0", "a peer that is dead counts as alive"),
    SettingsOf("module (lnet|ko2iblnd|ksocklnd)").error("credits|peer_credits", "0|1", "one message at a time is sent"),
    SettingsOf("module ptlrpc").warning("suppress_pings", "[1yY].*", "a client that died is noticed by nobody"),
    SettingsOf("module ptlrpc").error("at_max", "0", "without adaptive time-outs a busy server loses its clients"),
    SettingsOf("module (ost|mdt|mds)").error(
        r"\w*(num|max)\w*threads\w*|\w*threads_max", "[0-4]", "a few requests block all"
    ),
    SettingsOf("module softdog").error("soft_margin", "[0-4]", "a busy node resets itself"),
    # LVM.
    LVM.error("locking_type", "0|4|5", "nothing keeps two nodes from changing one group of volumes", only_with="lvm"),
    LVM.error(
        "use_lvmetad",
        "1",
        "lvmetad keeps in memory what the other node has changed, and activates at boot",
        only_with="lvm",
    ),
    LVM.warning(
        "fallback_to_(local|clustered)_locking",
        "1",
        "where the locks are not there, volumes are changed without them",
        only_with="lvm",
    ),
    LVM.error("activation", "0", "no volume is ever activated", only_with="lvm"),
    LVM.error("metadata_read_only", "1", "the owner of a group cannot be changed", only_with="lvm"),
    LVM.warning("wait_for_locks", "0", "a command fails where it ought to wait", only_with="lvm"),
    SettingsOf("lvm.conf activation").warning(
        "activation_mode", "partial", "a group with lost disks is activated, and served with holes", only_with="lvm"
    ),
    SettingsOf("lvm.conf devices").error(
        "multipath_component_detection",
        "0",
        "LVM takes a single path for the disk, and loses it with that path",
        only_with="multipath",
    ),
    SettingsOf("lvm.conf devices").error(
        "dir", "(?!/dev/?$).+", "what the cluster mounts is below /dev", only_with="lvm"
    ),
    # ZFS at boot.
    SettingsOf("zfs settings").error(
        "ZPOOL_IMPORT_ALL_VISIBLE", YES, "every pool that the node sees is imported when it starts", only_with="zfs"
    ),
    SettingsOf("zfs settings").error(
        "ZPOOL_IMPORT_OPTS", r".*-(\w*[fFXD]|a).*", "pools are imported by force when the node starts", only_with="zfs"
    ),
    # Properties of pools and datasets, whoever sets them.
    SettingsOf("pool").error("multihost", "off", "nothing keeps a second node from importing a pool that is in use"),
    SettingsOf("pool").error("readonly", "on", "nothing can be written"),
    SettingsOf("pool").error("failmode", "continue", "a pool whose disks are gone is not taken over"),
    SettingsOf("pool").warning("ashift", "9", "each write to a disk with sectors of 4 KiB is a read and a write"),
    DATASET.error("sync", "disabled", "what clients were told is written is lost with the node"),
    DATASET.error("checksum", "off", "damaged data are served as good"),
    DATASET.error("readonly", "on", "nothing can be written"),
    DATASET.warning("(primary)?cache", "none", "every read goes to the disks"),
    # Lustre's parameters, at the making of a target or by lctl.
    LCTL.error(r"(.*\.)?panic_on_lbug", "0", "after an error of Lustre's own its threads hang, and nobody fences"),
    LCTL.error(r"(osc|osp|mdc|lov)\..*active|.*\.(osc|mdc)\.active", "0", "the target is used by nobody"),
    LCTL.warning(r"(.*\.)?degraded", "1", "no new files are put on the target"),
    LCTL.warning(r"(.*\.)?no_precreate", "1", "no new files are put on the target"),
    LCTL.warning(r"(.*\.)?max_create_count", "0", "no new files are put on the target"),
    LCTL.warning(r"(.*\.)?ir_state", "disabled|off|0", "clients learn of a take-over only by time-outs"),
    LCTL.warning(r"(.*\.)?sync_(on_)?lock_cancel", "never", "a client's lock goes before its data are safe"),
    LCTL.warning(r"(.*\.)?suppress_pings", "1", "a client that died is noticed by nobody"),
    LCTL.warning(r"(.*\.)?changelog_gc", "0", "a reader that is gone fills the metadata target"),
    LCTL.error(r"(.*\.)?at_max", "0", "without adaptive time-outs a busy server loses its clients"),
    LCTL.error(r"(.*\.)?quota\.(mdt|ost)", r"(?![ugp]{1,3}$|none$).*", "quota is of u, g and p, or none"),
    LCTL.error(r"(.*\.)?failover\.mode", r"(?!failover$).*", "clients get errors in place of waiting"),
    LCTL.error(r"(.*\.)?threads_max", "[0-4]", "a few requests block all"),
    LCTL.error(r"(.*\.)?identity_upcall", r"(/usr)?/bin/(false|true)", "nobody is known: access is refused"),
    LCTL.warning("debug", "-1", "the kernel writes a line for every step of every request"),
    SettingsOf("mount options lustre").error(
        "skip_lcfg|writeconf|nosvc|abort_recov\\w*", ".*", "it is for repairs only"
    ),
    SettingsOf("mount options lustre").warning("noir", ".*", "clients learn of a take-over only by time-outs"),
    SettingsOf("mount options lustre").warning("exclude", ".*", "the targets that are excluded are used by nobody"),
    # Units of systemd: of the cluster's own programs.
    _SERVICE.error(
        r"Private(Tmp|Mounts|Devices|Network|Users)|Protect(System|Home|Kernel\w+|ControlGroups|Clock)|MountFlags",
        r"(?!no$|false$|0$|shared$).+",
        "what agents mount or set is seen by nobody else",
    ),
    _SERVICE.error(
        r"ReadOnlyPaths|InaccessiblePaths|User|CapabilityBoundingSet|SystemCallFilter|RootDirectory|DynamicUser",
        ".+",
        "the program has not the rights that it needs",
    ),
    _SERVICE.error(
        r"RestrictRealtime|NoNewPrivileges|RestrictNamespaces", YES, "the program has not the rights that it needs"
    ),
    _SERVICE.error("KillSignal", ".*KILL|9", "the program is killed in place of stopped"),
    _SERVICE.warning("LimitMEMLOCK", r"\d{1,8}|\d+[KM]", "it is paged out, and late"),
    _SERVICE.error("LimitRTPRIO", "0", "it gets no time of a busy processor"),
    _SERVICE.error(r"Exec(Start|Stop)", r"(/usr)?/bin/(true|false)", "it is never started, or never stopped"),
    SettingsOf(f"unit Unit of ({_CLUSTER})").error(
        "PartOf|BindsTo",
        r".*(network|NetworkManager|systemd-networkd|firewalld|sshd|chronyd).*",
        "a restart of that unit stops the cluster on this node",
    ),
    SettingsOf("kdump").warning(
        "(failure_action|default)", "shell", "a node whose dump fails waits for somebody, powered on"
    ),
    KERNEL_LINE.error(r"zfs(\.|_)?zfs_force|zfs_force", "1", "pools are imported by force at boot", only_with="zfs"),
    KERNEL_LINE.error(
        "spl_hostid|spl.spl_hostid", "0+|0x0+", "multihost does not work without a host id", only_with="zfs"
    ),
    KERNEL_LINE.warning("panic", "0", "after a panic the node stands still until somebody powers it off"),
    *SYSTEM_ROWS,
)
