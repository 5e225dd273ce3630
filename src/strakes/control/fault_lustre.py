"""Faults of Lustre: unmount a target, stop all services of a server, or cut off this client.

Commands run on a server through ``--servers``, or directly if this machine is the server.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.control.drill_undo import MountTargets, RunCommand, targets_in
from strakes.control.fault import Ask, OneCommand
from strakes.targets.command import Runner, run
from strakes.targets.lustre_lfs import LIST_NIDS
from strakes.targets.lustre_servers import THIS_NODE, host_of
from strakes.targets.lustre_target import LustreTarget
from strakes.targets.lustre_tool import is_target_of
from strakes.targets.mountinfo import unescape
from strakes.targets.registry import detect

# Mount options to repeat when the target is mounted again, and all after "osd=": those of ldiskfs, from the disk and
# from the administrator (server_show_options() in lustre/obdclass/obd_mount_server.c, since 2.16 target/tgt_mount.c).
# Not "ro", which many releases show for all targets and mount.lustre would take for read-only.
_GIVEN = ("nosvc", "nomgs", "noir", "noscrub", "skip_lcfg", "skip_lfsck", "rdonly_dev")
# Lustre needs the management server (MGS) first, then the metadata targets, then the data targets.
_STARTS = ("MGS", "MDT", "OST")
# Outputs of systemctl is-active for a unit that does not run. Before systemd 231, a missing unit is unknown.
_AT_REST = ("inactive", "failed", "unknown")
_PACEMAKER = ("pacemaker", "pacemaker_remote")
_NETWORK = re.compile(r"^[^@\s]+@(?P<network>[a-z]\w*)$")


@dataclass(frozen=True)
class MountedTarget:
    """A mounted target on its server."""

    name: str
    device: str
    mount_point: str
    options: tuple[str, ...]

    @property
    def mount_unless_mounted(self) -> str:
        rest = next((at for at, option in enumerate(self.options, 1) if option.startswith("osd=")), len(self.options))
        given = [option for option in self.options[:rest] if option in _GIVEN]
        # Each option once, in its last place: this list contains those of the disk, which mount.lustre adds again.
        given += reversed(dict.fromkeys(reversed(self.options[rest:])))
        words = ["mount", "-t", "lustre", *(["-o", ",".join(given)] if given else []), self.device, self.mount_point]
        pattern = shlex.quote(f"^[^ ]+ [^ ]+ lustre(_tgt)? ([^ ]*,)?svname={self.name}[, ]")
        return f"grep -Eq {pattern} /proc/mounts || {shlex.join(words)}"


def mounted_targets(mounts: str) -> tuple[MountedTarget, ...]:
    """Return the targets in a server's /proc/mounts, in the order in which Lustre starts them."""
    targets = [
        MountedTarget(name, unescape(fields[0]), unescape(fields[1]), tuple(fields[3].split(",")))
        for name, fields in targets_in(mounts)
    ]
    return tuple(sorted(targets, key=lambda target: (*(kind not in target.name for kind in _STARTS), target.name)))


class _LustreFault(OneCommand):
    # Recovery may take 15 minutes, because a target waits for all clients to reconnect.
    back_within_s: ClassVar[float] = 960.0

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        self._run = run_one
        target = detect(ask.directory, ask.servers)
        if not isinstance(target, LustreTarget):
            why = f"it is on {target.mount.file_system}"
            remedy = "On other file systems, give a command: --fault-command 'ssh mds1 reboot -f'"
            raise BadInputError("this fault works only on Lustre", where=str(ask.directory), why=why, remedy=remedy)
        self.file_system = target

    def lacking(self) -> str:
        return " ".join(self.file_system.trouble())


