"""Two nodes with real Corosync, Pacemaker and ``fence_ipmilan`` against software BMCs that really cut their power."""

from __future__ import annotations

import grp
import os
import pwd
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from strakes.lab.base import Lab
from strakes.lab.ha.configuration import BMC_EMULATION, NODES, PASSWORD, TARGET, bmc_text, cib_text, cluster, corosync_text
from strakes.lab.options import LabOptions, seconds
from strakes.lab.packages import Package
from strakes.lab.process import run

_ASK_S = 10.0
_PACEMAKER = "var/lib/pacemaker"
_DISKS = (
    "etc/corosync/uidgid.d",
    "var/lib/corosync",
    *(f"{_PACEMAKER}/{part}" for part in ("cib", "cores", "blackbox", "pengine")),
    "var/log",
)
_OWNER, _GROUP = "hacluster", "haclient"


@dataclass(frozen=True)
class HaOptions(LabOptions):
    token: float = seconds(1.0, "Silence after which a node is taken for dead.", least=0.5, most=30.0)


class HaLab(Lab[HaOptions]):
    """The nodes are process, network, mount, host name and IPC namespaces; what they serve is a journal on a memory file system."""

    options_type = HaOptions
    packages = (
        Package("corosync", "corosync"),
        Package("pacemaker", "pacemakerd"),
        Package("pacemaker-cli-utils", "crm_mon"),
        Package("resource-agents", "/usr/lib/ocf/resource.d/heartbeat/anything"),
        Package("fence-agents", "fence_ipmilan"),
        Package("openipmi", "ipmi_sim"),
        Package("ipmitool", "ipmitool"),
        Package("iproute2", "ip"),
    )

    def up(self) -> None:
        site = self.site
        self._script = site.directory / "ha.sh"
        self._script.write_text(resources.files("strakes").joinpath("lab/ha/ha.sh").read_text(encoding="utf-8"), encoding="utf-8")
        self._script.chmod(0o755)
        site.make_directory("mnt")
        site.make_directory("log")
        site.run("mount", "-t", "tmpfs", "-o", "size=64m,mode=0755", f"strakes-lab-{site.name}", site.mount_point)
        (site.directory / "bmc.log").touch()
        site.step("networks: two heartbeat links and one for management")
        self._connect()
        site.step("two BMCs")
        for number, name in enumerate(NODES, 1):
            self._start_bmc(number, name)
        site.step("two nodes")
        planned = cluster(site.directory, self.options.token)
        key, configuration, cib = secrets.token_bytes(256), corosync_text(planned), cib_text(planned, site.directory)
        site.write("hosts", "127.0.0.1 localhost\n" + "".join(f"10.1.0.{number} mds-{name}\n" for number, name in enumerate(NODES, 1)))
        for name in NODES:
            self._make_disks(name, key, configuration, cib)
            site.start(f"node.{name}", self._script, "node", name)

    def ready(self) -> str:
        asked = run([str(self._script), "enter", "a", "crm_mon", "--one-shot", "--output-as=xml"], limit_s=_ASK_S, lab_id=self.site.id)
        if asked.status != 0:
            return "the cluster does not answer yet"
        status = Xml.fromstring(asked.stdout)
        online = [node.get("name") for node in status.iterfind("./nodes/node") if node.get("online") == "true"]
        if len(online) < len(NODES):
            return f"only {', '.join(map(str, online)) or 'no node'} is online"
        idle = [one.get("id") for one in status.iter("resource") if one.get("role") not in ("Started", "Promoted", "Unpromoted")]
        promoted = [one for one in status.iter("resource") if one.get("role") == "Promoted"]
        return f"not started: {', '.join(map(str, idle))}" if idle else "" if promoted else "nothing is promoted yet"

    def facts(self) -> Mapping[str, Any]:
        script = str(self._script)
        return {
            "nodes": [f"mds-{name}" for name in NODES],
            "commands": {f"mds-{name}": [script, "enter", name] for name in NODES},
            "process_of": {f"mds-{name}": str(self.site.directory / f"{name}.pid") for name in NODES},
            "links": {str(number): [script, "link", str(number)] for number in range(2)},
            "power": {f"mds-{name}": [script, "ipmi", name] for name in NODES},
            "bmc_log": str(self.site.directory / "bmc.log"),
            "journal": str(self.site.mount_point / TARGET),
        }

    def _connect(self) -> None:
        net = {name: self.site.directory / f"net.{name}" for name in (*NODES, "hub")}
        for path in net.values():
            path.touch()
            self.site.run("unshare", f"--net={path}", "ip", "link", "set", "lo", "up")

        def ip(where: str, *words: str | Path) -> None:
            self.site.run("nsenter", f"--net={net[where]}", "ip", *words)

        first, second = NODES
        for ring in range(2):
            ip(first, "link", "add", f"ring{ring}", "type", "veth", "peer", "name", f"ring{ring}", "netns", net[second])
            for number, name in enumerate(NODES, 1):
                ip(name, "address", "add", f"10.{ring + 1}.0.{number}/24", "dev", f"ring{ring}")
                ip(name, "link", "set", f"ring{ring}", "up")
        for number, name in enumerate(NODES, 1):
            ip("hub", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "management", "netns", net[name])
            ip("hub", "address", "add", f"10.9.{number}.254/24", "dev", f"to-{name}")
            ip("hub", "link", "set", f"to-{name}", "up")
            ip("hub", "address", "add", f"10.9.0.{number}/32", "dev", "lo")
            ip(name, "address", "add", f"10.9.{number}.1/24", "dev", "management")
            ip(name, "link", "set", "management", "up")
            ip(name, "route", "add", "10.9.0.0/24", "via", f"10.9.{number}.254")

    def _start_bmc(self, number: int, name: str) -> None:
        configuration = self.site.write(f"bmc-{name}.conf", bmc_text(number, name, self._script))
        emulation = self.site.write("bmc.emu", BMC_EMULATION)
        script = self.site.write("bmc-password", f"#!/bin/sh\necho {PASSWORD}\n")
        script.chmod(0o700)
        state = self.site.make_directory(f"bmc-{name}")
        inside = ("nsenter", f"--net={self.site.directory / 'net.hub'}")
        self.site.start(f"bmc.{name}", *inside, "ipmi_sim", "-n", "-c", configuration, "-f", emulation, "-s", state)

    def _make_disks(self, name: str, key: bytes, configuration: str, cib: str) -> None:
        for part in _DISKS:
            self.site.make_directory(name, part)
        disk = self.site.directory / name
        (disk / "etc/corosync/authkey").write_bytes(key)
        (disk / "etc/corosync/authkey").chmod(0o400)
        (disk / "etc/corosync/corosync.conf").write_text(configuration, encoding="utf-8")
        known = disk / _PACEMAKER / "cib" / "cib.xml"
        known.write_text(cib, encoding="utf-8")
        known.chmod(0o600)
        owner, group = pwd.getpwnam(_OWNER).pw_uid, grp.getgrnam(_GROUP).gr_gid
        for path in (disk / _PACEMAKER, *(disk / _PACEMAKER).rglob("*")):
            os.chown(path, owner, group)
        shutil.chown(disk / "var/log", group=_GROUP)
        (disk / "var/log").chmod(0o775)
