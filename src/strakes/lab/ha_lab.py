"""Lab "ha": two nodes with real Corosync, Pacemaker and ``fence_ipmilan``, and software BMCs to cut their power."""

from __future__ import annotations

import grp
import os
import pwd
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.files import write_kept
from strakes.base.units import MIB
from strakes.failover.plan import alert_files, corosync_file
from strakes.lab.ha_configuration import NODES, WEBHOOK
from strakes.lab.ha_nodes import ADMIN, DISKS, MACHINE_PACKAGES, Machines, Namespaces
from strakes.lab.ha_pair import lacking
from strakes.lab.ha_programs import ALERT_PORT
from strakes.lab.kind import Lab
from strakes.lab.options import LabOptions, option
from strakes.lab.packages import Package, table

_OWNER, _GROUP = "hacluster", "haclient"


@dataclass(frozen=True)
class HaOptions(LabOptions):
    """Options of ``lab up ha``."""

    uml: bool = option(
        "flag", "Use machines of User-mode Linux with real DRBD and private disks instead of namespaces.", False
    )


class HaLab(Lab[HaOptions]):
    """Two servers and a service that fails over between them and writes a journal. ``uml``: the journal is on DRBD."""

    options_type = HaOptions
    packages = table(
        "corosync corosync, pacemaker pacemakerd, pacemaker-cli-utils crm_mon, fence-agents fence_ipmilan, "
        "resource-agents /usr/lib/ocf/resource.d/heartbeat/anything, openipmi ipmi_sim, ipmitool ipmitool, "
        "iproute2 ip, curl curl"
    )

    @classmethod
    def packages_for(cls, options: HaOptions) -> tuple[Package, ...]:
        return (*cls.packages, *(MACHINE_PACKAGES if options.uml else ()))

    @classmethod
    def check(cls, options: HaOptions, directory: Path) -> None:
        if options.uml:
            Machines.check(directory)

    def up(self) -> None:
        site = self.site
        self._nodes: Namespaces = Machines(site) if self.options.uml else Namespaces(site)
        self.ready_limit_s = self._nodes.ready_limit_s
        self._script = site.install(f"scripts/{self._nodes.program}", "ha.sh")
        site.install("scripts/common.sh", "common.sh")
        site.install("ha_programs.py", "node.py")
        for name in ("log", "bin"):
            site.make_directory(name, mode=0o755)
        site.mount_memory(64 * MIB)
        for name in ("bmc.log", "alerts.jsonl"):
            site.write(name, "")
        site.step("networks: two heartbeat links and one for management")
        self._connect()
        planned = self._nodes.plan()
        site.step("two BMCs, and a receiver of alerts")
        for number, name in enumerate(NODES, 1):
            self._start_bmc(number, name)
        self._listen()
        for file in alert_files(planned):
            site.write(Path(file.path).name, file.text, file.mode)
        site.fill("hosts", "hosts", addresses={node.name: node.addresses["first"] for node in planned.nodes})
        key, configuration, cib = secrets.token_bytes(256), corosync_file(planned).text, self._nodes.cib(planned)
        for name in NODES:
            self._make_disks(name, key, configuration, cib)
        self._nodes.furnish(planned)
        site.step("two nodes")
        self._nodes.start()

    def ready(self) -> str:
        time.sleep(self._nodes.look_every_s)
        return lacking([str(self._script), "enter", "a"], self.site.id)

    def facts(self) -> Mapping[str, Any]:
        directory, script = self.site.directory, str(self._script)
        return {
            "nodes": [f"mds-{name}" for name in NODES],
            "commands": {f"mds-{name}": [script, "enter", name] for name in NODES},
            "links": {str(number): [script, "link", str(number)] for number in range(2)},
            "power": {f"mds-{name}": [script, "ipmi", name] for name in NODES},
            "journals": {f"mds-{name}": [script, "journal", name] for name in NODES},
            "clients": [*self._at_hub, "/usr/bin/python3", str(directory / "node.py"), "ask"],
            "addresses": [f"10.9.{number}.1" for number, _ in enumerate(NODES, 1)],
            "bmc_log": str(directory / "bmc.log"),
            "alerts": str(directory / "alerts.jsonl"),
            "look_every_s": self._nodes.look_every_s,
            **self._nodes.facts(),
        }

    def _connect(self) -> None:
        hub = self._nodes.hub
        self.site.make_namespace(hub)
        self._nodes.connect()
        for number, name in enumerate(NODES, 1):
            own = f"address add 10.9.{number}.254/24 dev to-{name}"
            self.site.ip(hub, own, f"address add 10.9.0.{number}/32 dev lo")
        self.site.ip(hub, f"address add {ADMIN}/32 dev lo")

    def _start_bmc(self, number: int, name: str) -> None:
        configuration = self.site.fill(f"bmc-{name}.conf", "bmc.conf", number=number, name=name)
        emulation = self.site.fill(f"bmc-{name}.emu", "bmc.emu")
        self.site.write("bmc-password", "#!/bin/sh\necho lab\n", 0o700)
        state = self.site.make_directory(f"bmc-{name}")
        words = ("ipmi_sim", "-n", "-c", configuration, "-f", emulation, "-s", state)
        self.site.start(f"bmc.{name}", *self._at_hub, *words)

    def _listen(self) -> None:
        directory = self.site.directory
        self.site.fill("bin/mail", "mail", 0o755, address=f"{ADMIN}:{ALERT_PORT}")
        address = self.site.write(WEBHOOK, f"http://{ADMIN}:{ALERT_PORT}/webhook\n", 0o400)
        # Pacemaker runs alert programs as the user hacluster, so this user must be able to read the file.
        shutil.chown(address, _OWNER)
        words = ("/usr/bin/python3", directory / "node.py", "receive", ADMIN, directory / "alerts.jsonl")
        self.site.start("alerts", *self._at_hub, *words)

    @property
    def _at_hub(self) -> tuple[str, ...]:
        return ("nsenter", f"--net={self.site.directory / 'net.hub'}")

    def _make_disks(self, name: str, key: bytes, configuration: str, cib: str) -> None:
        for part in DISKS:
            self.site.make_directory(name, part, mode=0o755)
        disk = self.site.directory / name
        write_kept(disk / "etc/corosync/authkey", key, mode=0o400)
        write_kept(disk / "etc/corosync/corosync.conf", configuration, mode=0o644)
        known = disk / "var/lib/pacemaker/cib/cib.xml"
        write_kept(known, cib)
        owner, group = pwd.getpwnam(_OWNER).pw_uid, grp.getgrnam(_GROUP).gr_gid
        state = disk / "var/lib/pacemaker"
        # The owner of a directory can exchange its entries, so change the owners of the entries first.
        for path in (*sorted(state.rglob("*"), reverse=True), state):
            os.chown(path, owner, group, follow_symlinks=False)