class UnmountTarget(_LustreFault):
    """Unmount a target: clients wait until it is mounted again. ``how``: after "umount -f", clients are evicted."""

    def __init__(self, ask: Ask, run_one: Runner = run, how: str = "umount") -> None:
        super().__init__(ask, run_one)
        self._how = how
        where = self.file_system.server_addresses()
        placement = None if ask.target else self.file_system.placement(ask.directory)
        number = placement.metadata_targets[0] if placement and placement.metadata_targets else 0
        name = ask.target or f"{self.file_system.file_system_name}-MDT{number:04x}"
        if name not in where:
            what, remedy = "--target is not a target of this file system", f"One of: {', '.join(where)}."
            raise BadInputError(what, where=name, remedy=remedy)
        if not _NETWORK.match(where[name]):
            what, why = f"the server of {name} is unknown", "this client is not connected to the server"
            remedy = "Wait until the target serves this client again. To check: strakes target DIR"
            raise EnvironmentLacksError(what, where=where[name] or "no address", why=why, remedy=remedy)
        self.host = host_of(where[name])
        if self.host != THIS_NODE and ask.servers is None:
            what, remedy = f"the server of {name} cannot be reached", "--servers 'ssh {host} sudo'"
            raise BadInputError(what, where=self.host, remedy=f"Give a command that reaches the server: {remedy}")
        self._servers = ask.servers
        done = self._run(self._there("cat", "/proc/mounts"))
        if done.status != 0:
            what, remedy = "the server does not answer", "Try that command; --servers must reach the server as root."
            raise EnvironmentLacksError(what, where=shlex.join(done.argv), why=done.last_line, remedy=remedy)
        asked = self._run(self._there("systemctl", "is-active", *_PACEMAKER))
        states = [line.split()[-1] for line in asked.stdout.splitlines() if line.strip()]
        if len(states) < len(_PACEMAKER) or not set(states) <= {*_AT_REST}:
            what = f"Pacemaker manages the server of {name}, or its state is unknown"
            why = "Pacemaker would start the stopped target on another server, and both could mount the disk"
            why, remedy = f"{asked.last_line}. {why}", "Use the faults node-standby, node-fence and resource-fail."
            raise BadInputError(what, where=shlex.join(asked.argv), why=why, remedy=remedy)
        self.there = mounted_targets(done.stdout)
        names = [target.name for target in self.there]
        if name not in names:
            why = f"mounted there: {', '.join(names) or 'no target'}"
            raise BadInputError(f"the target {name} is not mounted on its server", where=self.host, why=why)
        self.victim = self.there[names.index(name)]
        strike, stopped = self._commands()
        points = [unescape(line.split(" ")[1]) for line in done.stdout.split("\n") if " " in line]
        if any(
            names.count(each.name) != 1 or points.count(each.mount_point) != 1 or each.device.startswith("/dev/loop")
            for each in stopped
        ):
            what = f"{name} cannot be unmounted safely"
            why = "a target is mounted twice, another mount covers it, or umount frees its loop device"
            raise BadInputError(what, where=self.host, why=why, remedy="See /proc/mounts there.")
        self._strike = self._there("sh", "-c", strike)
        self.undo = self._mount_again(stopped)
        self.text = f"on {self.host}: {strike}"

    def _commands(self) -> tuple[str, Sequence[MountedTarget]]:
        return f"{self._how} {shlex.quote(self.victim.mount_point)}", [self.victim]

    def _mount_again(self, targets: Sequence[MountedTarget]) -> MountTargets:
        looks = ("cat", "/proc/mounts")
        mine = [target for target in targets if is_target_of(target.name, self.victim.name.rpartition("-")[0])]
        hosts = dict.fromkeys(host for target in mine for host in self.file_system.servers_of(target.name))
        others = [host for host in hosts if host not in (self.host, THIS_NODE)] if self._servers else []
        return MountTargets(
            tuple(target.name for target in targets),
            tuple(shlex.join(self._there("sh", "-c", target.mount_unless_mounted)) for target in targets),
            shlex.join(self._there(*looks)),
            tuple(shlex.join(self._servers.argv(host, looks)) for host in others if self._servers),
        )

    def _there(self, *argv: str) -> tuple[str, ...]:
        return argv if self.host == THIS_NODE or self._servers is None else self._servers.argv(self.host, argv)


class StopServices(UnmountTarget):
    """Unmount all targets of this file system on one server, and the MGS if no other file system is there."""

    def _commands(self) -> tuple[str, Sequence[MountedTarget]]:
        file_system = self.victim.name.rpartition("-")[0]
        mine = [target for target in self.there if is_target_of(target.name, file_system)]
        if all(target in mine or "-" not in target.name for target in self.there):
            mine = list(self.there)
        return " && ".join(f"umount {shlex.quote(target.mount_point)}" for target in reversed(mine)), mine


class CutClient(_LustreFault):
    """Drop all Lustre messages from the servers to this client by LNet rules."""

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        super().__init__(ask, run_one)
        theirs = _networks(self.file_system.server_addresses().values())
        if not theirs:
            why = "the servers are on this machine, or the client is not connected to them"
            raise BadInputError("client and Lustre servers share no network", where=str(ask.directory), why=why)
        listed = self._run(("lctl", "net_drop_list"))
        # With no rule, Lustre 2.17 prints an empty one and fails (fault_simul_rule_list() in lustre/utils/portals.c).
        if "found total 0" not in listed.stdout.splitlines() or "failed" in listed.stdout:
            what, why = "LNet drops messages already, or does not list its rules", listed.stdout or listed.stderr
            remedy = "When the rules are no longer needed, remove them: lctl net_drop_del --all"
            raise BadInputError(what, where="lctl net_drop_list", why=why.strip(), remedy=remedy)
        # Behind an LNet router, servers and this client are in different networks, so name both networks.
        own = list[str]()
        with suppress(StrakesError):
            own = _networks(LIST_NIDS.ask(self._run))
        rules = [f"--source '*@{source}' --dest '*@{dest}'" for source in theirs for dest in own or [source]]
        strike = " && ".join(f"lctl net_drop_add {rule} --rate 1" for rule in rules)
        removals = [f"lctl net_drop_del {rule} || failed=1" for rule in rules]
        self._strike = ("sh", "-c", strike)
        # Lustre 2.16 and newer fail to remove a rule that is gone (lnet_fault_cmd() in lnet/lnet/api-ni.c).
        left = "[ $failed = 0 ] || lctl net_drop_list | grep -qx 'found total 0'"
        self.undo = RunCommand(("sh", "-c", "; ".join(["failed=0", *removals, left])))
        self.text = f"on this client: {strike}"


def _networks(addresses: Iterable[str]) -> list[str]:
    matches = (_NETWORK.match(address) for address in addresses)
    return list(dict.fromkeys(match["network"] for match in matches if match and match["network"] != "lo"))
