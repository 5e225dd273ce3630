"""Values of Pacemaker's own options that do harm in a pair: one row for each, with the reason."""

from __future__ import annotations

from strakes.failover.cib_values import is_true, score, seconds
from strakes.failover.rules.danger import Danger, OptionsOf, above, always, is_off, is_one_of, number_in

PACEMAKER_ROWS: tuple[Danger, ...] = (
    OptionsOf("meta").error(
        "resource-stickiness",
        lambda value: score(value) < 0,
        "-INFINITY",
        "With this stickiness a service leaves its node whenever another node is available.",
        "resource-stickiness=1000",
    ),
    OptionsOf("op monitor").error(
        "interval",
        lambda value: 0 < seconds(value) < 1,
        "10ms",
        "Monitors that run without a pause keep the node busy, and time out when it is under load.",
        "interval=10s",
    ),
    OptionsOf("cluster").error(
        "enable-startup-probes",
        is_off,
        "0",
        "Services that already run on a joining node are not detected: the same file system is mounted a second time.",
        "Remove it.",
    ),
    OptionsOf("cluster").warning(
        "start-failure-is-fatal",
        is_off,
        "0",
        "A service that cannot start on a node is tried there again and again, unless migration-threshold limits it.",
        "Remove it, or set migration-threshold.",
    ),
    OptionsOf("fencing").error(
        "snmp_sec_level",
        is_one_of("noauthnopriv"),
        "noauthnopriv",
        "Without authentication the password is not used: anybody on the network can cut the power.",
        "snmp_sec_level=authPriv",
    ),
    OptionsOf("cluster").warning(
        "remove-after-stop",
        is_true,
        "1",
        "Pacemaker's own page calls it poorly tested and potentially dangerous.",
        "Remove it.",
    ),
    OptionsOf("cluster").warning(
        "stop-orphan-resources",
        is_off,
        "0",
        "A resource that was deleted from the configuration goes on running, and writing, without supervision.",
        "Remove it.",
    ),
    OptionsOf("cluster").warning(
        "stop-orphan-actions",
        is_off,
        "0",
        "Monitors that were deleted go on, and their failures are acted on.",
        "Remove it.",
    ),
    OptionsOf("cluster").error(
        "fence-reaction",
        lambda value: value.lower() not in ("stop", "panic"),
        "ignore",
        "A node that is told that it was powered off, although it was not, has to stop or panic; nothing else is safe.",
        "fence-reaction=panic",
    ),
    OptionsOf("cluster").error(
        "cluster-infrastructure",
        lambda value: value.lower() not in ("corosync", ""),
        "0",
        "Pacemaker 2 runs only on Corosync; a configuration for cman, openais or heartbeat has to be written anew.",
        "cluster-infrastructure=corosync, which Pacemaker sets itself.",
    ),
    OptionsOf("cluster").error(
        "node-pending-timeout",
        lambda value: 0 < seconds(value) < 60,
        "1s",
        "A joining node is powered off before it has joined: it never comes back.",
        "Remove it; the default is two hours.",
    ),
    OptionsOf("cluster").warning(
        "node-action-limit",
        lambda value: value == "1",
        "1",
        "With one action at a time, a node with many targets stops and starts them one after the other.",
        "Remove it.",
    ),
    OptionsOf("fencing").error(
        "pcmk_action_limit",
        lambda value: value == "0",
        "0",
        "With 0 actions at a time the device does nothing.",
        "Remove it, or set it to -1 for no limit.",
    ),
    *(
        OptionsOf("fencing").error(
            f"pcmk_{action}_retries",
            lambda value: (number := number_in(value)) is not None and number < 1,
            "0",
            "This is the number of attempts: with less than one, the device is never used.",
            "Remove it; its default is 2.",
        )
        for action in ("off", "reboot", "status", "monitor")
    ),
    *(
        OptionsOf("fencing").error(
            f"pcmk_{action}_action",
            is_one_of("off", "on", "reboot", "cycle", "poweroff", "poweron"),
            "off",
            "Pacemaker asks for the status about once a minute: with this setting each question switches the power of "
            "a healthy node.",
            "Remove it.",
        )
        for action in ("status", "monitor", "list")
    ),
    OptionsOf("fencing").error(
        "pcmk_on_action",
        is_one_of("off", "reboot", "cycle", "poweroff"),
        "off",
        "A node that is to be let back is powered off instead.",
        "Remove it.",
    ),
    OptionsOf("fencing").error(
        "pcmk_host_check",
        lambda value: value not in ("dynamic-list", "static-list", "status", "none"),
        "0",
        "Pacemaker knows dynamic-list, static-list, status and none; with any other value no node is powered off.",
        "Remove it: with pcmk_host_list the default is static-list.",
    ),
    OptionsOf("fencing").error(
        "cipher",
        lambda value: (number := number_in(value)) is None or not 0 < number <= 19,
        "0",
        "Cipher suite 0 needs no password, so anybody can cut the power; there are no suites above 19.",
        "cipher=17, or 3 for older BMCs.",
    ),
    OptionsOf("fencing").error(
        "auth",
        is_one_of("none"),
        "none",
        "Without authentication anybody on the network can cut the power, and most BMCs refuse it.",
        "Remove it.",
    ),
    OptionsOf("fencing").warning(
        "action",
        always,
        "reboot",
        "Pacemaker tells the agent what to do; an action set on the device is ignored, or is all that the device does.",
        "Remove it; use stonith-action or pcmk_reboot_action instead.",
    ),
    OptionsOf("fencing").warning(
        "plug",
        lambda value: value == "0",
        "0",
        "Outlets are counted from 1.",
        "Use the number printed next to the outlet.",
    ),
    OptionsOf("fencing").warning(
        "disable_timeout",
        is_true,
        "1",
        "An agent without a time-out of its own hangs until Pacemaker kills it: the second attempt is lost.",
        "Remove it.",
    ),
    OptionsOf("meta").error(
        "critical",
        is_off,
        "0",
        "A resource that is not critical is left stopped if it cannot run on a node, and the rest of the group "
        "continues without it.",
        "Remove it.",
    ),
    OptionsOf("op monitor").warning(
        "timeout",
        above(900),
        "3000",
        "A service that hangs is not noticed for that long.",
        "timeout=60s, or 300s for Lustre.",
    ),
    *(
        OptionsOf(f"op {name}").warning(
            "timeout",
            above(7200),
            "12h",
            "This is several hours; it was probably meant in milliseconds. A start or stop that hangs takes the "
            "service down for that long.",
            "Write the unit: timeout=600s",
        )
        for name in ("start", "stop", "promote", "demote", "notify")
    ),
    *(
        OptionsOf(f"op {name}").error(
            "interval",
            lambda value: seconds(value) > 0,
            "1",
            "Only monitors are repeated; Pacemaker refuses any other operation with an interval, and with it the "
            "timeout.",
            "interval=0s",
        )
        for name in ("start", "stop", "promote", "demote", "notify", "migrate_to", "migrate_from")
    ),
    OptionsOf("op status").error(
        "name",
        always,
        "status",
        "The name status comes from Heartbeat: Pacemaker repeats monitor.",
        "op monitor",
    ),
    OptionsOf("op stop").error(
        "on-fail",
        is_one_of("restart", "demote", "stop"),
        "restart",
        "A failed stop cannot be solved by a restart: the service is blocked on its node, and the node is not powered "
        "off.",
        "Remove on-fail.",
    ),
)
